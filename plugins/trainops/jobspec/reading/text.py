"""The text of a training job: YAML, JSON with comments, Pulumi's output, gcloud command lines, notebooks, Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainops.errors import ConfigError
from trainops.jobspec.reading.dialects import as_shell
from trainops.jobspec.reading.fields import parse_fields
from trainops.jobspec.reading.gcloud_line import is_command_line, read_command_line, read_written_config
from trainops.jobspec.reading.held_job import HeldJob
from trainops.jobspec.reading.notebook import code_cells, read_notebook
from trainops.jobspec.reading.pulumi import job_resource
from trainops.jobspec.reading.python_job import check_no_program, parsed_program, read_program
from trainops.jobspec.reading.rstudio import cloudml_config


def read_job(text: str, source: str, read_file: Callable[[str], str]) -> HeldJob:
    """Return the job that `text` holds, in whatever spelling.

    :param source: the file that errors name.
    :param read_file: reads the file that a command line names with --config.
    :raises ConfigError: not a job in any spelling, or one that cannot be read without guessing.
    """
    if not text.strip():
        raise ConfigError("is empty", source=source, next_step="give a TrainingInput, or a gcloud command line")

    def read_config(name: str) -> Any:
        return parse_fields(read_file(name), name)

    cells = code_cells(text)
    if cells is not None:
        return read_notebook(cells, source, read_config)
    program = parsed_program(text, source)
    if program is not None:
        return read_program(program, source, read_config)
    script = as_shell(text)
    if is_command_line(script):
        return read_command_line(script, source, read_config)
    config = read_written_config(script, source)
    if config is not None:
        return config
    try:
        data = parse_fields(text, source)
    except ConfigError:
        check_no_program(text, source)
        raise
    resource = job_resource(data, source)
    if resource is not None:
        return HeldJob(resource.fields, f"the Pulumi resource {resource.name}", name=resource.name.rpartition("::")[2])
    return cloudml_config(data, source) or HeldJob(data, "a config")


__all__ = ["parse_fields", "read_job"]
