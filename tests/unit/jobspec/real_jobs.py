"""Real jobs of AI Platform from public repositories, put through `trainops convert` in the form that they had there.

Each lies in `golden/real_jobs` with its source, its fields (names and values only; a shell's variables are filled
in: upper-case words where any text will do, names such as my-bucket where it will not) and what a careful reader of
AI Platform's and Vertex AI's references expects of it. The requests that came of them lie in `requests`;
INSTALL_AND_RUN stands in them for the program that containers install packages with. After a change that a person has
looked at, write them anew:

    .venv/bin/python tests/unit/jobspec/real_jobs.py
"""

from __future__ import annotations

import io
import json
import os
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainops.cli import main
from trainops.jobspec import installation

FOLDER = Path(__file__).parent / "golden" / "real_jobs"
REQUESTS = FOLDER / "requests"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
OPTIONS = {"--module": "trainer.task", "--package-uris": "gs://my-bucket/trainer.tar.gz", "--region": "us-central1"}

MARK = '"INSTALL_AND_RUN"'
_FLAGS = {
    "scaleTier": "scale-tier",
    "region": "region",
    "runtimeVersion": "runtime-version",
    "pythonModule": "module-name",
    "jobDir": "job-dir",
    "masterType": "master-machine-type",
    "workerType": "worker-machine-type",
    "workerCount": "worker-count",
    "masterConfig": "master",
    "workerConfig": "worker",
    "package_path": "package-path",
    "staging_bucket": "staging-bucket",
}


@dataclass(frozen=True)
class Converted:
    """What `trainops convert` gave: its exit code, the job on stdout, the table on stderr."""

    code: int
    stdout: str
    stderr: str

    @property
    def job(self) -> dict[str, Any]:
        """The job that was printed."""
        job: dict[str, Any] = json.loads(self.stdout)
        return job

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """Verdict, field and the rest of each row of the table."""
        table = self.stderr.split("VERDICT", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
        cells = [line.split(None, 2) for line in table]
        return [(cell[0], cell[1], cell[2] if len(cell) > 2 else "") for cell in cells]

    @property
    def refused(self) -> list[str]:
        """The lines that say what is refused, and what to do."""
        return [line for line in self.stderr.splitlines() if line.startswith("refused: ")]

    def counts(self, what: str) -> str:
        """What the line `machines: ...` or `GPUs: ...` says."""
        return next(line for line in self.stderr.splitlines() if line.startswith(f"{what}: ")).removeprefix(f"{what}: ")


def real_job(name: str) -> dict[str, Any]:
    """Return a job with its source and what is expected of it."""
    job: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return job


def converted(name: str, options: Sequence[str], folder: Path) -> Converted:
    """Convert a job in its own form; TRAINOPS_CONFIGS must be `FOLDER`.

    :param options: names of the options that complete the job.
    :param folder: where the job's file is written.
    """
    file = folder / f"{name}.yaml"
    file.write_text(_text(name, real_job(name)), encoding="utf-8")
    arguments = [part for option in options for part in (option, OPTIONS[option])]
    stdout, stderr = io.StringIO(), io.StringIO()
    with redirect_stdout(stdout), redirect_stderr(stderr):
        code = main(["convert", str(file), *arguments])
    return Converted(code, stdout.getvalue(), stderr.getvalue())


def request(name: str) -> Any:
    """Return the request on file."""
    text = (REQUESTS / f"{name}.json").read_text(encoding="utf-8")
    return json.loads(text.replace(MARK, json.dumps(installation.program())))


def _text(name: str, job: dict[str, Any]) -> str:
    fields, extra = job["trainingInput"], job.get("extra", {})
    if job["form"].startswith("gcloud "):
        job_id = extra.get("jobId", name)
        flags = _flags({**fields, **{key: extra[key] for key in extra if key != "jobId"}})
        arguments = ["--", *fields["args"]] if "args" in fields else []
        return f"{job['form']} {shlex.join([job_id, *flags, *arguments])}\n"
    # An operator of Airflow takes the fields themselves; a config.yaml of gcloud holds them under trainingInput.
    return yaml.safe_dump(fields if job["form"] == "MLEngineTrainingOperator" else {"trainingInput": fields})


def _flags(fields: dict[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        if name == "args":
            continue
        flag = f"--{_FLAGS[name]}"
        if not isinstance(value, dict):
            yield from (flag, value.lower().replace("_", "-") if name == "scaleTier" else str(value))
            continue
        yield from (f"{flag}-image-uri", value["imageUri"])
        if "acceleratorConfig" in value:
            config = value["acceleratorConfig"]
            kind = config["type"].lower().replace("_", "-")
            yield from (f"{flag}-accelerator", f"count={config['count']},type={kind}")


def _write_requests() -> None:
    os.environ["TRAINOPS_CONFIGS"] = str(FOLDER)
    os.environ.pop("TRAINOPS_ENVIRONMENT", None)
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            found = converted(name, real_job(name)["expected"]["options"], Path(folder))
            file = REQUESTS / f"{name}.json"
            file.unlink(missing_ok=True)
            if found.code == 0:
                file.write_text(found.stdout.replace(json.dumps(installation.program()), MARK), encoding="utf-8")


if __name__ == "__main__":
    _write_requests()
