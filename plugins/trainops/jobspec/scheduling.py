"""Limits of time, provisioning and restarts."""

from __future__ import annotations

from typing import Any

from trainops.jobspec import tpus
from trainops.jobspec.notes import Notebook
from trainops.jobspec.pools import Pool
from trainops.jobspec.training_input import Scheduling, TrainingInput
from trainops.jobspec.wire import seconds

_TARGET = "jobSpec.scheduling"
_LONGEST = 315_576_000_000
_SHORTEST_WAIT = 1800
_WEEK = 604_800
_HIGHEST_PRIORITY = 1000
_FLEX_GPUS = (
    "NVIDIA_L4",
    "NVIDIA_TESLA_A100",
    "NVIDIA_A100_80GB",
    "NVIDIA_H100_80GB",
    "NVIDIA_H100_MEGA_80GB",
    "NVIDIA_H200_141GB",
    "NVIDIA_B200",
)


def scheduling(spec: TrainingInput, pools: list[Pool], notebook: Notebook) -> dict[str, Any]:
    """Return the Scheduling of the job; empty when nothing is said.

    :raises ConfigError: a value out of range, or a strategy that the machines or the other fields do not allow.
    """
    if spec.scheduling == Scheduling():
        notebook.mapped("scheduling", {}, "", "empty")
    _check_strategy(spec, pools, notebook)
    _note_priority(spec, notebook)
    found = {
        "strategy": spec.vertex.strategy,
        "timeout": _timeout(spec, notebook),
        "maxWaitDuration": _longest_wait(spec, notebook),
        **_restarts(spec, notebook),
    }
    return {name: value for name, value in found.items() if value not in {None, False}}


def _check_strategy(spec: TrainingInput, pools: list[Pool], notebook: Notebook) -> None:
    strategy = spec.vertex.strategy
    if strategy is None:
        return
    key = "vertex.strategy"
    if strategy == "SPOT" and any(tpus.is_pod(pool.equipment.accelerator) for pool in pools):
        raise notebook.error(
            key, "TPU Pods cannot be Spot", value=strategy, allowed=["STANDARD"], next_step="leave it out"
        )
    if strategy == "FLEX_START":
        _check_flex_start(pools, key, notebook)
    notebook.mapped(key, strategy, f"{_TARGET}.strategy")


def _check_flex_start(pools: list[Pool], key: str, notebook: Notebook) -> None:
    first = pools[0].equipment
    if first.accelerator is None or first.accelerator.type not in _FLEX_GPUS:
        raise notebook.error(
            key,
            f"FLEX_START is for jobs on {', '.join(_FLEX_GPUS)}",
            value=str(first),
            next_step="choose one of these GPUs",
        )
    other = next((pool for pool in pools if pool.equipment != first), None)
    if other is not None:
        raise notebook.error(
            key,
            f"FLEX_START needs the same machines in all pools; the {other.role} pool has {other.equipment}",
            value=str(first),
            next_step="give every pool the same machine type and accelerators",
        )


def _note_priority(spec: TrainingInput, notebook: Notebook) -> None:
    priority = spec.scheduling.priority if spec.scheduling else None
    if priority is None:
        return
    key = "scheduling.priority"
    if not 0 <= priority <= _HIGHEST_PRIORITY:
        raise notebook.error(
            key, f"a priority is 0 to {_HIGHEST_PRIORITY}", value=priority, next_step="larger numbers go first"
        )
    notebook.changed(key, priority, "", "not sent: Vertex AI has no priority; the GPU queue of Trainops has one")


def _timeout(spec: TrainingInput, notebook: Notebook) -> str | None:
    given = spec.scheduling.max_running_time if spec.scheduling else None
    if given is None:
        text = "7 days, the default of Vertex AI as it was of AI Platform"
        notebook.defaulted("scheduling.maxRunningTime", None, f"{_TARGET}.timeout", text)
        return None
    key, length = "scheduling.maxRunningTime", seconds(given)
    limit = _WEEK if spec.vertex.strategy == "FLEX_START" else _LONGEST
    if not 0 < length <= limit:
        raise notebook.error(
            key,
            f"a running time is more than 0s and at most {limit}s",
            value=given,
            next_step=f"write a time between, or leave it out for {_WEEK}s",
        )
    notebook.mapped(key, given, f"{_TARGET}.timeout")
    return given


def _longest_wait(spec: TrainingInput, notebook: Notebook) -> str | None:
    flexible = spec.vertex.strategy == "FLEX_START"
    target = f"{_TARGET}.maxWaitDuration"
    asked = spec.scheduling.max_wait_time if spec.scheduling else None
    given = spec.vertex.max_wait_duration
    if given is not None:
        _check_wait(given, flexible, notebook)
        notebook.mapped("vertex.maxWaitDuration", given, target)
    if asked is None:
        return given
    key = "scheduling.maxWaitTime"
    if not _SHORTEST_WAIT <= seconds(asked) <= _LONGEST:
        raise notebook.error(
            key,
            f"a waiting time is {_SHORTEST_WAIT}s to {_LONGEST}s",
            value=asked,
            next_step="write a time between, or leave it out",
        )
    if given is not None:
        notebook.changed(key, asked, "", "not sent: vertex.maxWaitDuration stands for it")
        return given
    if flexible:
        notebook.mapped(key, asked, target)
        return asked
    text = "not sent: Vertex AI limits the wait of FLEX_START jobs only; the GPU queue of Trainops limits others"
    notebook.changed(key, asked, "", text)
    return None


def _check_wait(given: str, flexible: bool, notebook: Notebook) -> None:
    key = "vertex.maxWaitDuration"
    if not flexible:
        raise notebook.error(
            key,
            "only FLEX_START jobs have it",
            value=given,
            next_step="set vertex.strategy to FLEX_START, or leave it out",
        )
    if seconds(given) > _LONGEST:
        raise notebook.error(key, f"a waiting time is at most {_LONGEST}s", value=given, next_step="0s waits for ever")


def _restarts(spec: TrainingInput, notebook: Notebook) -> dict[str, Any]:
    vertex = spec.vertex
    if vertex.disable_retries and vertex.restart_job_on_worker_restart:
        raise notebook.error(
            "vertex.restartJobOnWorkerRestart",
            "disableRetries forbids it",
            value=True,
            next_step="leave one of them out",
        )
    found: dict[str, Any] = {}
    for key, value in (
        ("restartJobOnWorkerRestart", vertex.restart_job_on_worker_restart),
        ("disableRetries", vertex.disable_retries),
    ):
        if value is not None:
            notebook.mapped(f"vertex.{key}", value, f"{_TARGET}.{key}")
            found[key] = value
    return found
