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
from trainops.triggers.threads import in_thread

if TYPE_CHECKING:
    from trainops.gcp.logs import LogLine
    from trainops.gcp.vertex import Jobs
    from trainops.policy.lifecycle import Job
    from trainops.steps.run_logs import LogFollower
    from trainops.steps.services import Services

_log = logging.getLogger(__name__)

LIVE_JOBS = f'labels.managed-by="{naming.MANAGED_BY}" AND ' + " AND ".join(
    f'state!="JOB_STATE_{state}"' for state in ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")
)
"""Several `state!=` joined by AND: both are documented for this field, and others' code sends such filters.
https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs/list"""

SEEN = ("name", "state", "labels")
"""Fields of a job that the board looks at; a job's whole specification is a hundred times as long."""

KEYS_PER_LIST = 20
"""Job keys in one filter, which goes into the URL: 2,000 characters at most."""

SOONER = 0.25
"""Part of the usual time to the next look, after one that found news: ends come in bursts, such as those of a task
that was mapped over a thousand inputs, or of a region in trouble."""

JOBS_PER_READING = 200
"""Jobs in one filter of Cloud Logging, which takes 20,000 characters (https://docs.cloud.google.com/logging/quotas)."""

CATCHING_UP_AT_ONCE = 5
"""Readings in one look for runs that have just begun to wait: `entries.list` may be called 60 times a minute by a
whole project (https://docs.cloud.google.com/logging/quotas)."""

READING_SECONDS = 2.5
"""Time that every reading of a round adds to the next one's start: a thousand runs whose readings take two pages stay
below those 60 calls, with room for the readings when jobs end."""

WOKEN_AT_ONCE = 20
"""Runs that are given lines before others have their turn: an end must not wait until a thousand have told theirs."""

TOGETHER = timedelta(minutes=10)
"""Runs that catch up share a reading when they stopped so close to each other; it reads from the earliest on."""


class Follower:
    """One run that waits: its job, and what came for it since it was last asked.

    :param job: as the run saw it last, `UNSEEN` where it did not look, and in which state the board has shown it since.
    :param job_key: value of the job's label.
    :param log: where the run stands in its job's log.
    """

    def __init__(self, job: Job, job_key: str, log: LogFollower) -> None:
        self.job = job
        self.job_key = job_key
        self.log = log
        self.changed = False
        """True when the run must look: its job has ended or is being cancelled, or another job has its label."""
        self.listed: Jobs = []
        """All jobs of the job key as the board listed them when `changed` was set."""
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
        self._loops: list[asyncio.Task[None]] = []
        self._newest: datetime | None = None
        """Time of the newest line of any job: as far as Google's clock is known to have moved on."""

    @contextlib.asynccontextmanager
    async def following(self, follower: Follower) -> AsyncGenerator[Follower]:
        """Keep `follower` informed while the block runs."""
        self._followers.add(follower)
        if not self._loops:
            # An empty context: else what they log would go to the task log of the trigger that started them.
            loops = (self._look_on(), self._read_on())
            self._loops = [asyncio.create_task(loop, context=contextvars.Context()) for loop in loops]
        try:
            yield follower
        finally:
            self._followers.discard(follower)
            if not self._followers:
                for loop in self._loops:
                    loop.cancel()
                self._loops = []

    async def _look_on(self) -> None:
        pause = self._seconds
        while True:
            await asyncio.sleep(pause)
            followers, pause = list(self._followers), self._seconds
            try:
                changed = await self._look(followers)
                # Before it is told that a job has ended, its last lines come.
                told = await asyncio.gather(self._list_jobs(changed), self._read_logs(changed))
            except Exception:
                # Else the loop would be gone, and all who follow would wait for news that nobody brings.
                _log.exception("the jobs in %s cannot be looked at together; each run looks for itself", self._region)
                changed = followers
            else:
                changed, pause = told[0], pause * (SOONER if changed else 1)
            for follower in changed:
                follower.tell(changed=True)

    async def _read_on(self) -> None:
        pause = self._seconds
        while True:
            await asyncio.sleep(pause)
            try:
                count = await self._read_logs(list(self._followers))
            except Exception:
                _log.exception("what the jobs in %s print cannot be read", self._region)
            else:
                pause = max(self._seconds, READING_SECONDS * count)

    async def _look(self, followers: Sequence[Follower]) -> list[Follower]:
        """Compare what each knows of its job with the list; answers those that must look for themselves."""
        try:
            jobs = await in_thread(self._services.vertex(self._region).list, LIVE_JOBS, SEEN)
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
            if state not in {None, "JOB_STATE_CANCELLING", follower.job.state}:
                follower.tell(job=replace(follower.job, state=state))
        return [one for one in followers if states.get(one.job.name) != one.job.state or of_key[one.job_key] != 1]

    async def _list_jobs(self, followers: Sequence[Follower]) -> list[Follower]:
        """Hand all jobs of its job key to each, and answer those that got them.

        A burst of ends in which each run lists its own jobs would soon use up the 600 calls a minute that a project has
        for everything but creating jobs (https://docs.cloud.google.com/vertex-ai/docs/quotas).
        """
        starts = range(0, len(followers), KEYS_PER_LIST)
        groups = [followers[start : start + KEYS_PER_LIST] for start in starts]
        told = await asyncio.gather(*(self._list_group(group) for group in groups))
        return [follower for group in told for follower in group]

    async def _list_group(self, group: Sequence[Follower]) -> Sequence[Follower]:
        wanted = " OR ".join(f'labels.job-key="{follower.job_key}"' for follower in group)
        try:
            jobs = await in_thread(self._services.vertex(self._region).list, wanted)
        except TrainopsError as error:
            for follower in group:
                follower.tell(error=error)
            return []
        for follower in group:
            labels = {"job-key": follower.job_key, "managed-by": naming.MANAGED_BY}
            follower.listed = [job for job in jobs if labels.items() <= job.get("labels", {}).items()]
        return group

    async def _read_logs(self, followers: Sequence[Follower]) -> int:
        """Read what all their jobs printed, and give each its own; answers how many readings that took."""
        groups = readings(followers)
        await asyncio.gather(*(self._read_log(group) for group in groups))
        return len(groups)

    async def _read_log(self, group: Sequence[Follower]) -> None:
        before = self._newest
        try:
            lines = await in_thread(self._entries, group)
        except TrainopsError as error:
            for follower in group:
                follower.tell(log_problem=error)
        else:
            await self._hand_out(group, lines, before)

    def _entries(self, group: Sequence[Follower]) -> list[LogLine]:
        starts = [follower.log.after for follower in group if follower.log.after is not None]
        numbers = [job_number(follower.job.name) for follower in group]
        return self._services.logs.entries(numbers, min(starts, default=None))

    async def _hand_out(self, group: Sequence[Follower], lines: Sequence[LogLine], before: datetime | None) -> None:
        """Give each its lines.

        :param before: the newest line's time when the reading began.
        """
        by_job: dict[str, list[LogLine]] = {}
        for line in lines:
            by_job.setdefault(line.job_id, []).append(line)
        known = [moment for moment in (before, *(line.time for line in lines)) if moment is not None]
        newest = max(known, default=None)
        for number, follower in enumerate(group):
            if number % WOKEN_AT_ONCE == 0:
                await asyncio.sleep(0)
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
