from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.translate import Translation

Translate = Callable[..., Translation]
L4: dict[str, Any] = {"scaleTier": "CUSTOM", "masterType": "g2-standard-4"}


def _scheduling(found: Translation) -> dict[str, Any]:
    scheduling: dict[str, Any] = found.job["jobSpec"].get("scheduling", {})
    return scheduling


@pytest.mark.case("C071")
def test_running_time_becomes_the_timeout(translated: Translate) -> None:
    assert _scheduling(translated({"scheduling": {"maxRunningTime": "7200s"}})) == {"timeout": "7200s"}


def test_a_job_without_limits_is_told_of_the_seven_days(translated: Translate) -> None:
    found = translated({})
    assert _scheduling(found) == {}
    assert ("scheduling.maxRunningTime", "defaulted") in {(note.field, note.verdict) for note in found.notes}


def test_waiting_time_and_priority_are_noted_and_not_sent(translated: Translate) -> None:
    found = translated({"scheduling": {"maxWaitTime": "3600s", "priority": 1000}})
    assert _scheduling(found) == {}
    changed = {note.field for note in found.notes if note.verdict == "changed"}
    assert {"scheduling.maxWaitTime", "scheduling.priority"} <= changed


@pytest.mark.case("C075")
def test_flex_start_takes_the_waiting_time(translated: Translate) -> None:
    found = translated(L4 | {"scheduling": {"maxWaitTime": "3600s"}, "vertex": {"strategy": "FLEX_START"}})
    assert _scheduling(found) == {"strategy": "FLEX_START", "maxWaitDuration": "3600s"}


def test_the_waiting_time_of_vertex_goes_before_that_of_ai_platform(translated: Translate) -> None:
    vertex = {"strategy": "FLEX_START", "maxWaitDuration": "0s"}
    found = translated(L4 | {"scheduling": {"maxWaitTime": "3600s"}, "vertex": vertex})
    assert _scheduling(found) == {"strategy": "FLEX_START", "maxWaitDuration": "0s"}


@pytest.mark.case("C075")
def test_spot_and_restarts_are_passed_on(translated: Translate) -> None:
    found = translated({"vertex": {"strategy": "SPOT", "restartJobOnWorkerRestart": True, "disableRetries": False}})
    assert _scheduling(found) == {"strategy": "SPOT", "restartJobOnWorkerRestart": True}


FLEX = {"vertex": {"strategy": "FLEX_START"}}


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"scheduling": {"maxRunningTime": "0s"}}, "scheduling.maxRunningTime"),
        ({"scheduling": {"maxRunningTime": "999999999999s"}}, "scheduling.maxRunningTime"),
        (L4 | FLEX | {"scheduling": {"maxRunningTime": "604801s"}}, "scheduling.maxRunningTime"),
        ({"scheduling": {"maxWaitTime": "1799s"}}, "scheduling.maxWaitTime"),
        ({"scheduling": {"priority": 1001}}, "scheduling.priority"),
        ({"scheduling": {"priority": -1}}, "scheduling.priority"),
        ({"vertex": {"maxWaitDuration": "60s"}}, "vertex.maxWaitDuration"),
        ({"vertex": {"disableRetries": True, "restartJobOnWorkerRestart": True}}, "vertex.restartJobOnWorkerRestart"),
        (FLEX, "vertex.strategy"),
        (L4 | FLEX | {"workerType": "standard", "workerCount": 1}, "vertex.strategy"),
        ({"vertex": {"strategy": "CHEAP"}}, "vertex.strategy"),
    ],
)
def test_limits_that_cannot_be_are_refused(translated: Translate, fields: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        translated(fields)
    assert caught.value.key == key
