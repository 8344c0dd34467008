"""Train a small regression with parameter servers: every replica is in one gloo group, each with its own part.

At each step chief and workers compute gradients on examples of their own, each parameter server adds up those of its
shard of the parameters, moves the shard by SGD, and sends it to all.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import socket
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from .replica import Replica, find_replica

STEPS, FEATURES = 25, 8
HELD_OUT = (STEPS, 0)
"""Place of the examples that nobody trains on: a step after the last."""
FAILURE_STEP, FAILURE_CODE = 5, 3


def main() -> None:
    """Join the others, train, and let the chief write what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_dir", required=True)
    parser.add_argument("--job-dir", required=True)
    parser.add_argument("--batch_size", type=int, required=True)
    parser.add_argument("--learning_rate", type=float, required=True)
    parser.add_argument("--failing", help="replica, such as worker-1, that fails in the middle")
    options = parser.parse_args()
    torch.manual_seed(0)
    replica = find_replica(os.environ)
    with _own_address(replica):
        _join(replica)
        print(f"{replica} is rank {replica.rank} of {len(replica.members)}", flush=True)
        result = _train(replica, options)
        if replica.role == "chief":
            _upload(f"{options.model_dir.rstrip('/')}/parameters.json", result.pop("parameters"))
            _upload(f"{options.job_dir.rstrip('/')}/result.json", result)
        dist.destroy_process_group()
    if replica.role == "chief":
        _outlast_others(replica)


def _own_address(replica: Replica) -> AbstractContextManager[object]:
    """Listen where the cluster says that this replica is; at the chief's address the group does it."""
    own = (replica.role, replica.index)
    return nullcontext() if replica.role == "chief" else socket.create_server(replica.address(own))


def _join(replica: Replica) -> None:
    host, port = replica.address(("chief", 0))
    if host == "127.0.0.1":
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group(
        "gloo", init_method=f"tcp://{host}:{port}", rank=replica.rank, world_size=len(replica.members)
    )


def _train(replica: Replica, options: argparse.Namespace) -> dict[str, Any]:
    model = _model()
    parameters = parameters_to_vector(model.parameters()).detach()
    if replica.trains:
        parameters.zero_()  # what it learns from, it has from the servers
    shards = parameters.tensor_split(len(replica.servers))
    _pull(replica, shards)
    begun, loss, examples = parameters.clone(), _held_out_loss(model, parameters), 0
    for step in range(STEPS):
        _fail_if_told(replica, step, options.failing)
        examples += _push(replica, _own_gradients(replica, model, parameters, step, options), shards, options)
        _pull(replica, shards)
    result = _gathered(replica, parameters, examples)
    alone = _trained_alone(replica, begun, options) if replica.role == "chief" else parameters
    losses = {"before": loss, "after": _held_out_loss(model, parameters), "alone": _held_out_loss(model, alone)}
    print(f"{replica}: held-out loss {loss:.4f} before, {losses['after']:.4f} after", flush=True)
    return {"loss": losses, **result}


def _pull(replica: Replica, shards: tuple[torch.Tensor, ...]) -> None:
    """Send the own shard of the parameters to all, and receive the others'."""
    for shard, server in zip(shards, replica.servers, strict=True):
        dist.broadcast(shard, src=server)


def _push(
    replica: Replica, gradients: torch.Tensor, shards: tuple[torch.Tensor, ...], options: argparse.Namespace
) -> int:
    """Send gradients to the servers, or add them up and move the own shard; return the examples that they were of."""
    own = total = options.batch_size if replica.trains else 0
    for shard, part, server in zip(shards, gradients.tensor_split(len(shards)), replica.servers, strict=True):
        # Beside the sum of the gradients travels the number of examples that they are of.
        sent = torch.cat([part * own, torch.tensor([float(own)])])
        dist.reduce(sent, dst=server)
        if server == replica.rank:
            shard -= options.learning_rate * sent[:-1] / sent[-1]
            total = int(sent[-1])
    return total


def _own_gradients(
    replica: Replica, model: torch.nn.Module, parameters: torch.Tensor, step: int, options: argparse.Namespace
) -> torch.Tensor:
    if not replica.trains:
        return torch.zeros_like(parameters)
    return _gradients(model, parameters, *_examples((step, replica.rank), options.batch_size))


def _trained_alone(replica: Replica, begun: torch.Tensor, options: argparse.Namespace) -> torch.Tensor:
    """Take the same steps in this process alone, on the examples of all replicas together."""
    model, parameters = _model(), begun.clone()
    trainers = [rank for rank in range(len(replica.members)) if rank not in replica.servers]
    for step in range(STEPS):
        batches = [_examples((step, rank), options.batch_size) for rank in trainers]
        inputs, targets = (torch.cat(parts) for parts in zip(*batches, strict=True))
        parameters -= options.learning_rate * _gradients(model, parameters, inputs, targets)
    return parameters


def _model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(FEATURES, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))


def _examples(place: tuple[int, int], count: int) -> tuple[torch.Tensor, torch.Tensor]:
    step, rank = place
    inputs = torch.randn(count, FEATURES, generator=torch.Generator().manual_seed(1000 * step + rank))
    return inputs, inputs @ torch.linspace(-1, 1, FEATURES).unsqueeze(1)


def _gradients(
    model: torch.nn.Module, parameters: torch.Tensor, inputs: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    vector_to_parameters(parameters, model.parameters())
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    return torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(model.parameters()))])


def _held_out_loss(model: torch.nn.Module, parameters: torch.Tensor) -> float:
    vector_to_parameters(parameters, model.parameters())
    inputs, targets = _examples(HELD_OUT, 1000)
    return torch.nn.functional.mse_loss(model(inputs), targets).item()


def _fail_if_told(replica: Replica, step: int, failing: str | None) -> None:
    if failing == f"{replica.role}-{replica.index}" and step == FAILURE_STEP:
        print(f"{replica} was told to fail", flush=True)
        raise SystemExit(FAILURE_CODE)


def _gathered(replica: Replica, parameters: torch.Tensor, examples: int) -> dict[str, Any]:
    """What every replica did, as each told all others."""
    digest = hashlib.sha256(parameters.numpy().tobytes()).hexdigest()[:12]
    own = {"replica": str(replica), "examples": examples, "parameters": digest}
    replicas: list[dict[str, Any]] = [{} for _ in replica.members]
    dist.all_gather_object(replicas, own)
    return {"replicas": replicas, "parameters": parameters.tolist()}


def _upload(uri: str, value: object) -> None:
    from google.cloud import storage

    bucket, _, name = uri.removeprefix("gs://").partition("/")
    client: Any = storage.Client  # untyped
    client().bucket(bucket).blob(name).upload_from_string(json.dumps(value), content_type="application/json")


def _outlast_others(replica: Replica) -> None:
    """Wait until nobody is left at the others' addresses: the service stops them when the chief has ended."""
    for member in replica.members[1:]:
        with suppress(ConnectionError), socket.create_connection(replica.address(member)) as line:
            line.recv(1)


if __name__ == "__main__":
    main()
