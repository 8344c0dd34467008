"""One DAG `train_<experiment>` per file in `include/configs/experiments`.

Only wiring: what the tasks do stands in `trainops.dag_kit.tasks` and, without Airflow, in `trainops.steps`.
A broken file still yields its DAG, whose one task fails with the error; the others do not notice.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Asset, TaskGroup, get_parsing_context

from trainops.config.experiment import Experiment, experiment_names, load_experiment
from trainops.dag_kit import tasks
from trainops.dag_kit.approval import approval_gate
from trainops.dag_kit.arguments import broken_arguments, dag_arguments, schedule_of
from trainops.errors import ConfigError
from trainops.naming import model_asset
from trainops.operators.mlengine import MLEngineStartTrainingJobOperator
from trainops.sensors.training_job import TrainingJobSensor


def train_dag(name: str, experiment: Experiment) -> DAG:
    """The chain of one experiment."""
    catchup = bool(experiment.schedule and experiment.schedule.catchup)
    with DAG(schedule=schedule_of(experiment), catchup=catchup, **dag_arguments(name, experiment)) as dag:
        run: Any = tasks.resolve_run(name)

        with TaskGroup("prepare", prefix_group_id=False, tooltip="dataset, trainer, tokens"):
            dataset: Any = tasks.stage_dataset(run)
            package: Any = tasks.package_trainer(run)
            tokenize = MLEngineStartTrainingJobOperator(
                task_id="tokenize",
                experiment=run["experiment"],
                run_key=run["run_key"],
                training_input=run["tokenize_input"],
                package_uris=[package["uri"]],
                training_python_module="trainer.tokenize",
                training_args=[
                    "--dataset", dataset["uri"], "--output", dataset["tokens"], "--config", run["plan_uri"],
                ],
                done_if_exists=dataset["tokens_manifest"],
                wait=True,
            )  # fmt: skip

        with TaskGroup("train", prefix_group_id=False, tooltip="queue for GPUs, submit, wait"):
            # The machines and GPUs are those of the experiment's training_input, as the run's conf changed it.
            submit = MLEngineStartTrainingJobOperator(
                task_id="submit_training",
                experiment=run["experiment"],
                run_key=run["run_key"],
                plan=run["plan_uri"],
                scale_tier=experiment.training_input.get("scaleTier"),
                training_input=run["training_input"],
                package_uris=[package["uri"]],
                training_python_module="trainer.task",
                training_args=["--tokens", dataset["tokens"]],
            )
            wait: Any = TrainingJobSensor(task_id="wait_for_training", run=submit.output)
            tokenize >> submit

        with TaskGroup("promote", prefix_group_id=False, tooltip="check, decide, promote"):
            outcome: Any = tasks.check_outputs(run, wait.output)
            decision: Any = tasks.decide_promotion(run, outcome)
            promoted: Any = tasks.promote_model.override(outlets=[Asset(model_asset(experiment.promotion.model))])(
                run, decision
            )
            if experiment.promotion.approval == "required":
                approval_gate(experiment.promotion.model, decision) >> promoted

        promoted >> tasks.end_run(run).as_teardown(setups=run.as_setup())
    return dag


def broken_dag(name: str, error: ConfigError) -> DAG:
    """The DAG of a file that cannot be used: one task, which says why."""
    with DAG(schedule=None, catchup=False, **broken_arguments(name, error)) as dag:
        tasks.report_broken_experiment(str(error))
    return dag


wanted = get_parsing_context().dag_id  # a task's process needs its own DAG alone; None in the DAG processor
for experiment_name in experiment_names():
    if wanted not in {None, f"train_{experiment_name}"}:
        continue
    try:
        globals()[f"train_{experiment_name}"] = train_dag(experiment_name, load_experiment(experiment_name))
    except ConfigError as problem:
        globals()[f"train_{experiment_name}"] = broken_dag(experiment_name, problem)
