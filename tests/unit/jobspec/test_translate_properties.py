"""Rules that hold for every job, valid or broken."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from trainops.errors import ConfigError
from trainops.jobspec.tables.machines import GPU_COUNTS
from trainops.jobspec.tables.scale_tiers import LEGACY_MACHINES
from trainops.jobspec.tables.substitutes import RETIRED_GPUS
from trainops.jobspec.training_input import TrainingInput, parse_training_input
from trainops.jobspec.translate import Translation, translate

ROLES = ("master", "worker", "parameterServer", "evaluator")
TEXT = st.text(max_size=8)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.sampled_from(["CUSTOM", "n1-standard-8", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def equipment(draw: st.DrawFn) -> tuple[str, str | None, int]:
    """A machine with an accelerator and count that fit, or without."""
    if draw(st.booleans()):
        plain = [name for name, setup in LEGACY_MACHINES.items() if setup.accelerator is None]
        return draw(st.sampled_from(["n1-standard-4", "e2-highmem-16", *plain])), None, 0
    machine = draw(st.sampled_from(sorted(GPU_COUNTS)))
    gpu = draw(st.sampled_from([kind for kind in GPU_COUNTS[machine] if kind not in RETIRED_GPUS]))
    return machine, gpu, draw(st.sampled_from(GPU_COUNTS[machine][gpu]))


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    """A valid CUSTOM job."""
    fields: dict[str, Any] = {
        "scaleTier": "CUSTOM",
        "region": "us-central1",
        "runtimeVersion": draw(st.sampled_from(["1.15", "2.3", "2.11", "2.17"])),
        "pythonModule": "trainer.task",
        "packageUris": [f"gs://b/{index}.tar.gz" for index in range(draw(st.integers(1, 4)))],
        "args": draw(st.lists(st.text(max_size=6).filter(lambda arg: not arg.startswith("--job-dir")), max_size=4)),
        "scheduling": {"priority": draw(st.integers(0, 1000)), "maxRunningTime": f"{draw(st.integers(1, 10**6))}s"},
    }
    for role in ROLES:
        machine, gpu, count = draw(equipment())
        fields[f"{role}Type"] = machine
        if gpu is not None:
            fields[f"{role}Config"] = {"acceleratorConfig": {"type": gpu, "count": str(count)}}
        if role != "master":
            fields[f"{role}Count"] = str(draw(st.integers(0, 20)))
    return fields


def _translate(fields: Any) -> Translation:
    spec = parse_training_input(fields, "job")
    return translate(spec, display_name="d", labels={}, substitute="warn")


def _outcome(fields: Any) -> Translation | ConfigError:
    try:
        return _translate(fields)
    except ConfigError as error:
        return error


@given(jobs())
@settings(max_examples=60, deadline=None)
def test_replicas_accelerators_packages_and_arguments_are_kept(fields: dict[str, Any]) -> None:
    found = _translate(fields)
    counts = [1, *(int(fields[f"{role}Count"]) for role in ROLES[1:])]
    pools = [pool for pool in found.job["jobSpec"]["workerPoolSpecs"] if pool]
    assert sum(int(pool["replicaCount"]) for pool in pools) == sum(counts) == sum(found.machines.values())
    wanted = [
        replicas * int(fields.get(f"{role}Config", {}).get("acceleratorConfig", {}).get("count", 0))
        for role, replicas in zip(ROLES, counts, strict=True)
    ]
    assert sum(found.accelerators.values()) == sum(wanted)
    for pool in pools:
        assert pool["pythonPackageSpec"]["packageUris"] == fields["packageUris"]
        assert pool["pythonPackageSpec"].get("args", []) == fields["args"]


@given(jobs(), st.data())
@settings(max_examples=120, deadline=None)
def test_a_mutated_job_is_translated_or_refused_by_name(fields: dict[str, Any], data: st.DataObject) -> None:
    broken = copy.deepcopy(fields)
    names = [field.alias or name for name, field in TrainingInput.model_fields.items()]
    for _ in range(data.draw(st.integers(1, 3))):
        target = data.draw(st.sampled_from([broken, *(value for value in broken.values() if isinstance(value, dict))]))
        key = data.draw(st.sampled_from(sorted(target) or ["x"]) | st.sampled_from(names) | TEXT)
        target[key] = data.draw(ANYTHING | st.sampled_from(list(fields.values())))
    outcome = _outcome(broken)
    assert outcome.problem if isinstance(outcome, ConfigError) else outcome.job["jobSpec"]["workerPoolSpecs"]


@given(ANYTHING | st.dictionaries(st.sampled_from(list(TrainingInput.model_fields)), ANYTHING, max_size=5))
@settings(max_examples=120, deadline=None)
def test_no_body_whatever_gives_a_traceback(body: Any) -> None:
    assert isinstance(_outcome(body), ConfigError | Translation)
