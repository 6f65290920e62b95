"""What the statements of a client do with its temporary tables; nobody else sees it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from corollary.frontends.sql.query_tree import QueryColumn
from corollary.serve.answers import Answer
from corollary.serve.postgres.copy_in import CopiedRows, CopyReader
from corollary.serve.postgres.parameters import ParameterValue
from corollary.serve.postgres.prepared import (
    PreparedStatement,
    StatementResult,
    check_target,
    prepare_tree,
    target_of,
    write_tag,
)
from corollary.serve.postgres.problems import PgError, not_supported
from corollary.serve.postgres.relations import TEMPORARY_SCHEMA, VisibleRelations
from corollary.serve.postgres.running_statement import RunningStatement
from corollary.serve.postgres.statements import StatementSource, parse_source
from corollary.serve.postgres.temporary.tables import (
    TemporaryDefinition,
    inserted_rows,
    read_temporary,
    returned_rows,
    write_rows,
    written_rows,
)
from corollary.serve.postgres.transaction_block import TransactionBlock
from corollary.serve.postgres.translation import TranslatedStatement
from corollary.serve.type_texts import parse_type


class AskingSession(Protocol):
    """What a session does for the statements about its temporary tables."""

    @property
    def block(self) -> TransactionBlock:
        """The transaction, which has the tables."""

    @property
    def running(self) -> RunningStatement:
        """Computes what takes long."""

    @property
    def notices(self) -> list[str]:
        """What the client is told."""

    async def relations(self) -> VisibleRelations:
        """Return what statements may name."""

    async def translate(
        self, prepared: PreparedStatement, values: Sequence[ParameterValue]
    ) -> TranslatedStatement:
        """Return a statement in Corollary's SQL."""

    async def ask_question(
        self, translated: TranslatedStatement, temporary: frozenset[str]
    ) -> Answer:
        """Answer a question, with the temporary tables that it reads."""


class TemporaryStatements:
    """Statements about temporary tables.

    Args:
        session: whose tables they are.

    Attributes:
        rows: how many rows the last `insert_from` has found.
    """

    def __init__(self, session: AskingSession) -> None:
        self._session = session
        self.rows = 0

    # --- definitions ---------------------------------------------------------------------------

    async def define(self, source: StatementSource) -> str | None:
        """Create, empty or drop temporary tables; None if a statement is about something else.

        Raises:
            PgError: it cannot be done.
        """
        words = {each.text.upper() for each in source.tokens[:2]}
        if "CREATE" in words:
            made = read_temporary(source)
            return None if made is None else await self._create(made)
        if not words & {"DROP", "TRUNCATE"}:
            return None
        tree = parse_source(source)
        is_drop = isinstance(tree, exp.Drop) and tree.args.get("kind") == "TABLE"
        if not (is_drop or isinstance(tree, exp.TruncateTable)):
            return None
        return await self._take_away(tree)

    async def _take_away(self, tree: exp.Expr) -> str | None:
        tables = self._session.block.temporary
        named = tree.args["tables"] if isinstance(tree, exp.Drop) else tree.expressions
        own = [found for each in named if (found := tables.named(each)) is not None]
        if len(own) < len(named):
            relations = await self._session.relations()
            others = [each for each in named if tables.named(each) is None]
            if any(each.name in relations for each in others) or not tree.args.get("exists"):
                if own:
                    raise not_supported("Temporary tables and others are dropped apart.")
                return None
            listed = [f"There is no table `{each.name}`; skipped." for each in others]
            self._session.notices.extend(listed)
        for name, table in own:
            if isinstance(tree, exp.Drop):
                del tables.tables[name]
            else:
                tables.tables[name] = table.with_rows(table.rows.slice(0, 0))
        return "DROP TABLE" if isinstance(tree, exp.Drop) else "TRUNCATE TABLE"

    async def _create(self, made: TemporaryDefinition) -> str:
        session = self._session
        tables = session.block.temporary
        if made.name.lower() in tables.tables:
            if made.if_not_exists:
                return "CREATE TABLE"
            raise PgError("42P07", f"There is a temporary table `{made.name}` already.")
        if made.query is None:
            session.block.write_temporary(made.name, tables.create(made, made.columns))
            return "CREATE TABLE"
        prepare = partial(prepare_tree, made.query, await session.relations())
        prepared = await session.running.compute(prepare)
        translated = await session.translate(prepared, ())
        answer = await session.ask_question(translated, prepared.temporary)
        found = answer.table
        assert found is not None
        names = [*made.names, *found.column_names[len(made.names) :]]
        if len(names) > found.num_columns or len({*names}) < len(names):
            raise PgError("42701", f"`{made.name}` would have two columns of one name.")
        types = [parse_type(each).with_null(True) for each in answer.types]
        columns = [QueryColumn(name, type_) for name, type_ in zip(names, types, strict=True)]
        rows = found if made.has_data else found.slice(0, 0)
        table = tables.create(made, columns).with_rows(rows)
        session.block.write_temporary(made.name, table)
        return f"SELECT {rows.num_rows}"

    # --- writes --------------------------------------------------------------------------------

    async def write(
        self, prepared: PreparedStatement, values: Sequence[ParameterValue]
    ) -> StatementResult:
        """Write to a temporary table, which any client may.

        Raises:
            PgError: the rows do not fit.
        """
        tree, block = prepared.tree, self._session.block
        assert tree is not None
        found = block.temporary.named(tree.this)
        assert found is not None
        name, table = found
        rows = await self._rows_of(prepared, written_rows(tree, table), values)
        made, written = await self._session.running.compute(partial(write_rows, table, tree, rows))
        block.write_temporary(name, made)
        returned = returned_rows(tree, written)
        if returned is not None:
            return StatementResult(write_tag(tree), returned)
        return StatementResult(f"{write_tag(tree)} {written.num_rows}")

    async def insert_from(
        self, prepared: PreparedStatement, values: Sequence[ParameterValue]
    ) -> TranslatedStatement:
        """Return an INSERT of what a question finds that reads temporary tables, as a COPY.

        Raises:
            PgError: it is another write, or its rows do not fit.
        """
        tree, relations = prepared.tree, await self._session.relations()
        assert tree is not None
        check_target(tree, relations)
        if not isinstance(tree, exp.Insert) or any(map(tree.args.get, ("conflict", "returning"))):
            raise not_supported(
                "Only INSERT … SELECT reads temporary tables.",
                "leave ON CONFLICT and RETURNING out, or read the rows first",
            )
        relation = relations[target_of(tree).name]
        question = inserted_rows(tree, relation.columns, is_whole=False)
        rows = await self._rows_of(prepared, question, values)
        self.rows = rows.num_rows
        copied = await self._session.running.compute(partial(CopiedRows.of, relation, rows))
        return TranslatedStatement("", {}, copied=copied)

    def copy(self, reader: CopyReader) -> bool:
        """Take the rows of a COPY to a temporary table; return whether it is to one."""
        tables = self._session.block.temporary
        if not reader.relation.name.startswith(f"{TEMPORARY_SCHEMA}."):
            return False
        found = tables.named(exp.table_(reader.relation.name, quoted=True))
        if found is None:
            raise PgError("42P01", "The temporary table is not there any more.")
        name, table = found
        with pa.memory_map(reader.file.name) as file:
            given = pa.ipc.open_file(file).read_all()
        arrays = [
            given.column(each.name)
            if each.name in given.column_names
            else pa.nulls(given.num_rows, each.type)
            for each in table.rows.schema
        ]
        rows = pa.table(arrays, table.rows.column_names)
        every = pa.concat_tables([table.rows, rows]).combine_chunks()
        self._session.block.write_temporary(name, table.with_rows(every))
        return True

    async def _rows_of(
        self, prepared: PreparedStatement, question: exp.Expr, values: Sequence[ParameterValue]
    ) -> pa.Table:
        """Return the rows of the question that a write becomes."""
        asked = replace(prepared, tree=question, translations={})
        translated = await self._session.translate(asked, values)
        answer = await self._session.ask_question(translated, prepared.temporary)
        assert answer.table is not None
        return answer.table
