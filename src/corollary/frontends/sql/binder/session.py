"""What all parts of the binder share while one statement is bound."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from sqlglot import exp

from corollary.core.logic import Value
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.frontends.sql.binder.problems import check_arguments, problem
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

CONSTANT_MIN_ROWS = 200
"""So many rows of literals are data of a question, and not a rule or a comparison for each."""


@dataclass(slots=True)
class BindingSession:
    """The text, the relations, the parameters, and the numbers that were given out.

    Attributes:
        bind_nested: binds a query inside another one, whose scope is given.
        takes_rows: whether many literals may become `ConstantRows`, which a view has no place for.
    """

    file: SourceFile
    catalog: SqlCatalog
    parameters: Mapping[str, Value]
    bind_nested: Callable[[exp.Expr, Scope], Query]
    takes_rows: bool = False
    _sources: int = 0
    _tables: set[str] = field(default_factory=set)

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
        return problem(code, message, node, self.file, note)

    def check(self, node: exp.Expr, *handled: str) -> None:
        """Refuse a node with other arguments than these."""
        check_arguments(node, handled, self.file)
