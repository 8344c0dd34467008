"""A `gcloud ai-platform jobs submit training` command line (`ml-engine` was its old name), or the script around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainops.errors import ConfigError
from trainops.jobspec.notes import Note
from trainops.jobspec.reading.gcloud_flags import FLAGS, NOT_SENT, SPECIAL, WITHOUT_VALUE, listed
from trainops.jobspec.reading.held_job import HeldJob
from trainops.jobspec.reading.shell import UNSET, commands

_GROUPS = {"ai-platform", "ml-engine"}
_COMMAND = ["jobs", "submit", "training"]
_COMMENT_LINE = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_GCLOUD = re.compile(r"^[ \t]*(?:[$!%][ \t]*)?(?:\w+=\S*[ \t]+)*gcloud\s", re.MULTILINE)

ReadConfig = Callable[[str], Any]


def is_command_line(text: str) -> bool:
    """Whether a line of the text begins with gcloud, comments aside."""
    return _GCLOUD.search(_COMMENT_LINE.sub("", text)) is not None


def read_command_line(text: str, source: str, read_config: ReadConfig) -> HeldJob:
    """Return the job that the command submits.

    :param read_config: reads the file that --config names.
    :raises ConfigError: no such command or several, an unknown flag, a variable whose value the text does not tell.
    """
    words, others = _submission(text, source)
    line = _Line(source, words)
    if others:
        line.note("(other commands)", others, "not read: only the command that submits the job is")
    line.parse()
    _merge_config(line, read_config)
    _merge_packages(line)
    _merge_kms_key(line)
    return HeldJob(line.body, "a gcloud command line", line.notes, tuple(line.to_package))


@dataclass
class _Line:
    """A command line on its way to the body of a job."""

    source: str
    words: list[str]
    values: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=lambda: {"trainingInput": {}})
    notes: list[Note] = field(default_factory=list)
    to_package: list[str] = field(default_factory=list)

    def parse(self) -> None:
        """Sort the words into job id, flags and the program's arguments."""
        own, arguments = _split(self.words, "--")
        named = bool(own) and not own[0].startswith("-")  # only the job's name may be filled in by the shell
        self._check_values_known([*own[int(named) :], *arguments])
        while own:
            word = own.pop(0)
            if word.startswith("-"):
                self._flag(word, own)
            elif "jobId" in self.body:
                raise self.error("", "two names of the job", word, step="program arguments stand after --")
            else:
                self._name(word)
        if arguments:
            self.body["trainingInput"]["args"] = arguments

    def _name(self, word: str) -> None:
        self.body["jobId"] = word.replace(UNSET, "")
        if UNSET in word:
            self.note("job.jobId", self.body["jobId"], "the shell would fill it in; it stands as it is", "displayName")

    def _flag(self, word: str, rest: list[str]) -> None:
        name, equals, value = word.partition("=")
        if name.startswith("--no-") and f"--{name[5:]}" in WITHOUT_VALUE:
            name, equals, value = f"--{name[5:]}", "=", "false"
        if name not in FLAGS and name not in NOT_SENT and name not in SPECIAL:
            raise self.error(
                name, "unknown flag", name, [*FLAGS, *SPECIAL, *NOT_SENT], "the program's own arguments stand after --"
            )
        if not equals:
            value = "true" if name in WITHOUT_VALUE else self._next(name, rest)
        if name in self.values:
            self.note(name, self.values[name], "stands twice, and the last one counts")
        self.values[name] = value
        if name in FLAGS:
            self._set(name, value)
        elif name in NOT_SENT:
            self.note(name, value, NOT_SENT[name])

    def _next(self, name: str, rest: list[str]) -> str:
        if not rest or rest[0].startswith("--"):
            raise self.error(name, "a value is missing")
        return rest.pop(0)

    def _set(self, name: str, text: str) -> None:
        flag = FLAGS[name]
        try:
            value = flag.read(text)
        except ValueError as error:
            raise self.error(name, str(error), text) from None
        inner = self.body
        for part in flag.path[:-1]:
            inner = inner.setdefault(part, {})
        inner[flag.path[-1]] = value

    def _check_values_known(self, words: Sequence[str]) -> None:
        unknown = [word for word in words if UNSET in word]
        if unknown:
            raise self.error(
                "", f"the value of a shell variable is not told: {', '.join(unknown)}".replace(UNSET, ""),
                step="put it in place, or set it in the lines before the command",
            )  # fmt: skip

    def note(self, name: str, value: Any, text: str, target: str = "") -> None:
        """Note what became of a flag that is not sent as it is."""
        self.notes.append(Note(name, value, "changed", target, text))

    def error(
        self, name: str, problem: str, value: object = None, allowed: Sequence[str] = (), step: str = ""
    ) -> ConfigError:
        """Return the error that refuses a flag."""
        return ConfigError(problem, source=self.source, key=name, value=value, allowed=allowed, next_step=step)


def _submission(text: str, source: str) -> tuple[list[str], list[str]]:
    """Return the words after `jobs submit training`, and the names of the other commands of the text."""
    try:
        every = commands(text)
    except ValueError as error:
        raise ConfigError(f"cannot be read as a shell command: {error}", source=source) from error
    found = [words for words in every if _is_gcloud(words)]
    jobs = [after for words in found if (after := _after_command(words)) is not None]
    if len(jobs) == 1:
        others = [words[0].replace(UNSET, "") for words in every if not (_is_gcloud(words) and _after_command(words))]
        return jobs[0], others
    raise ConfigError(
        f"{len(jobs)} commands submit a training job" if jobs else "no command submits a training job",
        source=source,
        value=None if jobs else " ".join(found[0][:6]).replace(UNSET, "") if found else None,
        next_step="give one `gcloud ai-platform jobs submit training ...`",
    )


def _is_gcloud(words: Sequence[str]) -> bool:
    rest = words[1:] if words[:1] in (["$"], ["!"], ["%"]) else words
    return rest[:1] in (["gcloud"], ["!gcloud"])


def _after_command(words: list[str]) -> list[str] | None:
    """Return what follows the command, with the flags that stand between its words."""
    wanted: list[str | set[str]] = [_GROUPS, *_COMMAND]
    flags: list[str] = []
    rest = words[words.index("gcloud") + 1 :] if "gcloud" in words else words[1:]
    while wanted and rest:
        word, rest = rest[0], rest[1:]
        if word.startswith("-"):
            takes_next = "=" not in word and word not in WITHOUT_VALUE
            flags += [word, *rest[:1]] if takes_next else [word]
            rest = rest[1:] if takes_next else rest
        elif word in wanted[0] if isinstance(wanted[0], set) else word == wanted[0]:
            wanted.pop(0)
        elif word not in {"alpha", "beta"}:
            return None
    if wanted:
        return None
    own, arguments = _split(rest, "--")
    return [*own, *flags, *(["--", *arguments] if arguments else [])]


def _split(words: Sequence[str], at: str) -> tuple[list[str], list[str]]:
    place = words.index(at) if at in words else len(words)
    return list(words[:place]), list(words[place + 1 :])


def _merge_config(line: _Line, read_config: ReadConfig) -> None:
    """Put the fields of --config below those of the command line, which count where both set one."""
    name = line.values.get("--config")
    if name is None:
        return
    config = read_config(name)
    if not isinstance(config, Mapping):
        raise line.error("--config", "a mapping of fields is expected", name, step="begin it with trainingInput:")
    if "training_input" in config:
        config = {("trainingInput" if key == "training_input" else key): value for key, value in config.items()}
    elif "trainingInput" not in config:
        config = {"trainingInput": config}
    line.body = _merged(config, line.body, name, "", line)
    line.note("--config", name, "read, and merged with the command line")


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
    line.to_package = [name for name in given if name not in uploaded]
    folder = line.values.get("--package-path")
    if folder is not None:
        line.to_package.insert(0, folder)
    if uploaded:
        line.body["trainingInput"]["packageUris"] = uploaded


def _merge_kms_key(line: _Line) -> None:
    key = line.values.get("--kms-key")
    parts = {name: line.values.get(f"--kms-{name}") for name in ("keyring", "location", "project")}
    if key is None:
        if any(parts.values()):
            raise line.error("--kms-key", "is missing beside the other --kms flags")
        return
    if not key.startswith("projects/"):
        parts["project"] = parts["project"] or line.values.get("--project")
        missing = [f"--kms-{name}" for name, value in parts.items() if value is None]
        if missing:
            raise line.error("--kms-key", f"needs {', '.join(missing)}", key, step="or write the key's whole name")
        place = f"projects/{parts['project']}/locations/{parts['location']}"
        key = f"{place}/keyRings/{parts['keyring']}/cryptoKeys/{key}"
    line.body["trainingInput"]["encryptionConfig"] = {"kmsKeyName": key}
