"""Run the tests in stages, quick ones first, and close with one line that counts them all.

`stages.py` is `make test`, `stages.py full` is `make test-full`. The trainer's tests need the trainer's environment, so
one run of pytest is not enough. The live tests are not started when an earlier stage failed: they take minutes, and
would say less.
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
AIRFLOW, TRAINER = ".venv", ".venv-trainer"
REPORT = "report.xml"
NO_TESTS_COLLECTED = 5
TRAINER_TESTS, LIVE_TESTS = "tests/trainer", "tests/live"


@dataclass(frozen=True)
class Stage:
    """One run of pytest.

    :param select: expression of the marks that it selects.
    :param where: files and folders, and what to leave out of them.
    :param processes: how many its tests are spread over. More than there are cores where tests wait for servers of
        their own half of the time; as many as cores where they compute.
    """

    name: str
    environment: str
    select: str
    where: tuple[str, ...]
    may_be_empty: bool = False
    processes: int = 1

    def command(self, report: Path) -> list[str]:
        """Give the command line; pytest leaves its counts in the file `report`."""
        return [
            f"{self.environment}/bin/python",
            "-m",
            "pytest",
            *self.where,
            *([f"--numprocesses={self.processes}", "--dist=worksteal"] if self.processes > 1 else []),
            "-q",
            "--durations=15",
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


ALL_BUT_TRAINER = ("tests", f"--ignore={TRAINER_TESTS}")
SUITES = {
    "": [
        Stage("trainer", TRAINER, "not full", (TRAINER_TESTS,), processes=2),
        Stage("fast", AIRFLOW, "not live and not full", (*ALL_BUT_TRAINER, f"--ignore={LIVE_TESTS}"), processes=6),
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
    for stage in SUITES[suite]:
        if broken and stage.name == "live":
            lines.append(f"{stage.name}: not run, since an earlier stage failed")
            continue
        status, counts = run(stage)
        wrong = verdict(stage, status)
        lines.append(f"{stage.name}: {counts}{wrong}")
        total += counts
        broken = broken or bool(wrong)
    print("\n=== summary", *lines, sep="\n")
    print(f"total: {replace(total, seconds=time.monotonic() - began)}", flush=True)
    return 1 if broken else 0


def run(stage: Stage) -> tuple[int, Counts]:
    """Run one stage, its output straight to the terminal; answers its exit status and its counts."""
    print(f"\n=== {stage.name} tests ({stage.environment})", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / REPORT
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
