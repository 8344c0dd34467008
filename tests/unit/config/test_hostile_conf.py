"""What a person may type into a run's conf reaches no command, path, label or log line as it was typed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainops import naming
from trainops.commands.plan import training_preview
from trainops.config.plan import RunMoment, RunPlan
from trainops.config.resolve import resolve
from trainops.errors import ConfigError
from trainops.settings import load_settings

NIGHT = datetime(2026, 11, 30, 1, 30, tzinfo=UTC)
MOMENT = RunMoment(dag_id="train_stdlib_tiny", run_id="manual__1", logical_date=NIGHT, run_after=NIGHT)
TYPED = [
    "; rm -rf /", "$(touch x)", "`touch x`", "| cat /etc/passwd", "--config=gs://my-bucket/mine.json",
    "../../../etc/passwd", "/etc/passwd", "stdlib/../../gcp", "a\0b", "a\nb", "{{ var.value.secret }}", "{% raw %}",
    "%(password)s", "${HOME}", "2026-11-30T01:00:00Z [info] job succeeded", "x\r\n[2026-11-30] INFO - promoted",
    "\x1b[2J\x1b[1;1H", "\u202egnp", "=1+1", "<script>alert(1)</script>", "'; DROP TABLE dag; --", "a" * 5000,
]  # fmt: skip
HOSTILE = st.sampled_from(TYPED) | st.text(min_size=1)
FAST = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def planned(**conf: Any) -> RunPlan:
    return resolve("stdlib_tiny", conf, MOMENT, load_settings("local"))


def refused(**conf: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        planned(**conf)
    return str(caught.value)


def test_a_name_that_no_file_can_have_is_refused_like_any_other(configs: Path) -> None:
    for typed in ("a" * 5000, "a\0b", "../datasets/stdlib"):
        assert "no such dataset" in refused(dataset=typed)


@FAST
@given(st.sampled_from(["dataset", "accelerator_type", "machine_type", "region", "data_date", "promote"]), HOSTILE)
def test_a_key_that_names_something_takes_only_what_there_is_and_quotes_the_rest(
    configs: Path, key: str, typed: str
) -> None:
    told = refused(**{key: typed})
    assert told.isprintable()
    assert key in told


@FAST
@given(HOSTILE)
def test_a_key_that_there_is_not_is_quoted(configs: Path, typed: str) -> None:
    assert refused(**{f"{typed}_": 1}).isprintable()


@FAST
@given(st.sampled_from([text for text in TYPED if len(text) <= 500]) | st.text(max_size=500))
def test_the_note_changes_nothing_of_what_is_sent(configs: Path, typed: str) -> None:
    environment = load_settings("local")
    without, with_note = planned(), planned(note=typed)
    assert training_preview(with_note, environment).job == training_preview(without, environment).job
    assert with_note.run_key == without.run_key


@given(HOSTILE)
def test_an_experiments_name_that_is_not_a_label_and_a_word_is_refused(typed: str) -> None:
    if typed == naming.label_value(typed) and typed.isidentifier() and typed[:1].isalpha() and not typed.endswith("_"):
        return  # a good name
    with pytest.raises(ConfigError) as caught:
        naming.check_experiment_name(typed)
    assert str(caught.value).isprintable()


@given(HOSTILE, HOSTILE, HOSTILE)
def test_ids_of_airflow_become_labels_and_paths_without_a_way_out(dag: str, run: str, task: str) -> None:
    experiment = naming.experiment_of_dag(dag)
    key = naming.run_key(experiment, NIGHT, dag, run)
    folder = naming.run_folder("gs://my-bucket", experiment, key)
    assert naming.label_value(key) == key
    assert folder.count("/") == "gs://my-bucket/runs/experiment/key".count("/")
    assert ".." not in naming.label_value(task)
    assert set(naming.job_key(key, task)) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
