"""A TrainingInput that lies in a bucket, as JSON or YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainops.errors import ConfigError
from trainops.gcp.storage import Storage
from trainops.jobspec.reading.text import parse_fields


def stored_training_input(storage: Storage, uri: str) -> Mapping[str, Any]:
    """Return what the object holds.

    :raises ConfigError: no gs:// URI, no such object, neither JSON nor YAML, or no mapping.
    """
    key = "training_input_uri"
    if not uri.startswith("gs://"):
        raise ConfigError(
            "a TrainingInput is read from a bucket", key=key, value=uri, next_step="write gs://BUCKET/FILE.yaml"
        )
    blob = storage.read_bytes(uri)
    if blob is None:
        raise ConfigError("no such object", key=key, value=uri, next_step="upload it, or correct the URI")
    found = _parsed(blob.data, uri)
    if not isinstance(found, Mapping):
        raise ConfigError("TrainingInput is a mapping", source=uri, value=found, next_step="begin with scaleTier")
    return found


def _parsed(data: bytes, uri: str) -> Any:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8 at byte {error.start}", source=uri, next_step="save it as UTF-8") from error
    return parse_fields(text, uri)
