"""Wait for a training run to end, over preemption, loss and resubmission."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.bases.sensor import BaseSensorOperator, PokeReturnValue

from trainops.errors import CapacityError, ConfigError, ServiceError
from trainops.hooks.task import failure, resume_failed, take_over, task_key
from trainops.hooks.unfollowed import error_of_event, unfollowed
from trainops.triggers.run import RunTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context

    from trainops.steps.watch import Watch

POSITION = "log_position"


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
        watch = self._watch(context)
        resume_failed(watch, context)
        if self._looked(watch, context):
            return self._result(watch)
        record = take_over(watch)
        self.defer(
            trigger=RunTrigger(
                record_uri=self._record_uri(),
                task=task_key(context),
                until="ended",
                generation=record.generation,
                poll_seconds=self.poll_interval or watch.services.settings.poll_seconds,
                max_unknown_seconds=self.max_unknown_time.total_seconds(),
                environment=self.environment,
                gcp_conn_id=self.gcp_conn_id,
                impersonation_chain=self.impersonation_chain,
                position=watch.follower.position,
            ),
            method_name="execute_complete",
        )
        return None

    def execute_complete(self, context: Context, event: dict[str, Any] | None = None) -> Any:
        """The run has ended, or cannot be followed: tell its verdict."""
        watch = self._watch(context, (event or {}).get("position"))
        error = error_of_event(event)
        if error is not None:
            raise unfollowed(watch, context, error)
        watch.look()  # ends that came between the event and now are read from the record, like all others
        return self._result(watch)

    def poke(self, context: Context) -> PokeReturnValue:
        """Look once; in reschedule mode the position in the log is kept between looks."""
        kept = context["task_state_store"]
        key = f"{POSITION}_{context['ti'].try_number}"  # a new try tells the job's lines anew
        position = kept.get(key)
        watch = self._watch(context, position if isinstance(position, dict) else None)
        if position is None:
            resume_failed(watch, context)
        done = self._looked(watch, context)
        kept.set(key, watch.follower.position)
        if not done:
            return PokeReturnValue(is_done=False)
        kept.delete(key)
        return PokeReturnValue(is_done=True, xcom_value=self._result(watch))

    def _looked(self, watch: Watch, context: Context) -> bool:
        """Look once, and say whether the run has ended."""
        try:
            return watch.look().done
        except (ServiceError, CapacityError) as error:
            raise unfollowed(watch, context, error) from error

    def _result(self, watch: Watch) -> dict[str, Any]:
        from trainops.steps.run_verdict import error_of, summary

        record = watch.run.store.load()
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
            max_unknown_seconds=self.max_unknown_time.total_seconds(),
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
