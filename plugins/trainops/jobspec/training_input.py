"""AI Platform Training's TrainingInput, strict: the config that people still hold.

Source: discovery document of ml.googleapis.com v1, revision 20251213. Fields that AI Platform required may be missing
here: `translate` names the holes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, PrivateAttr

from trainops.jobspec.hyperparameters import HyperparameterSpec
from trainops.jobspec.spelling import job_folded_in
from trainops.jobspec.vertex_extras import VertexExtras
from trainops.jobspec.wire import Duration, Int32, Int64, Pairs, Strings, Text, Version, Wire
from trainops.validation import validated


class AcceleratorConfig(Wire):
    """Accelerators of each replica of a pool."""

    count: Int64 | None = Field(default=None, description="Accelerators per machine.")
    type: Text | None = Field(
        default=None, description="Such as NVIDIA_TESLA_V100; types that only Vertex AI has are taken too."
    )


class DiskConfig(Wire):
    """Boot disk of each replica of a pool."""

    boot_disk_size_gb: Int32 | None = Field(default=None, description="GB, 100 to 64000; 100 when not given.")
    boot_disk_type: Text | None = Field(
        default=None, description="pd-ssd (when not given), pd-standard or hyperdisk-balanced."
    )


class ReplicaConfig(Wire):
    """What a pool has beside its machine type."""

    accelerator_config: AcceleratorConfig | None = Field(default=None, description="Accelerators of each replica.")
    image_uri: Text | None = Field(default=None, description="Custom container; the master's when not given.")
    container_command: Strings | None = Field(default=None, description="Replaces the container's ENTRYPOINT.")
    container_args: Strings | None = Field(default=None, description="Arguments of the container; excludes `args`.")
    disk_config: DiskConfig | None = Field(default=None, description="Boot disk.")
    tpu_tf_version: Version | None = Field(
        default=None, description="TensorFlow of a TPU worker with a custom container."
    )


class EncryptionConfig(Wire):
    """Customer-managed encryption."""

    kms_key_name: Text | None = Field(default=None, description="projects/P/locations/L/keyRings/R/cryptoKeys/K.")


class Scheduling(Wire):
    """Limits of time, and rank."""

    max_running_time: Duration | None = Field(
        default=None, description="Seconds from RUNNING on, such as 3600s; 7 days else."
    )
    max_wait_time: Duration | None = Field(
        default=None, description="Seconds before RUNNING, at least 1800s; no limit else."
    )
    priority: Int32 | None = Field(default=None, description="0 (when not given) to 1000; higher first.")


class JobBody(Wire):
    """Fields of projects.jobs around its TrainingInput."""

    job_id: Text | None = Field(default=None, description="AI Platform's id of the job.")
    labels: Pairs | None = Field(default=None, description="Labels of the job.")
    parent: Text | None = Field(default=None, description="projects/P, of infrastructure programs.")
    project: Text | None = Field(default=None, description="Project, of infrastructure programs.")
    etag: Text | None = Field(default=None, description="Of a job that was read back.")
    create_time: Text | None = Field(default=None, description="Output only.")
    start_time: Text | None = Field(default=None, description="Output only.")
    end_time: Text | None = Field(default=None, description="Output only.")
    state: Text | None = Field(default=None, description="Output only.")
    error_message: Text | None = Field(default=None, description="Output only.")
    job_position: Text | None = Field(default=None, description="Output only.")
    training_output: dict[str, Any] | None = Field(default=None, description="Output only.")
    prediction_input: dict[str, Any] | None = Field(default=None, description="A prediction job: refused.")
    prediction_output: dict[str, Any] | None = Field(default=None, description="Output only.")


class TrainingInput(Wire):
    """A training job of AI Platform, with the extras of Vertex AI under `vertex`."""

    scale_tier: Literal["BASIC", "STANDARD_1", "PREMIUM_1", "BASIC_GPU", "BASIC_TPU", "CUSTOM"] | None = Field(
        default=None, description="Fixed cluster, or CUSTOM for the types and counts below."
    )
    master_type: Text | None = Field(default=None, description="Machine of the master; required with CUSTOM.")
    master_config: ReplicaConfig | None = Field(default=None, description="Accelerators, image and disk of the master.")
    worker_type: Text | None = Field(default=None, description="Machine of the workers.")
    worker_config: ReplicaConfig | None = Field(
        default=None, description="Accelerators, image and disk of the workers."
    )
    worker_count: Int64 | None = Field(default=None, description="Number of workers; CUSTOM only.")
    parameter_server_type: Text | None = Field(default=None, description="Machine of the parameter servers.")
    parameter_server_config: ReplicaConfig | None = Field(
        default=None, description="As workerConfig, of parameter servers."
    )
    parameter_server_count: Int64 | None = Field(default=None, description="Number of parameter servers; CUSTOM only.")
    evaluator_type: Text | None = Field(default=None, description="Machine of the evaluators.")
    evaluator_config: ReplicaConfig | None = Field(default=None, description="As workerConfig, of evaluators.")
    evaluator_count: Int64 | None = Field(default=None, description="Number of evaluators; CUSTOM only.")
    package_uris: Strings | None = Field(default=None, description="gs:// URIs of .tar.gz or .whl files, at most 100.")
    python_module: Text | None = Field(default=None, description="Module to run.")
    args: Strings | None = Field(default=None, description="Arguments of the module or the container.")
    hyperparameters: HyperparameterSpec | None = Field(
        default=None, description="Tuning: refused by the translation to one job."
    )
    region: Text | None = Field(default=None, description="Region of the job, such as us-central1.")
    job_dir: Text | None = Field(default=None, description="gs:// folder, passed on as --job-dir.")
    runtime_version: Version | None = Field(
        default=None, description="AI Platform runtime; excludes masterConfig.imageUri."
    )
    python_version: Version | None = Field(default=None, description="Python of the runtime.")
    encryption_config: EncryptionConfig | None = Field(default=None, description="Customer-managed encryption.")
    scheduling: Scheduling | None = Field(default=None, description="Limits of time, and rank.")
    network: Text | None = Field(default=None, description="projects/NUMBER/global/networks/NAME.")
    service_account: Text | None = Field(default=None, description="Account that the job runs as.")
    use_chief_in_tf_config: bool | None = Field(
        default=None, description="Whether TF_CONFIG says chief for the master."
    )
    enable_web_access: bool | None = Field(default=None, description="Interactive shell on the replicas.")
    vertex: VertexExtras = Field(default=VertexExtras(), description="What only Vertex AI has.")
    job: JobBody = Field(default=JobBody(), description="What stood around the TrainingInput.")

    _source: str = PrivateAttr(default="")

    @property
    def source(self) -> str:
        """The file, or "conf", that errors name."""
        return self._source


def parse_training_input(data: Mapping[str, Any], source: str) -> TrainingInput:
    """Return `data` as a TrainingInput: REST or snake_case spelling, bare or inside a whole job.

    :param source: the file, or "conf", that errors name.
    :raises ConfigError: an unknown key, a wrong type, a field in both spellings.
    """
    spec = validated(TrainingInput, job_folded_in(data, source), source=source)
    spec._source = source
    return spec
