"""What the binder says about a statement: errors with a place, and refusals of what is unknown."""

from collections.abc import Collection
from dataclasses import replace

from sqlglot import exp

from corollary.core.types import SYMBOL, Type
from corollary.errors import InputError
from corollary.frontends.sql.parse import span_of, text_of
from corollary.source import SourceFile

QUOTED_MAX_CHARS = 40
"""A longer part of a statement is shown by its place only."""

UNTYPED = replace(SYMBOL, nullable=True, precision=-1)
"""The type of the literal `NULL` before its context gives it one."""

_CLAUSES = {
    "laterals": ("LATERAL VIEW", "join a table that has one row per element"),
    "hint": ("A hint", "leave it out: the order of joins is chosen by cost"),
    "sample": ("TABLESAMPLE", "choose rows by a condition on a column"),
    "pivots": ("PIVOT", "write one aggregate with FILTER (WHERE …) for each column"),
    "qualify": ("QUALIFY", "put the window function into a subquery, and its condition around it"),
    "version": ("VERSION AS OF", "ask for a commit where the whole statement is asked"),
    "when": ("TIMESTAMP AS OF", "ask for a time where the whole statement is asked"),
    "sort": ("SORT BY", "write ORDER BY"),
    "cluster": ("CLUSTER BY", "leave it out: rows have no place"),
    "distribute": ("DISTRIBUTE BY", "leave it out: rows have no place"),
    "locks": ("FOR UPDATE", "leave it out: a statement reads one state"),
    "into": ("SELECT INTO", "create a view, or insert the rows"),
    "match": ("MATCH_RECOGNIZE", "join the rows that follow each other"),
    "by_name": ("BY NAME", "write the columns of both sides in the same order"),
    "except_": ("EXCEPT in a list of columns", "name the columns"),
    "replace": ("REPLACE in a list of columns", "name the columns"),
    "rename": ("RENAME in a list of columns", "name the columns"),
    "ordinality": ("WITH ORDINALITY", "leave it out"),
}


def problem(
    code: str, message: str, node: exp.Expr, file: SourceFile, note: str | None
) -> InputError:
    """Return an error at the place of a node."""
    return InputError.of(code, message, span_of(node, file), note)


def type_name(type_: Type) -> str:
    """Return the name of a type in SQL.

    >>> from corollary.core.types import decimal
    >>> type_name(decimal(5, 2)), type_name(SYMBOL)
    ('DECIMAL(5,2)', 'STRING')
    """
    if type_.precision < 0:
        return "NULL"
    return "unsigned" if type_.is_unsigned else type_.spark_name


def check_arguments(node: exp.Expr, handled: Collection[str], file: SourceFile) -> None:
    """Refuse a node with an argument that its reader does not know, whatever it may mean."""
    for name, value in node.args.items():
        if name in handled or value is None or value is False or value in ([], ""):
            continue
        part = value[0] if isinstance(value, list) else value
        is_placed = isinstance(part, exp.Expr) and name != "hint"  # hints are parsed by themselves
        place = part if is_placed else node
        words, cure = _CLAUSES.get(name, ("", ""))
        if not words:
            words = f"`{name.rstrip('_').upper().replace('_', ' ')}` of {describe(node)}"
            cure = "leave it out, or write the statement in another way"
        raise problem("C1310", f"{words} is not supported.", place, file, cure)


def describe(node: exp.Expr) -> str:
    """Return a word for the kind of a node."""
    return f"`{type(node).__name__.upper()}`"


def unsupported(node: exp.Expr, file: SourceFile) -> InputError:
    """Return the error of a node of a kind that is not known where it stands."""
    cures = {
        "Lateral": "join a subquery that does not depend on the other sources",
        "Unnest": "join a table that has one row per element",
        "Array": "use a table with one row per element",
        "Bracket": "use a table with one row per element",
        "Struct": "use one column for each field",
        "Lambda": "use a table with one row per element",
        "Interval": "add it to a date or timestamp, or take it away from one",
        "Collate": "compare lower(x), for instance",
        "AtTimeZone": "times are in UTC: add or take away an interval",
        "Parameter": "write a parameter as `:name`",
        "Fetch": "write LIMIT",
        "IgnoreNulls": "filter nulls out before",
        "Order": "leave it out: rows have no order",
    }
    name = type(node).__name__
    words = {"AtTimeZone": "AT TIME ZONE", "IgnoreNulls": "IGNORE NULLS", "Order": "ORDER BY"}
    written = " ".join(text_of(node, file).split())
    if name in ("Collate", "Fetch", *words):
        written = words.get(name, name.upper())
    shown = f"`{written}`" if 0 < len(written) <= QUOTED_MAX_CHARS else "This"
    cure = cures.get(name, "write the statement in another way")
    return problem("C1310", f"{shown} is not supported here.", node, file, cure)
