"""Run the tests in stages, quick ones first, and close with one line that counts them all.

`stages.py` is `make test`, `stages.py full` is `make test-full`. The trainer's tests need the trainer's environment, so
one run of pytest is not enough. The live tests are not started when an earlier stage failed: they take minutes, and
would say less.
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
AIRFLOW, TRAINER = ".venv", ".venv-trainer"
NO_TESTS_COLLECTED = 5
SIDE_BY_SIDE = ["--numprocesses=4", "--dist=worksteal"]
"""Four processes, since half of the time of such a test is waiting, each with stand-ins of its own."""


@dataclass(frozen=True)
class Stage:
    """One run of pytest: its name, the environment, what it selects, and whether its files may run side by side."""

    name: str
    environment: str
    select: str
    may_be_empty: bool = False
    side_by_side: bool = False

    def command(self, report: Path) -> list[str]:
        """Give the command line; pytest leaves its counts in the file `report`."""
        where = ["tests/trainer"] if self.environment == TRAINER else ["tests", "--ignore=tests/trainer"]
        return [
            f"{self.environment}/bin/python",
            "-m",
            "pytest",
            *where,
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

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


SUITES = {
    "": [
        Stage("fast", AIRFLOW, "not live and not full", side_by_side=True),
        Stage("trainer", TRAINER, "not full"),
        Stage("live", AIRFLOW, "live and not full"),
    ],
    "full": [
        Stage("full", AIRFLOW, "full"),
        Stage("full trainer", TRAINER, "full", may_be_empty=True),
    ],
}


def main(suite: str) -> int:
    """Run the stages of a suite; the answer is the exit status: 0 when every stage passed."""
    total = Counts()
    broken: list[str] = []
    lines: list[str] = []
    for stage in SUITES[suite]:
        if broken and stage.name == "live":
            lines.append(f"{stage.name}: not run, since an earlier stage failed")
            continue
        print(f"\n=== {stage.name} tests ({stage.environment})", flush=True)
        started = time.monotonic()
        status, counts = run(stage)
        lines.append(f"{stage.name}: {counts} in {time.monotonic() - started:.0f} s{verdict(stage, status)}")
        total += counts
        if verdict(stage, status):
            broken.append(stage.name)
    print("\n=== summary", *lines, sep="\n")
    print(f"total: {total}", flush=True)
    return 1 if broken else 0


def run(stage: Stage) -> tuple[int, Counts]:
    """Run one stage; its output goes straight through."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        status = subprocess.run(stage.command(report), cwd=ROOT, check=False).returncode
        return status, read_counts(report)


def read_counts(report: Path) -> Counts:
    """Count the tests in a report; a run that broke off has left none, and its exit status tells."""
    if not report.exists():
        return Counts()
    total = Counts()
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped = int(suite.get("skipped", 0))
        total += Counts(max(int(suite.get("tests", 0)) - failed - skipped, 0), failed, skipped)
    return total


def verdict(stage: Stage, status: int) -> str:
    """Say what was wrong with a stage; the empty string when nothing was."""
    if status == NO_TESTS_COLLECTED:
        return "" if stage.may_be_empty else "  <- no tests were found"
    return f"  <- pytest ended with {status}" if status else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
