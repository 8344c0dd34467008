"""What only Vertex AI has, reachable from an AI Platform config under its key `vertex`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trainops.jobspec.wire import Duration, Pairs, Strings, Text, Wire


class ReservationAffinity(Wire):
    """Which Compute Engine reservations the machines may use."""

    reservation_affinity_type: Literal["NO_RESERVATION", "ANY_RESERVATION", "SPECIFIC_RESERVATION"] = Field(
        description="SPECIFIC_RESERVATION also needs key and values."
    )
    key: Text | None = Field(default=None, description="compute.googleapis.com/reservation-name.")
    values: Strings | None = Field(default=None, description="projects/P/zones/Z/reservations/R, one.")


class DnsPeeringConfig(Wire):
    """A domain that jobs resolve through a network of yours."""

    domain: Text = Field(description="DNS name, with a dot at the end.")
    target_project: Text = Field(description="Project of the network.")
    target_network: Text = Field(description="Name of the network.")


class PscInterfaceConfig(Wire):
    """Private Service Connect: the job's way into a network of yours."""

    network_attachment: Text | None = Field(default=None, description="Network attachment in the job's region.")
    dns_peering_configs: list[DnsPeeringConfig] | None = Field(default=None, description="Domains to resolve there.")


class NfsMount(Wire):
    """A network file system on every replica."""

    server: Text = Field(description="Address of the server.")
    path: Text = Field(description="Exported path.")
    mount_point: Text = Field(description="Where it appears: below /mnt/nfs/.")


class VertexExtras(Wire):
    """Fields of a Vertex AI custom job that AI Platform's TrainingInput has no word for."""

    strategy: Literal["STANDARD", "SPOT", "FLEX_START"] | None = Field(
        default=None, description="How machines are provisioned."
    )
    max_wait_duration: Duration | None = Field(
        default=None, description="Seconds to wait for machines; FLEX_START only."
    )
    disable_retries: bool | None = Field(default=None, description="Never restart the job.")
    restart_job_on_worker_restart: bool | None = Field(
        default=None, description="Restart all replicas when one restarts."
    )
    persistent_resource_id: Text | None = Field(default=None, description="Run on this persistent resource.")
    reservation_affinity: ReservationAffinity | None = Field(
        default=None, description="Applied to pools with accelerators."
    )
    tpu_topology: Text | None = Field(default=None, description="Slice of the TPU machines, such as 2x4.")
    reduction_server: bool | None = Field(
        default=None, description="Run Reduction Server in place of parameter servers."
    )
    network: Text | None = Field(default=None, description="projects/NUMBER/global/networks/NAME.")
    reserved_ip_ranges: Strings | None = Field(default=None, description="Reserved ranges of `network`.")
    psc_interface_config: PscInterfaceConfig | None = Field(default=None, description="Private Service Connect.")
    nfs_mounts: list[NfsMount] | None = Field(default=None, description="Network file systems, on every replica.")
    service_account: Text | None = Field(default=None, description="Account that the job runs as.")
    enable_web_access: bool | None = Field(default=None, description="Interactive shell on the replicas.")
    enable_dashboard_access: bool | None = Field(default=None, description="Dashboard of the primary replica.")
    tensorboard: Text | None = Field(default=None, description="projects/P/locations/L/tensorboards/T.")
    experiment: Text | None = Field(default=None, description="Vertex AI experiment context.")
    experiment_run: Text | None = Field(default=None, description="Vertex AI experiment run context.")
    protected_artifact_location_id: Text | None = Field(default=None, description="Location of protected artifacts.")
    models: Strings | None = Field(default=None, description="Models that the job reads.")
    kms_key_name: Text | None = Field(default=None, description="Customer-managed encryption key.")
    labels: Pairs | None = Field(default=None, description="Labels of the job.")
    env: Pairs | None = Field(default=None, description="Environment of every replica.")
