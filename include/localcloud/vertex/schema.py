"""JSON of protocol buffers: read as strictly as Google's parser does, written with enums as names or numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localcloud.vertex.errors import bad_payload

_TABLES = json.loads(Path(__file__).with_name("message_types.json").read_text(encoding="utf-8"))
_MESSAGES: dict[str, dict[str, str]] = _TABLES["messages"]
_ONEOFS: dict[str, dict[str, str]] = _TABLES["oneofs"]
_ENUMS: dict[str, dict[str, int]] = _TABLES["enums"]
_PACKAGE = "type.googleapis.com/google.cloud.aiplatform.v1."
_ENUM_FULL_NAMES = {"Strategy": "Scheduling.Strategy", "ReservationAffinityType": "ReservationAffinity.Type"}
_DURATION = re.compile(r"(-?[0-9]{1,12})(\.[0-9]{1,9})?s")
_LONGEST_DURATION = 315_576_000_000
_INTEGER = re.compile(r"-?[0-9]+")
_RANGES = {"int32": 2**31, "int64": 2**63}


def parse_message(kind: str, value: Any, root: str) -> dict[str, Any]:
    """Return `value` as message `kind` in canonical JSON: camelCase, enum names, int64 as strings.

    :param root: name of the request's body field, which Google's wording begins paths with.
    :raises ApiError: 400 that names every field which does not belong or does not fit.
    """
    parser = _Parser()
    message = parser.message(kind, value, root)
    if parser.violations:
        raise bad_payload(parser.violations)
    return message


def enums_as_numbers(kind: str, value: Any) -> Any:
    """Return a canonical message with its enums as numbers, as `$alt=json;enum-encoding=int` asks."""
    if kind in _ENUMS:
        return _ENUMS[kind].get(value, value)
    if kind.startswith("list<"):
        return [enums_as_numbers(kind[5:-1], item) for item in value]
    if kind in _MESSAGES:
        fields = _MESSAGES[kind]
        return {key: enums_as_numbers(fields[key], item) for key, item in value.items()}
    return value


def snake_case(name: str) -> str:
    """Return the protocol buffer's name of a JSON field."""
    return re.sub(r"[A-Z]", lambda found: "_" + found.group().lower(), name)


def enum_names(kind: str) -> tuple[str, ...]:
    """Return the names of an enum, in the order of its definition."""
    return tuple(_ENUMS[kind])


def _is_duration(value: str) -> bool:
    found = _DURATION.fullmatch(value)
    return found is not None and abs(int(found[1])) <= _LONGEST_DURATION


class _Parser:
    """Collects every violation, since Google tells all of them at once."""

    def __init__(self) -> None:
        self.violations: list[tuple[str, str]] = []

    def message(self, kind: str, value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            self._invalid(path, _PACKAGE + kind, value)
            return {}
        names = {spelling: name for name in _MESSAGES[kind] for spelling in (name, snake_case(name))}
        result: dict[str, Any] = {}
        for key, item in value.items():
            if key not in names:
                self._unknown(path, key)
            elif item is not None:
                name = names[key]
                self._check_oneof(kind, name, result, path)
                result[name] = self._value(_MESSAGES[kind][name], item, f"{path}.{snake_case(name)}")
        return result

    def _value(self, kind: str, value: Any, path: str) -> Any:
        if kind.startswith("list<"):
            return self._list(kind[5:-1], value, path)
        if kind.startswith("map<"):
            return self._map(value, path)
        if kind in _MESSAGES:
            return self.message(kind, value, path)
        if kind in _ENUMS:
            return self._enum(kind, value, path)
        return self._scalar(kind, value, path)

    def _list(self, kind: str, value: Any, path: str) -> list[Any]:
        if not isinstance(value, list):
            self._unknown_shape(path, "Proto field is not repeating, cannot start list.", value)
            return []
        return [self._value(kind, item, f"{path}[{index}]") for index, item in enumerate(value)]

    def _map(self, value: Any, path: str) -> dict[str, str]:
        if not isinstance(value, Mapping):
            self._invalid(path, "Map", value)
            return {}
        return {str(key): self._scalar("string", item, f"{path}[{key}]") for key, item in value.items()}

    def _enum(self, kind: str, value: Any, path: str) -> str:
        names = _ENUMS[kind]
        numbers = {number: name for name, number in names.items()}
        if isinstance(value, str) and value in names:
            return value
        if isinstance(value, int) and not isinstance(value, bool) and value in numbers:
            return numbers[value]
        self._invalid(path, _PACKAGE + _ENUM_FULL_NAMES.get(kind, kind), value)
        return ""

    def _scalar(self, kind: str, value: Any, path: str) -> Any:
        if kind in _RANGES:
            return self._integer(kind, value, path)
        if kind == "bool" and isinstance(value, bool):
            return value
        if kind in {"string", "Timestamp"} and isinstance(value, str):
            return value
        if kind == "Duration" and isinstance(value, str) and _is_duration(value):
            return value
        shown = {"bool": "TYPE_BOOL", "string": "TYPE_STRING"}.get(kind, f"type.googleapis.com/google.protobuf.{kind}")
        self._invalid(path, shown, value)
        return None

    def _integer(self, kind: str, value: Any, path: str) -> Any:
        try:
            whole = _INTEGER.fullmatch(value) if isinstance(value, str) else value == int(value)
            number = int(value) if whole else None
        except (TypeError, ValueError, OverflowError):
            number = None
        if number is None or isinstance(value, bool) or not -_RANGES[kind] <= number < _RANGES[kind]:
            self._invalid(path, f"TYPE_{kind.upper()}", value)
            return None
        return str(number) if kind == "int64" else number

    def _check_oneof(self, kind: str, name: str, result: dict[str, Any], path: str) -> None:
        group = _ONEOFS.get(kind, {})
        if name in group and any(other in result for other in group if group[other] == group[name] and other != name):
            text = f"oneof field '{group[name]}' is already set. Cannot set '{name}'"
            self.violations.append((path, f"Invalid value at '{path}' (oneof), {text}"))

    def _unknown(self, path: str, key: str) -> None:
        text = f"Invalid JSON payload received. Unknown name {json.dumps(key)} at '{path}': Cannot find field."
        self.violations.append((path, text))

    def _unknown_shape(self, path: str, problem: str, value: Any) -> None:
        holder, _, name = path.rpartition(".")
        text = f"Invalid JSON payload received. Unknown name \"{name}\" at '{holder}': {problem}"
        if not isinstance(value, Mapping):
            text = f"Invalid value at '{path}' (repeated), {json.dumps(value)}"
        self.violations.append((holder, text))

    def _invalid(self, path: str, kind: str, value: Any) -> None:
        self.violations.append((path, f"Invalid value at '{path}' ({kind}), {json.dumps(value)}"))
