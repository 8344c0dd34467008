"""Limits that Vertex AI sets, checked before anything is sent."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from trainops.jobspec.notes import Notebook
from trainops.jobspec.training_input import TrainingInput

ARGUMENT_CHARACTERS = 100_000
PACKAGES = 100
LABELS = 64
LABEL_CHARACTERS = 64
VARIABLES = 100
DISPLAY_NAME_CHARACTERS = 128

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BUCKET = r"gs://[a-z0-9][a-z0-9._-]*"
"""A bucket's name has no capitals: one with them is a placeholder. Source: https://cloud.google.com/storage/docs/buckets#naming"""
_FOLDER = re.compile(rf"{_BUCKET}(?:/.*)?", re.DOTALL)
_PACKAGE = re.compile(rf"{_BUCKET}/.+\.(?:tar\.gz|whl)", re.DOTALL)
_LABEL_LETTERS = ("Ll", "Lo")
_LABEL_RULES = {
    "key": f"a label's key has 1 to {LABEL_CHARACTERS} lowercase letters, digits, _ and -, and begins with a letter",
    "value": f"a label's value has at most {LABEL_CHARACTERS} lowercase letters, digits, _ and -",
}


def check_arguments(args: list[str], key: str, notebook: Notebook) -> None:
    """Refuse arguments that are too long together."""
    length = sum(len(arg) for arg in args)
    if length > ARGUMENT_CHARACTERS:
        raise notebook.error(
            key,
            f"all arguments together have at most {ARGUMENT_CHARACTERS} characters; these have {length}",
            value=f"{length} characters",
            next_step="write them to a file in the bucket, and pass its URI",
        )


def check_packages(spec: TrainingInput, notebook: Notebook) -> None:
    """Refuse too many packages, and packages that Vertex AI cannot install."""
    packages = spec.package_uris or []
    if len(packages) > PACKAGES:
        raise notebook.error(
            "packageUris",
            f"a job has at most {PACKAGES} packages; this has {len(packages)}",
            value=f"{len(packages)} packages",
            next_step="let one package require the others, or build an image",
        )
    for index, uri in enumerate(packages):
        if not _PACKAGE.fullmatch(uri):
            raise notebook.error(
                f"packageUris.{index}",
                "a package is a gs:// URI of a .tar.gz or .whl file",
                value=uri,
                next_step=_next_step(uri, "build it with `python -m build` and copy it to a bucket"),
            )


def check_folder(uri: str, key: str, notebook: Notebook) -> None:
    """Refuse what is no folder in a bucket."""
    if not _FOLDER.fullmatch(uri):
        next_step = _next_step(uri, "write it like gs://my-bucket/folder")
        raise notebook.error(key, "a folder in a bucket is needed", value=uri, next_step=next_step)


def check_labels(labels: Mapping[str, str], key: str, notebook: Notebook, *, added: int = 0) -> None:
    """Refuse labels that Google would refuse.

    Length and characters: reference of CustomJob.labels. How a key begins: the labels of other Google APIs, such as
    Secret Manager's, whose 63 characters are one less than Vertex AI's.

    :param added: how many more the job gets later.
    """
    if len(labels) + added > LABELS:
        raise notebook.error(
            key,
            f"a job has at most {LABELS} labels; this has {len(labels)}{_and_more(added)}",
            value=f"{len(labels)} labels",
            next_step=f"leave {len(labels) + added - LABELS} of them out",
        )
    for name, value in labels.items():
        for part, what in ((name, "key"), (value, "value")):
            if not _is_label(part) or (what == "key" and not _begins_with_letter(part)):
                raise notebook.error(
                    f"{key}.{name}",
                    _LABEL_RULES[what],
                    value=part,
                    next_step="write it in lowercase, with _ or - for other characters",
                )


def check_environment(env: Mapping[str, str], key: str, notebook: Notebook, *, added: int = 0) -> None:
    """Refuse environment variables that Vertex AI would refuse.

    :param added: how many more every replica gets later.
    """
    if len(env) + added > VARIABLES:
        raise notebook.error(
            key,
            f"a replica has at most {VARIABLES} variables; this has {len(env)}{_and_more(added)}",
            value=f"{len(env)} variables",
            next_step="write some of them to a file in the bucket, and pass its URI",
        )
    for name in env:
        if not _VARIABLE.fullmatch(name):
            raise notebook.error(
                f"{key}.{name}",
                "a variable's name is letters of A to Z, digits and _, and begins with no digit",
                value=name,
                next_step="rename it",
            )


def check_display_name(name: str, notebook: Notebook) -> None:
    """Refuse a display name that is empty or too long."""
    if not 0 < len(name) <= DISPLAY_NAME_CHARACTERS:
        raise notebook.error(
            "displayName",
            f"a display name has 1 to {DISPLAY_NAME_CHARACTERS} characters; this has {len(name)}",
            value=name,
            next_step="shorten it" if name else "name the job",
        )


def _next_step(uri: str, usual: str) -> str:
    bucket = uri.removeprefix("gs://").partition("/")[0]
    if uri.startswith("gs://") and bucket != bucket.lower():
        return f"fill in the name of the bucket for {bucket}: names of buckets have no capitals"
    return usual


def _and_more(added: int) -> str:
    return f", and Trainops adds {added}" if added else ""


def _is_label(text: str) -> bool:
    return len(text) <= LABEL_CHARACTERS and all(_in_label(letter) for letter in text)


def _begins_with_letter(text: str) -> bool:
    return text != "" and unicodedata.category(text[0]) in _LABEL_LETTERS


def _in_label(letter: str) -> bool:
    category = unicodedata.category(letter)
    return letter in "_-" or category in _LABEL_LETTERS or category.startswith("N")
