"""The text of a training job: YAML, JSON with comments, Pulumi's output, or a gcloud command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainops.errors import ConfigError
from trainops.jobspec.reading.commented_json import looks_like_json, parse_commented_json
from trainops.jobspec.reading.gcloud_line import is_command_line, read_command_line
from trainops.jobspec.reading.held_job import HeldJob
from trainops.jobspec.reading.pulumi import job_resource
from trainops.validation import parse_yaml


def read_job(text: str, source: str, read_file: Callable[[str], str]) -> HeldJob:
    """Return the job that `text` holds, in whatever spelling.

    :param source: the file that errors name.
    :param read_file: reads the file that a command line names with --config.
    :raises ConfigError: not a job in any spelling, or one that cannot be read without guessing.
    """
    if not text.strip():
        raise ConfigError("is empty", source=source, next_step="give a TrainingInput, or a gcloud command line")
    if is_command_line(text):
        return read_command_line(text, source, lambda name: parse_fields(read_file(name), name))
    data = parse_fields(text, source)
    resource = job_resource(data, source)
    if resource is not None:
        return HeldJob(resource.fields, f"the Pulumi resource {resource.name}")
    return HeldJob(data, "a config")


def parse_fields(text: str, source: str) -> Any:
    """Return what YAML or JSON text holds; JSON may have comments and trailing commas.

    :raises ConfigError: neither, or a key stands twice.
    """
    if not looks_like_json(text):
        return parse_yaml(text, source=source)
    try:
        return parse_commented_json(text, source)
    except ConfigError as error:
        try:
            return parse_yaml(text, source=source)  # {scaleTier: BASIC} is YAML
        except ConfigError:
            raise error from None
