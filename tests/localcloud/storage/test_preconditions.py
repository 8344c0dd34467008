import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.storage.preconditions import BadPrecondition, Preconditions, Version, refusal_body

LIVE = Version(generation=7, metageneration=1)


@pytest.mark.parametrize(
    ("query", "live", "reading", "status"),
    [
        ("", LIVE, False, None),
        ("ifGenerationMatch=7", LIVE, False, None),
        ("ifGenerationMatch=6", LIVE, False, 412),
        ("ifGenerationMatch=0", LIVE, False, 412),
        ("ifGenerationMatch=0", None, False, None),
        ("ifGenerationMatch=7", None, False, 412),
        ("ifGenerationMatch=7", None, True, None),
        ("ifGenerationNotMatch=7", LIVE, True, 304),
        ("ifGenerationNotMatch=7", LIVE, False, 412),
        ("ifGenerationNotMatch=0", None, False, 412),
        ("ifGenerationNotMatch=6", LIVE, False, None),
        ("ifMetagenerationMatch=2", LIVE, False, 412),
        ("ifMetagenerationMatch=1", LIVE, False, None),
        ("ifMetagenerationMatch=1", None, False, 412),
        ("ifMetagenerationNotMatch=1", LIVE, True, 304),
    ],
)
def test_a_precondition_is_held_as_cloud_storage_does(
    query: str, live: Version | None, reading: bool, status: int | None
) -> None:
    assert Preconditions.of_query(query).refusal(live, reading=reading) == status


def test_preconditions_on_the_source_of_a_copy_have_their_own_names() -> None:
    assert Preconditions.of_query("ifSourceGenerationMatch=3", source=True).generation == 3
    assert not Preconditions.of_query("ifSourceGenerationMatch=3")


def test_a_generation_that_is_no_number_is_refused() -> None:
    with pytest.raises(BadPrecondition, match="ifGenerationMatch"):
        Preconditions.of_query("ifGenerationMatch=latest")


@given(st.integers(min_value=1), st.integers(min_value=1))
def test_a_write_passes_exactly_when_the_generation_is_the_live_one(wanted: int, live: int) -> None:
    passes = Preconditions(generation=wanted).refusal(Version(live, 1), reading=False) is None
    assert passes == (wanted == live)


def test_the_refusal_speaks_as_cloud_storage_does() -> None:
    error = refusal_body(412)["error"]
    assert isinstance(error, dict)
    assert error["errors"][0]["reason"] == "conditionNotMet"
