"""INSERT, DELETE and UPDATE: what they read and write, and the operations that they become.

Those that are written again are remembered by shape, as questions are. The rows of `INSERT …
VALUES` are the values themselves, if these fit the columns: nothing is bound, planned or computed.
"""

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import pyarrow as pa

from corollary.core.arrow import arrow_type, from_python, group_rows, sort_rows, to_python
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.core.types import Kind
from corollary.core.values import is_value
from corollary.data_class import dataclass
from corollary.database.pending_commit import DeferredOperations
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.program.names import writable_relation
from corollary.database.reading.question_plans import QuestionPlans, QuestionShape
from corollary.database.reading.shape_plans import ShapeCache, ShapePlan
from corollary.database.state import DatabaseState
from corollary.database.transaction import Transaction
from corollary.database.writing.operations import Operation
from corollary.database.writing.rows import check_rows
from corollary.errors import InputError
from corollary.frontends.sql.binder.bind import Finish
from corollary.frontends.sql.binder.widening import finished
from corollary.frontends.sql.catalog import TableDefinition, visible_catalog
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.constraints import find_table
from corollary.frontends.sql.statements.definitions import free_tables
from corollary.frontends.sql.statements.kept_texts import column_defaults
from corollary.frontends.sql.statements.parser import parse_statements
from corollary.frontends.sql.statements.questions import StatementPlace
from corollary.frontends.sql.statements.shapes import TextShape, is_write, plain_cells
from corollary.frontends.sql.statements.writes import (
    returned_columns,
    rows_to_delete,
    rows_to_insert,
    rows_to_update,
    with_defaults,
)
from corollary.source import SourceFile

_TOLD_APART = frozenset({Kind.NUMBER, Kind.SYMBOL, Kind.DATE, Kind.BOOL})
"""The kinds of values that are equal if they are so in Python."""


@dataclass(frozen=True, slots=True)
class ResolvedWrite:
    """A statement that fits the program.

    Attributes:
        table: what it writes to.
        relation: the same in the engine.
        tree: the question for its rows.
        place: where it is written, and how its rows become those of the table.
        reads: the relations that the question reads, in small letters.
    """

    statement: nodes.Write
    table: TableDefinition
    relation: Relation
    tree: Any
    place: StatementPlace
    reads: frozenset[str]

    @property
    def assigned(self) -> frozenset[int]:
        """The columns that an UPDATE assigns."""
        if not isinstance(self.statement, nodes.UpdateStatement):
            return frozenset()
        names = [column.name.lower() for column in self.table.columns]
        return frozenset(names.index(name.text.lower()) for name, _ in self.statement.assignments)

    def operations(self, rows: pa.Table) -> list[Operation]:
        """Return what it does with the rows of its question.

        A row that a source asserts cannot be deleted here: who writes DELETE expects it to be gone.

        Raises:
            InputError: a row does not fit.
        """
        relation = self.relation
        self._refuse_nulls(rows)
        match self.statement:
            case nodes.Insert():
                return [Operation(State.ADDED, relation.name, _fitting(rows, relation))]
            case nodes.Delete():
                gone = _fitting(rows, relation)
                return [Operation(State.REMOVED, relation.name, gone, is_strict=True)]
            case nodes.UpdateStatement():
                width = relation.arity
                gone = _fitting(rows.select(list(range(width))), relation)
                come = _fitting(rows.select(list(range(width, 2 * width))), relation)
                return [
                    Operation(State.REMOVED, relation.name, gone, is_strict=True),
                    Operation(State.ADDED, relation.name, come),
                ]

    def _refuse_nulls(self, rows: pa.Table) -> None:
        """Refuse nulls in the rows to be written, where a column is NOT NULL.

        Raises:
            InputError: one has a null.
        """
        statement, relation = self.statement, self.relation
        if isinstance(statement, nodes.Delete):
            return
        given = rows.select(list(range(rows.num_columns - relation.arity, rows.num_columns)))
        for at, (name, type_) in enumerate(zip(relation.columns, relation.types, strict=True)):
            if type_.nullable or not given.column(at).null_count:
                continue
            named = (
                [column for column, _ in statement.assignments]
                if isinstance(statement, nodes.UpdateStatement)
                else statement.columns
            )
            spans = [each.span for each in named if each.text.lower() == name.lower()]
            raise InputError.of(
                "C1374",
                f"`{name}` of `{relation.name}` is NOT NULL, but a row has no value for it.",
                spans[0] if spans else statement.span,
                f"leave these rows out, or give them a value, as in `COALESCE({name}, …)`",
            )


def _fitting(rows: pa.Table, relation: Relation) -> list[tuple[Any, ...]] | pa.Table:
    """Return the rows of a question as those of a relation.

    Raises:
        InputError: one does not fit.
    """
    rows = rows.rename_columns(list(relation.columns))
    is_same = rows.schema.types == [arrow_type(each) for each in relation.types]
    has_records = any(each.record is not None for each in relation.types)
    return rows if is_same and not has_records else check_rows(rows, relation)


def resolve_write(
    loaded: LoadedProgram, statement: nodes.Write, place: StatementPlace
) -> ResolvedWrite:
    """Return a statement with what it reads and writes.

    Raises:
        InputError: it does not fit the program.
    """
    catalog = visible_catalog(loaded.program)
    table = find_table(catalog, statement.table.text, statement.table.span)
    normal = loaded.normal
    if normal.relations[normal.bases.get(table.relation, table.relation)].is_derived:
        raise InputError.of(
            "C0915",
            f"`{table.relation}` is a view, so its rows cannot be written.",
            statement.table.span,
            "write to the tables that it reads",
        )
    relation = writable_relation(normal, table.relation, statement.table.span)
    defaults = column_defaults(loaded.program, table.relation)
    statement = with_defaults(statement, table, defaults)
    tree, finish = _question(statement, table)
    reads = frozenset(free_tables(tree))
    place = replace(place, finish=finish)
    if reads:  # which is computed later, but has to fit now
        place.bind(tree, catalog)
    return ResolvedWrite(statement, table, relation, tree, place, reads)


def _question(statement: nodes.Write, table: TableDefinition) -> tuple[Any, Finish]:
    match statement:
        case nodes.Insert():
            return statement.query, rows_to_insert(statement, table)
        case nodes.Delete():
            return rows_to_delete(statement, table), finished
        case nodes.UpdateStatement():
            return rows_to_update(statement, table)


def merged_operations(
    writes: Sequence[ResolvedWrite], rows: Sequence[pa.Table], statement: nodes.Merge
) -> list[Operation]:
    """Return what the writes of a MERGE do: rows go before others come.

    Raises:
        InputError: a row does not fit, or has several rows of the source that change it.
    """
    width = writes[0].relation.arity
    gone = [
        each.select(list(range(width))).rename_columns([f"c{at}" for at in range(width)])
        for each, write in zip(rows, writes, strict=True)
        if not isinstance(write.statement, nodes.Insert)
    ]
    if gone:
        changed = pa.concat_tables(gone, promote_options="permissive")
        if group_rows(changed, changed.column_names).num_rows < changed.num_rows:
            raise InputError.of(
                "C1374",
                f"Several rows of the source change one row of `{writes[0].table.relation}`.",
                statement.span,
                "leave one of them, as with `QUALIFY row_number() OVER (…) = 1`",
            )
    found = [
        done for write, each in zip(writes, rows, strict=True) for done in write.operations(each)
    ]
    return sorted(found, key=lambda each: each.sign is not State.REMOVED)


# --- writes that are done together -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TouchedRows:
    """The rows of its relation that a write reads, removes or adds; it reads nothing else.

    Attributes:
        columns: some of the relation.
        values: what the rows have in these columns.
    """

    columns: tuple[int, ...]
    values: frozenset[tuple[Any, ...]]

    def is_apart_from(self, other: "TouchedRows") -> bool:
        """Return whether none of the rows can be one of others."""
        few, many = sorted((self, other), key=lambda each: len(each.columns))
        if not set(few.columns) <= set(many.columns):
            return False
        at = [many.columns.index(each) for each in few.columns]
        return few.values.isdisjoint(tuple(row[each] for each in at) for row in many.values)


@dataclass(frozen=True, slots=True)
class Returning:
    """Columns of the rows that are written: their numbers, and how they are called."""

    relation: Relation
    columns: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, write: ResolvedWrite) -> "Returning | None":
        """Return what a write returns, if it does."""
        if not write.statement.returning:
            return None
        return cls(write.relation, returned_columns(write.statement, write.table))

    def rows(self, operations: Sequence[Operation]) -> pa.Table:
        """Return the rows of operations."""
        relation = self.relation
        tables = [
            each.rows
            if isinstance(each.rows, pa.Table)
            else from_python([row[: relation.arity] for row in each.rows], relation)
            for each in operations
        ]
        types = [arrow_type(each) for each in relation.types]
        parts = [[each.column(at).cast(types[at]) for each in tables] for at, _ in self.columns]
        columns = [pa.chunked_array([one for each in part for one in each.chunks], types[at])
                   for part, (at, _) in zip(parts, self.columns, strict=True)]  # fmt: skip
        return pa.table(columns, [name for _, name in self.columns])


def digest_rows(rows: pa.Table) -> str:
    """Return what tells rows from others, whatever their order."""
    return hashlib.sha256(repr(to_python(sort_rows(rows))).encode()).hexdigest()


@dataclass(slots=True)
class PreparedWrite:
    """An INSERT, DELETE or UPDATE that was read.

    Attributes:
        relation: what it writes to.
        reads: the relations that it reads, in small letters.
        operations: returns what it does, on the state that the commit follows.
        touched: the rows that it reads, removes or adds, if that is known.
        number: of its text.
        rows: how many rows it has found, when that was called.
        returning: what it returns of the rows that it writes, if it does.
        returned: these rows, when that was called.
        expected: the digest of those that were returned before, if they were.
    """

    relation: str
    reads: frozenset[str]
    operations: Callable[[], list[Operation]]
    touched: TouchedRows | None = None
    number: int = 0
    rows: int = 0
    returning: Returning | None = None
    returned: pa.Table | None = None
    expected: str | None = None

    def deferred(self) -> DeferredOperations:
        """Return what it does, for `Transaction.read`.

        Raises:
            InputError: it gives other rows than were returned before.
        """
        found = self.operations()
        written = [each for each in found if each.sign is State.ADDED] or found
        self.rows = sum(len(each.rows) for each in written)
        if self.returning is not None:
            self.returned = self.returning.rows(written)
            if self.expected not in (None, digest_rows(self.returned)):
                raise InputError.of(
                    "C1385",
                    f"Another commit has changed the rows of `{self.relation}` that were returned.",
                    None,
                    "do the transaction again",
                )
        return DeferredOperations(found, {})


@dataclass(slots=True)
class PreparedWrites:
    """Writes that are done together.

    Attributes:
        texts: how many texts they come from.
    """

    texts: int
    writes: list[PreparedWrite] = field(default_factory=list)

    def apply_to(self, transaction: Transaction) -> None:
        """Add them to a transaction."""
        for each in self.writes:
            transaction.read(each.deferred)

    @classmethod
    def apply_all(cls, group: Sequence["PreparedWrites"], transaction: Transaction) -> None:
        """Add writes to a transaction of which none depends on another of the group."""
        if any(len(each.writes) > 1 for each in group):
            for each in group:
                each.apply_to(transaction)
            return
        writes = [one for each in group for one in each.writes]
        transaction.read(
            lambda: DeferredOperations(
                _merged([done for each in writes for done in each.deferred().operations]), {}
            )
        )

    @property
    def returned(self) -> pa.Table | None:
        """The rows that the write returns, if there is only one."""
        return self.writes[0].returned if len(self.writes) == 1 else None

    def row_counts(self) -> list[int]:
        """Return how many rows the writes of each text have found, after the commit."""
        counts = [0] * self.texts
        for each in self.writes:
            counts[each.number] = each.rows
        return counts


def _merged(operations: Sequence[Operation]) -> list[Operation]:
    """Return operations on different rows, those with the same sign as one."""
    alike: dict[Hashable, list[Operation]] = {}
    for each in operations:
        key = each.sign, each.relation, each.is_strict, type(each.rows)
        alike.setdefault(key, []).append(each)
    found = []
    for every in alike.values():
        if isinstance(every[0].rows, list):
            rows: Any = [row for each in every for row in each.rows]
        else:
            names = every[0].rows.column_names
            rows = pa.concat_tables([pa.table(each.rows.columns, names) for each in every])
        found.append(replace(every[0], rows=rows))
    return found


# --- shapes ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WriteShape:
    """What is made for writes of a shape.

    Attributes:
        write: the statement of the shape.
        question: finds its rows, if they are not the values themselves.
        cells: the parameters in its rows, None for null; None if there is a question.
    """

    write: ResolvedWrite
    question: QuestionShape | None
    cells: tuple[tuple[str | None, ...], ...] | None = None

    @property
    def plan(self) -> ShapePlan | None:
        """The plan of the question."""
        return None if self.question is None else self.question.plan

    def operations(self, state: DatabaseState, values: Mapping[str, Any]) -> list[Operation] | None:
        """Return what a write of the shape does; None if it has to be compiled.

        Raises:
            InputError, LimitError: it fails.
        """
        if self.question is not None:
            return self.write.operations(self.question.answer(state, values).arrow())
        relation, rows = self.write.relation, self._plain_rows(values)
        if not all(all(map(is_value, row, relation.types)) for row in rows):
            return None
        return [Operation(State.ADDED, relation.name, rows)]

    def touched(self, values: Mapping[str, Any]) -> TouchedRows | None:
        """Return the rows that a write of the shape reads, removes or adds, if that is known."""
        types = self.write.relation.types
        if self.cells is not None:
            return TouchedRows(tuple(range(len(types))), frozenset(self._plain_rows(values)))
        lookup = None if self.question is None else self.question.lookup
        if lookup is None or self.write.assigned & set(lookup.bound):
            return None
        if any(types[each].kind not in _TOLD_APART for each in lookup.bound):
            return None
        return TouchedRows(lookup.bound, frozenset({tuple(values[each] for each in lookup.names)}))

    def _plain_rows(self, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        assert self.cells is not None
        return [tuple(None if name is None else values[name] for name in row) for row in self.cells]


def recall_write(
    state: DatabaseState, text: str, parameters: Mapping[str, Any]
) -> tuple[WriteShape, Mapping[str, Any]] | None:
    """Return what is made for the shape of a write, and the values of its parameters.

    It is None the first time, and if the write has to be compiled as it is written.
    """
    if not is_write(text):
        return None
    shape = TextShape.of(text, parameters)
    if shape is None:
        return None
    try:
        found = ShapeCache.of(state).recall(shape.key, lambda: _make_shape(state, shape))
    except InputError:  # compiled as it is written, it gets its message
        return None
    return None if found is None else (found, shape.values)


def _make_shape(state: DatabaseState, shape: TextShape) -> WriteShape | None:
    file = SourceFile("SQL", shape.text)
    statements = parse_statements(file)
    if len(statements) != 1 or not isinstance(statements[0], nodes.Write):
        return None
    first = statements[0]
    if isinstance(first, nodes.Insert) and (first.is_overwriting or first.conflict is not None):
        return None
    place = StatementPlace(file, shape.values)
    write = resolve_write(state.loaded, statements[0], place)
    catalog = visible_catalog(state.program)
    cells = _cells_of(write)
    if cells is not None:
        write.place.bind(write.tree, catalog)
        return WriteShape(write, None, cells)
    tree, written = write.tree.copy(), write.tree.copy()
    question = QuestionPlans(state).compile(shape, tree, written, write.place, catalog)
    return None if question is None else WriteShape(write, question)


def _cells_of(write: ResolvedWrite) -> tuple[tuple[str | None, ...], ...] | None:
    """Return the parameters in the rows of an INSERT of plain values."""
    statement, relation = write.statement, write.relation
    given = plain_cells(statement.query) if isinstance(statement, nodes.Insert) else None
    if given is None or len(write.table.columns) != relation.arity:
        return None
    assert isinstance(statement, nodes.Insert)
    names = [column.name.lower() for column in write.table.columns]
    targets = [names.index(each.text.lower()) for each in statement.columns]
    rows = []
    for cells in given:
        named = dict(zip(targets or range(len(cells)), cells, strict=True))
        rows.append(tuple(named.get(at) for at in range(relation.arity)))
    return tuple(rows)
