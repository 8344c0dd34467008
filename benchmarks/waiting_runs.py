"""Runs that wait, made by the product's own code: their records, their jobs, their metrics. Prints them as JSON."""

from __future__ import annotations

import json
import sys

from trainops.policy.record import TaskTry
from trainops.settings import load_settings
from trainops.steps.run import Run
from trainops.steps.services import Services
from trainops.steps.start import JobRequest, begin

STEPS = 500
"""Steps in the metrics of a run that is half through: one line each, as the trainer writes them."""


def main(first: int, count: int) -> None:
    """Begin the runs, submit their jobs, and print record URI and job name of each."""
    services = Services(load_settings())
    metrics = metrics_file()
    runs = [submit(services, f"run-{number}", metrics) for number in range(first, first + count)]
    print(json.dumps(runs))


def submit(services: Services, name: str, metrics: bytes) -> dict[str, str]:
    """Begin one run and submit its job."""
    config = {"imageUri": "example/image", "containerCommand": ["train"]}
    body = {"scaleTier": "CUSTOM", "masterType": "n1-standard-8", "region": "us-central1", "masterConfig": config}
    request = JobRequest(
        job_key=f"{name}-train", run_key=name, experiment="bench", task="train", display_name=name, training_input=body,
    )  # fmt: skip
    uri = f"{services.settings.work}/runs/bench/{name}/train.json"
    tried = TaskTry(dag_id="bench", run_id=name, task_id="train")
    record, _ = begin(services.storage, services.settings, uri, request, tried, actor="train")
    run = Run(services, uri, actor="train", say=lambda _: None)
    run.advance()
    assert run.observed is not None
    services.storage.write_bytes(f"{record.folder}/metrics.jsonl", metrics, generation=None)
    return {"record": uri, "job": run.observed.name}


def metrics_file() -> bytes:
    """What a trainer has written in half of its steps."""
    points = (
        {"step": step, "steps": 2 * STEPS, "loss": 9 / step + 2, "tokens_per_second": 41000.5, "tokens": step * 65536,
         "learning_rate": 0.0003, "elapsed_seconds": step * 1.5, "remaining_seconds": 3 * STEPS - step * 1.5}
        for step in range(1, STEPS + 1)
    )  # fmt: skip
    return "".join(json.dumps(point) + "\n" for point in points).encode()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
