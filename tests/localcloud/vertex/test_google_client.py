"""Google's own client, unchanged, over its REST transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.localcloud.vertex.conftest import StandIn

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning")
PARENT = "projects/local-llm/locations/us-central1"


@pytest.fixture
def client(vertex: StandIn) -> Any:
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.aiplatform_v1.services.job_service import JobServiceClient
    from google.cloud.aiplatform_v1.services.job_service.transports.rest import JobServiceRestTransport

    host = f"127.0.0.1:{vertex.port}"
    anonymous = AnonymousCredentials()  # type: ignore[no-untyped-call]
    return JobServiceClient(transport=JobServiceRestTransport(host=host, url_scheme="http", credentials=anonymous))


def _job(code: str) -> Any:
    from google.cloud.aiplatform_v1 import types
    from google.protobuf import duration_pb2

    pool = types.WorkerPoolSpec(
        machine_spec=types.MachineSpec(
            machine_type="n1-standard-4",
            accelerator_type=types.AcceleratorType.NVIDIA_TESLA_T4,
            accelerator_count=2,
        ),
        replica_count=1,
        container_spec=types.ContainerSpec(
            image_uri="any",
            command=["python", "-c"],
            args=[code],
            env=[types.EnvVar(name="A", value="1")],
        ),
    )
    spec = types.CustomJobSpec(
        worker_pool_specs=[pool, types.WorkerPoolSpec(), pool],
        scheduling=types.Scheduling(
            timeout=duration_pb2.Duration(seconds=3600),
            strategy=types.Scheduling.Strategy.SPOT,
        ),
    )
    return types.CustomJob(display_name="from google", job_spec=spec, labels={"by": "google"})


def test_googles_client_creates_gets_lists_cancels_and_deletes(vertex: StandIn, client: Any) -> None:
    from google.api_core.exceptions import NotFound
    from google.cloud.aiplatform_v1 import types

    job = client.create_custom_job(parent=PARENT, custom_job=_job("import time; time.sleep(60)"))
    assert job.state == types.JobState.JOB_STATE_QUEUED
    vertex.wait(job.name, "RUNNING")
    job = client.get_custom_job(name=job.name)
    assert job.state == types.JobState.JOB_STATE_RUNNING
    assert job.job_spec.worker_pool_specs[0].machine_spec.accelerator_type == types.AcceleratorType.NVIDIA_TESLA_T4
    assert job.job_spec.scheduling.timeout.seconds == 3600
    assert job.start_time is not None
    request = {"parent": PARENT, "filter": "labels.by=google AND state=JOB_STATE_RUNNING", "page_size": 1}
    assert [found.name for found in client.list_custom_jobs(request=request)] == [job.name]
    client.cancel_custom_job(name=job.name)
    vertex.wait(job.name, "CANCELLED")
    assert client.get_custom_job(name=job.name).error.code == 1
    operation = client.delete_custom_job(name=job.name)
    assert operation.done()
    assert operation.result() is not None
    with pytest.raises(NotFound):
        client.get_custom_job(name=job.name)


def test_googles_client_understands_a_refusal(client: Any) -> None:
    from google.api_core.exceptions import BadRequest

    job = _job("pass")
    job.job_spec.worker_pool_specs[0].machine_spec.accelerator_count = 3
    with pytest.raises(BadRequest, match="List of found errors"):
        client.create_custom_job(parent=PARENT, custom_job=job)
