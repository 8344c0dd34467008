"""Valid training jobs with one thing wrong, for property tests."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from tests.unit.jobspec.valid_jobs import jobs


@dataclass(frozen=True)
class Mutation:
    """A valid job with one thing wrong in it.

    :param kind: drop, null, retype, number, misspell, extra or nested.
    :param path: the key that was changed, dotted.
    """

    kind: str
    path: str
    body: dict[str, Any]


KINDS = ("drop", "null", "retype", "number", "misspell", "extra", "nested")
NUMBERS = [
    -1,
    0,
    "0",
    "-1",
    2**31,
    2**63,
    "9223372036854775808",
    -(2**63) - 1,
    10**400,
    1.5,
    float("nan"),
    float("inf"),
]
WRONG: list[Any] = [True, 5, 1.5, "", "x", "1", "0s", "é", [], [1], [None], {}, {"a": 1}, [[]], "CUSTOM", "gs://"]


@st.composite
def mutations(draw: st.DrawFn, kinds: Sequence[str] = KINDS) -> Mutation:
    """Change one thing at any depth of a valid job."""
    body = copy.deepcopy(draw(jobs()).fields)
    kind = draw(st.sampled_from(kinds))
    holder, key, path = draw(st.sampled_from(list(places(body))))
    if kind == "extra":
        mappings = [(body, ""), *((place[0][place[1]], place[2]) for place in places(body))]
        holder, path = draw(st.sampled_from([(held, where) for held, where in mappings if isinstance(held, dict)]))
        key = draw(st.sampled_from(["scaletier", "workers", "x", "acceleratorConfigs", "", "é"]))
        holder[key] = draw(st.sampled_from(WRONG))
        return Mutation(kind, f"{path}.{key}" if path else key, body)
    value = holder[key]
    if kind == "drop":
        del holder[key]
    elif kind == "misspell" and isinstance(key, str):
        del holder[key]
        key = _misspelt(key, draw(st.randoms(use_true_random=False)))
        holder[key] = value
        path = ".".join([*path.split(".")[:-1], key])
    else:
        wrapped = [[value], {key: value}, {"value": value}, [[value]]]
        choices: dict[str, list[Any]] = {"null": [None], "number": NUMBERS, "nested": wrapped}
        holder[key] = draw(st.sampled_from(choices.get(kind, WRONG)))
    return Mutation(kind, path, body)


def places(value: Any, path: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Yield holder, key and dotted path of everything in a body."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        where = f"{path}.{key}" if path else str(key)
        yield value, key, where
        yield from places(inner, where)


def _misspelt(word: str, chance: random.Random) -> str:
    place = chance.randrange(len(word))
    return chance.choice([
        word[:place] + word[place + 1 :],
        word[:place] + "q" + word[place:],
        word.upper(),
        f"{word}s",
    ])
