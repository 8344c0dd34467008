"""Rows are the same whatever the file is packed in."""

import gzip
import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from trainops.config.dataset import Dataset
from trainops.errors import ConfigError, TrainopsError
from trainops.steps.staging import find_files
from trainops.steps.staging.local_folder import LocalFolder
from trainops.steps.staging.rows import Row, read_rows

DAY = date(2026, 11, 29)
TEXTS = ["one", 'zw\u00f6lf\nlines, "quoted"', "", "three" * 50_000]


def rows_of(folder: Path, **changes: Any) -> list[Row]:
    dataset = Dataset.model_validate({"name": "d", "description": "D.", "path": str(folder), **changes})
    source = LocalFolder()
    return [row for file in find_files(dataset, DAY) for row in read_rows(dataset, source, source.fingerprinted(file))]


def packed(data: bytes, end: str) -> bytes:
    if end == ".gz":
        return gzip.compress(data)
    return bytes(pyarrow.compress(data, "zstd", asbytes=True)) if end == ".zst" else data


def csv_of(texts: list[str]) -> bytes:
    quoted = ['"' + text.replace('"', '""') + '"' for text in texts]
    return ("number,text\r\n" + "".join(f"{n},{text}\r\n" for n, text in enumerate(quoted))).encode()


@pytest.mark.parametrize("end", ["", ".gz", ".zst"])
@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_rows_of_lines_come_out_of_every_packing(tmp_path: Path, kind: str, end: str) -> None:
    lines = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS).encode()
    (tmp_path / f"x.{kind}{end}").write_bytes(packed(lines if kind == "jsonl" else csv_of(TEXTS), end))
    rows = rows_of(tmp_path)
    assert [row.value["text"] for row in rows] == TEXTS
    # A text with a line's end in it takes two lines of CSV.
    numbers = [1, 2, 3, 4] if kind == "jsonl" else [2, 3, 5, 6]
    assert [row.where for row in rows] == [f"x.{kind}{end}:{number}" for number in numbers]


@pytest.mark.parametrize("end", ["", ".gz", ".zst"])
def test_a_text_comes_out_of_every_packing(tmp_path: Path, end: str) -> None:
    data = "z\u00f6\n".encode() * 100_000
    (tmp_path / f"x.txt{end}").write_bytes(packed(data, end))
    assert rows_of(tmp_path) == [Row(f"x.txt{end}", data)]


def test_rows_of_parquet_are_numbered_and_only_needed_columns_are_read(tmp_path: Path) -> None:
    table = pyarrow.table({"text": TEXTS * 200, "score": [0.5] * 800, "vector": [[1.0]] * 800})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=300)
    rows = rows_of(tmp_path, columns={"score": "number"})
    assert [row.value["text"] for row in rows] == TEXTS * 200
    assert set(rows[0].value) == {"text", "score"}
    assert [row.where for row in rows] == [f"x.parquet:{number}" for number in range(1, 801)]


def test_the_format_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text('{"text": "a"}\n')
    assert [row.value for row in rows_of(tmp_path, format="jsonl")] == [{"text": "a"}]
    assert [row.value for row in rows_of(tmp_path, format="text")] == [b'{"text": "a"}\n']


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("x.jsonl.zst", b"plain", "not a whole Zstandard file"),
        ("x.parquet", b"plain", "not a whole Parquet file"),
        ("x.parquet.gz", b"plain", "packed inside, not around"),
        ("x.csv", b'text\n"open', "not CSV"),
    ],
)
def test_what_is_not_what_its_name_says_is_told(tmp_path: Path, name: str, data: bytes, problem: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ConfigError, match=problem) as caught:
        rows_of(tmp_path)
    assert name in caught.value.source


def test_a_zstandard_file_that_is_cut_short_is_told(tmp_path: Path) -> None:
    data = packed(b"".join(json.dumps({"text": str(n)}).encode() + b"\n" for n in range(10_000)), ".zst")
    (tmp_path / "x.jsonl.zst").write_bytes(data[:-100])
    with pytest.raises(ConfigError, match="not a whole Zstandard file"):
        rows_of(tmp_path)


def test_a_csv_row_with_other_columns_or_bytes_is_told_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"id,text\n1,a\n2\n\n3,\xff\n4,b,c\n")
    rows = rows_of(tmp_path)
    assert [(row.where, row.error is not None) for row in rows] == [
        ("x.csv:2", False), ("x.csv:3", True), ("x.csv:5", False), ("x.csv:6", True)
    ]  # fmt: skip


def test_a_line_that_is_too_long_is_passed_over_without_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b'{"text": "a"}\n' + b"x" * 3_000_000 + b'\n{"text": "b"}\r\n')
    rows = rows_of(tmp_path, max_row_bytes=13)
    assert [row.error is not None for row in rows] == [False, True, False]
    assert rows[1].where == "x.jsonl:2"


def test_a_file_that_is_not_the_one_that_was_found_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("before")
    dataset = Dataset(name="d", description="D.", path=str(tmp_path))
    source = LocalFolder()
    file = source.fingerprinted(find_files(dataset, DAY)[0])
    path.write_text("after!")
    with pytest.raises(TrainopsError, match="changed while it was staged"):
        list(read_rows(dataset, source, file))
