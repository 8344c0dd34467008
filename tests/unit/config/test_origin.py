"""A model to go on from is a folder in a bucket, or MODEL@CHANNEL."""

from __future__ import annotations

import pytest

from trainops.config.origin import check_origin, promoted_model
from trainops.validation import Refused


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("stdlib-tiny@production", ("stdlib-tiny", "production")),
        ("a@candidate", ("a", "candidate")),
        ("gs://my-bucket/models/first", None),
        ("gs://my-bucket/models/first@production", None),
    ],
)
def test_a_name_with_a_channel_is_a_promoted_model(text: str, found: tuple[str, str] | None) -> None:
    assert check_origin(text) == text
    assert promoted_model(text) == found


@pytest.mark.parametrize("text", ["", "@", "stdlib-tiny", "@production", "gs://my-bucket", "/models/a", "A@production"])
def test_everything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(Refused) as caught:
        check_origin(text)
    assert "MODEL@CHANNEL such as stdlib-tiny@production" in caught.value.next_step


@pytest.mark.parametrize("text", ["tiny@", "tiny@prod", "tiny@production@1"])
def test_channels_that_there_are_not_are_refused_with_those_that_there_are(text: str) -> None:
    with pytest.raises(Refused) as caught:
        check_origin(text)
    assert caught.value.allowed == ["tiny@production", "tiny@candidate"]
