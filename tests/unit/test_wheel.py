"""The library as a wheel: a managed Airflow has neither this repository's folders nor its layout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_wheel_plans_with_configs_and_trainer_from_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert built.returncode == 0, built.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "site")
    shutil.copytree(ROOT / "include" / "configs", tmp_path / "configs")
    shutil.copytree(ROOT / "trainer", tmp_path / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
    environment = os.environ | {
        "PYTHONPATH": str(tmp_path / "site"),
        "TRAINOPS_CONFIGS": str(tmp_path / "configs"),
        "TRAINOPS_TRAINER": str(tmp_path / "trainer"),
    }
    script = (
        "import trainops.cli, sys; print(trainops.cli.__file__); sys.exit(trainops.cli.main(['plan', 'stdlib_tiny']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path / "site"))
    assert "NVIDIA_TESLA_T4" in done.stdout
