from __future__ import annotations

from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.reading.held_job import HeldJob
from trainops.jobspec.reading.text import read_job

COMMAND = "gcloud ai-platform jobs submit training job_1"


def body(text: str, files: dict[str, str] | None = None) -> HeldJob:
    return read_job(text, "submit.sh", (files or {}).__getitem__)


@pytest.mark.parametrize(
    ("flags", "fields"),
    [
        ("--labels=^:^a=b,c:d=e", {"labels": {"a": "b,c", "d": "e"}, "trainingInput": {}}),
        ("--labels '^--^a=1--b=2'", {"labels": {"a": "1", "b": "2"}, "trainingInput": {}}),
        (
            "--master-accelerator='^;^type=nvidia-tesla-t4;count=2'",
            {"trainingInput": {"masterConfig": {"acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": "2"}}}},
        ),
        ("--packages='^|^gs://b/a.whl'", {"trainingInput": {"packageUris": ["gs://b/a.whl"]}}),
        ("--module trainer.task", {"trainingInput": {"pythonModule": "trainer.task"}}),
    ],
)
def test_delimiters_and_short_names_are_read_as_gcloud_reads_them(flags: str, fields: dict[str, Any]) -> None:
    assert body(f"{COMMAND} {flags}").fields == {"jobId": "job_1", **fields}


def test_a_short_name_is_noted_and_one_of_several_flags_is_unknown() -> None:
    assert [note.text for note in body(f"{COMMAND} --scale basic").notes] == ["read as --scale-tier"]
    with pytest.raises(ConfigError, match="--master: unknown flag"):
        body(f"{COMMAND} --master n1-standard-4")


FLAGS_FILE = """\
--region: us-east1
--labels: {team: 'a,b'}
--packages: [gs://b/a.whl, gs://b/c.whl]
--enable-web-access: true
--stream-logs:
--flags-file: more.yaml
"""


def test_a_flags_file_stands_for_its_flags_also_in_a_list_and_in_another_file() -> None:
    files = {"flags.yaml": FLAGS_FILE, "more.yaml": "- --scale-tier: basic\n- --use-chief-in-tf-config: 'true'\n"}
    held = body(f"{COMMAND} --flags-file flags.yaml --runtime-version 2.11", files)
    assert held.fields == {
        "jobId": "job_1",
        "labels": {"team": "a,b"},
        "trainingInput": {
            "region": "us-east1",
            "enableWebAccess": True,
            "scaleTier": "BASIC",
            "useChiefInTfConfig": True,
            "runtimeVersion": "2.11",
            "packageUris": ["gs://b/a.whl", "gs://b/c.whl"],
        },
    }
    assert [note.field for note in held.notes] == ["--flags-file", "--stream-logs", "--flags-file"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("region: us-east1", "no flag; got 'region'; write --region"),
        ("us-east1", "a mapping of flags is expected"),
        ("--regoin: us-east1", "did you mean '--region'"),
    ],
)
def test_a_flags_file_that_cannot_be_meant_is_refused(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        body(f"{COMMAND} --flags-file f.yaml", {"f.yaml": text})


def test_a_flags_file_that_names_itself_is_refused() -> None:
    with pytest.raises(ConfigError, match="read before"):
        body(f"{COMMAND} --flags-file f.yaml", {"f.yaml": "--flags-file: f.yaml"})


def test_a_config_that_the_script_writes_is_the_one_that_counts() -> None:
    script = f"N=3\ncat > config.yaml <<EOF\ntrainingInput:\n  workerCount: $N\nEOF\n{COMMAND} --config ./config.yaml"
    assert body(script, {"./config.yaml": "scaleTier: BASIC"}).fields["trainingInput"] == {"workerCount": 3}


def test_what_is_computed_at_each_run_stays_where_nothing_depends_on_it() -> None:
    held = body(f"{COMMAND} --job-dir gs://b/$(date +%s) --project $P --region us-east1 -- --run `date`")
    assert held.fields["trainingInput"]["jobDir"] == "gs://b/$(date +%s)"
    assert held.fields["project"] == "$P"  # not sent, so that nobody has to tell it
    assert [note.field for note in held.notes] == ["jobDir", "args.1"]
    with pytest.raises(ConfigError, match=r"not told: \$\(pick\), \$N"):
        body(f"{COMMAND} --region $(pick) --worker-count $N --job-dir gs://b/$(date)")


def test_lines_after_a_missing_backslash_are_shown_whole() -> None:
    held = body(f"{COMMAND} --region us-east1\n  --scale-tier BASIC -- --steps 1")
    assert [(note.field, note.value) for note in held.notes] == [
        ("(after the command)", ["--scale-tier BASIC -- --steps 1"])
    ]
