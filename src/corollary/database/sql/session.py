"""What `Database.sql` does with statements: questions, changes of data and of the program."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from corollary.core.program import NormalProgram, Relation
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.database.intake.operations import Operation
from corollary.database.intake.rows import check_rows
from corollary.database.pending_commit import DeferredOperations
from corollary.database.program.goals import SQL_START
from corollary.database.program.names import writable_relation
from corollary.database.program.question_bounds import bounded_question, check_size
from corollary.database.sql.answer import SqlAnswer
from corollary.database.sql.plain_inserts import known_insert, remember_insert
from corollary.database.state import DatabaseState
from corollary.database.transaction import Transaction
from corollary.errors import InputError
from corollary.frontends.sql.catalog import SqlCatalog, TableDefinition
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.constraints import find_table
from corollary.frontends.sql.statements.definitions import PlacedDefinition, free_tables
from corollary.frontends.sql.statements.kept_texts import edit_program
from corollary.frontends.sql.statements.owners import visible_catalog
from corollary.frontends.sql.statements.parser import parse_statements
from corollary.frontends.sql.statements.questions import StatementPlace, take_version
from corollary.frontends.sql.statements.writes import (
    rows_to_delete,
    rows_to_insert,
    rows_to_update,
)
from corollary.source import SourceFile

if TYPE_CHECKING:
    import pyarrow as pa

SQL_PLACE = "SQL"
"""What messages call the text that was passed."""

Ask = Callable[[Any, StatementPlace, object], SqlAnswer]
"""Answers a question: its tree, its text, and the point in history (None: now)."""


Recall = Callable[[str, Mapping[str, Any]], SqlAnswer | None]
"""Answers a question, its text and parameters, by the plan of an earlier one."""


def answer_text(
    text: str, parameters: Mapping[str, Any], at: object, ask: Ask, refuse: Callable[[], None]
) -> SqlAnswer:
    """Answer a text that is one question; anything else is refused by `refuse`.

    Raises:
        InputError: it is not one question.
    """
    file, statements = _parse(text)
    if any(not isinstance(each, nodes.QueryStatement) for each in statements):
        refuse()
    if len(statements) != 1 or not isinstance(statements[0], nodes.QueryStatement):
        raise InputError.of(
            "C1378",
            f"One question is expected, not {len(statements)} statements.",
            None,
            "ask one after the other",
        )
    return ask_question(statements[0], StatementPlace(file, parameters), at, ask)


def _parse(text: str) -> tuple[SourceFile, list[nodes.Statement]]:
    check_size(text)
    file = SourceFile(SQL_PLACE, text)
    return file, parse_statements(file)


def is_sql(text: str) -> bool:
    """Whether a text begins as a question in SQL does."""
    return SQL_START.match(text) is not None


def one_question(
    text: str, parameters: Mapping[str, Any] | None = None
) -> tuple[Any, StatementPlace]:
    """Return the tree of a text that is one question, and the text.

    Raises:
        InputError: it is not one question.
    """
    found: list[tuple[Any, StatementPlace]] = []

    def note(tree: Any, place: StatementPlace, _: object) -> None:
        found.append((tree, place))

    answer_text(text, parameters or {}, None, note, refuse_statements)  # type: ignore[arg-type]
    return found[0]


def refuse_statements() -> None:
    """Refuse statements that are not questions."""
    raise InputError.of(
        "C1378",
        "Only questions can be asked here: SELECT, WITH or VALUES.",
        None,
        "change data with `corollary apply`, in `corollary shell` or with `db.sql(…)`",
    )


def ask_question(
    statement: nodes.QueryStatement, place: StatementPlace, at: object, ask: Ask
) -> SqlAnswer:
    """Answer a question at the point in history that it, or the caller, names.

    Raises:
        InputError: both name one, or the question has no answer.
    """
    version = take_version(statement.query, place)
    if version is not None and at is not None:
        raise InputError.of(
            "C1376",
            "The question names a point in history, and so does the call.",
            statement.span,
            "leave out `at`, or `AS OF`",
        )
    return ask(statement.query, place, at if version is None else version)


@dataclass(slots=True)
class SqlSession:
    """The statements of one user of a database, with the transaction that is open, if one is.

    Attributes:
        begin: begins a transaction.
        ask: answers a question.
        recall: answers the text of a question by an earlier plan, if there is one.
        is_prepared: whether all writes are done together, and none sees another.
    """

    state: DatabaseState
    begin: Callable[[], Transaction]
    ask: Ask
    recall: Recall = lambda *_: None
    transaction: Transaction | None = None
    is_prepared: bool = False
    _written: set[str] = field(default_factory=set)
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
        with bounded_question(self.state.limits):
            if at is None and not self._written:
                result = self.recall(text, parameters)
                if result is not None:
                    return result
            file, statements = _parse(text)
            place = StatementPlace(file, parameters)
            questions = [each for each in statements if isinstance(each, nodes.QueryStatement)]
            if len(questions) == len(statements):
                for question in questions:
                    result = self._run(question, place, at)
                return result
            # The seconds of a transaction are its own: what follows a commit is not stopped.
        with bounded_question(None):
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
            result = self._run(statement, place, at)
        return self._edit(pending) if pending else result

    def _run(
        self,
        statement: nodes.QueryStatement | nodes.Write | nodes.TransactionBoundary,
        place: StatementPlace,
        at: object,
    ) -> SqlAnswer | Transaction | None:
        match statement:
            case nodes.QueryStatement():
                self._refuse_own_writes(set(free_tables(statement.query)), statement)
                return ask_question(statement, place, at, self.ask)
            case nodes.TransactionBoundary():
                return self._bound(statement)
            case _:
                return self._write(statement, place)

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
        with self.begin() as transaction:
            change(transaction)
        return transaction

    def _edit(self, edits: Sequence[PlacedDefinition | nodes.Drop]) -> Transaction | None:
        given = tuple(edits)
        return self._in_transaction(
            lambda transaction: transaction.edit(lambda program: edit_program(program, given))
        )

    # --- writes --------------------------------------------------------------------------------

    def prepare_writes(
        self, texts: Sequence[str], parameters: Mapping[str, Any]
    ) -> "PreparedWrites":
        """Read writes that are to be done together; what is constant is computed now.

        Raises:
            InputError: one of them is not a write, or wrong.
        """
        found = PreparedWrites(len(texts))
        for number, text in enumerate(texts):
            known = self._known_insert(text, parameters)
            if known is not None:
                found.writes.append(replace(known, number=number))
                self._written.add(known.relation)
                continue
            with bounded_question(self.state.limits):
                file, statements = _parse(text)
            for statement in statements:
                if not isinstance(statement, nodes.Write):
                    raise InputError.of(
                        "C1378",
                        "Only INSERT, DELETE and UPDATE can be written here.",
                        statement.span,
                        "ask questions apart from them",
                    )
                place = StatementPlace(file, parameters)
                found.writes.append(self._prepare(statement, place, number))
                if len(statements) == 1 and isinstance(statement, nodes.Insert):
                    remember_insert(self.state.loaded, text, statement, parameters)
        return found

    def _known_insert(self, text: str, parameters: Mapping[str, Any]) -> "PreparedWrite | None":
        """Return an INSERT of plain values whose text was read before."""
        found = known_insert(self.state.loaded, text, parameters)
        if found is None:
            return None
        relation, rows = found
        operation = Operation(State.ADDED, relation, rows)
        return PreparedWrite(relation, frozenset(), lambda: [operation], len(rows))

    def _write(self, statement: nodes.Write, place: StatementPlace) -> Transaction | None:
        write = self._prepare(statement, place)
        return self._in_transaction(lambda transaction: transaction.read(write.deferred))

    def _prepare(
        self, statement: nodes.Write, place: StatementPlace, number: int = 0
    ) -> "PreparedWrite":
        """Return a write; the rows of one that reads nothing are computed now."""
        catalog = visible_catalog(self.state.program)
        table = find_table(catalog, statement.table.text, statement.table.span)
        normal = self.state.loaded.normal
        if normal.relations[normal.bases.get(table.relation, table.relation)].is_derived:
            raise InputError.of(
                "C0915",
                f"`{table.relation}` is a view, so its rows cannot be written.",
                statement.table.span,
                "write to the tables that it reads",
            )
        relation = writable_relation(normal, table.relation, statement.table.span)
        tree = self._question(statement, table, catalog, place)
        read = frozenset(free_tables(tree))
        self._refuse_own_writes(self._reads(statement, table, read), statement)

        def operations() -> list[Operation]:
            rows = self.ask(tree.copy(), place, None).arrow()
            write.rows = rows.num_rows
            _refuse_nulls(statement, relation, rows)
            return _operations(statement, relation, rows)

        write = PreparedWrite(table.relation, read, operations, number=number)
        if not read:  # constants: errors are raised now
            found = operations()
            write.operations = lambda: found
        self._note_write(statement, table)
        return write

    def _reads(
        self, statement: nodes.Write, table: TableDefinition, read: frozenset[str]
    ) -> frozenset[str]:
        """Return the relations whose changes in the open transaction a statement would miss.

        A DELETE after others of the same relation finds some rows again, which changes nothing.
        """
        if not isinstance(statement, nodes.Delete) or table.relation not in self._deleted:
            return read
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

    def _question(
        self,
        statement: nodes.Write,
        table: TableDefinition,
        catalog: SqlCatalog,
        place: StatementPlace,
    ) -> Any:
        match statement:
            case nodes.Insert():
                return rows_to_insert(statement, table, catalog, place)
            case nodes.Delete():
                return rows_to_delete(statement, table)
            case nodes.UpdateStatement():
                return rows_to_update(statement, table, catalog, place)

    def _refuse_own_writes(
        self, read: Collection[str], statement: nodes.QueryStatement | nodes.Write
    ) -> None:
        """Refuse to read what the open transaction has changed: it is not there before COMMIT."""
        if not self._written:
            return
        changed = self._affected()
        for name in sorted(read):
            if name in changed:
                raise InputError.of(
                    "C1379",
                    f"The open transaction has changed `{name}`, and cannot read it before its "
                    "end.",
                    statement.span,
                    "write `COMMIT` before this statement",
                )

    def _affected(self) -> set[str]:
        return affected_relations(self.state.loaded.normal, self._written)


def affected_relations(program: NormalProgram, written: Iterable[str]) -> set[str]:
    """Return the relations that depend on what was written, in small letters."""
    found = set(written)
    found |= {f"{name}.rows" for name in found}
    size = 0
    while size != len(found):
        size = len(found)
        for rule in program.rules:
            if any(literal.relation in found for literal in rule.literals):
                found.add(rule.head.relation)
        found |= {each.relation for each in program.aggregations if each.body in found}
    return {name.lower() for name in found}


@dataclass(slots=True)
class PreparedWrite:
    """An INSERT, DELETE or UPDATE that was read.

    Attributes:
        relation: what it writes to.
        reads: the relations that it reads, in small letters.
        operations: returns what it does, on the state that the commit follows.
        rows: how many rows it has found, when that was called.
        number: of its text.
    """

    relation: str
    reads: frozenset[str]
    operations: Callable[[], list[Operation]]
    rows: int = 0
    number: int = 0

    def deferred(self) -> DeferredOperations:
        """Return what it does, for `Transaction.read`."""
        return DeferredOperations(self.operations(), {})


@dataclass(slots=True)
class PreparedWrites:
    """Writes that are done together.

    Attributes:
        texts: how many texts they come from.
    """

    texts: int
    writes: list[PreparedWrite] = field(default_factory=list)

    @property
    def reads(self) -> frozenset[str]:
        """The relations that they read, in small letters."""
        return frozenset(name for each in self.writes for name in each.reads)

    @property
    def written(self) -> frozenset[str]:
        """The relations that they write to."""
        return frozenset(each.relation for each in self.writes)

    def apply_to(self, transaction: Transaction) -> None:
        """Add them to a transaction."""
        for each in self.writes:
            transaction.read(each.deferred)

    def row_counts(self) -> list[int]:
        """Return how many rows the writes of each text have found, after the commit."""
        counts = [0] * self.texts
        for each in self.writes:
            counts[each.number] = each.rows
        return counts


def _refuse_nulls(statement: nodes.Write, relation: Relation, rows: "pa.Table") -> None:
    """Refuse nulls in the rows to be written, where a column is NOT NULL.

    Raises:
        InputError: one has a null.
    """
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


def _operations(statement: nodes.Write, relation: Relation, rows: "pa.Table") -> list[Operation]:
    """Return what a statement does with the rows of its question.

    A row that a source asserts cannot be deleted here: who writes DELETE expects it to be gone.
    """
    match statement:
        case nodes.Insert():
            return [Operation(State.ADDED, relation.name, check_rows(rows, relation))]
        case nodes.Delete():
            gone = check_rows(rows, relation)
            return [Operation(State.REMOVED, relation.name, gone, is_strict=True)]
        case nodes.UpdateStatement():
            names = list(relation.columns)
            before = rows.select(list(range(relation.arity))).rename_columns(names)
            after = rows.select(list(range(relation.arity, 2 * relation.arity)))
            gone = check_rows(before, relation)
            return [
                Operation(State.REMOVED, relation.name, gone, is_strict=True),
                Operation(
                    State.ADDED, relation.name, check_rows(after.rename_columns(names), relation)
                ),
            ]
