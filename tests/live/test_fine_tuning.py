"""A run that goes on from a promoted model, through the real DAGs: pairs staged, its tokenizer taken, both promoted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.live.cloud import TINY

from trainops.steps.channels import read_channel
from trainops.steps.model_versions import read_manifest

if TYPE_CHECKING:
    from tests.live.cloud import Cloud

pytestmark = [pytest.mark.live, pytest.mark.full, pytest.mark.timeout(900)]

ASKED = "fine-base@production"


def finished(cloud: Cloud, dag: str, run_id: str) -> str:
    """Run the DAG to its end and return the version that its model's channel points at then."""
    (cloud.home.dags / "train.py").touch()
    cloud.wait_for_dag(dag)
    cloud.api.unpause(dag)
    assert cloud.finish(dag, cloud.trigger(dag, run_id)) == "success"
    model = dag.removeprefix("train_").replace("_", "-")
    pointer = read_channel(cloud.services.storage, cloud.services.settings.models, model, "production").pointer
    assert pointer is not None
    return pointer.version


def add_pairs(cloud: Cloud) -> None:
    folder = cloud.home.root / "pairs"
    folder.mkdir()
    sums = [(a, b) for a in range(12) for b in range(12)]
    lines = [json.dumps({"prompt": f"{a} + {b} = ", "response": str(a + b), "id": n}) for n, (a, b) in enumerate(sums)]
    (folder / "sums.jsonl").write_text("\n".join(lines))
    dataset = {"description": "Sums.", "path": str(folder), "include": ["**/*.jsonl"], "min_documents": 100}
    (cloud.configs / "datasets" / "sums.yaml").write_text(yaml.safe_dump(dataset))


def test_a_model_is_tuned_on_pairs_from_the_version_that_was_in_production_at_its_start(cloud: Cloud) -> None:
    add_pairs(cloud)
    training = {**TINY["training"], "init_from": ASKED}
    tuned = cloud.add_experiment(
        "fine_tuned", dataset="sums", tokenizer={"documents": "pairs"}, model={"context": 32}, training=training
    )
    base = finished(cloud, cloud.add_experiment("fine_base"), "first")

    version = finished(cloud, tuned, "tuned")
    plan = cloud.plan(tuned, "tuned")
    models = cloud.services.settings.models
    folder = f"{models}/fine-base/versions/{base}"
    assert plan["trainer"]["init_from"] == plan["tokenizer"]["init_from"] == folder
    assert plan["promoted_models"] == {ASKED: folder}
    manifest = read_manifest(cloud.services.storage, models, "fine-tuned", version)
    assert manifest is not None
    assert (manifest.lineage.base_model, manifest.lineage.base_model_asked) == (folder, ASKED)
    first = read_manifest(cloud.services.storage, models, "fine-base", base)
    assert first is not None
    assert manifest.parameters == first.parameters

    # A retry keeps the plan that was made; only a new run asks the channel again.
    log = cloud.log(tuned, "tuned", "resolve_run")
    assert f"goes on from {ASKED}, which is {folder}" in log
