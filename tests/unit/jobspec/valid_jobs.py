"""Valid training jobs for property tests, with what their pools ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from trainops.jobspec.tables.machines import GPU_COUNTS
from trainops.jobspec.tables.scale_tiers import LEGACY_MACHINES, SCALE_TIERS, Accelerator
from trainops.jobspec.tables.substitutes import MISREAD_MACHINES, RETIRED_GPUS, RETIRED_MACHINES

ROLES = ("master", "worker", "parameterServer", "evaluator")
PLAIN = sorted({"n1-standard-4", "e2-highmem-16", *RETIRED_MACHINES, *MISREAD_MACHINES})
"""Machines without accelerators, some of which Vertex AI training has not."""
LEGACY = sorted(name for name in LEGACY_MACHINES if name != "cloud_tpu")
LETTERS = st.characters(codec="utf-8", exclude_characters="\0")
ARGUMENTS = st.lists(st.text(LETTERS, max_size=6).filter(lambda arg: not arg.startswith("--job-dir")), max_size=4)


@dataclass(frozen=True)
class Wanted:
    """What a pool of a valid job asks for; `machine` is the user's word for it."""

    machine: str
    replicas: int
    accelerator: Accelerator | None

    @property
    def accelerators(self) -> int:
        """Accelerators over all replicas."""
        return self.replicas * (self.accelerator.count if self.accelerator else 0)


@dataclass(frozen=True)
class Job:
    """A valid TrainingInput, and what its pools ask for by their position."""

    fields: dict[str, Any]
    pools: dict[int, Wanted]


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """A valid job: a package on a prebuilt image, or a container, on a fixed tier or a cluster of any pools."""
    package = draw(st.booleans())
    fields, pools = draw(_clusters() if draw(st.integers(0, 3)) else _tiers())
    fields |= draw(_packages() if package else st.just({}))
    if not package:
        fields["masterConfig"] = {**fields.get("masterConfig", {}), "imageUri": "gcr.io/my-project/trainer:1"}
    fields |= {"region": draw(st.sampled_from(["us-central1", "europe-west4"])), "args": draw(ARGUMENTS)}
    fields |= draw(_job_wide())
    return Job(fields, pools)


@st.composite
def _packages(draw: st.DrawFn) -> dict[str, Any]:
    runtime = draw(st.sampled_from(["1.8", "1.15", "2.3", "2.10", "2.11", "2.17"]))
    kinds = st.sampled_from([".tar.gz", ".whl"])
    uris = [f"gs://my-bucket/{index}{draw(kinds)}" for index in range(draw(st.integers(1, 4)))]
    return {"runtimeVersion": runtime, "pythonModule": "trainer.task", "packageUris": uris}


@st.composite
def _tiers(draw: st.DrawFn) -> tuple[dict[str, Any], dict[int, Wanted]]:
    tier = draw(st.sampled_from(sorted(set(SCALE_TIERS) - {"BASIC_TPU"})))
    pools = {ROLES.index(row.role): Wanted(tier, row.replicas, row.setup.accelerator) for row in SCALE_TIERS[tier]}
    return {"scaleTier": tier}, pools


@st.composite
def _clusters(draw: st.DrawFn) -> tuple[dict[str, Any], dict[int, Wanted]]:
    fields: dict[str, Any] = {"scaleTier": "CUSTOM"}
    pools: dict[int, Wanted] = {}
    for index, role in enumerate(ROLES):
        replicas = 1 if index == 0 else draw(st.sampled_from([0, 1, 3, 20, 1000]))
        machine, accelerator, config = draw(_equipment())
        fields[f"{role}Type"] = machine
        if config:
            fields[f"{role}Config"] = config
        if index:
            fields[f"{role}Count"] = draw(st.sampled_from([replicas, str(replicas)]))
        if replicas:
            pools[index] = Wanted(machine, replicas, accelerator)
    return fields, pools


@st.composite
def _equipment(draw: st.DrawFn) -> tuple[str, Accelerator | None, dict[str, Any]]:
    """A machine, the accelerator that it has or is given, and the ReplicaConfig that says so."""
    disk = {"bootDiskSizeGb": draw(st.integers(100, 64000)), "bootDiskType": draw(st.sampled_from(["pd-ssd"]))}
    kind = draw(st.sampled_from(["plain", "legacy", "given", "built in"]))
    if kind == "plain":
        return draw(st.sampled_from(PLAIN)), None, {"diskConfig": disk} if draw(st.booleans()) else {}
    if kind == "legacy":
        legacy = draw(st.sampled_from(LEGACY))
        return legacy, LEGACY_MACHINES[legacy].accelerator, {}
    machine = draw(st.sampled_from(sorted(name for name in GPU_COUNTS if name.startswith("n1-"))))
    if kind == "built in":
        machine = draw(st.sampled_from(["a2-highgpu-4g", "g2-standard-24"]))
    gpu = draw(st.sampled_from([*GPU_COUNTS[machine]]))
    count = draw(st.sampled_from(GPU_COUNTS[machine][gpu]))
    if gpu in RETIRED_GPUS and not any(count in GPU_COUNTS[machine].get(other, ()) for other in RETIRED_GPUS[gpu]):
        gpu = "NVIDIA_TESLA_T4"
    return machine, Accelerator(gpu, count), {"acceleratorConfig": {"type": gpu, "count": draw(_written(count))}}


def _written(number: int) -> st.SearchStrategy[Any]:
    return st.sampled_from([number, str(number)])


@st.composite
def _job_wide(draw: st.DrawFn) -> dict[str, Any]:
    every: dict[str, Any] = {
        "jobDir": "gs://my-bucket/job",
        "scheduling": {"priority": draw(st.integers(0, 1000)), "maxRunningTime": f"{draw(st.integers(1, 10**6))}s"},
        "network": "projects/1/global/networks/default",
        "serviceAccount": "trainer@my-project.iam.gserviceaccount.com",
        "enableWebAccess": draw(st.booleans()),
        "useChiefInTfConfig": draw(st.booleans()),
        "encryptionConfig": {"kmsKeyName": "projects/p/locations/l/keyRings/r/cryptoKeys/k"},
        "vertex": {"labels": {"team": "speech"}, "env": {"SEED": "1"}, "strategy": draw(st.sampled_from(["SPOT"]))},
        "job": {"jobId": "job_1", "labels": {"owner": "me"}},
    }
    return {name: every[name] for name in draw(st.lists(st.sampled_from(sorted(every)), unique=True, max_size=4))}
