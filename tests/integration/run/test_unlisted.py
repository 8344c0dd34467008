"""A run is ended though its jobs cannot be listed, and what cannot be looked at hides nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from tests.integration.run.old_task import Seen, Try, arguments, deferred, stored

from trainops import naming
from trainops.errors import AccessError, IntegrityError, NotFoundError
from trainops.policy.record import Attempt, Verdict
from trainops.providers.google.cloud.operators.mlengine import MLEngineStartTrainingJobOperator as Operator
from trainops.steps.end import end_run
from trainops.steps.housekeeping import end_abandoned
from trainops.steps.record_store import RecordStore
from trainops.steps.services import Services

SLOW = "import time; time.sleep(120)"


class Submitted:
    """A job that runs on GPUs, followed by nobody."""

    def __init__(self, seen: Seen, faults: Callable[..., None]) -> None:
        self.seen = seen
        self.services = Services(seen.settings)
        self.said: list[str] = []
        self._faults = faults
        self.store = self.submit(0)

    def submit(self, index: int) -> RecordStore:
        trigger = stored(deferred(Operator(**arguments(SLOW, gpus=1, deferrable=True)), Try(1, map_index=index)))
        return RecordStore(self.services.storage, trigger.record_uri)

    def refuse(self, method: str, status: int) -> None:
        self._faults("answer", method=method, status=status, message=f"no {method} for you", count=None)

    def end(self, patience_seconds: float = 60.0) -> list[str]:
        record = self.store.load()
        return end_run(
            self.services, record.experiment, record.run_key, actor="end_run", why="the run is over",
            say=self.said.append, patience_seconds=patience_seconds,
        )  # fmt: skip

    def behave(self) -> None:
        httpx.delete(f"{self.seen.url}/faults").raise_for_status()

    def leases(self) -> set[str]:
        return set(self.services.queue.snapshot()[0].leases)


@pytest.fixture
def submitted(seen: Seen, vertex_faults: Callable[..., None]) -> Submitted:
    return Submitted(seen, vertex_faults)


@pytest.mark.parametrize("status", [403, 503])
def test_the_end_of_a_run_whose_jobs_cannot_be_listed_cancels_them_by_name_and_says_so(
    submitted: Submitted, status: int
) -> None:
    submitted.refuse("customJobs.list", status)
    assert submitted.end(patience_seconds=16.0) == [submitted.store.load().job_key]
    assert any("the jobs cannot be listed (no customJobs.list for you" in line for line in submitted.said)
    assert submitted.store.load().verdict is Verdict.CANCELLED
    assert submitted.leases() == set()
    submitted.behave()
    assert submitted.seen.states() == ["CANCELLED"]


@pytest.mark.parametrize("method", ["customJobs.get", "customJobs.cancel"])
def test_it_fails_when_the_jobs_may_not_be_asked_for_or_cancelled_either(submitted: Submitted, method: str) -> None:
    submitted.refuse("customJobs.list", 403)
    submitted.refuse(method, 403)
    with pytest.raises(AccessError, match=f"no {method} for you"):
        submitted.end()
    record = submitted.store.load()
    assert record.cancel is not None, "whoever looks next goes on with it"
    assert record.verdict is None
    assert submitted.leases() == {record.job_key}
    submitted.behave()
    submitted.end()
    assert submitted.seen.states() == ["CANCELLED"]


def test_a_project_that_is_not_found_at_all_does_not_tell_that_its_jobs_are_gone(submitted: Submitted) -> None:
    submitted.refuse("customJobs.list", 404)
    submitted.refuse("customJobs.get", 404)
    with pytest.raises(NotFoundError):
        submitted.end()
    assert submitted.store.load().verdict is None


def test_a_job_that_may_exist_and_has_no_name_yet_is_not_taken_for_ended(submitted: Submitted) -> None:
    past = datetime.now(UTC) - timedelta(hours=1)
    unclear = Attempt(number=1, writer="a process that died", intent_at=past, create_deadline=past)
    submitted.store.change(lambda record: record and record.model_copy(update={"attempts": (unclear,)}))
    submitted.refuse("customJobs.list", 403)
    with pytest.raises(AccessError, match="for you"):
        submitted.end()
    assert submitted.store.load().verdict is None


def test_a_job_key_that_cannot_be_ended_does_not_keep_the_others_of_its_run_from_their_end(
    submitted: Submitted,
) -> None:
    folder = submitted.store.uri.rpartition("/")[0]
    submitted.services.storage.write_json(f"{folder}/a.json", {"kind": "trainops.record"}, generation=0)
    with pytest.raises(IntegrityError, match=r"a\.json"):
        submitted.end()
    assert submitted.store.load().verdict is Verdict.CANCELLED


def test_housekeeping_ends_what_leases_and_requests_name_when_a_region_may_not_be_listed(submitted: Submitted) -> None:
    second = submitted.submit(1)
    waiting = submitted.submit(2)
    keys = sorted(store.load().job_key for store in (submitted.store, second, waiting))
    submitted.refuse("customJobs.list", 403)
    told = end_abandoned(submitted.services, lambda _dag, _run: None, say=submitted.said.append)
    assert (sorted(told["ended"]), told["failed"], told["unseen"]) == (keys, [], ["the jobs in us-central1"])
    assert any("the jobs in us-central1 could not be looked at: no customJobs.list" in line for line in submitted.said)
    submitted.behave()
    assert submitted.seen.states() == ["CANCELLED", "CANCELLED"]
    assert submitted.leases() == set()


def test_housekeeping_cancels_what_jobs_name_when_the_queue_cannot_be_read_and_tells_both(submitted: Submitted) -> None:
    ledger = naming.ledger_uri(submitted.seen.settings.work)
    submitted.services.storage.write_json(ledger, {"kind": "something else"}, generation=None)
    told = end_abandoned(submitted.services, lambda _dag, _run: None, say=submitted.said.append)
    assert told["unseen"] == ["the GPU queue"]
    assert told["failed"] == [submitted.store.load().job_key]  # its GPUs cannot be given back there
    deadline = time.monotonic() + 120
    while submitted.seen.states() != ["CANCELLED"]:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_housekeeping_tells_of_a_record_that_it_cannot_read_and_goes_on(submitted: Submitted) -> None:
    strange = submitted.submit(1)
    submitted.services.storage.write_json(strange.uri, {"kind": "trainops.record", "surprise": 1}, generation=None)
    told = end_abandoned(submitted.services, lambda _dag, _run: None, say=submitted.said.append)
    assert told["failed"] == [strange.uri]
    assert told["ended"] == [submitted.store.load().job_key]
    assert any("left alone" in line for line in submitted.said)
