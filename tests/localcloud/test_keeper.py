import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import pytest

from localcloud.component import Component
from localcloud.errors import LocalCloudError
from localcloud.home import Home
from localcloud.keeper import Keeper
from localcloud.state import Status

SLEEP = (sys.executable, "-c", "import time; time.sleep(60)")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path, tmp_path, Path(sys.executable))
    home.make_folders()
    return home


@pytest.fixture
def checks() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


def _tick_until(keeper: Keeper, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not done():
        keeper.tick(time.time())
        assert time.monotonic() < deadline, keeper.state
        time.sleep(0.05)


def test_a_killed_component_is_started_again(home: Home, checks: Executor) -> None:
    keeper = Keeper(Component("sleeper", SLEEP, lambda _: True), home, lambda _: True, checks)
    _tick_until(keeper, keeper.is_satisfied)
    first = keeper.pid
    assert first is not None
    os.kill(first, 9)
    _tick_until(keeper, lambda: keeper.state.restarts == 1 and keeper.is_satisfied())
    assert keeper.pid not in {first, None}
    keeper.ask_to_end()
    keeper.end()
    assert keeper.state.status is Status.STOPPED


def test_a_component_that_keeps_dying_is_started_less_and_less_often(home: Home, checks: Executor) -> None:
    keeper = Keeper(
        Component("broken", (sys.executable, "-c", "raise SystemExit(3)"), lambda _: False),
        home,
        lambda _: True,
        checks,
    )
    started = time.monotonic()
    _tick_until(keeper, lambda: keeper.state.restarts == 3)
    assert time.monotonic() - started >= 0.5 + 1.0
    assert "exit code 3" in keeper.state.error
    assert str(keeper.log_file) in keeper.state.error


def test_a_component_waits_for_those_that_it_needs(home: Home, checks: Executor) -> None:
    ready: set[str] = set()
    keeper = Keeper(
        Component("late", SLEEP, lambda _: True, needs=("early",)), home, lambda name: name in ready, checks
    )
    keeper.tick(time.time())
    assert keeper.state.status is Status.WAITING
    ready.add("early")
    _tick_until(keeper, keeper.is_satisfied)
    keeper.ask_to_end()
    keeper.end()


def test_a_task_that_runs_once_is_not_started_again(home: Home, checks: Executor) -> None:
    keeper = Keeper(
        Component("once", (sys.executable, "-c", ""), lambda _: True, once=True), home, lambda _: True, checks
    )
    _tick_until(keeper, keeper.is_satisfied)
    assert keeper.state.status is Status.DONE
    keeper.tick(time.time())
    assert keeper.pid is None


def test_what_cannot_be_prepared_says_why(home: Home, checks: Executor) -> None:
    def prepare() -> None:
        raise LocalCloudError("initdb failed: no space left on device")

    keeper = Keeper(Component("database", SLEEP, lambda _: True, prepare=prepare), home, lambda _: True, checks)
    keeper.tick(time.time())
    assert (keeper.state.status, keeper.state.error) == (Status.DEAD, "initdb failed: no space left on device")


def test_an_answer_of_somebody_else_on_the_port_is_not_taken_for_health(home: Home, checks: Executor) -> None:
    keeper = Keeper(Component("impostor", SLEEP, lambda _: True, port=1), home, lambda _: True, checks)
    for _ in range(10):
        keeper.tick(time.time())
        time.sleep(0.05)
    assert keeper.state.status is Status.STARTING
    keeper.ask_to_end()
    keeper.end()


def _hangs(_: float) -> bool:
    time.sleep(2)
    return False


def test_a_server_that_hangs_does_not_hide_a_death(home: Home, checks: Executor) -> None:
    hangs = Keeper(Component("hangs", SLEEP, _hangs), home, lambda _: True, checks)
    dies = Keeper(Component("dies", (sys.executable, "-c", ""), lambda _: False), home, lambda _: True, checks)
    started = time.monotonic()
    while dies.state.restarts == 0:
        hangs.tick(time.time())
        dies.tick(time.time())
        time.sleep(0.02)
    assert time.monotonic() - started < 1.9
    hangs.ask_to_end()
    hangs.end()
