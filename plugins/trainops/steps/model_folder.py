"""Is a folder a whole Hugging Face model? Looked at without torch: configuration, weights, tokenizer.

Of weights only the header is read: safetensors begin with eight bytes of length and a JSON header that says where every
tensor ends, so a file that was cut short is noticed. https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import struct
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainops.errors import IntegrityError
from trainops.gcp.storage import ObjectInfo, Storage

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")
"""Any one of these is a tokenizer that transformers can load."""

LONGEST_HEADER = 100_000_000
"""Bytes; the format's own limit."""


def list_model(storage: Storage, folder: str) -> dict[str, ObjectInfo]:
    """Return the objects of a model folder by their names inside it."""
    prefix = f"{folder}/"
    return {info.uri.removeprefix(prefix): info for info in storage.list(prefix)}


def model_problems(storage: Storage, objects: Mapping[str, ObjectInfo]) -> list[str]:
    """Say what keeps the folder from being a whole model; nothing when it is one."""
    if not objects:
        return ["the model folder is empty"]
    problems = _config_problems(storage, objects)
    problems += _weights_problems(storage, objects)
    if not any(name in objects for name in TOKENIZERS):
        problems.append(f"the tokenizer is missing (one of {', '.join(TOKENIZERS)})")
    return problems


def _config_problems(storage: Storage, objects: Mapping[str, ObjectInfo]) -> list[str]:
    if CONFIG not in objects:
        return [f"{CONFIG} is missing"]
    config, problem = _read_object(storage, objects[CONFIG].uri)
    if problem:
        return [problem]
    return [] if config.get("model_type") else [f"{CONFIG} has no model_type"]


def _weights_problems(storage: Storage, objects: Mapping[str, ObjectInfo]) -> list[str]:
    if WEIGHTS in objects:
        return _file_problems(storage, objects, [WEIGHTS])
    if WEIGHTS_INDEX not in objects:
        return [f"{WEIGHTS} is missing"]
    index, problem = _read_object(storage, objects[WEIGHTS_INDEX].uri)
    if problem:
        return [problem]
    shards = sorted(set(index.get("weight_map", {}).values()))
    return _file_problems(storage, objects, shards) if shards else [f"{WEIGHTS_INDEX} names no weights"]


def _file_problems(storage: Storage, objects: Mapping[str, ObjectInfo], names: Sequence[str]) -> list[str]:
    problems = [f"{name} is missing" for name in names if name not in objects]
    for name in names:
        if name not in objects:
            continue
        problem = _weights_problem(storage, objects[name])
        if problem:
            problems.append(f"{name}: {problem}")
    return problems


def _weights_problem(storage: Storage, info: ObjectInfo) -> str:
    with tempfile.TemporaryDirectory(prefix="trainops-") as folder:
        path = Path(folder) / "weights"
        storage.download_file(info.uri, path)
        return safetensors_problem(path)


def safetensors_problem(path: Path) -> str:
    """Say what is wrong with the file's header or length; an empty text when nothing is."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        if len(start) < 8:
            return f"{size} bytes are too few for safetensors"
        length = struct.unpack("<Q", start)[0]
        if length > min(size - 8, LONGEST_HEADER):
            return f"the header claims {length} bytes, the file has {size}"
        text = file.read(length)
    try:
        ends = [entry["data_offsets"][1] for name, entry in json.loads(text).items() if name != "__metadata__"]
        expected = 8 + length + max(ends)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return "the header is not that of safetensors, or names no tensor"
    return "" if expected == size else f"the header promises {expected} bytes, the file has {size}"


def _read_object(storage: Storage, uri: str) -> tuple[dict[str, Any], str]:
    """Return a JSON object and an empty text, or nothing and what is wrong."""
    name = uri.rpartition("/")[2]
    try:
        document = storage.read_json(uri)
    except IntegrityError as error:
        return {}, str(error)
    if document is None:
        return {}, f"{name} is missing"
    return (document.value, "") if isinstance(document.value, dict) else ({}, f"{name} is not a JSON object")
