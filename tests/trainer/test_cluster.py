from __future__ import annotations

import json
from typing import Any

import pytest

from trainer.cluster import Cluster, find_cluster
from trainer.errors import UserError


def spec(cluster: dict[str, list[str]], kind: str, index: int) -> str:
    data: dict[str, Any] = {"cluster": cluster, "environment": "cloud", "task": {"type": kind, "index": index}}
    return json.dumps(data)


def test_without_variables_one_process_trains_alone() -> None:
    assert find_cluster({}) == Cluster(rank=0, size=1)


def test_cluster_spec_numbers_the_workers_after_the_master() -> None:
    cluster = {"workerpool0": ["a:2222"], "workerpool1": ["b:2222", "c:2222"]}

    found = find_cluster({"CLUSTER_SPEC": spec(cluster, "workerpool1", 1)})

    assert found == Cluster(rank=2, size=3, host="a", port=2222, local_rank=0, local_size=1)


def test_replicas_on_one_machine_are_counted() -> None:
    cluster = {"workerpool0": ["127.0.0.1:7001"], "workerpool1": ["127.0.0.1:7002"]}

    found = find_cluster({"CLUSTER_SPEC": spec(cluster, "workerpool1", 0)})

    assert (found.local_rank, found.local_size) == (1, 2)


@pytest.mark.parametrize("first", ["chief", "master"])
def test_tf_config_is_understood(first: str) -> None:
    cluster = {"worker": ["b:2222"], first: ["a:2222"]}

    assert find_cluster({"TF_CONFIG": spec(cluster, "worker", 0)}) == Cluster(rank=1, size=2, host="a", port=2222)


def test_torchrun_comes_before_the_cluster_of_the_service() -> None:
    torchrun = {"RANK": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "m", "MASTER_PORT": "29500", "LOCAL_RANK": "1"}

    found = find_cluster({**torchrun, "CLUSTER_SPEC": spec({"workerpool0": ["a:1"]}, "workerpool0", 0)})

    assert found == Cluster(rank=3, size=4, host="m", port=29500, local_rank=1)


@pytest.mark.parametrize(("variable", "pool"), [("CLUSTER_SPEC", "workerpool2"), ("TF_CONFIG", "ps")])
def test_parameter_servers_are_refused_on_every_replica(variable: str, pool: str) -> None:
    with pytest.raises(UserError, match=f"{variable}: {pool}: .*parameter servers.* to 0"):
        find_cluster({variable: spec({pool: ["p:2222"]}, pool, 0)})


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"cluster": {}}',
        spec({"workerpool0": ["a:1"]}, "workerpool0", 1),
        spec({"workerpool0": ["a"]}, "workerpool0", 0),
    ],
)
def test_a_cluster_that_cannot_be_read_is_the_users_error(text: str) -> None:
    with pytest.raises(UserError, match="CLUSTER_SPEC: "):
        find_cluster({"CLUSTER_SPEC": text})
