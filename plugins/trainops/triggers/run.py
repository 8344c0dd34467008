"""The one trigger: it keeps reconciling a job key while its task is deferred."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from airflow.sdk.log import mask_secret
from airflow.triggers.base import BaseTrigger, TriggerEvent

from trainops.errors import TrainopsError
from trainops.hooks.task import state_of
from trainops.hooks.unfollowed import error_event
from trainops.triggers.threads import in_background, in_thread

if TYPE_CHECKING:
    from trainops.gcp.vertex import Jobs
    from trainops.steps.watch import Look, Until, Watch
    from trainops.triggers.board import Follower
    from trainops.triggers.queue_board import Waiter

SETTLE_SECONDS = 6.0
"""A trigger that fires sooner after the deferral can make the scheduler fail the task (Airflow 3.3: state mismatch)."""

RESTING_SECONDS = 900.0
"""A run is looked at once in so long, give or take a third, even when the board shows nothing new of it."""

PROGRESS_SECONDS = 60.0
"""How often the trainer's metrics are read while its job runs."""

QUEUED_SECONDS = 60.0
"""How often a run that waits for GPUs says in the queue that it still does."""

URGENT_SECONDS = 1.0
"""Time to the first look after a cancel that is to be confirmed; doubled for each of the next ones."""

KILLED = frozenset({"failed", "skipped", "upstream_failed", "removed"})
"""States of a task after which nobody will look at its job again."""


class RunTrigger(BaseTrigger):
    """Reconciles until the job is submitted, or until the generation has ended.

    All that it needs is in its arguments: a restarted triggerer builds it anew from them.

    :param record_uri: the record of the job key.
    :param task: dag_id, run_id, task_id, map_index of the deferred task.
    :param until: `submitted` or `ended`.
    :param poll_seconds: time between looks.
    :param max_unknown_seconds: how long errors that may pass are polled through.
    :param cancel_on_kill: whether a kill of the task ends the job.
    :param generation: the generation that the task followed; `on_kill` touches no other.
    :param position: of the log, where the task stopped.
    :param watch_id: names the object that keeps the position, for a triggerer that is started again.
    :param deadline: moment, in ISO 8601 with its offset, at which it fires though nothing has ended; None for never.
    """

    def __init__(
        self,
        *,
        record_uri: str,
        task: dict[str, Any],
        until: str,
        generation: int,
        poll_seconds: float = 30.0,
        max_unknown_seconds: float = 1800.0,
        environment: str | None = None,
        gcp_conn_id: str | None = None,
        impersonation_chain: Any = None,
        cancel_on_kill: bool = True,
        position: dict[str, Any] | None = None,
        watch_id: str | None = None,
        deadline: str | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.record_uri = record_uri
        self.task_key = task
        self.until = until
        self.generation = generation
        self.poll_seconds = poll_seconds
        self.max_unknown_seconds = max_unknown_seconds
        self.environment = environment
        self.gcp_conn_id = gcp_conn_id
        self.impersonation_chain = impersonation_chain
        self.cancel_on_kill = cancel_on_kill
        self.position = position
        self.watch_id = watch_id or uuid.uuid4().hex
        self.deadline = deadline
        self._lines: deque[str] = deque()
        self._urgent_seconds = URGENT_SECONDS

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Everything that a restarted triggerer needs."""
        return (
            "trainops.triggers.run.RunTrigger",
            {
                "record_uri": self.record_uri,
                "task": self.task_key,
                "until": self.until,
                "generation": self.generation,
                "poll_seconds": self.poll_seconds,
                "max_unknown_seconds": self.max_unknown_seconds,
                "environment": self.environment,
                "gcp_conn_id": self.gcp_conn_id,
                "impersonation_chain": self.impersonation_chain,
                "cancel_on_kill": self.cancel_on_kill,
                "position": self.position,
                "watch_id": self.watch_id,
                "deadline": self.deadline,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look until done, then hand over."""
        started = time.monotonic()
        try:
            watch = await in_background(self._watch)
            status = await self._until_done_or_late(watch)
        except TrainopsError as error:
            self.log.error("%s", error)
            event = error_event(error)
        else:
            event = {"status": status, "position": watch.follower.position}
        await asyncio.sleep(max(0.0, SETTLE_SECONDS - (time.monotonic() - started)))
        yield TriggerEvent(event)  # type: ignore[no-untyped-call]

    async def on_kill(self) -> None:
        """Cancel the generation that the task followed, when the task's state says that nobody will go on with it."""
        state = await in_thread(self._task_state)
        self.log.info("killed by a person; the task's state is %s", state)
        if self.cancel_on_kill:
            await in_thread(self._cancel_if_abandoned, state)
        self._tell_lines()

    async def _until_done_or_late(self, watch: Watch) -> str:
        """Answers `done`, or `deadline` when that passed first."""
        ends = None if self.deadline is None else datetime.fromisoformat(self.deadline)
        limit = asyncio.timeout(None if ends is None else (ends - datetime.now(UTC)).total_seconds())
        try:
            async with limit:
                await self._until_done(watch)
        except TimeoutError:
            if not limit.expired():
                raise
            await in_thread(watch.forget)
            return "deadline"
        return "done"

    async def _until_done(self, watch: Watch) -> None:
        try:
            await in_background(watch.remember, self.watch_id)
            look = await in_background(watch.glance) or await self._look(watch)
            while not look.done:
                listed = await self._until_news(watch, look)
                look = await self._look(watch, listed)
            await in_thread(self._hand_over, watch, look)
        except asyncio.CancelledError:
            await in_thread(watch.keep_position)
            raise

    async def _look(self, watch: Watch, listed: Jobs | None = None) -> Look:
        look = await in_thread(watch.look, listed)
        self._tell_lines()
        return look

    async def _until_news(self, watch: Watch, look: Look) -> Jobs:
        """Wait until another look is due; answers the jobs of the job key when somebody has listed them for it.

        While the job just runs, the board that all runs share says when; else it is the time between looks.
        """
        from trainops.triggers.board import Follower, board_of

        if look.queued:
            await self._until_admitted(watch, look)
            return []
        if look.job is None or not look.job.live or look.job.state == "JOB_STATE_CANCELLING":
            await asyncio.sleep(self._pause(cancelling=look.job is not None and look.job.live))
            return []
        board = board_of(watch.services, look.job.name.split("/")[3], self.poll_seconds)
        async with board.following(Follower(look.job, look.job_label, watch.follower)) as follower:
            now = time.monotonic()
            until = now + _patience(look)
            progress = now + PROGRESS_SECONDS * random.random()  # not all runs at the same moment
            while not follower.changed and (now := time.monotonic()) < until:
                await follower.news(min(until, progress) - now)
                await self._pass_on(watch, follower)
                if not follower.changed and time.monotonic() >= progress:
                    progress = time.monotonic() + PROGRESS_SECONDS
                    await in_background(watch.tell_progress, look.folder)
                    self._tell_lines()
            return follower.listed

    async def _until_admitted(self, watch: Watch, look: Look) -> None:
        """Wait in the GPU queue until there are GPUs, or another whole look is due."""
        from trainops.triggers.queue_board import queue_board_of

        until = time.monotonic() + _patience(look)
        async with queue_board_of(watch.services, self.poll_seconds).waiting(look.job_key) as waiter:
            # Else looks that find nothing to do would follow each other at once.
            await asyncio.sleep(URGENT_SECONDS)
            while not await waiter.admitted(min(QUEUED_SECONDS, max(0.0, until - time.monotonic()))):
                if time.monotonic() >= until or not await in_background(_still_queued, watch, waiter, look):
                    return
                self._tell_lines()

    def _pause(self, *, cancelling: bool) -> float:
        """Seconds between two looks of a run that the board does not help; a thousand may be cancelled at once."""
        if not cancelling:
            self._urgent_seconds = URGENT_SECONDS
            return self.poll_seconds
        pause, self._urgent_seconds = self._urgent_seconds, 2 * self._urgent_seconds
        return min(self.poll_seconds, pause)

    async def _pass_on(self, watch: Watch, follower: Follower) -> None:
        """Tell what the board says of the job."""
        lines, problem = follower.take_lines()
        if follower.error is not None:
            watch.not_seen(follower.error)
        else:
            watch.seen()
            watch.tell_state(follower.job)
        watch.tell_lines(lines, problem)
        self._tell_lines()
        if watch.must_keep_position and not follower.changed:
            await in_background(watch.keep_position)

    def _tell_lines(self) -> None:
        """Log what the looks said; they run in threads, and only here the log is surely the task's."""
        while self._lines:
            self.log.info("%s", self._lines.popleft())

    def _watch(self) -> Watch:
        from trainops.hooks.trainops import shared_services
        from trainops.steps.watch import Watch

        return Watch(
            shared_services(self.environment, self.gcp_conn_id, self.impersonation_chain),
            self.record_uri,
            until=cast("Until", self.until),
            actor=f"trigger of {self._name()}",
            say=self._lines.append,
            max_unknown_seconds=self.max_unknown_seconds,
            position=self.position,
            reads_log=False,
            hide=mask_secret,
        )

    def _hand_over(self, watch: Watch, look: Look) -> None:
        """Tell the record that the task goes on, so that a kill after this is not taken for an abandoned run.

        A generation that has ended is left alone by a kill in any case.
        """
        if not look.ended:
            watch.run.store.change(lambda record: record and record.model_copy(update={"hand_over": self._name()}))
        watch.forget()

    def _task_state(self) -> str | None:
        return state_of(self.task_key)

    def _cancel_if_abandoned(self, state: str | None) -> None:
        watch = self._watch()
        record = watch.run.store.load()
        if record.generation != self.generation or record.verdict is not None:
            return
        if state in KILLED or (state == "success" and record.hand_over is None):
            why = f"{self._name()} was marked {state} while its job ran"
            watch.run.cancel(why, generation=self.generation)
            watch.run.advance()

    def _name(self) -> str:
        return f"{self.task_key['dag_id']}.{self.task_key['task_id']}"


def _still_queued(watch: Watch, waiter: Waiter, look: Look) -> bool:
    return watch.still_queued(waiter.reason() or look.why)


def _patience(look: Look) -> float:
    """Seconds until the next look when the board stays silent; never past a deadline."""
    rest = RESTING_SECONDS * random.uniform(2 / 3, 4 / 3)
    if look.wake_by is None:
        return rest
    return min(rest, max(0.0, (look.wake_by - datetime.now(UTC)).total_seconds()) + 1)
