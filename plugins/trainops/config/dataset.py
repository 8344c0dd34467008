"""A dataset: where its files lie, and which of them count."""

from __future__ import annotations

import string
import sysconfig
from datetime import date
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from trainops.config.model import Config
from trainops.errors import ConfigError
from trainops.settings import config_file, project_root
from trainops.validation import Refused, read_yaml, validated

PLACEHOLDERS = ("data_date", "python_stdlib")
"""What a dataset's path may hold in braces."""

ColumnType = Literal["string", "integer", "number", "boolean"]
"""What a demanded column holds; an integer is a number, too."""


class Dataset(Config):
    """One file of `datasets/`; the file's name is the dataset's."""

    name: str = Field("", description="Name of the dataset: its file's name.")
    description: str = Field(min_length=1, description="What the text is, in a sentence.")
    path: str = Field(
        min_length=1,
        description="Folder of the files, absolute or relative to the project root. {data_date} is replaced by the "
        "run's data date (2026-11-29), {python_stdlib} by the folder of Python's standard library.",
        examples=["/data/crawl/{data_date}", "{python_stdlib}"],
    )
    partitions: Literal["day", "window", "all"] = Field(
        "day",
        description="Which folders of `path` a run reads: that of its data date; those of the `window_days` days that "
        "end with it; or all up to it.",
    )
    window_days: int | None = Field(None, ge=2, le=3660, description="Days of a window, the data date included.")
    include: list[str] = Field(
        default_factory=lambda: ["**/*"], min_length=1, description="Globs of the files that count, from `path`."
    )
    exclude: list[str] = Field(default_factory=list, description="Globs of files that do not, though included.")
    pairs_from: Literal["docstrings"] | None = Field(
        None,
        description="docstrings: the files are Python, and each function with a docstring gives a pair, its code as "
        "the prompt and the docstring's first line as the response; null: the files hold text, or pairs, themselves.",
    )
    format: Literal["auto", "text", "jsonl", "csv", "parquet"] = Field(
        "auto",
        description="What the files are; auto: by the end of their names (.jsonl, .csv, .parquet, all else text). "
        "A further .gz or .zst says that a file is compressed.",
    )
    text_column: str = Field("text", min_length=1, description="Key or column that holds a row's text.")
    prompt_column: str = Field("prompt", min_length=1, description="Key or column of a pair's prompt.")
    response_column: str = Field("response", min_length=1, description="Key or column of a pair's response.")
    columns: dict[str, ColumnType] = Field(
        default_factory=dict,
        description="Columns that every row must have, and their types; a row without is broken.",
        examples=[{"text": "string", "quality": "number"}],
    )
    max_row_bytes: int = Field(
        64 * 1024 * 1024, ge=1, le=1024**3, description="A row (of text: a file) with more bytes is broken."
    )
    on_broken_row: Literal["fail", "skip"] = Field(
        "fail", description="What a row does that cannot be read, lacks a column, or is too long; each is told."
    )
    max_broken_rows: int = Field(
        0, ge=0, description="With `on_broken_row: skip`: most broken rows in the dataset; more stop the run."
    )
    duplicates: Literal["drop", "keep"] = Field(
        "drop", description="Whether of rows with the same text only the first one is a document."
    )
    min_documents: int = Field(1, ge=1, description="Fewest documents that a run may train on; fewer stop it.")
    threads: int = Field(4, ge=1, le=64, description="Groups of files that are read at once while staging.")

    @field_validator("path")
    @classmethod
    def _known_placeholders(cls, path: str) -> str:
        try:
            fields = [field for _, field, _, _ in string.Formatter().parse(path) if field is not None]
        except ValueError as error:
            raise Refused(f"braces do not match: {error}") from error
        for field in fields:
            if field not in PLACEHOLDERS:
                raise Refused("unknown placeholder", value=field, allowed=PLACEHOLDERS)
        return path

    @field_validator("include", "exclude")
    @classmethod
    def _relative_globs(cls, globs: list[str]) -> list[str]:
        for glob in globs:
            if not glob or glob.startswith("/") or ".." in Path(glob).parts:
                raise Refused("a glob is relative to `path` and stays below it", value=glob)
        return globs

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.partitions != "day" and self.path.count("{data_date}") != 1:
            raise Refused(f"partitions: {self.partitions} needs {{data_date}} once in `path`", value=self.path)
        if (self.partitions == "window") != (self.window_days is not None):
            raise Refused("partitions: window and window_days go together", value=self.window_days or self.partitions)
        if (self.on_broken_row == "skip") != (self.max_broken_rows > 0):
            raise Refused("on_broken_row: skip and max_broken_rows go together", value=self.max_broken_rows)
        return self

    def resolved_path(self, data_date: date) -> str:
        """Return the folder that a run of `data_date` reads, with placeholders filled in."""
        path = self.path.format(
            data_date=f"{data_date:%Y-%m-%d}",
            python_stdlib=sysconfig.get_path("stdlib"),
        )
        return path if "://" in path else str(project_root() / Path(path).expanduser())


def load_dataset(name: str, *, source: str = "", key: str = "") -> Dataset:
    """Return the dataset `name`.

    :param source: file that names it, and `key` in it, for the message when there is none.
    :raises ConfigError: no such dataset, or its file is wrong.
    """
    path = config_file("datasets", name, source=source, key=key)
    dataset = validated(Dataset, read_yaml(path), source=str(path))
    if dataset.name not in {"", name}:
        raise ConfigError("the file's name is the dataset's", source=str(path), key="name", value=dataset.name)
    return dataset.model_copy(update={"name": name})
