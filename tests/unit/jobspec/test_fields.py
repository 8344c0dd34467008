"""The table of fields is whole, and says what the translation does."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainops.errors import ConfigError
from trainops.jobspec.hyperparameters import HyperparameterSpec, ParameterSpec
from trainops.jobspec.notes import Note
from trainops.jobspec.spelling import job_folded_in
from trainops.jobspec.tables.fields import FIELDS, FieldRow
from trainops.jobspec.training_input import (
    AcceleratorConfig,
    DiskConfig,
    EncryptionConfig,
    ReplicaConfig,
    Scheduling,
    TrainingInput,
    parse_training_input,
)
from trainops.jobspec.translate import Images, translate
from trainops.jobspec.tuning import translate_tuning
from trainops.jobspec.wire import Wire

MODELS: tuple[type[Wire], ...] = (
    TrainingInput,
    ReplicaConfig,
    AcceleratorConfig,
    DiskConfig,
    Scheduling,
    EncryptionConfig,
    HyperparameterSpec,
    ParameterSpec,
)
INNER = {
    **{("TrainingInput", f"{role}Config"): "ReplicaConfig" for role in ("master", "worker", "evaluator")},
    ("TrainingInput", "parameterServerConfig"): "ReplicaConfig",
    ("TrainingInput", "scheduling"): "Scheduling",
    ("TrainingInput", "encryptionConfig"): "EncryptionConfig",
    ("TrainingInput", "hyperparameters"): "HyperparameterSpec",
    ("ReplicaConfig", "acceleratorConfig"): "AcceleratorConfig",
    ("ReplicaConfig", "diskConfig"): "DiskConfig",
    ("HyperparameterSpec", "params"): "ParameterSpec",
}
"""Message and field -> the message that the field holds."""

BASE: dict[str, Any] = {
    "region": "us-central1",
    "packageUris": ["gs://my-bucket/trainer.tar.gz"],
    "pythonModule": "trainer.task",
    "runtimeVersion": "2.11",
}
DOUBLE = {"parameterName": "lr", "type": "DOUBLE", "minValue": 0.1, "maxValue": 1.0, "scaleType": "UNIT_LOG_SCALE"}
CHOICE = {"parameterName": "opt", "type": "CATEGORICAL", "categoricalValues": ["adam", "sgd"]}
STEPS = {"parameterName": "batch", "type": "DISCRETE", "discreteValues": [16, 32]}
LAYERS = {"parameterName": "layers", "type": "INTEGER", "minValue": 1, "maxValue": 4}
TUNING: dict[str, Any] = {
    "goal": "MINIMIZE",
    "params": [DOUBLE, CHOICE, STEPS, LAYERS],
    "maxTrials": 8,
    "maxParallelTrials": 2,
    "maxFailedTrials": 3,
    "hyperparameterMetricTag": "loss",
    "enableTrialEarlyStopping": True,
    "algorithm": "RANDOM_SEARCH",
}
CLUSTER: dict[str, Any] = {
    "scaleTier": "CUSTOM",
    **{f"{role}Type": "n1-standard-4" for role in ("master", "worker", "parameterServer", "evaluator")},
    **{f"{role}Count": 1 for role in ("worker", "parameterServer", "evaluator")},
    **{
        f"{role}Config": {"diskConfig": {"bootDiskSizeGb": 100, "bootDiskType": "pd-ssd"}}
        for role in ("worker", "parameterServer", "evaluator")
    },
    "masterConfig": {"acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": 1}},
}
KEY = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
RESERVED = {"imageUri": "gcr.io/p/i", "containerCommand": ["a"], "containerArgs": ["b"]}
TPU_IMAGE = {"workerConfig": {"imageUri": "gcr.io/p/i", "tpuTfVersion": "2.12"}}

ROLES = ("master", "worker", "parameterServer", "evaluator")


def _every_pool(machine: str, config: dict[str, Any]) -> dict[str, Any]:
    """A cluster of the same machine in all four pools."""
    types = {f"{role}Type": machine for role in ROLES}
    counts = {f"{role}Count": 1 for role in ROLES[1:]}
    return {"scaleTier": "CUSTOM"} | types | counts | {f"{role}Config": config for role in ROLES}


def _tuned(*params: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return BASE | {"hyperparameters": {"params": list(params), **fields}}


TAKEN: list[dict[str, Any]] = [
    BASE | {"scaleTier": "STANDARD_1", "jobDir": "gs://b/j", "args": ["--a"], "pythonVersion": "3.7"},
    BASE | {"scaleTier": "BASIC_GPU", "args": ["--job-dir=x"], "jobDir": "gs://b/j", "enableWebAccess": True},
    BASE | CLUSTER | {"network": "projects/1/global/networks/n", "serviceAccount": "a@b.c"},
    BASE | {"encryptionConfig": {"kmsKeyName": KEY}, "useChiefInTfConfig": True},
    BASE | {"encryptionConfig": {}, "useChiefInTfConfig": False, "masterConfig": {}},
    BASE | {"scheduling": {"maxRunningTime": "3600s", "maxWaitTime": "3600s", "priority": 5}},
    BASE | {"runtimeVersion": "1.13", "pythonVersion": "2.7"},
    BASE | {"vertex": {"strategy": "SPOT", "labels": {"a": "b"}, "env": {"A": "b"}}, "job": {"jobId": "x"}},
    BASE | {"job": {"labels": {"a": "b"}, "state": "SUCCEEDED"}},
    BASE
    | CLUSTER
    | {"workerCount": 0, "evaluatorCount": 0, "parameterServerCount": 0, "masterType": "large_model_v100"}
    | {"masterConfig": {"diskConfig": {}, "acceleratorConfig": {}}},
    BASE | {"scaleTier": "CUSTOM", "masterType": "a2-highgpu-1g"},
    BASE | {"scaleTier": "CUSTOM", "masterType": "complex_model_m_gpu", "runtimeVersion": "2.11"},
    BASE
    | {"scaleTier": "CUSTOM", "masterType": "n1-standard-8"}
    | {"masterConfig": {"acceleratorConfig": {"type": "NVIDIA_TESLA_K80", "count": 1}}},
    {"region": "us-central1", "packageUris": [], "args": ["--a"]}
    | {"masterConfig": {"imageUri": "gcr.io/cloud-aiplatform/training/tf-cpu.2-3:latest"}, "pythonVersion": "3.7"},
    {"region": "us-central1"}
    | {"masterConfig": {"imageUri": "gcr.io/p/i", "containerCommand": ["a"], "containerArgs": ["b"]}},
    {"region": "us-central1", "scaleTier": "BASIC_TPU", "masterConfig": {"imageUri": "gcr.io/p/i"}} | TPU_IMAGE,
    BASE | {"scheduling": {}, "vertex": {"labels": {"managed-by": "me"}}},
    {key: value for key, value in BASE.items() if key != "runtimeVersion"},
    {"region": "us-central1", "scaleTier": "CUSTOM", "masterType": "ct5lp-hightpu-1t"}
    | {"masterConfig": {"imageUri": "gcr.io/p/i"}},
    BASE | _every_pool("a2-highgpu-1g", {}),
    BASE
    | {"scheduling": {"maxWaitTime": "3600s"}, "vertex": {"strategy": "FLEX_START"}}
    | {"scaleTier": "CUSTOM", "masterType": "a2-highgpu-1g"},
    BASE | _every_pool("complex_model_s", {}),
    BASE
    | _every_pool("n1-standard-4", {"acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": 1}})
    | {"vertex": {"reductionServer": True}, "parameterServerConfig": RESERVED},
    BASE | {"hyperparameters": TUNING, "jobDir": "gs://b/j"},
    _tuned(DOUBLE | {"discreteValues": [1.0], "categoricalValues": ["a"]}, enableTrialEarlyStopping=False),
    _tuned(CHOICE | {"minValue": 1, "maxValue": 2, "scaleType": "UNIT_LINEAR_SCALE"}, maxFailedTrials=0),
    _tuned(STEPS, goal="GOAL_TYPE_UNSPECIFIED", algorithm="GRID_SEARCH"),
]

REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("scaleTier", BASE | {"scaleTier": "STANDARD_1"}),
    ("masterType", BASE | {"scaleTier": "CUSTOM"}),
    ("workerType", BASE | {"scaleTier": "CUSTOM", "masterType": "n1-standard-4", "workerCount": 1}),
    ("parameterServerType", BASE | CLUSTER | {"parameterServerType": "n1-standard-5"}),
    ("evaluatorType", BASE | {"scaleTier": "BASIC", "evaluatorType": "n1-standard-4"}),
    ("workerConfig", BASE | {"scaleTier": "BASIC", "workerConfig": {}}),
    ("parameterServerConfig", BASE | {"scaleTier": "BASIC", "parameterServerConfig": {}}),
    ("evaluatorConfig", BASE | {"scaleTier": "BASIC", "evaluatorConfig": {}}),
    *((f"{role}Count", BASE | CLUSTER | {f"{role}Count": -1}) for role in ("worker", "parameterServer", "evaluator")),
    ("packageUris", BASE | {"packageUris": ["trainer.tar.gz"]}),
    ("pythonModule", BASE | {"pythonModule": None}),
    ("args", BASE | {"args": ["a" * 100_001]}),
    ("hyperparameters", BASE | {"hyperparameters": TUNING}),
    ("region", BASE | {"region": "us-central1-a"}),
    ("jobDir", BASE | {"jobDir": "/tmp/x"}),
    ("runtimeVersion", BASE | {"runtimeVersion": "3.1"}),
    ("pythonVersion", BASE | {"pythonVersion": "3.13"}),
    ("network", BASE | {"network": "default"}),
    ("vertex", BASE | {"serviceAccount": "a@b.c", "vertex": {"serviceAccount": "d@b.c"}}),
    ("job", BASE | {"job": {"predictionInput": {}}}),
    ("masterConfig.acceleratorConfig", BASE | {"masterConfig": CLUSTER["masterConfig"]}),
    (
        "masterConfig.imageUri",
        {"region": "us-central1", "masterConfig": {"imageUri": "gcr.io/cloud-aiplatform/training/tf-cpu.2-3:latest"}},
    ),
    ("masterConfig.containerCommand", BASE | {"masterConfig": {"containerCommand": ["a"]}}),
    ("masterConfig.containerArgs", BASE | {"masterConfig": {"containerArgs": ["a"]}}),
    ("masterConfig.tpuTfVersion", BASE | {"masterConfig": {"tpuTfVersion": "2.3"}}),
    (
        "masterConfig.acceleratorConfig.count",
        BASE | CLUSTER | {"masterConfig": {"acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": 3}}},
    ),
    (
        "masterConfig.acceleratorConfig.type",
        BASE | CLUSTER | {"masterConfig": {"acceleratorConfig": {"type": "NVIDIA_L4", "count": 1}}},
    ),
    ("masterConfig.diskConfig.bootDiskSizeGb", BASE | {"masterConfig": {"diskConfig": {"bootDiskSizeGb": 10}}}),
    ("masterConfig.diskConfig.bootDiskType", BASE | {"masterConfig": {"diskConfig": {"bootDiskType": "tape"}}}),
    ("scheduling.maxRunningTime", BASE | {"scheduling": {"maxRunningTime": "0s"}}),
    ("scheduling.maxWaitTime", BASE | {"scheduling": {"maxWaitTime": "60s"}}),
    ("scheduling.priority", BASE | {"scheduling": {"priority": 1001}}),
    ("encryptionConfig.kmsKeyName", BASE | {"encryptionConfig": {"kmsKeyName": "k"}}),
    ("hyperparameters.params", _tuned()),
    ("hyperparameters.maxTrials", _tuned(CHOICE, maxTrials=0)),
    ("hyperparameters.maxParallelTrials", _tuned(CHOICE, maxParallelTrials=0)),
    ("hyperparameters.maxFailedTrials", _tuned(CHOICE, maxFailedTrials=-1)),
    ("hyperparameters.hyperparameterMetricTag", _tuned(CHOICE, hyperparameterMetricTag="the loss")),
    ("hyperparameters.resumePreviousJobId", _tuned(CHOICE, resumePreviousJobId="job_1")),
    ("hyperparameters.algorithm", _tuned(DOUBLE, algorithm="GRID_SEARCH")),
    ("hyperparameters.params.0.parameterName", _tuned(CHOICE | {"parameterName": None})),
    ("hyperparameters.params.0.type", _tuned(CHOICE | {"type": None})),
    ("hyperparameters.params.0.minValue", _tuned(LAYERS | {"minValue": 0.5})),
    ("hyperparameters.params.0.maxValue", _tuned(DOUBLE | {"maxValue": 0})),
    ("hyperparameters.params.0.categoricalValues", _tuned(CHOICE | {"categoricalValues": []})),
    ("hyperparameters.params.0.discreteValues", _tuned(STEPS | {"discreteValues": [2, 1]})),
    ("hyperparameters.params.0.scaleType", _tuned(DOUBLE | {"minValue": 0})),
]
"""The field that the error names, and a job that is refused for it under `substitute: refuse`."""

DIFFERS = {"serviceAccount", "enableWebAccess"}
"""Refused only beside another value under `vertex`, which the error names."""


def _place(path: str) -> tuple[str, str]:
    """Return the message and the field that a dotted path leads to; what is under `vertex` or `job` is theirs."""
    message, field = "TrainingInput", ""
    for part in path.split("."):
        if part.isdigit():
            continue
        if field:
            if (message, field) not in INNER:
                break
            message = INNER[message, field]
        field = part
    return message, field


def _row(path: str) -> FieldRow:
    message, field = _place(path)
    return FIELDS[message][field]


def _notes(fields: dict[str, Any]) -> list[Note]:
    spec = parse_training_input(copy.deepcopy(fields), "job.yaml")
    send = translate_tuning if "hyperparameters" in fields else translate
    images = Images(cpu="gcr.io/p/i") if "runtimeVersion" not in fields else None
    labels = {"managed-by": "trainops"}
    return send(
        spec, display_name="job", labels=labels, substitute="warn", images=images, service_account="e@f.g"
    ).notes


def _given(value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of all leaves that have a row of their own."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        value = {str(index): item for index, item in enumerate(value)}
    opened = not path or path.rsplit(".", 1)[-1].isdigit() or _place(path) in INNER
    if isinstance(value, dict) and value and opened:
        for key, inner in value.items():
            yield from _given(inner, f"{path}.{key}" if path else key)
    else:
        yield path


def _agrees(target: str, row: FieldRow) -> bool:
    plain = re.sub(r"\[\d+\]", "[]", target).replace("trialJobSpec", "jobSpec")
    known = any(plain.startswith(one) or one.startswith(plain) for one in row.targets)
    return plain == "" or known


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_field_has_a_row_and_every_row_a_field(model: type[Wire]) -> None:
    assert set(FIELDS[model.__name__]) == {field.alias for field in model.model_fields.values()}


def test_every_message_of_the_table_has_a_model() -> None:
    assert list(FIELDS) == [model.__name__ for model in MODELS]


ON_FILE = sorted((Path(__file__).parent / "golden").glob("**/inputs/*.yaml"))


@pytest.mark.parametrize(
    "fields",
    [*TAKEN, *(job_folded_in(yaml.safe_load(path.read_text()), path.name) for path in ON_FILE)],
    ids=[*range(len(TAKEN)), *(path.stem for path in ON_FILE)],
)
def test_notes_say_what_the_rows_say(fields: dict[str, Any]) -> None:
    for note in _notes(fields):
        row = _row(note.field)
        assert note.verdict in row.verdicts, note
        assert _agrees(note.target, row), note


@pytest.mark.parametrize("fields", TAKEN, ids=range(len(TAKEN)))
def test_every_field_that_is_given_is_noted(fields: dict[str, Any]) -> None:
    noted = {note.field for note in _notes(fields)}
    missing = [path for path in _given(fields) if not any(f"{path}.".startswith(f"{key}.") for key in noted)]
    # What is under `vertex` and `job` is noted key by key.
    assert [path for path in missing if not any(key.startswith(f"{path}.") for key in noted)] == []


def test_every_verdict_of_a_row_is_seen() -> None:
    seen: dict[tuple[str, str], set[str]] = {}
    for fields in TAKEN:
        notes = _notes(fields)
        for note in notes:
            seen.setdefault(_place(note.field), set()).add(note.verdict)
        for path in _given(fields):
            covering = [note.verdict for note in notes if f"{path}.".startswith(f"{note.field}.")]
            seen.setdefault(_place(path), set()).update(covering)
    rows = {(message, field): row for message, rows in FIELDS.items() for field, row in rows.items()}
    unseen = {place: set(row.verdicts) - seen.get(place, set()) for place, row in rows.items()}
    assert {place: verdicts for place, verdicts in unseen.items() if verdicts} == {}


@pytest.mark.parametrize(("path", "fields"), REFUSED, ids=[path for path, _ in REFUSED])
def test_a_refused_value_is_named(path: str, fields: dict[str, Any]) -> None:
    given = {key: value for key, value in fields.items() if value is not None}
    spec = parse_training_input(given, "job.yaml")
    send = translate_tuning if path.startswith("hyperparameters.") else translate
    with pytest.raises(ConfigError) as caught:
        send(spec, display_name="job", labels={}, substitute="refuse")
    assert f"{caught.value.key}.".startswith(f"{path}.")


def test_rows_that_refuse_something_are_those_that_were_seen_to() -> None:
    refusing = {field for rows in FIELDS.values() for field, row in rows.items() if row.refused}
    assert {_place(path)[1] for path, _ in REFUSED} | DIFFERS == refusing


@pytest.mark.parametrize("field", sorted(DIFFERS))
def test_two_values_for_one_field_are_refused(field: str) -> None:
    old, new = (True, False) if field == "enableWebAccess" else ("a@b.c", "d@b.c")
    with pytest.raises(ConfigError, match=f"vertex.{field}: differs from {field}"):
        _notes(BASE | {field: old, "vertex": {field: new}})


def test_a_row_with_no_verdict_always_refuses() -> None:
    assert [field for rows in FIELDS.values() for field, row in rows.items() if not (row.verdicts or row.refused)] == []
