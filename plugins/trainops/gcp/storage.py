"""Objects in Google Cloud Storage, with the care that compare-and-swap needs.

Every URI is `gs://bucket/name`. A generation is the number of one version of an object; writing with `generation=0`
means "only if it does not exist", with None "whatever is there".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainops.errors import IntegrityError, NotFoundError, RequestRefused, ServiceError, TransientError, WriteConflict
from trainops.gcp.checksums import crc32c as crc32c
from trainops.gcp.checksums import file_crc32c
from trainops.gcp.credentials import credentials_for
from trainops.gcp.faults import connection_error, reply_code, reply_text, service_error, service_errors
from trainops.gcp.session import keep_connections

if TYPE_CHECKING:
    from trainops.settings import Settings

TIMEOUT = (10, 120)
"""Seconds to connect, and between two bytes of a reply."""

RETRY_SECONDS = 30
"""How long the client asks again after 429, 5xx and lost connections before it gives up."""


@dataclass(frozen=True, slots=True)
class Blob:
    """The bytes of an object at one generation. When they were written, `Storage.info` tells: a download does so only
    to the second."""

    data: bytes
    generation: int


@dataclass(frozen=True, slots=True)
class Document:
    """The JSON value of an object at one generation."""

    value: Any
    generation: int


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What a listing tells about an object: `size` in bytes, `crc32c` in base64, `updated` in the server's time."""

    uri: str
    size: int
    crc32c: str
    generation: int
    updated: datetime


class Storage:
    """A client for objects; safe to share between threads."""

    def __init__(self, client: Any) -> None:
        self._client = client

    @classmethod
    def connect(cls, settings: Settings, credentials: Any = None) -> Storage:
        """Return a client for the endpoint of the settings.

        :param credentials: of the Airflow connection; without them the application default ones are used.
        :raises AccessError: no credentials were found.
        """
        from google.cloud import storage

        endpoint = settings.endpoints.storage
        factory: Any = storage.Client
        client = factory(
            project=settings.project,
            credentials=credentials_for(settings, credentials),
            client_options={"api_endpoint": endpoint} if endpoint else None,
        )
        keep_connections(client._http)
        # It only names trace spans, and costs a request of the bucket in a new thread after every object not found.
        client._bucket_metadata_cache = None
        return cls(client)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def read_bytes(self, uri: str) -> Blob | None:
        """Return an object's bytes with the generation they belong to, or None where there is none.

        One request: the reply's headers tell the generation, and the checksum, which is verified.
        https://docs.cloud.google.com/storage/docs/xml-api/reference-headers

        :raises IntegrityError: the reply tells no generation. Also raises the ServiceError family.
        """
        blob = self._blob(uri)
        try:
            with _errors(f"reading {uri}"):
                data: bytes = blob.download_as_bytes(checksum="crc32c", timeout=TIMEOUT, retry=_retry())
        except NotFoundError:
            return None
        if blob.generation is None:
            raise IntegrityError(f"reading {uri}: the reply does not tell which generation it is of")
        return Blob(data, int(blob.generation))

    def read_tail(self, uri: str, size: int) -> bytes | None:
        """Return the last `size` bytes of an object, or all of a smaller one; None where there is no object.

        One request, and no checksum: that is of the whole object. Raises the ServiceError family.
        """
        try:
            with _errors(f"reading {uri}"):
                data: bytes = self._blob(uri).download_as_bytes(
                    start=-size, checksum=None, raw_download=True, timeout=TIMEOUT, retry=_retry()
                )
        except NotFoundError:
            return None
        except RequestRefused as error:
            if error.status == 416:  # an empty object has no last bytes
                return b""
            raise
        return data

    def read_range(self, uri: str, start: int, size: int, *, generation: int | None) -> bytes | None:
        """Return `size` bytes of a version of an object from `start` on; None where it is no more.

        No checksum: that is of the whole object. Raises the ServiceError family.
        """
        try:
            with _errors(f"reading {uri}"):
                data: bytes = self._blob(uri).download_as_bytes(
                    start=start, end=start + size - 1, checksum=None, raw_download=True,
                    if_generation_match=generation, timeout=TIMEOUT, retry=_retry(),
                )  # fmt: skip
        except (NotFoundError, WriteConflict):
            return None
        return data

    def read_json(self, uri: str) -> Document | None:
        """Return an object's JSON value with its generation, or None where there is no object.

        :raises IntegrityError: the object is not JSON.
        """
        blob = self.read_bytes(uri)
        if blob is None:
            return None
        try:
            return Document(json.loads(blob.data), blob.generation)
        except ValueError as error:
            raise IntegrityError(f"{uri} (generation {blob.generation}) is not JSON: {error}") from error

    def write_bytes(
        self, uri: str, data: bytes, *, generation: int | None, content_type: str = "application/octet-stream"
    ) -> int:
        """Write an object and return its new generation.

        The client asks again after a 503, also when the first write was stored; the second is then answered 412.
        So a 412 is believed only after reading back: where the stored bytes are ours, the write did happen.

        :param generation: the generation that must be there now; 0: none; None: any.
        :raises WriteConflict: another write came first.
        """
        try:
            with _errors(f"writing {uri}"):
                blob = self._blob(uri)
                blob.upload_from_string(data, content_type=content_type, **_write_options(generation))
        except WriteConflict:
            stored = self.read_bytes(uri)
            if stored is not None and stored.data == data and stored.generation != generation:
                return stored.generation
            raise
        return int(blob.generation)

    def write_json(self, uri: str, value: Any, *, generation: int | None) -> int:
        """Write a value as JSON, with sorted keys, and return the new generation; see `write_bytes`."""
        text = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        return self.write_bytes(uri, text.encode(), generation=generation, content_type="application/json")

    def upload_file(self, path: Path, uri: str, *, generation: int | None) -> int:
        """Upload a file and return the new generation; an identical object counts as written, as in `write_bytes`.

        With `generation=0` an object that is there is compared before anything is sent.
        """
        if generation == 0 and self.exists(uri):
            return self._same_or_conflict(uri, *file_crc32c(path))
        try:
            with _errors(f"writing {uri}"):
                blob = self._blob(uri)
                blob.upload_from_filename(str(path), **_write_options(generation))
        except WriteConflict:
            return self._same_or_conflict(uri, *file_crc32c(path))
        return int(blob.generation)

    def download_file(self, uri: str, path: Path) -> int:
        """Download an object to `path`, whole or not at all, and return its generation.

        :raises NotFoundError: there is no such object.
        """
        partial = path.with_name(f"{path.name}.partial")
        with _errors(f"reading {uri}"):
            blob = self._blob(uri)
            blob.download_to_filename(str(partial), checksum="crc32c", timeout=TIMEOUT, retry=_retry())
        partial.replace(path)
        return int(blob.generation)

    def copy(self, source: str, target: str, *, generation: int | None = 0) -> int:
        """Copy an object inside Google and return the target's generation; an identical target counts as copied.

        :raises NotFoundError: there is no source.
        :raises WriteConflict: the target is another object than the copy would be.
        """
        original = self.info(source)
        if original is None:
            raise NotFoundError(f"copying {source}: there is no such object", status=404)
        if generation == 0 and self.exists(target):
            return self._same_or_conflict(target, original.size, original.crc32c)
        try:
            with _errors(f"copying {source} to {target}"):
                return self._rewrite(original, target, generation)
        except WriteConflict:
            return self._same_or_conflict(target, original.size, original.crc32c)

    def _rewrite(self, original: ObjectInfo, target: str, generation: int | None) -> int:
        blob, token = self._blob(target), None
        source = self._blob(original.uri, original.generation)
        while True:
            token, _, _ = blob.rewrite(
                source, token=token, if_generation_match=generation, timeout=TIMEOUT, retry=_retry()
            )
            if token is None:
                return int(blob.generation)

    def _same_or_conflict(self, uri: str, size: int, crc32c: str) -> int:
        stored = self.info(uri)
        if stored is not None and (stored.size, stored.crc32c) == (size, crc32c):
            return stored.generation
        raise WriteConflict(f"writing {uri}: another object is there", status=412)

    def exists(self, uri: str) -> bool:
        """Return whether there is an object."""
        return self.info(uri) is not None

    def info(self, uri: str) -> ObjectInfo | None:
        """Return size, checksum, generation and time of an object, or None where there is none."""
        bucket, name = split_uri(uri)
        with _errors(f"looking at {uri}"):
            blob = self._client.bucket(bucket).get_blob(name, timeout=TIMEOUT, retry=_retry())
        return None if blob is None else _object_info(blob)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose URI begins with `prefix`, in the order of their names.

        :raises NotFoundError: there is no such bucket.
        """
        bucket, name = split_uri(prefix)
        with _errors(f"listing {prefix}"):
            for blob in self._client.list_blobs(bucket, prefix=name, timeout=TIMEOUT, retry=_retry()):
                yield _object_info(blob)

    def folders(self, folder: str) -> tuple[str, ...]:
        """Return the names of the folders directly in `folder`, sorted."""
        bucket, name = split_uri(folder.rstrip("/") + "/")
        with _errors(f"listing {folder}"):
            found = self._client.list_blobs(bucket, prefix=name, delimiter="/", timeout=TIMEOUT, retry=_retry())
            for _ in found:  # the names of folders come with the pages of objects
                pass
        return tuple(sorted(prefix.removeprefix(name).rstrip("/") for prefix in found.prefixes))

    def delete(self, uri: str, *, generation: int | None = None) -> bool:
        """Delete an object, only at `generation` where one is given; return False where there was none."""
        try:
            with _errors(f"deleting {uri}"):
                self._blob(uri).delete(if_generation_match=generation, timeout=TIMEOUT, retry=_retry())
        except NotFoundError:
            return False
        return True

    def _blob(self, uri: str, generation: int | None = None) -> Any:
        bucket, name = split_uri(uri)
        return self._client.bucket(bucket).blob(name, generation=generation)


def split_uri(uri: str) -> tuple[str, str]:
    """Return bucket and name of `gs://bucket/name`.

    :raises RequestRefused: it is no such URI.
    """
    scheme, _, rest = uri.partition("://")
    bucket, _, name = rest.partition("/")
    if scheme != "gs" or not bucket:
        raise RequestRefused(f"{uri!r} is not a URI of the form gs://bucket/name")
    return bucket, name


def _object_info(blob: Any) -> ObjectInfo:
    uri = f"gs://{blob.bucket.name}/{blob.name}"
    return ObjectInfo(uri, int(blob.size), blob.crc32c, int(blob.generation), blob.updated)


def _write_options(generation: int | None) -> dict[str, Any]:
    return {"if_generation_match": generation, "checksum": "crc32c", "timeout": TIMEOUT, "retry": _retry()}


def _retry() -> Any:
    from google.cloud.storage.retry import DEFAULT_RETRY

    return DEFAULT_RETRY.with_timeout(RETRY_SECONDS)


def _errors(what: str) -> Any:
    return service_errors(what, _storage_error)


def _storage_error(error: BaseException, what: str) -> ServiceError | None:
    """Translate what the storage client raises."""
    from google.api_core import exceptions as api
    from google.cloud.storage import exceptions as media

    if isinstance(error, api.RetryError) and error.cause is not None:
        return _storage_error(error.cause, what) or connection_error(error.cause, what)
    if isinstance(error, media.DataCorruption):
        return TransientError(f"{what}: the checksum of what arrived is wrong: {error}")
    if isinstance(error, (api.GoogleAPICallError, media.InvalidResponse)):
        response = error.response
        status = int(response.status_code if response is not None else getattr(error, "code", 0) or 0)
        text = reply_text(response) if response is not None else str(error)
        code = reply_code(response) if response is not None else ""
        return service_error(status, f"{what}: {text} (HTTP {status})", code)
    return None
