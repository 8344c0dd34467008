"""A dataset: where its files lie, and which of them count."""

from __future__ import annotations

import string
import sysconfig
from datetime import date
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from trainops.config.model import Config
from trainops.errors import ConfigError
from trainops.settings import config_file, project_root
from trainops.validation import Refused, read_yaml, validated

PLACEHOLDERS = ("data_date", "python_stdlib")
"""What a dataset's path may hold in braces."""


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
    include: list[str] = Field(
        default_factory=lambda: ["**/*"], min_length=1, description="Globs of the files that count, from `path`."
    )
    exclude: list[str] = Field(default_factory=list, description="Globs of files that do not, though included.")
    pairs_from: Literal["docstrings"] | None = Field(
        None,
        description="docstrings: the files are Python, and each function with a docstring gives a pair, its code as "
        "the prompt and the docstring's first line as the response; null: the files hold text, or pairs, themselves.",
    )
    min_documents: int = Field(1, ge=1, description="Fewest documents that a run may train on; fewer stop it.")

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
