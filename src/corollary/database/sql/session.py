"""What `Database.sql` does with statements: questions, changes of data and of the program."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeVar

import pyarrow as pa

from corollary.core.arrow import arrow_type, to_python
from corollary.core.program import NormalProgram, Program, owner_of
from corollary.core.states import State
from corollary.core.titles import show_titles
from corollary.data_class import dataclass
from corollary.database.alterations import alterable_relation, declared_relation
from corollary.database.program import column_edits
from corollary.database.program.column_mapping import Alteration, map_columns
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.program.names import writable_relation
from corollary.database.program.program_edits import load_next_program
from corollary.database.program.question_bounds import bounded_question
from corollary.database.reading import sql_texts
from corollary.database.reading.answer import SqlAnswer
from corollary.database.sql.writes import (
    PreparedWrite,
    PreparedWrites,
    ResolvedWrite,
    Returning,
    TouchedRows,
    merged_operations,
    recall_write,
    resolve_write,
)
from corollary.database.state import DatabaseState
from corollary.database.transaction import Transaction
from corollary.database.writing.operations import Operation
from corollary.database.writing.rows import check_rows
from corollary.errors import InputError
from corollary.explain.forecast import StratumForecast, print_view_maintenance
from corollary.frontends.sql.binder.bind import Finish
from corollary.frontends.sql.catalog import TableDefinition, catalog_of, visible_catalog
from corollary.frontends.sql.parse import span_between
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.constraints import find_table
from corollary.frontends.sql.statements.definitions import PlacedDefinition, free_tables
from corollary.frontends.sql.statements.kept_texts import (
    AlteredStatements,
    altered_view,
    column_defaults,
    edit_program,
)
from corollary.frontends.sql.statements.metadata import metadata_query, table_like
from corollary.frontends.sql.statements.questions import StatementPlace
from corollary.frontends.sql.statements.tables import lay_out_table
from corollary.frontends.sql.statements.tokens import SqlName
from corollary.frontends.sql.statements.writes import (
    default_row,
    default_value,
    merge_of_conflict,
    merge_writes,
)
from corollary.source import SourceFile

Found = TypeVar("Found")


@dataclass(slots=True)
class SqlSession:
    """The statements of one user of a database, with the transaction that is open, if one is.

    Attributes:
        begin: begins a transaction.
        ask: answers a question.
        recall: answers the text of a question by an earlier plan, if there is one.
        explain: returns the plan of a question.
        last_write: the last write of the text that was run last.
        is_prepared: whether all writes are done together, and none sees another.

    In an open transaction, what reads something that it has changed is answered in the state that
    the transaction would leave so far.
    """

    state: DatabaseState
    begin: Callable[[], Transaction]
    ask: sql_texts.Ask
    recall: sql_texts.Recall = lambda *_: None
    explain: Callable[[str], str] = lambda _: ""
    transaction: Transaction | None = None
    last_write: PreparedWrite | None = None
    is_prepared: bool = False
    _written: set[str] = field(default_factory=set)
    _is_edited: bool = False
    _is_looking: bool = False
    _deleted: set[str] = field(default_factory=set)

    def run(
        self, text: str, parameters: Mapping[str, Any], at: object
    ) -> SqlAnswer | Transaction | None:
        """Run the statements of a text; return what the last one gives.

        Definitions that follow one another are one edit of the program.

        Raises:
            InputError: a statement is wrong; those before it stay.
        """
        result: SqlAnswer | Transaction | None = None
        statements: list[nodes.Statement] = []
        place = StatementPlace(SourceFile(sql_texts.SQL_PLACE, text), parameters)
        self.last_write = None
        with bounded_question(self.state.limits):
            if at is None and not (self._written or self._is_edited):
                result = self.recall(text, parameters)
                if result is not None:
                    return result
            is_known = at is None and not self._is_edited
            write = self._recall_write(text, parameters) if is_known else None
            if write is None:
                statements = sql_texts.read_statements(place.file)
                questions = [each for each in statements if isinstance(each, nodes.QueryStatement)]
                if len(questions) == len(statements):
                    for question in questions:
                        result = self._run(question, place, at)
                    return result
        # The seconds of a transaction are its own: what follows a commit is not stopped.
        with bounded_question(None):
            if write is not None:
                return self._do(write)
            return self._run_all(statements, place, at)

    def _run_all(
        self, statements: Sequence[nodes.Statement], place: StatementPlace, at: object
    ) -> SqlAnswer | Transaction | None:
        result: SqlAnswer | Transaction | None = None
        pending: list[PlacedDefinition | nodes.Drop] = []
        for statement in statements:
            if isinstance(statement, nodes.Drop):
                pending.append(statement)
                continue
            if isinstance(statement, nodes.Definition):
                pending.append(PlacedDefinition(statement, place.file))
                continue
            if pending:
                result = self._edit(pending)
                pending = []
            if isinstance(statement, nodes.AlterView):
                result = self._alter_view(statement)
                continue
            if isinstance(statement, nodes.AlterTable):
                result = self._alter_table(statement, place)
                continue
            result = self._run(statement, place, at)
        return self._edit(pending) if pending else result

    def _run(
        self,
        statement: nodes.QueryStatement
        | nodes.Write
        | nodes.Merge
        | nodes.TransactionBoundary
        | nodes.CreateTableAs
        | nodes.Show,
        place: StatementPlace,
        at: object,
    ) -> SqlAnswer | Transaction | None:
        match statement:
            case nodes.Show():
                return self._answer(lambda: self._show(statement, place, at), self._is_edited)
            case nodes.Merge():
                return self._do(self._seen(lambda: self._prepare_merge(statement, place)))
            case nodes.CreateTableAs():
                return self._create_from(statement, place)
            case nodes.QueryStatement():
                reads = set(free_tables(statement.query))
                return self._answer(
                    lambda: sql_texts.ask_question(statement, place, at, self.ask),
                    at is None and self._reads_own(reads, statement),
                )
            case nodes.TransactionBoundary():
                return self._bound(statement)
            case _:
                return self._write(statement, place)

    def _answer(self, ask: Callable[[], SqlAnswer], is_own: bool) -> SqlAnswer:
        """Answer a question, in the state that the open transaction would leave if it reads it."""
        return self._look(lambda: ask().fetched()) if is_own else ask()

    def _show(self, statement: nodes.Show, place: StatementPlace, at: object) -> SqlAnswer:
        plan = self.explain(statement.text) if statement.text else ""
        if statement.view is not None:
            plan = self._explain_view(PlacedDefinition(statement.view, place.file))
        tree = metadata_query(statement, self.state.program, plan, place)
        return sql_texts.ask_question(
            nodes.QueryStatement(tree, statement.span), place, at, self.ask
        )

    def _explain_view(self, view: PlacedDefinition) -> str:
        """Return how a view would follow a change of one row in each table.

        Raises:
            InputError: it does not fit the program, or its policy.
        """
        with self.state.lock:
            program = edit_program(self.state.program, [view])
            loaded = load_next_program(program, self.state.loaded.normal)
            normal, planner = loaded.normal, self.state.planner
            parts = [
                StratumForecast(
                    (show_titles(choice.relations[0], normal), *choice.relations[1:]),
                    str(choice.algorithm),
                    choice.explanation,
                    choice.cost,
                    choice.budget,
                    is_autonomous=False,
                    placement="",
                )
                for _, choice in planner.choices_by_changes(
                    self.state.loaded.normal, normal
                ).values()
                if owner_of(choice.relations[0], {view.name}) is not None
            ]
        policy = str(normal.policy_of([view.name])).upper()
        return print_view_maintenance(view.name, policy, parts)

    # --- transactions --------------------------------------------------------------------------

    def _bound(self, statement: nodes.TransactionBoundary) -> Transaction | None:
        is_begin = statement.boundary is nodes.Boundary.BEGIN
        if is_begin is (self.transaction is not None):
            raise InputError.of(
                "C1379",
                "A transaction is open already." if is_begin else "No transaction is open.",
                statement.span,
                "end it with `COMMIT` or `ROLLBACK` first" if is_begin else "begin one: `BEGIN`",
            )
        if is_begin:
            self.transaction = self.begin()
            return None
        ended, self.transaction = self.transaction, None
        self._written.clear()
        self._deleted.clear()
        self._is_edited = False
        assert ended is not None
        if statement.boundary is nodes.Boundary.COMMIT:
            ended.commit()
        else:
            ended.rollback()
        return ended

    def _in_transaction(self, change: Callable[[Transaction], None]) -> Transaction | None:
        """Add a change to the open transaction, or make one of it."""
        if self.transaction is not None:
            change(self.transaction)
            return None
        self._is_edited = False
        with self.begin() as transaction:
            change(transaction)
        return transaction

    def _look(self, ask: Callable[[], Found]) -> Found:
        """Return what a function finds in the state that the open transaction would leave."""
        assert self.transaction is not None
        self._is_looking = True
        try:
            return self.transaction.look(ask)
        finally:
            self._is_looking = False

    def _edit(self, edits: Sequence[PlacedDefinition | nodes.Drop]) -> Transaction | None:
        given = tuple(edits)
        drops = [
            each.name.text
            for each in given
            if isinstance(each, nodes.Drop) and each.kind is nodes.DroppedKind.TABLE
        ]
        self._is_edited = True
        return self._in_transaction(
            lambda transaction: transaction.edit(
                lambda program: edit_program(program, given), drops
            )
        )

    def _alter_view(self, statement: nodes.AlterView) -> Transaction | None:
        self._is_edited = True
        return self._in_transaction(
            lambda transaction: transaction.edit(
                lambda program: edit_program(program, [altered_view(program, statement)])
            )
        )

    def _alter_table(self, statement: nodes.AlterTable, place: StatementPlace) -> Transaction:
        if self.transaction is not None:
            raise InputError.of(
                "C1379",
                "A table cannot be altered in a transaction that is open.",
                statement.span,
                "write `COMMIT` before this statement",
            )

        def value(asked: tuple[Any, Finish]) -> Any:
            found = self.ask(asked[0], replace(place, finish=asked[1]), None)
            return to_python(found.arrow())[0][0]

        with self.begin() as transaction:
            transaction.alter(lambda loaded: _alter_table(loaded, statement, value))
        return transaction

    def _create_from(
        self, statement: nodes.CreateTableAs, place: StatementPlace
    ) -> Transaction | None:
        """Create a table with the rows of a question, in one transaction."""

        def definitions() -> list[PlacedDefinition] | None:
            catalog = visible_catalog(self.state.program)
            if statement.if_not_exists and catalog.find(statement.name.text):
                return None
            text = table_like(statement.name, place.bind(statement.query.copy(), catalog))
            file = SourceFile(sql_texts.SQL_PLACE, text)
            return [
                PlacedDefinition(each, file)
                for each in sql_texts.read_statements(file)
                if isinstance(each, nodes.Definition)
            ]

        def rows() -> list[Operation]:
            found = self.ask(statement.query.copy(), place, None).arrow()
            return [Operation(State.ADDED, statement.name.text, found)]

        is_own = self._reads_own(set(free_tables(statement.query)), statement)
        made = self._look(definitions) if is_own else definitions()
        if made is None:
            return None
        write = PreparedWrite(statement.name.text, frozenset(), self._settled(rows, is_own=is_own))

        def create(transaction: Transaction) -> None:
            transaction.edit(lambda program: edit_program(program, made))
            transaction.read(write.deferred)

        self._is_edited = True
        return self._in_transaction(create)

    # --- writes --------------------------------------------------------------------------------

    def prepare_writes(self, texts: Sequence[str], parameters: Mapping[str, Any]) -> PreparedWrites:
        """Read writes that are to be done together; what is constant is computed now.

        Raises:
            InputError: one of them is not a write, or wrong.
        """
        found = PreparedWrites(len(texts))
        for number, text in enumerate(texts):
            place = StatementPlace(SourceFile(sql_texts.SQL_PLACE, text), parameters)
            with bounded_question(self.state.limits):
                known = self._recall_write(text, parameters)
                if known is not None:
                    found.writes.append(replace(known, number=number))
                    continue
                statements = sql_texts.read_statements(place.file)
            for statement in statements:
                if isinstance(statement, nodes.Merge):
                    write = self._prepare_merge(statement, place)
                elif isinstance(statement, nodes.Write):
                    write = self._prepare(statement, place)
                else:
                    raise InputError.of(
                        "C1378",
                        "Only INSERT, DELETE, UPDATE and MERGE can be written here.",
                        statement.span,
                        "ask questions apart from them, and change definitions with"
                        " `corollary run`, `db.sql(…)` or `PUT /v1/program`",
                    )
                found.writes.append(replace(write, number=number))
        return found

    def _recall_write(self, text: str, parameters: Mapping[str, Any]) -> PreparedWrite | None:
        """Return a write whose shape was written before; None if it has to be compiled."""
        with self.state.lock:
            known = recall_write(self.state, text, parameters)
        if known is None:
            return None
        shape, values = known
        if not shape.write.reads:
            found = shape.operations(self.state, values)
            if found is None:
                return None
            return self._noted(shape.write, lambda: found, shape.touched(values))

        def operations() -> list[Operation]:
            with self.state.lock, bounded_question(self.state.limits):
                known = recall_write(self.state, text, parameters)
                try:
                    found = None if known is None else known[0].operations(self.state, known[1])
                except InputError:  # compiled as it is written, it gets its message
                    found = None
            if found is not None:
                return found
            place = StatementPlace(SourceFile(sql_texts.SQL_PLACE, text), parameters)
            (statement,) = sql_texts.read_statements(place.file)
            assert isinstance(statement, nodes.Write)
            return self._rows(resolve_write(self.state.loaded, statement, place))

        return self._noted(shape.write, operations, shape.touched(values))

    def _write(self, statement: nodes.Write, place: StatementPlace) -> Transaction | None:
        return self._do(self._seen(lambda: self._prepare(statement, place)))

    def _prepare_merge(
        self,
        statement: nodes.Merge,
        place: StatementPlace,
        returning: ResolvedWrite | None = None,
    ) -> PreparedWrite:
        """Return all writes of a MERGE, on the state that it follows, as one."""
        catalog = visible_catalog(self.state.program)
        table = find_table(catalog, statement.table.text, statement.table.span)
        writes = [
            resolve_write(self.state.loaded, each, place)
            for each in merge_writes(statement, table, place.file)
        ]
        if not table.keys and any(not isinstance(each.statement, nodes.Insert) for each in writes):
            raise InputError.of(
                "C1374",
                f"`{table.relation}` has no key, so that rows of MERGE cannot be told apart.",
                statement.table.span,
                "give the table a `PRIMARY KEY`; `WHEN NOT MATCHED` needs none",
            )
        reads = frozenset[str]().union(*(each.reads for each in writes))
        is_own = self._reads_own(reads, statement)
        if self.transaction is not None or self.is_prepared:
            self._deleted.discard(table.relation)
            self._written.add(table.relation)

        def operations() -> list[Operation]:
            rows = [self.ask(each.tree, each.place, None).arrow() for each in writes]
            return merged_operations(writes, rows, statement)

        return PreparedWrite(
            table.relation,
            reads,
            self._settled(operations, is_own=is_own),
            returning=None if returning is None else Returning.of(returning),
        )

    def copy(self, name: str, given: pa.Table) -> Transaction | None:
        """Add rows to a table; columns that they lack have their defaults, or null.

        Raises:
            InputError: a row does not fit.
        """
        place = StatementPlace(SourceFile(sql_texts.SQL_PLACE, ""), {})
        where = SqlName(name, span_between(place.file, 0, 0))
        table = find_table(visible_catalog(self.state.program), name, where.span)
        relation = writable_relation(self.state.loaded.normal, table.relation, where.span)
        columns = dict(zip(given.column_names, given.columns, strict=True))
        lacking = [each for each in table.columns if each.name not in columns]
        known = column_defaults(self.state.program, table.relation)
        for each in lacking:
            columns[each.name] = pa.nulls(given.num_rows, arrow_type(each.type))
        asked = default_row(replace(table, columns=tuple(lacking)), known, where)
        if asked is not None:
            row = self.ask(asked[0], replace(place, finish=asked[1]), None).arrow()
            for each in row.column_names:
                columns[each] = pa.repeat(row.column(each)[0], given.num_rows)
        ordered = pa.table([columns[each] for each in relation.columns], list(relation.columns))
        operation = Operation(State.ADDED, relation.name, check_rows(ordered, relation))
        if self.transaction is not None:
            self._written.add(table.relation)
            self._deleted.discard(table.relation)
        return self._do(PreparedWrite(table.relation, frozenset(), lambda: [operation]))

    def _prepare_conflict(self, statement: nodes.Insert, place: StatementPlace) -> PreparedWrite:
        """Return INSERT … ON CONFLICT: a MERGE with the rows that it inserts."""
        catalog = visible_catalog(self.state.program)
        table = find_table(catalog, statement.table.text, statement.table.span)
        conflict = statement.conflict
        assert conflict is not None
        plain = replace(statement, conflict=None)
        if not (table.keys or conflict.columns or conflict.assignments):
            return self._prepare(plain, place)  # there is no key that may be there
        defaults = column_defaults(self.state.program, table.relation)
        merge = merge_of_conflict(statement, table, defaults)
        return self._prepare_merge(merge, place, resolve_write(self.state.loaded, plain, place))

    def _prepare_overwrite(self, statement: nodes.Insert, place: StatementPlace) -> PreparedWrite:
        """Return INSERT OVERWRITE: all rows go, before those of the query come."""
        table = statement.table
        every = nodes.Delete(table, table.text, None, statement.span)
        writes = [resolve_write(self.state.loaded, each, place) for each in (every, statement)]
        relation = writes[0].table.relation
        is_own = self._reads_own({relation, *writes[1].reads}, statement)
        self._note_write(statement, writes[0].table)

        def operations() -> list[Operation]:
            return [done for each in writes for done in self._rows(each)]

        reads = writes[0].reads | writes[1].reads
        return PreparedWrite(relation, reads, self._settled(operations, is_own=is_own))

    def _do(self, write: PreparedWrite) -> Transaction | None:
        self.last_write = write
        made = self._in_transaction(lambda transaction: transaction.read(write.deferred))
        if made is not None:
            made.returned = write.returned
        return made

    def _prepare(self, statement: nodes.Write, place: StatementPlace) -> PreparedWrite:
        """Return a write; the rows of one that reads nothing are computed now."""
        if isinstance(statement, nodes.Insert) and statement.is_overwriting:
            return self._prepare_overwrite(statement, place)
        if isinstance(statement, nodes.Insert) and statement.conflict is not None:
            return self._prepare_conflict(statement, place)
        write = resolve_write(self.state.loaded, statement, place)
        if write.reads:
            return self._noted(write, lambda: self._rows(write))
        found = self._rows(write)  # constants: errors are raised now
        return self._noted(write, lambda: found)

    def _rows(self, write: ResolvedWrite) -> list[Operation]:
        return write.operations(self.ask(write.tree, write.place, None).arrow())

    def _noted(
        self,
        write: ResolvedWrite,
        operations: Callable[[], list[Operation]],
        touched: TouchedRows | None = None,
    ) -> PreparedWrite:
        """Return a write of the open transaction, or of those that are done together.

        Raises:
            InputError: it would not see what was written before.
        """
        is_own = self._reads_own(self._reads(write), write.statement)
        self._note_write(write.statement, write.table)
        settled = self._settled(operations, is_own=is_own)
        returning = Returning.of(write)
        return PreparedWrite(
            write.table.relation, write.reads, settled, touched, returning=returning
        )

    def _settled(
        self, operations: Callable[[], list[Operation]], *, is_own: bool
    ) -> Callable[[], list[Operation]]:
        """Return what a write does: now, if it reads what the open transaction has changed."""
        if not is_own:
            return operations
        found = self._look(operations)
        return lambda: found

    def _seen(self, prepare: Callable[[], PreparedWrite]) -> PreparedWrite:
        """Return a write, which finds what the open transaction has defined."""
        if not self._is_edited or self.transaction is None:
            return prepare()

        def found() -> PreparedWrite:
            write = prepare()
            operations = write.operations()
            return replace(write, operations=lambda: operations)

        return self._look(found)

    def _reads(self, write: ResolvedWrite) -> frozenset[str]:
        """Return the relations whose changes in the open transaction a statement would miss.

        A DELETE after others of the same relation finds some rows again, which changes nothing.
        """
        statement = write.statement
        if not isinstance(statement, nodes.Delete) or write.table.relation not in self._deleted:
            return write.reads
        condition = statement.condition
        return frozenset() if condition is None else frozenset(free_tables(condition))

    def _note_write(self, statement: nodes.Write, table: TableDefinition) -> None:
        if self.transaction is None and not self.is_prepared:
            return
        relation = table.relation
        is_only_deleted = relation not in self._written or relation in self._deleted
        if isinstance(statement, nodes.Delete) and is_only_deleted and not table.is_bag:
            self._deleted.add(relation)
        else:
            self._deleted.discard(relation)
        self._written.add(relation)

    def _reads_own(
        self,
        read: Collection[str],
        statement: nodes.QueryStatement | nodes.Write | nodes.Merge | nodes.CreateTableAs,
    ) -> bool:
        """Return whether a statement reads what the open transaction has changed or defined.

        Raises:
            InputError: writes that are done together would not see each other.
        """
        if self._is_looking or not (self._written or self._is_edited):
            return False
        if self._is_edited:
            return True
        changed = affected_relations(self.state.loaded.normal, self._written)
        name = next((each for each in sorted(read) if each in changed), None)
        if name is not None and self.transaction is None:
            raise InputError.of(
                "C1379",
                f"A write before this one has changed `{name}`, and both are done together.",
                statement.span,
                "send it apart, after the other",
            )
        return name is not None


def affected_relations(program: NormalProgram, written: Iterable[str]) -> set[str]:
    """Return the relations that depend on what was written, in small letters.

    All triggers may act, whatever was written.
    """
    found = set(written) | {relation for relation, _ in program.active.triggers.values()}
    found |= {f"{name}.rows" for name in found}
    size = 0
    while size != len(found):
        size = len(found)
        for rule in program.rules:
            if any(literal.relation in found for literal in rule.literals):
                found.add(rule.head.relation)
        found |= {each.relation for each in program.aggregations if each.body in found}
    return {name.lower() for name in found}


# --- ALTER TABLE -------------------------------------------------------------------------------


def _alter_table(
    loaded: LoadedProgram,
    statement: nodes.AlterTable,
    value: Callable[[tuple[Any, Finish]], Any],
) -> tuple[Program, Alteration]:
    """Return the program after an ALTER TABLE, and how the rows of the table are converted.

    Args:
        loaded: the program before.
        statement: what is altered.
        value: answers a question that has one value.

    Raises:
        InputError: it does not fit the table, or another statement cannot follow.
    """
    altered = AlteredStatements.of(loaded.program, statement)
    before, layout = altered.before.name.text, lay_out_table(altered.after)
    relation, declaration = alterable_relation(loaded, before), layout.declaration
    made = Program(declarations=(declaration,))
    (definition,) = catalog_of(made).find(declaration.name)
    names = {each.name.text: each for each in altered.after.columns}
    kept = {column.lower() for column in relation.columns}
    renamed = {_spelled(relation.columns, old.text): new.text for old, new in statement.renamed}
    constants = {}
    for column, _ in statement.added:
        given = default_value(names[column.name.text], definition)
        constants[column.name.text] = None if given is None else value(given)
    asked = Alteration(
        before,
        rename=renamed,
        drop=tuple(
            _spelled(relation.columns, each.text)
            for each in statement.dropped
            if each.text.lower() in kept
        ),
        constants=constants,
        new_name="" if statement.new_name is None else statement.new_name.text,
    )
    after, _ = declared_relation(made, declaration.name)
    rest = column_edits.edit_program(
        altered.rest, declaration, asked, map_columns(relation, after, asked)
    )
    return altered.compile(rest), asked


def _spelled(columns: tuple[str, ...], name: str) -> str:
    return next(each for each in columns if each.lower() == name.lower())
