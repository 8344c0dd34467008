"""Every id, label, pool name and object path of Trainops is made here, and nowhere else.

Layout of the two buckets (`work` and `models` are URIs such as `gs://local-llm-work`):

    {work}/datasets/{dataset}/{sha16}/                    manifest.json, written last; sources.jsonl, the files read
    {work}/datasets/{dataset}/parts/{hash}.jsonl          documents, in parts that many versions of the dataset share
    {work}/datasets/{dataset}/groups/{key}.json           what a group of files, or all of them, was read to
    {work}/tokens/{dataset sha16}-{tokenizer sha16}/      token shards, tokenizer/, manifest.json
    {work}/packages/trainer/{version}/{sha16}/            trainer-{version}.tar.gz
    {work}/runs/{experiment}/{run_key}/{task}[-{i}].json  the record of a job key
    {work}/runs/{experiment}/{run_key}/plans/             what resolve_run wrote, by fingerprint
    {work}/runs/{experiment}/{run_key}/g{G}/              plan.json, translation.json, checkpoints/, metrics.jsonl,
                                                          result.json, model/
    {work}/runs/{experiment}/{run_key}/g{G}/a{N}/         job.json, control/
    {work}/runs/{experiment}/{run_key}/g{G}/{task}[-{i}]/ the same of a job beside the run's main one (tokenize)
    {work}/queue/ledger.json, requests/{job_key}.json
    {work}/queue/orders/jobs/{job_key}.json, orders/pools/{accelerator}/{region}/{provisioning}.json
    {models}/{model}/versions/{run_key}-g{G}/             Hugging Face layout and manifest.json
    {models}/{model}/channels/{channel}.json              candidate, production
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import date, datetime

from trainops.errors import ConfigError

LABEL_LENGTH = 63
"""Longest label value that every Google service takes."""

EXPERIMENT_LENGTH = LABEL_LENGTH - len("-yyyymmddthhmm-00000000")
"""Longest experiment name, so that a run key is a label value without cutting: 40."""

MANAGED_BY = "trainops"

ATTEMPT_LABELS = ("spec-hash", "generation", "attempt")
"""Keys of the labels that a job gets after its translation."""

CONTROL_VARIABLE = "TRAINOPS_CONTROL_URI"
"""Environment variable that every replica gets after the translation: where the trainer looks for orders."""

_EXPERIMENT = re.compile(r"[a-z](?:[a-z0-9_]*[a-z0-9])?")
_NOT_LABEL = re.compile(r"[^a-z0-9_-]+")


def check_experiment_name(name: str, source: str = "") -> str:
    """Return `name` when it can stand in labels, paths and DAG ids; raise ConfigError else."""
    if _EXPERIMENT.fullmatch(name) and len(name) <= EXPERIMENT_LENGTH:
        return name
    suggestion = re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_")[:EXPERIMENT_LENGTH].rstrip("_")
    raise ConfigError(
        "an experiment's name is lowercase letters, digits and _, starts with a letter, ends with a letter or "
        f"digit, and has at most {EXPERIMENT_LENGTH} characters",
        source=source,
        key="experiment",
        value=name,
        next_step=f"rename the file to {suggestion or 'experiment'}.yaml",
    )


def experiment_of_dag(dag: str) -> str:
    """What stands for the experiment in the keys of a DAG that has none: its id, short enough and distinct."""
    name = re.sub(r"[^a-z0-9_]+", "_", dag.lower()).strip("_")
    name = name if name[:1].isalpha() else f"dag_{name}".rstrip("_")
    if name == dag and len(name) <= EXPERIMENT_LENGTH:
        return name
    digest = hashlib.sha256(dag.encode()).hexdigest()[:8]
    return f"{name[: EXPERIMENT_LENGTH - 9].rstrip('_')}_{digest}"


def dag_id(experiment: str) -> str:
    """Id of the DAG that trains `experiment`."""
    return f"train_{experiment}"


def run_key(experiment: str, moment: datetime, dag: str, run: str) -> str:
    """Key of a run: experiment, the run's UTC minute, and 8 hex digits of DAG id and run id."""
    digest = hashlib.sha256(f"{dag}\n{run}".encode()).hexdigest()[:8]
    return f"{experiment}-{moment:%Y%m%dt%H%M}-{digest}"


def job_key(run: str, task: str, map_index: int = -1) -> str:
    """Key of a job: the unit of record, label, queue request and lease."""
    name = f"{run}-{label_value(task)}"
    return f"{name}-{map_index}" if map_index >= 0 else name


def label_value(text: str) -> str:
    """Make `text` a label value; one that had to be changed or cut gains a hash, so that it stays distinct."""
    value = _NOT_LABEL.sub("-", text.lower())
    if value == text and len(value) <= LABEL_LENGTH:
        return value
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{value[: LABEL_LENGTH - 13]}-{digest}"


def fingerprint(value: object) -> str:
    """First 16 hex digits of the SHA-256 of `value` as canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def dataset_folder(work: str, dataset: str, sha16: str) -> str:
    """Folder of a staged dataset."""
    return f"{work}/datasets/{dataset}/{sha16}"


def dataset_parts(work: str, dataset: str) -> str:
    """Folder of the parts that the versions of a dataset are made of."""
    return f"{work}/datasets/{dataset}/parts"


def dataset_groups(work: str, dataset: str) -> str:
    """Folder of what groups of a dataset's files were read to."""
    return f"{work}/datasets/{dataset}/groups"


def dataset_group(work: str, dataset: str, key: str) -> str:
    """Object that keeps what a group of a dataset's files was read to."""
    return f"{dataset_groups(work, dataset)}/{key}.json"


def tokens_folder(work: str, dataset_sha16: str, tokenizer_sha16: str) -> str:
    """Folder of the token shards of one dataset under one tokenizer."""
    return f"{work}/tokens/{dataset_sha16}-{tokenizer_sha16}"


def package_uri(work: str, version: str, sha16: str) -> str:
    """Object of a packaged trainer."""
    return f"{work}/packages/trainer/{version}/{sha16}/trainer-{version}.tar.gz"


def run_folder(work: str, experiment: str, run: str) -> str:
    """Folder of everything that belongs to a run."""
    return f"{work}/runs/{experiment}/{run}"


def record_uri(work: str, experiment: str, run: str, task: str, map_index: int = -1) -> str:
    """Object that holds the record of a job key."""
    suffix = f"-{map_index}" if map_index >= 0 else ""
    return f"{run_folder(work, experiment, run)}/{task}{suffix}.json"


def log_position_uri(record: str, watch: str) -> str:
    """Where a deferred task keeps how far it has told the log of its job."""
    return f"{record.removesuffix('.json')}/log-positions/{watch}.json"


def generation_folder(work: str, experiment: str, run: str, generation: int) -> str:
    """Folder of one generation: what a first start, or a clear, began."""
    return f"{run_folder(work, experiment, run)}/g{generation}"


def task_folder(generation: str, task: str, map_index: int = -1) -> str:
    """Folder, in that of the run's generation, of a job beside the run's main one, or of one of many mapped jobs."""
    return f"{generation}/{task}-{map_index}" if map_index >= 0 else f"{generation}/{task}"


def attempt_folder(folder: str, attempt: int) -> str:
    """Folder of one attempt, one submitted job, in the folder of its generation."""
    return f"{folder}/a{attempt}"


def control_folder(folder: str, attempt: int) -> str:
    """Where the trainer of an attempt looks for orders, and answers them."""
    return f"{attempt_folder(folder, attempt)}/control"


def pool_gpus(accelerators: Mapping[str, int], region: str, provisioning: str) -> dict[str, int]:
    """Accelerators by the name of their pool; a type of which there are none is left out."""
    return {pool_name(kind, region, provisioning): count for kind, count in accelerators.items() if count}


def durations_uri(work: str, experiment: str) -> str:
    """Object that says how long the last runs of an experiment trained."""
    return f"{work}/durations/{experiment}.json"


def day_costs_uri(work: str, day: date, owner: str) -> str:
    """Object that says what the runs of an owner cost which start in a UTC day."""
    return f"{work}/costs/{day:%Y-%m-%d}/{label_value(owner)}.json"


def pool_name(accelerator: str, region: str, provisioning: str) -> str:
    """Name of a GPU pool, such as `NVIDIA_TESLA_T4/us-central1/standard`."""
    return f"{accelerator}/{region}/{provisioning}"


def ledger_uri(work: str) -> str:
    """The one compare-and-swap object of the GPU queue."""
    return f"{work}/queue/ledger.json"


def request_uri(work: str, job: str) -> str:
    """Queue request of a job key, written only by its owner."""
    return f"{work}/queue/requests/{job}.json"


def orders_folder(work: str) -> str:
    """Prefix of all that people asked of the queue."""
    return f"{work}/queue/orders/"


def job_orders_folder(work: str) -> str:
    """Prefix of what people asked of job keys."""
    return f"{orders_folder(work)}jobs/"


def pool_orders_folder(work: str) -> str:
    """Prefix of what people asked of pools."""
    return f"{orders_folder(work)}pools/"


def job_order_uri(work: str, job: str) -> str:
    """What people asked of a job key."""
    return f"{job_orders_folder(work)}{job}.json"


def pool_order_uri(work: str, pool: str) -> str:
    """What people asked of a pool, whose name has its three parts between slashes."""
    return f"{pool_orders_folder(work)}{pool}.json"


def version_folder(models: str, model: str, run: str, generation: int) -> str:
    """Immutable folder of a model version."""
    return f"{models}/{model}/versions/{run}-g{generation}"


def model_asset(model: str) -> str:
    """Name of the Airflow asset that is updated whenever a channel of the model is pointed at another version."""
    return f"model_{model.replace('-', '_')}"


def channel_uri(models: str, model: str, channel: str) -> str:
    """Pointer of a channel: candidate or production."""
    return f"{models}/{model}/channels/{channel}.json"
