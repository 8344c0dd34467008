"""Experiment + conf + the run's moment become one frozen plan.

Pure but for reading config files: the same files, conf and moment give the same plan on every machine, whatever its
clock says.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from trainops.config.candidates import PlanCandidate, candidates_of, check_candidates, on_demand_after_spot
from trainops.config.cluster_shape import check_shape
from trainops.config.conf import CONF, RunConf
from trainops.config.cost_cap import planned_usd
from trainops.config.dataset import Dataset, load_dataset
from trainops.config.experiment import Experiment, Promotion, experiment_file, load_experiment
from trainops.config.gpu_pools import GpuPools, load_gpu_pools
from trainops.config.machines import check_machines, provisioning, with_conf
from trainops.config.plan import RunMoment, RunPlan, Trainer
from trainops.errors import ConfigError
from trainops.jobspec.translate import Translation
from trainops.naming import run_key
from trainops.settings import Settings
from trainops.validation import validated


def resolve(experiment_name: str, conf: Mapping[str, Any] | None, moment: RunMoment, settings: Settings) -> RunPlan:
    """Return the plan of one run.

    :raises ConfigError: anything in the experiment, the files that it names or the conf is wrong, or its machines do
        not exist, do not fit, or exceed the GPU pools.
    """
    experiment = load_experiment(experiment_name)
    source = str(experiment_file(experiment_name))
    run = validated(RunConf, {} if conf is None else dict(conf), source=CONF)
    zone = experiment.schedule.timezone if experiment.schedule else "UTC"
    machines = with_conf(experiment.training_input, run)
    tokenize_machines = _in_region(experiment.tokenize_input, run.region)
    pools = load_gpu_pools()
    first = check_machines(machines, settings, pools, source=source, key="training_input", conf=run)
    candidates, translated = _candidates(experiment, machines, run, first, settings, pools, source)
    check_shape(experiment.training, run, first.job, source)
    check_machines(tokenize_machines, settings, pools, source=source, key="tokenize_input")
    return RunPlan(
        experiment=experiment_name,
        dag_id=moment.dag_id,
        run_id=moment.run_id,
        run_key=run_key(experiment_name, moment.moment, moment.dag_id, moment.run_id),
        data_date=data_date(run, moment, zone),
        timezone=zone,
        environment=settings.name,
        owner=experiment.owner,
        dataset=_dataset(experiment, run, source),
        tokenizer=experiment.tokenizer,
        trainer=_trainer(experiment, run),
        training_input=machines,
        tokenize_input=tokenize_machines,
        priority=experiment.queue.priority if run.priority is None else run.priority,
        estimate_hours=experiment.queue.estimate_hours,
        max_running_hours=experiment.queue.max_running_hours,
        max_waiting_hours=experiment.queue.max_waiting_hours,
        candidates=candidates,
        max_usd=experiment.queue.max_usd if run.max_usd is None else run.max_usd,
        planned_usd=planned_usd(translated, experiment.queue, run, source=source),
        max_spot_losses=experiment.queue.max_spot_losses,
        on_demand_after_hours=experiment.queue.on_demand_after_hours,
        promotion=_promotion(experiment.promotion, run),
        conf=run.given(),
    )


def data_date(conf: RunConf, moment: RunMoment, zone: str) -> date:
    """Return the day whose data a run reads.

    It is the conf's `data_date`, else the day before the run's logical date, else (a run without one) the day before
    `run_after`; days begin and end at midnight in `zone`, the IANA name of the schedule's time zone. Scheduled runs,
    backfills and manual runs follow the same rule.

    :raises ConfigError: the conf names a day that has not begun at the run's moment.
    """
    today = moment.moment.astimezone(ZoneInfo(zone)).date()
    if conf.data_date is None:
        # Days are counted on the calendar, not in hours: the day before a daylight-saving change has 23 or 25 of them.
        return today - timedelta(days=1)
    if conf.data_date > today:
        raise ConfigError(
            "the day lies after the run's own",
            source=CONF,
            key="data_date",
            value=conf.data_date.isoformat(),
            next_step=f"name a day up to {today} ({zone})",
        )
    return conf.data_date


def _candidates(
    experiment: Experiment, machines: dict[str, Any], run: RunConf, first: Translation, settings: Settings,
    pools: GpuPools, source: str,
) -> tuple[list[PlanCandidate], list[Translation]]:  # fmt: skip
    """Other machines for the training job, each checked; and all machines, the first choice first, translated."""
    queue = experiment.queue
    given = candidates_of(experiment.training_input, queue.candidates, run, source=source)
    translated = [first, *check_candidates(first, given, settings, pools, source=source)]
    for item in translated[1:]:
        check_shape(experiment.training, run, item.job, source)
    alone = bool(queue.candidates) and not given  # the conf is taken at its word
    wanted = "" if alone and provisioning(first.job) != "spot" else queue.gives_up_spot
    last = on_demand_after_spot(machines, translated, wanted=wanted, source=source)
    return [*given, *last], [*translated, *check_candidates(first, last, settings, pools, source=source)]


def _dataset(experiment: Experiment, run: RunConf, source: str) -> Dataset:
    if run.dataset is not None:
        return load_dataset(run.dataset, source=CONF, key="dataset")
    return load_dataset(experiment.dataset, source=source, key="dataset")


def _trainer(experiment: Experiment, run: RunConf) -> Trainer:
    given = {key: getattr(run, key) for key in ("steps", "batch_size", "learning_rate", "seed")}
    training = {**dict(experiment.training), **{key: value for key, value in given.items() if value is not None}}
    return Trainer(model=experiment.model, **training)


def _promotion(promotion: Promotion, run: RunConf) -> Promotion:
    given = {key: getattr(run, key) for key in ("max_eval_loss", "promote")}
    return promotion.model_copy(update={key: value for key, value in given.items() if value is not None})


def _in_region(spec: Mapping[str, Any], region: str | None) -> dict[str, Any]:
    return dict(spec) if region is None else {**spec, "region": region}
