"""Reports of users whose jobs ran twice: one task of an old DAG, tried again and again, against the stand-ins."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.integration.run.old_task import REGION, Seen, Try, arguments, deferred, event_of, execute, start, stored

from trainops.errors import JobFailed
from trainops.gcp.logs import Logs
from trainops.providers.google.cloud.operators.mlengine import MLEngineStartTrainingJobOperator as Operator
from trainops.steps.run import Run
from trainops.steps.services import Services

ENDING = "import time; time.sleep(6); print('the end')"
FOLDERS = "import os, sys; print(sys.argv[1:], os.environ['AIP_CHECKPOINT_DIR']); sys.exit(1)"


@pytest.mark.case("C003")
@pytest.mark.case("C004")
@pytest.mark.case("C005")
@pytest.mark.case("C009")
@pytest.mark.case("C114")
@pytest.mark.parametrize(("code", "pause"), [(ENDING, 0), ("pass", 1.5)], ids=["it still runs", "it has ended"])
def test_a_process_killed_with_its_job_running_leaves_it_to_the_next_try(seen: Seen, code: str, pause: float) -> None:
    first = start(arguments(code, job_id="census_1"), {"number": 1})
    deadline = time.monotonic() + 180
    while not seen.calls("customJobs.create"):
        assert first.poll() is None, first.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.3)  # the child needs the processor more than this loop
    time.sleep(pause)
    first.kill()
    first.communicate()
    if code == "pass":
        while seen.states() != ["SUCCEEDED"]:
            time.sleep(0.2)
    result = execute(Operator(**arguments(code, job_id="census_2")), Try(2))
    assert result["verdict"] == "succeeded"
    assert [job["displayName"] for job in seen.jobs()] == ["census_1"]
    assert seen.calls("customJobs.create") == 1
    assert result["job_name"] == seen.jobs()[0]["name"]


@pytest.mark.case("C010")
def test_a_try_that_dies_between_its_create_and_its_deferral_leaves_its_job_to_the_next_try(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any, **__: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Operator, "defer", die)
        with pytest.raises(MemoryError):
            Operator(**arguments(ENDING, deferrable=True)).execute(Try(1).context())
    assert execute(Operator(**arguments(ENDING, deferrable=True)), Try(2))["verdict"] == "succeeded"
    assert seen.calls("customJobs.create") == 1


@pytest.mark.case("C002")
@pytest.mark.case("C015")
@pytest.mark.case("C059")
@pytest.mark.case("C087")
@pytest.mark.case("C104")
def test_each_retry_of_a_failed_job_is_a_job_of_its_own_in_the_same_folder(seen: Seen) -> None:
    for number in (1, 2, 3):
        with pytest.raises(JobFailed, match="status of 1"):
            execute(Operator(**arguments(FOLDERS, job_dir="gs://my-bucket/census")), Try(number))
    jobs = seen.jobs()
    assert len({job["name"] for job in jobs}) == 3
    labels = [job["labels"] for job in jobs]
    assert [label["attempt"] for label in labels] == ["1", "2", "3"]
    assert {(label["dag"], label["task"], label["run-key"], label["generation"]) for label in labels} == {
        ("old_dag", "train", labels[0]["run-key"], "1")
    }
    assert labels[0]["run-key"].startswith("old_dag-20260101t0000-")
    logs = Logs.connect(seen.settings)
    lines = [logs.entries([job["name"].rpartition("/")[2]]) for job in jobs]
    told = [[line.text for line in found if line.replica == "workerpool0-0"] for found in lines]
    assert told == [["['--job-dir=gs://my-bucket/census'] gs://my-bucket/census/checkpoints/"]] * 3
    logs.close()


@pytest.mark.case("C016")
@pytest.mark.case("C104")
def test_two_runs_with_one_job_id_can_be_told_apart(seen: Seen) -> None:
    for run in ("monday", "tuesday"):
        execute(Operator(**arguments()), Try(run_id=run))
    jobs = seen.jobs()
    assert [job["displayName"] for job in jobs] == ["census", "census"]
    assert len({job["labels"]["run-key"] for job in jobs}) == 2
    assert len({job["labels"]["job-key"] for job in jobs}) == 2


@pytest.mark.case("C018")
def test_two_processes_that_start_the_same_task_at_once_make_one_job(seen: Seen) -> None:
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: execute(Operator(**arguments(ENDING)), Try(1)), range(2)))
    assert [result["verdict"] for result in results] == ["succeeded"] * 2
    assert seen.calls("customJobs.create") == 1


@pytest.mark.case("C043")
def test_a_deferral_takes_one_create_and_no_wait_for_the_job(seen: Seen) -> None:
    started = time.monotonic()
    deferral = deferred(Operator(**arguments(ENDING, deferrable=True)), Try(1))
    print(f"from execute() to the deferral: {time.monotonic() - started:.2f} s")
    assert seen.calls("customJobs.list") <= 2  # before the create, and after it; the test's own lists come later
    assert seen.calls("customJobs.create") == 1
    assert seen.calls("customJobs.get") == 0
    assert seen.states()[0] != "SUCCEEDED"
    assert event_of(stored(deferral))["status"] == "done"


@pytest.mark.case("C007")
def test_a_try_that_found_the_job_again_knows_it_for_link_xcom_and_cancel(
    seen: Seen, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = arguments("import time; time.sleep(60)", deferrable=True)
    deferred(Operator(**slow), Try(1))
    operator, current = Operator(**slow), Try(2)
    trigger = stored(deferred(operator, current))
    job = seen.jobs()[0]["name"]
    (link,) = operator.operator_extra_links
    assert job.rpartition("/")[2] in link.get_link(operator, ti_key=None)  # type: ignore[arg-type]
    assert current.pushed["job_id"] == "census"
    trigger._cancel_if_abandoned("failed")
    assert job in capsys.readouterr().out or seen.states() in (["CANCELLING"], ["CANCELLED"])
    run = Run(Services(seen.settings), trigger.record_uri, actor="the test")
    while run.advance().what != "finish":
        time.sleep(0.2)
    assert seen.states() == ["CANCELLED"]


@pytest.mark.case("C105")
def test_the_log_holds_the_link_and_the_commands_that_stream_and_cancel(
    seen: Seen, capsys: pytest.CaptureFixture[str]
) -> None:
    execute(Operator(**arguments()), Try(1))
    number = seen.jobs()[0]["name"].rpartition("/")[2]
    told = capsys.readouterr().out
    for text in (
        f"https://console.cloud.google.com/vertex-ai/locations/{REGION}/training/{number}/cpu",
        f"gcloud ai custom-jobs stream-logs {number} --region={REGION}",
        f"gcloud ai custom-jobs cancel {number} --region={REGION}",
    ):
        assert len(re.findall(re.escape(text), told)) == 1
