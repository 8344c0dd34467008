"""Packaging: the trainer's source becomes an sdist in the work bucket, named by its bytes.

The sdist is built by flit, in this process, and then packed again with one time for all files: the same source gives
the same bytes wherever and whenever it is built.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import logging
import tarfile
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainops import naming
from trainops.errors import ConfigError, IntegrityError, WriteConflict
from trainops.gcp.storage import Storage
from trainops.steps.staging import Progress

BACKEND = "flit_core.buildapi"
MODIFIED = 1_577_836_800
"""Time of every file in the sdist: 2020-01-01, in seconds; any fixed one after 1980 does."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Package:
    """A trainer in the work bucket; `moved` is False when it was there already."""

    uri: str
    sha16: str
    version: str
    moved: bool


def package_trainer(storage: Storage, source: Path, work: str, *, progress: Progress = _log.info) -> Package:
    """Build the trainer and put it into the work bucket, unless the same bytes are there.

    :param source: folder with the trainer's `pyproject.toml`.
    :param work: URI of the work bucket.
    :raises ConfigError: the trainer does not build.
    :raises IntegrityError: other bytes lie under this package's name.
    """
    version, data = _build(source)
    sha16 = hashlib.sha256(data).hexdigest()[:16]
    uri = naming.package_uri(work, version, sha16)
    stored = storage.read_bytes(uri)
    if stored is not None and stored.data == data:
        progress(f"already packaged, nothing moved: {uri}")
        return Package(uri, sha16, version, False)
    if stored is not None:
        raise _foreign(uri)
    try:
        storage.write_bytes(uri, data, generation=0, content_type="application/gzip")
    except WriteConflict as error:
        raise _foreign(uri) from error
    progress(f"packaged trainer {version}, {len(data) / 1e3:.0f} kB: {uri}")
    return Package(uri, sha16, version, True)


def check_trainer(source: Path) -> None:
    """Build the trainer in a temporary folder.

    :raises ConfigError: it does not build, or one of its files is not Python; names file and line.
    """
    _build(source)


def _build(source: Path) -> tuple[str, bytes]:
    """Return version and sdist of the trainer, every Python file of which compiles."""
    _check_project(source)
    with tempfile.TemporaryDirectory(prefix="trainops-") as folder:
        version, sdist = _sdist(source, Path(folder))
        _compile_all(source, sdist)
        return version, _packed_again(sdist)


def _check_project(source: Path) -> None:
    file = source / "pyproject.toml"
    if not source.is_dir():
        raise ConfigError("no such folder", source="TRAINOPS_TRAINER", value=str(source), next_step="name the trainer")
    try:
        project = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError("the trainer has no pyproject.toml", source=str(source), next_step="add one") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot be read: {error}", source=str(file)) from error
    backend = project.get("build-system", {}).get("build-backend")
    if backend != BACKEND:
        raise ConfigError(
            "the trainer is built by flit",
            source=str(file),
            key="build-system.build-backend",
            value=str(backend),
            allowed=[BACKEND],
        )


def _sdist(source: Path, folder: Path) -> tuple[str, Path]:
    """Return the version and the archive that flit builds in `folder`."""
    from flit_core.sdist import SdistBuilder

    builder: Any = SdistBuilder
    try:
        # `buildapi.build_sdist` does these two calls in the current folder, which other threads share.
        project = builder.from_ini_path(source / "pyproject.toml")
        return str(project.metadata.version), project.build(folder)
    except Exception as error:  # flit raises Exception itself, and whatever the import of a module without version does
        raise ConfigError(f"the trainer does not build: {error}", source=str(source / "pyproject.toml")) from error


def _compile_all(source: Path, sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.name.endswith(".py") else None
            if content is not None:
                _compile(source / member.name.partition("/")[2], content.read())


def _compile(path: Path, code: bytes) -> None:
    try:
        compile(code, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        text = f": {error.text.strip()}" if error.text else ""
        raise ConfigError(f"not Python: {error.msg}{text}", source=f"{path}:{error.lineno or 1}") from error
    except ValueError as error:
        raise ConfigError(f"not Python: {error}", source=f"{path}:1") from error


def _packed_again(sdist: Path) -> bytes:
    packed = io.BytesIO()
    with (
        tarfile.open(sdist) as archive,
        gzip.GzipFile("", "wb", fileobj=packed, mtime=MODIFIED) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        for member in archive:
            member.mtime = MODIFIED
            member.pax_headers = {}  # they hold the time again
            target.addfile(member, archive.extractfile(member) if member.isreg() else None)
    return packed.getvalue()


def _foreign(uri: str) -> IntegrityError:
    return IntegrityError(
        f"{uri} holds other bytes than its name says; it is left alone: delete it, if it is not needed"
    )
