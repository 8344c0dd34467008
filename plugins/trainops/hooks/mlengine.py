"""The Google provider's MLEngineHook, for Python code that calls it: the jobs are Vertex AI's now."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from trainops.errors import ConfigError, NotFoundError, RequestRefused
from trainops.gcp.vertex import Vertex
from trainops.hooks.trainops import ImpersonationChain, TrainopsHook
from trainops.jobspec.training_input import parse_training_input
from trainops.jobspec.translate import Images, translate
from trainops.policy.lifecycle import TERMINAL
from trainops.settings import Settings
from trainops.steps.services import Services

Job = dict[str, Any]

DISPLAY_NAME_LENGTH = 128
"""Longest display name that Vertex AI takes."""


def display_name(job_id: str) -> str:
    """Return the display name of the job with this id: the id itself, and cut, with a hash, beyond 128 characters.

    AI Platform took letters, digits and _ only, so the Google provider put _ for everything else, and `a-b` and `a.b`
    became one job. Vertex AI numbers jobs itself and takes any text as display name: unchanged ids stay different.
    """
    if len(job_id) <= DISPLAY_NAME_LENGTH:
        return job_id
    digest = hashlib.sha256(job_id.encode()).hexdigest()[:12]
    return f"{job_id[: DISPLAY_NAME_LENGTH - 13]}-{digest}"


class MLEngineHook:
    """Creates, finds and cancels training jobs by the id that the user gave them.

    Jobs are answered as Vertex AI keeps them (CustomJob in REST JSON). A job made here takes no place in the GPU queue
    and is not resubmitted: for that, and for never submitting twice, there is MLEngineStartTrainingJobOperator.

    :param gcp_conn_id: the connection; None for the environment's.
    :param impersonation_chain: service accounts to act as; None for the environment's.
    :param region: where jobs are looked for; the environment's when None.
    :param environment: name of a file in `configs/environments`; None for what `TRAINOPS_ENVIRONMENT` says.
    """

    def __init__(
        self,
        gcp_conn_id: str | None = None,
        impersonation_chain: ImpersonationChain = None,
        *,
        region: str | None = None,
        environment: str | None = None,
    ) -> None:
        self._hook = TrainopsHook(environment, gcp_conn_id, impersonation_chain)
        self.settings = self._hook.settings
        self.region = region or self.settings.region

    def create_job(
        self,
        *,
        job: Mapping[str, Any],
        project_id: str | None = None,
        use_existing_job_fn: Callable[[Job], bool] | None = None,
        poll_seconds: float | None = None,
    ) -> Job:
        """Create a job and return it once it has ended; a job with its id is followed and not created again.

        :param job: body of AI Platform's projects.jobs: `jobId`, `labels`, `trainingInput`.
        :param use_existing_job_fn: whether the job that has the id already will do.
        :param poll_seconds: time between looks; None for the environment's.
        :raises ConfigError: the job cannot be translated, or another project is asked for.
        :raises RequestRefused: the job that has the id will not do.
        """
        existing = self._find(_job_id(job), project_id)
        if existing is not None and use_existing_job_fn is not None and not use_existing_job_fn(existing):
            raise RequestRefused(f"{existing['name']} has the id {_job_id(job)} already, and will not do")
        found = existing or self._create(job)
        return self._ended(str(found["name"]), poll_seconds or self.settings.poll_seconds)

    def create_job_without_waiting_result(self, body: Mapping[str, Any], project_id: str | None = None) -> str:
        """Create a job, unless one has its id, and return the id."""
        if self._find(_job_id(body), project_id) is None:
            self._create(body)
        return _job_id(body)

    def get_job(self, *, job_id: str, project_id: str | None = None) -> Job:
        """Return the newest job with this id.

        :param job_id: the id that the user gave, or `projects/P/locations/R/customJobs/N`.
        :raises NotFoundError: no such job in the region.
        """
        found = self._find(job_id, project_id)
        if found is None:
            raise NotFoundError(f"no job in {self.settings.project}, {self.region} has the id {job_id!r}")
        return found

    def cancel_job(self, *, job_id: str, project_id: str | None = None) -> Job:
        """Ask that a job be cancelled and return it as it then is; one that has ended stays as it is.

        :raises NotFoundError: no such job in the region.
        """
        job = self.get_job(job_id=job_id, project_id=project_id)
        name = str(job["name"])
        if job["state"] in TERMINAL:
            return job
        try:
            self._vertex(name).cancel(name)
        except RequestRefused:
            if self._vertex(name).get(name)["state"] not in TERMINAL:  # else it ended between the two requests
                raise
        return self._vertex(name).get(name)

    def _create(self, job: Mapping[str, Any]) -> Job:
        """Send one create; the body's own region goes before the hook's."""
        spec = parse_training_input(_with_region(job, self.region), f"job {_job_id(job)}")
        settings = self.settings
        translation = translate(
            spec, display_name=display_name(_job_id(job)), labels={}, substitute=settings.substitute,
            images=Images(cpu=settings.image.cpu, gpu=settings.image.gpu), service_account=settings.service_account,
        )  # fmt: skip
        return self._services.vertex(translation.region).create(translation.job)

    def _find(self, job_id: str, project_id: str | None) -> Job | None:
        check_project(project_id, self.settings, "MLEngineHook")
        if job_id.startswith("projects/"):
            return self._vertex(job_id).get(job_id)
        name = display_name(job_id)
        jobs = self._services.vertex(self.region).list(f"display_name={json.dumps(name, ensure_ascii=False)}")
        return next((job for job in jobs if job["displayName"] == name), None)

    def _ended(self, name: str, poll_seconds: float) -> Job:
        while True:
            job = self._vertex(name).get(name)
            if job["state"] in TERMINAL:
                return job
            time.sleep(poll_seconds)

    def _vertex(self, name: str) -> Vertex:
        return self._services.vertex_of(name)

    @cached_property
    def _services(self) -> Services:
        return self._hook.services()


def check_project(project_id: str | None, settings: Settings, source: str) -> None:
    """Refuse a project that is not the environment's.

    :raises ConfigError: it is another one.
    """
    if project_id is None or project_id == settings.project:
        return
    raise ConfigError(
        f"the environment {settings.name} works in another project", source=source, key="project_id",
        value=project_id, allowed=[settings.project],
        next_step="leave it out, or give `environment` the name of one that works in this project",
    )  # fmt: skip


def _job_id(job: Mapping[str, Any]) -> str:
    job_id = job.get("jobId", job.get("job_id"))
    if isinstance(job_id, str) and job_id:
        return job_id
    raise ConfigError("a job needs an id", source="MLEngineHook", key="jobId", next_step='add {"jobId": "..."}')


def _with_region(job: Mapping[str, Any], region: str) -> dict[str, Any]:
    """The body with a region in its input: Vertex AI's jobs live in one."""
    for key in ("trainingInput", "training_input"):
        if isinstance(job.get(key), Mapping):
            return {**job, key: {"region": region, **job[key]}}
    return dict(job)
