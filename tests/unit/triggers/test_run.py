from __future__ import annotations

import inspect
from typing import Any

import pytest

from trainops.triggers.run import RunTrigger

ARGUMENTS: dict[str, Any] = {
    "record_uri": "gs://w/runs/x/k/submit_training.json",
    "task": {"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": -1},
    "until": "ended",
    "generation": 2,
    "poll_seconds": 7.0,
    "max_unknown_seconds": 99.0,
    "environment": "gcp",
    "gcp_conn_id": "mine",
    "impersonation_chain": ["a@p.iam.gserviceaccount.com", "b@p.iam.gserviceaccount.com"],
    "cancel_on_kill": False,
    "position": {"after": None, "seen": {"1": 1.0}},
    "watch_id": "0a1b",
    "deadline": "2026-11-30T12:00:00+00:00",
}


@pytest.mark.case("C044")
@pytest.mark.case("C113")
def test_a_restarted_triggerer_builds_the_same_trigger_with_connection_and_impersonation_chain() -> None:
    path, kept = RunTrigger(**ARGUMENTS).serialize()
    assert path == f"{RunTrigger.__module__}.{RunTrigger.__name__}"
    assert kept == ARGUMENTS
    assert RunTrigger(**kept).serialize() == (path, kept)


@pytest.mark.case("C113")
def test_no_argument_is_forgotten() -> None:
    assert set(inspect.signature(RunTrigger.__init__).parameters) - {"self"} == set(ARGUMENTS)
