"""The lexical syntax that parser and printer share: functions, operators, reserved words, names."""

import unicodedata

FUNCTIONS = (
    "cat",
    "strlen",
    "substr",
    "ord",
    "range",
    "to_number",
    "to_string",
    "to_float",
    "to_unsigned",
    "to_decimal",
    "to_date",
    "to_timestamp",
)
"""Functions that are called as `f(x, y)`, besides `min` and `max`."""

TIME_FUNCTIONS = (
    *("year", "quarter", "month", "day", "week_year", "week", "weekday", "day_of_year"),
    *("hour", "minute", "second", "microsecond"),
    *("days_between", "seconds_between", "microseconds_between"),
    *("add_days", "add_months", "add_seconds"),
    *("start_of_year", "start_of_quarter", "start_of_month", "start_of_week"),
    *("start_of_day", "start_of_hour", "start_of_minute", "start_of_second"),
    *("format_time", "parse_date", "parse_time"),
)
"""Functions of dates and times; their names are not reserved."""

OPEN_FUNCTIONS = (
    *TIME_FUNCTIONS,
    *("and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "same", "is_null"),
    *("like", "rlike", "starts_with", "ends_with", "has_text"),
    *("if", "coalesce", "null_if", "greatest", "least", "try"),
    *("multiply", "divide", "rem", "fit", "round_to", "floor", "ceil", "abs", "sign"),
    *("sqrt", "power", "to_integer"),
    *("upper", "lower", "trim", "ltrim", "rtrim", "reverse", "initcap", "replace"),
    *("substring", "left", "right", "position", "lpad", "rpad", "repeat", "split_part"),
    *("regexp_replace", "regexp_extract", "chr", "ascii"),
    *("parse_integer", "parse_float", "parse_decimal", "parse_bool"),
    *("parse_day", "parse_moment", "show"),
    "window",
)
"""Functions whose names are not reserved: relations and variables may be called so."""

TODAY = "today"
"""A function without arguments, whose name is not reserved either."""

COUNTER = "autoinc"
"""A function without arguments: the number of an assignment, from 0."""

EXTREMES = ("min", "max")
"""Both a function of two or more arguments and an aggregate."""

PRECEDENCE = {
    "lor": 1,
    "lxor": 2,
    "land": 3,
    "bor": 4,
    "bxor": 5,
    "band": 6,
    "bshl": 7,
    "bshr": 7,
    "bshru": 7,
    "+": 8,
    "-": 8,
    "*": 9,
    "/": 9,
    "%": 9,
    "^": 11,
}
"""The precedence of infix operators, as in Soufflé."""

PREFIXES = {"neg": "-", "bnot": "bnot", "lnot": "lnot"}
"""Prefix operators: the name of the functor, and the sign or word in the text."""

PREFIX_PRECEDENCE = 10
RIGHT_ASSOCIATIVE = frozenset({"^"})

RESERVED = frozenset(
    {
        *FUNCTIONS,
        *EXTREMES,
        *(word for word in PRECEDENCE if word.isalpha()),
        "bnot",
        "lnot",
        "count",
        "sum",
        "mean",
        "match",
        "contains",
        "true",
        "false",
        "null",
        "nil",
        "as",
        COUNTER,
    }
)
"""Words that cannot be names of variables or relations, except in backquotes."""

HINTS = ("inline", "no_inline", "magic", "no_magic", "brie", "btree", "btree_delete", "overridable")
"""Qualifiers of a declaration that do not change its meaning."""


def normalised_name(name: str) -> str:
    """Return a name without backquotes as it is stored: letters with accents are one character.

    >>> len("e\N{COMBINING ACUTE ACCENT}"), len(normalised_name("e\N{COMBINING ACUTE ACCENT}"))
    (2, 1)
    """
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def is_bare_word(name: str) -> bool:
    """Whether a name of a column or parameter needs no backquotes.

    >>> is_bare_word("count"), is_bare_word("größe"), is_bare_word("my rel")
    (True, True, False)
    """
    return name != "_" and _is_plain(name.removeprefix("?"))


def _is_plain(name: str) -> bool:
    return name.isidentifier() and normalised_name(name) == name


def is_bare_name(name: str) -> bool:
    """Whether a name of a variable needs no backquotes.

    >>> is_bare_name("x"), is_bare_name("count"), is_bare_name("link.base")
    (True, False, False)
    """
    return is_bare_word(name) and name not in RESERVED


def is_bare_relation(name: str) -> bool:
    """Whether a name of a relation, which may have dots, needs no backquotes.

    >>> is_bare_relation("link.base")
    True
    """
    return is_bare_name(name) or ("." in name and all(map(_is_plain, name.split("."))))
