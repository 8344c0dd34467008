"""Staging: a dataset's documents become JSONL shards in the work bucket, named by their content.

The documents are read twice. The first reading packs them without keeping anything: it yields the manifest, and with
it the name of the folder. Where that folder is whole nothing is moved; else the second reading packs and uploads, each
shard only if it is the one that the manifest promises, the manifest last.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from trainops import naming
from trainops.config.dataset import Dataset
from trainops.errors import ConfigError, IntegrityError, TrainopsError, WriteConflict
from trainops.gcp.storage import Storage, crc32c
from trainops.steps.corpus import (
    Counts,
    Form,
    SourceDocument,
    SourceFile,
    config_source,
    find_files,
    form_of,
    read_documents,
)

__all__ = ["Progress", "SourceFile", "Staged", "find_files", "stage_dataset"]

Progress = Callable[[str], None]
"""Takes a line that tells a person how far a step is."""

SCHEMA = 1
SHARD_BYTES = 4 * 1024 * 1024
"""A shard ends with the document before this size; one larger document is a shard of its own."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Staged:
    """A dataset in the work bucket; `moved` is False when it was there already."""

    uri: str
    sha16: str
    moved: bool
    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Shard:
    name: str
    data: bytes
    documents: int

    def entry(self) -> dict[str, Any]:
        return {"name": self.name, "bytes": len(self.data), "crc32c": crc32c(self.data), "documents": self.documents}


def stage_dataset(
    storage: Storage,
    dataset: Dataset,
    data_date: date,
    work: str,
    *,
    documents: str | None = None,
    progress: Progress = _log.info,
) -> Staged:
    """Put the documents of a date into the work bucket, unless the same content is there.

    :param work: URI of the work bucket.
    :param documents: what the run reads, its `tokenizer.documents`: pairs, else text.
    :raises ConfigError: the dataset is missing, empty, unreadable, holds something else than `documents`, or has fewer
        documents than `min_documents`.
    :raises IntegrityError: other content lies under this content's name.
    """
    files = find_files(dataset, data_date, storage)
    form = form_of(dataset, files, documents)
    manifest = _manifest(storage, dataset, data_date, files, form)
    _require_enough(dataset, manifest)
    for line in _told(dataset, manifest):
        progress(line)
    sha16 = manifest["sha16"]
    uri = naming.dataset_folder(work, dataset.name, sha16)
    stored = _stored_manifest(storage, uri, manifest)
    if stored is not None and not _absent(storage, uri, manifest):
        progress(f"already staged, nothing moved: {uri}")
        return Staged(uri, sha16, False, stored)
    _upload(storage, files, form, uri, manifest, progress)
    return Staged(uri, sha16, True, stored or manifest)


def _manifest(
    storage: Storage, dataset: Dataset, data_date: date, files: list[SourceFile], form: Form
) -> dict[str, Any]:
    counts = Counts()
    digest = hashlib.sha256(f"trainops dataset, schema {SCHEMA}\n".encode())
    shards = [shard.entry() for shard in _packed(_digested(read_documents(files, counts, storage, form), digest))]
    return {
        "schema": SCHEMA,
        "dataset": dataset.name,
        "sha16": digest.hexdigest()[:16],
        "files": counts.files,
        "documents": sum(shard["documents"] for shard in shards),
        "bytes": sum(shard["bytes"] for shard in shards),
        "empty": counts.empty,
        "bad_utf8": counts.bad_utf8,
        "duplicates": counts.duplicates,
        "data_date": f"{data_date:%Y-%m-%d}",
        "shards": shards,
    }


def _digested(documents: Iterator[SourceDocument], digest: Any) -> Iterator[bytes]:
    for line in _json_lines(documents):
        digest.update(hashlib.sha256(line).digest())
        yield line


def _json_lines(documents: Iterator[SourceDocument]) -> Iterator[bytes]:
    for document in documents:
        value = {"id": document.id, "source": document.source, "text": document.text}
        yield json.dumps(value, ensure_ascii=False).encode() + b"\n"


def _packed(lines: Iterator[bytes]) -> Iterator[_Shard]:
    """Cut lines into shards; one shard is in memory at a time."""
    held: list[bytes] = []
    size = number = 0
    for line in lines:
        if held and size + len(line) > SHARD_BYTES:
            yield _Shard(f"shard-{number:05}.jsonl", b"".join(held), len(held))
            held, size, number = [], 0, number + 1
        held.append(line)
        size += len(line)
    if held:
        yield _Shard(f"shard-{number:05}.jsonl", b"".join(held), len(held))


def _require_enough(dataset: Dataset, manifest: dict[str, Any]) -> None:
    if manifest["documents"] >= max(dataset.min_documents, 1):
        return
    raise ConfigError(
        f"{_totals(manifest)}; passed over: {_passed_over(manifest) or 'none'}",
        source=config_source(dataset),
        key="min_documents",
        value=dataset.min_documents,
        next_step="add data, correct `include`, or ask for fewer",
    )


def _told(dataset: Dataset, manifest: dict[str, Any]) -> Iterator[str]:
    size = f"{manifest['bytes'] / 1e6:.1f} MB in {len(manifest['shards'])} shards, sha16 {manifest['sha16']}"
    yield f"dataset {dataset.name} of {manifest['data_date']}: {_totals(manifest)}, {size}"
    if passed_over := _passed_over(manifest):
        yield f"passed over: {passed_over}"


def _totals(manifest: dict[str, Any]) -> str:
    return f"{manifest['documents']} documents in {manifest['files']} files"


def _passed_over(manifest: dict[str, Any]) -> str:
    names = {"empty": "empty", "bad_utf8": "not UTF-8", "duplicates": "duplicates"}
    return ", ".join(f"{manifest[key]} {name}" for key, name in names.items() if manifest[key])


def _stored_manifest(storage: Storage, uri: str, manifest: dict[str, Any]) -> dict[str, Any] | None:
    """Return the manifest in the folder; what it says of the content must be what we would say."""
    stored = storage.read_json(f"{uri}/manifest.json")
    if stored is None:
        return None
    value = stored.value
    if not isinstance(value, dict) or any(value.get(key) != manifest[key] for key in ("schema", "sha16", "shards")):
        raise IntegrityError(f"{uri}/manifest.json describes other content than its folder's name; it is left alone")
    return value


def _absent(storage: Storage, uri: str, manifest: dict[str, Any]) -> list[str]:
    """Return the names of shards that are not in the folder: somebody may have deleted some."""
    found = {item.uri.removeprefix(f"{uri}/"): item for item in storage.list(f"{uri}/shard-")}
    for shard in manifest["shards"]:
        item = found.get(shard["name"])
        if item is not None and (item.size, item.crc32c) != (shard["bytes"], shard["crc32c"]):
            raise IntegrityError(f"{item.uri} is not the shard that its manifest names; it is left alone")
    return [shard["name"] for shard in manifest["shards"] if shard["name"] not in found]


def _upload(
    storage: Storage, files: list[SourceFile], form: Form, uri: str, manifest: dict[str, Any], progress: Progress
) -> None:
    absent = set(_absent(storage, uri, manifest))
    promised = {shard["name"]: shard for shard in manifest["shards"]}
    for number, shard in enumerate(_packed(_json_lines(read_documents(files, Counts(), storage, form))), 1):
        if shard.entry() != promised.pop(shard.name, None):
            raise _changed(manifest)
        if shard.name in absent:
            storage.write_bytes(f"{uri}/{shard.name}", shard.data, generation=0, content_type="application/jsonl")
            progress(f"staged shard {number} of {len(manifest['shards'])}: {uri}/{shard.name}")
    if promised:
        raise _changed(manifest)
    try:
        storage.write_json(f"{uri}/manifest.json", manifest, generation=0)
    except WriteConflict:
        # The same content of another date: its manifest differs in the date alone.
        if _stored_manifest(storage, uri, manifest) is None:
            raise


def _changed(manifest: dict[str, Any]) -> TrainopsError:
    return TrainopsError(
        f"the files of dataset {manifest['dataset']} changed while they were staged; run the task again"
    )
