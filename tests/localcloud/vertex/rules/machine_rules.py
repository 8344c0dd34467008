"""Rules for worker pools and their machines."""

from __future__ import annotations

from tests.localcloud.vertex.rules.changes import (
    AFFINITY,
    AT,
    BOTH,
    DISK,
    GONE,
    GOOD,
    MACHINE,
    POOL,
    POOLS,
    REQUIRED,
    RESERVATION,
    RESERVATION_KEY,
    SPEC,
    Bad,
    Rule,
    cpu,
    gpu,
)

RULES: tuple[Rule, ...] = (
    Rule(
        "CustomJobSpec.workerPoolSpecs",
        "required; pools after the first may be skipped with an empty message {}; positions: 0 primary, 1 workers, 2 "
        "parameter servers or Reduction Server, 3 evaluators",
        bad=(
            Bad({POOLS: GONE}, "job_spec.worker_pool_specs", REQUIRED),
            Bad({POOLS: []}, "job_spec.worker_pool_specs", REQUIRED),
            Bad({POOL: {}}, "job_spec.worker_pool_specs", "The first worker pool cannot be skipped."),
        ),
        good=({f"{POOLS}.2": {}}, {}),
    ),
    Rule(
        "WorkerPoolSpec[0].replicaCount",
        "1 (docs: first pool is only the primary replica)",
        bad=(
            Bad({f"{POOL}.replicaCount": "2"}, f"{AT}.replica_count", "must be 1"),
            Bad({f"{POOL}.replicaCount": "0"}, f"{AT}.replica_count", "must be 1"),
            Bad({f"{POOLS}.2.replicaCount": "0"}, "job_spec.worker_pool_specs[2].replica_count", "positive"),
            Bad({f"{POOLS}.2.replicaCount": "-1"}, "job_spec.worker_pool_specs[2].replica_count", "positive"),
            Bad({f"{POOL}.replicaCount": "one"}, f"custom_job.{AT}.replica_count", "(TYPE_INT64)"),
        ),
        good=({f"{POOL}.replicaCount": 1}, {f"{POOL}.replicaCount": GONE}, {f"{POOLS}.2.replicaCount": "1"}),
    ),
    Rule(
        "number of worker pools",
        "4 positions documented; the error for a 5th was not found",
        bad=(
            Bad(
                {POOLS: [*GOOD["jobSpec"]["workerPoolSpecs"], {}, GOOD["jobSpec"]["workerPoolSpecs"][2]]},
                "job_spec.worker_pool_specs",
                "At most 4 worker pools are allowed, found 5.",
            ),
        ),
        good=({POOLS: [*GOOD["jobSpec"]["workerPoolSpecs"], GOOD["jobSpec"]["workerPoolSpecs"][2]]},),
    ),
    Rule(
        "WorkerPoolSpec.machineSpec.machineType",
        "required for a WorkerPoolSpec",
        bad=(
            Bad({MACHINE: GONE}, f"{SPEC}.machine_type", REQUIRED),
            Bad({f"{MACHINE}.machineType": ""}, f"{SPEC}.machine_type", REQUIRED),
            Bad(cpu("n1-standard-2", {}), f"{SPEC}.machine_type", '"n1-standard-2" is not supported.'),
            Bad(cpu("ct5lp-hightpu-1t", {}), f"{SPEC}.machine_type", "not supported by the local stand-in"),
        ),
        good=(cpu("n1-standard-4", {}),),
    ),
    Rule(
        "MachineSpec",
        "acceleratorType and acceleratorCount both or neither (server message known)",
        bad=(
            Bad({f"{MACHINE}.acceleratorCount": GONE}, f"{SPEC}.accelerator_type", BOTH),
            Bad({f"{MACHINE}.acceleratorCount": 0}, f"{SPEC}.accelerator_type", BOTH),
            Bad({f"{MACHINE}.acceleratorType": GONE}, f"{SPEC}.accelerator_type", BOTH),
            Bad({f"{MACHINE}.acceleratorType": 0}, f"{SPEC}.accelerator_type", BOTH),
            Bad({f"{MACHINE}.acceleratorType": "NVIDIA_T4"}, f"custom_job.{SPEC}.accelerator_type", "AcceleratorType"),
            Bad({f"{MACHINE}.acceleratorType": 99}, f"custom_job.{SPEC}.accelerator_type", "AcceleratorType"),
            Bad({f"{MACHINE}.acceleratorCount": 3}, f"{SPEC}.accelerator_count", "supported counts: 1, 2, 4"),
            Bad(cpu("g2-standard-4", {}), f"{SPEC}.accelerator_type", "requires accelerators"),
            Bad(
                gpu("e2-standard-4", "NVIDIA_TESLA_T4", 1),
                f"{SPEC}.accelerator_type",
                'Accelerator "NVIDIA_TESLA_T4" is not supported for machine type "e2-standard-4"',
            ),
            Bad(  # deprecated, end of support
                gpu("n1-standard-4", "NVIDIA_TESLA_K80", 1),
                f"{SPEC}.accelerator_type",
                'Accelerator "NVIDIA_TESLA_K80" is not supported for machine type "n1-standard-4"',
            ),
        ),
        good=(
            {f"{MACHINE}.acceleratorType": 5},
            {f"{MACHINE}.acceleratorCount": 4},
            {MACHINE: {"machineType": "n1-standard-4", "acceleratorType": 0, "acceleratorCount": 0}},
        ),
    ),
    Rule(
        "DiskSpec.bootDiskType",
        "pd-ssd default (hyperdisk-balanced on a3-ultragpu-8g, a4-highgpu-8g); pd-standard, pd-ssd, hyperdisk-balanced",
        bad=(
            Bad({f"{DISK}.bootDiskType": "ssd"}, f"{AT}.disk_spec.boot_disk_type", '"ssd" is not supported'),
            Bad({f"{DISK}.bootDiskType": "pd-balanced"}, f"{AT}.disk_spec.boot_disk_type", "not supported"),
            *(
                Bad(
                    cpu(machine, {"bootDiskType": "hyperdisk-balanced"}),
                    f"{AT}.disk_spec.boot_disk_type",
                    f'not supported for machine type "{machine}"; supported: pd-ssd, pd-standard.',
                )
                for machine in ("n1-standard-4", "n2-standard-4", "e2-standard-4", "c2-standard-4")
            ),
            *(
                Bad(
                    gpu(machine, kind, 8) | {DISK: {"bootDiskType": "pd-ssd"}},
                    f"{AT}.disk_spec.boot_disk_type",
                    "supported: hyperdisk-balanced.",
                )
                for machine, kind in (("a3-ultragpu-8g", "NVIDIA_H200_141GB"), ("a4-highgpu-8g", "NVIDIA_B200"))
            ),
        ),
        good=(
            cpu("n1-standard-4", {"bootDiskType": "pd-standard"}),
            cpu("n1-standard-4", {"bootDiskType": "pd-ssd"}),
            cpu("n1-standard-4", {"bootDiskType": ""}),
            cpu("n4-standard-4", {"bootDiskType": "hyperdisk-balanced"}),
            gpu("a3-highgpu-8g", "NVIDIA_H100_80GB", 8) | {DISK: {"bootDiskType": "hyperdisk-balanced"}},
            gpu("a3-ultragpu-8g", "NVIDIA_H200_141GB", 8) | {DISK: {"bootDiskType": "hyperdisk-balanced"}},
            gpu("a3-ultragpu-8g", "NVIDIA_H200_141GB", 8),
            gpu("a4-highgpu-8g", "NVIDIA_B200", 8),
        ),
        elsewhere=("test_defaults.py::test_a_pool_gets_its_boot_disk",),
    ),
    Rule(
        "DiskSpec.bootDiskSizeGb",
        "100..64000, default 100",
        bad=(
            Bad({f"{DISK}.bootDiskSizeGb": 99}, f"{AT}.disk_spec.boot_disk_size_gb", "between 100 and 64000 GB"),
            Bad({f"{DISK}.bootDiskSizeGb": 64_001}, f"{AT}.disk_spec.boot_disk_size_gb", "found 64001"),
            Bad({f"{DISK}.bootDiskSizeGb": -1}, f"{AT}.disk_spec.boot_disk_size_gb", "found -1"),
        ),
        good=({f"{DISK}.bootDiskSizeGb": 100}, {f"{DISK}.bootDiskSizeGb": 64_000}, {f"{DISK}.bootDiskSizeGb": GONE}),
        elsewhere=("test_defaults.py::test_a_pool_gets_its_boot_disk",),
    ),
    Rule(
        "persistentResourceId",
        "machineSpec and diskSpec must equal a resource pool; replicaCount at most that pool free count; network and "
        "CMEK must match; not together with reservations",
        bad=(
            Bad(
                {"jobSpec.persistentResourceId": "r", AFFINITY: {"reservationAffinityType": "ANY_RESERVATION"}},
                f"{SPEC}.reservation_affinity",
                "not supported with `persistent_resource_id`",
            ),
        ),
        # The stand-in has no persistent resources: what the job has to match is not there to be looked at.
        good=({"jobSpec.persistentResourceId": "r"}, {AFFINITY: {"reservationAffinityType": "ANY_RESERVATION"}}),
    ),
    Rule(
        "ReservationAffinity",
        "SPECIFIC_RESERVATION needs key compute.googleapis.com/reservation-name and "
        "values=[projects/P/zones/Z/reservations/R]",
        bad=(
            Bad({AFFINITY: {}}, f"{SPEC}.reservation_affinity.reservation_affinity_type", REQUIRED),
            Bad(
                {AFFINITY: {"reservationAffinityType": "SPECIFIC_RESERVATION", "values": [RESERVATION]}},
                f"{SPEC}.reservation_affinity.key",
                RESERVATION_KEY,
            ),
            Bad(
                {AFFINITY: {"reservationAffinityType": "SPECIFIC_RESERVATION", "key": RESERVATION_KEY}},
                f"{SPEC}.reservation_affinity.values",
                REQUIRED,
            ),
            Bad(
                {AFFINITY: {"reservationAffinityType": 3, "key": RESERVATION_KEY, "values": ["r"]}},
                f"{SPEC}.reservation_affinity.values[0]",
                '"r" is not of the form',
            ),
            Bad(
                {AFFINITY: {"reservationAffinityType": "ANY_RESERVATION", "key": RESERVATION_KEY}},
                f"{SPEC}.reservation_affinity.key",
                "only allowed with SPECIFIC_RESERVATION",
            ),
            Bad(
                {AFFINITY: {"reservationAffinityType": "SOME"}},
                f"custom_job.{SPEC}.reservation_affinity.reservation_affinity_type",
                "ReservationAffinity.Type",
            ),
        ),
        good=(
            {
                AFFINITY: {
                    "reservationAffinityType": "SPECIFIC_RESERVATION",
                    "key": RESERVATION_KEY,
                    "values": [RESERVATION],
                }
            },
            {AFFINITY: {"reservationAffinityType": "NO_RESERVATION"}},
        ),
    ),
)
