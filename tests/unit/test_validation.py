"""What users write is read strictly, and refused with file, key, value, allowed and nearest match."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, field_validator

from trainops.errors import ConfigError
from trainops.validation import Refused, parse_json, read_yaml, validated


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Training(Strict):
    steps: int = Field(gt=0)
    learning_rate: float = 0.1
    kind: Literal["bpe", "bytes"] = "bpe"


class Pool(Strict):
    quota: int

    @field_validator("quota")
    @classmethod
    def _even(cls, quota: int) -> int:
        if quota % 2:
            raise ConfigError("an even number is expected", key="quota", value=quota)
        return quota


class Experiment(Strict):
    training: Training
    pools: list[Pool] = Field(default_factory=list)
    named: dict[str, Training] = Field(default_factory=dict)
    optional: Training | None = None
    either: str | Training = ""
    camel: int = Field(0, alias="camelCase")


GOOD = {"steps": 1}


def refused(data: object, key: str = "") -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        validated(Experiment, data, source="e.yaml", key=key)
    return caught.value


@pytest.mark.parametrize(
    ("data", "key", "value", "allowed", "nearest"),
    [
        ({"training": {"stesp": 1}}, "training.stesp", "stesp", ["steps", "learning_rate", "kind"], "steps"),
        (
            {"training": GOOD, "pols": 1},
            "pols",
            "pols",
            ["training", "pools", "named", "optional", "either", "camelCase"],
            "pools",
        ),
        ({"training": {"steps": "ten"}}, "training.steps", "ten", [], None),
        ({"training": {"steps": True}}, "training.steps", True, [], None),
        ({"training": {"steps": 0}}, "training.steps", 0, [], None),
        ({"training": {**GOOD, "kind": "bep"}}, "training.kind", "bep", ["bpe", "bytes"], "bpe"),
        ({"training": GOOD, "pools": [{"quota": 2}, {"quoat": 1}]}, "pools.1.quoat", "quoat", ["quota"], "quota"),
        ({"training": GOOD, "named": {"a": {"step": 1}}}, "named.a.step", "step", list(Training.model_fields), "steps"),
        ({"training": GOOD, "optional": {"step": 1}}, "optional.step", "step", list(Training.model_fields), "steps"),
        ({"training": GOOD, "either": {"step": 1}}, "either.step", "step", list(Training.model_fields), "steps"),
        ({"training": GOOD, "either": {"steps": "x"}}, "either.steps", "x", [], None),
        ({"training": GOOD, "either": 5}, "either", 5, [], None),
        ({"training": [1]}, "training", [1], list(Training.model_fields), None),
        ({}, "training", None, [], None),
        (None, "", None, ["training", "pools", "named", "optional", "either", "camelCase"], None),
    ],
)
def test_bad_data_is_refused_with_key_value_allowed_and_nearest(
    data: object, key: str, value: object, allowed: list[str], nearest: str | None
) -> None:
    error = refused(data)
    assert (error.source, error.key, error.value, error.allowed) == ("e.yaml", key, value, allowed)
    assert error.nearest == nearest


def test_a_misspelt_key_is_told_before_the_missing_one_and_the_others_are_named() -> None:
    error = refused({"training": {"stesp": 1, "kind": "x"}})
    assert error.key == "training.stesp"
    assert "training.steps: this key is required and missing" in str(error)
    assert "training.kind: must be 'bpe' or 'bytes'" in str(error)


def test_keys_are_told_from_where_the_data_stands_in_its_file() -> None:
    assert refused({"training": {"steps": "x"}}, key="experiments.one").key == "experiments.one.training.steps"


def test_a_config_error_of_a_model_is_told_with_its_source() -> None:
    error = refused({"training": GOOD, "pools": [{"quota": 3}]})
    assert (error.source, error.value) == ("e.yaml", 3)


def test_a_long_value_is_shortened() -> None:
    assert len(str(refused({"training": {"steps": "x" * 10_000}}))) < 500


class Odd(Strict):
    number: int

    @field_validator("number")
    @classmethod
    def _odd(cls, number: int) -> int:
        if number % 2 == 0:
            raise Refused("an odd number is expected", allowed=[number + 1], next_step="add one")
        return number


class Numbers(Strict):
    odds: list[Odd]


def test_what_a_validator_refuses_is_told_with_its_whole_key() -> None:
    with pytest.raises(ConfigError) as caught:
        validated(Numbers, {"odds": [{"number": 1}, {"number": 4}, {"number": "x"}]}, source="e.yaml")
    error = caught.value
    assert (error.source, error.key, error.value, error.allowed) == ("e.yaml", "odds.1.number", 4, ["5"])
    assert error.next_step == "add one; also wrong: odds.2.number: a whole number is expected"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: 1\nb: [1\nc: 2\n", "line 3"),
        ("a: b: c", "line 1, column 5"),
        ("a: 1\na: 2\n", "line 2, column 1: the key 'a' stands twice"),
        ("x: {a: 1, a: 2}\n", "column 11: the key 'a' stands twice"),
        ("a: 2026-02-31\n", "line 1, column 4: day is out of range"),
        ("- !!python/object:os.system x\n", "line 1, column 3"),
        ("a: 1\n---\nb: 2\n", "line 2"),
        ("a: '\n", "line 2"),
        ("a: \x07\n", "special characters"),
        ("[" * 1000, "recursion"),
    ],
)
def test_broken_yaml_is_told_with_its_place(tmp_path: Path, text: str, where: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="broken YAML") as caught:
        read_yaml(path)
    assert caught.value.source == str(path)
    assert where in str(caught.value)


def test_the_line_that_is_broken_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("steps: 1\nname: a: b\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_yaml(path)
    assert caught.value.value == "name: a: b"


@pytest.mark.parametrize("content", [b"a: \xff\xfe\n", None])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"not UTF-8 at byte 3|cannot be read: No such file") as caught:
        read_yaml(path)
    assert caught.value.source == str(path)


def test_yaml_means_what_a_reader_thinks(tmp_path: Path) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(
        "rate: 1e-3\nother: 3E+4\nbase: &b {p: 1}\nmerged: {<<: *b, q: 2}\ntext: '1e-3'\n", encoding="utf-8"
    )
    assert read_yaml(path) == {
        "rate": 0.001,
        "other": 30000.0,
        "base": {"p": 1},
        "merged": {"p": 1, "q": 2},
        "text": "1e-3",
    }


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"steps": }', "line 1, column 11"),
        ('{"a": 1,\n "b" 2}', "line 2, column 6"),
        ("{'a': 1}", "line 1, column 2"),
        ("", "line 1, column 1"),
        ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
        ('{"a": NaN}', "NaN is not a JSON number"),
    ],
)
def test_broken_json_is_told_with_its_place(text: str, where: str) -> None:
    with pytest.raises(ConfigError, match="broken JSON") as caught:
        parse_json(text, source="conf")
    assert caught.value.source == "conf"
    assert where in str(caught.value)


@given(st.text())
def test_no_text_makes_the_json_reader_fail_otherwise(text: str) -> None:
    problem: ConfigError | None = None
    try:
        parse_json(text, source="conf")
    except ConfigError as error:
        problem = error
    assert problem is None or problem.source == "conf"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["training", "steps", "x"]), inner),
    max_leaves=8,
)


@given(anything)
def test_no_data_makes_validation_fail_otherwise(data: object) -> None:
    problem: ConfigError | None = None
    try:
        validated(Experiment, data, source="e.yaml")
    except ConfigError as error:
        problem = error
    assert problem is None or problem.source == "e.yaml"
