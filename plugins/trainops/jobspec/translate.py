"""TrainingInput of AI Platform in, CustomJob of Vertex AI out, a note on every field. Pure: no clock, no network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainops.jobspec import needs, reduction_server, tpus
from trainops.jobspec.disks import disk_spec
from trainops.jobspec.images import Images
from trainops.jobspec.job_fields import (
    check_region,
    check_translatable,
    encryption,
    environment,
    job_labels,
    note_job_body,
    spec_fields,
)
from trainops.jobspec.limits import check_display_name
from trainops.jobspec.notes import Note, Notebook
from trainops.jobspec.pools import Pool, worker_pools
from trainops.jobspec.programs import check_complete, programs
from trainops.jobspec.reservations import nfs_mounts, reservation_affinity
from trainops.jobspec.scheduling import scheduling
from trainops.jobspec.training_input import TrainingInput

__all__ = ["Images", "Note", "Translation", "translate"]


@dataclass(frozen=True)
class Translation:
    """What a job became.

    :param job: CustomJob in REST JSON, or the HyperparameterTuningJob of `tuning`.
    :param region: region that the job is sent to.
    :param notes: what became of every field.
    :param accelerators: accelerator type -> number over all replicas.
    :param machines: machine type -> number of replicas.
    """

    job: dict[str, Any]
    region: str
    notes: list[Note]
    accelerators: dict[str, int]
    machines: dict[str, int]


def translate(
    spec: TrainingInput,
    *,
    display_name: str,
    labels: Mapping[str, str],
    substitute: str,
    images: Images | None = None,
    service_account: str | None = None,
    env: Mapping[str, str] | None = None,
) -> Translation:
    """Translate a training job.

    :param labels: labels of Trainops, set over the user's.
    :param substitute: allow, warn or refuse what is retired or impossible and has a declared substitute.
    :param images: images of the environment, which go before those of the runtime version.
    :param service_account: account of the environment, for jobs that name none.
    :param env: variables of every replica, set over the user's.
    :raises ConfigError: the job is not complete, or Vertex AI could not run it; the field and what fits are named.
    """
    notebook = Notebook(spec.source, substitute)
    images = images or Images()
    check_translatable(spec, notebook)
    check_display_name(display_name, notebook)
    note_job_body(spec, display_name, notebook)
    pools = worker_pools(spec, notebook)
    _check_tpus(spec, pools, notebook)
    reduction_server.check(spec, pools, notebook)
    check_complete(spec, pools, images, notebook)
    region = check_region(spec, notebook)
    job = {
        "displayName": display_name,
        "jobSpec": _job_spec(spec, pools, images, env or {}, service_account, notebook),
        "labels": job_labels(spec, labels, notebook),
        "encryptionSpec": encryption(spec, notebook),
    }
    job = {name: value for name, value in job.items() if value}
    return Translation(job, region, notebook.notes, needs.accelerators(job), needs.machines(job))


def _check_tpus(spec: TrainingInput, pools: list[Pool], notebook: Notebook) -> None:
    tpu_pools = [pool for pool in pools if pool.equipment.image_kind == "tpu"]
    if spec.vertex.tpu_topology is not None and not any(pool.equipment.topology for pool in tpu_pools):
        raise notebook.error(
            "vertex.tpuTopology",
            "no pool has a machine with a topology",
            value=spec.vertex.tpu_topology,
            next_step="name a TPU machine type, such as ct5lp-hightpu-4t, or leave it out",
        )
    for pool in tpu_pools:
        field = "scaleTier" if spec.scale_tier == "BASIC_TPU" else f"{pool.role}Type"
        if pool.replicas > 1:
            raise notebook.error(
                f"{pool.role}Count",
                "a TPU pool has one replica",
                value=pool.replicas,
                allowed=[1],
                next_step="take a larger TPU instead of more replicas",
            )
        if pool.index > 0 and pool.equipment.machine == tpus.CLOUD_TPU:
            text = "the program runs on the TPU VM itself; AI Platform ran it on the master, which called the TPU"
            notebook.changed(field, pool.equipment.machine, pool.target, text)


def _job_spec(
    spec: TrainingInput,
    pools: list[Pool],
    images: Images,
    env: Mapping[str, str],
    service_account: str | None,
    notebook: Notebook,
) -> dict[str, Any]:
    found = {
        "workerPoolSpecs": _worker_pool_specs(spec, pools, images, env, notebook),
        "scheduling": scheduling(spec, pools, notebook),
    }
    found |= spec_fields(spec, service_account, notebook)
    return {name: value for name, value in found.items() if value}


def _worker_pool_specs(
    spec: TrainingInput, pools: list[Pool], images: Images, env: Mapping[str, str], notebook: Notebook
) -> list[dict[str, Any]]:
    """Return the pools in their positions; `{}` stands for one that is skipped."""
    tasks = programs(spec, pools, images, environment(spec, env, notebook), notebook)
    affinities = reservation_affinity(spec, pools, notebook)
    shared = nfs_mounts(spec, notebook)
    specs: list[dict[str, Any]] = [{} for _ in range(pools[-1].index + 1)]
    for pool, task in zip(pools, tasks, strict=True):
        machine = _machine_spec(pool)
        if pool.index in affinities:
            machine["reservationAffinity"] = affinities[pool.index]
        disk = disk_spec(pool.config.disk_config)
        specs[pool.index] = {
            "machineSpec": machine,
            "replicaCount": str(pool.replicas),  # an int64: Google's own clients send it as text
            **({"diskSpec": disk} if disk else {}),
            **shared,
            **task,
        }
    return specs


def _machine_spec(pool: Pool) -> dict[str, Any]:
    equipment = pool.equipment
    machine: dict[str, Any] = {"machineType": equipment.machine}
    if equipment.accelerator is not None:
        machine |= {
            "acceleratorType": equipment.accelerator.type,
            "acceleratorCount": equipment.accelerator.count,
        }
    if equipment.topology is not None:
        machine["tpuTopology"] = equipment.topology
    return machine
