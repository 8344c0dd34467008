"""The rows of a file: a text whole, a line of JSONL, a row of CSV or Parquet; plain, gzip or Zstandard."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from trainops.config.dataset import Dataset
from trainops.errors import ConfigError
from trainops.steps.staging.source import Source, SourceFile, Verified, changed

FORMATS = ("text", "jsonl", "csv", "parquet")
PACKED = (".gz", ".zst")
_ENDS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}
_BATCH = 256
"""Rows of Parquet that are in memory at a time."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a row holds: bytes of a text, or keys with values; `error` instead where it cannot be read.

    :param where: the file's relative path, with `:NUMBER` for a row of several: its first line, or of Parquet its
        number.
    """

    where: str
    value: Any = None
    error: ConfigError | None = None
    undecodable: bool = False
    """It is not UTF-8."""


def format_of(dataset: Dataset, source: str) -> str:
    """Return which of FORMATS a file is in."""
    if dataset.format != "auto":
        return dataset.format
    plain = _plain(source)
    return next((name for end, name in _ENDS.items() if plain.endswith(end)), "text")


def read_rows(dataset: Dataset, source: Source, file: SourceFile) -> Iterator[Row]:
    """Yield the rows of a file, in order; one row is in memory at a time, of Parquet some.

    :raises ConfigError: the file cannot be read at all.
    """
    kind = format_of(dataset, file.source)
    try:
        if kind == "parquet":
            with source.on_disk(file) as path:
                yield from _parquet(dataset, file, str(path))
            if source.fingerprinted(file) != file:
                raise changed(file)
        else:
            reader = {"text": _text, "jsonl": _jsonl, "csv": _csv}[kind]
            with source.open(file) as raw, _unpacked(file, raw) as stream:
                yield from reader(dataset, file, stream)
                raw.verify()
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ConfigError(f"not a whole gzip file: {error}", source=file.location) from error
    except OSError as error:
        packed = file.source.endswith(".zst")
        problem = f"not a whole Zstandard file: {error}" if packed else f"cannot be read: {error.strerror or error}"
        raise ConfigError(problem, source=file.location) from error


@contextmanager
def _unpacked(file: SourceFile, raw: Verified) -> Generator[BinaryIO]:
    if file.source.endswith(".gz"):
        with gzip.open(cast("BinaryIO", raw)) as unpacked:
            yield cast("BinaryIO", unpacked)
    elif file.source.endswith(".zst"):
        arrow = pyarrow(file)
        with arrow.CompressedInputStream(arrow.PythonFile(raw, mode="r"), "zstd") as unpacked:
            yield cast("BinaryIO", io.BufferedReader(cast("Any", _Raw(unpacked)), 1 << 20))
    else:
        yield cast("BinaryIO", raw)


class _Raw(io.RawIOBase):
    """A stream of pyarrow, as io.BufferedReader takes it: it has no lines of its own."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        """Read into the buffer."""
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _text(dataset: Dataset, file: SourceFile, stream: BinaryIO) -> Iterator[Row]:
    # Of a plain file no more than it has: the room for all that is asked for is taken beforehand.
    most = dataset.max_row_bytes if file.source.endswith(PACKED) else min(dataset.max_row_bytes, file.size)
    data = stream.read(most + 1)
    yield _too_long(dataset, file.source) if len(data) > dataset.max_row_bytes else Row(file.source, data)


def _jsonl(dataset: Dataset, file: SourceFile, stream: BinaryIO) -> Iterator[Row]:
    number = 0
    # The line's end is no part of its length.
    while line := stream.readline(dataset.max_row_bytes + 2):
        number += 1
        where = f"{file.source}:{number}"
        if len(line.rstrip(b"\r\n")) > dataset.max_row_bytes:
            while line and not line.endswith(b"\n"):
                line = stream.readline(1 << 20)
            yield _too_long(dataset, where)
        elif line.strip():
            yield _json_row(where, line)


def _json_row(where: str, line: bytes) -> Row:
    try:
        return Row(where, json.loads(line))
    except UnicodeDecodeError:
        return Row(where, undecodable=True)
    except (ValueError, RecursionError) as error:
        return Row(where, error=ConfigError(f"a line is not JSON: {error}", source=where))


def _csv(dataset: Dataset, file: SourceFile, stream: BinaryIO) -> Iterator[Row]:
    # Of the whole process, and only ever raised: rows are held to their own limit below.
    csv.field_size_limit(max(csv.field_size_limit(), dataset.max_row_bytes))
    # Bytes that are no UTF-8 become lone surrogates, which no text may hold: they are found where texts are looked at.
    lines = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
    reader = csv.reader(lines, strict=True)
    try:
        yield from _csv_rows(dataset, file, reader)
    except csv.Error as error:
        where = f"{file.source}:{reader.line_num}"
        raise ConfigError(f"not CSV: {error}", source=where, next_step="correct the quotes of the row") from error
    finally:
        lines.detach()


def _csv_rows(dataset: Dataset, file: SourceFile, reader: Any) -> Iterator[Row]:
    names = next(reader, None)
    if names is None:
        return
    line = reader.line_num + 1
    for values in reader:
        where, line = f"{file.source}:{line}", reader.line_num + 1
        if sum(map(len, values)) > dataset.max_row_bytes:
            yield _too_long(dataset, where)
        elif values and len(values) != len(names):
            problem = f"a row of {len(values)} values, and the first line names {len(names)} columns"
            yield Row(where, error=ConfigError(problem, source=where))
        elif values:
            yield Row(where, dict(zip(names, values, strict=True)))


def _parquet(dataset: Dataset, file: SourceFile, path: str) -> Iterator[Row]:
    arrow = pyarrow(file)
    from pyarrow.parquet import ParquetFile

    if file.source.endswith(PACKED):
        raise ConfigError("Parquet is packed inside, not around", source=file.location, next_step="unpack the file")
    try:
        with ParquetFile(path, memory_map=False) as table:
            number = 0
            wanted = _columns(dataset, table.schema_arrow.names)
            for batch in table.iter_batches(batch_size=_BATCH, columns=wanted, use_threads=False):
                for value in batch.to_pylist():
                    number += 1
                    where = f"{file.source}:{number}"
                    size = sum(len(item) for item in value.values() if isinstance(item, str))
                    yield _too_long(dataset, where) if size > dataset.max_row_bytes else Row(where, value)
    except arrow.ArrowInvalid as error:
        raise ConfigError(f"not a whole Parquet file: {error}", source=file.location) from error
    except UnicodeDecodeError as error:
        raise ConfigError("a column of strings is not UTF-8", source=file.location) from error


def _columns(dataset: Dataset, there: list[str]) -> list[str]:
    """Columns that are read, of those that are there; what misses is told by the first row."""
    used = {dataset.text_column, dataset.prompt_column, dataset.response_column, *dataset.columns}
    return [name for name in there if name in used]


def pyarrow(file: SourceFile) -> Any:
    """Return the package.

    :raises ConfigError: it is not installed.
    """
    try:
        import pyarrow as arrow
    except ImportError as error:
        raise ConfigError(
            "reading Parquet and Zstandard needs the package pyarrow",
            source=file.location,
            next_step="install pyarrow where tasks run (requirements.txt has it)",
        ) from error
    return arrow


def _too_long(dataset: Dataset, where: str) -> Row:
    error = ConfigError(
        f"a row has more than max_row_bytes: {dataset.max_row_bytes} bytes",
        source=where,
        next_step="split it, or raise `max_row_bytes` of the dataset",
    )
    return Row(where, error=error)


def _plain(source: str) -> str:
    end = next((end for end in PACKED if source.endswith(end)), "")
    return source.removesuffix(end)
