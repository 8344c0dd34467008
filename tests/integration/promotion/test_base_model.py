"""A run goes on from the version that a channel points at when the run is resolved, whatever is promoted later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from trainops.cli import main
from trainops.config.plan import RunPlan
from trainops.errors import ConfigError, IntegrityError
from trainops.gcp.storage import Storage
from trainops.settings import Settings, project_root
from trainops.steps.base_model import with_base_model
from trainops.steps.outcome import check_outputs
from trainops.steps.run_folder import read_plan, write_plan

if TYPE_CHECKING:
    from tests.integration.promotion.conftest import Registry, Training

ASKED = "stdlib-tiny@production"


def asking(plan: RunPlan, training: str | None = ASKED, tokenizer: str | None = ASKED) -> RunPlan:
    """The plan of an experiment that names what it goes on from."""
    changes = {
        "trainer": plan.trainer.model_copy(update={"init_from": training}),
        "tokenizer": plan.tokenizer.model_copy(update={"init_from": tokenizer}),
    }
    return plan.model_copy(update=changes)


@pytest.fixture
def first(registry: Registry) -> str:
    """Folder of the version that is in production."""
    registry.promote(registry.finish(1))
    return registry.pointer().uri


def refused(plan: RunPlan, settings: Settings) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        with_base_model(plan, settings)
    return caught.value


def test_the_plan_has_the_versions_folder_and_what_was_asked_for(registry: Registry, first: str) -> None:
    plan = with_base_model(asking(registry.plan(2)), registry.settings)
    assert (plan.trainer.init_from, plan.tokenizer.init_from) == (first, first)
    assert plan.promoted_models == {ASKED: first}
    assert RunPlan.from_json(plan.to_json()) == plan


def test_a_later_promotion_changes_later_runs_alone(registry: Registry, first: str) -> None:
    resolved = with_base_model(asking(registry.plan(2)), registry.settings)
    kept = write_plan(registry.storage, registry.settings, resolved)
    registry.promote(registry.finish(3, eval_loss=2.9))
    later = with_base_model(asking(registry.plan(4)), registry.settings)

    # What every later task and every retry of the run reads.
    earlier = read_plan(registry.storage, kept)
    assert earlier.trainer.init_from == first
    assert later.trainer.init_from == registry.pointer().uri != first
    # Other tokens, too: their name is that of the tokenizer's folder.
    assert later.tokenizer_sha16 != earlier.tokenizer_sha16


def test_a_run_that_begins_with_random_weights_asks_nobody(settings: Settings, registry: Registry) -> None:
    away = settings.model_copy(update={"endpoints_setting": "no-such-file.json"})
    assert with_base_model(registry.plan(), away) == registry.plan()


@pytest.mark.parametrize(
    ("asked", "words", "nearest"),
    [
        ("stdlib-tny@production", "no model stdlib-tny was ever promoted", ASKED),
        ("stdlib-tiny@candidate", "nothing is promoted to the channel candidate of stdlib-tiny yet", ASKED),
    ],
)
def test_what_is_not_there_is_told_with_the_nearest(
    registry: Registry, first: str, asked: str, words: str, nearest: str
) -> None:
    error = refused(asking(registry.plan(2), asked, asked), registry.settings)
    assert words in str(error)
    assert error.source.endswith("experiments/stdlib_tiny.yaml")
    assert (error.key, error.value, error.nearest) == ("training.init_from", asked, nearest)


def test_before_anything_was_promoted_the_experiment_that_makes_the_model_is_named(registry: Registry) -> None:
    error = refused(asking(registry.plan()), registry.settings)
    assert error.next_step == "train one first: `airflow dags trigger train_stdlib_tiny`"


def test_a_version_that_is_gone_is_told(registry: Registry, first: str, storage: Storage) -> None:
    storage.delete(f"{first}/manifest.json")
    with pytest.raises(IntegrityError, match="trainops models rollback stdlib-tiny --channel production"):
        with_base_model(asking(registry.plan(2)), registry.settings)


def test_a_folder_in_a_bucket_is_looked_for_and_stays_what_it_is(registry: Registry, storage: Storage) -> None:
    folder = f"{registry.settings.work}/models/mine"
    plan = asking(registry.plan(), folder, folder)
    error = refused(plan, registry.settings)
    assert (error.key, error.value) == ("training.init_from", folder)
    assert "no config.json" in str(error)

    for name in ("config.json", "tokenizer_config.json"):
        storage.write_json(f"{folder}/{name}", {}, generation=0)
    assert with_base_model(plan, registry.settings) == plan


@pytest.mark.parametrize("key", ["max_position_embeddings", "n_positions"])
def test_a_context_that_is_too_long_for_the_model_is_refused(registry: Registry, storage: Storage, key: str) -> None:
    folder = f"{registry.settings.work}/models/mine"
    storage.write_json(f"{folder}/config.json", {key: 64}, generation=0)
    error = refused(asking(registry.plan(), folder, None), registry.settings)
    assert (error.key, error.value, error.next_step) == ("model.context", 128, "write 64 or less")


def test_card_and_manifest_name_the_version_that_training_went_on_from(registry: Registry, training: Training) -> None:
    registry.promote(registry.finish(7, eval_loss=3.3))
    base = registry.pointer().uri
    training.plan = with_base_model(asking(training.plan), training.settings)
    check_outputs(training.storage, training.plan, 1, training.settings)
    registry.promote(training.plan)

    manifest = registry.manifest(training.plan)
    assert manifest is not None
    assert (manifest.lineage.base_model, manifest.lineage.base_model_asked) == (base, ASKED)
    card = training.storage.read_bytes(f"{registry.pointer().uri}/README.md")
    assert card is not None
    assert f"| Went on from | {base}, then {ASKED} |" in card.data.decode()


def test_plan_and_check_look_as_a_run_does(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configs(tmp_path, registry.settings)
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(tmp_path))
    monkeypatch.setenv("TRAINOPS_ENVIRONMENT", "test")

    for command in ("plan", "check"):
        assert main([command, "tuned"]) == 2
        assert "train one first: `airflow dags trigger train_stdlib_tiny`" in capsys.readouterr().err

    registry.promote(registry.finish(1))
    assert main(["check", "tuned"]) == 0
    assert main(["plan", "tuned"]) == 0
    assert f"base model {registry.pointer().uri}" in capsys.readouterr().out
    assert main(["plan", "tuned", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["promoted_models"] == {ASKED: registry.pointer().uri}


def configs(folder: Path, settings: Settings) -> None:
    """The project's first experiment, and `tuned`, which goes on from its model; one service answers for all."""
    own = project_root() / "include" / "configs"
    for name in ("experiments", "datasets", "environments"):
        (folder / name).mkdir()
    tiny = own / "experiments" / "stdlib_tiny.yaml"
    tuned: dict[str, Any] = yaml.safe_load(tiny.read_text())
    tuned |= {"tokenizer": {}, "model": {}, "training": {"steps": 5, "init_from": ASKED}}
    environment = settings.model_dump(mode="json", by_alias=True, exclude={"name"})
    environment["image"] = dict.fromkeys(("cpu", "gpu"), "us-central1-docker.pkg.dev/my-project/r/trainer:1")
    environment["endpoints"] = dict.fromkeys(("vertex", "storage", "logging"), settings.endpoints.storage)
    (folder / "experiments" / "stdlib_tiny.yaml").write_text(tiny.read_text())
    (folder / "experiments" / "tuned.yaml").write_text(yaml.safe_dump(tuned))
    (folder / "datasets" / "stdlib.yaml").write_text((own / "datasets" / "stdlib.yaml").read_text())
    (folder / "gpu_pools.yaml").write_text((own / "gpu_pools.yaml").read_text())
    (folder / "environments" / "test.yaml").write_text(yaml.safe_dump(environment))
