"""How long a job may run and wait, and on which terms it gets machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from localcloud.vertex.machines import is_tpu_pod
from localcloud.vertex.problems import Problem

DEFAULT_TIMEOUT = "604800s"
DEFAULT_MAX_WAIT = "86400s"
_FLEX_START_TIMEOUT = 604_800.0
_FLEX_START_ACCELERATORS = {
    "NVIDIA_L4",
    "NVIDIA_TESLA_A100",
    "NVIDIA_A100_80GB",
    "NVIDIA_H100_80GB",
    "NVIDIA_H100_MEGA_80GB",
    "NVIDIA_H200_141GB",
    "NVIDIA_B200",
}
_DEPRECATED = {"ON_DEMAND": "STANDARD", "LOW_COST": "SPOT"}
_PATH = "job_spec.scheduling"


def seconds(duration: str) -> float:
    """Return the seconds of a JSON duration such as "3600s"."""
    return float(duration[:-1])


def scheduling_problems(scheduling: dict[str, Any], pools: list[dict[str, Any]]) -> Iterator[Problem]:
    """Yield what is wrong with the Scheduling of a job with these worker pools."""
    strategy = scheduling.get("strategy", "STANDARD")
    timeout = seconds(scheduling.get("timeout", DEFAULT_TIMEOUT))
    if timeout <= 0:
        yield (f"{_PATH}.timeout", "The timeout must be positive.")
    if "maxWaitDuration" in scheduling:
        yield from _max_wait(scheduling["maxWaitDuration"], strategy)
    if strategy in _DEPRECATED:
        yield (f"{_PATH}.strategy", f"The strategy {strategy} is deprecated; use {_DEPRECATED[strategy]}.")
    machines = [pool.get("machineSpec", {}) for pool in pools if pool]
    if strategy == "SPOT" and any(is_tpu_pod(machine) for machine in machines):
        yield (f"{_PATH}.strategy", "The strategy SPOT is not supported for TPU Pods.")
    if strategy == "FLEX_START":
        yield from _flex_start(timeout, machines)


def _max_wait(duration: str, strategy: str) -> Iterator[Problem]:
    if strategy != "FLEX_START":
        yield (f"{_PATH}.max_wait_duration", "This field is only supported with strategy FLEX_START.")
    if seconds(duration) < 0:
        yield (f"{_PATH}.max_wait_duration", "The maximum wait duration must not be negative.")


def _flex_start(timeout: float, machines: list[dict[str, Any]]) -> Iterator[Problem]:
    if timeout > _FLEX_START_TIMEOUT:
        yield (f"{_PATH}.timeout", "The timeout must be at most 604800s with strategy FLEX_START.")
    if any(machine != machines[0] for machine in machines):
        yield ("job_spec.worker_pool_specs", "FLEX_START requires the same machine spec in all worker pools.")
    if any(machine.get("acceleratorType") not in _FLEX_START_ACCELERATORS for machine in machines):
        yield (f"{_PATH}.strategy", "FLEX_START requires L4, A100, H100, H200 or B200 GPUs.")
