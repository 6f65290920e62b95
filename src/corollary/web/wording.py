"""How the page words things: numbers, times, values, signs. Filters of all templates."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from corollary.core.printer import print_relation, print_string
from corollary.core.values import iso_moment

THOUSAND, MILLION, BILLION = 1_000, 1_000_000, 1_000_000_000
MINUTE, HOUR, DAY = 60, 3_600, 86_400
LETTERS = {"date": "d", "timestamp": "t"}
"""What stands before the quotes of a value that is no text."""


def number(value: float | None) -> str:
    """Return a number with separators; nothing is a dash.

    >>> number(12345), number(None)
    ('12,345', '–')
    """
    return "–" if value is None else f"{value:,}"


def short_number(value: int | None) -> str:
    """Return a number in at most five characters.

    >>> short_number(987), short_number(12_345), short_number(3_003_510)
    ('987', '12.3k', '3.0M')
    """
    if value is None:
        return "–"
    for size, letter in ((BILLION, "G"), (MILLION, "M"), (THOUSAND, "k")):
        if abs(value) >= size:
            scaled = value / size
            return f"{scaled:.0f}{letter}" if scaled >= 100 else f"{scaled:.1f}{letter}"
    return str(value)


def ago(timestamp: str | None, now: datetime | None = None) -> str:
    """Return how long ago something was, in one unit.

    >>> ago("2026-11-15T08:00:00Z", iso_moment("2026-11-15T08:02:30Z"))
    '2 min'
    """
    if not timestamp:
        return ""
    seconds = ((now or datetime.now(UTC)) - iso_moment(timestamp)).total_seconds()
    if seconds < 10:
        return "now"
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def moment(timestamp: str | None) -> str:
    """Return a timestamp for people, in UTC.

    >>> moment("2026-11-15T08:00:00.123456Z")
    '2026-11-15 08:00:00 UTC'
    """
    return "" if not timestamp else f"{iso_moment(timestamp):%Y-%m-%d %H:%M:%S} UTC"


def literal(value: Any, type_: str = "") -> str:
    """Return a value of JSON as a program writes it.

    >>> literal("a"), literal(3, "unsigned"), literal(None), literal("2026-11-15", "date")
    ('"a"', '3u', 'null', 'd"2026-11-15"')
    """
    word = type_.removesuffix("?")
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        is_whole = not word.startswith(("float", "decimal"))
        return f"{value}{'u' if word == 'unsigned' else '' if is_whole else '.0'}"
    if isinstance(value, float):
        return repr(value)
    if word.startswith("float"):
        return f"to_float({print_string(value.lower())})"
    if word.startswith("decimal"):
        return str(value)
    return f"{LETTERS.get(word, '')}{print_string(value)}"


def cell(value: Any) -> str:
    """Return a value as a cell of a table shows it: texts without quotes."""
    return value if isinstance(value, str) else literal(value)


def goal(relation: str, row: Sequence[Any], types: Sequence[str]) -> str:
    """Return a tuple as a program writes it.

    >>> goal("link", ["a", 3], ["symbol", "number"])
    'link("a", 3)'
    """
    values = (literal(value, type_) for value, type_ in zip(row, types, strict=True))
    return f"{print_relation(relation)}({', '.join(values)})"


def without_sign(text: str) -> str:
    """Return a literal without its negation."""
    return text.removeprefix("!")


def json_lines(changes: Sequence[Mapping[str, Any]]) -> str:
    """Return changes as the lines that `corollary apply --changes` takes."""
    return "\n".join(json.dumps(each, ensure_ascii=False) for each in changes)


FILTERS: dict[str, Callable[..., Any]] = {
    "number": number,
    "short_number": short_number,
    "ago": ago,
    "moment": moment,
    "literal": literal,
    "cell": cell,
    "goal": goal,
    "without_sign": without_sign,
    "json_lines": json_lines,
}
"""By the names that templates use."""
