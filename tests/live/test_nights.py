"""Three nights, then a backfill of two older days: what becomes the champion, what is refused, and what tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.live.cloud import Cloud

pytestmark = [pytest.mark.live, pytest.mark.full, pytest.mark.timeout(1800)]

MODEL, CHANNEL = "nights", "production"
NIGHTS = ("2026-10-24", "2026-10-25", "2026-10-26")
OLDER = ("2026-10-20", "2026-10-21")


@dataclass(frozen=True)
class Night:
    """One run: its data date, the gate's decision, and the trainer's result."""

    run_key: str
    data_date: str
    decision: dict[str, Any]
    result: dict[str, Any]

    def rule(self, name: str) -> dict[str, Any]:
        """What one rule of the gate said."""
        (found,) = [rule for rule in self.decision["rules"] if rule["rule"] == name]
        return dict(found)


@dataclass(frozen=True)
class Told:
    """All runs in the order in which they ran, and the channel after the nights and after the backfill."""

    nights: list[Night]
    older: list[Night]
    history: list[dict[str, Any]]
    champions: tuple[str, str]


def backfilled(cloud: Cloud, dag: str, first: str, last: str, days: tuple[str, ...]) -> list[Night]:
    """Run the DAG for dates, one after the other, and return what came of each."""
    create = [
        "backfill", "create", "--dag-id", dag, "--from-date", first, "--to-date", last, "--max-active-runs", "1",
        "--dag-run-conf", '{"steps": 12}',
    ]  # fmt: skip
    # The scheduler takes a while to see that the backfill before has ended, and a DAG has one at a time.
    cloud.until(lambda: cloud.localcloud("airflow", *create).returncode == 0, 240, lambda: f"no backfill of {dag}")
    found: dict[str, Night] = {}

    def all_ended() -> bool:
        for run in [one["dag_run_id"] for one in cloud.runs(dag, "backfill")]:
            if run not in found and cloud.api.run_state(dag, run) in {"success", "failed"}:
                assert cloud.api.run_state(dag, run) == "success", cloud.states(dag, run)
                plan = cloud.plan(dag, run)
                story = cloud.story(plan["run_key"])
                found[run] = Night(plan["run_key"], plan["data_date"], story["decision"], story["result"])
        return set(days) <= {night.data_date for night in found.values()}

    cloud.until(all_ended, 900, lambda: [(one["dag_run_id"], one["state"]) for one in cloud.runs(dag)])
    return sorted((night for night in found.values() if night.data_date in days), key=lambda night: night.data_date)


@pytest.fixture(scope="module")
def told(cloud: Cloud) -> Told:
    dag = cloud.add_experiment(MODEL)
    (cloud.home.dags / "train.py").touch()
    cloud.wait_for_dag(dag)
    cloud.api.unpause(dag)
    nights = backfilled(cloud, dag, "2026-10-25", "2026-10-28", NIGHTS)
    champion = str(cloud.trainops("models", "history", MODEL)[0]["version"])
    older = backfilled(cloud, dag, "2026-10-21", "2026-10-23", OLDER)
    history = cloud.trainops("models", "history", MODEL)
    now = next(row for row in history if row["how"] != "refused")
    return Told(nights, older, history, (champion, str(now["version"])))


def test_the_first_night_becomes_the_champion(told: Told) -> None:
    assert told.nights[0].decision["promote"]
    assert told.nights[0].result["champion"] is None


def test_each_later_night_is_compared_on_its_own_held_out_text_and_promoted_when_it_is_better(told: Told) -> None:
    for night in told.nights[1:]:
        champion = night.result["champion"]
        assert champion["error"] is None, champion
        rule = night.rule("improvement")
        assert "evaluated again on the candidate's held-out data" in rule["text"]
        if champion["loss_per_byte"] is None:
            mine, theirs = night.result["eval_loss"], champion["eval_loss"]
        else:
            mine, theirs = champion["own_loss_per_byte"], champion["loss_per_byte"]
        assert (rule["verdict"] == "passed") is (mine < theirs), rule


def test_older_days_are_refused_for_their_data_and_move_nothing(told: Told) -> None:
    for night in told.older:
        assert not night.decision["promote"]
        assert night.rule("data_window")["verdict"] == "refused"
    refused = [night for night in told.nights if not night.decision["promote"]]
    assert told.champions[0] == told.champions[1] or refused


def test_the_history_tells_every_run_newest_first(told: Told) -> None:
    rows = [(row["version"].rsplit("-g", 1)[0], row["how"] != "refused") for row in told.history]
    ran = [*told.nights, *told.older]
    assert rows == [(night.run_key, night.decision["promote"]) for night in reversed(ran)]
