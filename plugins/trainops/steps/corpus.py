"""The files of a dataset and the documents in them: texts, or pairs of a prompt and a response as lines of JSON."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import stat
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NoReturn, cast

from trainops.config.dataset import Dataset
from trainops.errors import ConfigError, NotFoundError
from trainops.settings import configs_folder
from trainops.steps.docstrings import docstring_pairs
from trainops.steps.globs import covers, matches
from trainops.steps.pairs import EXAMPLE, pair_line, read_pair

if TYPE_CHECKING:
    from trainops.gcp.storage import Storage

Form = Literal["text", "pairs", "docstrings"]
"""What the files of a dataset hold: texts; pairs, one a line; or Python, whose functions make pairs."""

_SIBLINGS_SHOWN = 200


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a dataset: its path relative to the dataset's, and where it is (a local path or a gs:// URI)."""

    source: str
    location: str


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """One text; `source` is the file's relative path, with `:LINE` for a line of JSONL."""

    source: str
    text: str

    @property
    def id(self) -> str:
        """First 16 hex digits of the SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


@dataclass(slots=True)
class Counts:
    """What reading found: files, and texts that are no documents (empty, not UTF-8, seen before)."""

    files: int = 0
    empty: int = 0
    bad_utf8: int = 0
    duplicates: int = 0
    seen: set[int] = field(default_factory=set, repr=False)


def find_files(dataset: Dataset, data_date: date, storage: Storage | None = None) -> list[SourceFile]:
    """Return the files of the dataset on that date, sorted by their relative path; links to folders are not followed.

    :param storage: needed when the dataset's path is a gs:// URI.
    :raises ConfigError: the path does not exist, nothing in it matches, or all that matches is empty.
    """
    path = dataset.resolved_path(data_date)
    if path.startswith("gs://"):
        if storage is None:
            raise ValueError("a dataset in a bucket needs a storage client")
        found = _objects(dataset, path.rstrip("/"), storage)
    else:
        found = _local_files(dataset, Path(path))
    found.sort(key=lambda pair: pair[0].source)
    _require_some(dataset, path, [size for _, size in found])
    return [file for file, _ in found]


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
        if not file.source.removesuffix(".gz").endswith(".jsonl"):
            raise ConfigError(
                "pairs are lines of files that end in .jsonl or .jsonl.gz",
                source=config_source(dataset),
                key="include",
                value=file.source,
                next_step=f"rename the file, or leave it out; a line is {EXAMPLE}",
            )
    return "pairs"


def read_documents(
    files: Iterable[SourceFile], counts: Counts, storage: Storage | None = None, form: Form = "text"
) -> Iterator[SourceDocument]:
    """Yield the documents of the files in order, each text once; what is passed over is counted in `counts`.

    One document is in memory at a time, and eight bytes' worth of each one seen.

    :raises ConfigError: a line of JSONL, or a file, does not hold what `form` says, or a file cannot be read.
    """
    for file in files:
        counts.files += 1
        for source, raw in _raw_texts(file, storage, form):
            document = _document(source, raw, counts, form)
            if document is not None:
                yield document


def _local_files(dataset: Dataset, root: Path) -> list[tuple[SourceFile, int]]:
    if root.is_file():
        return [(SourceFile(root.name, str(root)), root.stat().st_size)]
    if not root.is_dir():
        raise _missing(dataset, str(root), _siblings(root))
    found = []
    for at, folders, names in os.walk(root, onerror=_unreadable):
        below = Path(at).relative_to(root).as_posix() + "/" if at != str(root) else ""
        # A virtual environment beside the data can hold a hundred times its files.
        folders[:] = [name for name in folders if not covers(below + name, dataset.exclude)]
        found += [
            (SourceFile(below + name, f"{at}/{name}"), _size(Path(at, name)))
            for name in names
            if _counts(dataset, below + name)
        ]
    return found


def _counts(dataset: Dataset, source: str) -> bool:
    return matches(source, dataset.include) and not matches(source, dataset.exclude)


def _size(path: Path) -> int:
    try:
        status = path.stat()
    except OSError as error:
        _unreadable(error)
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError("is no regular file", source=str(path), next_step="remove it, or exclude it")
    return status.st_size


def _unreadable(error: OSError) -> NoReturn:
    raise ConfigError(
        f"cannot be read: {error.strerror}", source=str(error.filename), next_step="correct it, or exclude it"
    ) from error


def _siblings(path: Path) -> list[str]:
    parent = path.parent
    while not parent.is_dir():
        path, parent = parent, parent.parent
    return [str(parent / name) for name in sorted(entry.name for entry in parent.iterdir())[:_SIBLINGS_SHOWN]]


def _objects(dataset: Dataset, root: str, storage: Storage) -> list[tuple[SourceFile, int]]:
    try:
        found = [
            (SourceFile(item.uri.removeprefix(f"{root}/"), item.uri), item.size)
            for item in storage.list(f"{root}/")
            if not item.uri.endswith("/")
        ]
        if found:
            return [pair for pair in found if _counts(dataset, pair[0].source)]
        single = storage.info(root) if root.count("/") > 2 else None
        if single is not None:
            return [(SourceFile(PurePosixPath(root).name, root), single.size)]
        parent = root.rpartition("/")[0] if root.count("/") > 2 else root
        siblings = [f"{parent}/{name}" for name in storage.folders(parent)][:_SIBLINGS_SHOWN]
    except NotFoundError as error:
        raise _missing(dataset, root, []) from error
    raise _missing(dataset, root, siblings)


def _missing(dataset: Dataset, path: str, siblings: list[str]) -> ConfigError:
    return ConfigError(
        "the dataset's path does not exist",
        source=config_source(dataset),
        key="path",
        value=path,
        allowed=siblings,
        next_step="correct `path`, or put the data there",
    )


def _require_some(dataset: Dataset, path: str, sizes: list[int]) -> None:
    if not sizes:
        raise ConfigError(
            f"no file under {path} matches",
            source=config_source(dataset),
            key="include",
            value=[*dataset.include, *(f"not {glob}" for glob in dataset.exclude)],
            next_step="correct `include` and `exclude`; **/*.txt matches in all folders",
        )
    if not any(sizes):
        raise ConfigError(
            f"all {len(sizes)} files that match are empty",
            source=config_source(dataset),
            key="path",
            value=path,
            next_step="put text into them, or correct `path` and `include`",
        )


def config_source(dataset: Dataset) -> str:
    """Return the dataset's file, for errors."""
    return str(configs_folder() / "datasets" / f"{dataset.name}.yaml")


def _raw_texts(file: SourceFile, storage: Storage | None, form: Form) -> Iterator[tuple[str, bytes]]:
    plain = file.source.removesuffix(".gz")
    try:
        with _opened(file, storage) as stream:
            if plain.endswith(".jsonl"):
                yield from _lines(file.source, stream, read_pair if form == "pairs" else _text)
            else:
                yield file.source, stream.read()
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ConfigError(f"not a whole gzip file: {error}", source=file.location) from error
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", source=file.location) from error


@contextmanager
def _opened(file: SourceFile, storage: Storage | None) -> Generator[BinaryIO]:
    with _local_path(file, storage) as path:
        if file.source.endswith(".gz"):
            with gzip.open(path) as unpacked:
                yield cast("BinaryIO", unpacked)
        else:
            with path.open("rb") as raw:
                yield raw


@contextmanager
def _local_path(file: SourceFile, storage: Storage | None) -> Generator[Path]:
    if storage is None or not file.location.startswith("gs://"):
        yield Path(file.location)
        return
    with tempfile.TemporaryDirectory(prefix="trainops-") as folder:
        path = Path(folder, "object")
        storage.download_file(file.location, path)
        yield path


def _lines(source: str, stream: BinaryIO, read: Callable[[Any, str], str]) -> Iterator[tuple[str, bytes]]:
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        where = f"{source}:{number}"
        try:
            value = json.loads(line)
        except UnicodeDecodeError:
            yield where, line  # counted as bad UTF-8 where texts are decoded
            continue
        except ValueError as error:
            raise ConfigError(f"a line is not JSON: {error}", source=where) from error
        yield where, read(value, where).encode("utf-8", "surrogatepass")


def _text(value: Any, where: str) -> str:
    text = value.get("text") if isinstance(value, dict) else None
    if isinstance(text, str):
        return text
    pair = isinstance(value, dict) and {"prompt", "response"} <= set(value)
    raise ConfigError(
        "every line of JSONL is an object with the key `text`, a string",
        source=where,
        key="text",
        value=text if isinstance(value, dict) else value,
        next_step="for pairs, write `tokenizer: {documents: pairs}` in the experiment" if pair else "",
    )


def _document(source: str, raw: bytes, counts: Counts, form: Form) -> SourceDocument | None:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        counts.bad_utf8 += 1
        return None
    if form == "docstrings":
        text = "\n".join(pair_line(*pair) for pair in docstring_pairs(text, source))
    if not text.strip():
        counts.empty += 1
        return None
    document = SourceDocument(source, text)
    key = int(document.id, 16)
    if key in counts.seen:
        counts.duplicates += 1
        return None
    counts.seen.add(key)
    return document
