"""Reading what a training left: the curve of its losses, and weights, whole or not."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainops.steps.model_folder import safetensors_problem
from trainops.steps.outcome import read_curve


def weights(*sizes: int) -> bytes:
    """A file of one-dimensional tensors of bytes, by hand."""
    header, end = {}, 0
    for number, size in enumerate(sizes):
        header[f"tensor{number}"] = {"dtype": "U8", "shape": [size], "data_offsets": [end, end + size]}
        end += size
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    return struct.pack("<Q", len(text)) + text + bytes(end)


def test_the_curve_holds_first_and_last_loss_and_ignores_empty_lines() -> None:
    text = b'{"step": 10, "loss": 6.0}\n\n{"step": 20, "loss": 5.0}\n{"step": 20, "eval_loss": 4.9}\n'
    curve, problems = read_curve(text)
    assert problems == []
    assert curve is not None
    assert (curve.logged, curve.first, curve.last, curve.last_step) == (2, 6.0, 5.0, 20)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "holds no training loss"),
        (b'{"step": 10, "eval_loss": 4.9}', "holds no training loss"),
        (b'{"step": 10, "loss": 6.0}\n{"step": 20, "lo', "line 2 is not a line of metrics"),
        (b'{"loss": 6.0}', "line 1 is not a line of metrics"),
        (b"[1]", "line 1 is not a line of metrics"),
        (b'{"step": 10, "loss": NaN}', "the loss of step 10 is nan"),
        (b'{"step": 10, "loss": 6.0}\n{"step": 10, "eval_loss": Infinity}', "the loss of step 10 is inf"),
    ],
)
def test_metrics_that_cannot_be_right_are_named(text: bytes, words: str) -> None:
    _, problems = read_curve(text)
    assert any(words in problem for problem in problems)


def test_many_bad_lines_are_counted_not_listed() -> None:
    lines = "\n".join(f'{{"step": {step}, "loss": NaN}}' for step in range(1, 11))
    _, problems = read_curve(lines.encode())
    assert problems[3:] == ["metrics.jsonl: 7 more such lines"]


def test_whole_weights_have_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(weights(16, 4))
    assert not safetensors_problem(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kept=st.integers(0, len(weights(16, 4)) - 1))
def test_weights_cut_short_anywhere_are_noticed(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "weights"
    path.write_bytes(weights(16, 4)[:kept])
    assert safetensors_problem(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=64))
def test_other_bytes_are_no_weights(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "weights"
    path.write_bytes(data)
    assert safetensors_problem(path)
