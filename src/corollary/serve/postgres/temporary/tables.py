"""The temporary tables of a session, and the questions that writes to them become.

A table is never changed: each write makes another one, so that a transaction, or a savepoint, goes
back by taking up the tables that it began with.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp
from sqlglot.tokenizer_core import Token

from corollary.core.arrow import arrow_type, group_rows
from corollary.core.program import Program, RelationKind
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.frontends.sql.binder.session import type_name
from corollary.frontends.sql.catalog import catalog_of
from corollary.frontends.sql.query_tree import QueryColumn
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.parser import parse_statements
from corollary.frontends.sql.statements.tables import lay_out_table
from corollary.serve.handlers.failures import service_error
from corollary.serve.postgres.copy_in import CopiedRows
from corollary.serve.postgres.problems import PgError, not_supported, pg_error
from corollary.serve.postgres.relations import TEMPORARY_SCHEMA, VisibleRelation, VisibleRelations
from corollary.serve.postgres.statements import StatementSource, parse_source
from corollary.serve.postgres.translation import SPARK, spark_text
from corollary.source import SourceFile

TEMPORARY_MAX_BYTES = 64 << 20
"""How much the temporary tables of a session may hold."""
_WORDS = ("TEMP", "TEMPORARY")
_SCOPES = ("LOCAL", "GLOBAL")
_IS_WRITTEN, _GIVEN = "is written", "given"


class OnCommit(StrEnum):
    """What happens to a temporary table at the end of a transaction."""

    PRESERVE = "PRESERVE ROWS"
    DELETE = "DELETE ROWS"
    DROP = "DROP"


class TemporaryTable:
    """A table as it is between two writes.

    Attributes:
        relation: its columns; its name is one that no client can write.
        rows: all of them.
        keys: the columns of its primary key and of each UNIQUE.
    """

    def __init__(
        self,
        relation: VisibleRelation,
        rows: pa.Table,
        keys: tuple[tuple[str, ...], ...] = (),
        on_commit: OnCommit = OnCommit.PRESERVE,
    ) -> None:
        self.relation, self.rows = relation, rows
        self.keys, self.on_commit = keys, on_commit
        self._sent: tuple[bool, CopiedRows] | None = None

    @classmethod
    def empty(cls, relation: VisibleRelation, *given: Any) -> "TemporaryTable":
        """Return a table without rows."""
        arrays = [pa.nulls(0, arrow_type(each.type)) for each in relation.columns]
        return cls(relation, pa.table(arrays, [each.name for each in relation.columns]), *given)

    def with_rows(self, rows: pa.Table) -> "TemporaryTable":
        """Return the table with other rows.

        Raises:
            PgError: they do not fit it.
        """
        name = self.relation.name.removeprefix(f"{TEMPORARY_SCHEMA}.")
        arrays = []
        for column, values in zip(self.relation.columns, rows.columns, strict=True):
            if values.null_count and not column.type.nullable:
                raise PgError("23502", f"`{column.name}` of `{name}` is NOT NULL.")
            arrays.append(values.cast(arrow_type(column.type)))
        found = pa.table(arrays, self.rows.column_names)
        for key in self.keys:
            known = found.select(list(key))
            for each in key:  # rows without a value are not compared
                known = known.filter(pc.is_valid(known.column(each)))
            if group_rows(known, key).num_rows < known.num_rows:
                listed = ", ".join(key)
                raise PgError("23505", f"Two rows of `{name}` have the same ({listed}).")
        return TemporaryTable(self.relation, found, self.keys, self.on_commit)

    def as_given(self) -> list[Any]:
        """Return how the table comes with a question: its columns, whether it is a bag, a file."""
        if self._sent is None:
            names = [str(at) for at in range(self.rows.num_columns)]
            numbered = self.rows.rename_columns(names)
            ones = pa.repeat(pa.scalar(1, pa.int64()), numbered.num_rows)
            found = group_rows(numbered.append_column("n", ones), names, [("n", "sum")])
            is_bag = found.num_rows < numbered.num_rows
            found = found.select([*names, *["n_sum"] * is_bag])
            self._sent = is_bag, CopiedRows.of(self.relation, found)
        is_bag, sent = self._sent
        columns = [[each.name, str(each.type)] for each in self.relation.columns]
        return [columns, is_bag, sent.file.name]


class TemporaryTables:
    """The temporary tables of a session, by their names in small letters."""

    def __init__(self) -> None:
        self.tables: dict[str, TemporaryTable] = {}
        self._numbers: dict[str, int] = {}
        self._merged: tuple[VisibleRelations, Any, VisibleRelations] | None = None

    def create(self, made: "TemporaryDefinition", columns: Iterable[QueryColumn]) -> TemporaryTable:
        """Return a new table without rows; one that is made again has the same inner name."""
        number = self._numbers.setdefault(made.name.lower(), len(self._numbers) + 1)
        inner = f"{TEMPORARY_SCHEMA}.{number}"
        relation = VisibleRelation(inner, tuple(columns), RelationKind.BASE)
        return TemporaryTable.empty(relation, made.keys, made.on_commit)

    def put(self, name: str, table: TemporaryTable) -> None:
        """Let a name stand for a table from now on.

        Raises:
            PgError: the tables of the session would have too much.
        """
        others = (each for key, each in self.tables.items() if key != name.lower())
        if sum(each.rows.nbytes for each in (*others, table)) > TEMPORARY_MAX_BYTES:
            raise PgError(
                "53200",
                f"The temporary tables of a session have at most {TEMPORARY_MAX_BYTES >> 20} MB.",
                "drop some, or write the rows to a table of the warehouse",
            )
        self.tables[name.lower()] = table

    def merged(self, relations: VisibleRelations) -> VisibleRelations:
        """Return what a statement may name."""
        if not self.tables:
            return relations
        own = {name: each.relation for name, each in self.tables.items()}
        if self._merged is None or self._merged[0] is not relations or self._merged[1] != own:
            names = {name: each.name for name, each in own.items()}
            every = VisibleRelations((*relations.values(), *own.values()), names)
            self._merged = relations, own, every
        return self._merged[2]

    def named(self, tree: exp.Expr | None) -> tuple[str, TemporaryTable] | None:
        """Return the temporary table that a table of a statement is, with its name."""
        while isinstance(tree, exp.Schema):
            tree = tree.this
        if not isinstance(tree, exp.Table) or tree.db.lower() not in ("", TEMPORARY_SCHEMA):
            return None
        for name, table in self.tables.items():
            if tree.name.lower() in (name, table.relation.name):
                return name, table
        return None

    def given(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the tables that come with a question, by the names of their relations.

        Raises:
            PgError: one is not there any more.
        """
        found = {each.relation.name: each for each in self.tables.values()}
        if not found.keys() >= {*names}:
            raise PgError("42P01", "A temporary table of the statement is not there any more.")
        return {name: found[name].as_given() for name in names}

    def commit(self) -> None:
        """Do what the tables want at the end of a transaction."""
        for name, table in [*self.tables.items()]:
            if table.on_commit is OnCommit.DROP:
                del self.tables[name]
            elif table.on_commit is OnCommit.DELETE:
                self.tables[name] = table.with_rows(table.rows.slice(0, 0))


# --- definitions --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TemporaryDefinition:
    """CREATE TEMPORARY TABLE.

    Attributes:
        columns: their names and types; only names, where a query has the types, or none.
        query: gives the rows.
        has_data: whether the rows of the query are taken.
    """

    name: str
    if_not_exists: bool
    on_commit: OnCommit
    columns: tuple[QueryColumn, ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()
    names: tuple[str, ...] = ()
    query: exp.Expr | None = None
    has_data: bool = True


def read_temporary(source: StatementSource) -> TemporaryDefinition | None:
    """Return the temporary table that a statement creates; None if it does something else.

    Raises:
        PgError: it cannot be read, or the table has what only others have.
    """
    tokens = list(source.tokens)
    words = [each.text.upper() for each in tokens]
    at = 1 + (len(words) > 1 and words[1] in _SCOPES)
    if words[0] != "CREATE" or words[at : at + 1] not in [[each] for each in _WORDS]:
        return None
    del tokens[1 : at + 1]
    on_commit = _take_on_commit(tokens)
    words = [each.text.upper() for each in tokens[-3:]]
    has_data = words != ["WITH", "NO", "DATA"]
    if not has_data or words[1:] == ["WITH", "DATA"]:
        del tokens[-3 if not has_data else -2 :]
    tree = parse_source(replace(source, tokens=tokens))
    if not isinstance(tree, exp.Create) or tree.args.get("kind") != "TABLE":
        raise not_supported("Only tables are temporary.", "leave TEMPORARY out, or use WITH")
    target, query = tree.this, tree.args.get("expression")
    table = target.this if isinstance(target, exp.Schema) else target
    if table.db.lower() not in ("", TEMPORARY_SCHEMA):
        raise PgError("42P16", "A temporary table is in no other schema than `pg_temp`.")
    made = TemporaryDefinition(
        table.name, bool(tree.args.get("exists")), on_commit, query=query, has_data=has_data
    )
    if query is not None:
        listed = target.expressions if isinstance(target, exp.Schema) else []
        return replace(made, names=tuple(each.name for each in listed))
    columns, keys = _read_columns(tree)
    return replace(made, columns=columns, keys=keys)


def _take_on_commit(tokens: list[Token]) -> OnCommit:
    words = [each.text.upper() for each in tokens]
    for at in range(len(words) - 2):
        if words[at : at + 2] == ["ON", "COMMIT"]:
            for each in OnCommit:
                end = at + 2 + len(each.split())
                if words[at + 2 : end] == each.split():
                    del tokens[at:end]
                    return each
    return OnCommit.PRESERVE


def _read_columns(
    tree: exp.Create,
) -> tuple[tuple[QueryColumn, ...], tuple[tuple[str, ...], ...]]:
    """Return the columns of a table, and its keys."""
    try:
        (table,) = parse_statements(SourceFile("statement.sql", spark_text(tree)))
        assert isinstance(table, nodes.CreateTable)
        layout = lay_out_table(table)
    except InputError as error:
        raise pg_error(service_error(error)) from None
    constraints = [each for each in table.constraints if isinstance(each, nodes.KeyConstraint)]
    if len(constraints) < len(table.constraints) or any(each.default for each in table.columns):
        raise not_supported(
            "Temporary tables have columns, NOT NULL and keys.",
            "leave DEFAULT, CHECK and REFERENCES out",
        )
    (found,) = catalog_of(Program(declarations=(layout.declaration,))).find(table.name.text)
    spelled = {each.name.lower(): each.name for each in found.columns}
    keys = [tuple(spelled[name.text.lower()] for name in each.columns) for each in constraints]
    return found.columns, tuple(keys)


# --- writes -------------------------------------------------------------------------------------


def written_rows(tree: exp.Expr, table: TemporaryTable) -> exp.Select:
    """Return the question that says what a write does to a temporary table.

    Raises:
        PgError: it is a write of another kind, or names a column that is not there.
    """
    match tree:
        case exp.Insert() if not tree.args.get("conflict"):
            return inserted_rows(tree, table.relation.columns)
        case exp.Update() | exp.Delete():
            return changed_rows(tree, table.relation.columns)
        case _:
            raise not_supported("ON CONFLICT is for tables of the warehouse.", "leave it out")


def inserted_rows(
    tree: exp.Insert, columns: Sequence[QueryColumn], *, is_whole: bool = True
) -> exp.Select:
    """Return the question for the rows that an INSERT adds.

    Args:
        tree: the INSERT.
        columns: of its table.
        is_whole: whether columns that it does not name are null; if not, they are left out.

    Raises:
        PgError: it names a column that is not there.
    """
    types = {each.name.lower(): each for each in columns}
    listed = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
    named = [each.name.lower() for each in listed] or list(types)
    for name in named:
        if name not in types:
            raise PgError("42703", f"There is no column `{name}` to insert into.")
    numbered = [exp.to_identifier(f"c{at}") for at in range(len(named))]
    alias = exp.TableAlias(this=exp.to_identifier(_GIVEN), columns=numbered)
    given = {name: exp.column(f"c{at}", _GIVEN) for at, name in enumerate(named)}
    found = [
        _cast(given.get(name, exp.null()), each)
        for name, each in types.items()
        if is_whole or name in given
    ]
    source = exp.Subquery(this=tree.expression.copy(), alias=alias)
    return exp.select(*found).from_(source)


def changed_rows(tree: exp.Update | exp.Delete, columns: Sequence[QueryColumn]) -> exp.Select:
    """Return the question for the rows after an UPDATE, and those that it or a DELETE finds.

    Raises:
        PgError: it reads other tables, or names a column that is not there.
    """
    if tree.args.get("from_") or tree.args.get("using"):
        raise not_supported("A temporary table is changed by itself.", "use a subquery")
    where = tree.args.get("where")
    found: exp.Expr = exp.true() if where is None else where.this.copy()
    found = exp.func("COALESCE", found, exp.false(), dialect=SPARK)
    assigned = {}
    if isinstance(tree, exp.Update):
        assigned = {each.this.name.lower(): each.expression for each in tree.expressions}
    known = {each.name.lower() for each in columns}
    if not known >= assigned.keys():
        name = next(name for name in assigned if name not in known)
        raise PgError("42703", f"There is no column `{name}` to change.")
    selected = []
    for each in columns:
        value: exp.Expr = exp.column(exp.to_identifier(each.name, quoted=True))
        new = assigned.get(each.name.lower())
        if new is not None:
            value = exp.Case(ifs=[exp.If(this=found.copy(), true=new.copy())], default=value)
        selected.append(_cast(value, each))
    selected.append(exp.alias_(found, _IS_WRITTEN, quoted=True))
    return exp.select(*selected).from_(tree.this.copy())


def _cast(value: exp.Expr, column: QueryColumn) -> exp.Expr:
    kind = exp.DataType.build(type_name(_plain(column.type)), dialect=SPARK)
    return exp.alias_(exp.cast(value, kind), column.name, quoted=True)


def _plain(type_: Type) -> Type:
    return type_.with_null(False)


def write_rows(
    table: TemporaryTable, tree: exp.Expr, found: pa.Table
) -> tuple[TemporaryTable, pa.Table]:
    """Return a table after a write, and the rows that were written.

    Args:
        table: before it.
        tree: the write.
        found: the rows of its question.

    Raises:
        PgError: they do not fit.
    """
    names = table.rows.column_names
    if isinstance(tree, exp.Insert):
        added = table.with_rows(found.rename_columns(names)).rows
        return table.with_rows(pa.concat_tables([table.rows, added]).combine_chunks()), added
    is_written = found.column(_IS_WRITTEN)
    rows = found.drop_columns([_IS_WRITTEN]).rename_columns(names)
    written = rows.filter(is_written)
    if isinstance(tree, exp.Delete):
        return table.with_rows(rows.filter(pc.invert(is_written))), written
    return table.with_rows(rows), written


def returned_rows(tree: exp.Expr, written: pa.Table) -> pa.Table | None:
    """Return what RETURNING gives of the rows that were written; None without it."""
    returning = tree.args.get("returning")
    if returning is None:
        return None
    spelled = {name.lower(): name for name in written.column_names}
    arrays, names = [], []
    for each in returning.expressions:
        for name in spelled.values() if each.is_star else [each.unalias().name]:
            if name.lower() not in spelled:
                raise PgError("42703", f"RETURNING gives columns; there is no `{name}`.")
            arrays.append(written.column(spelled[name.lower()]))
            names.append(name if each.is_star else each.alias_or_name)
    return pa.table(arrays, names)
