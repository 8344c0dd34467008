"""Google's list filters (https://google.aip.dev/160), as far as Vertex's lists and Cloud Logging's queries go.

A filter is evaluated in three values: a field that is not known yet answers None, so that a job whose id rules it out
is skipped before its logs are read.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from localcloud.vertex import clock
from localcloud.vertex.errors import ApiError

UNKNOWN = object()
"""What a lookup answers for a field whose value is not known yet."""

Lookup = Callable[[str], object]
Truth = bool | None
_TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\')|(!=|<=|>=|=~|[=<>:()-])|([^\s"\'=<>:()!]+))')
_OPERATORS = {"=", "!=", "<", "<=", ">", ">=", ":"}
_SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Filter:
    """A parsed filter."""

    evaluate: Callable[[Lookup], Truth]

    def accepts(self, lookup: Lookup) -> bool:
        """Return whether what `lookup` describes is wanted, or may be while fields are unknown."""
        return self.evaluate(lookup) is not False


def parse_filter(text: str, fields: Iterable[str]) -> Filter:
    """Return the filter that `text` writes; an empty one accepts everything.

    :param fields: names that may be compared; one that ends in "." allows every key under it.
    :raises ApiError: 400 for a syntax error or a field that cannot be filtered on.
    """
    parser = _Parser(text, tuple(fields))
    return Filter(parser.whole()) if parser.tokens else Filter(lambda lookup: True)


class _Parser:
    """Recursive descent; OR binds tighter than AND, as AIP-160 says, and parts side by side are joined by AND."""

    def __init__(self, text: str, fields: tuple[str, ...]) -> None:
        self.text = text
        self.fields = fields
        self.tokens = _tokens(text)
        self.position = 0

    def whole(self) -> Callable[[Lookup], Truth]:
        result = self._conjunction()
        if self._peek() is not None:
            raise self._error(f"unexpected {self._peek()!r}")
        return result

    def _conjunction(self) -> Callable[[Lookup], Truth]:
        parts = [self._disjunction()]
        while self._peek() not in {None, ")"}:
            self._accept("AND")
            parts.append(self._disjunction())
        return lambda lookup: _all(part(lookup) for part in parts)

    def _disjunction(self) -> Callable[[Lookup], Truth]:
        parts = [self._negation()]
        while self._accept("OR"):
            parts.append(self._negation())
        return lambda lookup: _any(part(lookup) for part in parts)

    def _negation(self) -> Callable[[Lookup], Truth]:
        if self._accept("NOT") or self._accept("-"):
            inner = self._negation()
            return lambda lookup: _not(inner(lookup))
        if self._accept("("):
            inner = self._conjunction()
            self._expect(")")
            return inner
        return self._comparison()

    def _comparison(self) -> Callable[[Lookup], Truth]:
        field = self._take()
        if not any(field == name or (name.endswith(".") and field.startswith(name)) for name in self.fields):
            raise self._error(f"field {field!r} cannot be filtered on")
        sign = self._take()
        if sign not in _OPERATORS:
            raise self._error(f"{sign!r} is not a comparison")
        values = self._values()
        return lambda lookup: _any(_compare(lookup(field), sign, value) for value in values)

    def _values(self) -> list[str]:
        if not self._accept("("):
            return [self._value()]
        values = [self._value()]
        while self._accept("OR"):
            values.append(self._value())
        self._expect(")")
        return values

    def _value(self) -> str:
        # A bare timestamp such as 2026-11-30T02:30:00Z is cut at its colons; they belong together.
        value = self._take()
        while self._peek() == ":" and not value.startswith(('"', "'")):
            value += self._take() + self._take()
        quoted = value[0] in "\"'"
        return re.sub(r"\\(.)", r"\1", value[1:-1]) if quoted else value

    def _peek(self) -> str | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def _accept(self, token: str) -> bool:
        found = self._peek() == token
        self.position += found
        return found

    def _take(self) -> str:
        token = self._peek()
        if token is None:
            raise self._error("unexpected end")
        self.position += 1
        return token

    def _expect(self, token: str) -> None:
        if not self._accept(token):
            raise self._error(f"expected {token!r}")

    def _error(self, problem: str) -> ApiError:
        return ApiError(400, f"Invalid filter: {problem} in {self.text!r}.")


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    while text[position:].strip():
        found = _TOKEN.match(text, position)
        if found is None:
            raise ApiError(400, f"Invalid filter: cannot read {text[position:]!r}.")
        tokens.append(found.group(found.lastindex or 0))
        position = found.end()
    return tokens


def _compare(actual: object, sign: str, wanted: str) -> Truth:
    if actual is UNKNOWN:
        return None
    if sign == ":":
        return _has(actual, wanted)
    if sign in _ORDER:
        return actual is not None and _ORDER[sign](*_ranked(str(actual), wanted))
    text = "" if actual is None else str(actual)
    equal = fnmatchcase(text, wanted) if "*" in wanted else text == wanted
    if isinstance(actual, str) and _is_time(actual):
        equal = clock.parse(actual) == _moment(wanted)
    return equal if sign == "=" else not equal


def _has(actual: object, wanted: str) -> bool:
    if wanted == "*":
        return actual is not None
    return actual is not None and wanted.strip("*").lower() in str(actual).lower()


def _ranked(actual: str, wanted: str) -> tuple[object, object]:
    if actual in _SEVERITIES and wanted in _SEVERITIES:
        return _SEVERITIES.index(actual), _SEVERITIES.index(wanted)
    if not _is_time(actual):
        raise ApiError(400, f"Invalid filter: only times and severities have an order, {actual!r} is neither.")
    return clock.parse(actual), _moment(wanted)


def _is_time(text: str) -> bool:
    return re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", text) is not None


def _moment(text: str) -> object:
    try:
        return clock.parse(text)
    except ValueError:
        raise ApiError(400, f"Invalid filter: {text!r} is not an RFC 3339 time.") from None


def _all(parts: Iterable[Truth]) -> Truth:
    found = list(parts)
    return False if False in found else None if None in found else True


def _any(parts: Iterable[Truth]) -> Truth:
    found = list(parts)
    return True if True in found else None if None in found else False


def _not(part: Truth) -> Truth:
    return None if part is None else not part
