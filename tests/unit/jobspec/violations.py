"""Jobs that break one rule of Vertex AI each, as a TrainingInput and as a CustomJob."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.localcloud.vertex.rules.changes import (
    AFFINITY,
    AT,
    DISK,
    GONE,
    GOOD,
    L4,
    MACHINE,
    PACKAGE,
    POD,
    POOLS,
    PYTHON,
    RESERVATION,
    RESERVATION_KEY,
    SCHEDULING,
    SPEC,
    Change,
    cpu,
    env,
    flex,
    gpu,
)

Fields = dict[str, Any]


@dataclass(frozen=True)
class Violation:
    """One broken rule.

    :param key: key that the product's error names.
    :param fields: what breaks it in a TrainingInput.
    :param change: what breaks it in a CustomJob.
    :param at: field that the stand-in's answer names.
    :param near: the nearest TrainingInput that keeps the rule.
    :param options: what else is passed to `translate`; `near_options` for the near one.
    """

    key: str
    fields: Fields
    change: Change
    at: str
    near: Fields
    options: dict[str, Any] = field(default_factory=dict)
    near_options: dict[str, Any] = field(default_factory=dict)


def vertex(**fields: Any) -> Fields:
    return {"vertex": fields}


def master(machine: str, **config: Any) -> Fields:
    return {"scaleTier": "CUSTOM", "masterType": machine, "masterConfig": config}


def accelerated(machine: str, **config: Any) -> Fields:
    return master(machine, acceleratorConfig=config)


def disk(machine: str, **config: Any) -> Fields:
    return master(machine, diskConfig=config)


def time(value: str) -> Fields:
    return {"scheduling": {"maxRunningTime": value}}


def label(key: str, value: str = "v") -> Fields:
    return vertex(labels={key: value})


def affinity(**fields: Any) -> Fields:
    return vertex(reservationAffinity=fields)


FLEX = master("g2-standard-4") | vertex(strategy="FLEX_START")
SPECIFIC = {"reservationAffinityType": "SPECIFIC_RESERVATION", "key": RESERVATION_KEY, "values": [RESERVATION]}
ANY = {"reservationAffinityType": "ANY_RESERVATION"}
T4 = {"type": "NVIDIA_TESLA_T4", "count": 1}
NETWORK = "projects/12/global/networks/n"
PACKAGES = ["gs://my-bucket/p.whl"] * 100
KMS = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"
TIMEOUT, WAIT = "job_spec.scheduling.timeout", "job_spec.scheduling.max_wait_duration"
STRATEGY, OUTPUT = "job_spec.scheduling.strategy", "job_spec.base_output_directory.output_uri_prefix"
RESERVED = f"{SPEC}.reservation_affinity"
WHOLE_JOB = "custom_job."
"""The JSON parser's paths begin with the body; those of failed validation do not."""

NAMES = (
    Violation("displayName", {}, {"displayName": "n" * 129}, "display_name", {},
              {"display_name": "n" * 129}, {"display_name": "n" * 128}),
    Violation("displayName", {}, {"displayName": ""}, "display_name", {}, {"display_name": ""}, {"display_name": "n"}),
    Violation(f"vertex.labels.{'k' * 65}", label("k" * 65), {"labels": {"k" * 65: "v"}}, "labels", label("k" * 64)),
    Violation("vertex.labels.k", label("k", "é" * 65), {"labels": {"k": "é" * 65}}, "labels", label("k", "é" * 64)),
    Violation("vertex.labels.Key", label("Key"), {"labels": {"Key": "v"}}, "labels", label("key")),
    Violation("vertex.labels.1", label("1"), {"labels": {"1": "v"}}, "labels", label("k1", "1")),
    Violation("vertex.labels._k", label("_k"), {"labels": {"_k": "v"}}, "labels", label("k_", "_")),
    Violation("vertex.labels.", label(""), {"labels": {"": "v"}}, "labels", label("k", "")),
    Violation("vertex.labels.k", label("k", "😀"), {"labels": {"k": "😀"}}, "labels", label("k", "日")),
    Violation("job.labels", {"job": {"labels": {f"k{n}": "v" for n in range(65)}}},
              {"labels": {f"k{n}": "v" for n in range(65)}}, "labels",
              {"job": {"labels": {f"k{n}": "v" for n in range(61)}}}),
)  # fmt: skip

PROGRAMS = (
    Violation("packageUris", {"packageUris": []}, {f"{PACKAGE}.packageUris": []}, f"{PYTHON}.package_uris", {}),
    Violation("packageUris", {"packageUris": [*PACKAGES, PACKAGES[0]]},
              {f"{PACKAGE}.packageUris": [*PACKAGES, PACKAGES[0]]}, f"{PYTHON}.package_uris",
              {"packageUris": PACKAGES}),
    *(
        Violation("packageUris.0", {"packageUris": [uri]}, {f"{PACKAGE}.packageUris": [uri]},
                  f"{PYTHON}.package_uris[0]", {"packageUris": ["gs://my-bucket/p.tar.gz"]})
        for uri in ("gs://my-bucket/p.zip", "gs://my-bucket/p.tar", "/p.whl", "gs://p.whl", "gs:///p.whl")
    ),
    Violation("pythonModule", {"pythonModule": None}, {f"{PACKAGE}.pythonModule": GONE}, f"{PYTHON}.python_module", {}),
    Violation("args", {"args": ["x" * 50_000, "x" * 50_001]}, {f"{PACKAGE}.args": ["x" * 50_000, "x" * 50_001]},
              f"{PYTHON}.args", {"args": ["x" * 50_000, "x" * 50_000]}),
    Violation("vertex.env", vertex(env={f"A{n}": "" for n in range(101)}), env(*(f"A{n}" for n in range(101))),
              f"{PYTHON}.env", vertex(env={f"A{n}": "" for n in range(99)})),
    *(
        Violation(f"vertex.env.{name}", vertex(env={name: ""}), env(name), f"{PYTHON}.env[0].name",
                  vertex(env={"_A1": ""}))
        for name in ("1A", "A-B", "É", "")
    ),
    *(
        Violation("jobDir", {"jobDir": uri}, {"jobSpec.baseOutputDirectory": {"outputUriPrefix": uri}}, OUTPUT,
                  {"jobDir": "gs://my-bucket"})
        for uri in ("my-bucket/x", "gs://", "gs:///x", "/tmp/x")
    ),
)  # fmt: skip

MACHINES = (
    Violation("masterType", {"scaleTier": "CUSTOM"}, {f"{MACHINE}.machineType": GONE}, f"{SPEC}.machine_type",
              master("n1-standard-4")),
    Violation("masterType", master("n1-standard-5"), cpu("n1-standard-5", {}), f"{SPEC}.machine_type",
              master("n1-standard-4")),
    Violation("workerCount", {**master("n1-standard-4"), "workerType": "n1-standard-4", "workerCount": -1},
              {f"{POOLS}.2.replicaCount": "-1"}, "job_spec.worker_pool_specs[2].replica_count",
              {**master("n1-standard-4"), "workerType": "n1-standard-4", "workerCount": 1}),
    Violation("masterConfig.acceleratorConfig.count", accelerated("n1-standard-4", type="NVIDIA_TESLA_T4"),
              {f"{MACHINE}.acceleratorCount": GONE}, f"{SPEC}.accelerator_type", accelerated("n1-standard-4", **T4)),
    Violation("masterConfig.acceleratorConfig.type", accelerated("n1-standard-4", count=1),
              {f"{MACHINE}.acceleratorType": GONE}, f"{SPEC}.accelerator_type", accelerated("n1-standard-4", **T4)),
    Violation("masterConfig.acceleratorConfig.type", accelerated("n1-standard-4", type="NVIDIA_T4", count=1),
              {f"{MACHINE}.acceleratorType": "NVIDIA_T4"}, f"{WHOLE_JOB}{SPEC}.accelerator_type",
              accelerated("n1-standard-4", **T4)),
    Violation("masterConfig.acceleratorConfig.type", accelerated("e2-standard-4", **T4),
              gpu("e2-standard-4", "NVIDIA_TESLA_T4", 1), f"{SPEC}.accelerator_type",
              accelerated("n1-standard-4", **T4)),
    Violation("masterConfig.acceleratorConfig.count", accelerated("n1-standard-4", type="NVIDIA_TESLA_T4", count=3),
              gpu("n1-standard-4", "NVIDIA_TESLA_T4", 3), f"{SPEC}.accelerator_count",
              accelerated("n1-standard-4", type="NVIDIA_TESLA_T4", count=4)),
    *(
        Violation("masterConfig.diskConfig.bootDiskSizeGb", disk("n1-standard-4", bootDiskSizeGb=size),
                  {f"{DISK}.bootDiskSizeGb": size}, f"{AT}.disk_spec.boot_disk_size_gb",
                  disk("n1-standard-4", bootDiskSizeGb=near))
        for size, near in ((99, 100), (64_001, 64_000), (-1, 100))
    ),
    *(
        Violation("masterConfig.diskConfig.bootDiskType", disk(machine, bootDiskType=kind),
                  {MACHINE: {"machineType": machine}, f"{DISK}.bootDiskType": kind}, f"{AT}.disk_spec.boot_disk_type",
                  disk(machine, bootDiskType=near))
        for machine, kind, near in (
            ("n1-standard-4", "ssd", "pd-ssd"),
            ("n1-standard-4", "hyperdisk-balanced", "pd-standard"),
            ("a2-highgpu-1g", "hyperdisk-balanced", "pd-standard"),
            ("a3-ultragpu-8g", "pd-ssd", "hyperdisk-balanced"),
            ("a4-highgpu-8g", "pd-standard", "hyperdisk-balanced"),
        )
    ),
    *(
        Violation(f"vertex.reservationAffinity.{key}", affinity(**given), {AFFINITY: given}, at, affinity(**SPECIFIC))
        for given, key, at in (
            (SPECIFIC | {"key": "name"}, "key", f"{RESERVED}.key"),
            (SPECIFIC | {"values": []}, "values", f"{RESERVED}.values"),
            (SPECIFIC | {"values": ["r"]}, "values.0", f"{RESERVED}.values[0]"),
            (SPECIFIC | ANY, "key", f"{RESERVED}.key"),
            (ANY | {"values": [RESERVATION]}, "values", f"{RESERVED}.key"),
            (ANY | {"reservationAffinityType": "SOME"}, "reservationAffinityType",
             f"{WHOLE_JOB}{RESERVED}.reservation_affinity_type"),
        )
    ),
)  # fmt: skip

TIMES = (
    *(
        Violation("scheduling.maxRunningTime", time(value), {f"{SCHEDULING}.timeout": value}, f"{parser}{TIMEOUT}",
                  time(near))
        for value, parser, near in (
            ("0s", "", "0.000000001s"),
            ("-1s", "", "1s"),
            ("1h", WHOLE_JOB, "3600s"),
            ("3600", WHOLE_JOB, "3600s"),
            ("٣s", WHOLE_JOB, "3s"),
            ("315576000001s", WHOLE_JOB, "315576000000s"),
        )
    ),
    Violation("scheduling.maxRunningTime", FLEX | time("604801s"), flex(*L4, timeout="604801s"), TIMEOUT,
              FLEX | time("604800s")),
    Violation("vertex.maxWaitDuration", vertex(maxWaitDuration="60s"), {f"{SCHEDULING}.maxWaitDuration": "60s"}, WAIT,
              FLEX | vertex(strategy="FLEX_START", maxWaitDuration="0s")),
    Violation("vertex.maxWaitDuration", FLEX | vertex(strategy="FLEX_START", maxWaitDuration="-1s"),
              flex(*L4, maxWaitDuration="-1s"), WAIT, FLEX | vertex(strategy="FLEX_START", maxWaitDuration="1s")),
    Violation("vertex.maxWaitDuration", FLEX | vertex(strategy="FLEX_START", maxWaitDuration="315576000001s"),
              flex(*L4, maxWaitDuration="315576000001s"), f"{WHOLE_JOB}{WAIT}",
              FLEX | vertex(strategy="FLEX_START", maxWaitDuration="315576000000s")),
    Violation("vertex.strategy", accelerated("n1-standard-4", **T4) | vertex(strategy="FLEX_START"),
              flex("n1-standard-4", "NVIDIA_TESLA_T4", 1), STRATEGY, FLEX),
    Violation("vertex.strategy", FLEX | {"workerType": "n1-standard-4", "workerCount": 1},
              flex(*L4) | {f"{POOLS}.2": GOOD["jobSpec"]["workerPoolSpecs"][2]}, "job_spec.worker_pool_specs",
              FLEX | {"workerType": "g2-standard-4", "workerCount": 1}),
    Violation("vertex.strategy", accelerated("cloud_tpu", type="TPU_V2", count=32) | vertex(strategy="SPOT"),
              POD | {SCHEDULING: {"strategy": "SPOT"}}, STRATEGY, vertex(strategy="SPOT")),
    Violation("vertex.strategy", vertex(strategy="ON_DEMAND"), {SCHEDULING: {"strategy": "ON_DEMAND"}}, STRATEGY,
              vertex(strategy="STANDARD")),
    Violation("vertex.strategy", vertex(strategy="CHEAP"), {SCHEDULING: {"strategy": "CHEAP"}},
              f"{WHOLE_JOB}{STRATEGY}", vertex(strategy="SPOT")),
)  # fmt: skip

ACCESS = (
    *(
        Violation("network", {"network": network}, {"jobSpec.network": network}, "job_spec.network",
                  {"network": NETWORK})
        for network in ("default", "projects/my-project/global/networks/n", "projects/12/global/networks/")
    ),
    Violation("vertex.network", vertex(network="n"), {"jobSpec.network": "n"}, "job_spec.network",
              vertex(network=NETWORK)),
    Violation("vertex.reservedIpRanges", vertex(reservedIpRanges=["r"]), {"jobSpec.reservedIpRanges": ["r"]},
              "job_spec.reserved_ip_ranges", {"network": NETWORK} | vertex(reservedIpRanges=["r"])),
    *(
        Violation("serviceAccount", {"serviceAccount": account}, {"jobSpec.serviceAccount": account},
                  "job_spec.service_account", {"serviceAccount": "trainer@my-project.iam.gserviceaccount.com"})
        for account in ("trainer", "a@b@c", "a b@c", "projects/-/a@b")
    ),
    Violation("vertex.reservationAffinity", vertex(persistentResourceId="r", reservationAffinity=ANY),
              {"jobSpec.persistentResourceId": "r", AFFINITY: ANY}, RESERVED, vertex(persistentResourceId="r")),
    Violation("encryptionConfig.kmsKeyName", {"encryptionConfig": {"kmsKeyName": "k"}},
              {"encryptionSpec": {"kmsKeyName": "k"}}, "encryption_spec.kms_key_name",
              {"encryptionConfig": {"kmsKeyName": KMS}}),
)  # fmt: skip

VIOLATIONS = (*NAMES, *PROGRAMS, *MACHINES, *TIMES, *ACCESS)
