from __future__ import annotations

import json

import pytest

from trainops.errors import (
    AccessError,
    CapacityError,
    NotFoundError,
    RequestRefused,
    TrainopsError,
    TransientError,
    WriteConflict,
)
from trainops.hooks.unfollowed import PASSES, error_event, error_of_event


@pytest.mark.parametrize("kind", [TransientError, CapacityError, WriteConflict])
def test_what_may_pass_is_still_told_so_after_it_was_an_event(kind: type[TrainopsError]) -> None:
    found = error_of_event(json.loads(json.dumps(error_event(kind("come back later")))))
    assert isinstance(found, PASSES)
    assert str(found) == "come back later"


@pytest.mark.parametrize("kind", [AccessError, NotFoundError, RequestRefused])
def test_what_no_try_can_mend_is_told_so_too(kind: type[TrainopsError]) -> None:
    found = error_of_event(error_event(kind("not for you")))
    assert not isinstance(found, PASSES)
    assert str(found) == "not for you"


def test_an_event_of_an_older_trigger_counts_as_final_and_an_end_is_no_error() -> None:
    assert not isinstance(error_of_event({"status": "error", "message": "x"}), (PASSES, type(None)))
    assert error_of_event({"status": "done", "position": None}) is None
    assert error_of_event(None) is None
