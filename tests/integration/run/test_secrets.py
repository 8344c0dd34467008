"""A job that prints its secret variables: the logs of the tasks that wait for it do not hold them.

What a task logs goes to the process that supervises it, which writes it as `redact` leaves it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk._shared.secrets_masker import redact, reset_secrets_masker
from tests.integration.run.old_task import Seen, Try, arguments, deferred, event_of, execute, stored
from tests.integration.run.test_case_waiting import sensing

from trainops.errors import JobFailed
from trainops.providers.google.cloud.operators.mlengine import MLEngineStartTrainingJobOperator as Operator
from trainops.sensors.training_job import TrainingJobSensor
from trainops.triggers.run import RunTrigger

CODE = "import os, sys, time; time.sleep({}); print('the token is', os.environ['HF_TOKEN'], flush=True); sys.exit({})"


def telling(secret: str, seconds: int = 0, exit_code: int = 0, **changes: Any) -> Operator:
    """A task whose job prints a secret variable."""
    body = {"vertex": {"env": {"HF_TOKEN": secret}}}
    return Operator(**arguments(CODE.format(seconds, exit_code), training_input=body, **changes))


def in_another_process(secret: str) -> RunTrigger:
    """The trigger of a deferred task, where nobody knows the job's secret but from its record."""
    trigger = stored(deferred(telling(secret, seconds=2, deferrable=True), Try(1)))
    reset_secrets_masker()
    return trigger


def on_a_worker(secret: str) -> None:
    execute(telling(secret), Try(1))


def in_a_triggerer(secret: str) -> None:
    event_of(in_another_process(secret))


def by_a_sensor_that_pokes(secret: str) -> None:
    run = in_another_process(secret).record_uri
    sensor = TrainingJobSensor(task_id="wait", run=run, deferrable=False, poke_interval=0.3)
    sensor.execute(sensing(Try(1)))


@pytest.mark.parametrize("waits", [on_a_worker, in_a_triggerer, by_a_sensor_that_pokes], ids=lambda one: one.__name__)
def test_a_secret_that_the_job_prints_does_not_reach_the_log_of_the_task_that_waits(
    seen: Seen, capsys: pytest.CaptureFixture[str], waits: Callable[[str], None]
) -> None:
    secret = f"hf_printed_{waits.__name__}"
    waits(secret)
    said = capsys.readouterr().out
    assert f"the token is {secret}" in said, "the job did print it"
    assert secret not in str(redact(said))
    assert "the token is ***" in str(redact(said))


def test_a_secret_among_the_last_lines_of_a_failed_job_is_hidden_in_the_error(seen: Seen) -> None:
    secret = "hf_printed_before_the_end"
    with pytest.raises(JobFailed) as failed:
        execute(telling(secret, exit_code=1), Try(1))
    assert secret in str(failed.value)
    assert secret not in str(redact(str(failed.value)))
