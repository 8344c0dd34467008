"""Which files a run of a date reads: those of its day, of a window of days, or of all days so far."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path

from trainops.config.dataset import Dataset
from trainops.errors import ConfigError
from trainops.gcp.storage import Storage
from trainops.settings import configs_folder
from trainops.steps.globs import covers, matches
from trainops.steps.staging.bucket import Bucket
from trainops.steps.staging.local_folder import LocalFolder
from trainops.steps.staging.source import Source, SourceFile

_SIBLINGS_SHOWN = 200
_DAY = r"\d{4}-\d{2}-\d{2}"


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a dataset, sorted by their relative paths, and the days of a window that are not there."""

    files: list[SourceFile]
    missing: list[date]


def source_of(dataset: Dataset, storage: Storage | None) -> Source:
    """Return the kind of place that the dataset's path is in.

    :raises ConfigError: there is no such kind.
    """
    scheme, found, _ = dataset.path.partition("://")
    if not found:
        return LocalFolder()
    if scheme == "gs":
        if storage is None:
            raise ValueError("a dataset in a bucket needs a storage client")
        return Bucket(storage)
    raise ConfigError(
        "no kind of source",
        source=config_source(dataset),
        key="path",
        value=dataset.path,
        allowed=["gs://BUCKET/FOLDER", "a local folder"],
    )


def find_files(dataset: Dataset, data_date: date, storage: Storage | None = None) -> list[SourceFile]:
    """Return what `find` does, without the missing days."""
    return find(dataset, data_date, storage).files


def find(dataset: Dataset, data_date: date, storage: Storage | None = None) -> Found:
    """Return the files of the dataset for that date; where the dataset has several days, a path begins with the day's.

    :param storage: needed when the dataset's path is a gs:// URI.
    :raises ConfigError: the path does not exist, nothing in it matches, or all that matches is empty. Of a window, and
        of all days, that of the date must exist.
    """
    source = source_of(dataset, storage)
    newest = dataset.resolved_path(data_date)
    found: list[SourceFile] = []
    missing: list[date] = []
    for day in _days(dataset, data_date, source):
        path = dataset.resolved_path(day)
        files = source.find(path, lambda name: _counts(dataset, name), lambda name: covers(name, dataset.exclude))
        if files is None and day == data_date:
            raise _missing(dataset, newest, source)
        if files is None:
            missing.append(day)
            continue
        found += files if dataset.partitions == "day" else _in_partition(files, _relative(dataset, path))
    found.sort(key=lambda file: (file.partition, file.source))
    _require_some(dataset, newest, [file.size for file in found])
    return Found(found, missing)


def _days(dataset: Dataset, newest: date, source: Source) -> list[date]:
    if dataset.partitions == "day":
        return [newest]
    if dataset.partitions == "window":
        return [newest - timedelta(back) for back in range((dataset.window_days or 1) - 1, -1, -1)]
    return sorted({day for day in _days_there(dataset, newest, source) if day <= newest} | {newest})


def _days_there(dataset: Dataset, newest: date, source: Source) -> Iterator[date]:
    """Days whose folders are there, for `partitions: all`."""
    base = _static(dataset)
    level = dataset.resolved_path(newest).removeprefix(base).partition("/")[0]
    pattern = re.escape(level).replace(re.escape(f"{newest:%Y-%m-%d}"), f"({_DAY})")
    for name in source.folders(base):
        if match := re.fullmatch(pattern, name):
            try:
                yield date.fromisoformat(match[1])
            except ValueError:  # 2026-02-30 is no day
                continue


def _static(dataset: Dataset) -> str:
    """The folders of the path above the one whose name holds the date, with a slash at the end."""
    one, other = (dataset.resolved_path(date(year, 1, 1)) for year in (1000, 2000))
    same = next(at for at, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])
    return one[: one.rindex("/", 0, same) + 1]


def _relative(dataset: Dataset, path: str) -> str:
    return path.removeprefix(_static(dataset)).strip("/")


def _in_partition(files: Iterable[SourceFile], partition: str) -> list[SourceFile]:
    return [
        # A day that is a file, not a folder, is named by the day alone.
        replace(
            file,
            partition=partition,
            source=partition if file.location.endswith(partition) else "/".join((partition, file.source)),
        )
        for file in files
    ]


def _counts(dataset: Dataset, source: str) -> bool:
    return matches(source, dataset.include) and not matches(source, dataset.exclude)


def _missing(dataset: Dataset, path: str, source: Source) -> ConfigError:
    return ConfigError(
        "the dataset's path does not exist",
        source=config_source(dataset),
        key="path",
        value=path,
        allowed=list(_siblings(path, source))[:_SIBLINGS_SHOWN],
        next_step="correct `path`, or put the data there",
    )


def _siblings(path: str, source: Source) -> Iterator[str]:
    parent = path.rstrip("/")
    if "://" in parent:
        parent = parent.rpartition("/")[0] if parent.count("/") > 2 else parent
    else:
        parent = str(next(folder for folder in Path(parent).parents if folder.is_dir()))
    return (f"{parent.rstrip('/')}/{name}" for name in source.folders(parent))


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
