"""Records and values of algebraic data types as text, which is also what is stored of them.

    value := nil | [ field, … ] | $Branch | $Branch( field, … )

As in Soufflé, a symbol inside is written without quotes. It gets them where the text could not be
read back: where it has a comma or the closing bracket in it, or begins with a quote or a space.
Given its type, each value has exactly one text, so that two values are equal if their texts are.

A record nested ten thousand levels deep is a value like any other: nothing here is recursive.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any, NamedTuple

from corollary.core.logic import Value
from corollary.core.types import NIL, PLAIN_BRANCH, Branch, RecordType, Type
from corollary.data_class import dataclass

Build = Callable[[Branch | None, Sequence[Any]], Any]
"""Makes something of a branch and what was made of its fields; nil has no branch."""

_SPACE = re.compile(r"\s*")
_BRANCH_NAME = re.compile(r"\$\s*([^\s(),\[\]\"$]+)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_BARE = {"]": re.compile(r"[^,\]]*"), ")": re.compile(r"[^,)]*")}
NEEDS_QUOTES = {"]": r'[,\]]|^["\s]', ")": r'[,)]|^["\s]'}
"""The symbols that get quotes, by the bracket that closes what they are in."""

_NEEDS_QUOTES = {close: re.compile(pattern) for close, pattern in NEEDS_QUOTES.items()}


class ScalarText(NamedTuple):
    """How values that are not records are written and read."""

    format: Callable[[Value, Type], str]
    parse: Callable[[str, Type], Value]


@dataclass(frozen=True, slots=True)
class RecordParts:
    """A value taken apart: its branch, and the values of its fields; records inside are texts."""

    branch: str
    fields: tuple[Value, ...] = ()


def closing_bracket(branch: str) -> str:
    """Return the bracket at the end of the values of a branch.

    >>> closing_bracket("[]"), closing_bracket("Leaf")
    (']', ')')
    """
    return "]" if branch == PLAIN_BRANCH else ")"


def quote_field(text: str, close: str) -> str:
    """Return a symbol as it stands in a record that ends with a bracket.

    >>> quote_field("a b", "]"), quote_field("a, b", "]"), quote_field("f(x)", ")")
    ('a b', '"a, b"', '"f(x)"')
    """
    return text if _NEEDS_QUOTES[close].search(text) is None else quoted(text)


def quoted(text: str) -> str:
    r"""Return a symbol in quotes.

    >>> print(quoted('say "a"'))
    "say \"a\""
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def record_text(branch: Branch, fields: Sequence[str]) -> str:
    """Return the text of a value, given the texts of its fields, symbols quoted as they must be."""
    if branch.name == PLAIN_BRANCH:
        return f"[{', '.join(fields)}]"
    return f"${branch.name}({', '.join(fields)})" if fields else f"${branch.name}"


def field_text(value: Value, type_: Type, close: str, scalars: ScalarText) -> str:
    """Return a field's value as it stands in a record."""
    if type_.record is not None:
        return str(value)
    text = scalars.format(value, type_)
    return quote_field(text, close) if isinstance(value, str) else text


def make_record(branch: Branch, fields: Sequence[Value], scalars: ScalarText) -> str:
    """Return the text of a value, given the values of its fields; records inside are texts."""
    close = closing_bracket(branch.name)
    pairs = zip(fields, branch.types, strict=True)
    return record_text(branch, [field_text(*each, close, scalars) for each in pairs])


def parse_record(text: str, record: RecordType, scalars: ScalarText) -> str:
    """Return the one text of a value that may be written with other spaces and quotes.

    Raises:
        ValueError: the text is not a value of the type; the message says why, without the text.
    """

    def build(branch: Branch | None, fields: Sequence[Any]) -> str:
        return NIL if branch is None else make_record(branch, fields, scalars)

    return str(read_record(text, record, scalars, build))


def read_record(text: str, record: RecordType, scalars: ScalarText, build: Build) -> Any:
    """Return what `build` makes of a value, innermost records first."""
    return _Reader(text, scalars).whole(record, build)


@lru_cache(maxsize=1 << 16)
def split_record(text: str, record: RecordType, scalars: ScalarText) -> RecordParts:
    """Take the text of a value apart, one level deep."""
    return _Reader(text, scalars).parts(record)


def print_record(
    text: str, record: RecordType, scalars: ScalarText, print_scalar: Callable[[Value, Type], str]
) -> str:
    """Return a value as a term of the language, where symbols have quotes."""

    def build(branch: Branch | None, fields: Sequence[Any]) -> str:
        if branch is None:
            return NIL
        pairs = zip(fields, branch.types, strict=True)
        return record_text(
            branch,
            [value if type_.record else print_scalar(value, type_) for value, type_ in pairs],
        )

    return str(read_record(text, record, scalars, build))


@dataclass(slots=True)
class _Open:
    """A record of which some fields are read."""

    record: RecordType
    branch: Branch
    values: list[Any] = field(default_factory=list)


class _Reader:
    """Reads the text of one value from left to right."""

    def __init__(self, text: str, scalars: ScalarText) -> None:
        self._text = text
        self._at = 0
        self._scalars = scalars

    def whole(self, record: RecordType, build: Build) -> Any:
        """Return what `build` makes of the whole text."""
        value = self._value(record, build)
        self._skip_space()
        if self._at < len(self._text):
            raise self._error(record)
        return value

    def parts(self, record: RecordType) -> RecordParts:
        """Return the branch and the fields; the text is known to be that of a value."""
        branch = self._begin(record)
        if branch is None:
            return RecordParts(NIL)
        values: list[Value] = []
        for type_ in branch.types:
            if values:
                self._take(",")
            self._skip_space()
            if type_.record is None:
                values.append(self._scalar(type_, closing_bracket(branch.name), record))
            else:
                start = self._at
                self._value(type_.record, lambda *_: None)
                values.append(self._text[start : self._at])
        return RecordParts(branch.name, tuple(values))

    def _value(self, record: RecordType, build: Build) -> Any:
        opened: list[_Open] = []
        wanted: RecordType | None = record
        while True:
            if wanted is not None:
                branch = self._begin(wanted)
                if branch is not None and branch.types:
                    opened.append(_Open(wanted, branch))
                else:
                    value = build(branch, ())
                    if not opened:
                        return value
                    opened[-1].values.append(value)
            last = opened[-1]
            if len(last.values) == len(last.branch.types):
                self._expect(closing_bracket(last.branch.name), last.record)
                value = build(last.branch, last.values)
                opened.pop()
                if not opened:
                    return value
                opened[-1].values.append(value)
                wanted = None
                continue
            if last.values:
                self._expect(",", last.record)
            type_ = last.branch.types[len(last.values)]
            wanted = type_.record
            if wanted is None:
                close = closing_bracket(last.branch.name)
                last.values.append(self._scalar(type_, close, last.record))

    def _begin(self, record: RecordType) -> Branch | None:
        """Read a value up to its first field, or to its end if it has none; nil has no branch."""
        self._skip_space()
        if not record.is_algebraic:
            if self._text.startswith(NIL, self._at):
                self._at += len(NIL)
                return None
            branch = record.branches[PLAIN_BRANCH]
            self._expect("[", record)
            if not branch.types:
                self._expect("]", record)
            return branch
        found = _BRANCH_NAME.match(self._text, self._at)
        if found is None or found[1] not in record.branches:
            raise self._error(record)
        branch = record.branches[found[1]]
        self._at = found.end()
        if branch.types:
            self._expect("(", record)
        elif self._take("("):
            self._expect(")", record)
        return branch

    def _scalar(self, type_: Type, close: str, record: RecordType) -> Value:
        self._skip_space()
        quoted = _QUOTED.match(self._text, self._at)
        if quoted is not None:
            self._at = quoted.end()
            text = _ESCAPE.sub(r"\1", quoted[1])
        else:
            found = _BARE[close].match(self._text, self._at)
            assert found is not None
            self._at = found.end()
            text = found[0]
        try:
            is_symbol = type_.is_symbol
            return self._scalars.parse(text if is_symbol else text.strip(), type_)
        except ValueError as error:
            raise ValueError(f"is not a value of `{record.name}`: {error}") from None

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        assert found is not None
        self._at = found.end()

    def _take(self, sign: str) -> bool:
        self._skip_space()
        if not self._text.startswith(sign, self._at):
            return False
        self._at += len(sign)
        return True

    def _expect(self, sign: str, record: RecordType) -> None:
        if not self._take(sign):
            raise self._error(record)

    def _error(self, record: RecordType) -> ValueError:
        where = f" at character {self._at + 1}" if 0 < self._at < len(self._text) else ""
        return ValueError(f"is not a value of `{record.name}`{where}")
