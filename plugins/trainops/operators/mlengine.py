"""Start a training job from AI Platform's TrainingInput, as a Vertex AI CustomJob that is never submitted twice."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk.exceptions import AirflowTaskTimeout
from airflow.sdk.log import mask_secret

from trainops import naming
from trainops.errors import CapacityError, ConfigError, ServiceError, TrainopsError
from trainops.hooks.task import failure, refused, state_of, take_over, task_key, try_of
from trainops.hooks.unfollowed import error_of_event, unfollowed
from trainops.links.vertex import VertexJobLink, job_url, log_url
from trainops.operators.places import given_places, planned_places
from trainops.operators.training_fields import FIELDS, TrainingArguments, merged_training_input
from trainops.settings import load_settings
from trainops.triggers.run import RunTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context

    from trainops.hooks.trainops import TrainopsHook
    from trainops.policy.record import Record
    from trainops.steps.start import JobRequest
    from trainops.steps.watch import Until, Watch

MODES = ("PRODUCTION", "CLOUD", "DRY_RUN")
"""What the Google provider's operator took; the first two submit the job."""


class MLEngineStartTrainingJobOperator(TrainingArguments):
    """Takes the job's place in the GPU queue, submits it when admitted, and returns where everything is.

    It may run any number of times: a retry finds the job of the first try, a clear begins a new generation (and ends
    the jobs of the one before). Of a config it accepts AI Platform's TrainingInput whole (`training_input`) as well as
    the arguments of the operator that the Google provider removed in 15.0.0 (`TrainingArguments` has those that are
    fields of a TrainingInput).

    :param project_id: must be the environment's project; it says nothing that the environment does not.
    :param job_id: display name of the job, and the XCom `job_id`; the run key when absent. See
        `trainops.hooks.mlengine.display_name` for why it is not normalised.
    :param mode: `DRY_RUN` translates, logs the job and its notes, and submits nothing; `PRODUCTION` or `CLOUD`.
    :param labels: labels of the job; one with a name by which Trainops finds its jobs is kept as `user-NAME`.
    :param plan: URI of the plan that `resolve_run` wrote; the generation keeps a copy, and the trainer reads it.
    :param run_key: key of the run; made of DAG id and run id when absent.
    :param wait: wait until the job has ended (a job without a sensor of its own), and push `gcp_metadata`.
    :param done_if_exists: URI of an object; when it exists the work is done already, and no job is submitted.
    :param candidates: other machines, in the order in which they are tried when Google or the GPU queue has none of the
        first; each names the fields of the TrainingInput that differ, such as `{"region": "us-east1"}`. A plan has
        its own.
    :param max_spot_losses: Spot machines are given up after so many losses, for a candidate that is on demand.
    :param max_usd: what all jobs of the task may cost by the price list; the one that reaches it is ended.
    :param priority: priority class in the GPU queue, larger goes first; a plan has its own.
    :param preemptible: whether the job saves its state and ends well when an object `preempt` appears in the folder
        that TRAINOPS_CONTROL_URI names, so that the GPU queue may ask it to make room and resume it later; a
        job with a plan does, any other does not unless told so here.
    :param deferrable: wait in the triggerer and hold no worker.
    :param experiment: experiment of the run; the DAG id when absent.
    :param environment: name of a file in `configs/environments`; None for what `TRAINOPS_ENVIRONMENT` says.
    :param poll_interval: seconds between looks while waiting; None for the environment's.
    :param cancel_on_kill: end the job when the task is killed, or fails and nobody goes on with the job.
    :param execution_timeout: holds while deferred, too (Airflow's does not): a try that waits for the job ends it after
        so long, one that only submits gives up waiting for GPUs.
    """

    template_fields: Sequence[str] = (
        *FIELDS, "job_id", "project_id", "labels", "mode", "training_input", "training_input_uri", "plan", "run_key",
        "experiment", "candidates", "done_if_exists", "gcp_conn_id", "impersonation_chain", "environment",
    )  # fmt: skip
    operator_extra_links = (VertexJobLink(),)
    ui_color = "#d5efc8"
    waits: ClassVar[bool] = False
    """What `wait` is when it is not given."""

    def __init__(
        self,
        *,
        job_id: str | None = None,
        project_id: str | None = None,
        labels: dict[str, str] | None = None,
        mode: str = "PRODUCTION",
        plan: str | None = None,
        run_key: str | None = None,
        experiment: str | None = None,
        wait: bool | None = None,
        done_if_exists: str | None = None,
        candidates: list[dict[str, Any]] | None = None,
        max_spot_losses: int | None = None,
        max_usd: float | None = None,
        priority: int = 50,
        preemptible: bool | None = None,
        deferrable: bool = True,
        poll_interval: float | None = None,
        max_unknown_time: timedelta = timedelta(minutes=30),
        cancel_on_kill: bool = True,
        gcp_conn_id: str | None = None,
        impersonation_chain: str | Sequence[str] | None = None,
        environment: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.job_id = job_id
        self.project_id = project_id
        self.labels = labels
        self.mode = mode
        self.plan = plan
        self.run_key = run_key
        self.experiment = experiment
        self.wait = self.waits if wait is None else wait
        self.done_if_exists = done_if_exists
        self.candidates = candidates
        self.max_spot_losses = max_spot_losses
        self.max_usd = max_usd
        self.priority = priority
        self.preemptible = preemptible
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.max_unknown_time = max_unknown_time
        self.cancel_on_kill = cancel_on_kill
        self.gcp_conn_id = gcp_conn_id
        self.impersonation_chain = impersonation_chain
        self.environment = environment
        self.job_name: str | None = None
        self._killed = False

    def execute(self, context: Context) -> dict[str, Any]:
        """Begin or resume the job key, and reconcile until the job is submitted (or, asked to wait, has ended)."""
        from trainops.hooks.trainops import TrainopsHook

        try:
            hook = TrainopsHook(self.environment, self.gcp_conn_id, self.impersonation_chain)
            if self._is_dry_run():
                from trainops.operators.dry_run import dry_run

                return dry_run(hook.settings, self._request(context, hook), self.log.info)
            if self.done_if_exists and hook.services().storage.exists(self.done_if_exists):
                self.log.info("nothing to do, and no job to pay for: %s exists already", self.done_if_exists)
                return {"job_name": None, "exists": self.done_if_exists}
            watch = self._begin(context, hook)
        except TrainopsError as error:
            raise refused(error) from error
        return self._follow(context, watch)

    def execute_complete(self, context: Context, event: dict[str, Any] | None = None) -> dict[str, Any]:
        """The trigger is done: tell what came of it."""
        watch = self._watch(context, (event or {}).get("position"))
        error = error_of_event(event)
        if error is not None:
            raise unfollowed(watch, context, error, cancel=self.cancel_on_kill)
        watch.look()
        return self._done(context, watch)

    def on_kill(self) -> None:
        """Note the signal only: a kill and a rolling deploy send the same one, and the loop asks which it was."""
        self._killed = True

    def _begin(self, context: Context, hook: TrainopsHook) -> Watch:
        from trainops.steps.start import CHANGED, begin

        services = hook.services()
        request = self._request(context, hook)
        record, told = begin(
            services.storage, hook.settings, self._record_uri(context), request, try_of(context), actor=self.task_id
        )
        watch = self._watch(context)
        watch.hide_secrets(record)
        for line in told:
            self.log.log(logging.WARNING if line.startswith(CHANGED) else logging.INFO, "%s", line)
        context["ti"].xcom_push(key="job_id", value=record.spec["displayName"])
        return watch

    def _is_dry_run(self) -> bool:
        if self.mode in MODES:
            return self.mode == "DRY_RUN"
        raise ConfigError("unknown mode", source=self.task_id, key="mode", value=self.mode, allowed=MODES)

    def _request(self, context: Context, hook: TrainopsHook) -> JobRequest:
        from trainops.hooks.mlengine import check_project, display_name
        from trainops.steps.start import JobRequest

        check_project(self.project_id, hook.settings, self.task_id)
        key = task_key(context)
        run_key, experiment = self._run(context)
        plan = self._plan(hook)
        body = merged_training_input(self, default_region=hook.settings.region, stored=self._stored(hook))
        places = given_places(self) if plan is None else planned_places(plan)
        own = {"dag": naming.label_value(key["dag_id"])}
        return JobRequest(
            job_key=naming.job_key(run_key, key["task_id"], key["map_index"]), run_key=run_key, experiment=experiment,
            task=key["task_id"], display_name=display_name(self.job_id or run_key), training_input=body, plan=plan,
            **places, labels=own, user_labels=self.labels or {},
            priority=int((plan or {}).get("priority", self.priority)),
            estimate_hours=(plan or {}).get("estimate_hours"), preemptible=self.preemptible,
            max_waiting_hours=(plan or {}).get("max_waiting_hours"),
            max_running_hours=(plan or {}).get("max_running_hours"),
            wait_limit=None if self.wait else self.execution_timeout,
            try_limit=self.execution_timeout if self.wait else None,
        )  # fmt: skip

    def _stored(self, hook: TrainopsHook) -> Mapping[str, Any] | None:
        if not self.training_input_uri:
            return None
        if self.training_input is not None:
            raise ConfigError(
                "there is a training_input as well", source=self.task_id, key="training_input_uri",
                value=self.training_input_uri, next_step="keep one of the two",
            )  # fmt: skip
        from trainops.operators.stored_input import stored_training_input

        return stored_training_input(hook.services().storage, self.training_input_uri)

    def _plan(self, hook: TrainopsHook) -> dict[str, Any] | None:
        from trainops.steps.run_folder import read_plan

        return None if self.plan is None else read_plan(hook.services().storage, self.plan).to_json()

    def _run(self, context: Context) -> tuple[str, str]:
        """Run key and experiment: those given, else made of DAG id and run id for a DAG without an experiment."""
        if self.run_key and self.experiment:
            return self.run_key, self.experiment
        key = task_key(context)
        dag_run: Any = context["dag_run"]
        experiment = self.experiment or naming.experiment_of_dag(key["dag_id"])
        moment = dag_run.logical_date or dag_run.run_after
        return naming.run_key(experiment, moment, key["dag_id"], key["run_id"]), experiment

    def _record_uri(self, context: Context) -> str:
        key = task_key(context)
        run_key, experiment = self._run(context)
        work = load_settings(self.environment).work
        return naming.record_uri(work, experiment, run_key, key["task_id"], key["map_index"])

    def _watch(self, context: Context, position: dict[str, Any] | None = None) -> Watch:
        from trainops.hooks.trainops import TrainopsHook
        from trainops.steps.watch import Watch

        hook = TrainopsHook(self.environment, self.gcp_conn_id, self.impersonation_chain)
        return Watch(
            hook.services(), self._record_uri(context), until=self._until, actor=self.task_id,
            say=lambda line: self.log.info("%s", line), position=position,
            max_unknown_seconds=self.max_unknown_time.total_seconds(), hide=mask_secret,
        )  # fmt: skip

    def _poll_seconds(self) -> float:
        return self.poll_interval or load_settings(self.environment).poll_seconds

    @property
    def _until(self) -> Until:
        return "ended" if self.wait else "submitted"

    def _defer(self, context: Context, watch: Watch) -> None:
        record = take_over(watch)
        self.defer(
            trigger=RunTrigger(
                record_uri=watch.run.store.uri, task=task_key(context), until=self._until,
                generation=record.generation, poll_seconds=self._poll_seconds(),
                max_unknown_seconds=self.max_unknown_time.total_seconds(),
                environment=watch.services.settings.name,  # the triggerer's own may be another
                gcp_conn_id=self.gcp_conn_id, impersonation_chain=self.impersonation_chain,
                cancel_on_kill=self.cancel_on_kill, position=watch.position,
            ),
            method_name="execute_complete",
        )  # fmt: skip

    def _follow(self, context: Context, watch: Watch) -> dict[str, Any]:
        """Look once, then wait in the triggerer or here; what ends the wait before the job has ended is told alike."""
        try:
            done = watch.look().done
            self._tell_job(watch.run.store.load())
            if not done and self.deferrable:
                self._defer(context, watch)
            if not done:
                self._wait_here(context, watch)
        except (ServiceError, CapacityError, ConfigError) as error:
            raise unfollowed(watch, context, error, cancel=self.cancel_on_kill) from error
        except AirflowTaskTimeout:
            if self.wait and self.cancel_on_kill:
                watch.abandon(f"the execution_timeout of {self.task_id}, {self.execution_timeout}, has passed")
            raise
        return self._done(context, watch)

    def _wait_here(self, context: Context, watch: Watch) -> None:
        """Wait on the worker; a signal makes the loop ask whether it was a kill."""
        while not watch.look().done:
            deadline = time.monotonic() + self._poll_seconds()
            while time.monotonic() < deadline and not self._killed:
                time.sleep(0.5)
            if self._killed:
                self._leave(context, watch)

    def _leave(self, context: Context, watch: Watch) -> None:
        state = state_of(task_key(context))
        if self.cancel_on_kill and state in {"failed", "skipped", "success"}:
            why = f"{self.task_id} was marked {state} while its job was waited for"
            watch.run.cancel(why, watch.run.store.load().generation)
            watch.run.advance()
        # Airflow says "restarting" of a task that was cleared while it ran, and nothing more of it later.
        from trainops.policy.lifecycle import CLEARED

        how = CLEARED if state == "restarting" else "stopped"
        watch.run.store.change(lambda now: now and _ended(now, how))
        raise TrainopsError(f"{self.task_id} was stopped while it waited (its state is {state}); the next try goes on")

    def _done(self, context: Context, watch: Watch) -> dict[str, Any]:
        from trainops.steps.run_verdict import error_of, summary

        record = watch.run.store.load()
        watch.hide_secrets(record)
        error = error_of(record, self._last_lines(watch, record))
        watch.run.store.change(lambda now: now and _ended(now, "failed" if error else "submitted"))
        if error is not None:
            raise failure(record, error)
        self._tell_job(record)
        if self.wait:
            told = {"job_id": record.spec["displayName"], "project_id": load_settings(self.environment).project}
            context["ti"].xcom_push(key="gcp_metadata", value={**told, "job_name": self.job_name})
        return {**summary(record), "record_uri": watch.run.store.uri}

    def _last_lines(self, watch: Watch, record: Record) -> list[str]:
        attempt = record.attempt
        if record.verdict is None or attempt is None or not attempt.job_name:
            return []
        return watch.follower.last_lines(attempt.job_name)

    def _tell_job(self, record: Record) -> None:
        """Remember the job for the link, also of a task that waits on; say once where it is seen."""
        job_name = record.attempt.job_name if record.attempt else None
        if job_name is None or job_name == self.job_name:
            return
        self.job_name = job_name
        region, number = job_name.split("/")[3], job_name.rsplit("/", 1)[-1]
        self.log.info("job: %s", job_url(job_name))
        self.log.info("log: %s", log_url(job_name))
        self.log.info("stream it: gcloud ai custom-jobs stream-logs %s --region=%s", number, region)
        self.log.info("cancel it: gcloud ai custom-jobs cancel %s --region=%s", number, region)


def _ended(record: Record, how: str) -> Record:
    return record.model_copy(update={"owner": record.owner.model_copy(update={"ended": how})})
