"""Questions in SQL that are asked again: their plans are remembered by shape.

The first question of a shape is compiled, planned and answered as it is written; so are all that
are wrong or fail, since their messages speak of the user's text. The second one lets the shape be
compiled with its constants as parameters. From then on, a question of the shape inserts one row of
values and runs the plan again; one that asks for rows of a stored relation by values of its columns
looks them up.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from itertools import count
from typing import Any

import pyarrow as pa

from corollary.analysis.today import TODAY_RELATION
from corollary.core.engine import Engine
from corollary.core.plans import Plan, working_relation
from corollary.core.program import Column, Declaration, Relation, TypeName
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.database.counters import ProgressRecorder
from corollary.database.program.goals import AskedGoal
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.sql.answer import SqlAnswer
from corollary.database.sql.questions import (
    answer_shape,
    finish_answer,
    hidden_name,
    read_question,
)
from corollary.database.state import DatabaseState
from corollary.errors import CorollaryError
from corollary.frontends.sql.binder.bind import bind_query
from corollary.frontends.sql.catalog import SqlCatalog
from corollary.frontends.sql.query_tree import (
    ColumnReference,
    Expression,
    FunctionCall,
    JoinedSource,
    JoinKind,
    Query,
    Select,
    TableSource,
)
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.parser import parse_statements
from corollary.frontends.sql.statements.questions import (
    CompiledQuestion,
    StatementPlace,
    compile_question,
    lower_question,
    take_version,
)
from corollary.frontends.sql.statements.shapes import (
    PREFIX,
    compares_only,
    cut_constants,
    given_table,
    parameter_type,
    take_parameters,
)
from corollary.frontends.sql.view_lowering import question_of
from corollary.maintain.solve import answer_goal
from corollary.source import SourceFile

SHAPES_MAX = 256
"""So many shapes are remembered; the one that was asked longest ago is forgotten first."""
LOOKUP_MAX_ROWS = 10_000
"""More rows than these are not looked up: a plan finds them, within the limits of its work."""

_Key = tuple[str, tuple[tuple[str, Type], ...], object]


class _Unplanned(Enum):
    """A shape that is not remembered: it was asked once, or each question has to be compiled."""

    SEEN = "seen"
    UNFIT = "unfit"


@dataclass(frozen=True, slots=True)
class _Lookup:
    """A question for the rows of a stored relation that have some values.

    Attributes:
        bound: the columns whose values are given, in ascending order.
        names: the parameters with these values.
        columns: those of the question; the number of copies last, if there are copies.
    """

    relation: str
    bound: tuple[int, ...]
    names: tuple[str, ...]
    columns: tuple[int, ...]
    has_counts: bool


@dataclass(slots=True)
class _ShapePlan:
    """A plan, with the sizes that the relations had when it was made."""

    plan: Plan
    sizes: Mapping[str, int]


@dataclass(slots=True)
class _Remembered:
    """A shape that was compiled.

    Attributes:
        question: what was compiled.
        asked: the goal that has its answers.
        shape: the columns of the answer, and their types.
        given: the relation of the values of parameters, if there are any.
        answers: the relation that gets the answers.
        lookup: what to look up, if that is all.
        made: the plan, from its first run on.
    """

    question: CompiledQuestion
    asked: AskedGoal
    shape: Relation
    given: Relation | None
    answers: Relation
    lookup: _Lookup | None
    made: _ShapePlan | None = None

    @property
    def relations(self) -> dict[str, Relation]:
        """The relations that it has in the engine."""
        every = (self.answers,) if self.given is None else (self.given, self.answers)
        return {each.name: each for each in every}


class QuestionPlans:
    """Remembers the plans of questions, as long as the program in force is the same.

    Args:
        state: of the database.
    """

    def __init__(self, state: DatabaseState) -> None:
        self._state = state
        self._shapes: OrderedDict[_Key, _Remembered | _Unplanned] = OrderedDict()
        self._made_for: tuple[LoadedProgram, Engine] = (state.loaded, state.engine)
        self._numbers = count(1)

    def answer(
        self,
        text: str,
        parameters: Mapping[str, Any],
        catalog: Callable[[], SqlCatalog],
        scope: object = None,
    ) -> SqlAnswer | None:
        """Answer a question whose shape was asked before.

        Args:
            text: the question, which has a shape.
            parameters: the values of its own parameters.
            catalog: returns the relations that it may name.
            scope: tells apart who may name different ones.

        Returns:
            The answer; None if the question has to be compiled as it is written.
        """
        shape, constants = cut_constants(text)
        values = {**{f"{PREFIX}{at}": each for at, each in enumerate(constants, 1)}, **parameters}
        types: dict[str, Type] = {}
        for name, value in values.items():
            type_ = parameter_type(value)
            if type_ is None:
                return None
            types[name] = type_
        self._forget()
        key = shape, tuple(types.items()), scope
        found = self._shapes.get(key)
        if found is None:
            self._shapes[key] = _Unplanned.SEEN
            if len(self._shapes) > SHAPES_MAX:
                self._drop(self._shapes.popitem(last=False)[1])
            return None
        self._shapes.move_to_end(key)
        if found is _Unplanned.UNFIT:
            return None
        try:
            if found is _Unplanned.SEEN:
                self._shapes[key] = _Unplanned.UNFIT
                place = StatementPlace(SourceFile("SQL", text), parameters)
                found = self._compile(shape, types, place, catalog())
                if found is None:
                    return None
                self._shapes[key] = found
            assert isinstance(found, _Remembered)
            rows = self._rows(found, values)
        except CorollaryError:  # asked as it is written, it gets its message
            return None
        return SqlAnswer(found.shape, rows, self._state.frames, found.question.is_ordered)

    # --- running -------------------------------------------------------------------------------

    def _rows(self, found: _Remembered, values: Mapping[str, Any]) -> pa.Table:
        engine, lookup = self._state.engine, found.lookup
        if lookup is not None:
            given = [values[each] for each in lookup.names]
            columns = engine.lookup(
                lookup.relation, lookup.bound, given, lookup.columns, LOOKUP_MAX_ROWS
            )
            if columns is not None:
                names = [str(at) for at in range(len(columns))]
                return finish_answer(
                    pa.table(columns, names), found.question, has_counts=lookup.has_counts
                )
        engine.declare(found.relations)
        try:
            if found.given is not None:
                engine.insert(
                    found.given.name, [tuple(values[each] for each in found.given.columns)]
                )
            engine.run(self._plan(found), ProgressRecorder(self._state.console), self._state.limits)
            table = engine.read(found.answers.name)
        finally:
            engine.clear(found.relations)
        return finish_answer(table, found.question, has_counts=found.question.is_bag)

    def _plan(self, found: _Remembered) -> Plan:
        """Return the plan of a shape; it is made again when relations have other sizes."""
        state, made, program = self._state, found.made, found.asked.program
        if made is not None and not state.has_resized(made.sizes):
            return made.plan
        plan = answer_goal(
            program,
            found.asked.literal,
            state.planner.query_statistics(program),
            lambda name: program.relations[name].is_stored,
            answers=found.answers.name,
        )
        found.made = _ShapePlan(plan, state.sizes_of(plan))
        return plan

    # --- remembering ---------------------------------------------------------------------------

    def _compile(
        self, shape: str, types: Mapping[str, Type], place: StatementPlace, catalog: SqlCatalog
    ) -> _Remembered | None:
        """Return a shape, compiled; None if questions of it have to be compiled one by one.

        Raises:
            InputError: this question is wrong.
        """
        loaded, number = self._state.loaded, next(self._numbers)
        written, tree = _question_tree(place.file), _question_tree(SourceFile("SQL", shape))
        if written is None or tree is None:
            return None
        hidden = hidden_name(loaded)
        plain = compile_question(written, place, catalog, hidden)
        given = None
        if types:
            name = f"{hidden}.given{number}"
            given = Relation(name, tuple(types), tuple(types.values()), is_derived=False)
            if not take_parameters(tree, name):
                return None
            catalog.add(given_table(name, types))
        query = bind_query(tree, catalog, SourceFile("SQL", shape), takes_rows=True)
        if given is not None and not compares_only(query, given.name):
            return None
        question = lower_question(query, hidden)
        if question.rows or not _is_alike(plain, question):
            return None
        asked = read_question(loaded, question if given is None else _with_given(question, given))
        today = TODAY_RELATION in asked.program.relations.keys() - loaded.normal.relations.keys()
        expected = answer_shape(read_question(loaded, plain).answers.types, plain)
        found = answer_shape(asked.answers.types, question)
        if today or found != expected:
            return None
        answers = replace(asked.answers, name=working_relation("", f"question {number}"))
        lookup = None if given is None else _lookup_of(query, given.name, loaded)
        return _Remembered(question, asked, found, given, answers, lookup)

    def _forget(self) -> None:
        """Forget what was compiled for another program, or is in another engine."""
        loaded, engine = self._made_for
        if loaded is self._state.loaded and engine is self._state.engine:
            return
        if engine is self._state.engine:
            for each in self._shapes.values():
                self._drop(each)
        self._shapes.clear()
        self._made_for = self._state.loaded, self._state.engine

    def _drop(self, shape: _Remembered | _Unplanned) -> None:
        if isinstance(shape, _Remembered) and shape.made is not None:
            self._state.engine.drop(shape.relations)


def _question_tree(file: SourceFile) -> Any:
    """Return the tree of a text that is one question about the present; None for others."""
    statements = parse_statements(file)
    if len(statements) != 1 or not isinstance(statements[0], nodes.QueryStatement):
        return None
    tree = statements[0].query
    is_past = take_version(tree, StatementPlace(file, {})) is not None
    return None if is_past else tree


def _is_alike(one: CompiledQuestion, two: CompiledQuestion) -> bool:
    """Return whether the answers to two questions have the same width and order."""
    first, second = ((each.width, each.order, each.limit, each.offset) for each in (one, two))
    return first == second


def _with_given(question: CompiledQuestion, given: Relation) -> CompiledQuestion:
    """Return a question with the relation of its values, which are data."""
    columns = tuple(
        Column(name, TypeName(str(type_)))
        for name, type_ in zip(given.columns, given.types, strict=True)
    )
    declared = (*question.rules.declarations, Declaration(given.name, columns))
    rules = replace(question.rules, declarations=declared)
    return replace(question, rules=rules, rows={given.name: ()})


# --- lookups -----------------------------------------------------------------------------------


def _lookup_of(query: Query, values: str, loaded: LoadedProgram) -> _Lookup | None:
    """Return what a question looks up: columns of one stored relation, where others are given.

    Args:
        query: the question.
        values: the relation of the given values.
        loaded: the program.
    """
    select = question_of(query).query
    if not isinstance(select, Select) or select.is_distinct or select.having is not None:
        return None
    source, where = select.source, select.where
    if select.group_by is not None or where is None or not isinstance(source, JoinedSource):
        return None
    table, given = source.left, source.right
    if source.kind is not JoinKind.INNER or source.condition is not None:
        return None
    if not isinstance(table, TableSource) or not isinstance(given, TableSource):
        return None
    if given.relation != values:
        return None
    bound: dict[int, str] = {}
    for condition in _conjuncts(where):
        pair = _equated(condition, table, given)
        if pair is None or pair[0] in bound:
            return None
        bound[pair[0]] = given.columns[pair[1]].name
    columns = [each for _, each in select.columns]
    if not all(isinstance(each, ColumnReference) and each.depth == 0 for each in columns):
        return None
    normal = loaded.normal
    relation = normal.relations[normal.bags.get(table.relation, table.relation)]
    if not relation.is_stored:
        return None
    read = [each.column for each in columns if isinstance(each, ColumnReference)]
    if table.is_bag:
        read.append(relation.arity - 1)
    ordered = tuple(sorted(bound))
    names = tuple(bound[each] for each in ordered)
    return _Lookup(relation.name, ordered, names, tuple(read), table.is_bag)


def _conjuncts(condition: Expression) -> list[Expression]:
    if isinstance(condition, FunctionCall) and condition.functor == "and":
        return [part for each in condition.arguments for part in _conjuncts(each)]
    return [condition]


def _equated(
    condition: Expression, table: TableSource, given: TableSource
) -> tuple[int, int] | None:
    """Return the column of a table, and that of the given values, that a condition equates."""
    if not isinstance(condition, FunctionCall) or condition.functor != "eq":
        return None
    columns = {
        each.source: each.column
        for each in condition.arguments
        if isinstance(each, ColumnReference) and each.depth == 0
    }
    if columns.keys() != {table.number, given.number}:
        return None
    return columns[table.number], columns[given.number]
