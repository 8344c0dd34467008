"""Bodies and texts of any kind, for tests that nothing whatever gives a traceback; the same for the same seed."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel
from tests.unit.jobspec.mutations import places

from trainops.jobspec.training_input import TrainingInput


def _field_names(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield from (name, field.alias or name)
        for kind in _types(field.annotation):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from _field_names(kind)


def _types(annotation: Any) -> Iterator[Any]:
    yield annotation
    for inner in get_args(annotation):
        yield from _types(inner)


FIELD_NAMES = sorted({*_field_names(TrainingInput), "trainingInput", "training_input"})
"""Every field at every depth, in both spellings."""

HOSTILE: list[Any] = [
    None, True, 0, -1, 2**63, 10**400, 10**5000, -0.0, 1e308, float("nan"), float("inf"), "", "0", "1e400", "٣", "NaN",
    "9" * 5000, "\ud800", "a\udfff", "\x00", "\u202e", "é" * 300, "gs://my-bucket/a.whl", "CUSTOM", "n1-standard-8",
    "cloud_tpu", "3600s", "2.11", "1" * 30 + "s", "9999999999s", "NVIDIA_TESLA_K80", "TPU_V2", [], {}, [[]], [{}],
    "DOUBLE", "BASIC", "us-central1", "1.8",
]  # fmt: skip


def nested(depth: int) -> Any:
    """A value in many lists and mappings."""
    value: Any = "x"
    for level in range(depth):
        value = [value] if level % 2 else {"vertex": value}
    return value


DEPTHS = (60, 250, 450, 900, 3000)
WHOLE: dict[str, Any] = {
    "scaleTier": "CUSTOM", "region": "us-central1", "runtimeVersion": "2.11", "pythonModule": "trainer.task",
    "packageUris": ["gs://my-bucket/trainer.tar.gz"], "masterType": "n1-standard-8", "workerType": "n1-standard-8",
    "workerCount": 2, "workerConfig": {"acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": 1}},
}  # fmt: skip
TUNING: dict[str, Any] = {"params": [{"parameterName": "lr", "type": "DOUBLE", "minValue": 0.1, "maxValue": 1}]}


def random_job(chance: random.Random) -> Any:
    """A body of any kind, or a whole job in which a few fields hold anything."""
    body = random_body(chance)
    if chance.random() < 0.3:
        return body
    whole = copy.deepcopy(WHOLE | ({"hyperparameters": TUNING} if chance.random() < 0.5 else {}))
    for holder, key, _ in chance.sample(list(places(whole)), chance.choice([1, 1, 2, 3])):
        holder[key] = random_body(chance, depth=3)
    return whole | {chance.choice(FIELD_NAMES): random_body(chance, depth=3) for _ in range(chance.randrange(2))}


def random_body(chance: random.Random, depth: int = 0) -> Any:
    """Arbitrary JSON and beyond: half of the keys are those of real fields."""
    pick = chance.random()
    if depth >= 6 or (depth and pick < 0.5):
        return chance.choice(HOSTILE)
    if depth and pick < 0.51:
        return nested(chance.choice(DEPTHS))
    if depth and pick < 0.6:
        return [random_body(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {_key(chance): random_body(chance, depth + 1) for _ in range(chance.randrange(1, 4))}


def _key(chance: random.Random) -> Any:
    return chance.choice(FIELD_NAMES) if chance.random() < 0.5 else chance.choice(STRANGE_KEYS)


STRANGE_KEYS: list[Any] = [
    "x", "", "a.b", "é", "\ud800", "1", "scaletier", "master Type", 5, None, True, 1.5, "__proto__",
]  # fmt: skip
