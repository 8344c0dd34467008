"""The documents in rows: texts, or pairs of a prompt and a response as lines of JSON; and what is no document."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from trainops.config.dataset import ColumnType, Dataset
from trainops.errors import ConfigError
from trainops.steps.docstrings import docstring_pairs
from trainops.steps.pairs import EXAMPLE, pair_line, read_pair
from trainops.steps.staging.find import config_source
from trainops.steps.staging.rows import Row, format_of
from trainops.steps.staging.source import SourceFile

Form = Literal["text", "pairs", "docstrings"]
"""What the files of a dataset hold: texts; pairs, one a row; or Python, whose functions make pairs."""

PLACES_TOLD = 10
"""Broken rows that are told one by one; the others are counted."""


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """One text; `source` is the file's relative path, with `:NUMBER` for a row of several."""

    source: str
    text: str

    @property
    def id(self) -> str:
        """First 16 hex digits of the SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


@dataclass(slots=True)
class Counts:
    """What reading found: files, rows, and rows that are no documents: empty, not UTF-8, broken."""

    files: int = 0
    rows: int = 0
    empty: int = 0
    bad_utf8: int = 0
    broken: int = 0
    places: list[str] = field(default_factory=list)
    """Where the first rows are that are broken or not UTF-8, and why."""

    def add(self, other: Counts) -> None:
        """Add what another reading found."""
        for name in ("files", "rows", "empty", "bad_utf8", "broken"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.places = (self.places + other.places)[:PLACES_TOLD]

    def tell(self, place: str) -> None:
        """Keep a place, unless enough are."""
        if len(self.places) < PLACES_TOLD:
            self.places.append(place)

    def value(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


def form_of(dataset: Dataset, files: Iterable[SourceFile], documents: str | None) -> Form:
    """Return what the files hold, for a run whose `tokenizer.documents` are these.

    :raises ConfigError: they cannot hold that.
    """
    if dataset.pairs_from is not None and documents != "pairs":
        raise ConfigError(
            "the dataset makes pairs, and the experiment reads text",
            source=config_source(dataset),
            key="pairs_from",
            value=dataset.pairs_from,
            next_step="write `tokenizer: {documents: pairs}` in the experiment",
        )
    if dataset.pairs_from is not None or documents != "pairs":
        return dataset.pairs_from or "text"
    for file in files:
        if format_of(dataset, file.source) == "text":
            raise ConfigError(
                "pairs are rows of files that end in .jsonl, .csv or .parquet (or .jsonl.gz, .jsonl.zst, ...)",
                source=config_source(dataset),
                key="include",
                value=file.source,
                next_step=f"rename the file, or leave it out; a line is {EXAMPLE}",
            )
    return "pairs"


def read_documents(dataset: Dataset, form: Form, rows: Iterable[Row], counts: Counts) -> Iterator[SourceDocument]:
    """Yield the documents of rows in order; what is passed over is counted in `counts`.

    :raises ConfigError: a row is broken, and the dataset says that this stops the run.
    """
    text_of = _text_reader(dataset, form)
    for row in rows:
        counts.rows += 1
        try:
            text = _decoded(row, text_of, counts)
        except ConfigError as error:
            if dataset.on_broken_row == "fail":
                raise
            counts.broken += 1
            counts.tell(str(error))
            require_few(dataset, counts)
            continue
        if text is not None and text.strip():
            yield SourceDocument(row.where, text)
        elif text is not None:
            counts.empty += 1


def require_few(dataset: Dataset, counts: Counts) -> None:
    """Raise ConfigError where more rows are broken than the dataset allows."""
    if not counts.broken or (dataset.on_broken_row == "skip" and counts.broken <= dataset.max_broken_rows):
        return
    raise ConfigError(
        f"{counts.broken} rows are broken, the first: {'; '.join(counts.places[:3])}",
        source=config_source(dataset),
        key="max_broken_rows",
        value=dataset.max_broken_rows,
        next_step="correct the rows, or allow more",
    )


def _decoded(row: Row, text_of: Callable[[Any, str], str | bytes], counts: Counts) -> str | None:
    """Return the text of a row, or None where it is not UTF-8."""
    if row.error is not None:
        raise row.error
    try:
        if row.undecodable:
            raise ValueError
        text = text_of(row.value, row.where)
        # A lone surrogate is no character, and stands for a byte that was none.
        return text.decode("utf-8-sig") if isinstance(text, bytes) else text.encode().decode("utf-8-sig")
    except ValueError:
        counts.bad_utf8 += 1
        counts.tell(f"{row.where}: not UTF-8")
        return None


def _text_reader(dataset: Dataset, form: Form) -> Callable[[Any, str], str | bytes]:
    """Return the function that makes a row's value, which is at a place, a text."""

    def read(value: Any, where: str) -> str | bytes:
        if isinstance(value, bytes):
            return value if form == "text" else _docstrings(value, where)
        _require_columns(dataset, value, where)
        if form == "pairs":
            return read_pair(value, where, dataset.prompt_column, dataset.response_column)
        text = _text(dataset, value, where)
        return text if form == "text" else _docstrings(text.encode(), where)

    return read


def _docstrings(data: bytes, where: str) -> str:
    return "\n".join(pair_line(*pair) for pair in docstring_pairs(data.decode("utf-8-sig"), where))


def _text(dataset: Dataset, value: Any, where: str) -> str:
    key = dataset.text_column
    text = value.get(key) if isinstance(value, dict) else None
    if isinstance(text, str):
        return text
    pair = isinstance(value, dict) and {"prompt", "response"} <= set(value)
    allowed = list(value) if isinstance(value, dict) and key not in value and not pair else []
    raise ConfigError(
        f"every line of JSONL is an object with the key `{key}`, a string; so is every row of CSV and Parquet",
        source=where,
        key=key,
        # A key that is not there is what was written wrong, in the dataset or in the row.
        value=(value.get(key, key) if allowed else text) if isinstance(value, dict) else value,
        allowed=allowed,
        next_step="for pairs, write `tokenizer: {documents: pairs}` in the experiment"
        if pair
        else "name the right one: `text_column` of the dataset",
    )


def _require_columns(dataset: Dataset, value: Any, where: str) -> None:
    for name, kind in dataset.columns.items():
        found = value.get(name) if isinstance(value, dict) else None
        if not _is(kind, found, of_text=format_of(dataset, where.rpartition(":")[0]) == "csv"):
            raise ConfigError(
                f"the column `{name}` must be a {kind}",
                source=where,
                key=name,
                value=found,
                next_step="correct the row, or `columns` of the dataset",
            )


def _is(kind: ColumnType, value: Any, *, of_text: bool) -> bool:
    """Whether a value is of a kind; of text (CSV) whether it can be read as one."""
    if of_text and isinstance(value, str):
        return _reads_as(kind, value)
    types: dict[str, tuple[type, ...]] = {
        "string": (str,),
        "integer": (int,),
        "number": (int, float),
        "boolean": (bool,),
    }
    return isinstance(value, types[kind]) and isinstance(value, bool) == (kind == "boolean")


def _reads_as(kind: ColumnType, text: str) -> bool:
    if kind == "string":
        return True
    if kind == "boolean":
        return text.lower() in {"true", "false", "0", "1"}
    try:
        (int if kind == "integer" else float)(text)
    except ValueError:
        return False
    return True
