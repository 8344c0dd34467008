"""The old hook and the old operators' inputs against the Vertex stand-in and a real GCS server."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from trainops.errors import ConfigError, NotFoundError, RequestRefused
from trainops.gcp.storage import Storage
from trainops.hooks.mlengine import MLEngineHook
from trainops.operators.cancel_job import MLEngineTrainingCancelJobOperator
from trainops.operators.stored_input import stored_training_input
from trainops.providers.google.cloud.links.mlengine import MLEngineJobDetailsLink
from trainops.providers.google.cloud.operators.mlengine import MLEngineStartTrainingJobOperator
from trainops.settings import Settings

ROOT = Path(__file__).resolve().parents[3]


class Instance:
    """What the operators ask of a task instance, without Airflow: who it is, and where XComs go."""

    dag_id, run_id, task_id, map_index, id = "old_dag", "r", "train", -1, "1"
    try_number, max_tries = 1, 0

    def __init__(self, operator: MLEngineStartTrainingJobOperator) -> None:
        self.operator = operator
        self.pushed: list[tuple[str, Any, str | None]] = []

    def xcom_push(self, key: str, value: Any) -> None:
        """Keep it, with the job that the operator knew of by then."""
        self.pushed.append((key, value, self.operator.job_name))


@pytest.fixture
def hook(vertex_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MLEngineHook:
    """A hook in the environment of the stand-ins, which lies in a file as environments do."""
    folder = tmp_path / "environments"
    folder.mkdir()
    (folder / "test.yaml").write_text(yaml.safe_dump(vertex_settings.model_dump(by_alias=True, mode="json")))
    (tmp_path / "gpu_pools.yaml").write_text((ROOT / "include" / "configs" / "gpu_pools.yaml").read_text())
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(tmp_path))
    monkeypatch.setenv("TRAINOPS_ENVIRONMENT", "test")
    return MLEngineHook()


def job(job_id: str, code: str = "print('hello')") -> dict[str, Any]:
    config = {"imageUri": "example/image", "containerCommand": ["python", "-c"], "containerArgs": [code]}
    training_input = {"scaleTier": "CUSTOM", "masterType": "n1-standard-8", "masterConfig": config}
    return {"jobId": job_id, "labels": {"team": "ads"}, "trainingInput": training_input}


def test_a_job_is_created_waited_for_and_found_again_by_its_id(hook: MLEngineHook) -> None:
    ended = hook.create_job(job=job("census 2019/05.1"), poll_seconds=0.2)
    assert ended["state"] == "JOB_STATE_SUCCEEDED"
    assert ended["labels"] == {"team": "ads"}
    assert hook.get_job(job_id="census 2019/05.1") == ended
    assert hook.get_job(job_id=ended["name"]) == ended


@pytest.mark.case("C018")
def test_a_job_with_the_id_is_followed_and_not_created_again_unless_it_will_not_do(hook: MLEngineHook) -> None:
    first = hook.create_job(job=job("once"), poll_seconds=0.2)
    assert hook.create_job(job=job("once"), poll_seconds=0.2)["name"] == first["name"]
    assert hook.create_job_without_waiting_result(job("once"), hook.settings.project) == "once"
    with pytest.raises(RequestRefused, match="will not do"):
        hook.create_job(job=job("once"), use_existing_job_fn=lambda existing: existing["name"] != first["name"])


def test_ids_that_differ_in_punctuation_only_are_two_jobs(hook: MLEngineHook) -> None:
    for job_id in ("a-b", "a.b"):
        hook.create_job_without_waiting_result(job(job_id))
    assert hook.get_job(job_id="a-b")["name"] != hook.get_job(job_id="a.b")["name"]


def test_a_cancelled_job_ends_and_cancelling_it_again_is_no_error(hook: MLEngineHook) -> None:
    hook.create_job_without_waiting_result(job("slow", "import time; time.sleep(60)"))
    cancel = MLEngineTrainingCancelJobOperator(task_id="cancel", job_id="slow")
    cancel.execute({})
    deadline = time.monotonic() + 120
    while hook.get_job(job_id="slow")["state"] != "JOB_STATE_CANCELLED":
        assert time.monotonic() < deadline, hook.get_job(job_id="slow")
        time.sleep(0.2)
    cancel.execute({})


def test_the_operator_of_the_old_module_path_pushes_the_old_xcoms_and_waits(
    hook: MLEngineHook, storage: Storage
) -> None:
    uri = f"{hook.settings.work}/job.json"
    storage.write_json(uri, {"trainingInput": job("x")["trainingInput"]}, generation=0)
    operator = MLEngineStartTrainingJobOperator(
        task_id="train", job_id="a-b.c", training_input_uri=uri, project_id=hook.settings.project, deferrable=False,
        poll_interval=0.2,
    )  # fmt: skip
    instance = Instance(operator)
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    context: Any = {"ti": instance, "dag_run": SimpleNamespace(logical_date=moment, run_after=moment)}
    result = operator.execute(context)
    assert result["verdict"] == "succeeded"
    assert hook.get_job(job_id="a-b.c")["name"] == result["job_name"]
    metadata = {"job_id": "a-b.c", "project_id": hook.settings.project, "job_name": result["job_name"]}
    assert instance.pushed == [("job_id", "a-b.c", None), ("gcp_metadata", metadata, result["job_name"])]
    assert (
        MLEngineJobDetailsLink()
        .get_link(operator, ti_key=context["ti"])
        .startswith("https://console.cloud.google.com/")
    )


def test_a_job_that_never_was_is_told_so(hook: MLEngineHook) -> None:
    with pytest.raises(NotFoundError, match="never_was"):
        hook.cancel_job(job_id="never_was")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("job.yaml", "trainingInput:\n  scaleTier: CUSTOM\n  runtimeVersion: '2.3'\n"),
        ("job.json", '{"trainingInput": {"scaleTier": "CUSTOM", "runtimeVersion": "2.3"}}'),
    ],
)
def test_a_training_input_is_read_from_a_bucket(name: str, text: str, storage: Storage, settings: Settings) -> None:
    uri = f"{settings.work}/{name}"
    storage.write_bytes(uri, text.encode(), generation=0)
    assert stored_training_input(storage, uri) == {"trainingInput": {"scaleTier": "CUSTOM", "runtimeVersion": "2.3"}}


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("missing.yaml", None, "no such object"),
        ("broken.yaml", b"scaleTier: [", "broken.yaml: "),
        ("broken.json", b"{,}", "broken.json: broken JSON at line 1"),
        ("latin.json", b'{"a": "\xe9"}', "not UTF-8"),
        ("list.yaml", b"- a", "list.yaml: .*mapping"),
    ],
)
def test_what_is_no_training_input_is_refused_with_its_uri(
    name: str, data: bytes | None, message: str, storage: Storage, settings: Settings
) -> None:
    uri = f"{settings.work}/{name}"
    if data is not None:
        storage.write_bytes(uri, data, generation=0)
    with pytest.raises(ConfigError, match=message) as told:
        stored_training_input(storage, uri)
    assert uri in str(told.value)


def test_a_training_input_on_a_disk_is_refused(storage: Storage) -> None:
    with pytest.raises(ConfigError, match=r"training_input_uri: .*train\.yaml.*gs://BUCKET"):
        stored_training_input(storage, "train.yaml")
