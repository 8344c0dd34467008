"""Rules for how long a job may run and wait, and on which terms."""

from __future__ import annotations

from tests.localcloud.vertex.rules.changes import (
    FLEX_GPUS,
    GONE,
    GOOD,
    L4,
    MACHINE,
    NO_DURATION,
    POD,
    POOLS,
    SCHEDULING,
    Bad,
    Rule,
    cpu,
    flex,
    gpu,
)

RULES: tuple[Rule, ...] = (
    Rule(
        "Scheduling.timeout",
        "default 604800s",
        bad=(
            Bad({f"{SCHEDULING}.timeout": "0s"}, "job_spec.scheduling.timeout", "must be positive"),
            Bad({f"{SCHEDULING}.timeout": "-1s"}, "job_spec.scheduling.timeout", "must be positive"),
            Bad({f"{SCHEDULING}.timeout": "1h"}, "custom_job.job_spec.scheduling.timeout", NO_DURATION),
            Bad({f"{SCHEDULING}.timeout": 3600}, "custom_job.job_spec.scheduling.timeout", NO_DURATION),
            Bad({f"{SCHEDULING}.timeout": "٣s"}, "custom_job.job_spec.scheduling.timeout", NO_DURATION),
            Bad({f"{SCHEDULING}.timeout": "315576000001s"}, "custom_job.job_spec.scheduling.timeout", NO_DURATION),
        ),
        good=(
            {f"{SCHEDULING}.timeout": "0.000000001s"},
            {f"{SCHEDULING}.timeout": "315576000000s"},
            {SCHEDULING: GONE},
        ),
        elsewhere=("test_defaults.py::test_a_job_gets_the_times_that_it_left_out",),
    ),
    Rule(
        "Scheduling.maxWaitDuration",
        "default 86400s; 0 = wait for ever; only with FLEX_START",
        bad=(
            Bad({f"{SCHEDULING}.maxWaitDuration": "1s"}, "job_spec.scheduling.max_wait_duration", "FLEX_START"),
            Bad({f"{SCHEDULING}.maxWaitDuration": "0s"}, "job_spec.scheduling.max_wait_duration", "FLEX_START"),
            Bad(
                {SCHEDULING: {"strategy": "SPOT", "maxWaitDuration": "1s"}},
                "job_spec.scheduling.max_wait_duration",
                "only supported with strategy FLEX_START",
            ),
            Bad(flex(*L4, maxWaitDuration="-1s"), "job_spec.scheduling.max_wait_duration", "must not be negative"),
        ),
        good=(flex(*L4, maxWaitDuration="0s"), flex(*L4, maxWaitDuration="86400s"), flex(*L4)),
        elsewhere=("test_defaults.py::test_a_job_gets_the_times_that_it_left_out",),
    ),
    Rule(
        "Scheduling.disableRetries",
        "true forces restartJobOnWorkerRestart to false",
        good=({SCHEDULING: {"disableRetries": True, "restartJobOnWorkerRestart": True}},),
        elsewhere=("test_defaults.py::test_a_job_without_retries_is_not_restarted_with_its_workers",),
    ),
    Rule(
        "Scheduling FLEX_START",
        "GPU job on L4, A100, H100, H200 or B200; timeout at most 7 days; same machine configuration in all pools; "
        "uses the preemptible quota names",
        bad=(
            Bad(flex("n1-standard-4", "NVIDIA_TESLA_T4", 1), "job_spec.scheduling.strategy", "requires L4"),
            Bad(flex("a4x-highgpu-4g", "NVIDIA_GB200", 4), "job_spec.scheduling.strategy", "requires L4"),
            Bad(flex("g4-standard-48", "NVIDIA_RTX_PRO_6000", 1), "job_spec.scheduling.strategy", "requires L4"),
            Bad(flex(*L4) | cpu("n1-standard-4", {}), "job_spec.scheduling.strategy", "requires L4"),
            Bad(flex(*L4, timeout="604801s"), "job_spec.scheduling.timeout", "at most 604800s"),
            Bad(flex(*L4, timeout="604800.1s"), "job_spec.scheduling.timeout", "at most 604800s"),
            Bad(
                flex(*L4) | {f"{POOLS}.2": GOOD["jobSpec"]["workerPoolSpecs"][2]},
                "job_spec.worker_pool_specs",
                "requires the same machine spec in all worker pools",
            ),
        ),
        good=(
            *(flex(*row) for row in FLEX_GPUS),
            flex(*L4, timeout="604800s"),
            flex(*L4) | {f"{POOLS}.2": GOOD["jobSpec"]["workerPoolSpecs"][2] | {"machineSpec": gpu(*L4)[MACHINE]}},
        ),
        elsewhere=("test_quota.py",),
    ),
    Rule(
        "Scheduling SPOT",
        "not with TPU Pods; not from the console",
        bad=(
            Bad(POD | {SCHEDULING: {"strategy": "SPOT"}}, "job_spec.scheduling.strategy", "not supported for TPU Pods"),
            Bad({SCHEDULING: {"strategy": "CHEAP"}}, "custom_job.job_spec.scheduling.strategy", "Scheduling.Strategy"),
            Bad({SCHEDULING: {"strategy": 5}}, "custom_job.job_spec.scheduling.strategy", "Scheduling.Strategy"),
            Bad({SCHEDULING: {"strategy": "ON_DEMAND"}}, "job_spec.scheduling.strategy", "deprecated; use STANDARD"),
            Bad({SCHEDULING: {"strategy": "LOW_COST"}}, "job_spec.scheduling.strategy", "deprecated; use SPOT"),
        ),
        good=(
            {SCHEDULING: {"strategy": "SPOT"}},
            {SCHEDULING: {"strategy": "STANDARD"}},
            {SCHEDULING: {"strategy": "STRATEGY_UNSPECIFIED"}},
        ),
        elsewhere=("test_validation.py::test_one_tpu_may_be_spot",),
    ),
)
