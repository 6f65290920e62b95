"""Rows under way in a query, the tests that they have to pass, and aggregates of them."""

from dataclasses import field

from sqlglot import exp

from corollary.core.logic import Constant
from corollary.core.pipeline import Reference
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.sqlgen import nodes
from corollary.sqlgen.compiled import MARK, CompiledQuery, InputTable, OutputColumn, Representation
from corollary.sqlgen.dialect import AggregateForm, NotExactError, SqlDialect
from corollary.sqlgen.nodes import Node

FRAME = "f"
"""The name of the rows so far."""

UNIT = "unit"
"""The column of rows without variables."""


INNER = "•"
"""The beginning of the names of values of inner functors."""

SOURCE = "s"
"""The name of the relation that is joined to the rows so far, or of the rows that are grouped."""


def fault_name(name: str) -> str:
    """Return the column that says where the value of an inner functor is missing."""
    return f"{name}!"


@dataclass(slots=True)
class QueryFrame:
    """Rows under way.

    Attributes:
        query: what gives them; None for the one row that binds nothing.
        columns: the variables in their forms, each with its column.
        constants: variables that are bound to a constant, and have no column.
        has_mark: whether there is a column for rows without a value.
    """

    query: exp.Select | None = None
    columns: dict[tuple[Representation, str], str] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    has_mark: bool = False

    def source(self) -> Node:
        """Return the rows as the source of a query."""
        unit = nodes.select([nodes.named(nodes.integer(1, "BIGINT"), UNIT)], None)
        return nodes.subquery(unit if self.query is None else self.query, FRAME)

    def column(self, form: Representation, name: str) -> Node:
        """Return the column of a variable in a form."""
        return nodes.column(self.columns[form, name], FRAME)

    @property
    def mark(self) -> Node | None:
        """The column that marks rows without a value."""
        return nodes.column(MARK, FRAME) if self.has_mark else None


@dataclass(frozen=True, slots=True)
class RowTest:
    """A test of rows.

    Attributes:
        truth: where it is true; None for everywhere.
        possible: where it may be true in a row that lacks some value; None for everywhere.
        fault: where it lacks a value itself.
    """

    truth: Node | None
    possible: Node | None
    fault: Node | None = None


def fault_query(frame: QueryFrame, fault: Node) -> exp.Select:
    """Return the query for a row in which a test for a missing value is true."""
    unit = [nodes.named(nodes.integer(1, "BIGINT"), UNIT)]
    query = nodes.select(unit, frame.source(), fault)
    query.set("limit", exp.Limit(expression=exp.Literal.number(1)))
    return query


class InputColumns:
    """The columns that a query reads of relations."""

    def __init__(self) -> None:
        self._columns: dict[Reference, dict[tuple[Representation, int], None]] = {}

    def use(self, source: Reference) -> Node:
        """Return a relation as the source of a query."""
        self._columns.setdefault(source, {})
        return nodes.table(self._name(source), SOURCE)

    def read(self, source: Reference, form: Representation, column: int) -> Node:
        """Return a column of a relation."""
        self._columns.setdefault(source, {})[form, column] = None
        return nodes.column(f"{form}{column}", SOURCE)

    def tables(self) -> tuple[InputTable, ...]:
        """Return the tables that are read."""
        return tuple(
            InputTable(self._name(source), source, tuple(columns))
            for source, columns in self._columns.items()
        )

    def _name(self, source: Reference) -> str:
        return f"t{list(self._columns).index(source)}"


# --- aggregates ----------------------------------------------------------------------------------


SIGNS = (1, -1)
"""What a derivation that comes or goes counts."""


def count_rows() -> Node:
    """Return the number of rows of a group."""
    return nodes.call("COUNT", exp.Star())


def aggregate_form(operator: str, source: Type, dialect: SqlDialect) -> AggregateForm:
    """Return the form of an aggregate of values of a type.

    Raises:
        NotExactError: it has none.
    """
    found = dialect.aggregates.get((operator, source.kind))
    if found is None:
        raise NotExactError(f"`{operator}` of {source.kind} has no exact form in SQL")
    return found


def sum_last_column(compiled: CompiledQuery, dialect: SqlDialect) -> CompiledQuery:
    """Return a query with one row for each group that agrees in all columns but the last, its sum.

    A sum that is too large is marked.

    Raises:
        NotExactError: the dialect has no such sum.
    """
    *keys, last = compiled.outputs
    names = [f"h{at}" for at in range(sum(each.form is not None for each in compiled.outputs))]
    if last.form is None:
        assert last.constant is not None
        if last.constant.value not in SIGNS:
            # The sum of another constant is rare enough to be left to the local engine.
            raise NotExactError("the sum of a constant has no exact form in SQL")
        total, groups = count_rows(), names
        if last.constant.value == -1:  # derivations that are lost
            total = nodes.binary(exp.Sub, nodes.integer(0, "BIGINT"), total)
    else:
        column = nodes.column(names[-1], SOURCE)
        total, _ = aggregate_form("sum", last.type, dialect)(column, last.type, last.type)
        groups = names[:-1]
    columns = [nodes.column(name, SOURCE) for name in groups]
    items = [nodes.named(each, f"h{at}") for at, each in enumerate((*columns, total))]
    marked = nodes.call("BOOL_OR", nodes.column(MARK, SOURCE)) if compiled.has_mark else None
    mark = nodes.either(nodes.is_null(total), marked)
    items.append(nodes.named(mark, MARK))
    query = nodes.select(items, nodes.subquery(compiled.query, SOURCE), groups=columns)
    outputs = (*keys, OutputColumn(last.type, Representation.VALUE))
    return CompiledQuery(query, compiled.fault_queries, True, outputs, compiled.inputs)
