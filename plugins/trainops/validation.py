"""Reading what users write, and telling them exactly where it is wrong.

`read_yaml` and `parse_json` turn text into values, `validated` turns values into pydantic models. All three raise
`ConfigError` with the file (or "conf"), the dotted key, the value, what is allowed and the nearest match.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from trainops.errors import ConfigError

M = TypeVar("M", bound=BaseModel)

_OTHERS_SHOWN = 5
_LONGEST_VALUE = 200
_MAPPING_EXPECTED = {"model_type", "dict_type", "model_attributes_type", "mapping_type"}
_PLAIN_WORDS = {
    "int_type": "a whole number is expected",
    "int_parsing": "a whole number is expected",
    "int_from_float": "a whole number is expected",
    "float_type": "a number is expected",
    "float_parsing": "a number is expected",
    "finite_number": "a finite number is expected",
    "bool_type": "true or false is expected",
    "bool_parsing": "true or false is expected",
    "string_type": "text is expected",
    "list_type": "a list is expected",
    "tuple_type": "a list is expected",
    "missing": "this key is required and missing",
}


class Refused(ValueError):
    """Raised in a model's validators; `validated` makes the ConfigError of it, told with source and whole key.

    :param key: dotted path of the key, seen from the model or field whose validator this is.
    :param value: what stood there; the validator's own input unless given.
    """

    def __init__(
        self, problem: str, *, key: str = "", value: object = None, allowed: Iterable[object] = (), next_step: str = ""
    ) -> None:
        self.problem = problem
        self.key = key
        self.value = value
        self.allowed = list(allowed)
        self.next_step = next_step
        super().__init__(problem)


def read_yaml(path: Path) -> Any:
    """Return what the YAML file holds.

    :raises ConfigError: the file is missing or unreadable, is not UTF-8, is not YAML, or has a key twice.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8 at byte {error.start}", source=str(path), next_step="save it as UTF-8") from error
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", source=str(path)) from error
    return parse_yaml(text, source=str(path))


def parse_yaml(text: str, *, source: str) -> Any:
    """Return what the YAML text holds.

    :raises ConfigError: it is not YAML, or has a key twice.
    """
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        raise _broken_yaml(text, source, error) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"broken YAML: {str(error).splitlines()[0]}", source=source) from error


def parse_json(text: str, *, source: str) -> Any:
    """Return what the JSON text holds.

    :raises ConfigError: not JSON (with line, column and the line itself), a key twice, NaN or Infinity.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique_pairs, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        lines = text.split("\n")
        raise ConfigError(
            f"broken JSON at line {error.lineno}, column {error.colno}: {error.msg}",
            source=source,
            value=lines[error.lineno - 1][:_LONGEST_VALUE],
            next_step='write it like {"steps": 100}, in single quotes on the shell',
        ) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"broken JSON: {error}", source=source) from error


def validated(model: type[M], data: Any, *, source: str, key: str = "") -> M:
    """Return `data` as `model`.

    :param source: the file, or "conf".
    :param key: dotted path of `data` inside the source, when it is only a part of it.
    :raises ConfigError: for the first problem (a misspelt key before the missing one that it stands for); the others
        are named after it.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _config_error(model, error, source, key) from error
    except ConfigError as error:
        if error.source:
            raise
        raise _placed(error, source, key) from error


def allowed_keys(model: type[BaseModel], like: str = "") -> list[str]:
    """Return the keys that `model` takes, spelt as in JSON, or in snake_case when `like` is."""
    if "_" in like:
        return list(model.model_fields)
    return [field.alias or name for name, field in model.model_fields.items()]


def _config_error(model: type[BaseModel], error: ValidationError, source: str, prefix: str) -> ConfigError:
    details = sorted(_telling(model, error), key=lambda detail: detail["type"] != "extra_forbidden")
    problems = [_problem(model, detail, prefix) for detail in details]
    first = problems[0]
    return ConfigError(
        first.problem,
        source=source,
        key=first.key,
        value=first.value,
        allowed=first.allowed,
        next_step="; ".join(part for part in (first.next_step, _others(problems[1:])) if part),
    )


def _telling(model: type[BaseModel], error: ValidationError) -> list[ErrorDetails]:
    """Leave out that a value is not of one type of a union, when it is of another, and wrong inside."""
    details = error.errors(include_url=False)
    paths = [_path(model, detail) for detail in details]
    return [
        detail
        for detail, path in zip(details, paths, strict=True)
        if not any(len(other) > len(path) and other[: len(path)] == path for other in paths)
    ]


def _others(problems: Sequence[ConfigError]) -> str:
    if not problems:
        return ""
    shown = "; ".join(f"{problem.key}: {problem.problem}" for problem in problems[:_OTHERS_SHOWN])
    rest = len(problems) - _OTHERS_SHOWN
    return f"also wrong: {shown}" + (f"; and {rest} more" if rest > 0 else "")


def _problem(model: type[BaseModel], detail: ErrorDetails, prefix: str) -> ConfigError:
    kind, location = detail["type"], detail["loc"]
    types = _walk(model, location)[1]
    key = ".".join([*([prefix] if prefix else []), *_path(model, detail)])
    refused = detail.get("ctx", {}).get("error")
    if isinstance(refused, Refused):
        return _as_refused(refused, key, detail["input"])
    if kind == "extra_forbidden":
        name = str(location[-1])
        parents = [allowed_keys(item, name) for item in _models(_walk(model, location[:-1])[1])]
        return ConfigError("unknown key", key=key, value=name, allowed=[item for keys in parents for item in keys])
    if kind in _MAPPING_EXPECTED:
        keys = [item for found in _models(types) for item in allowed_keys(found)]
        return ConfigError(
            "a mapping of keys to values is expected", key=key, value=_short(detail["input"]), allowed=keys
        )
    if kind == "missing":
        return ConfigError(_PLAIN_WORDS[kind], key=key)
    problem = _PLAIN_WORDS.get(kind, _sentence(detail["msg"]))
    return ConfigError(problem, key=key, value=_short(detail["input"]), allowed=_literals(types, detail))


def _as_refused(refused: Refused, key: str, value: object) -> ConfigError:
    return ConfigError(
        refused.problem,
        key=".".join(part for part in (key, refused.key) if part),
        value=_short(value if refused.value is None else refused.value),
        allowed=refused.allowed,
        next_step=refused.next_step,
    )


def _sentence(message: str) -> str:
    text = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return text.replace("Input should be", "must be", 1)


def _literals(types: Iterable[Any], detail: ErrorDetails) -> list[str]:
    if detail["type"] not in {"literal_error", "enum"}:
        return []
    found = [str(item) for kind in types if get_origin(kind) is Literal for item in get_args(kind)]
    return found or re.findall(r"'([^']*)'", str(detail.get("ctx", {}).get("expected", "")))


def _short(value: Any) -> Any:
    try:
        whole = repr(value)
    except (RecursionError, ValueError):  # nested too deep, or an integer of thousands of digits
        return f"a {type(value).__name__} too large to show"
    return value if len(whole) <= _LONGEST_VALUE else reprlib.repr(value)


def _placed(error: ConfigError, source: str, prefix: str) -> ConfigError:
    key = ".".join(part for part in (prefix, error.key) if part)
    return ConfigError(
        error.problem, source=source, key=key, value=error.value, allowed=error.allowed, next_step=error.next_step
    )


def _path(model: type[BaseModel], detail: ErrorDetails) -> list[str]:
    """Return the keys that a user wrote; an unknown or missing one at the end is in no model."""
    path, _ = _walk(model, detail["loc"])
    if detail["type"] != "extra_forbidden":
        return path
    return [*_walk(model, detail["loc"][:-1])[0], str(detail["loc"][-1])]


def _walk(model: type[BaseModel], location: Sequence[int | str]) -> tuple[list[str], list[Any]]:
    """Follow a pydantic location through the model: the keys on the way, and the types that are allowed at its end.

    Locations also hold the tags of unions, which no user wrote: a part that leads nowhere is such a tag.
    """
    path: list[str] = []
    types: list[Any] = [model]
    for part in location:
        below = [kind for item in types for kind in _below(item, part)]
        if below:
            types = below
            path.append(str(part))
    return path, types


def _below(kind: Any, part: int | str) -> list[Any]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = [field for name, field in kind.model_fields.items() if part in {name, field.alias}]
        return [flat for field in fields for flat in _flat(field.annotation)]
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(part, str) and arguments:
        return _flat(arguments[-1])
    if origin in {list, tuple, set, frozenset, Sequence} and isinstance(part, int) and arguments:
        return _flat(arguments[0])
    return []


def _flat(kind: Any) -> list[Any]:
    if get_origin(kind) is Annotated:
        return _flat(get_args(kind)[0])
    if get_origin(kind) in {Union, UnionType}:
        return [flat for argument in get_args(kind) for flat in _flat(argument)]
    return [kind]


def _models(types: Iterable[Any]) -> list[type[BaseModel]]:
    return [kind for kind in types if isinstance(kind, type) and issubclass(kind, BaseModel)]


def _broken_yaml(text: str, source: str, error: yaml.MarkedYAMLError) -> ConfigError:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return ConfigError(f"broken YAML: {error.problem}", source=source)
    lines = text.splitlines()
    excerpt = lines[mark.line] if mark.line < len(lines) else "the end of the file"
    return ConfigError(
        f"broken YAML at line {mark.line + 1}, column {mark.column + 1}: {error.problem}",
        source=source,
        value=_short(excerpt),
    )


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} stands twice")
        found[key] = value
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader that refuses a key twice, and reads 1e-3 as a number, which YAML 1.1 takes for text."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except ValueError as error:  # such as 2026-02-31, which looks like a date
            raise yaml.constructor.ConstructorError(None, None, str(error), node.start_mark) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for name, _ in node.value:
            if isinstance(name, yaml.ScalarNode) and name.tag != "tag:yaml.org,2002:merge":
                if name.value in seen:
                    problem = f"the key {name.value!r} stands twice"
                    raise yaml.constructor.ConstructorError(None, None, problem, name.start_mark)
                seen.add(name.value)
        return super().construct_mapping(node, deep=deep)


_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(?:\d+|\d+\.\d*|\.\d+)[eE][-+]?\d+"), list("-+.0123456789")
)
