"""What all parts of the binder share while one statement is bound: its text, names, errors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from sqlglot import exp

from corollary.core.logic import Value
from corollary.core.types import SYMBOL, Type
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.frontends.sql.binder.scopes import Scope
from corollary.frontends.sql.catalog import SqlCatalog
from corollary.frontends.sql.parse import span_of, text_of
from corollary.frontends.sql.query_tree import (
    ConstantRows,
    ConstantValue,
    Expression,
    Query,
    QueryColumn,
)
from corollary.source import SourceFile, Span

QUOTED_MAX_CHARS = 40
"""A longer part of a statement is shown by its place only."""

UNTYPED = replace(SYMBOL, nullable=True, precision=-1)
"""The type of the literal `NULL` before its context gives it one."""

_CLAUSES = {
    "sample": ("TABLESAMPLE", "choose rows by a condition on a column"),
    "version": ("VERSION AS OF", "ask for a commit where the whole statement is asked"),
    "when": ("TIMESTAMP AS OF", "ask for a time where the whole statement is asked"),
    "locks": ("FOR UPDATE", "leave it out: a statement reads one state"),
    "into": ("SELECT INTO", "create a view, or insert the rows"),
    "match": ("MATCH_RECOGNIZE", "join the rows that follow each other"),
    "by_name": ("BY NAME", "write the columns of both sides in the same order"),
    "rename": ("RENAME in a list of columns", "name the columns"),
    "ordinality": ("WITH ORDINALITY", "leave it out"),
}

_NODE_CURES = {
    **dict.fromkeys(("Array", "Bracket"), "use a table with one row per element"),
    "Lambda": "a lambda is the last argument of a function on arrays such as `transform`",
    "Unnest": "join a table that has one row per element",
    "Struct": "use one column for each field",
    "Interval": "add it to a date or timestamp, or take it away from one",
    "Collate": "compare lower(x), for instance",
    "AtTimeZone": "times are in UTC: add or take away an interval",
    "Parameter": "write a parameter as `:name`",
    "Fetch": "write LIMIT",
    "Kwarg": "give the values in their order, without names",
    "Order": "leave it out: rows have no order",
}
_NODE_WORDS = {
    "Collate": "COLLATE",
    "Fetch": "FETCH",
    "AtTimeZone": "AT TIME ZONE",
    "Order": "ORDER BY",
}
"""What nodes are called; others by their text."""


def type_name(type_: Type) -> str:
    """Return the name of a type in SQL.

    >>> from corollary.core.types import decimal
    >>> type_name(decimal(5, 2)), type_name(SYMBOL)
    ('DECIMAL(5,2)', 'STRING')
    """
    if type_.precision < 0:
        return "NULL"
    return "unsigned" if type_.is_unsigned else type_.spark_name


CONSTANT_MIN_ROWS = 200
"""So many rows of literals are data of a question, and not a rule or a comparison for each."""


@dataclass(frozen=True, slots=True)
class UnknownTypes:
    """What binding by PostgreSQL's rules finds out about the types of a statement.

    Texts and parameters are of the type `unknown` until something around them says more, and an
    integer that is divided by an integer gives an integer, as does a date minus a date.

    Attributes:
        parameters: the types of parameters by name; those that are declared are there before.
        texts: the types of texts, by the offsets where they begin.
        divisions: the offsets where integers begin that integers are divided by, and dates that
            are taken from dates.
    """

    parameters: dict[str, Type]
    texts: dict[int, Type] = field(default_factory=dict)
    divisions: set[int] = field(default_factory=set)


@dataclass(slots=True)
class BindingSession:
    """The text, the relations, the parameters, and the numbers that were given out.

    Attributes:
        unknown: takes the types that are found by PostgreSQL's rules; None for Spark's rules.
        steps_max: how many steps binding may take, where no deadline bounds it.
        takes_rows: whether many literals may become `ConstantRows`, which a view has no place for.
        bind_nested: binds a query inside another one, whose scope is given.
    """

    file: SourceFile
    catalog: SqlCatalog
    parameters: Mapping[str, Value]
    takes_rows: bool = False
    unknown: UnknownTypes | None = None
    steps_max: int | None = None
    _steps: int = 0
    _sources: int = 0
    _tables: set[str] = field(default_factory=set)
    bind_nested: Callable[[exp.Expr, Scope], Query] = field(init=False)

    def count_steps(self, count: int) -> None:
        """Count steps of binding; names of the SELECT can make them grow exponentially.

        Raises:
            RecursionError: there are too many.
        """
        self._steps += count
        if self.steps_max is not None and self._steps > self.steps_max:
            raise RecursionError("the names of the statement are nested too deeply")

    def next_source(self) -> int:
        """Return the number of a new source."""
        self._sources += 1
        return self._sources

    def unique_table(self, name: str) -> str:
        """Return a name for a common table expression that no other one has."""
        chosen, number = name, 1
        while chosen.lower() in self._tables:
            number += 1
            chosen = f"{name}{number}"
        self._tables.add(chosen.lower())
        return chosen

    def constant_rows(
        self, rows: Sequence[Sequence[Expression]], columns: tuple[QueryColumn, ...], span: Span
    ) -> ConstantRows | None:
        """Return many rows of literals as plain values; None if they are few, or not literals."""
        has_types = all(column.type.precision >= 0 for column in columns)
        if not self.takes_rows or not has_types or len(rows) < CONSTANT_MIN_ROWS:
            return None
        found: list[tuple[Value, ...]] = []
        for row in rows:
            values = [each.value for each in row if isinstance(each, ConstantValue)]
            if len(values) < len(row):
                return None
            found.append(tuple(values))
        return ConstantRows(tuple(found), columns, span)

    def span(self, node: exp.Expr) -> Span:
        """Return the place of a node."""
        return span_of(node, self.file)

    def text(self, node: exp.Expr) -> str:
        """Return the text of a node."""
        return text_of(node, self.file)

    def error(self, code: str, message: str, node: exp.Expr, note: str | None = None) -> InputError:
        """Return an error at the place of a node."""
        return InputError.of(code, message, span_of(node, self.file), note)

    def check(self, node: exp.Expr, *handled: str) -> None:
        """Refuse a node with an argument that its reader does not know, whatever it may mean."""
        for name, value in node.args.items():
            if name in handled or value is None or value is False or value in ([], ""):
                continue
            part = value[0] if isinstance(value, list) else value
            is_placed = isinstance(part, exp.Expr) and name != "hint"  # parsed by themselves
            words, cure = _CLAUSES.get(name, ("", ""))
            if not words:
                argument = name.rstrip("_").upper().replace("_", " ")
                words = f"`{argument}` of `{type(node).__name__.upper()}`"
                cure = "leave it out, or write the statement in another way"
            place = part if is_placed else node
            raise self.error("C1310", f"{words} is not supported.", place, cure)

    def unsupported(self, node: exp.Expr) -> InputError:
        """Return the error of a node of a kind that is not known where it stands."""
        name = type(node).__name__
        written = _NODE_WORDS.get(name) or " ".join(self.text(node).split())
        shown = f"`{written}`" if 0 < len(written) <= QUOTED_MAX_CHARS else "This"
        cure = _NODE_CURES.get(name, "write the statement in another way")
        return self.error("C1310", f"{shown} is not supported here.", node, cure)
