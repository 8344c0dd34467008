"""Cancel a training job by the id that the user gave it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowSkipException

from trainops.errors import TrainopsError
from trainops.hooks.mlengine import MLEngineHook
from trainops.hooks.task import refused

if TYPE_CHECKING:
    from airflow.sdk import Context


_NO_ID = (None, "", "None")
"""What a template makes of an XCom that was never pushed."""


class MLEngineTrainingCancelJobOperator(BaseOperator):
    """Asks Vertex AI to cancel a job; one that has ended already is no error, one that never was is.

    It is skipped when there is no id: the task that starts the job failed before it pushed the XCom `job_id`.
    A job that still waits in the GPU queue does not exist on Vertex AI yet: fail or clear its task instead.

    :param job_id: what the job was started with, or `projects/P/locations/R/customJobs/N`; of several jobs with one id
        the newest.
    :param project_id: must be the environment's project.
    :param region: region of the job; the environment's when None.
    :param gcp_conn_id: the connection; None for the environment's.
    :param impersonation_chain: service accounts to act as; None for the environment's.
    :param environment: name of a file in `configs/environments`; None for what `TRAINOPS_ENVIRONMENT` says.
    """

    template_fields: Sequence[str] = (
        "job_id", "project_id", "region", "gcp_conn_id", "impersonation_chain", "environment",
    )  # fmt: skip

    def __init__(
        self,
        *,
        job_id: str,
        project_id: str | None = None,
        region: str | None = None,
        gcp_conn_id: str | None = None,
        impersonation_chain: str | Sequence[str] | None = None,
        environment: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.job_id = job_id
        self.project_id = project_id
        self.region = region
        self.gcp_conn_id = gcp_conn_id
        self.impersonation_chain = impersonation_chain
        self.environment = environment

    def execute(self, context: Context) -> None:
        """Cancel the job, and tell what state it is in then."""
        if self.job_id in _NO_ID:
            raise AirflowSkipException(
                "nothing was submitted, nothing to cancel: the task that starts the job left no id"
            )
        try:
            hook = MLEngineHook(
                self.gcp_conn_id, self.impersonation_chain, region=self.region, environment=self.environment
            )
            job = hook.cancel_job(job_id=self.job_id, project_id=self.project_id)
        except TrainopsError as error:
            raise refused(error) from error
        self.log.info("%s is %s", job["name"], job["state"])
