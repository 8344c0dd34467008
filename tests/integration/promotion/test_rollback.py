"""The way back, and `trainops models`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from trainops import cli
from trainops.errors import ConfigError
from trainops.steps.promotion import rollback

if TYPE_CHECKING:
    from tests.integration.promotion.conftest import Registry


@pytest.mark.case("C098")
def test_rolling_back_goes_back_one_promotion_at_a_time(registry: Registry, three: list[str]) -> None:
    assert registry.rollback().version == three[1]
    assert registry.rollback().version == three[0]
    with pytest.raises(ConfigError, match="nothing to go back to"):
        registry.rollback()
    assert registry.placed() == [
        three[0], three[1], three[2], three[1], three[0],
    ]  # fmt: skip


def test_a_version_named_twice_is_set_once(registry: Registry, three: list[str]) -> None:
    for _ in range(2):
        assert registry.rollback(three[0]).promoted
    assert len(registry.pointer().history) == 3


def test_a_channel_that_moved_since_a_person_looked_is_left_alone(registry: Registry, three: list[str]) -> None:
    seen = registry.channel().generation
    registry.promote(registry.finish(4, eval_loss=1.0))
    with pytest.raises(ConfigError, match="moved since it was looked at"):
        registry.rollback(three[1], seen=seen)
    seen = registry.channel().generation
    for _ in range(2):  # a retry of the task that was approved
        assert registry.rollback(three[1], seen=seen).promoted


def test_a_version_that_does_not_exist_is_refused_with_the_nearest(registry: Registry, three: list[str]) -> None:
    with pytest.raises(ConfigError, match=f"did you mean '{three[0]}'"):
        registry.rollback(f"{three[0]}2")
    with pytest.raises(ConfigError, match="a version is named"):
        registry.rollback("the last one")
    with pytest.raises(ConfigError, match=r"no such model.*did you mean 'stdlib-tiny'"):
        rollback(registry.storage, registry.settings, "stdlib-tny", "production", by="ann")
    with pytest.raises(ConfigError, match="nothing was ever promoted"):
        registry.rollback(channel="candidate")


def test_the_command_line_lists_shows_tells_and_rolls_back(
    registry: Registry, three: list[str], environment: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["models"]) == 0
    assert three[2] in capsys.readouterr().out
    assert cli.main(["models", "show", registry.model, "--output", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["channels"] == {"production": three[2]}
    assert [item["version"] for item in shown["versions"]] == three
    assert cli.main(["models", "rollback", registry.model, "--reason", "it answers in French"]) == 0
    assert three[1] in capsys.readouterr().out
    assert cli.main(["models", "--output", "json", "history", registry.model]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(item["version"], item["how"]) for item in told[:2]] == [(three[1], "set by hand"), (three[2], "promoted")]
    assert told[0]["reason"] == "it answers in French"


def test_the_command_line_refuses_an_unknown_model(
    three: list[str], environment: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["models", "show", "stdlib"]) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert "did you mean 'stdlib-tiny'" in captured.err


def test_the_command_line_says_when_there_are_no_models(
    registry: Registry, environment: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["models", "--output", "json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == []
    assert "no model has been promoted" in captured.err
    assert cli.main(["models"]) == 0
    assert not capsys.readouterr().out


def test_the_history_tells_what_the_gate_refused_between_what_it_promoted(
    registry: Registry, environment: None, capsys: pytest.CaptureFixture[str]
) -> None:
    first, worse, old = registry.finish(1), registry.finish(2, eval_loss=3.2), registry.finish(3, day=1)
    better, other = registry.finish(4, eval_loss=3.0), registry.finish(5, eval_loss=9.0, channel="candidate")
    for plan in (first, worse, old, better, other):
        registry.decide(plan)
        registry.promote(plan)
    assert cli.main(["models", "history", registry.model, "--output", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    told = [(row["version"], row["how"], row["data_date"], row["eval_loss"]) for row in rows]
    assert told == [
        (registry.version(better), "promoted", "2026-11-29", 3.0),
        (registry.version(old), "refused", "2026-11-01", 3.1),
        (registry.version(worse), "refused", "2026-11-29", 3.2),
        (registry.version(first), "promoted", "2026-11-29", 3.1),
    ]
    assert "is older than the champion's" in rows[1]["reason"]
    assert cli.main(["models", "history", registry.model]) == 0
    assert capsys.readouterr().out.count("refused") == 2


def test_a_decision_that_cannot_be_read_hides_no_other(
    registry: Registry, environment: None, capsys: pytest.CaptureFixture[str]
) -> None:
    first, worse = registry.finish(1), registry.finish(2, eval_loss=3.2)
    registry.promote(first)
    registry.promote(worse)
    broken = f"{registry.settings.work}/runs/stdlib_tiny/broken/decision.json"
    registry.storage.write_json(broken, {"schema": 1}, generation=0)
    assert cli.main(["models", "history", registry.model]) == 0
    shown = capsys.readouterr()
    assert registry.version(worse) in shown.out
    assert broken in shown.err
