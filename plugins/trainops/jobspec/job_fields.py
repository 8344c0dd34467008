"""Fields of the job as a whole: account, network, encryption, labels, environment, and what stood around the input."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trainops import naming
from trainops.jobspec.hidden import hidden_variables
from trainops.jobspec.limits import check_environment, check_folder, check_labels
from trainops.jobspec.notes import Notebook
from trainops.jobspec.training_input import TrainingInput

_NETWORK = re.compile(r"projects/[0-9]+/global/networks/[^/\s]+")
_ACCOUNT = re.compile(r"[^@/\sA-Z]+@[^@/\sA-Z]+")
_KEY = re.compile(r"projects/[^/A-Z]+/locations/[^/A-Z]+/keyRings/[^/]+/cryptoKeys/[^/]+")
_REGION = re.compile(r"[a-z]+-[a-z]+[0-9]+")
"""The form of every region: a new one needs no release of Trainops. Source of the names:
https://docs.cloud.google.com/vertex-ai/docs/general/locations"""
_ZONE = re.compile(r"[a-z]+-[a-z]+[0-9]+-[a-z]")
_USERS = "user-"
_PASSED_ON = (
    "persistent_resource_id",
    "reserved_ip_ranges",
    "psc_interface_config",
    "protected_artifact_location_id",
    "tensorboard",
    "enable_dashboard_access",
    "experiment",
    "experiment_run",
    "models",
)


def check_translatable(spec: TrainingInput, notebook: Notebook) -> None:
    """Refuse what one custom job cannot be: a tuning job, a prediction job."""
    if spec.hyperparameters is not None:
        raise notebook.error(
            "hyperparameters",
            "a custom job has no trials; a tuning job is translated, and not run yet",
            next_step="leave hyperparameters out and pass one value of each in args, one job per trial",
        )
    if spec.job.prediction_input is not None:
        raise notebook.error(
            "job.predictionInput", "this is a prediction job", next_step="give a job with trainingInput"
        )


def check_region(spec: TrainingInput, notebook: Notebook) -> str:
    """Return the region of the job; refuse a zone and what is no name."""
    region = spec.region or ""
    if _ZONE.fullmatch(region):
        next_step = f"write {region.rsplit('-', 1)[0]}"
        raise notebook.error("region", "this is a zone, and a region is needed", value=region, next_step=next_step)
    if not _REGION.fullmatch(region):
        meant = region.strip().lower().replace("_", "-")
        next_step = f"write {meant}" if _REGION.fullmatch(meant) else "write one like us-central1"
        raise notebook.error("region", "this is no name of a region", value=region, next_step=next_step)
    notebook.mapped("region", region, "", "the job is sent to this region")
    return region


def spec_fields(spec: TrainingInput, service_account: str | None, notebook: Notebook) -> dict[str, Any]:
    """Return the fields of CustomJobSpec that concern no single pool.

    :param service_account: the environment's, for jobs that name none.
    :raises ConfigError: a malformed name, or fields that exclude each other.
    """
    account = _either("serviceAccount", spec.service_account, spec.vertex.service_account, "jobSpec", notebook)
    if account is not None and not _ACCOUNT.fullmatch(account):
        field = "serviceAccount" if spec.service_account is not None else "vertex.serviceAccount"
        next_step = "write its email address, NAME@PROJECT.iam.gserviceaccount.com"
        raise notebook.error(field, "this is no service account", value=account, next_step=next_step)
    if account is None and service_account is not None:
        notebook.defaulted("serviceAccount", None, "jobSpec.serviceAccount", f"the environment's: {service_account}")
    found: dict[str, Any] = {
        "serviceAccount": account or service_account,
        "network": _network(spec, notebook),
        "enableWebAccess": _either(
            "enableWebAccess", spec.enable_web_access, spec.vertex.enable_web_access, "jobSpec", notebook
        ),
    }
    extras = spec.vertex.model_dump(by_alias=True, exclude_none=True, include=set(_PASSED_ON))
    for key, value in extras.items():
        notebook.mapped(f"vertex.{key}", value, f"jobSpec.{key}")
    _check_exclusions(spec, found["network"], notebook)
    if spec.job_dir is not None:
        check_folder(spec.job_dir, "jobDir", notebook)
        found["baseOutputDirectory"] = {"outputUriPrefix": spec.job_dir}
    return {name: value for name, value in (found | extras).items() if value not in (None, False, "", [], {})}


def encryption(spec: TrainingInput, notebook: Notebook) -> dict[str, Any]:
    """Return the EncryptionSpec of the job; empty when none is asked for."""
    config = spec.encryption_config
    inner = config.kms_key_name if config else None
    if config is not None and inner is None:
        notebook.mapped("encryptionConfig", {}, "", "empty: Google's own keys")
    where = "encryptionConfig.kmsKeyName"
    key = _either("kmsKeyName", inner, spec.vertex.kms_key_name, "encryptionSpec", notebook, field=where)
    if key is None:
        return {}
    if not _KEY.fullmatch(key):
        field = where if inner is not None else "vertex.kmsKeyName"
        next_step = "write projects/P/locations/L/keyRings/R/cryptoKeys/K"
        raise notebook.error(field, "this is no key of Cloud KMS", value=key, next_step=next_step)
    return {"kmsKeyName": key}


def job_labels(spec: TrainingInput, own: Mapping[str, str], notebook: Notebook) -> dict[str, str]:
    """Return the labels of the job: the user's, and those by which Trainops finds its jobs.

    A label of the user with a name of Trainops' own is kept as `user-NAME`.

    :raises ConfigError: a label that Google would refuse.
    """
    labels: dict[str, str] = {}
    for key, given in (("job.labels", spec.job.labels), ("vertex.labels", spec.vertex.labels)):
        if given is None:
            continue
        check_labels(given, key, notebook)
        kept = _beside(own, given, key, notebook)
        lost = sorted(name for name, value in kept.items() if labels.get(name, value) != value)
        if lost:
            notebook.changed("job.labels", spec.job.labels, "labels", f"{key} says otherwise: {', '.join(lost)}")
        labels |= kept
    labels |= own
    check_labels(labels, "labels", notebook, added=len(naming.ATTEMPT_LABELS))
    return labels


def _beside(own: Mapping[str, str], given: Mapping[str, str], key: str, notebook: Notebook) -> dict[str, str]:
    """Return the user's labels, those that Trainops sets itself under another name."""
    taken = sorted(set(given) & {*own, *naming.ATTEMPT_LABELS})
    renamed = {name: f"{_USERS}{name}" for name in taken}
    twice = next((name for name in renamed.values() if name in given), None)
    if twice is not None:
        problem = f"{twice.removeprefix(_USERS)} is a label of Trainops, and yours is kept as {twice}, which is there"
        raise notebook.error(f"{key}.{twice}", problem, value=given[twice], next_step="rename one of the two")
    if taken:
        text = ", ".join(f"{name} as {renamed[name]}" for name in taken)
        notebook.changed(
            key, given, "labels", f"Trainops finds its jobs by labels of these names; yours are kept: {text}"
        )
    else:
        notebook.mapped(key, given, "labels")
    return {renamed.get(name, name): value for name, value in given.items()}


def environment(spec: TrainingInput, own: Mapping[str, str], notebook: Notebook) -> dict[str, str]:
    """Return the variables of every replica: the user's, and over them Trainops' own."""
    given = spec.vertex.env or {}
    taken = sorted(set(given) & {*own, naming.CONTROL_VARIABLE})
    if spec.vertex.env is not None:
        note = notebook.changed if taken else notebook.mapped
        text = f"Trainops sets these itself: {', '.join(taken)}" if taken else "env of every replica"
        note("vertex.env", hidden_variables(given), "jobSpec.workerPoolSpecs[]", text)
    env = {name: value for name, value in given.items() if name != naming.CONTROL_VARIABLE} | dict(own)
    check_environment(env, "vertex.env", notebook, added=1)
    return env


def note_job_body(spec: TrainingInput, display_name: str, notebook: Notebook) -> None:
    """Note the fields that stood around the TrainingInput."""
    body = spec.job.model_dump(by_alias=True, exclude_none=True, exclude={"labels", "prediction_input"})
    for key, value in body.items():
        if key == "jobId":
            text = f"Vertex AI numbers jobs itself; the display name is {display_name}"
        elif key in {"parent", "project"}:
            text = "not sent: the project is the environment's"
        else:
            text = "output only: not sent"
        notebook.changed(f"job.{key}", value, "displayName" if key == "jobId" else "", text)


def _network(spec: TrainingInput, notebook: Notebook) -> str | None:
    network: str | None = _either("network", spec.network, spec.vertex.network, "jobSpec", notebook)
    if network is not None and not _NETWORK.fullmatch(network):
        field = "network" if spec.network is not None else "vertex.network"
        next_step = "write projects/NUMBER/global/networks/NAME, with the number of the project"
        raise notebook.error(field, "this is no network", value=network, next_step=next_step)
    return network


def _either(name: str, old: Any, new: Any, parent: str, notebook: Notebook, *, field: str | None = None) -> Any:
    """Return the value of a field that both AI Platform's part and `vertex` have; refuse two different ones."""
    field = field or name
    if old is not None and new is not None and old != new:
        raise notebook.error(
            f"vertex.{name}", f"differs from {field}", value=new, allowed=[old], next_step="keep one of them"
        )
    for key, value in ((field, old), (f"vertex.{name}", new)):
        if value is not None:
            notebook.mapped(key, value, f"{parent}.{name}")
    return old if old is not None else new


def _check_exclusions(spec: TrainingInput, network: str | None, notebook: Notebook) -> None:
    vertex = spec.vertex
    if vertex.reserved_ip_ranges and network is None:
        raise notebook.error(
            "vertex.reservedIpRanges",
            "needs a network",
            value=vertex.reserved_ip_ranges,
            next_step="set network, or leave it out",
        )
    if vertex.persistent_resource_id and vertex.reservation_affinity:
        raise notebook.error(
            "vertex.reservationAffinity",
            "excludes persistentResourceId",
            value=vertex.reservation_affinity.reservation_affinity_type,
            next_step="keep one of them",
        )
