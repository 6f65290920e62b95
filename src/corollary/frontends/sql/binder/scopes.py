"""Which columns a name can mean: the sources of a query, and those of the queries around it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from corollary.data_class import dataclass
from corollary.frontends.sql.query_tree import (
    ColumnReference,
    Expression,
    FunctionCall,
    Query,
    QueryColumn,
)


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A common table expression, under the name that all its references share.

    Attributes:
        query: None if it is recursive.
    """

    name: str
    columns: tuple[QueryColumn, ...]
    query: Query | None


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column that can be named, and what it stands for.

    Attributes:
        source: the source in front of the column, for messages; a column of `USING` has none.
        is_bound: whether the expression is one after grouping.
    """

    name: str
    expression: Expression
    source: str = ""
    is_bound: bool = False


@dataclass(frozen=True, slots=True)
class ScopeSource:
    """A source in `FROM`, under its alias or name."""

    name: str
    columns: tuple[ScopeColumn, ...]

    def is_called(self, name: str) -> bool:
        """Whether a qualifier means it: its name, or the end of a name with dots."""
        return name.lower() in self.qualifiers()

    def qualifiers(self) -> list[str]:
        """Return what can stand before its columns, in small letters."""
        parts = self.name.lower().split(".")
        return [".".join(parts[at:]) for at in range(len(parts))]


@dataclass(slots=True)
class Scope:
    """The names inside one query.

    Attributes:
        sources: in the order of the text.
        visible: the columns of `*`, which can be named without a source.
        outer: the scope of the query around.
        keys: in a grouped query, what its keys became, by the key: only they can be named from
            inside subqueries.
        tables: the common table expressions that can be named, by their names in small letters.
    """

    outer: "Scope | None" = None
    sources: tuple[ScopeSource, ...] = ()
    visible: tuple[ScopeColumn, ...] = ()
    keys: dict[Expression, Expression] | None = None
    tables: Mapping[str, CommonTable] = field(default_factory=dict)
    _columns: dict[tuple[str | None, str], list[ScopeColumn]] | None = field(
        default=None, init=False, compare=False, repr=False
    )

    def joined(self, other: "Scope") -> "Scope":
        """Return the scope with the sources of both."""
        return replace(
            self, sources=self.sources + other.sources, visible=self.visible + other.visible
        )

    def padded(self) -> "Scope":
        """Return the scope on the side of an outer join that may have no row."""
        return replace(
            self,
            sources=tuple(replace(s, columns=_padded_columns(s.columns)) for s in self.sources),
            visible=_padded_columns(self.visible),
        )

    def find(self, name: str, qualifier: str | None) -> list[ScopeColumn]:
        """Return the columns of this scope that a name can mean."""
        if self._columns is None:
            self._columns = defaultdict(list)
            for column in self.visible:
                self._columns[None, column.name.lower()].append(column)
            for source in self.sources:
                for called in source.qualifiers():
                    for column in source.columns:
                        self._columns[called, column.name.lower()].append(column)
        key = None if qualifier is None else qualifier.lower(), name.lower()
        return self._columns.get(key, [])

    def around(self) -> Iterator[tuple[int, "Scope"]]:
        """Yield this scope and those around it, each with its distance."""
        depth, scope = 0, self
        while True:
            yield depth, scope
            if scope.outer is None:
                return
            depth, scope = depth + 1, scope.outer


def _padded_columns(columns: tuple[ScopeColumn, ...]) -> tuple[ScopeColumn, ...]:
    return tuple(replace(c, expression=nullable(c.expression)) for c in columns)


def nullable(expression: Expression) -> Expression:
    """Return a column, or a merged column of `USING`, on a side that may have no row."""
    if isinstance(expression, FunctionCall):
        inner = tuple(nullable(each) for each in expression.arguments)
        return replace(expression, arguments=inner, type=expression.type.with_null(True))
    return replace(expression, type=expression.type.with_null(True))


def shifted(expression: Expression, depth: int) -> Expression:
    """Return a column, or a merged column of `USING`, as an inner query names it."""
    if depth == 0:
        return expression
    if isinstance(expression, FunctionCall):
        return replace(
            expression, arguments=tuple(shifted(each, depth) for each in expression.arguments)
        )
    if isinstance(expression, ColumnReference):
        return replace(expression, depth=expression.depth + depth)
    return expression


def source_scope(name: str, number: int, columns: tuple[QueryColumn, ...], around: Scope) -> Scope:
    """Return the scope of one source; `around` is the scope of its query, before its sources."""
    found = tuple(
        ScopeColumn(column.name, ColumnReference(number, index, column.type), name)
        for index, column in enumerate(columns)
    )
    return replace(around, sources=(ScopeSource(name, found),), visible=found)
