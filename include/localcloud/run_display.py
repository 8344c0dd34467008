"""The display of a run: its tasks, and below them how far the training is; plain lines without a terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from localcloud.airflow_api import TaskState
from localcloud.training_metrics import Progress

_STYLES = {"success": "green", "running": "yellow", "deferred": "cyan", "failed": "red", "upstream_failed": "red"}
PLAIN_SECONDS = 10.0
"""Without a terminal, the training's progress is told this often."""


class RunDisplay:
    """Shows a run each time it is told; a context manager."""

    def __init__(self, console: Console, run: str) -> None:
        self._console = console
        self._run = run
        self._started = time.monotonic()
        self._live = Live(console=console, refresh_per_second=4) if console.is_terminal else None
        self._told: dict[str, tuple[str, int]] = {}
        self._told_progress = 0.0

    def __enter__(self) -> RunDisplay:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, tasks: Sequence[TaskState], progress: Progress | None) -> None:
        """Show the tasks and the training."""
        if self._live is not None:
            self._live.update(Group(self._table(tasks), *self._training(progress)))
            return
        for task in tasks:
            news = (task.state, task.try_number)
            if self._told.get(task.label) != news and task.state != "waiting":
                self._told[task.label] = news
                self._line(f"{task.label}: {_words(task)}")
        now = time.monotonic()
        if progress is not None and now - self._told_progress > PLAIN_SECONDS:
            self._told_progress = now
            self._line(str(progress))

    def _line(self, text: str) -> None:
        self._console.print(f"[{time.monotonic() - self._started:5.0f} s] {text}", markup=False, soft_wrap=True)

    def _table(self, tasks: Sequence[TaskState]) -> Table:
        title = f"{self._run}   {time.monotonic() - self._started:.0f} s"
        table = Table(title=title, title_justify="left", box=None, show_header=False, pad_edge=False)
        for task in tasks:
            table.add_row(f"  {task.label}", Text(_words(task), _STYLES.get(task.state, "dim")))
        return table

    def _training(self, progress: Progress | None) -> list[RenderableType]:
        if progress is None:
            return []
        return [Text(f"\n  {progress}"), ProgressBar(total=progress.steps, completed=progress.step, width=60)]


def _words(task: TaskState) -> str:
    seconds = f" after {task.seconds:.0f} s" if task.state in {"success", "failed"} and task.seconds is not None else ""
    tries = f" (try {task.try_number})" if task.try_number > 1 else ""
    return f"{task.state}{seconds}{tries}"
