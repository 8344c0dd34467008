"""The tasks of a training DAG that are not operators of their own: each is a few lines around a function of `steps`.

Imports of `steps` stand inside the functions, so that a DAG file parses without Google's libraries.
"""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import Asset, AssetAlias, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from trainops.dag_kit.task_errors import final_errors_fail
from trainops.errors import ConfigError, TransientError

log = logging.getLogger(__name__)

Json = dict[str, Any]


def _say(line: str) -> None:
    log.info("%s", line)


@task(multiple_outputs=True)
@final_errors_fail
def resolve_run(experiment: str) -> Json:
    """Freeze experiment, conf and date into a plan, and refuse here whatever is wrong: nothing is paid for yet."""
    from trainops.config.gpu_pools import load_gpu_pools
    from trainops.config.plan import RunMoment
    from trainops.config.resolve import resolve
    from trainops.hooks.trainops import TrainopsHook
    from trainops.steps.base_model import with_base_model
    from trainops.steps.champion import find_champion
    from trainops.steps.day_costs import DayCostsStore
    from trainops.steps.durations import with_estimate
    from trainops.steps.preflight import preflight
    from trainops.steps.run_folder import write_plan

    context = get_current_context()
    dag_run: Any = context["dag_run"]
    moment = RunMoment(
        dag_id=dag_run.dag_id, run_id=dag_run.run_id, logical_date=dag_run.logical_date, run_after=dag_run.run_after
    )
    hook = TrainopsHook()
    storage = hook.services().storage
    plan = resolve(experiment, dag_run.conf, moment, hook.settings)
    plan = with_base_model(plan, hook.settings, hook.credentials())
    plan = plan.model_copy(update={"champion": find_champion(storage, plan, hook.settings)})
    preflight(plan, hook.settings, hook.credentials())
    plan = with_estimate(storage, hook.settings.work, plan, _say)
    told = DayCostsStore(storage, hook.settings.work).enter(plan, load_gpu_pools())
    if told:
        _say(told)
    uri = write_plan(storage, hook.settings, plan)
    _say(f"run {plan.run_key}: data of {plan.data_date}, plan {uri}")
    for name, folder in plan.promoted_models.items():
        _say(f"goes on from {name}, which is {folder}")
    if plan.champion:
        _say(f"has to beat {plan.champion.version}, the {plan.promotion.channel} of {plan.promotion.model}")
    return {
        "run_key": plan.run_key,
        "experiment": plan.experiment,
        "data_date": plan.data_date.isoformat(),
        "plan_uri": uri,
        "training_input": plan.training_input,
        "tokenize_input": plan.tokenize_input,
    }


@task(multiple_outputs=True)
@final_errors_fail
def stage_dataset(run: Json) -> Json:
    """Put the dataset of the run's date into the work bucket; the same content is never moved twice."""
    from trainops import naming
    from trainops.hooks.trainops import TrainopsHook
    from trainops.steps.run_folder import read_plan
    from trainops.steps.staging import stage_dataset as stage

    hook = TrainopsHook()
    storage = hook.services().storage
    plan = read_plan(storage, run["plan_uri"])
    staged = stage(
        storage, plan.dataset, plan.data_date, hook.settings.work, documents=plan.tokenizer.documents, progress=_say
    )
    tokens = naming.tokens_folder(hook.settings.work, staged.sha16, plan.tokenizer_sha16)
    return {
        "uri": staged.uri,
        "sha16": staged.sha16,
        "moved": staged.moved,
        "tokens": tokens,
        "tokens_manifest": f"{tokens}/manifest.json",
    }


@task(multiple_outputs=True)
@final_errors_fail
def package_trainer(run: Json) -> Json:
    """Put the trainer's source distribution into the work bucket; the same source is never moved twice."""
    from trainops.hooks.trainops import TrainopsHook
    from trainops.settings import trainer_folder
    from trainops.steps.packaging import package_trainer as package

    hook = TrainopsHook()
    _say(f"packaging the trainer for {run['run_key']}")
    built = package(hook.services().storage, trainer_folder(), hook.settings.work, progress=_say)
    return {"uri": built.uri, "sha16": built.sha16, "version": built.version, "moved": built.moved}


@task(multiple_outputs=False)
@final_errors_fail
def check_outputs(run: Json, training: Json) -> Json:
    """Look whether the job left what it promised: result, metrics, a whole model."""
    from trainops.hooks.trainops import TrainopsHook
    from trainops.steps.outcome import check_outputs as check
    from trainops.steps.run_folder import read_plan

    hook = TrainopsHook()
    storage = hook.services().storage
    outcome = check(storage, read_plan(storage, run["plan_uri"]), training["generation"], hook.settings)
    result = outcome.result
    _say(f"evaluation loss {result.eval_loss_before} -> {result.eval_loss}, unigram entropy {result.unigram_entropy}")
    return {"generation": outcome.generation, "model": outcome.folder, "eval_loss": result.eval_loss}


@task(multiple_outputs=False)
@final_errors_fail
def decide_promotion(run: Json, outcome: Json) -> Json:
    """Compare with the champion: each rule with its figures, and a reason."""
    from trainops.hooks.trainops import TrainopsHook
    from trainops.steps.promotion import decide
    from trainops.steps.run_folder import read_plan

    hook = TrainopsHook()
    storage = hook.services().storage
    decision = decide(storage, read_plan(storage, run["plan_uri"]), outcome["generation"], hook.settings)
    return {"promote": decision.promote, "reason": decision.reason, "generation": outcome["generation"]}


@task(multiple_outputs=False)
@final_errors_fail
def promote_model(run: Json, decision: Json) -> Json:
    """Write the immutable version and swap the channel's pointer; skipped when the gate said no."""
    from trainops import naming
    from trainops.hooks.trainops import TrainopsHook
    from trainops.steps.promotion import promote
    from trainops.steps.run_folder import read_plan

    if not decision["promote"]:
        raise AirflowSkipException(f"not promoted: {decision['reason']}")
    hook = TrainopsHook()
    storage = hook.services().storage
    plan = read_plan(storage, run["plan_uri"])
    promoted = promote(storage, plan, decision["generation"], hook.settings, by=plan.run_key)
    told = promoted.to_json()
    folder = naming.run_folder(hook.settings.work, plan.experiment, plan.run_key)
    storage.write_json(f"{folder}/promoted.json", told, generation=None)
    _say(f"{promoted.uri}: {promoted.reason}")
    if not promoted.promoted:
        raise AirflowSkipException(f"not promoted: {promoted.reason}")
    announce(Asset(naming.model_asset(promoted.model)), told)
    return told


def announce(asset: Asset, promoted: Json, through: AssetAlias | None = None) -> None:
    """Update the model's asset, and tell in its extra what the channel points at now.

    :param through: outlet of the task, where the asset is not known before it runs.
    """
    events = get_current_context()["outlet_events"]
    extra = {name: promoted[name] for name in ("model", "channel", "version", "uri", "reason", "pointer_generation")}
    if through is not None:
        events[through].add(asset, extra=extra)
        return
    events[asset].extra = extra


@task(retries=5)
@final_errors_fail
def end_run(run: Json) -> list[str]:
    """Whatever happened: nothing of the run is left running, queued or leased."""
    from trainops.hooks.trainops import TrainopsHook
    from trainops.steps.end import end_run as end

    context = get_current_context()
    why = f"the run {context['run_id']} is over"
    return end(TrainopsHook().services(), run["experiment"], run["run_key"], actor="end_run", why=why, say=_say)


@task(retries=0)
@final_errors_fail
def report_broken_experiment(message: str) -> None:
    """Fail with what is wrong in the experiment's file."""
    raise ConfigError(message)


@task(multiple_outputs=False)
@final_errors_fail
def end_abandoned_runs() -> Json:
    """End what nobody follows any more, and free what it held; fail when something may be left."""
    from trainops.hooks.trainops import TrainopsHook
    from trainops.steps.housekeeping import end_abandoned

    told = end_abandoned(TrainopsHook().services(), dag_run_state, say=_say)
    left = [*told["failed"], *told["unseen"]]
    if left:
        raise TransientError(f"not ended, or not looked at: {', '.join(left)}; the log says why, the next try goes on")
    return told


def dag_run_state(dag_id: str, run_id: str) -> str | None:
    """State of a DAG run, asked of Airflow; None when it knows no such run."""
    from airflow.sdk.exceptions import AirflowRuntimeError
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    try:
        state = RuntimeTaskInstance.get_dagrun_state(dag_id, run_id)
    except AirflowRuntimeError:
        return None
    return str(getattr(state, "value", state))
