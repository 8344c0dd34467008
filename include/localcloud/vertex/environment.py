"""The environment variables that Vertex gives to a replica, and the few that a laptop adds."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from localcloud.vertex.options import Options
from localcloud.vertex.records import JobRecord, task_of

_TASK_TYPES = {"workerpool0": "chief", "workerpool1": "worker", "workerpool2": "ps", "workerpool3": "evaluator"}
_REFERENCE = re.compile(r"\$(\$?)\(([A-Za-z_][A-Za-z0-9_]*)\)")
IMAGE_PIP = {
    "PIP_NO_INDEX": "1",
    "PIP_NO_BUILD_ISOLATION": "0",
    "PIP_NO_WARN_CONFLICTS": "0",
    "PIP_CONFIG_FILE": os.devnull,
}
"""What the trainer's Dockerfile tells pip, without this machine's own settings.

Packages add code, and the image holds what they depend on. pip reads the zeros as "no isolation" and "no warnings".
"""
_INHERITED = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "TZ")


def base_environment(options: Options, home: Path) -> dict[str, str]:
    """Return what every process of a job gets: little of this machine, as in a container."""
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    # The folder is not resolved: in a virtual environment the link itself is what selects the environment.
    path = os.pathsep.join([str(options.python.parent), os.environ.get("PATH", os.defpath)])
    return {**kept, "PATH": path, "HOME": str(home), "PYTHONUNBUFFERED": "1"}


def replica_environment(
    record: JobRecord, replica: str, options: Options, home: Path, site: Path | None
) -> dict[str, str]:
    """Return the environment of one replica.

    :param site: folder of the installed packages, if the job has any.
    """
    pool = replica.rpartition("-")[0]
    env = base_environment(options, home)
    env["STORAGE_EMULATOR_HOST"] = options.storage_endpoint
    env["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // len(record.replica_names())))
    # Replicas of other jobs share these cores: threads that spin while they wait for each other would hold them up.
    env["OMP_WAIT_POLICY"] = "PASSIVE"
    env["CLOUD_ML_PROJECT_ID"] = options.project_number
    env["CLOUD_ML_JOB_ID"] = record.job_id
    env.update(_output_folders(record.spec))
    env["CLUSTER_SPEC"] = json.dumps(cluster_spec(record, replica))
    if len(record.replica_names()) > 1:
        env["TF_CONFIG"] = json.dumps(tf_config(record, replica))
    if site is not None:
        env["PYTHONPATH"] = str(site)
    else:
        env.update(IMAGE_PIP)
    for item in task_of(record.pools[pool]).get("env", []):
        env[item["name"]] = expand(item.get("value", ""), env)
    return env


def cluster_spec(record: JobRecord, replica: str) -> dict[str, Any]:
    """Return CLUSTER_SPEC as Vertex gives it, with addresses on the loopback."""
    pool, _, index = replica.rpartition("-")
    return {
        "cluster": {name: _addresses(ports) for name, ports in record.ports.items()},
        "environment": "cloud",
        "task": {"type": pool, "index": int(index)},
        "job": record.spec,
    }


def tf_config(record: JobRecord, replica: str) -> dict[str, Any]:
    """Return TF_CONFIG: as CLUSTER_SPEC with TensorFlow's names; evaluators are not in its cluster."""
    spec = cluster_spec(record, replica)
    cluster = {_TASK_TYPES[name]: addresses for name, addresses in spec["cluster"].items() if name != "workerpool3"}
    return {
        **spec,
        "cluster": cluster,
        "task": {"type": _TASK_TYPES[spec["task"]["type"]], "index": spec["task"]["index"]},
    }


def expand(value: str, known: dict[str, str]) -> str:
    """Expand `$(NAME)` from variables that are known already; `$$(NAME)` stands for `$(NAME)`, unknown names stay."""

    def replacement(found: re.Match[str]) -> str:
        if found[1]:
            return found[0][1:]
        return known.get(found[2], found[0])

    return _REFERENCE.sub(replacement, value)


def _output_folders(spec: dict[str, Any]) -> dict[str, str]:
    prefix = spec.get("baseOutputDirectory", {}).get("outputUriPrefix")
    if not prefix:
        return {}
    base = prefix.rstrip("/")
    return {
        "AIP_MODEL_DIR": f"{base}/model/",
        "AIP_CHECKPOINT_DIR": f"{base}/checkpoints/",
        "AIP_TENSORBOARD_LOG_DIR": f"{base}/logs/",
    }


def _addresses(ports: list[int]) -> list[str]:
    return [f"127.0.0.1:{port}" for port in ports]
