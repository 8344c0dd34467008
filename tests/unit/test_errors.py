from __future__ import annotations

import pytest

from trainops.errors import ConfigError


@pytest.mark.parametrize(
    ("value", "allowed", "nearest"),
    [
        ("stepz", ["steps", "seed"], "steps"),
        ("STEPS", ["steps", "seed"], "steps"),
        ("NVIDIA_T4", ["NVIDIA_L4", "NVIDIA_TESLA_T4"], "NVIDIA_TESLA_T4"),
        ("n1-standard-9", ["n1-standard-8", "e2-standard-4"], "n1-standard-8"),
        ("/data/nowhere", ["/data/hsperf", "/data/tmp"], None),
        ("zzz", ["steps", "seed"], None),
        ("NVIDIA_L4/us-central1", ["NVIDIA_L4/us-central1/spot", "NVIDIA_T4/eu/spot"], "NVIDIA_L4/us-central1/spot"),
        (7, [1, 2, 4], None),
    ],
)
def test_the_nearest_match_is_what_was_probably_meant(
    value: object, allowed: list[object], nearest: str | None
) -> None:
    error = ConfigError("no such thing", key="k", value=value, allowed=allowed)
    assert error.nearest == nearest
    assert ("did you mean" in str(error)) is (nearest is not None)


def test_a_message_names_source_key_value_and_the_next_step_in_one_line() -> None:
    error = ConfigError("too large", source="a.yaml", key="x.y", value=9, allowed=[1, 2], next_step="take less")
    assert str(error) == "a.yaml: x.y: too large; got 9; allowed: 1, 2; take less"
    assert error.exit_code == 2


def test_a_next_step_or_a_choice_made_of_what_a_user_wrote_ends_no_line() -> None:
    error = ConfigError("no such dataset", value="a", allowed=["b\x1b[2J"], next_step="add configs/x\nINFO done.yaml")
    assert str(error).isprintable()
