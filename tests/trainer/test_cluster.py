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

    names = ("workerpool0-0 (a:2222)", "workerpool1-0 (b:2222)", "workerpool1-1 (c:2222)")
    assert found == Cluster(rank=2, size=3, host="a", port=2222, local_rank=0, local_size=1, names=names)
    assert found.name(2) == "workerpool1-1 (c:2222)"


def test_replicas_on_one_machine_are_counted() -> None:
    cluster = {"workerpool0": ["127.0.0.1:7001"], "workerpool1": ["127.0.0.1:7002"]}

    found = find_cluster({"CLUSTER_SPEC": spec(cluster, "workerpool1", 0)})

    assert (found.local_rank, found.local_size) == (1, 2)


@pytest.mark.parametrize("first", ["chief", "master"])
def test_tf_config_is_understood(first: str) -> None:
    cluster = {"worker": ["b:2222"], first: ["a:2222"]}

    found = find_cluster({"TF_CONFIG": spec(cluster, "worker", 0)})

    assert (found.rank, found.size, found.host, found.port) == (1, 2, "a", 2222)
    # An evaluator is not in the cluster of TensorFlow, so one may be there.
    assert found.watched


def test_torchrun_comes_before_the_cluster_of_the_service() -> None:
    torchrun = {"RANK": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "m", "MASTER_PORT": "29500", "LOCAL_RANK": "1"}

    found = find_cluster({**torchrun, "CLUSTER_SPEC": spec({"workerpool0": ["a:1"]}, "workerpool0", 0)})

    assert found == Cluster(rank=3, size=4, host="m", port=29500, local_rank=1)
    assert found.name(2) == "rank 2"


@pytest.mark.parametrize(
    ("variable", "pools"),
    [
        ("CLUSTER_SPEC", ("workerpool0", "workerpool1", "workerpool2", "workerpool3")),
        ("TF_CONFIG", ("chief", "worker", "ps", "evaluator")),
    ],
)
def test_parameter_servers_come_after_the_workers_and_evaluators_have_no_rank(
    variable: str, pools: tuple[str, ...]
) -> None:
    counts = dict(zip(pools, (1, 2, 2), strict=False))
    cluster = {pool: [f"{pool}-{index}:2222" for index in range(count)] for pool, count in counts.items()}

    server = find_cluster({variable: spec(cluster, pools[2], 1)})
    cluster |= {pools[3]: ["e:2222"]} if variable == "CLUSTER_SPEC" else {}
    evaluator = find_cluster({variable: spec(cluster, pools[3], 0)})

    assert (server.rank, server.size, server.servers, server.workers) == (4, 5, 2, 3)
    assert (server.host, server.evaluator) == (f"{pools[0]}-0", False)
    assert (evaluator.evaluator, evaluator.size, evaluator.watched) == (True, 5, True)
    assert (evaluator.host, evaluator.port) == (f"{pools[0]}-0", 2222)


def test_reduction_servers_are_no_parameter_servers() -> None:
    data = json.loads(spec({"workerpool0": ["a:1"], "workerpool1": ["b:1"], "workerpool2": ["r:1"]}, "workerpool1", 0))
    image = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
    data["job"] = {"workerPoolSpecs": [{}, {}, {"containerSpec": {"imageUri": image}, "replicaCount": 1}]}

    found = find_cluster({"CLUSTER_SPEC": json.dumps(data)})

    assert (found.size, found.servers) == (2, 0)


@pytest.mark.parametrize(
    ("cluster", "told"),
    [
        ({"workerpool0": ["a:1"], "workerpool3": ["e:1", "f:1"]}, "workerpool3: got 2 evaluators; allowed: 1"),
        ({"workerpool0": ["a:1"], "workerpool4": ["e:1"]}, "workerpool4: no such pool; allowed: workerpool0, workerp"),
        ({"workerpool2": ["p:1"]}, "workerpool0, workerpool1: no replica that trains; add a master"),
    ],
)
def test_pools_that_there_is_no_use_for_are_refused_on_every_replica(cluster: dict[str, list[str]], told: str) -> None:
    for pool in cluster:
        with pytest.raises(UserError) as caught:
            find_cluster({"CLUSTER_SPEC": spec(cluster, pool, 0)})

        assert told in str(caught.value)


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
