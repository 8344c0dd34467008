"""Which kills a campaign makes: every component in every interval, in an order that a seed decides."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.chaos.components import COMPONENTS
from tests.chaos.intervals import INTERVALS, Hold, Interval

EXIT_NEVER = 2
"""The exit code by which a trainer says that a retry cannot help."""

WAITED_FOR = 60.0
"""Seconds of a job that must still run when its sensor has deferred."""


@dataclass(frozen=True)
class Kill:
    """One kill to make: which component, in which interval, of a run of which DAG.

    :param round_: 0, 1, ...: which kill of the pair it is; it chooses where in the interval the run is stopped.
    :param seconds: how long the run's job works.
    :param code: with which code it exits.
    """

    component: str
    interval: Interval
    round_: int
    seconds: float
    code: int
    dag: str = "chaos"

    @property
    def hold(self) -> Hold | None:
        """Where the run is stopped; None: it waits in the triggerer."""
        return self.interval.holds[self.round_ % len(self.interval.holds)]

    @property
    def pair(self) -> tuple[str, str]:
        """Component and interval."""
        return self.component, self.interval.name

    @property
    def conf(self) -> dict[str, Any]:
        """The conf of the run."""
        return {"seconds": self.seconds, "code": self.code}

    @property
    def expected(self) -> str:
        """The state in which the run's one job must end."""
        if self.interval.story == "killed":
            return "CANCELLED"
        return "FAILED" if self.code else "SUCCEEDED"

    def __str__(self) -> str:
        return f"{self.component} @ {self.interval.name} #{self.round_}"


def all_kills(seed: int, rounds: int, together: int) -> list[Kill]:
    """Every pair `rounds` times, one round after the other, in an order by chance.

    So many of the same component follow one another as run `together`: runs that stand in their intervals at the same
    time share one kill of what they share.
    """
    chance = random.Random(seed)
    return [kill for round_ in range(rounds) for kill in _round(chance, round_, together)]


def _round(chance: random.Random, round_: int, together: int) -> list[Kill]:
    parts = []
    for component in COMPONENTS:
        kills = [_kill(component, interval, round_, chance) for interval in INTERVALS if applies(component, interval)]
        chance.shuffle(kills)
        parts += [kills[at : at + together] for at in range(0, len(kills), together)]
    chance.shuffle(parts)
    return [kill for part in parts for kill in part]


def applies(component: str, interval: Interval) -> bool:
    """Whether a component has a part in an interval: no worker has one while a task is deferred.

    An idle worker of the LocalExecutor is never killed: it would take the lock of the executor's queue with it, and
    no task would ever start again (Airflow 3.3.2).
    """
    return component != "worker" or interval.story == "ends"


def _kill(component: str, interval: Interval, round_: int, chance: random.Random) -> Kill:
    if interval.story == "killed":
        return Kill(component, interval, round_, seconds=900, code=0)
    if component == "worker":  # its job has ended when the sensor looks, so that a worker takes all the steps
        held = [at for at in (round_, 0) if interval.holds[at % len(interval.holds)] is not None]
        return Kill(component, interval, held[0], seconds=1, code=EXIT_NEVER * chance.randrange(2))
    hold = interval.holds[round_ % len(interval.holds)]
    seconds = WAITED_FOR if hold is None else chance.choice([1, 20])  # the sensor finds it ended, or defers
    return Kill(component, interval, round_, seconds, code=EXIT_NEVER * chance.randrange(2))


def _chosen(
    component: str, interval: str, round_: int, *, seconds: float = 20, code: int = 0, dag: str = "chaos"
) -> Kill:
    where = next(one for one in INTERVALS if one.name == interval)
    return Kill(component, where, round_, seconds, code, dag)


ONE_OF_EACH = (
    _chosen("task process", "record begun .. place in the queue", 0),
    _chosen("worker", "place in the queue .. refreshed", 0, seconds=1, code=EXIT_NEVER),
    _chosen("scheduler", "create .. job's name in the record", 0),
    _chosen("triggerer", "job ended .. told in the record", 0),
    _chosen("api-server", "job's name in the record .. lease bound .. submitted", 0, code=EXIT_NEVER),
    _chosen("gcs", "GPUs reserved .. intent", 0, seconds=1),
    _chosen("vertex", "create .. job's name in the record", 0, seconds=1),
)
"""A kill of each component, in intervals after which nobody has to wait for a create's deadline."""

BROKEN = (
    _chosen("task process", "job on file .. create", 1, dag="chaos_no_intent"),
    _chosen("vertex", "create .. job's name in the record", 0, dag="chaos_no_list"),
    _chosen("task process", "job frozen .. record begun", 1, dag="chaos_no_read_back"),
)
"""A kill for each broken variant of the product that the judge must see through."""
