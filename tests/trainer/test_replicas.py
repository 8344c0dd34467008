from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.trainer.results import result

Spawn = Callable[..., "subprocess.Popen[str]"]


def pair(spawn: Spawn, folder: Path, port: int, **changes: Any) -> list[subprocess.Popen[str]]:
    """Start a master and a worker on this machine, as the service would."""
    cluster = {"workerpool0": [f"127.0.0.1:{port}"], "workerpool1": [f"127.0.0.1:{port + 1}"]}
    specs = [
        json.dumps({"cluster": cluster, "environment": "cloud", "task": {"type": pool, "index": 0}}) for pool in cluster
    ]
    return [spawn(folder, environment={"CLUSTER_SPEC": spec, "OMP_NUM_THREADS": "1"}, **changes) for spec in specs]


def ended(processes: list[subprocess.Popen[str]]) -> list[str]:
    outputs = [process.communicate(timeout=100)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), "\n".join(outputs)
    return outputs


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.1)


def losses(folder: Path) -> list[float]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line.get("loss", line.get("eval_loss")) for line in lines]


def listening(process: subprocess.Popen[str]) -> set[str]:
    """Hexadecimal addresses of IPv4 and IPv6 on which a process listens."""
    links = [str(path.readlink()) for path in Path(f"/proc/{process.pid}/fd").iterdir()]
    sockets = {link[8:-1] for link in links if link.startswith("socket:[")}
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in sockets}


def test_two_replicas_of_uneven_shares_train_as_one_would(
    spawn: Spawn, train: Callable[..., int], tmp_path: Path, free_port: int
) -> None:
    processes = pair(spawn, tmp_path / "two", free_port, batch_size=5)
    assert train(tmp_path / "one", batch_size=5) == 0

    outputs = ended(processes)

    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=2e-4)
    assert result(tmp_path / "two")["replicas"] == 2
    assert result(tmp_path / "two")["eval_tokens"] == result(tmp_path / "one")["eval_tokens"]
    assert "replica 1 of 2" in outputs[1]
    lines = [json.loads(line) for line in (tmp_path / "two" / "metrics.jsonl").read_text().splitlines()]
    for line in (line for line in lines if "loss" in line):
        parts = [line[f"{part}_seconds"] for part in ("data", "forward_backward", "communication")]
        assert all(seconds > 0 for seconds in parts)
        assert sum(parts) <= line["step_seconds"]
    assert "step 8/8" not in outputs[1]


def test_two_replicas_whose_shares_hold_unlike_numbers_of_learnt_tokens_tune_as_one_would(
    spawn: Spawn, train: Callable[..., int], pair_tokens: str, tmp_path: Path, free_port: int
) -> None:
    changes = {"data": pair_tokens, "batch_size": 3, "learning_rate": 0.003}
    processes = pair(spawn, tmp_path / "two", free_port, **changes)
    assert train(tmp_path / "one", **changes) == 0

    ended(processes)

    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=2e-4)


def test_a_signal_to_the_worker_alone_stops_both_at_one_step_and_nothing_listens_beyond_loopback(
    spawn: Spawn, tmp_path: Path, free_port: int
) -> None:
    changes: dict[str, Any] = {"steps": 100_000, "eval_every": 0, "checkpoint_every": 5, "log_every": 50}
    processes = pair(spawn, tmp_path, free_port, **changes)
    wait_for(tmp_path / "checkpoints" / "step-00000005" / "complete.json")
    addresses = set().union(*map(listening, processes))

    processes[1].send_signal(signal.SIGTERM)
    ended(processes)

    assert addresses == {"0100007F"}
    assert result(tmp_path)["status"] == "preempted"
    step = result(tmp_path)["step"]
    assert (tmp_path / "checkpoints" / f"step-{step:08d}" / "complete.json").exists()


def test_when_a_replica_dies_the_others_name_it_and_end_with_exit_code_1(
    spawn: Spawn, tmp_path: Path, free_port: int
) -> None:
    processes = pair(spawn, tmp_path, free_port, steps=100_000, eval_every=0, checkpoint_every=5, log_every=50)
    wait_for(tmp_path / "checkpoints" / "step-00000005" / "complete.json")

    processes[1].kill()
    output = processes[0].communicate(timeout=60)[0]

    assert processes[0].returncode == 1, output
    assert f"error: a replica was lost: workerpool1-0 (127.0.0.1:{free_port + 1}): no word of it for" in output


@pytest.mark.full
@pytest.mark.parametrize("stopped", [0, 1, 3], ids=["master", "worker", "server"])
def test_when_a_replica_stands_still_the_others_name_it_and_end_within_a_minute(
    stopped: int, spawn_cluster: Callable[..., list[subprocess.Popen[str]]], tmp_path: Path
) -> None:
    processes = spawn_cluster(tmp_path, 2, servers=2, steps=100_000, eval_every=0, checkpoint_every=5, log_every=50)
    wait_for(tmp_path / "checkpoints" / "step-00000005" / "complete.json")

    processes[stopped].send_signal(signal.SIGSTOP)
    began = time.monotonic()
    others = [process for process in processes if process is not processes[stopped]]
    outputs = [process.communicate(timeout=100)[0] for process in others]

    assert time.monotonic() - began < 60
    assert [process.returncode for process in others] == [1, 1, 1]
    name = ["workerpool0-0", "workerpool1-0", "workerpool2-0", "workerpool2-1"][stopped]
    assert all(f"error: a replica was lost: {name} (127.0.0.1:" in output for output in outputs), outputs


@pytest.mark.full
@pytest.mark.timeout(900)
def test_replicas_that_all_stood_still_for_a_while_go_on(spawn: Spawn, tmp_path: Path, free_port: int) -> None:
    processes = pair(spawn, tmp_path, free_port, steps=100_000, eval_every=0, checkpoint_every=5, log_every=50)
    wait_for(tmp_path / "checkpoints" / "step-00000005" / "complete.json")

    for process in processes:
        process.send_signal(signal.SIGSTOP)
    time.sleep(60)
    for process in processes:
        process.send_signal(signal.SIGCONT)
    time.sleep(5)
    processes[0].send_signal(signal.SIGTERM)

    ended(processes)
    assert result(tmp_path)["status"] == "preempted"


def test_more_replicas_than_sequences_are_refused(
    train: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = {"workerpool0": ["127.0.0.1:1"], "workerpool1": ["127.0.0.1:2"]}
    monkeypatch.setenv("CLUSTER_SPEC", json.dumps({"cluster": cluster, "task": {"type": "workerpool1", "index": 0}}))

    assert train(tmp_path, batch_size=1) == 2

    assert "trainer.batch_size: got 1 sequences for 2 replicas; allowed: at least 2" in capsys.readouterr().err
