from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import trainer

ROOT = Path(__file__).parents[2] / "trainer"


def test_the_source_builds_as_a_package_that_holds_every_module(tmp_path: Path) -> None:
    code = f"from flit_core.buildapi import build_sdist; print(build_sdist({str(tmp_path)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)

    name = f"trainer-{trainer.__version__}.tar.gz"
    assert done.stdout.strip() == name, done.stderr
    with tarfile.open(tmp_path / name) as archive:
        packed = {member.removeprefix(f"trainer-{trainer.__version__}/") for member in archive.getnames()}
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.py")}
    assert modules | {"pyproject.toml", "README.md", "PKG-INFO"} <= packed
