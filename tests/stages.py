"""Run the tests in stages, quick ones first, and close with one line that counts them all.

`stages.py` is `make test`, `stages.py full` is `make test-full`. The trainer's tests need the trainer's environment, so
one run of pytest is not enough; they run beside the fast ones, which wait for half of their time. The live tests are
not started when an earlier stage failed: they take minutes, and would say less.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
AIRFLOW, TRAINER = ".venv", ".venv-trainer"
REPORT = "report.xml"
NO_TESTS_COLLECTED = 5
SIDE_BY_SIDE = ["--numprocesses=6", "--dist=worksteal"]
"""Six processes, since more than half of the time of such a test is waiting, each with stand-ins of its own."""
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""For torch beside others: its threads spin while they wait for one another, and take the cores from who has work."""
TRAINER_TESTS, LIVE_TESTS = "tests/trainer", "tests/live"


@dataclass(frozen=True)
class Stage:
    """One run of pytest.

    :param select: expression of the marks that it selects.
    :param where: files and folders, and what to leave out of them.
    :param side_by_side: whether its tests may run in several processes.
    :param background: run it beside the stage after it, and show what it printed when that one has ended.
    """

    name: str
    environment: str
    select: str
    where: tuple[str, ...]
    may_be_empty: bool = False
    side_by_side: bool = False
    background: bool = False

    def command(self, report: Path) -> list[str]:
        """Give the command line; pytest leaves its counts in the file `report`."""
        return [
            f"{self.environment}/bin/python",
            "-m",
            "pytest",
            *self.where,
            *(SIDE_BY_SIDE if self.side_by_side else []),
            "-q",
            "-m",
            self.select,
            f"--junitxml={report}",
        ]


@dataclass(frozen=True)
class Counts:
    """How the tests of a stage ended."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped in {self.seconds:.0f} s"


@dataclass
class Running:
    """A stage that was started, with what it is to leave."""

    stage: Stage
    process: subprocess.Popen[bytes]
    folder: Path
    output: IO[bytes] | None

    def end(self) -> tuple[int, Counts]:
        """Wait for its end, show what it held back, and return its exit status and its counts."""
        status = self.process.wait()
        if self.output is not None:
            print(title(self.stage), flush=True)
            self.output.seek(0)
            shutil.copyfileobj(self.output, sys.stdout.buffer)
            sys.stdout.flush()
            self.output.close()
        return status, read_counts(self.folder / REPORT)


ALL_BUT_TRAINER = ("tests", f"--ignore={TRAINER_TESTS}")
SUITES = {
    "": [
        Stage("trainer", TRAINER, "not full", (TRAINER_TESTS,), background=True),
        Stage(
            "fast", AIRFLOW, "not live and not full", (*ALL_BUT_TRAINER, f"--ignore={LIVE_TESTS}"), side_by_side=True
        ),
        Stage("live", AIRFLOW, "live and not full", (LIVE_TESTS,)),
    ],
    "full": [
        Stage("full", AIRFLOW, "full", ALL_BUT_TRAINER),
        Stage("full trainer", TRAINER, "full", (TRAINER_TESTS,), may_be_empty=True),
    ],
}


def main(suite: str) -> int:
    """Run the stages of a suite; the answer is the exit status: 0 when every stage passed."""
    began = time.monotonic()
    total = Counts()
    broken = False
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        begun: list[Running] = []
        for stage in SUITES[suite]:
            if broken and stage.name == "live":
                lines.append(f"{stage.name}: not run, since an earlier stage failed")
                continue
            begun.append(start(stage, Path(folder)))
            if stage.background:
                continue
            while begun:
                one = begun.pop()
                status, counts = one.end()
                wrong = verdict(one.stage, status)
                lines.append(f"{one.stage.name}: {counts}{wrong}")
                total += counts
                broken = broken or bool(wrong)
    print("\n=== summary", *lines, sep="\n")
    print(f"total: {replace(total, seconds=time.monotonic() - began)}", flush=True)
    return 1 if broken else 0


def start(stage: Stage, folder: Path) -> Running:
    """Start one stage; its output goes straight through, unless another one's does."""
    own = folder / stage.name
    own.mkdir()
    output = (own / "output").open("w+b") if stage.background else None
    if output is None:
        print(title(stage), flush=True)
    environment = os.environ | (ONE_THREAD if stage.background else {})
    process = subprocess.Popen(stage.command(own / REPORT), cwd=ROOT, env=environment, stdout=output, stderr=output)
    return Running(stage, process, own, output)


def title(stage: Stage) -> str:
    """The line over a stage's output."""
    return f"\n=== {stage.name} tests ({stage.environment})"


def read_counts(report: Path) -> Counts:
    """Count the tests in a report; a run that broke off has left none, and its exit status tells."""
    if not report.exists():
        return Counts()
    total = Counts()
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped = int(suite.get("skipped", 0))
        passed = max(int(suite.get("tests", 0)) - failed - skipped, 0)
        total += Counts(passed, failed, skipped, float(suite.get("time", 0)))
    return total


def verdict(stage: Stage, status: int) -> str:
    """Say what was wrong with a stage; the empty string when nothing was."""
    if status == NO_TESTS_COLLECTED:
        return "" if stage.may_be_empty else "  <- no tests were found"
    return f"  <- pytest ended with {status}" if status else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
