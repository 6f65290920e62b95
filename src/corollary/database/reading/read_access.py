"""Reading a database: relations, answers to goals, history; watching what changes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, Self, TypeVar

from corollary.active.events import observed_change
from corollary.analysis.phrases import suggest_name
from corollary.analysis.today import TODAY_RELATION
from corollary.console import Phase
from corollary.core.engine import TableHandle
from corollary.core.logic import Literal, Variable
from corollary.core.plans import Plan
from corollary.core.program import NormalProgram, Relation
from corollary.core.records.record_rows import to_python_rows
from corollary.core.records.record_structs import TEXT, with_records
from corollary.core.states import CHANGES
from corollary.data_class import dataclass
from corollary.database.arguments import COUNT, check_function, checked
from corollary.database.changes import Changes
from corollary.database.counters import ProgressRecorder
from corollary.database.engines import SparkFrames, create_engine
from corollary.database.program.goals import ResolvedGoal, arrange, given_rows, read_goal
from corollary.database.program.names import readable_relation
from corollary.database.program.question_bounds import bounded_question
from corollary.database.reading.why_access import WhyAccess
from corollary.database.state import DatabaseState
from corollary.database.store import MemoryStore, Store
from corollary.database.writing.day import unset_day
from corollary.errors import CorollaryError, InputError
from corollary.maintain.solve import answer_goal
from corollary.warehouse.copies import CopiesHandle

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.database.feed_tables import Follower, RelationFeed
    from corollary.database.history import CommitSummary
    from corollary.database.reading.answer import SqlAnswer
    from corollary.database.warehouse_store import WarehouseStore
    from corollary.frontends.sql.catalog import SqlCatalog
    from corollary.frontends.sql.statements.questions import (
        CompiledQuestion,
        GivenTable,
        StatementPlace,
    )

Callback = TypeVar("Callback", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, repr=False)
class RelationView:
    """A relation, as it is whenever it is read."""

    name: str
    _columns: Callable[[str], Relation]
    _read: "Callable[[str], pa.Table]"
    _handle: Callable[[str], TableHandle]
    _frames: SparkFrames
    _size: Callable[[str], int | None]
    _program: Callable[[], NormalProgram]

    def __repr__(self) -> str:
        try:
            relation, size, program = self.shape, self._size(self.name), self._program()
        except CorollaryError:  # the database is closed, or the relation is gone
            return f"<relation {self.name}>"
        columns = zip(relation.columns, relation.types, strict=True)
        listed = ", ".join(f"{column}: {type_}" for column, type_ in columns)
        kind = program.kind_of(self.name) + ", copies" * (self.name in program.bags)
        counted = "" if size is None else f", {size:,} tuple{'s' * (size != 1)}"
        return f"<relation {self.name}({listed}), {kind}{counted}>"

    @property
    def shape(self) -> Relation:
        """The columns, and their types."""
        return self._columns(self.name)

    @checked(records=str)
    def arrow(self, records: str = TEXT) -> "pa.Table":
        """Return the tuples as an Arrow table, records as texts or, with "struct", as structs."""
        return with_records(self._read(self.name), self.shape, records)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the tuples as Python values, records as tuples."""
        return to_python_rows(self.arrow(), self.shape.types)

    def pandas(self) -> Any:
        """Return the tuples as a pandas frame."""
        return self.arrow().to_pandas()

    @checked(view=str, records=str)
    def spark(self, view: str | None = None, records: str = TEXT) -> Any:
        """Return the tuples as a frame of the Spark session that was passed, or of a local one.

        Tasks read those that are not on the driver. Later commits do not show.

        Args:
            view: the name of a temp view that shows the frame, if any.
            records: "text", or "struct" for records as structs.
        """
        tuples = self._handle(self.name)
        return self._frames.create_frame([(tuples, {})], self.shape, view, records)

    def __len__(self) -> int:
        known = None if self.name in self._program().bags else self._size(self.name)
        return len(self._handle(self.name)) if known is None else known


def no_history() -> InputError:
    """Return the error of asking a database in memory for earlier commits."""
    return InputError.of(
        "C0918",
        "This database is in memory, so it has no history.",
        None,
        "open a warehouse with `corollary.open(DIRECTORY)`",
    )


class ReadAccess(WhyAccess):
    """The part of a database that reads and watches; without a store it is in memory."""

    def __init__(self, state: DatabaseState, store: Store | None = None) -> None:
        self._state = state
        self._store: Store = MemoryStore() if store is None else store

    @property
    def commits(self) -> int:
        """The number of the last commit."""
        return self._state.commits

    @checked(name=str)
    def relation(self, name: str) -> RelationView:
        """Return a relation to read."""
        self.refresh()
        self._columns(name)
        return RelationView(
            name,
            self._columns,
            self._read,
            self._handle,
            self._state.frames,
            self._size,
            lambda: self._state.loaded.normal,
        )

    def _size(self, name: str) -> int | None:
        """Return how many tuples a relation has; None if they would have to be computed."""
        with self._state.lock:
            holder = self._state.loaded.normal.holder_of(self._columns(name).name)
            return None if self._is_computed(holder) else self._state.engine.size(holder.name)

    def _is_computed(self, relation: Relation) -> bool:
        """Whether a relation is derived whenever it is read."""
        return not relation.is_stored

    def _columns(self, name: str) -> Relation:
        self._state.check_open()
        return readable_relation(self._state.loaded.normal, name)

    def _read(self, name: str) -> "pa.Table":
        """Return the tuples of a relation, with their copies."""
        with self._state.lock:
            table, relation = self._handle(name).table(), self._columns(name)
            return table.rename_columns(list(relation.columns)) if relation.arity else table

    def _handle(self, name: str) -> TableHandle:
        """Return a handle on the tuples of a relation, with copies; a virtual one is computed."""
        with self._state.lock:
            relation = self._columns(name)
            rows = self._state.loaded.normal.bags.get(name)
            if rows is not None:
                return CopiesHandle(self._handle(rows))
            if self._is_computed(relation):
                slots = tuple(Variable(f"v{at}", each) for at, each in enumerate(relation.types))
                whole = ResolvedGoal(Literal(name, slots), self._state.loaded.normal, is_atom=True)
                return self._solve(whole)[1]
            return self._state.engine.handle(name)

    @checked(goal=str, limit=int, records=str)
    def query(
        self, goal: str, *, order: Sequence[str] = (), limit: int | None = None, records: str = TEXT
    ) -> "pa.Table":
        """Return the answers to a goal: a column for each variable, in order of appearance.

        Args:
            goal: what the body of a rule could be, such as `link("a", y), y != "b"`.
            order: columns such as `y` or `n desc`; without it and a limit there is no order.
            limit: how many answers to return at most, the first ones in the order.
            records: "text", or "struct" for records as structs.

        Raises:
            InputError: the goal does not fit the program, or there are no structs for a type.
        """
        relation, table = self.answers(goal)
        if order or limit is not None:
            table = arrange(table, (order,) if isinstance(order, str) else order, limit)
        return with_records(table, relation, records)

    @checked(goal=str)
    def answers(self, goal: str) -> "tuple[Relation, pa.Table]":
        """Return the relation of a goal's answers (a column per variable) and its rows."""
        state = self._state
        with state.lock, bounded_question(state.limits, is_sql=False):
            self.refresh()
            found = self._recall_goal(goal)
            if found is not None:
                return found
            asked = read_goal(self._state.loaded, goal)
            self._refuse_unset_day(asked)
            relation, answers = self._solve(asked)
            return relation, answers.table()

    def _recall_goal(self, text: str) -> "tuple[Relation, pa.Table] | None":
        """Answer a goal by the plan of an earlier one; None if there is no such plan."""
        from corollary.database.reading.shape_plans import GoalPlans, parse_simple_goal

        goal = parse_simple_goal(text)
        if goal is None:
            return None
        return GoalPlans(self._state, self._store).recall(goal, text)

    # --- SQL -----------------------------------------------------------------------------------

    @checked(text=str)
    def sql(self, text: str, /, *, at: int | str | date | None = None, **parameters: Any) -> Any:
        """Answer a question in SQL: one SELECT, WITH or VALUES.

        Args:
            text: the question; `:name` stands for a parameter.
            at: a commit or a point in time, as for `at`; now if it is not given.
            parameters: the values of the parameters, by name.

        Returns:
            A `corollary.database.reading.answer.SqlAnswer`.

        Raises:
            InputError: the question does not fit the program, or has no exact answer.
        """
        return self.ask(text, at, parameters)

    def ask(
        self,
        text: str,
        at: Any,
        parameters: Mapping[str, Any],
        given: "tuple[GivenTable, ...]" = (),
    ) -> "SqlAnswer":
        """Answer a question in SQL, and refuse all other statements; see `sql`.

        Tables that are `given` with it can be named beside the relations.
        """
        from corollary.database.reading.sql_texts import answer_text

        with bounded_question(self._state.limits):
            found = self._recall(text, parameters) if at is None and not given else None
            if found is not None:
                return found

            def ask(tree: Any, place: "StatementPlace", at: Any) -> "SqlAnswer":
                return self._ask_at(tree, replace(place, given=given), at)

            return answer_text(text, parameters, at, ask, self._refuse_statements)

    def _recall(self, text: str, parameters: Mapping[str, Any]) -> "SqlAnswer | None":
        """Answer a question by the plan of an earlier one; None if there is no such plan."""
        from corollary.database.reading.question_plans import QuestionPlans
        from corollary.frontends.sql.statements.shapes import is_question

        if not is_question(text):
            return None
        state = self._state
        with state.lock:
            self.refresh()
            return QuestionPlans(state).answer(text, parameters, self._catalog, self._scope)

    @property
    def _scope(self) -> object:
        """What tells apart those who may name different relations."""
        return None

    def question_shape(self, text: str, parameters: Mapping[str, Any]) -> Relation:
        """Return the columns that a question in SQL would have, and their types.

        Raises:
            InputError: the question does not fit the program.
        """
        from corollary.database.reading.questions import answer_shape
        from corollary.database.reading.sql_texts import one_question

        with self._state.lock, bounded_question(self._state.limits):
            self.refresh()
            question, asked = self._read_question(*one_question(text, parameters))
        return answer_shape(asked.answers.types, question)

    def _refuse_statements(self) -> None:
        """Refuse statements that are not questions."""
        from corollary.database.reading.sql_texts import refuse_statements

        refuse_statements()

    def at(self, point: int | str | date) -> "ReadAccess":
        """Return the database as it was, in memory."""
        return ReadAccess(*self._past(point))

    def _ask_at(self, tree: Any, place: "StatementPlace", at: Any) -> "SqlAnswer":
        """Answer a question as of a point in history."""
        return self.ask_tree(tree, place) if at is None else self.at(at).ask_tree(tree, place)

    def ask_tree(self, tree: Any, place: "StatementPlace") -> "SqlAnswer":
        """Answer a question: its tree, and its text."""
        from corollary.database.reading.answer import SqlAnswer

        state = self._state
        with state.lock, bounded_question(state.limits):
            self.refresh()
            question, asked = self._read_question(tree, place)
            relation, answers = self._solve(asked)
            return SqlAnswer.of(
                relation, answers, question, state.frames, has_counts=question.is_bag
            )

    def _read_question(
        self, tree: Any, place: "StatementPlace"
    ) -> "tuple[CompiledQuestion, ResolvedGoal]":
        from corollary.database.reading.questions import hidden_name, read_question
        from corollary.frontends.sql.statements.questions import compile_question

        loaded = self._state.loaded
        question = compile_question(tree, place, self._catalog(), hidden_name(loaded))
        asked = read_question(loaded, question)
        self._refuse_unset_day(asked)
        return question, asked

    def _catalog(self) -> "SqlCatalog":
        """Return the relations that a question may name."""
        from corollary.frontends.sql.catalog import visible_catalog

        return visible_catalog(self._state.program)

    def _refuse_unset_day(self, asked: ResolvedGoal) -> None:
        known = self._state.loaded.normal.relations
        if TODAY_RELATION in asked.program.relations and TODAY_RELATION not in known:
            raise unset_day()

    def _solve(self, asked: ResolvedGoal) -> tuple[Relation, TableHandle]:
        state = self._state
        if asked.is_atom:
            self._store.log_query(asked.literal)
        answers = asked.answers
        with given_rows(state.engine, asked, answers):
            plan = self._plan(asked)
            state.console.enter(Phase.EVALUATE)
            try:
                state.engine.run(plan, ProgressRecorder(state.console), state.limits)
                return answers, state.engine.handle(answers.name)
            finally:
                state.console.enter(Phase.OTHER)

    def _plan(self, asked: ResolvedGoal) -> Plan:
        program = asked.program
        return answer_goal(
            program,
            asked.literal,
            self._state.planner.query_statistics(program),
            lambda name: program.relations[name].is_stored,
        )

    def refresh(self) -> None:
        """See what other processes have committed.

        Raises:
            WarehouseError: nobody has written anything to the warehouse yet.
        """
        self._catch_up()
        self._store.check_exists()

    def _catch_up(self) -> None:
        self._state.check_open()
        with self._state.lock:
            if not self._state.is_committing and not self._state.is_pinned:
                self._store.catch_up(self._state)

    # --- history -------------------------------------------------------------------------------

    @property
    def _history(self) -> "WarehouseStore":
        from corollary.database.warehouse_store import WarehouseStore

        self._state.check_open()
        self._store.check_exists()
        if isinstance(self._store, WarehouseStore):
            return self._store
        raise no_history()

    def _past(self, point: object) -> tuple[DatabaseState, MemoryStore]:
        """Return the state at a point in history, in memory."""
        from corollary.database.history import commit_number, read_point

        commit = commit_number(self._history.warehouse, read_point(point))
        now = self._state
        past = DatabaseState(
            create_engine(), limits=now.limits, console=now.console, frames=now.frames
        )
        past.is_trial = True
        self._history.restore_past(past, commit)
        return past, MemoryStore()

    @checked(limit=COUNT)
    def log(self, limit: int | None = None) -> "list[CommitSummary]":
        """Return the commits that are kept, newest first and at most `limit`."""
        from corollary.database.history import commit_log

        return commit_log(self._history.warehouse, limit)

    @checked(commit=int)
    def changes(self, commit: int) -> Changes:
        """Return what a commit changed.

        Raises:
            WarehouseError: there is no such commit, or it is no longer kept.
        """
        return self._history.changes_at(commit, self._state.engine.tasks)

    @checked(relation=str, since=COUNT, upto=COUNT)
    def feed(
        self, relation: str | None = None, *, since: int | None = None, upto: int | None = None
    ) -> "Iterator[RelationFeed]":
        """Yield what commits have changed, relation by relation, as change feeds of Delta do.

        A feed has the columns of the relation, then `_change_type` (`insert` or `delete`),
        `_commit_version` and `_commit_timestamp`; `.arrow()`, `.pandas()` and `.spark()` read it.

        Args:
            relation: the one whose changes to return; all if it is not given.
            since: only commits after this one; if it is not given, all that are kept.
            upto: the last commit to include.

        Raises:
            InputError: there is no such relation, or its changes are not kept.
            WarehouseError: not all commits since then are kept.
        """
        from corollary.database.history import recorded_changes

        history = self._history
        self.refresh()
        asked = None if relation is None else self._past_columns(relation)
        found = recorded_changes(history.warehouse, asked, since, upto)
        return (history.feed_of(each, self._state.engine.tasks) for each in found)

    @checked(relation=str, since=COUNT)
    def follow(self, relation: str, *, since: int | None = None) -> "Follower":
        """Return a follower: what a relation gains and loses, whichever process commits.

        A virtual relation is watched by the commits of this process from now on; those of other
        processes are known if they watch it, too.

        Args:
            relation: the relation.
            since: the last commit that is known already; by default the last one that was made.

        Raises:
            InputError: there is no such relation.
            WarehouseError: not all commits since then are kept.
        """
        from corollary.database.feed_tables import Follower
        from corollary.database.history import change_tables, recorded_changes

        warehouse = self._history.warehouse
        self.refresh()
        if not self._columns(relation).is_stored and relation not in self._state.watched:
            self.watch(relation)

        def latest() -> int:
            found = warehouse.catalog.latest_commit()
            return 0 if found is None else found.number

        def read(first: int, last: int) -> "Iterator[tuple[Relation, pa.Table]]":
            self.refresh()
            shape = self._past_columns(relation)
            found = recorded_changes(warehouse, shape, first, last, must_be_watched=False)
            return change_tables(warehouse, found)

        if since is not None:
            recorded_changes(warehouse, None, since, None)  # raises if not all of them are kept
        return Follower(relation, latest() if since is None else since, latest, read)

    def _past_columns(self, name: str) -> Relation:
        """Return a relation of the program in force, or of the last one that has it."""
        from corollary.database.history import dropped_relation

        found = None
        if name not in self._state.loaded.normal.relations:
            found = dropped_relation(self._history.warehouse, name)
        return found or self._columns(name)

    # --- watching ------------------------------------------------------------------------------

    @checked(relation=str, added=bool, removed=bool)
    def watch(self, relation: str, *, added: bool = True, removed: bool = True) -> None:
        """Ask for the changes of a virtual relation in every transaction from now on.

        Those of a relation with copies (`bag`) are changes of copies.
        """
        self._columns(relation)
        relation = self._state.loaded.normal.bags.get(relation, relation)
        signs = zip(CHANGES, (added, removed), strict=True)
        self._state.watch(relation, frozenset(sign for sign, is_watched in signs if is_watched))

    @checked(event=str)
    def on(self, event: str) -> Callable[[Callback], Callback]:
        """Call a function after every commit in which an event has happened.

        The function is called with a list of tuples, which have the attributes `id`, `event`,
        `message` and `commit`: at least once for each, with the same `id`. If it raises, or the
        process ends first, it is called again later: queued alerts are delivered when a function
        is registered, after a transaction, and by `deliver`.

        >>> import corollary
        >>> db = corollary.open(None)
        >>> _ = db.load(text=".decl link(x: symbol) lost(x) :- -link(x).")
        >>> @db.on("lost")
        ... def show(rows):
        ...     print([(x, row.commit) for row in rows for x in row])

        Args:
            event: an event predicate or relation; or what a relation, stored or virtual, gains or
                loses: `+link`, `-link`.

        Raises:
            InputError: `C1013`, the program has none of that name.
        """
        self._state.check_open()
        known = self._state.loaded.checked.signatures
        relation = observed_change(event)[0]
        is_known = relation in known and (relation == event or not known[relation].is_event)
        if known and not is_known:
            near = suggest_name(relation, known)
            text = f"There is no event or relation `{event}`."
            raise InputError.of("C1013", text, None, near or "load the program that has it first")

        def register(function: Callback) -> Callback:
            self._state.add_callback(event, check_function(function, "on"))
            self._state.after_commit()
            return function

        return register

    # --- the end -------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the warehouse and the engine; streams are stopped between two batches."""
        self._state.close()
        self._store.close()

    def __enter__(self) -> Self:
        self._state.check_open()
        return self

    def _summary(self) -> str:
        """Return what the database is, for `repr`."""
        state = self._state
        if state.is_closed:
            return "closed"
        declared = state.loaded.normal.relations.values()
        relations = sum(each.is_declared for each in declared)
        return f"commit {state.commits}, {relations} relation{'s' * (relations != 1)}"

    def __exit__(self, *_: object) -> None:
        self.close()
