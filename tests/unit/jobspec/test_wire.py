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
