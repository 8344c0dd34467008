"""The conf of a run is flat, typed and closed, and describes itself for the trigger form."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from trainops.config.conf import RunConf
from trainops.config.priority import CLASSES
from trainops.errors import ConfigError
from trainops.validation import validated


@pytest.mark.case("C063")
@pytest.mark.parametrize(
    ("conf", "key", "nearest"),
    [
        ({"stesp": 10}, "stesp", "steps"),
        ({"acceleratorType": "x"}, "acceleratorType", "accelerator_type"),
        ({"steps": "ten"}, "steps", None),
        ({"steps": "10"}, "steps", None),
        ({"steps": 0}, "steps", None),
        ({"steps": 1.5}, "steps", None),
        ({"steps": True}, "steps", None),
        ({"learning_rate": 0}, "learning_rate", None),
        ({"learning_rate": float("nan")}, "learning_rate", None),
        ({"worker_count": -1}, "worker_count", None),
        ({"accelerator_count": 65}, "accelerator_count", None),
        ({"priority": 101}, "priority", None),
        ({"priority": "101"}, "priority", None),
        ({"priority": "hihg"}, "priority", "high"),
        ({"priority": True}, "priority", None),
        ({"seed": 2**32}, "seed", None),
        ({"promote": "alway"}, "promote", None),
        ({"promote": "nevr"}, "promote", "never"),
        ({"region": "europe"}, "region", None),
        ({"data_date": "29.11.2026"}, "data_date", None),
        ({"data_date": "20261129"}, "data_date", None),
        ({"data_date": "2026-02-30"}, "data_date", None),
        ({"data_date": 20261129}, "data_date", None),
        ({"note": "x" * 501}, "note", None),
    ],
)
def test_a_wrong_key_or_value_is_refused(conf: dict[str, Any], key: str, nearest: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        validated(RunConf, conf, source="conf")
    assert (caught.value.source, caught.value.key, caught.value.nearest) == ("conf", key, nearest)


def test_only_what_was_given_is_kept() -> None:
    conf = validated(RunConf, {"data_date": "2026-11-29", "steps": 5, "note": None}, source="conf")
    assert conf.data_date == date(2026, 11, 29)
    assert conf.given() == {"data_date": "2026-11-29", "steps": 5}


@pytest.mark.parametrize(("given", "kept"), [("high", 75), ("urgent", 100), (90, 90), ("90", 90), (0, 0)])
def test_a_priority_is_a_class_or_a_number_also_as_text_of_the_form(given: object, kept: int) -> None:
    assert validated(RunConf, {"priority": given}, source="conf").given() == {"priority": kept}


def test_a_whole_number_is_a_learning_rate() -> None:
    assert validated(RunConf, {"learning_rate": 1}, source="conf").given() == {"learning_rate": 1}


def test_the_schema_carries_what_the_trigger_form_needs() -> None:
    properties = RunConf.model_json_schema()["properties"]
    for key, schema in properties.items():
        assert schema["title"], key
        assert schema["description"], key
        assert schema["section"] in {"Data", "Training", "Machines", "Queue", "Promotion"}, key
        assert schema["examples"], key
        assert schema["default"] is None, key


def test_every_example_is_accepted() -> None:
    for key, schema in RunConf.model_json_schema()["properties"].items():
        for example in schema["examples"]:
            kept = CLASSES.get(example, example) if key == "priority" else example
            assert validated(RunConf, {key: example}, source="conf").given() == {key: kept}
