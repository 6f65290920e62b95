"""Records as Python and JSON have them, and back to the text that is stored.

| value           | Python           | JSON             | also taken                   |
|-----------------|------------------|------------------|------------------------------|
| `nil`           | `None`           | `null`           |                              |
| `[1, [2, nil]]` | `(1, (2, None))` | `[1, [2, null]]` | lists; objects by field name |
| `$Leaf(1)`      | `("Leaf", 1)`    | `{"Leaf": [1]}`  | data classes of that name,   |
|                 |                  |                  | `{"Leaf": {"n": 1}}`         |
| `$Empty`        | `("Empty",)`     | `{"Empty": []}`  |                              |

A text is taken as what it says: `"[1, [2, nil]]"`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, is_dataclass
from typing import Any

from corollary.core.logic import Value
from corollary.core.records.record_text import (
    ScalarText,
    closing_bracket,
    parse_record,
    quote_field,
    read_record,
    record_text,
)
from corollary.core.types import NIL, PLAIN_BRANCH, Branch, RecordType, Type
from corollary.data_class import dataclass

ScalarReader = Callable[[Any, Type], Value]
"""Returns what a Python or JSON value is as a field; raises ValueError if it is not one."""


def record_to_python(text: str, record: RecordType, scalars: ScalarText) -> Any:
    """Return a record as tuples."""

    def build(branch: Branch | None, parts: Sequence[Any]) -> Any:
        if branch is None:
            return None
        return tuple(parts) if branch.name == PLAIN_BRANCH else (branch.name, *parts)

    return read_record(text, record, scalars, build)


def record_to_json(
    text: str, record: RecordType, scalars: ScalarText, to_json: Callable[[Any, Type], Any]
) -> Any:
    """Return a record as arrays and objects."""

    def build(branch: Branch | None, parts: Sequence[Any]) -> Any:
        if branch is None:
            return None
        pairs = zip(parts, branch.types, strict=True)
        made = [part if type_.record else to_json(part, type_) for part, type_ in pairs]
        return made if branch.name == PLAIN_BRANCH else {branch.name: made}

    return read_record(text, record, scalars, build)


@dataclass(slots=True)
class _Open:
    """A record of which some fields are converted."""

    branch: Branch
    given: Sequence[Any]
    texts: list[str] = field(default_factory=list)


def record_from_python(
    value: Any, record: RecordType, scalars: ScalarText, read_scalar: ScalarReader
) -> str:
    """Return the text of a record that is given as tuples, lists, objects, a text or data classes.

    Raises:
        ValueError: it is not a value of the type; the message is for users.
    """
    opened: list[_Open] = []
    wanted: tuple[Any, RecordType] | None = (value, record)
    while True:
        if wanted is not None:
            done = _begin(*wanted, scalars, opened)
            if done is not None:
                if not opened:
                    return done
                opened[-1].texts.append(done)
        last = opened[-1]
        at = len(last.texts)
        if at == len(last.branch.types):
            done = record_text(last.branch, last.texts)
            opened.pop()
            if not opened:
                return done
            opened[-1].texts.append(done)
            wanted = None
            continue
        type_ = last.branch.types[at]
        wanted = None if type_.record is None else (last.given[at], type_.record)
        if wanted is None:
            scalar = scalars.format(read_scalar(last.given[at], type_), type_)
            is_symbol = type_.is_symbol
            close = closing_bracket(last.branch.name)
            last.texts.append(quote_field(scalar, close) if is_symbol else scalar)


def _begin(value: Any, record: RecordType, scalars: ScalarText, opened: list[_Open]) -> str | None:
    """Return the text of a value without fields to convert; otherwise open it."""
    if isinstance(value, str):
        try:
            return parse_record(value, record, scalars)
        except ValueError as error:
            raise ValueError(f"{value!r} {error}") from None
    if value is None and not record.is_algebraic:
        return NIL
    name, given = _parts(value, record)
    branch = record.branches.get(name)
    if branch is None or len(given) != len(branch.types):
        raise _no_value(value, record)
    opened.append(_Open(branch, given))
    return None


def _parts(value: Any, record: RecordType) -> tuple[str, Sequence[Any]]:
    """Return the branch and the fields of a value."""
    if is_dataclass(value) and not isinstance(value, type):
        given = [getattr(value, each.name) for each in fields(value)]
        return (type(value).__name__ if record.is_algebraic else PLAIN_BRANCH), given
    if isinstance(value, Mapping):
        if record.is_algebraic:
            if len(value) == 1:
                ((name, given),) = value.items()
                if isinstance(given, list | tuple):
                    return str(name), given
                branch = record.branches.get(str(name))
                if branch is not None and isinstance(given, Mapping) and _fits(given, branch):
                    return branch.name, [given.get(each) for each in branch.fields]
        elif _fits(value, branch := record.branches[PLAIN_BRANCH]):
            return PLAIN_BRANCH, [value.get(each) for each in branch.fields]
    elif isinstance(value, list | tuple):
        if not record.is_algebraic:
            return PLAIN_BRANCH, value
        if value and isinstance(value[0], str):
            return value[0].removeprefix("$"), value[1:]
    raise _no_value(value, record)


def _fits(given: Mapping[Any, Any], branch: Branch) -> bool:
    """Return whether an object has the fields of a branch; one that may be nil may be missing."""
    needed = {
        name
        for name, type_ in zip(branch.fields, branch.types, strict=True)
        if type_.record is None or type_.record.is_algebraic
    }
    return needed <= set(given) <= set(branch.fields)


def _no_value(value: Any, record: RecordType) -> ValueError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
    return ValueError(f"{shown} is not a value of `{record.name}`")
