"""Preflight: everything that can be known to be wrong before money is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainops.config.conf import CONF, RunConf
from trainops.config.experiment import experiment_file
from trainops.config.gpu_pools import load_gpu_pools
from trainops.config.machines import check_machines
from trainops.config.plan import RunPlan
from trainops.gcp.storage import Storage
from trainops.settings import Settings, trainer_folder
from trainops.steps.packaging import check_trainer
from trainops.steps.staging import find_files, form_of
from trainops.validation import validated


def preflight(plan: RunPlan, settings: Settings, credentials: Any = None, *, trainer: Path | None = None) -> None:
    """Check that the plan can be carried out: machines translate, dataset files exist, the trainer builds.

    Google is asked only when the dataset lies in a bucket.

    :param credentials: of the Airflow connection; without them the application default ones are used.
    :param trainer: the trainer's source; the settings' when None.
    :raises ConfigError: one of these is wrong.
    """
    source = str(experiment_file(plan.experiment))
    pools = load_gpu_pools()
    conf = validated(RunConf, plan.conf, source=CONF)
    check_machines(plan.training_input, settings, pools, source=source, key="training_input", conf=conf)
    check_machines(plan.tokenize_input, settings, pools, source=source, key="tokenize_input")
    _check_dataset(plan, settings, credentials)
    check_trainer(trainer or trainer_folder())


def _check_dataset(plan: RunPlan, settings: Settings, credentials: Any) -> None:
    if not plan.dataset.resolved_path(plan.data_date).startswith("gs://"):
        form_of(plan.dataset, find_files(plan.dataset, plan.data_date), plan.tokenizer.documents)
        return
    storage = Storage.connect(settings, credentials)
    try:
        form_of(plan.dataset, find_files(plan.dataset, plan.data_date, storage), plan.tokenizer.documents)
    finally:
        storage.close()
