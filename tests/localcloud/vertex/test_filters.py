from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.vertex.errors import ApiError
from localcloud.vertex.filters import UNKNOWN, Filter, parse_filter

FIELDS = ("name", "state", "time", "labels.")
JOB: dict[str, object] = {
    "name": "train one",
    "state": "RUNNING",
    "time": "2026-11-30T02:30:00.000000Z",
    "labels.team": "red-1",
}


def _accepts(text: str, **more: object) -> bool:
    return parse_filter(text, FIELDS).accepts({**JOB, **more}.get)


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("", True),
        ("state=RUNNING", True),
        ('state = "RUNNING"', True),
        ("state!=RUNNING", False),
        ('name="train one"', True),
        ('name="train*"', True),
        ("name:ONE", True),
        ("labels.team=red-1", True),
        ("labels.team:*", True),
        ("labels.other:*", False),
        ("NOT labels.other:*", True),
        ("-labels.team:*", False),
        ("labels.other!=x", True),
        ("state=RUNNING labels.team=blue", False),
        ("state=RUNNING AND labels.team=red-1", True),
        ("state=FAILED OR state=RUNNING", True),
        ("state=FAILED OR (state=RUNNING AND NOT labels.team=red-1)", False),
        ("state=(FAILED OR RUNNING)", True),
        ("labels.team=blue AND state=RUNNING OR state=FAILED", False),
        ("time>2026-11-30T02:29:59Z", True),
        ('time >= "2026-11-30T03:30:00+01:00"', True),
        ('time = "2026-11-30T02:30:00Z"', True),
        ("time<2026-11-30", False),
    ],
)
def test_filters_choose(text: str, accepted: bool) -> None:
    assert _accepts(text) is accepted


@pytest.mark.parametrize(
    "text", ["state", "state=", "=x", "(state=x", "state=x)", "colour=red", "time>noon", 'state="x']
)
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(ApiError):
        _accepts(text)


def test_what_is_not_known_may_still_be_wanted() -> None:
    unknown = {"state": UNKNOWN}
    assert _accepts("state=x AND labels.team=red-1", **unknown)
    assert _accepts("NOT state=x", **unknown)
    assert not _accepts("state=x AND labels.team=blue", **unknown)
    assert not _accepts("(state=x OR name=y) AND NOT labels.team=red-1", **unknown)


@given(st.text())
def test_every_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ApiError):
        assert isinstance(parse_filter(text, FIELDS), Filter)


@given(st.text(st.characters(exclude_characters='*"\\', exclude_categories=["Cs"]), min_size=1))
def test_a_quoted_value_matches_itself(value: str) -> None:
    assert parse_filter(f'labels.k="{value}"', FIELDS).accepts({"labels.k": value}.get)
