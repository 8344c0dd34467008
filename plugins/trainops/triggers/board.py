"""What one triggerer knows of a region's jobs: one list and one reading of logs serve all runs that wait in it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections import Counter
from collections.abc import AsyncGenerator, Hashable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from trainops import naming
from trainops.errors import ServiceError

if TYPE_CHECKING:
    from trainops.gcp.logs import LogLine
    from trainops.policy.lifecycle import Job
    from trainops.steps.run_logs import LogFollower
    from trainops.steps.services import Services

LIVE_JOBS = f'labels.managed-by="{naming.MANAGED_BY}" AND ' + " AND ".join(
    f'state!="JOB_STATE_{state}"' for state in ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")
)

JOBS_PER_READING = 200
"""Jobs in one filter of Cloud Logging, which takes 20,000 characters (https://docs.cloud.google.com/logging/quotas)."""


class Follower:
    """One run that waits: its job, and what came for it since it was last asked.

    :param job: as the run saw it last; anything else on the board is a reason to look.
    :param job_key: value of the job's label.
    :param log: where the run stands in its job's log.
    """

    def __init__(self, job: Job, job_key: str, log: LogFollower) -> None:
        self.job = job
        self.job_key = job_key
        self.log = log
        self.changed = False
        self.lines: list[LogLine] = []
        self.log_problem: ServiceError | None = None
        self.error: ServiceError | None = None
        self._news = asyncio.Event()

    async def news(self, seconds: float) -> bool:
        """Wait for something new, at most so long; False when nothing came."""
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except TimeoutError:
            return False
        self._news.clear()
        return True

    def take_lines(self) -> tuple[list[LogLine], ServiceError | None]:
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
            await self._look(followers)
            await self._read_logs(followers)

    async def _look(self, followers: Sequence[Follower]) -> None:
        try:
            jobs = await asyncio.to_thread(self._services.vertex(self._region).list, LIVE_JOBS)
        except ServiceError as error:
            for follower in followers:
                follower.tell(error=error)
            return
        states = {job["name"]: job.get("state") for job in jobs}
        of_key = Counter(job.get("labels", {}).get("job-key") for job in jobs)
        for follower in followers:
            if follower.error is not None:
                follower.tell(error=None)
            if states.get(follower.job.name) != follower.job.state or of_key[follower.job_key] != 1:
                follower.tell(changed=True)

    async def _read_logs(self, followers: Sequence[Follower]) -> None:
        """Read what all their jobs printed, and give each its own."""
        ordered = sorted(followers, key=lambda follower: follower.job.name)
        for start in range(0, len(ordered), JOBS_PER_READING):
            group = ordered[start : start + JOBS_PER_READING]
            try:
                lines = await asyncio.to_thread(self._entries, group)
            except ServiceError as error:
                for follower in group:
                    follower.tell(log_problem=error)
            else:
                self._hand_out(group, lines)

    def _entries(self, group: Sequence[Follower]) -> list[LogLine]:
        from trainops.steps.run_logs import job_number

        # A job that has printed nothing yet has no moment to ask from; what it prints next is newer than the others'.
        starts = [follower.log.after for follower in group if follower.log.after is not None]
        numbers = [job_number(follower.job.name) for follower in group]
        return self._services.logs.entries(numbers, min(starts, default=None))

    def _hand_out(self, group: Sequence[Follower], lines: Sequence[LogLine]) -> None:
        from trainops.steps.run_logs import LATE, job_number

        by_job: dict[str, list[LogLine]] = {}
        for line in lines:
            by_job.setdefault(line.job_id, []).append(line)
        newest = max((line.time for line in lines), default=None)
        for follower in group:
            mine = by_job.get(job_number(follower.job.name))
            if mine:
                follower.tell(lines=[*follower.lines, *mine])
            elif newest is not None:
                # A silent job. By the other jobs' lines Google's clock has moved on: nothing older is asked for again.
                follower.log.pass_by(newest - LATE)


_BOARDS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, Board]] = WeakKeyDictionary()


def board_of(services: Services, region: str, seconds: float) -> Board:
    """Return this event loop's board for a region, as `services` see it."""
    boards = _BOARDS.setdefault(asyncio.get_running_loop(), {})
    return boards.setdefault((services, region, seconds), Board(services, region, seconds))
