"""What a channel remembers, and where the way back leads."""

from __future__ import annotations

from datetime import UTC, date, datetime

from hypothesis import given
from hypothesis import strategies as st

from trainops.steps.channels import How, Placement, Pointer

MOMENT = datetime(2026, 11, 30, 2, 30, tzinfo=UTC)


def pointer(*placements: tuple[str, How]) -> Pointer:
    """A pointer with these versions, oldest first."""
    made = [
        {
            "version": version,
            "uri": f"gs://models/tiny/versions/{version}",
            "data_date": date(2026, 11, 29),
            "eval_loss": 3.1,
            "heldout": None,
            "promoted_at": MOMENT,
            "by": "ann",
            "reason": "a test",
            "how": how,
        }
        for version, how in placements
    ]
    history = tuple(Placement.model_validate(item) for item in reversed(made[:-1]))
    return Pointer.model_validate({"model": "tiny", "history": history, **made[-1]})


def before(*placements: tuple[str, How]) -> str | None:
    found = pointer(*placements).before_current()
    return found.version if found else None


def test_the_way_back_leads_to_the_version_before() -> None:
    assert before(("a", "promoted"), ("b", "promoted")) == "a"


def test_there_is_no_way_back_from_the_first_version() -> None:
    assert before(("a", "promoted")) is None
    assert before(("a", "set by hand")) is None


def test_a_second_rollback_goes_further_back_and_not_forward_again() -> None:
    assert before(("a", "promoted"), ("b", "promoted"), ("c", "promoted"), ("b", "set by hand")) == "a"
    assert before(("a", "promoted"), ("b", "promoted"), ("b", "set by hand"), ("a", "set by hand")) is None
    assert before(("a", "promoted"), ("b", "set by hand"), ("c", "promoted"), ("b", "set by hand")) == "a"


def test_the_way_back_from_a_version_set_by_hand_leads_to_what_stood_there() -> None:
    assert before(("a", "promoted"), ("b", "promoted"), ("other", "set by hand")) == "b"


def test_a_pointer_survives_its_json() -> None:
    made = pointer(("a", "promoted"), ("b", "set by hand"))
    assert Pointer.model_validate(made.to_json()) == made
    assert made.to_json()["schema"] == 1


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["promoted", "set by hand"])), min_size=1, max_size=12))
def test_rolling_back_again_and_again_comes_to_an_end(numbers: list[tuple[int, How]]) -> None:
    placed: list[tuple[str, How]] = [(f"v{number}", how) for number, how in numbers]
    for _ in range(len(numbers) + 1):
        target = before(*placed)
        if target is None:
            break
        assert target != placed[-1][0]
        placed.append((target, "set by hand"))
    assert before(*placed) is None
