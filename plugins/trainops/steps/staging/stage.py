"""Staging: a dataset's documents become parts in the work bucket, and a manifest, written last, names them.

What is not there is read, what is there is not: the files' paths, sizes and CRC32Cs tell. A listing of a bucket has
them; local files are read for theirs.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import date
from typing import Any

from trainops import naming
from trainops.config.dataset import Dataset
from trainops.errors import IntegrityError, WriteConflict
from trainops.gcp.storage import Storage
from trainops.steps.staging.documents import Form, form_of
from trainops.steps.staging.find import find, source_of
from trainops.steps.staging.groups import Group, grouped, key_of
from trainops.steps.staging.manifest import SCHEMA, SOURCES, compose, require_sound, told
from trainops.steps.staging.parts import GroupRead, GroupReader, Shelf
from trainops.steps.staging.source import SourceFile

Progress = Callable[[str], None]
"""Takes a line that tells a person how far a step is."""

SECONDS_BETWEEN_LINES = 10
"""Least time between two lines of progress."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Staged:
    """A dataset in the work bucket; `moved` is False when it was there already."""

    uri: str
    sha16: str
    moved: bool
    manifest: dict[str, Any]


def stage_dataset(
    storage: Storage,
    dataset: Dataset,
    data_date: date,
    work: str,
    *,
    documents: str | None = None,
    progress: Progress = _log.info,
) -> Staged:
    """Put the documents of a date into the work bucket, as far as they are not there.

    :param work: URI of the work bucket.
    :param documents: what the run reads, its `tokenizer.documents`: pairs, else text.
    :raises ConfigError: the dataset is missing, empty, unreadable, holds something else than `documents`, has more
        broken rows than it allows, or fewer documents than `min_documents`.
    :raises IntegrityError: other content lies under this content's name.
    """
    found = find(dataset, data_date, storage)
    form = form_of(dataset, found.files, documents)
    stager = _Stager(storage, dataset, form, work, progress)
    groups = stager.groups(found.files)
    key = key_of(groups)
    shelf = Shelf(storage, work, dataset.name)
    shelf.look()
    day = {"data_date": f"{data_date:%Y-%m-%d}", "missing_days": [f"{day:%Y-%m-%d}" for day in found.missing]}
    if (staged := stager.staged_before(key, shelf, day)) is not None:
        return staged
    manifest = compose(dataset, stager.read(groups, shelf)) | day
    require_sound(dataset, manifest)
    return stager.publish(manifest, key, [file for group in groups for file in group.files], shelf)


@dataclass(frozen=True)
class _Stager:
    storage: Storage
    dataset: Dataset
    form: Form
    work: str
    progress: Progress

    def groups(self, files: list[SourceFile]) -> list[Group]:
        """Return the files in groups, each with its CRC32C."""
        source = source_of(self.dataset, self.storage)
        with ThreadPoolExecutor(self.dataset.threads) as pool:
            known = list(pool.map(source.fingerprinted, files))
        return grouped(known, self.dataset, self.form)

    def staged_before(self, key: str, shelf: Shelf, day: dict[str, Any]) -> Staged | None:
        """Return what these groups gave before, where all of it is still there.

        :raises ConfigError: what they gave is not what the dataset asks for by now.
        """
        memo = self.storage.read_json(naming.dataset_group(self.work, self.dataset.name, key))
        if memo is None:
            return None
        uri = naming.dataset_folder(self.work, self.dataset.name, memo.value["sha16"])
        manifest = _stored_manifest(self.storage, uri, memo.value)
        if manifest is None or not all(_lies_there(shelf, shard) for shard in manifest["shards"]):
            return None
        # Other files may have given the same documents first: the counts are of these files.
        ours = manifest | memo.value | day
        require_sound(self.dataset, ours)
        for line in (*told(ours), f"already staged, nothing moved: {uri}"):
            self.progress(line)
        return Staged(uri, manifest["sha16"], False, manifest)

    def read(self, groups: list[Group], shelf: Shelf) -> list[GroupRead]:
        """Return what the groups give, in order; read are those of which not all is there."""
        found = self._read_before(groups, shelf)
        absent = [group for group in groups if group.key not in found]
        self._tell_work(absent, len(groups))
        stop = threading.Event()
        with ThreadPoolExecutor(self.dataset.threads) as readers, ThreadPoolExecutor(self.dataset.threads) as senders:
            source = source_of(self.dataset, self.storage)
            reader = GroupReader(self.dataset, self.form, source, shelf, senders, stop)
            tasks = {readers.submit(reader.read, group): group for group in absent}
            try:
                for task in self._with_progress(as_completed(tasks), len(absent)):
                    found[tasks[task].key] = task.result()
            except BaseException:
                stop.set()
                readers.shutdown(wait=True, cancel_futures=True)
                raise
        return [found[group.key] for group in groups]

    def _read_before(self, groups: list[Group], shelf: Shelf) -> dict[str, GroupRead]:
        names = {item.uri for item in self.storage.list(f"{naming.dataset_groups(self.work, self.dataset.name)}/")}
        uris = {group.key: naming.dataset_group(self.work, self.dataset.name, group.key) for group in groups}
        there = [key for key, uri in uris.items() if uri in names]
        with ThreadPoolExecutor(self.dataset.threads) as pool:
            stored = pool.map(lambda key: self.storage.read_json(uris[key]), there)
            found = {key: GroupRead.of(one.value) for key, one in zip(there, stored, strict=True) if one is not None}
        return {
            key: one
            for key, one in found.items()
            if all(shelf.has(part.name, part.bytes, part.crc32c) for part in one.parts)
        }

    def _tell_work(self, absent: list[Group], groups: int) -> None:
        files, size = sum(len(group.files) for group in absent), sum(group.size for group in absent)
        self.progress(
            f"reading {files} files, {size / 1e6:.1f} MB, in {len(absent)} groups; {groups - len(absent)} groups are "
            "there already"
        )

    def _with_progress(self, tasks: Iterable[Any], groups: int) -> Iterable[Any]:
        told_at = time.monotonic()
        for done, task in enumerate(tasks, 1):
            yield task
            if time.monotonic() - told_at > SECONDS_BETWEEN_LINES:
                told_at = time.monotonic()
                self.progress(f"read {done} of {groups} groups")

    def publish(self, manifest: dict[str, Any], key: str, files: list[SourceFile], shelf: Shelf) -> Staged:
        """Write the list of files, the manifest, and last what leads from the files to it."""
        for line in told(manifest):
            self.progress(line)
        sha16 = manifest["sha16"]
        uri = naming.dataset_folder(self.work, self.dataset.name, sha16)
        stored = _stored_manifest(self.storage, uri, manifest)
        moved = stored is None or shelf.written > 0
        if stored is None:
            _write_once(self.storage, f"{uri}/{SOURCES}", _lines(files))
            try:
                self.storage.write_json(f"{uri}/manifest.json", manifest, generation=0)
            except WriteConflict:
                # The same content of another date, staged just now: its manifest differs in what is told of the files.
                stored = _stored_manifest(self.storage, uri, manifest)
                if stored is None:
                    raise
        memo = {name: value for name, value in manifest.items() if name != "shards"}
        self.storage.write_json(naming.dataset_group(self.work, self.dataset.name, key), memo, generation=None)
        self.progress(f"staged, {shelf.written} parts moved: {uri}")
        return Staged(uri, sha16, moved, stored or manifest)


def _stored_manifest(storage: Storage, uri: str, expected: dict[str, Any]) -> dict[str, Any] | None:
    """Return the manifest in the folder; what it says of the content must be what is expected."""
    stored = storage.read_json(f"{uri}/manifest.json")
    if stored is None:
        return None
    value = stored.value
    right = isinstance(value, dict) and value.get("schema") == SCHEMA and value.get("sha16") == expected["sha16"]
    if not right or expected.get("shards", value.get("shards")) != value.get("shards"):
        raise IntegrityError(f"{uri}/manifest.json describes other content than its folder's name; it is left alone")
    return dict(value)


def _lies_there(shelf: Shelf, shard: dict[str, Any]) -> bool:
    return shelf.has(shard["name"].rpartition("/")[2], shard["bytes"], shard["crc32c"])


def _lines(files: list[SourceFile]) -> bytes:
    values = (
        {"source": file.source, "location": file.location, "size": file.size, "crc32c": file.crc32c}
        | ({} if file.generation is None else {"generation": file.generation})
        for file in files
    )
    return b"".join(json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values)


def _write_once(storage: Storage, uri: str, data: bytes) -> None:
    try:
        storage.write_bytes(uri, data, generation=0, content_type="application/jsonl")
    except WriteConflict:
        return  # the same content from another place, or by a run that did not come to its manifest
