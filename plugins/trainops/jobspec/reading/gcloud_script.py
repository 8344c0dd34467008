"""The command that submits a training job, found in the commands of a shell text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainops.errors import ConfigError
from trainops.jobspec.reading.gcloud_flags import WITHOUT_VALUE
from trainops.jobspec.reading.untold import written

_GROUPS = {"ai-platform", "ml-engine"}
_COMMAND = ["jobs", "submit", "training"]
_BEFORE_GCLOUD = {"$", "!", "%", "(", ">", "@"}
_STEP = "give one `gcloud ai-platform jobs submit training ...` in a file of its own"


@dataclass(frozen=True)
class Submission:
    """The command that submits the job.

    :param words: job id and flags.
    :param arguments: what stands after `--`, for the program.
    :param others: names of the other commands of the text.
    :param lost: lines that look like a part of the command, after a line that does not say that it goes on.
    """

    words: list[str]
    arguments: list[str]
    others: list[str]
    lost: list[str]


def find_submission(commands: Sequence[list[str]], source: str) -> Submission:
    """Return the only command that submits a training job.

    :raises ConfigError: none, several (all are named), or Vertex AI's command.
    """
    found = {index: after for index, words in enumerate(commands) if (after := _after_command(words)) is not None}
    if len(found) == 1:
        [(index, (own, arguments))] = found.items()
        rest = [words for place, words in enumerate(commands) if place != index]
        lost = [written(" ".join(words)) for words in rest if words[0].startswith("-")]
        others = [written(words[0]) for words in rest if not words[0].startswith("-")]
        return Submission(own, arguments, others, lost)
    if found:
        names = ", ".join(_name(own) for own, _ in found.values())
        raise ConfigError(f"{len(found)} commands submit a training job: {names}", source=source, next_step=_STEP)
    gcloud = [words for words in commands if _is_gcloud(words)]
    shown = written(" ".join(gcloud[0][:6])) if gcloud else None
    raise ConfigError("no command submits a training job", source=source, value=shown, next_step=_STEP)


def submits(words: Sequence[str]) -> bool:
    """Whether these are the words of a command that submits a training job."""
    return _after_command(words) is not None


def split(words: Sequence[str], at: str) -> tuple[list[str], list[str]]:
    """Return the words before the first `at`, and those after it."""
    place = words.index(at) if at in words else len(words)
    return list(words[:place]), list(words[place + 1 :])


def _name(own: Sequence[str]) -> str:
    return next((written(word) for word in own if not word.startswith("-")), "one without a name")


def _after_command(words: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Return what follows the command and the arguments of the program; flags may stand between its words."""
    if not _is_gcloud(words):
        return None
    wanted: list[set[str]] = [_GROUPS, *({word} for word in _COMMAND)]
    flags: list[str] = []
    rest = _without_prompt(words)[1:]
    while wanted and rest:
        word, rest = rest[0], rest[1:]
        if word.startswith("-"):
            takes_next = "=" not in word and word not in WITHOUT_VALUE
            flags += [word, *rest[:1]] if takes_next else [word]
            rest = rest[1:] if takes_next else rest
        elif word in wanted[0]:
            wanted.pop(0)
        elif word not in {"alpha", "beta"}:
            return None
    if wanted:
        return None
    own, arguments = split(rest, "--")
    return [*own, *flags], arguments


def _is_gcloud(words: Sequence[str]) -> bool:
    return _without_prompt(words)[:1] == ["gcloud"]


def _without_prompt(words: Sequence[str]) -> list[str]:
    rest = list(words)
    while rest and rest[0] in _BEFORE_GCLOUD:
        rest.pop(0)
    return [rest[0].lstrip("!@(-"), *rest[1:]] if rest else rest
