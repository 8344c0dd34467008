from __future__ import annotations

from trainops.jobspec import needs

JOB = {
    "jobSpec": {
        "workerPoolSpecs": [
            {
                "replicaCount": "1",
                "machineSpec": {"machineType": "m", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 2},
            },
            {},
            {
                "replicaCount": "3",
                "machineSpec": {"machineType": "m", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 4},
            },
            {"replicaCount": 2, "machineSpec": {"machineType": "ct5lp-hightpu-4t", "tpuTopology": "2x4"}},
        ]
    }
}


def test_accelerators_are_added_up_over_all_replicas() -> None:
    assert needs.accelerators(JOB) == {"NVIDIA_L4": 14, "TPU_V5_LITEPOD": 16}


def test_machines_are_added_up_over_all_pools() -> None:
    assert needs.machines(JOB) == {"m": 4, "ct5lp-hightpu-4t": 2}
