"""Every strategy trains as one process would, and goes on from what another one saved."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.trainer.results import result

from trainer.cluster import Cluster
from trainer.errors import UserError
from trainer.files import Files
from trainer.strategy import choose_strategy

Run = Callable[..., int]
SpawnCluster = Callable[..., "list[subprocess.Popen[str]]"]
SHORT: dict[str, Any] = {"steps": 6, "batch_size": 5, "checkpoint_every": 2, "eval_every": 2}


def lines(folder: Path, name: str = "metrics.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def numbers(folder: Path) -> list[float]:
    """Every loss, gradient norm and evaluation loss."""
    return [line[key] for line in lines(folder) for key in ("loss", "grad_norm", "eval_loss") if key in line]


def ended(processes: list[subprocess.Popen[str]]) -> list[str]:
    outputs = [process.communicate(timeout=200)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), "\n".join(outputs)
    return outputs


@pytest.mark.parametrize(
    ("asked", "cluster", "chosen"),
    [
        ("auto", Cluster(), "single"),
        ("auto", Cluster(size=2), "ddp"),
        ("auto", Cluster(size=4, servers=2), "parameter_server"),
        ("auto", Cluster(size=2, servers=1), "parameter_server"),
        ("fsdp", Cluster(size=2), "fsdp"),
        ("ddp", Cluster(size=2), "ddp"),
        ("single", Cluster(), "single"),
    ],
)
def test_the_strategy_follows_the_cluster_unless_it_is_given(asked: str, cluster: Cluster, chosen: str) -> None:
    assert choose_strategy(asked, cluster) == chosen


@pytest.mark.parametrize(
    ("asked", "cluster", "told"),
    [
        ("fsdp", Cluster(), "got 'fsdp' for 1 worker; allowed: auto, single; change it, or give the job two replicas"),
        ("single", Cluster(size=2), "got 'single' for 2 workers; allowed: auto, ddp, fsdp; change it, or set the"),
        (
            "parameter_server",
            Cluster(size=2),
            "for 2 workers; allowed: auto, ddp, fsdp; change it, or give the job",
        ),
        ("ddp", Cluster(size=3, servers=1), "for 2 workers and 1 parameter server; allowed: auto, parameter_server"),
    ],
)
def test_a_strategy_that_the_cluster_cannot_do_is_refused(asked: str, cluster: Cluster, told: str) -> None:
    with pytest.raises(UserError) as caught:
        choose_strategy(asked, cluster)

    assert told in str(caught.value)


def test_sharded_replicas_train_as_one_process_and_its_checkpoint_goes_on_elsewhere(
    spawn_cluster: SpawnCluster, train: Run, tmp_path: Path
) -> None:
    processes = spawn_cluster(tmp_path / "two", 2, strategy="fsdp", **SHORT)
    assert train(tmp_path / "one", **SHORT) == 0

    ended(processes)

    assert numbers(tmp_path / "two") == pytest.approx(numbers(tmp_path / "one"), abs=2e-4)
    assert result(tmp_path / "two")["strategy"] == "fsdp"
    for key in ("eval_loss", "eval_tokens", "eval_loss_before", "parameters"):
        assert result(tmp_path / "two")[key] == pytest.approx(result(tmp_path / "one")[key], abs=1e-4)
    assert "model.safetensors" in Files().below(str(tmp_path / "two" / "model"))
    # The last step is lost, so that one process takes it again.
    Files().delete(str(tmp_path / "two" / "checkpoints" / "step-00000006" / "complete.json"))
    assert train(tmp_path / "two", **SHORT) == 0
    assert result(tmp_path / "two")["resumed_from"] == 4
    assert numbers(tmp_path / "two") == pytest.approx(numbers(tmp_path / "one"), abs=2e-4)


def test_parameter_servers_train_as_one_process_and_an_evaluator_finds_what_the_workers_found(
    spawn_cluster: SpawnCluster, train: Run, tmp_path: Path
) -> None:
    processes = spawn_cluster(tmp_path / "four", 2, servers=2, evaluators=1, **SHORT)
    assert train(tmp_path / "one", **SHORT) == 0

    outputs = ended(processes)

    assert numbers(tmp_path / "four") == pytest.approx(numbers(tmp_path / "one"), abs=2e-4)
    assert result(tmp_path / "four")["strategy"] == "parameter_server"
    assert "parameter server 3 of 4 on cpu" in outputs[3]
    found = {line["step"]: line["eval_loss"] for line in lines(tmp_path / "four", "evaluations.jsonl")}
    expected = {line["step"]: line["eval_loss"] for line in lines(tmp_path / "four") if "eval_loss" in line}
    assert 6 in found
    assert found == pytest.approx({step: expected[step] for step in found}, abs=1e-5)
