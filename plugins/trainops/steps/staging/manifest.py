"""The manifest of a staged dataset: its parts in order, and what of them is left out as seen before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from trainops.config.dataset import Dataset
from trainops.errors import ConfigError
from trainops.steps.staging.documents import Counts, require_few
from trainops.steps.staging.find import config_source
from trainops.steps.staging.parts import GroupRead, Part

SCHEMA = 2
SOURCES = "sources.jsonl"
"""Object beside the manifest: the files that were read, one a line."""


def compose(dataset: Dataset, groups: Iterable[GroupRead]) -> dict[str, Any]:
    """Return the manifest of what the groups gave, in their order.

    A document is in memory as a number: about 80 bytes for each one, so that ten million take 0.8 GB.
    """
    counts, duplicates = Counts(), 0
    shards: list[dict[str, Any]] = []
    seen: set[int] = set()
    for group in groups:
        counts.add(group.counts)
        duplicates += group.duplicates
        for part in group.parts:
            again = list(_seen_before(part, seen))
            duplicates += len(again)
            shards.append(_shard(part, again if dataset.duplicates == "drop" else []))
    shards = [shard for shard in shards if shard["documents"]]
    return {
        "schema": SCHEMA,
        "dataset": dataset.name,
        "sha16": _sha16(shards),
        "documents": sum(shard["documents"] for shard in shards),
        "bytes": sum(shard["bytes"] for shard in shards),
        "duplicates": duplicates,
        "sources": SOURCES,
        "shards": shards,
        **counts.value(),
    }


def require_sound(dataset: Dataset, manifest: dict[str, Any]) -> None:
    """Raise ConfigError where too many rows are broken, or too few documents are left."""
    require_few(dataset, Counts(broken=manifest["broken"], places=manifest["places"]))
    if manifest["documents"] >= max(dataset.min_documents, 1):
        return
    raise ConfigError(
        f"{totals(manifest)}; passed over: {_passed_over(manifest) or 'none'}",
        source=config_source(dataset),
        key="min_documents",
        value=dataset.min_documents,
        next_step="add data, correct `include`, or ask for fewer",
    )


def told(manifest: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that tell a person what a dataset is."""
    size = f"{manifest['bytes'] / 1e6:.1f} MB in {len(manifest['shards'])} shards, sha16 {manifest['sha16']}"
    yield f"dataset {manifest['dataset']} of {manifest['data_date']}: {totals(manifest)}, {size}"
    if manifest["missing_days"]:
        yield f"days that are not there: {', '.join(manifest['missing_days'])}"
    if passed_over := _passed_over(manifest):
        yield f"passed over: {passed_over}"
    yield from (f"passed over: {place}" for place in manifest["places"])


def totals(manifest: dict[str, Any]) -> str:
    """Return how many documents and files there are, in words."""
    return f"{manifest['documents']} documents in {manifest['files']} files"


def _passed_over(manifest: dict[str, Any]) -> str:
    names = {"empty": "empty", "bad_utf8": "not UTF-8", "broken": "broken", "duplicates": "duplicates"}
    return ", ".join(f"{manifest[key]} {name}" for key, name in names.items() if manifest[key])


def _seen_before(part: Part, seen: set[int]) -> Iterator[int]:
    """Yield the places in the part of documents that were seen; all are then."""
    for place, number in enumerate(part.ids):
        if number in seen:
            yield place
        else:
            seen.add(number)


def _shard(part: Part, skip: list[int]) -> dict[str, Any]:
    shard = {
        "name": f"../parts/{part.name}",
        "bytes": part.bytes,
        "crc32c": part.crc32c,
        "documents": len(part.ids) - len(skip),
    }
    return shard | ({"skip": skip} if skip else {})


def _sha16(shards: list[dict[str, Any]]) -> str:
    """Name of the content: the names of the parts are hashes of theirs."""
    digest = hashlib.sha256(f"trainops dataset, schema {SCHEMA}\n".encode())
    for shard in shards:
        digest.update(json.dumps([shard["name"], shard.get("skip", [])]).encode())
    return digest.hexdigest()[:16]
