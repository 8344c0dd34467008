"""Limits that Vertex AI sets, checked before anything is sent."""

from __future__ import annotations

import re
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
_FOLDER = re.compile(r"gs://[a-z0-9][a-z0-9._-]*(?:/.*)?", re.IGNORECASE)


def check_arguments(args: list[str], key: str, notebook: Notebook) -> None:
    """Refuse arguments that are too long together."""
    length = sum(len(arg) for arg in args)
    if length > ARGUMENT_CHARACTERS:
        raise notebook.error(
            key,
            f"all arguments together have at most {ARGUMENT_CHARACTERS} characters; these have {length}",
            next_step="write them to a file in the bucket, and pass its URI",
        )


def check_packages(spec: TrainingInput, notebook: Notebook) -> None:
    """Refuse too many packages, and packages that Vertex AI cannot install."""
    packages = spec.package_uris or []
    if len(packages) > PACKAGES:
        raise notebook.error("packageUris", f"a job has at most {PACKAGES} packages; this has {len(packages)}")
    for index, uri in enumerate(packages):
        if not uri.startswith("gs://") or not uri.endswith((".tar.gz", ".whl")):
            raise notebook.error(
                f"packageUris.{index}",
                "a package is a gs:// URI of a .tar.gz or .whl file",
                value=uri,
                next_step="build it with `python -m build` and copy it to a bucket",
            )


def check_folder(uri: str, key: str, notebook: Notebook) -> None:
    """Refuse what is no folder in a bucket."""
    if not _FOLDER.fullmatch(uri):
        raise notebook.error(key, "a folder in a bucket is needed", value=uri, next_step="write gs://BUCKET/FOLDER")


def check_labels(labels: Mapping[str, str], key: str, notebook: Notebook) -> None:
    """Refuse labels that Google would refuse."""
    if len(labels) > LABELS:
        raise notebook.error(key, f"a job has at most {LABELS} labels; this has {len(labels)}")
    for name, value in labels.items():
        for part, what in ((name, "key"), (value, "value")):
            if (
                len(part) > LABEL_CHARACTERS
                or not all(_in_label(letter) for letter in part)
                or (what == "key" and not part)
            ):
                raise notebook.error(
                    f"{key}.{name}",
                    f"a label's {what} has at most {LABEL_CHARACTERS} lowercase letters, digits, _ and -",
                    value=part,
                    next_step="write it in lowercase, with _ or - for other characters",
                )


def check_environment(env: Mapping[str, str], key: str, notebook: Notebook) -> None:
    """Refuse environment variables that Vertex AI would refuse."""
    if len(env) > VARIABLES:
        raise notebook.error(key, f"a replica has at most {VARIABLES} variables; this has {len(env)}")
    for name in env:
        if not _VARIABLE.fullmatch(name):
            raise notebook.error(
                f"{key}.{name}", "a variable's name is letters, digits and _, and begins with no digit", value=name
            )


def check_display_name(name: str, notebook: Notebook) -> None:
    """Refuse a display name that is empty or too long."""
    if not 0 < len(name) <= DISPLAY_NAME_CHARACTERS:
        raise notebook.error("displayName", f"a display name has 1 to {DISPLAY_NAME_CHARACTERS} characters", value=name)


def _in_label(letter: str) -> bool:
    return letter in "_-" or letter.isdecimal() or (letter.isalpha() and letter == letter.lower())
