"""Texts of any kind that may hold a job, for tests that none gives a traceback; the same for the same seed."""

from __future__ import annotations

import json
import random
from typing import Any

import yaml
from tests.unit.jobspec.random_bodies import DEPTHS, HOSTILE, WHOLE, random_job

LINE = (
    "gcloud ai-platform jobs submit training job_1 --region us-central1 --scale-tier custom {flags}"
    "--master-machine-type n1-standard-8 --master-accelerator type=nvidia-tesla-t4,count=1 --runtime-version 2.11 "
    "--module-name trainer.task --packages gs://my-bucket/trainer.tar.gz --labels a=b -- --epochs=1 --name='x y'"
)
FLAGS = ["--region", "--labels", "--config", "--job-dir", "--worker-count", "--async", "--kms-key", "--packages", "--x"]
LETTERS = [
    "", '"', "'", "{", "}", "[", ",", ":", "\n", "\t", " ", "#", "//", "&a ", "*a ", "!!python/name:os ", "<<: ", "$",
    "`", "\\", "|",
]  # fmt: skip
DEEP, HUGE = "@deep@", "@huge@"
"""Marks of what `json` and `yaml` cannot write."""


def random_text(chance: random.Random) -> str:
    """JSON, YAML or a command line, whole or with letters lost, doubled or put in."""
    text = chance.choice([_command_line, _yaml, _json, _json])(chance)
    depth = chance.choice(DEPTHS) if chance.random() < 0.1 else 3
    text = text.replace(f'"{DEEP}"', "[" * depth + "]" * depth).replace(f'"{HUGE}"', "9" * 5000)
    for _ in range(chance.choice([0, 0, 1, 3])):
        place = chance.randrange(len(text))
        text = text[:place] + chance.choice(LETTERS) + text[place + chance.randrange(2) :]
    return text.encode("utf-8", "replace").decode()


def _command_line(chance: random.Random) -> str:
    flags = chance.choices(FLAGS, k=chance.randrange(4))
    return LINE.format(flags="".join(f"{flag} {_writable(chance.choice(HOSTILE))} " for flag in flags))


def _yaml(chance: random.Random) -> str:
    wrapped = [WHOLE, {"trainingInput": WHOLE}, {"resources": {"job": {"properties": WHOLE}}}]
    return yaml.dump(chance.choice(wrapped) if chance.random() < 0.5 else _writable(random_job(chance)))


def _json(chance: random.Random) -> str:
    return json.dumps(_writable(random_job(chance)), ensure_ascii=chance.random() < 0.5)


def _writable(value: Any, depth: int = 0) -> Any:
    """Put marks in place of what lies too deep, and of integers with too many digits."""
    if depth > 20:
        return DEEP
    if isinstance(value, dict):
        return {key: _writable(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_writable(inner, depth + 1) for inner in value]
    return HUGE if isinstance(value, int) and value > 10**1000 else value
