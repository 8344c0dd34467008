"""A `gcloud ai-platform jobs submit training` command line (`ml-engine` was its old name), or the script around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainops.errors import ConfigError
from trainops.jobspec.notes import Note
from trainops.jobspec.reading.fields import parse_fields
from trainops.jobspec.reading.flags_file import flag_words
from trainops.jobspec.reading.gcloud_flags import FLAGS, KNOWN, NOT_SENT, WITHOUT_VALUE, full_name, listed
from trainops.jobspec.reading.gcloud_script import find_submission
from trainops.jobspec.reading.held_job import HeldJob
from trainops.jobspec.reading.shell import Script, read_script
from trainops.jobspec.reading.untold import is_untold, settled, untold_error, written

_COMMENT_LINE = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_GCLOUD = re.compile(r"^[ \t]*(?:[$!%@(>][ \t]*)?(?:(?:do|then|else|sudo|time|\w+=\S*)[ \t]+)*gcloud\s", re.MULTILINE)
_INPUT = re.compile(r"^[ \t]*training_?[iI]nput[ \t]*:", re.MULTILINE)
_NO_COMMAND = "not read: the line before ends without a backslash, so the command ends there"

ReadConfig = Callable[[str], Any]


def is_command_line(text: str) -> bool:
    """Whether a line of the text begins with gcloud, comments aside."""
    return _GCLOUD.search(_COMMENT_LINE.sub("", text)) is not None


def read_command_line(
    text: str, source: str, read_config: ReadConfig, known: Mapping[str, str] | None = None
) -> HeldJob:
    """Return the job that the command submits.

    :param read_config: reads the file that --config or --flags-file names, unless the script itself writes it.
    :param known: variables that are set outside of the text.
    :raises ConfigError: no such command or several, an unknown flag, a variable whose value the text does not tell.
    """
    return read_commands(_script(text, source, known), source, read_config)


def read_written_config(text: str, source: str) -> HeldJob | None:
    """Return the job in the only config that a script without the command writes; None when it writes none.

    :raises ConfigError: a variable in it is not told.
    """
    if "<<" not in text or not _INPUT.search(text):
        return None
    configs = [(name, body) for name, body in _script(text, source, None).files.items() if _INPUT.search(body)]
    if len(configs) != 1:
        return None
    [(name, body)] = configs
    fields, notes = settled(_wrapped(parse_fields(body, name), name, source), source)
    return HeldJob(fields, f"the file {name} that the script writes", notes)


def _script(text: str, source: str, known: Mapping[str, str] | None) -> Script:
    try:
        return read_script(text, known)
    except ValueError as error:
        step = "close the quote or here-document, or give the command alone"
        raise ConfigError(f"cannot be read as a shell command: {error}", source=source, next_step=step) from error


def read_commands(script: Script, source: str, read_config: ReadConfig) -> HeldJob:
    """Return the job that the only submitting command of a script describes.

    :raises ConfigError: as `read_command_line`.
    """
    submission = find_submission(script.commands, source)

    def read(name: str) -> Any:
        text = script.file(name)
        return read_config(name) if text is None else parse_fields(text, name)

    line = _Line(source, submission.words, submission.arguments, read)
    if submission.lost:
        line.note("(after the command)", submission.lost, _NO_COMMAND)
    if submission.others:
        line.note("(other commands)", submission.others, "not read: only the command that submits the job is")
    line.parse()
    _merge_config(line)
    _merge_packages(line)
    _merge_kms_key(line)
    body, notes = settled(line.body, source)
    return HeldJob(body, "a gcloud command line", [*line.notes, *notes], tuple(line.to_package))


@dataclass
class _Line:
    """A command line on its way to the body of a job."""

    source: str
    words: list[str]
    arguments: list[str]
    read_config: ReadConfig
    values: dict[str, str] = field(default_factory=dict)
    flags_files: set[str] = field(default_factory=set)
    body: dict[str, Any] = field(default_factory=lambda: {"trainingInput": {}})
    notes: list[Note] = field(default_factory=list)
    to_package: list[str] = field(default_factory=list)

    def parse(self) -> None:
        """Sort the words into job id and flags; a file of flags stands for the flags in it."""
        own = list(self.words)
        while own:
            word = own.pop(0)
            if word.startswith("-"):
                self._flag(word, own)
            elif "jobId" not in self.body:
                self.body["jobId"] = word
            elif is_untold(word):
                raise untold_error([word], self.source)
            else:
                raise self.error("", "two names of the job", word, step="program arguments stand after --")
        if self.arguments:
            self.body["trainingInput"]["args"] = self.arguments

    def _flag(self, word: str, rest: list[str]) -> None:
        given, equals, value = word.partition("=")
        if given.startswith("--no-") and f"--{given[5:]}" in WITHOUT_VALUE:
            given, equals, value = f"--{given[5:]}", "=", "false"
        name = full_name(given)
        if name is None:
            raise self.error(given, "unknown flag", given, KNOWN, "the program's own arguments stand after --")
        if name != given:
            self.note(given, None, f"read as {name}")
        if not equals:
            value = "true" if name in WITHOUT_VALUE else self._next(name, rest)
        if name == "--flags-file":
            if value in self.flags_files:
                raise self.error(name, "this file was read before", value, step="name each file of flags once")
            self.flags_files.add(value)
            rest[:0] = flag_words(self.file(name, value), value, self.source)
            self.note(name, value, "read: its flags count here")
            return
        if name in self.values:
            self.note(name, written(self.values[name]), "stands twice, and the last one counts")
        self.values[name] = value
        if name in FLAGS:
            self._set(name, value)
        elif name in NOT_SENT:
            self.note(name, written(value), NOT_SENT[name])

    def file(self, name: str, file: str) -> Any:
        """Return what the file holds that the flag `name` names."""
        if is_untold(file):
            raise untold_error([file], self.source, name)
        return self.read_config(file)

    def _next(self, name: str, rest: list[str]) -> str:
        if not rest or rest[0].startswith("--"):
            raise self.error(name, "a value is missing", step=f"write {name}=VALUE, or leave it out")
        return rest.pop(0)

    def _set(self, name: str, text: str) -> None:
        flag = FLAGS[name]
        try:
            value = flag.read(text)
        except ValueError as error:
            if not is_untold(text):
                raise self.error(name, str(error), text) from None
            value = text  # named with all others that are not told
        inner = self.body
        for part in flag.path[:-1]:
            inner = inner.setdefault(part, {})
        inner[flag.path[-1]] = value

    def note(self, name: str, value: Any, text: str, target: str = "") -> None:
        """Note what became of a flag that is not sent as it is."""
        self.notes.append(Note(name, value, "changed", target, text))

    def error(
        self, name: str, problem: str, value: object = None, allowed: Sequence[str] = (), step: str = ""
    ) -> ConfigError:
        """Return the error that refuses a flag."""
        return ConfigError(problem, source=self.source, key=name, value=value, allowed=allowed, next_step=step)


def _merge_config(line: _Line) -> None:
    """Put the fields of --config below those of the command line, which count where both set one."""
    name = line.values.get("--config")
    if name is None:
        return
    config = _wrapped(line.file("--config", name), name, line.source)
    line.body = _merged(config, line.body, name, "", line)
    line.note("--config", name, "read, and merged with the command line")


def _wrapped(config: Any, name: str, source: str) -> dict[str, Any]:
    """Return the fields of a config as the body of a job."""
    if not isinstance(config, Mapping):
        step = "begin it with trainingInput:"
        problem = "a mapping of fields is expected"
        raise ConfigError(problem, source=source, key="--config", value=name, next_step=step)
    if "training_input" in config:
        return {("trainingInput" if key == "training_input" else key): value for key, value in config.items()}
    return dict(config) if "trainingInput" in config else {"trainingInput": config}


def _merged(below: Any, above: Any, file: str, path: str, line: _Line) -> Any:
    if not isinstance(below, Mapping) or not isinstance(above, Mapping) or path.endswith("acceleratorConfig"):
        if below is not None and below != above:
            line.note(path, below, f"from {file}; the command line says otherwise and counts: {above}")
        return above
    found = dict(below)
    for name, value in above.items():
        inner = f"{path}.{name}".removeprefix(".").removeprefix("trainingInput.")
        found[name] = _merged(below[name], value, file, inner, line) if name in below else value
    return found


def _merge_packages(line: _Line) -> None:
    """Take packages that lie in a bucket; what gcloud would have packaged or uploaded is for the user to do."""
    given = listed(line.values.get("--packages", ""))
    uploaded = [uri for uri in given if uri.startswith("gs://")]
    line.to_package = [written(name) for name in given if name not in uploaded]
    folder = line.values.get("--package-path")
    if folder is not None:
        line.to_package.insert(0, written(folder))
    if uploaded:
        line.body["trainingInput"]["packageUris"] = uploaded


def _merge_kms_key(line: _Line) -> None:
    key = line.values.get("--kms-key")
    parts = {name: line.values.get(f"--kms-{name}") for name in ("keyring", "location", "project")}
    if key is None:
        if any(parts.values()):
            step = "name the key, or leave the other --kms flags out"
            raise line.error("--kms-key", "is missing beside the other --kms flags", step=step)
        return
    if not key.startswith("projects/"):
        parts["project"] = parts["project"] or line.values.get("--project")
        missing = [f"--kms-{name}" for name, value in parts.items() if value is None]
        if missing:
            raise line.error("--kms-key", f"needs {', '.join(missing)}", key, step="or write the key's whole name")
        place = f"projects/{parts['project']}/locations/{parts['location']}"
        key = f"{place}/keyRings/{parts['keyring']}/cryptoKeys/{key}"
    line.body["trainingInput"]["encryptionConfig"] = {"kmsKeyName": key}
