import io
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from trainops.errors import IntegrityError
from trainops.gcp.storage import Storage
from trainops.settings import Settings
from trainops.steps.packaging import package_trainer

PYPROJECT = """
[build-system]
requires = ["flit_core"]
build-backend = "flit_core.buildapi"

[project]
name = "trainer"
version = "1.2.3"
description = "A tiny trainer"
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    (root / "src" / "trainer" / "dist").mkdir(parents=True)
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "src" / "trainer" / "__init__.py").write_text('"""A tiny trainer."""\n')
    (root / "src" / "trainer" / "dist" / "__init__.py").write_text("")
    return root


def test_a_trainer_is_packaged_once(storage: Storage, settings: Settings, source: Path) -> None:
    told: list[str] = []
    first = package_trainer(storage, source, settings.work, progress=told.append)
    assert (first.version, first.moved) == ("1.2.3", True)
    assert first.uri == f"{settings.work}/packages/trainer/1.2.3/{first.sha16}/trainer-1.2.3.tar.gz"
    second = package_trainer(storage, source, settings.work, progress=told.append)
    assert (second.uri, second.moved) == (first.uri, False)
    assert told[-1] == f"already packaged, nothing moved: {first.uri}"


def test_a_package_holds_the_source(storage: Storage, settings: Settings, source: Path) -> None:
    package = package_trainer(storage, source, settings.work)
    blob = storage.read_bytes(package.uri)
    assert blob is not None
    with tarfile.open(fileobj=io.BytesIO(blob.data)) as archive:
        names = archive.getnames()
    assert names == [
        "trainer-1.2.3/pyproject.toml",
        "trainer-1.2.3/src/trainer/__init__.py",
        "trainer-1.2.3/src/trainer/dist/__init__.py",
        "trainer-1.2.3/PKG-INFO",
    ]


def test_bytes_do_not_depend_on_the_place_the_times_the_modes_or_what_python_left(
    storage: Storage, settings: Settings, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = package_trainer(storage, source, settings.work)
    other = tmp_path / "elsewhere"
    shutil.copytree(source, other)
    for path in other.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    (other / "pyproject.toml").chmod(0o600)
    (other / "dist").mkdir()
    (other / "dist" / "trainer-1.2.3.tar.gz").write_bytes(b"built before")
    (other / "src" / "trainer" / "__pycache__").mkdir()
    (other / "src" / "trainer" / "__pycache__" / "x.pyc").write_bytes(b"-")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert package_trainer(storage, other, settings.work).sha16 == first.sha16
    (other / "src" / "trainer" / "__init__.py").write_text('"""Another trainer."""\n')
    assert package_trainer(storage, other, settings.work).sha16 != first.sha16


@pytest.mark.case("C094")
def test_other_bytes_under_a_packages_name_are_refused(storage: Storage, settings: Settings, source: Path) -> None:
    package = package_trainer(storage, source, settings.work)
    storage.write_bytes(package.uri, b"foreign", generation=None)
    with pytest.raises(IntegrityError, match="other bytes"):
        package_trainer(storage, source, settings.work)
