"""Wait for a training run to end, over preemption, loss and resubmission."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.bases.sensor import BaseSensorOperator, PokeReturnValue
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTaskTimeout,
)
from airflow.sdk.log import mask_secret

from trainops.errors import CapacityError, ConfigError, ServiceError
from trainops.hooks.task import failure, first_start, resume_failed, take_over, task_key
from trainops.hooks.unfollowed import error_of_event, unfollowed
from trainops.triggers.run import RunTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context

    from trainops.steps.watch import Watch

POSITION = "log_position"
TIMEOUT, EXECUTION_TIMEOUT = "timeout", "execution_timeout"


class TrainingJobSensor(BaseSensorOperator):
    """Follows the *run* of a job key to its end, with the replicas' log, loss, tokens/s and time left in its own log.

    A retry of the sensor submits the next attempt of a job that failed, unless the trainer said that a retry cannot
    help. A clear of the sensor alone only waits again.

    :param run: what `MLEngineStartTrainingJobOperator` returned (`record_uri` is what counts).
    :param deferrable: wait in the triggerer and hold no worker; else `mode` says poke or reschedule.
    :param environment: name of a file in `configs/environments`; None for what `TRAINOPS_ENVIRONMENT` says.
    :param gcp_conn_id: Airflow connection; None for the environment's.
    :param impersonation_chain: service accounts to act as; None for the environment's.
    :param poll_interval: seconds between looks while deferred; None for the environment's. `poke_interval` counts in
        the other modes.
    :param max_unknown_time: how long errors of Google that may pass are polled through.
    :param timeout: seconds from the beginning of the first try after which the wait ends and is not retried. It holds
        while deferred, and so does `execution_timeout`, from the beginning of each try. Neither ends the job.
    """

    template_fields: Sequence[str] = ("run", "environment", "gcp_conn_id", "impersonation_chain")
    ui_color = "#d8ecf5"

    def __init__(
        self,
        *,
        run: Any,
        deferrable: bool = True,
        environment: str | None = None,
        gcp_conn_id: str | None = None,
        impersonation_chain: str | Sequence[str] | None = None,
        max_unknown_time: timedelta = timedelta(minutes=30),
        poll_interval: float | None = None,
        poke_interval: float = 30.0,
        timeout: float = 14 * 24 * 3600.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(poke_interval=poke_interval, timeout=timeout, **kwargs)
        self.run = run
        self.deferrable = deferrable
        self.environment = environment
        self.gcp_conn_id = gcp_conn_id
        self.impersonation_chain = impersonation_chain
        self.max_unknown_time = max_unknown_time
        self.poll_interval = poll_interval

    def execute(self, context: Context) -> Any:
        """Defer until the run has ended, or poke; a run that has ended already never defers."""
        if not self.deferrable:
            return super().execute(context)
        with self._skipping():
            watch = self._watch(context)
            resume_failed(watch, context)
            return self._result(watch) if self._looked(watch, context) else self._wait_on(context, watch)

    def execute_complete(self, context: Context, event: dict[str, Any] | None = None, limit: str = TIMEOUT) -> Any:
        """The run has ended, cannot be followed, or took too long: tell its verdict.

        :param limit: the argument of the task whose time is over at the trigger's deadline.
        """
        with self._skipping():
            told = event or {}
            watch = self._watch(context, told.get("position"))
            error = error_of_event(event)
            if error is not None:
                raise unfollowed(watch, context, error)
            # Ends that came between the event and now are read from the record, like all others.
            if self._looked(watch, context) or watch.run.store.load().verdict is not None:
                return self._result(watch)
            if told.get("status") == "deadline":
                raise self._timed_out(limit)
            return self._wait_on(context, watch)  # the run was cleared meanwhile

    def poke(self, context: Context) -> PokeReturnValue:
        """Look once; in reschedule mode, too, the position in the log is kept between looks."""
        kept = context["task_state_store"]
        key = f"{POSITION}_{context['ti'].try_number}"  # a new try tells the job's lines anew
        position = kept.get(key)
        watch = self._watch(context, position if isinstance(position, dict) else None)
        if position is None:
            resume_failed(watch, context)
        done = self._looked(watch, context)
        kept.set(key, watch.position)
        if not done:
            return PokeReturnValue(is_done=False)
        kept.delete(key)
        return PokeReturnValue(is_done=True, xcom_value=self._result(watch))

    def _wait_on(self, context: Context, watch: Watch) -> None:
        """Defer until the run has ended or the time is over, whichever comes first.

        :raises AirflowSensorTimeout: the time of `timeout` is over already.
        :raises AirflowTaskTimeout: that of `execution_timeout` is.
        """
        limit, ends = self._limit(context)
        if ends <= watch.services.now():
            raise self._timed_out(limit)
        record = take_over(watch)
        self.defer(
            trigger=RunTrigger(
                record_uri=self._record_uri(),
                task=task_key(context),
                until="ended",
                generation=record.generation,
                poll_seconds=self.poll_interval or watch.services.settings.poll_seconds,
                max_unknown_seconds=self.max_unknown_time.total_seconds(),
                environment=watch.services.settings.name,  # the triggerer's own may be another
                gcp_conn_id=self.gcp_conn_id,
                impersonation_chain=self.impersonation_chain,
                position=watch.position,
                deadline=ends.isoformat(),
            ),
            method_name="execute_complete",
            kwargs={"limit": limit},
        )

    def _limit(self, context: Context) -> tuple[str, datetime]:
        """Which of the task's limits ends the wait first, and when; Airflow keeps neither while a task is deferred.

        They count as they do while it pokes: `timeout` from the first try on, `execution_timeout` from this one.
        """
        instance: Any = context["ti"]
        limits = {TIMEOUT: first_start(context) + timedelta(seconds=self.timeout)}
        if self.execution_timeout is not None:
            limits[EXECUTION_TIMEOUT] = instance.start_date + self.execution_timeout
        return min(limits.items(), key=lambda item: item[1])

    def _timed_out(self, limit: str) -> BaseException:
        """What Airflow raises in the other modes: it does not retry the first of the two."""
        if limit == EXECUTION_TIMEOUT:
            return AirflowTaskTimeout(
                f"{self.task_id} has waited for its {EXECUTION_TIMEOUT}, {self.execution_timeout}"
            )
        return AirflowSensorTimeout(f"{self.task_id} has waited for its {TIMEOUT}, {timedelta(seconds=self.timeout)}")

    @contextmanager
    def _skipping(self) -> Generator[None]:
        """Skip the task instead of failing it where `soft_fail` or `never_fail` says so, as Airflow does for a poke."""
        try:
            yield
        except Exception as error:
            final = isinstance(error, (AirflowSensorTimeout, AirflowFailException))
            if self.never_fail or (self.soft_fail and final):
                name = "never_fail" if self.never_fail else "soft_fail"
                raise AirflowSkipException(f"skipped because of {name}: {error}") from error
            raise

    def _looked(self, watch: Watch, context: Context) -> bool:
        """Look once, and say whether the run has ended."""
        try:
            return watch.look().done
        except (ServiceError, CapacityError) as error:
            raise unfollowed(watch, context, error) from error

    def _result(self, watch: Watch) -> dict[str, Any]:
        from trainops.steps.run_verdict import error_of, summary

        record = watch.run.store.load()
        watch.hide_secrets(record)
        attempt = record.attempt
        tail = watch.follower.last_lines(attempt.job_name) if attempt and attempt.job_name and record.message else []
        error = error_of(record, tail)
        if error is not None:
            raise failure(record, error)
        return summary(record)

    def _watch(self, context: Context, position: dict[str, Any] | None = None) -> Watch:
        from trainops.hooks.trainops import TrainopsHook
        from trainops.steps.watch import Watch

        hook = TrainopsHook(self.environment, self.gcp_conn_id, self.impersonation_chain)
        return Watch(
            hook.services(), self._record_uri(), until="ended", actor=f"{context['ti'].task_id}",
            say=lambda line: self.log.info("%s", line), position=position,
            max_unknown_seconds=self.max_unknown_time.total_seconds(), hide=mask_secret,
        )  # fmt: skip

    def _record_uri(self) -> str:
        if isinstance(self.run, dict) and isinstance(self.run.get("record_uri"), str):
            return str(self.run["record_uri"])
        if isinstance(self.run, str) and self.run.startswith("gs://"):
            return self.run
        raise ConfigError(
            "it names no record", source=self.task_id, key="run", value=self.run,
            next_step="pass the output of MLEngineStartTrainingJobOperator, or the record's gs:// URI",
        )  # fmt: skip
