"""A dataset's file says where its text lies, for every data date."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from trainops.config.dataset import Dataset, load_dataset
from trainops.errors import ConfigError
from trainops.settings import project_root

Change = Callable[..., Path]
DAY = date(2026, 3, 29)


def dataset(path: str) -> Dataset:
    return Dataset(name="d", description="text", path=path, min_documents=1)


@pytest.mark.parametrize(
    ("path", "resolved"),
    [
        ("/data/{data_date}/x", "/data/2026-03-29/x"),
        ("{python_stdlib}", sysconfig.get_path("stdlib")),
        ("data/x", str(project_root() / "data/x")),
        ("gs://bucket/{data_date}", "gs://bucket/2026-03-29"),
    ],
)
def test_the_path_is_filled_in(path: str, resolved: str) -> None:
    assert dataset(path).resolved_path(DAY) == resolved


def test_the_standard_library_is_a_dataset(configs: Path) -> None:
    loaded = load_dataset("stdlib")
    assert loaded.name == "stdlib"
    assert (Path(loaded.resolved_path(DAY)) / "json" / "decoder.py").is_file()


@pytest.mark.parametrize(
    ("changes", "key", "value", "nearest"),
    [
        ({"path": "/data/{data_dat}"}, "path", "data_dat", "data_date"),
        ({"path": "/data/{}"}, "path", "", None),
        ({"path": "/data/{data_date"}, "path", "/data/{data_date", None),
        ({"include": []}, "include", [], None),
        ({"include": ["/etc/*"]}, "include", "/etc/*", None),
        ({"exclude": ["../*"]}, "exclude", "../*", None),
        ({"include": "*.py"}, "include", "*.py", None),
        ({"min_documents": 0}, "min_documents", 0, None),
        ({"partitions": "all"}, "", "{python_stdlib}", None),
        ({"path": "/d/{data_date}", "partitions": "window"}, "", "window", None),
        ({"window_days": 7}, "", 7, None),
        ({"on_broken_row": "skip"}, "", 0, None),
        ({"max_broken_rows": 3}, "", 3, None),
        ({"columns": {"text": "str"}}, "columns.text", "str", "string"),
        ({"format": "json"}, "format", "json", "jsonl"),
        ({"threads": 0}, "threads", 0, None),
        ({"pairs_from": "docstring"}, "pairs_from", "docstring", "docstrings"),
        ({"inclued": ["*"]}, "inclued", "inclued", "include"),
        ({"name": "other"}, "name", "other", None),
    ],
)
def test_a_wrong_dataset_is_refused(
    change: Change, changes: dict[str, Any], key: str, value: object, nearest: str | None
) -> None:
    path = change("datasets/stdlib.yaml", changes)
    with pytest.raises(ConfigError) as caught:
        load_dataset("stdlib")
    error = caught.value
    assert (error.source, error.key, error.value, error.nearest) == (str(path), key, value, nearest)


def test_a_dataset_that_is_missing_is_told_where_it_was_named(configs: Path) -> None:
    with pytest.raises(ConfigError, match="no such dataset") as caught:
        load_dataset("stdlibb", source="e.yaml", key="dataset")
    error = caught.value
    assert (error.source, error.key, error.value, error.nearest) == ("e.yaml", "dataset", "stdlibb", "stdlib")
