from __future__ import annotations

from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.training_input import parse_training_input


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\x00", "a\x00"])
@pytest.mark.parametrize(
    ("body", "key"),
    [
        (lambda text: {"args": ["--a", text]}, "args.1"),
        (lambda text: {"pythonModule": text}, "pythonModule"),
        (lambda text: {"packageUris": [text]}, "packageUris.0"),
        (lambda text: {"runtimeVersion": text}, "runtimeVersion"),
        (lambda text: {"masterConfig": {"imageUri": text}}, "masterConfig.imageUri"),
        (lambda text: {"masterConfig": {"containerArgs": [text]}}, "masterConfig.containerArgs.0"),
        (lambda text: {"masterConfig": {"acceleratorConfig": {"type": text}}}, "masterConfig.acceleratorConfig.type"),
        (lambda text: {"vertex": {"env": {"A": text}}}, "vertex.env.A"),
        (lambda text: {"vertex": {"env": {text: "a"}}}, "vertex.env"),
        (lambda text: {"job": {"labels": {"a": text}}}, "job.labels.a"),
        (lambda text: {"job": {"jobId": text}}, "job.jobId"),
        (
            lambda text: {"hyperparameters": {"params": [{"categoricalValues": [text]}]}},
            "hyperparameters.params.0.categoricalValues.0",
        ),
    ],
)  # fmt: skip
def test_a_text_that_no_request_can_hold_is_refused_where_it_stands(text: str, body: Any, key: str) -> None:
    with pytest.raises(ConfigError, match=r"half a character|a NUL character") as caught:
        parse_training_input(body(text), "job.yaml")
    assert caught.value.key.startswith(key)


def test_letters_of_any_script_are_taken() -> None:
    spec = parse_training_input({"args": ["é", "日本", "🙂", "\u202e", "\t\n"]}, "job.yaml")
    assert spec.args == ["é", "日本", "🙂", "\u202e", "\t\n"]


@pytest.mark.parametrize(
    ("body", "key", "step"),
    [
        ({"args": ["--steps", 100]}, "args.1", 'write it in quotes: "100"'),
        ({"pythonModule": True}, "pythonModule", 'write it in quotes: "true"'),
        ({"job": {"labels": {"version": 2}}}, "job.labels.version", 'write it in quotes: "2"'),
        ({"vertex": {"env": {"RATE": 0.1}}}, "vertex.env.RATE", 'write it in quotes: "0.1"'),
        (
            {"hyperparameters": {"params": [{"categoricalValues": [128, 256]}]}},
            "hyperparameters.params.0.categoricalValues.0",
            'write it in quotes: "128"',
        ),
    ],
)
def test_a_text_without_quotes_that_yaml_takes_for_something_else_is_told_to_be_quoted(
    body: Any, key: str, step: str
) -> None:
    with pytest.raises(ConfigError, match=step) as caught:
        parse_training_input(body, "job.yaml")
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("given", "step"),
    [(3600, "write 3600s$"), ("3600", "write 3600s$"), ("1h", "write it like 3600s$"), (True, "like")],
)
def test_a_duration_in_another_form_is_told_in_the_right_one(given: Any, step: str) -> None:
    with pytest.raises(ConfigError, match=step) as caught:
        parse_training_input({"scheduling": {"maxRunningTime": given}}, "job.yaml")
    assert caught.value.key == "scheduling.maxRunningTime"
