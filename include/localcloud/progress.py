"""The display of `up`: what is starting, for how long; plain lines when nobody looks at a terminal."""

from __future__ import annotations

import time

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from localcloud.state import CloudState, ComponentState, Status

_LOOKS = {
    Status.WAITING: ("·", "dim"),
    Status.STARTING: ("…", "yellow"),
    Status.HEALTHY: ("✓", "green"),
    Status.DONE: ("✓", "green"),
    Status.DEAD: ("✗", "red"),
    Status.STOPPED: ("-", "dim"),
}


class UpProgress:
    """Shows the state each time it is told; a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else None
        self._told: dict[str, tuple[Status, int]] = {}

    def __enter__(self) -> UpProgress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, state: CloudState) -> None:
        """Show the state."""
        if self._live is not None:
            self._live.update(components_table(state))
            return
        for one in state.components:
            news = (one.status, one.restarts)
            if self._told.get(one.name) != news and one.status is not Status.WAITING:
                self._told[one.name] = news
                seconds = time.time() - state.started
                self._console.print(f"[{seconds:5.1f} s] {one.name}: {describe(one)}", markup=False, soft_wrap=True)


def components_table(state: CloudState) -> Table:
    """One line per component: status, seconds, port, restarts, last error."""
    table = Table(
        title=f"local cloud, {time.time() - state.started:.0f} s", box=None, title_justify="left", pad_edge=False
    )
    for heading in ("", "component", "status", "port", "process", ""):
        table.add_column(heading)
    for one in state.components:
        sign, style = _LOOKS[one.status]
        port = str(one.port or "")
        process = str(one.process.pid) if one.process and one.status in {Status.STARTING, Status.HEALTHY} else ""
        restarts = f"restarted {one.restarts} times: " if one.restarts else ""
        words, trouble = Text(describe(one, brief=True), style), Text(restarts + one.error, "dim")
        table.add_row(Text(sign, style), one.name, words, port, process, trouble)
    return table


def describe(one: ComponentState, *, brief: bool = False) -> str:
    """Say in words how a component is."""
    if one.status is Status.STARTING:
        return f"starting, {time.time() - one.since:.0f} s"
    if one.status in {Status.HEALTHY, Status.DONE} and one.took is not None:
        return f"{one.status} after {one.took:.1f} s"
    if one.status is Status.DEAD and not brief:
        return f"dead: {one.error}"
    return str(one.status)
