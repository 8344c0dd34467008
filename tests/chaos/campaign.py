"""Makes kills, several runs side by side: each run is stopped in its interval, a component dies, the run goes on."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.chaos.airflow import Airflow
from tests.chaos.components import Components
from tests.chaos.intervals import Hold
from tests.chaos.plan import Kill
from tests.chaos.stand_ins import StandIns
from tests.live.cloud import Cloud

REACHED_WITHIN = 420.0
"""Seconds for a run to come to its interval; a create that nobody knows of keeps others from creating for 120."""

CANCELS_WITHIN = 150.0
"""The trigger of a task marked failed cancels once the API server answers it, or was lost with its triggerer."""

ENDS_WITHIN = 600.0
HOLD_SECONDS = 90.0
LATE = 60.0
"""A request whose sender was killed arrives when its task has gone on without it, or after so many seconds."""

SENDERS = frozenset({"task process", "worker"})

HOUSE_SECONDS = 120.0
"""How often housekeeping runs beside its own schedule: what it must end would else hold GPUs for a quarter hour."""

TRIES = 3
"""A run can pass its interval unheld, when another's kill has just made a stand-in forget its holds."""

Say = Callable[[str], None]


@dataclass
class Trial:
    """One run and what was done to it."""

    kill: Kill
    run: str
    killed: str = ""
    """What was killed; empty: the run was not stopped in its interval, or there was nothing to kill."""
    ended: bool = False
    seconds: float = 0.0
    trouble: str = ""


@dataclass
class Stop:
    """Where a run is stopped; a stand-in that was killed in between is told again."""

    stand_ins: StandIns
    hold: Hold | None
    names: dict[str, str]
    fault: str = ""
    before: int = 0
    """Calls of the run that went through before it was armed, of those that it counts."""
    checked: float = 0.0

    def arm(self) -> None:
        """Hold from now on."""
        if self.hold is not None:
            self.before = self.stand_ins.passed(self.hold, self.names)
            self.fault = self.stand_ins.arm(self.hold, self.names, 0, HOLD_SECONDS)

    def holds(self) -> bool:
        """Whether the run is stopped now."""
        if self.hold is None or self.stand_ins.holds(self.hold.at, self.fault):
            return True
        if time.monotonic() < self.checked + 2:
            return False
        self.checked = time.monotonic()
        if self.stand_ins.has_forgotten(self.hold.at, self.fault):
            passed = self.stand_ins.passed(self.hold, self.names) - self.before
            if passed <= self.hold.number:
                self.fault = self.stand_ins.arm(self.hold, self.names, passed, HOLD_SECONDS)
        return False

    def let_go(self) -> None:
        """Hold no more."""
        if self.hold is not None:
            self.stand_ins.let_go(self.hold.at, self.fault)


@dataclass
class Campaign:
    """Runs and kills on one cloud.

    :param name: begins the ids of the runs.
    :param lanes: runs side by side.
    :param until: no kill is begun after this moment, of the monotonic clock.
    """

    cloud: Cloud
    name: str
    lanes: int
    say: Say
    until: float = math.inf
    trials: list[Trial] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.airflow = Airflow.of(self.cloud)
        self.stand_ins = StandIns(self.cloud)
        self.components = Components(self.cloud, self.airflow)
        self._lock = threading.Lock()
        self._houses = 0

    def close(self) -> None:
        """Close the connections."""
        self.airflow.close()
        self.stand_ins.close()

    def conduct(self, kills: Sequence[Kill]) -> list[Trial]:
        """Make all kills and return their trials, also those that had to be made again."""
        for dag in {"housekeeping", *(kill.dag for kill in kills)}:
            self.cloud.wait_for_dag(dag)
            self.airflow.unpause(dag)
        done = threading.Event()
        sweeper = threading.Thread(target=self._keep_house, args=(done,), daemon=True)
        sweeper.start()
        with ThreadPoolExecutor(self.lanes) as lanes:
            list(lanes.map(self._make, kills))
        done.set()
        sweeper.join()
        self._let_housekeeping_run()
        return self.trials

    def _let_housekeeping_run(self) -> None:
        with self._lock:
            self._houses += 1
            run = f"{self.name}-house-{self._houses}"
        self.airflow.start("housekeeping", run, {})
        self._until(lambda: self.airflow.has_ended("housekeeping", run), ENDS_WITHIN)

    def _keep_house(self, done: threading.Event) -> None:
        while not done.wait(HOUSE_SECONDS):
            self._let_housekeeping_run()

    def _make(self, kill: Kill) -> None:
        for _ in range(TRIES):
            if time.monotonic() > self.until:
                return
            with self._lock:
                trial = Trial(kill, f"{self.name}-{len(self.trials):04}")
                self.trials.append(trial)
            began = time.monotonic()
            try:
                self._try(trial)
            except Exception as error:  # a lane goes on with its next kill; the judge counts what was not made
                trial.trouble = f"{type(error).__name__}: {error}"
            trial.seconds = time.monotonic() - began
            made = sum(bool(one.killed) for one in self.trials)
            what = trial.killed or trial.trouble or "was not stopped there"
            self.say(f"{made:4} kills  {trial.run}  {trial.seconds:5.0f} s  {kill}: {what}")
            if trial.killed:
                return

    def _try(self, trial: Trial) -> None:
        kill, run = trial.kill, trial.run
        stop = Stop(self.stand_ins, kill.hold, {"run": run})
        if kill.interval.story == "ends":
            stop.arm()
        self.airflow.start(kill.dag, run, kill.conf)
        if kill.hold is None or kill.interval.story == "killed":
            self._until(lambda: self._waits(trial) or self._has_ended(trial), REACHED_WITHIN, pause=2.0)
        if kill.interval.story == "killed":
            stop.names["job"] = self._job_of(run)
            stop.arm()
            self.airflow.mark(kill.dag, run, "wait", "failed")
        if self._is_stopped(trial, stop):
            trial.killed = self.components.kill(kill.component, kill.dag, run, kill.round_)
        if trial.killed and kill.hold and not kill.hold.stored and kill.component in SENDERS:
            self._wait_for_the_next_try(trial)
        stop.let_go()
        self.components.until_back()
        self._until(lambda: self._has_ended(trial), ENDS_WITHIN)
        trial.ended = True

    def _is_stopped(self, trial: Trial, stop: Stop) -> bool:
        """Wait until the run is stopped; False when it got by."""
        killed = trial.kill.interval.story == "killed"
        deadline = time.monotonic() + (CANCELS_WITHIN if killed else REACHED_WITHIN)
        while time.monotonic() < deadline:
            if not killed and self._has_ended(trial):
                return False
            if stop.holds():
                return True
            time.sleep(0.3)
        return False

    def _wait_for_the_next_try(self, trial: Trial) -> None:
        """Wait until the task that was to send a request has gone on without it."""
        deadline = time.monotonic() + LATE
        while time.monotonic() < deadline:
            if self.airflow.state(trial.kill.dag, trial.run, "train") in {"success", "deferred"}:
                return
            time.sleep(2)

    def _waits(self, trial: Trial) -> bool:
        return self.airflow.state(trial.kill.dag, trial.run, "wait") == "deferred"

    def _has_ended(self, trial: Trial) -> bool:
        return self.airflow.has_ended(trial.kill.dag, trial.run)

    def _job_of(self, run: str) -> str:
        mine = [job for job in self.stand_ins.jobs() if job["labels"].get("run-key") == run]
        return str(mine[0]["name"]).rpartition("/")[2]

    @staticmethod
    def _until(done: Callable[[], bool], seconds: float, pause: float = 0.5) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {seconds:.0f} s")
            time.sleep(pause)
