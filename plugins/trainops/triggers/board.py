"""What one triggerer knows of a region's jobs: one list and one reading of logs serve all runs that wait in it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Hashable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from trainops import naming
from trainops.errors import TrainopsError
from trainops.steps.run_logs import LATE, job_number
from trainops.steps.watch import UNSEEN

if TYPE_CHECKING:
    from trainops.gcp.logs import LogLine
    from trainops.policy.lifecycle import Job
    from trainops.steps.run_logs import LogFollower
    from trainops.steps.services import Services

_log = logging.getLogger(__name__)

LIVE_JOBS = f'labels.managed-by="{naming.MANAGED_BY}" AND ' + " AND ".join(
    f'state!="JOB_STATE_{state}"' for state in ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")
)
"""Several `state!=` joined by AND: both are documented for this field, and others' code sends such filters.
https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs/list"""

JOBS_PER_READING = 200
"""Jobs in one filter of Cloud Logging, which takes 20,000 characters (https://docs.cloud.google.com/logging/quotas)."""

CATCHING_UP_AT_ONCE = 5
"""Readings in one look for runs that have just begun to wait: `entries.list` may be called 60 times a minute by a
whole project (https://docs.cloud.google.com/logging/quotas)."""

TOGETHER = timedelta(minutes=10)
"""Runs that catch up share a reading when they stopped so close to each other; it reads from the earliest on."""


class Follower:
    """One run that waits: its job, and what came for it since it was last asked.

    :param job: as the run saw it last, `UNSEEN` where it did not look; another state on the board is a reason to look.
    :param job_key: value of the job's label.
    :param log: where the run stands in its job's log.
    """

    def __init__(self, job: Job, job_key: str, log: LogFollower) -> None:
        self.job = job
        self.job_key = job_key
        self.log = log
        self.changed = False
        self.caught_up = False
        """True once its log was read from where it stopped; from then on all such runs are read together."""
        self.lines: list[LogLine] = []
        self.log_problem: TrainopsError | None = None
        self.error: TrainopsError | None = None
        self._news = asyncio.Event()

    async def news(self, seconds: float) -> bool:
        """Wait for something new, at most so long; False when nothing came."""
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except TimeoutError:
            return False
        self._news.clear()
        return True

    def take_lines(self) -> tuple[list[LogLine], TrainopsError | None]:
        """Return the lines that came, or why none could be read, and forget them."""
        lines, problem = self.lines, self.log_problem
        self.lines, self.log_problem = [], None
        return lines, problem

    def tell(self, **news: Any) -> None:
        """Note what is new and wake who waits."""
        for name, value in news.items():
            setattr(self, name, value)
        self._news.set()


class Board:
    """Looks at one region for all who follow a job there, as long as there are any.

    :param seconds: between two looks.
    """

    def __init__(self, services: Services, region: str, seconds: float) -> None:
        self._services = services
        self._region = region
        self._seconds = seconds
        self._followers: set[Follower] = set()
        self._ticker: asyncio.Task[None] | None = None
        self._newest: datetime | None = None
        """Time of the newest line of any job: as far as Google's clock is known to have moved on."""

    @contextlib.asynccontextmanager
    async def following(self, follower: Follower) -> AsyncGenerator[Follower]:
        """Keep `follower` informed while the block runs."""
        self._followers.add(follower)
        if self._ticker is None:
            # An empty context: else what it logs would go to the task log of the trigger that started it.
            self._ticker = asyncio.create_task(self._tick_on(), context=contextvars.Context())
        try:
            yield follower
        finally:
            self._followers.discard(follower)
            if not self._followers:
                self._ticker.cancel()
                self._ticker = None

    async def _tick_on(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            followers = list(self._followers)
            try:
                changed = await self._look(followers)
                await self._read_logs(followers)  # before it is told that a job has ended: its last lines come first
            except Exception:
                # Else the ticker would be gone, and all who follow would wait for news that nobody brings.
                _log.exception("the jobs in %s cannot be looked at together; each run looks for itself", self._region)
                changed = followers
            for follower in changed:
                follower.tell(changed=True)

    async def _look(self, followers: Sequence[Follower]) -> list[Follower]:
        """Compare what each knows of its job with the list; answers those that must look for themselves."""
        try:
            jobs = await asyncio.to_thread(self._services.vertex(self._region).list, LIVE_JOBS)
        except TrainopsError as error:
            for follower in followers:
                follower.tell(error=error)
            return []
        states = {job["name"]: job.get("state") for job in jobs}
        of_key = Counter(job.get("labels", {}).get("job-key") for job in jobs)
        for follower in followers:
            if follower.error is not None:
                follower.tell(error=None)
            state = states.get(follower.job.name)
            if follower.job.state == UNSEEN and state not in {None, "JOB_STATE_CANCELLING"}:
                follower.tell(job=replace(follower.job, state=state))
        return [one for one in followers if states.get(one.job.name) != one.job.state or of_key[one.job_key] != 1]

    async def _read_logs(self, followers: Sequence[Follower]) -> None:
        """Read what all their jobs printed, and give each its own."""
        await asyncio.gather(*(self._read_log(group) for group in readings(followers)))

    async def _read_log(self, group: Sequence[Follower]) -> None:
        before = self._newest
        try:
            lines = await asyncio.to_thread(self._entries, group)
        except TrainopsError as error:
            for follower in group:
                follower.tell(log_problem=error)
        else:
            self._hand_out(group, lines, before)

    def _entries(self, group: Sequence[Follower]) -> list[LogLine]:
        starts = [follower.log.after for follower in group if follower.log.after is not None]
        numbers = [job_number(follower.job.name) for follower in group]
        return self._services.logs.entries(numbers, min(starts, default=None))

    def _hand_out(self, group: Sequence[Follower], lines: Sequence[LogLine], before: datetime | None) -> None:
        """Give each its lines.

        :param before: the newest line's time when the reading began.
        """
        by_job: dict[str, list[LogLine]] = {}
        for line in lines:
            by_job.setdefault(line.job_id, []).append(line)
        known = [moment for moment in (before, *(line.time for line in lines)) if moment is not None]
        newest = max(known, default=None)
        for follower in group:
            follower.caught_up = True
            mine = by_job.get(job_number(follower.job.name))
            if mine:
                follower.tell(lines=[*follower.lines, *mine])
            elif newest is not None:
                # A silent job. By the other jobs' lines Google's clock has moved on: nothing older is asked for again.
                follower.log.pass_by(newest - LATE)
        if newest is not None and (self._newest is None or newest > self._newest):
            self._newest = newest


def readings(followers: Sequence[Follower]) -> list[Sequence[Follower]]:
    """Who is read together in one look: all who are up to date, and some of those who must catch up first."""
    ordered = sorted(followers, key=lambda follower: (_start(follower), follower.job.name))
    behind = [follower for follower in ordered if not follower.caught_up]
    groups: list[list[Follower]] = []
    for follower in behind:
        last = groups[-1] if groups else []
        if last and len(last) < JOBS_PER_READING and _start(follower) - _start(last[0]) <= TOGETHER:
            last.append(follower)
        else:
            groups.append([follower])
    current = [follower for follower in ordered if follower.caught_up]
    starts = range(0, len(current), JOBS_PER_READING)
    return [*groups[:CATCHING_UP_AT_ONCE], *(current[start : start + JOBS_PER_READING] for start in starts)]


def _start(follower: Follower) -> datetime:
    return follower.log.after or datetime.min.replace(tzinfo=UTC)


_BOARDS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, Board]] = WeakKeyDictionary()


def board_of(services: Services, region: str, seconds: float) -> Board:
    """Return this event loop's board for a region, as `services` see it."""
    boards = _BOARDS.setdefault(asyncio.get_running_loop(), {})
    return boards.setdefault((services, region, seconds), Board(services, region, seconds))
