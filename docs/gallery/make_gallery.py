"""Train what the gallery shows, through the DAGs of the local cloud, and write pictures and page beside this file.

`make gallery`. The pretraining is left out where its model is in production already; the fine-tuning is always run.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from curves import draw, read_metrics
from gallery_page import Shown, Written, page

from trainops import naming
from trainops.gcp.storage import Storage
from trainops.settings import Settings, load_settings
from trainops.steps.channels import read_channel
from trainops.steps.outcome import Outcome
from trainops.steps.run_story import run_keys
from trainops.steps.stored_json import read_model

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TRAINER_PYTHON = ROOT / ".venv-trainer" / "bin" / "python"
PRETRAINING, FINE_TUNING = "stdlib_tiny", "stdlib_docstrings"
MODEL = "stdlib-tiny"
"""What the pretraining makes, and the fine-tuning goes on from."""

QUOTES = '\n    """'
PROMPTS = [
    "def double(number):\n    return 2 * number",
    "def is_empty(self):\n    return len(self.items) == 0",
    "def close(self):\n    self.file.close()",
    "def read_lines(path):\n    with open(path) as file:\n        return file.readlines()",
]
"""Functions that stand nowhere in the standard library."""


def main() -> int:
    """Train, draw and write."""
    localcloud("up")
    settings = load_settings("local")
    storage = Storage.connect(settings)
    if read_channel(storage, settings.models, MODEL, "production").pointer is None:
        localcloud("demo", "--experiment", PRETRAINING)
    tuned = new_run(storage, settings, FINE_TUNING)
    base = str(tuned.lineage.base_model)
    pretrained = outcome_of(storage, settings, base.rpartition("/")[2].rpartition("-g")[0])
    before, after = (written_by(storage, folder) for folder in (base, tuned.folder))
    text = page(
        shown(storage, pretrained, "Pretraining"),
        shown(storage, tuned, "Fine-tuning"),
        [Written(*item) for item in zip(PROMPTS, before, after, strict=True)],
        f"Measured on {datetime.now(UTC):%Y-%m-%d} with {os.cpu_count()} cores, Python {platform.python_version()}.",
    )
    (HERE / "README.md").write_text(text, encoding="utf-8")
    storage.close()
    print(f"wrote {HERE}", file=sys.stderr)
    return 0


def localcloud(*arguments: str) -> None:
    """Run a command of the local cloud as a person does, and end with it when it fails."""
    command = [sys.executable, "-m", "localcloud", *arguments]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if code:
        raise SystemExit(code)


def new_run(storage: Storage, settings: Settings, experiment: str) -> Outcome:
    """Run the experiment's DAG to its end and return what came out."""
    before = set(run_keys(storage, settings))
    localcloud("demo", "--experiment", experiment)
    (found,) = [key for name, key in set(run_keys(storage, settings)) - before if name == experiment]
    return outcome_of(storage, settings, found)


def outcome_of(storage: Storage, settings: Settings, run_key: str) -> Outcome:
    """Return what `check_outputs` found of a run."""
    folder = naming.run_folder(settings.work, run_key.rsplit("-", 2)[0], run_key)
    found = read_model(storage, f"{folder}/outcome.json", Outcome)
    if found is None:
        raise SystemExit(f"{folder}/outcome.json is missing: did somebody delete the run?")
    return found[0]


def shown(storage: Storage, outcome: Outcome, title: str) -> Shown:
    """Draw a run's loss curve, and return the run as the page shows it."""
    folder = outcome.folder.removesuffix("/model")
    metrics = storage.read_bytes(f"{folder}/metrics.jsonl")
    if metrics is None:
        raise SystemExit(f"{folder}/metrics.jsonl is missing: did somebody delete the run?")
    result = outcome.result.model_dump()
    picture = f"{outcome.experiment}.svg"
    heading = f"{title}: {outcome.experiment}, {result['parameters']:,} parameters"
    drawn = draw(read_metrics(metrics.data.decode()), heading, result["unigram_entropy"])
    (HERE / picture).write_bytes(drawn)
    tokens = storage.read_json(f"{outcome.lineage.tokens}/manifest.json")
    documents = tokens.value["train"]["documents"] if tokens else 0
    return Shown(outcome.experiment, title, result, picture, documents)


def written_by(storage: Storage, folder: str) -> list[str]:
    """Return what the model of a folder writes after each prompt."""
    with tempfile.TemporaryDirectory() as temporary:
        for info in storage.list(f"{folder}/"):
            storage.download_file(info.uri, Path(temporary) / info.uri.removeprefix(f"{folder}/"))
        done = subprocess.run(
            [str(TRAINER_PYTHON), str(HERE / "continue_prompts.py"), temporary],
            input=json.dumps([prompt + QUOTES for prompt in PROMPTS]),
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(done.stderr)
    lines: list[list[Any]] = json.loads(done.stdout)
    return [str(line) for line in lines[0]]


if __name__ == "__main__":
    raise SystemExit(main())
