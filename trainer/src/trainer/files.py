"""Objects in gs:// buckets and files on local paths, read and written alike."""

from __future__ import annotations

import base64
import json
import os
import shutil
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import google_crc32c
from google.api_core import exceptions as api
from google.auth import exceptions as auth
from google.auth.credentials import AnonymousCredentials
from requests import exceptions as http

from trainer.errors import StorageError, UserError


def crc32c(data: bytes) -> str:
    """Return the CRC-32C of `data` as Cloud Storage writes it: big-endian, base64."""
    return base64.b64encode(google_crc32c.value(data).to_bytes(4, "big")).decode()


def join(folder: str, *names: str) -> str:
    """Join a URI or path and names below it."""
    return "/".join([folder.rstrip("/"), *names])


def resolve(folder: str, name: str) -> str:
    """Return where `name` is, seen from a folder; `../` in front of it leads to the folder above."""
    folder = folder.rstrip("/")
    while name.startswith("../"):
        folder, name = folder.rpartition("/")[0], name.removeprefix("../")
    return join(folder, name)


class Files:
    """Reads and writes whole objects; a write is seen complete or not at all."""

    def read(self, uri: str) -> bytes | None:
        """Return the content, or None when there is no such object."""
        if not uri.startswith("gs://"):
            path = _path(uri)
            return path.read_bytes() if path.is_file() else None
        with _storage_errors(uri):
            try:
                return bytes(self._blob(uri).download_as_bytes(retry=_retry()))
            except api.NotFound:
                return None

    def read_json(self, uri: str) -> Any:
        """Return the parsed content, or None when there is no such object; raise UserError when it is no JSON."""
        data = self.read(uri)
        if data is None:
            return None
        try:
            return json.loads(data)
        except ValueError as error:
            raise UserError(f"{uri}: not JSON: {error}") from None

    def write(self, uri: str, data: bytes, *, only_new: bool = False) -> bool:
        """Write the content; with `only_new` leave an object that exists, and return False."""
        if not uri.startswith("gs://"):
            return _write_path(_path(uri), data, only_new=only_new)
        with _storage_errors(uri):
            try:
                generation = 0 if only_new else None
                self._blob(uri).upload_from_string(
                    data, content_type=_content_type(uri), if_generation_match=generation, retry=_retry()
                )
            except api.PreconditionFailed:
                return False
        return True

    def write_json(self, uri: str, value: object, *, only_new: bool = False) -> bool:
        """Write `value` as JSON; see `write`."""
        return self.write(uri, (json.dumps(value, indent=1) + "\n").encode(), only_new=only_new)

    def names(self, folder: str) -> list[str]:
        """Return the names directly in a folder, sorted; a folder that does not exist is empty."""
        if not folder.startswith("gs://"):
            path = _path(folder)
            return sorted(entry.name for entry in path.iterdir() if entry.is_file()) if path.is_dir() else []
        bucket, prefix = _split(folder.rstrip("/") + "/")
        with _storage_errors(folder):
            blobs = self._client.list_blobs(bucket, prefix=prefix, delimiter="/", retry=_retry())
            return sorted(blob.name.removeprefix(prefix) for blob in blobs)

    def delete(self, uri: str) -> None:
        """Delete the object; one that is gone already is fine."""
        if not uri.startswith("gs://"):
            _path(uri).unlink(missing_ok=True)
            return
        with _storage_errors(uri):
            try:
                self._blob(uri).delete(retry=_retry())
            except api.NotFound:
                return

    def below(self, folder: str) -> list[str]:
        """Return the names of everything below a folder, sorted, as paths from there."""
        if not folder.startswith("gs://"):
            path = _path(folder)
            # Names with a dot in front are of writes that are not done.
            found = (entry for entry in path.rglob("*") if entry.is_file() and not entry.name.startswith("."))
            return sorted(entry.relative_to(path).as_posix() for entry in found)
        bucket, prefix = _split(folder.rstrip("/") + "/")
        with _storage_errors(folder):
            return sorted(
                blob.name.removeprefix(prefix)
                for blob in self._client.list_blobs(bucket, prefix=prefix, retry=_retry())
            )

    def delete_folder(self, folder: str) -> None:
        """Delete everything below a folder."""
        if not folder.startswith("gs://"):
            shutil.rmtree(_path(folder), ignore_errors=True)
            return
        for name in self.below(folder):
            self.delete(join(folder, name))

    def upload_folder(self, folder: Path, uri: str) -> None:
        """Write every file directly in a local folder below `uri`."""
        for path in sorted(folder.iterdir()):
            self.write(join(uri, path.name), path.read_bytes())

    def download_folder(self, uri: str, folder: Path) -> list[str]:
        """Read every object directly below `uri` into a local folder, and return their names."""
        names = self.names(uri)
        for name in names:
            (folder / name).write_bytes(self.read(join(uri, name)) or b"")
        return names

    @cached_property
    def _client(self) -> Any:
        # Imported here: jobs on local paths do not need it. Its types are not declared, hence Any.
        from google.cloud import storage

        connect: Any = storage.Client
        anonymous: Any = AnonymousCredentials

        project = os.environ.get("CLOUD_ML_PROJECT_ID") or os.environ.get("GOOGLE_CLOUD_PROJECT")
        if os.environ.get("STORAGE_EMULATOR_HOST"):
            return connect(project=project or "emulator", credentials=anonymous())
        return connect(project=project)

    def _blob(self, uri: str) -> Any:
        bucket, name = _split(uri)
        return self._client.bucket(bucket).blob(name)


def _split(uri: str) -> tuple[str, str]:
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    if not bucket or not name:
        raise UserError(f"{uri}: expected gs://BUCKET/OBJECT")
    return bucket, name


def _path(uri: str) -> Path:
    scheme, found, rest = uri.partition("://")
    if found and scheme != "file":
        raise UserError(f"{uri}: cannot read {scheme}://; allowed: gs://, file:// and local paths")
    return Path(rest if found else uri)


def _write_path(path: Path, data: bytes, *, only_new: bool) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own beside the target: a rename within one folder is atomic, and two writers do not meet.
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with temporary.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    if not only_new:
        temporary.replace(path)
        return True
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink()
    return True


def _content_type(uri: str) -> str:
    return "application/json" if uri.endswith((".json", ".jsonl")) else "application/octet-stream"


def _retry() -> Any:
    from google.cloud.storage.retry import DEFAULT_RETRY

    # Every write is of a whole object, so sending it again is safe.
    return DEFAULT_RETRY.with_timeout(120)


@contextmanager
def _storage_errors(uri: str) -> Generator[None, None, None]:
    try:
        yield
    except (api.NotFound, api.Forbidden, api.Unauthorized, api.BadRequest) as error:
        raise StorageError(f"{uri}: {error}", refused=True) from error
    except auth.DefaultCredentialsError as error:
        raise StorageError(f"{uri}: no credentials: {error}", refused=True) from error
    except (api.GoogleAPIError, auth.GoogleAuthError, http.RequestException, ConnectionError) as error:
        raise StorageError(f"{uri}: {type(error).__name__}: {error}") from error
