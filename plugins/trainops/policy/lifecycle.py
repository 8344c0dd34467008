"""What to do next for a job key: a pure, total function of what can be observed.

`next_action(record, jobs, lease, now)` answers one step. Whoever asks (an operator, a sensor, a trigger, housekeeping,
a person) gets the same answer for the same observation, so a crash at any line costs nothing but time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from trainops.policy.candidates import candidate_to_start, next_start
from trainops.policy.failure import read_failure, rule_of
from trainops.policy.record import RESUMABLE, Attempt, Record, TaskTry, Verdict
from trainops.policy.spending import over_cap

TERMINAL = frozenset({
    "JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED",
    "JOB_STATE_PARTIALLY_SUCCEEDED",
})  # fmt: skip
"""States that a job never leaves. Any other, known or not yet invented, is followed as live."""

VANISH_GRACE = timedelta(minutes=5)
"""How long a bound job may be missing from lists before it counts as gone; lists may lag behind creates."""


CLEARED = "cleared"
"""How a try ended that was cleared while it ran."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job of Vertex that carries the job key's label."""

    name: str
    state: str
    create_time: str = ""
    generation: int = 0
    attempt: int = 0
    error_code: int = 0
    error_message: str = ""
    started_at: datetime | None = None
    """When its machines began to run."""
    ended_at: datetime | None = None
    """When they ended."""
    preempted: bool = False
    """True when the trainer left its marker: it saved and made room."""

    @property
    def live(self) -> bool:
        """True until the job is in a state that it never leaves."""
        return self.state not in TERMINAL


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The job key's place in the GPU queue."""

    state: Literal["none", "waiting", "reserved", "bound"]
    reason: str = ""
    """Why it waits, in one sentence."""
    gpus: Mapping[str, int] = field(default_factory=dict)
    """What is reserved, by pool."""


@dataclass(frozen=True, kw_only=True)
class Action:
    """One step: what to do, on which job, and why."""

    what: Literal["enqueue", "wait", "submit", "bind", "cancel_job", "order_cancel", "end_attempt", "release", "finish"]
    why: str
    job: Job | None = None
    attempt: int = 0
    candidate: int = 0
    """Which of the record's candidates a submit goes to."""
    verdict: Verdict | None = None
    exit_code: int | None = None


def next_action(record: Record, jobs: tuple[Job, ...], lease: Lease, now: datetime) -> Action:
    """Answer one step for the job key. `jobs` are all jobs that carry its label, in any order."""
    action = _stray_job(record, jobs) or _next(record, jobs, lease, now)
    leaving = _leaving(jobs)
    if action.what == "finish" and leaving is not None:
        return Action(what="wait", why=f"{leaving.name} is still being cancelled; then it ends: {action.why}")
    return action


def _next(record: Record, jobs: tuple[Job, ...], lease: Lease, now: datetime) -> Action:
    if record.verdict is not None:
        return Action(what="finish", why=record.message or "it has ended", verdict=record.verdict)
    job = _job_of(record.attempt, record, jobs)
    if record.cancel is not None:
        return _while_cancelling(record, job, now)
    passed = _passed_deadline(record, job, now)
    if passed is not None:
        return passed
    if record.attempt is None or record.attempt.verdict is not None:
        return _before_submit(record, jobs, lease, now)
    if job is None and record.attempt.job_name is None:
        return _unclear_create(record, record.attempt, jobs, lease, now)
    return _follow(record, record.attempt, job, now)


def begins_generation(record: Record, current: TaskTry) -> bool:
    """True when `current` is the try of a clear; False when it is a retry that resumes.

    A clear raises `max_tries`. The clear of a running task does not: it kills the try, which notes that before it ends.
    The run's `clear_number` alone proves nothing, since clearing any other task raises it: a try that died without a
    word is resumed, because a job that goes on can still be cleared, and one that was ended wrongly is lost.
    """
    last = record.owner
    if current.max_tries > last.max_tries:
        return True
    return current.clear_number > last.clear_number and last.ended == CLEARED


def current_job(record: Record, jobs: tuple[Job, ...]) -> Job | None:
    """The one job of the current attempt: the bound one, else the oldest that carries its labels."""
    return _job_of(record.attempt, record, jobs)


def _stray_job(record: Record, jobs: tuple[Job, ...]) -> Action | None:
    """A live job that is not the one of the current attempt: of another generation or attempt, or a duplicate."""
    attempt = record.attempt
    keep = None if attempt is None or attempt.verdict is not None else _job_of(attempt, record, jobs)
    for job in sorted(jobs, key=lambda item: (item.create_time, item.name)):
        if not job.live or job.state == "JOB_STATE_CANCELLING" or (keep is not None and job.name == keep.name):
            continue
        why = f"{job.name} is of generation {job.generation}, attempt {job.attempt}; it is not the job that is followed"
        return Action(what="cancel_job", why=why, job=job)
    return None


def _leaving(jobs: tuple[Job, ...]) -> Job | None:
    """The oldest job that lives, where no job is followed."""
    return min((job for job in jobs if job.live), key=lambda job: (job.create_time, job.name), default=None)


def _job_of(attempt: Attempt | None, record: Record, jobs: tuple[Job, ...]) -> Job | None:
    if attempt is None:
        return None
    ours = [job for job in jobs if job.generation == record.generation and job.attempt == attempt.number]
    if attempt.job_name is not None:
        return next((job for job in ours if job.name == attempt.job_name), None)
    return min(ours, key=lambda job: (job.create_time, job.name), default=None)


def _while_cancelling(record: Record, job: Job | None, now: datetime) -> Action:
    order = record.cancel
    assert order is not None
    if job is not None and job.live:
        if job.state == "JOB_STATE_CANCELLING":
            return Action(what="wait", why=f"{job.name} is being cancelled: {order.why}", job=job)
        return Action(what="cancel_job", why=order.why, job=job)
    attempt = record.attempt
    if job is None and attempt is not None and attempt.verdict is None:
        unclear = attempt.job_name is None and now < attempt.create_deadline
        young = attempt.job_name is not None and now < (attempt.bound_at or now) + VANISH_GRACE
        if unclear or young:
            return Action(what="wait", why=f"attempt {attempt.number} may still appear: its create was called")
    by_itself = order.verdict in {Verdict.DEADLINE, Verdict.COST_CAP}
    if by_itself and job is not None and attempt is not None and attempt.verdict is None:
        ended = _ended(record, attempt, job)
        if ended.verdict is Verdict.SUCCEEDED:  # just before the cancel came
            return ended
    return Action(what="finish", why=order.why, verdict=order.verdict)


def _as_seen(record: Record, job: Job | None) -> Record:
    """The record with the moment at which Google began to run the current job: until then it costs nothing."""
    if job is None:
        return record
    seen = {"started_at": job.started_at} if job.started_at is not None else {"ran_seconds": 0.0}
    return record.model_copy(update={"attempts": record.with_attempt(**seen)})


def _passed_deadline(record: Record, job: Job | None, now: datetime) -> Action | None:
    limits = record.limits
    ended = job is not None and not job.live
    too_dear = "" if ended or limits.max_usd is None else over_cap(_as_seen(record, job), now)
    if too_dear:
        why = f"{too_dear}; {rule_of(Verdict.COST_CAP).next_step}"
        return Action(what="order_cancel", why=why, verdict=Verdict.COST_CAP)
    if limits.finish_by is not None and now > limits.finish_by and not ended:
        why = f"the run's deadline, {limits.finish_by:%Y-%m-%d %H:%M:%S} UTC, has passed"
        return Action(what="order_cancel", why=why, verdict=Verdict.DEADLINE)
    waiting = job is None and (record.attempt is None or record.attempt.verdict is not None)
    if waiting and limits.submit_by is not None and now > limits.submit_by:
        why = f"no GPUs until {limits.submit_by:%Y-%m-%d %H:%M:%S} UTC, the end of the waiting time"
        return Action(what="order_cancel", why=why, verdict=Verdict.DEADLINE)
    return None


def _before_submit(record: Record, jobs: tuple[Job, ...], lease: Lease, now: datetime) -> Action:
    leaving = _leaving(jobs)
    if leaving is not None:
        return Action(what="wait", why=f"{leaving.name}, an earlier job of this job key, is still being cancelled")
    number = len(record.attempts) + 1
    if record.counted_attempts >= record.limits.max_attempts:
        last = record.attempts[-1].message if record.attempts else "none was allowed"
        why = f"{record.limits.max_attempts} attempts are used up; the last one ended: {last}"
        return Action(what="finish", why=why, verdict=Verdict.FAILED)
    pause = next_start(record, now)
    if pause is not None and now < pause:
        why = f"the last attempt ended ({record.attempts[-1].verdict}); the next starts at {pause:%H:%M:%S} UTC"
        return Action(what="wait", why=why)
    return _with_lease(record, number, lease, f"attempt {number} of generation {record.generation}", now)


def _with_lease(record: Record, number: int, lease: Lease, why: str, now: datetime) -> Action:
    """Submit attempt `number` if the GPUs for it are leased, else take the next step towards that."""
    if not record.accelerators or lease.state == "reserved":
        candidate = candidate_to_start(record, now, lease.gpus if record.accelerators else None)
        if candidate is None:
            return Action(what="release", why="what is reserved for it is not what it asks for")
        where = f", on {record.candidates[candidate]}" if record.alternatives else ""
        return Action(what="submit", why=why + where, attempt=number, candidate=candidate)
    if lease.state == "bound":
        return Action(what="release", why="its lease is still that of an earlier job, which has ended")
    if lease.state == "none":
        return Action(what="enqueue", why="it has no place in the GPU queue yet")
    return Action(what="wait", why=lease.reason or "it waits in the GPU queue")


def _follow(record: Record, attempt: Attempt, job: Job | None, now: datetime) -> Action:
    if job is None:
        return _missing(attempt, now)
    if attempt.job_name is None:
        return Action(what="bind", why=f"{job.name} carries the labels of attempt {attempt.number}", job=job)
    if job.live:
        return _late_to_leave(attempt, job, now) or Action(
            what="wait", why=f"{job.name} is {job.state.removeprefix('JOB_STATE_').lower()}", job=job
        )
    return _ended(record, attempt, job)


def _late_to_leave(attempt: Attempt, job: Job, now: datetime) -> Action | None:
    """Cancel a job that was asked to save its state and leave, and has not by the end of its grace."""
    order = attempt.leave
    if order is None or now <= order.leave_by or job.state == "JOB_STATE_CANCELLING":
        return None
    why = f"it was to leave until {order.leave_by:%H:%M:%S} UTC ({order.why}); it resumes from its last checkpoint"
    return Action(what="cancel_job", why=why, job=job)


def _unclear_create(record: Record, attempt: Attempt, jobs: tuple[Job, ...], lease: Lease, now: datetime) -> Action:
    """A create was intended and no job of it is known: it may still appear until the create deadline."""
    if now < attempt.create_deadline:
        why = f"attempt {attempt.number} is being created by {attempt.writer}"
        return Action(what="wait", why=why, attempt=attempt.number)
    leaving = _leaving(jobs)
    if leaving is not None:
        return Action(what="wait", why=f"{leaving.name}, an earlier job of this job key, is still being cancelled")
    why = f"no job of attempt {attempt.number} came of its first create"
    action = _with_lease(record, attempt.number, lease, why, now)
    if action.what != "submit" or action.candidate == attempt.candidate:
        return action
    if not record.accelerators:
        return replace(action, candidate=attempt.candidate)
    # Its number stays with the place that it was meant for: a job that appears there after all is a stray one.
    return Action(what="end_attempt", why=why, attempt=attempt.number, verdict=Verdict.VANISHED)


def _missing(attempt: Attempt, now: datetime) -> Action:
    if now < (attempt.bound_at or now) + VANISH_GRACE:
        return Action(what="wait", why=f"{attempt.job_name} is not in the list yet", attempt=attempt.number)
    why = f"{attempt.job_name} is not in the list any more: somebody deleted it"
    return Action(what="end_attempt", why=why, attempt=attempt.number, verdict=Verdict.VANISHED)


def _ended(record: Record, attempt: Attempt, job: Job) -> Action:
    if job.state == "JOB_STATE_SUCCEEDED" and job.preempted:
        why = "it saved its state and made room for another run"
        return Action(what="end_attempt", why=why, job=job, attempt=attempt.number, verdict=Verdict.PREEMPTED)
    if job.state == "JOB_STATE_SUCCEEDED":
        return Action(what="finish", why=f"{job.name} succeeded", job=job, verdict=Verdict.SUCCEEDED)
    if job.state == "JOB_STATE_CANCELLED" and attempt.leave is not None and attempt.leave.cancelled:
        why = "it had not left in time to make room for another run, and was cancelled"
        return Action(what="end_attempt", why=why, job=job, attempt=attempt.number, verdict=Verdict.PREEMPTED)
    if job.state == "JOB_STATE_CANCELLED":
        why = f"{job.name} was cancelled by somebody else" + (f": {job.error_message}" if job.error_message else "")
        return Action(what="finish", why=why, job=job, verdict=Verdict.CANCELLED)
    if job.state != "JOB_STATE_FAILED":
        why = f"{job.name} ended as {job.state}" + (f": {job.error_message}" if job.error_message else "")
        return Action(what="finish", why=why, job=job, verdict=Verdict.FAILED)
    spot = record.candidates[attempt.candidate].provisioning != "standard"
    failure = read_failure(job.error_code, job.error_message, spot=spot)
    what: Literal["end_attempt", "finish"] = "end_attempt" if failure.verdict in RESUMABLE else "finish"
    why = f"{failure.message}; {failure.next_step}" if failure.next_step else failure.message
    return Action(
        what=what, why=why, job=job, attempt=attempt.number, verdict=failure.verdict, exit_code=failure.exit_code
    )
