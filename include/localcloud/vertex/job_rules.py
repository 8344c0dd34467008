"""What concerns no single worker pool: network, account, folder of outputs, persistent resource, encryption."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from localcloud.vertex.problems import REQUIRED, Problem

_NETWORK = re.compile(r"projects/[0-9]+/global/networks/[^/\s]+")
_ACCOUNT = re.compile(r"[^@/\s]+@[^@/\s]+")
_FOLDER = re.compile(r"gs://[a-z0-9][a-z0-9._-]*(/.*)?", re.DOTALL | re.IGNORECASE)
_KEY = re.compile(r"projects/[^/\s]+/locations/[^/\s]+/keyRings/[^/\s]+/cryptoKeys/[^/\s]+")


def job_problems(job: dict[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with the name and the encryption of a job."""
    name = job.get("displayName", "")
    if not name:
        yield ("display_name", REQUIRED)
    elif len(name) > 128:
        yield ("display_name", "The display name must be at most 128 characters.")
    key = job.get("encryptionSpec", {}).get("kmsKeyName", "")
    if "encryptionSpec" in job and not _KEY.fullmatch(key):
        text = f'"{key}" is not of the form projects/{{}}/locations/{{}}/keyRings/{{}}/cryptoKeys/{{}}.'
        yield ("encryption_spec.kms_key_name", text if key else REQUIRED)


def spec_problems(spec: dict[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with the fields of a CustomJobSpec that stand beside its pools and scheduling."""
    network, account = spec.get("network", ""), spec.get("serviceAccount", "")
    if network and not _NETWORK.fullmatch(network):
        text = f'"{network}" is not of the form projects/{{project number}}/global/networks/{{network}}.'
        yield ("job_spec.network", text)
    if spec.get("reservedIpRanges") and not network:
        yield ("job_spec.reserved_ip_ranges", "Reserved IP ranges are only supported with `network`.")
    if account and not _ACCOUNT.fullmatch(account):
        yield ("job_spec.service_account", f'"{account}" is not the email address of a service account.')
    if spec.get("persistentResourceId"):
        yield from _persistent_resource(spec.get("workerPoolSpecs", []))
    if "baseOutputDirectory" in spec:
        prefix = spec["baseOutputDirectory"].get("outputUriPrefix", "")
        if not _FOLDER.fullmatch(prefix):
            text = f'"{prefix}" is not a Cloud Storage URI (gs://bucket/folder).'
            yield ("job_spec.base_output_directory.output_uri_prefix", text if prefix else REQUIRED)


def _persistent_resource(pools: list[dict[str, Any]]) -> Iterator[Problem]:
    for index, pool in enumerate(pools):
        if "reservationAffinity" in pool.get("machineSpec", {}):
            path = f"job_spec.worker_pool_specs[{index}].machine_spec.reservation_affinity"
            yield (path, "Reservations are not supported with `persistent_resource_id`.")
