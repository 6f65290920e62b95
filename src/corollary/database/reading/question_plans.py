"""Questions in SQL that are asked again: their plans are remembered by shape.

The first question of a shape is compiled, planned and answered as it is written; so are all that
are wrong or fail, since their messages speak of the user's text. The second one lets the shape be
compiled with its constants as parameters. From then on, a question of the shape inserts one row of
values and runs the plan again; one that asks for rows of a stored relation by values of its columns
looks them up.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from corollary.analysis.today import TODAY_RELATION
from corollary.core.arrow import arrow_type
from corollary.core.engine import Engine, LocalTable, TableHandle
from corollary.core.plans import working_relation
from corollary.core.program import Column, Declaration, Relation, TypeName
from corollary.data_class import dataclass
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.reading.answer import SqlAnswer
from corollary.database.reading.questions import answer_shape, hidden_name, read_question
from corollary.database.reading.shape_plans import ShapeCache, ShapePlan
from corollary.database.state import DatabaseState
from corollary.errors import InputError
from corollary.frontends.sql.binder.values.common_types import is_untyped
from corollary.frontends.sql.catalog import SqlCatalog
from corollary.frontends.sql.lowering.queries import question_of
from corollary.frontends.sql.query_tree import (
    ColumnReference,
    ConstantValue,
    Expression,
    FunctionCall,
    JoinedSource,
    JoinKind,
    Query,
    Select,
    TableSource,
    sources_in,
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
    TextShape,
    given_table,
    is_same_for_all_values,
    take_parameters,
)
from corollary.source import SourceFile

LOOKUP_MAX_ROWS = 10_000
"""More rows than these are not looked up: a plan finds them, within the limits of its work."""


_KERNELS = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
"""The arithmetic of numbers."""


@dataclass(frozen=True, slots=True)
class _Computed:
    """Arithmetic of numbers."""

    functor: str
    arguments: "tuple[_Read, ...]"


_Read = int | str | ConstantValue | _Computed
"""A column of the relation, a parameter, a constant, or what is computed of them."""


def _stored_columns(parts: Iterable[_Read]) -> Iterator[int]:
    for each in parts:
        if isinstance(each, int):
            yield each
        elif isinstance(each, _Computed):
            yield from _stored_columns(each.arguments)


@dataclass(frozen=True, slots=True)
class Lookup:
    """A question for the rows of a stored relation that have some values.

    Attributes:
        bound: the columns whose values are given, in ascending order.
        names: the parameters with these values.
        columns: those of the question; the number of copies last, if there are copies. None if
            it does more with the rows.
    """

    relation: str
    bound: tuple[int, ...]
    names: tuple[str, ...]
    columns: tuple[_Read, ...] | None
    has_counts: bool

    def rows(self, engine: Engine, values: Mapping[str, Any], given: Relation) -> pa.Table | None:
        """Return the rows for some values; None if many, elsewhere, or to be computed."""
        if self.columns is None:
            return None
        read = list(dict.fromkeys(_stored_columns(self.columns)))
        row = tuple(values[each] for each in self.names)
        found = engine.lookup(self.relation, self.bound, [row], read, LOOKUP_MAX_ROWS)
        if found is None:
            return None
        stored, size = dict(zip(read, found, strict=True)), len(found[0])
        types = dict(zip(given.columns, given.types, strict=True))

        def computed(each: _Read) -> Any:
            match each:
                case int():
                    return stored[each]
                case str():
                    return pa.scalar(values[each], arrow_type(types[each]))
                case ConstantValue(value=value, type=type_):
                    return pa.scalar(value, arrow_type(type_))
                case _Computed(functor=functor, arguments=arguments):
                    return _KERNELS[functor](*map(computed, arguments))

        try:
            columns = [computed(each) for each in self.columns]
        except pa.ArrowInvalid:  # an overflow: the plan says where
            return None
        whole = [pa.repeat(each, size) if isinstance(each, pa.Scalar) else each for each in columns]
        return pa.table(whole, [str(at) for at in range(len(whole))])


@dataclass(frozen=True, slots=True)
class QuestionShape:
    """What is made for questions of a shape.

    Attributes:
        question: what was compiled.
        plan: finds the rows.
        lookup: what it reads, if that is rows of one relation that have some values.
    """

    question: CompiledQuestion
    plan: ShapePlan
    lookup: Lookup | None

    def answer(self, state: DatabaseState, values: Mapping[str, Any]) -> SqlAnswer:
        """Return the answer for some values of the parameters.

        Raises:
            EvaluationError, LimitError: there are none.
        """
        lookup, given = self.lookup, self.plan.given
        if lookup is not None and given is not None:
            found = lookup.rows(state.engine, values, given)
            if found is not None:
                return self._finish(state, LocalTable(found), has_counts=lookup.has_counts)
        row = () if given is None else tuple(values[each] for each in given.columns)
        return self._finish(state, self.plan.run(state, [row]), has_counts=self.question.is_bag)

    def _finish(self, state: DatabaseState, rows: TableHandle, *, has_counts: bool) -> SqlAnswer:
        return SqlAnswer.of(
            self.plan.answers, rows, self.question, state.frames, has_counts=has_counts
        )


@dataclass(frozen=True, slots=True)
class QuestionPlans:
    """Answers questions by the plans of their shapes.

    Attributes:
        state: of the database.
    """

    state: DatabaseState

    def answer(
        self,
        text: str,
        parameters: Mapping[str, Any],
        catalog: Callable[[], SqlCatalog],
        scope: Hashable = None,
    ) -> SqlAnswer | None:
        """Answer a question whose shape was asked before.

        Args:
            text: the question.
            parameters: the values of its own parameters.
            catalog: returns the relations that it may name.
            scope: tells apart who may name different ones.

        Returns:
            The answer; None if the question has to be compiled as it is written.

        Raises:
            LimitError: it takes too long, or too much.
        """
        shape = TextShape.of(text, parameters)
        if shape is None:
            return None

        def make() -> QuestionShape | None:
            written = _question_tree(SourceFile("SQL", text))
            tree = _question_tree(SourceFile("SQL", shape.text))
            if written is None or tree is None:
                return None
            place = StatementPlace(SourceFile("SQL", text), parameters)
            return self.compile(shape, tree, written, place, catalog())

        try:
            found = ShapeCache.of(self.state).recall((shape.key, scope), make)
            if found is None:
                return None
            return found.answer(self.state, shape.values)
        except InputError:  # asked as it is written, it gets its message
            return None

    def compile(
        self, shape: TextShape, tree: Any, written: Any, place: StatementPlace, catalog: SqlCatalog
    ) -> QuestionShape | None:
        """Return what is made for a shape.

        Args:
            shape: the text, and the types of its parameters.
            tree: the question of the shape, with parameters.
            written: one question of the shape.
            place: where that one is written.
            catalog: the relations that it may name.

        Returns:
            None if questions of the shape have to be compiled one by one.

        Raises:
            InputError: this question is wrong.
        """
        loaded, number = self.state.loaded, ShapeCache.of(self.state).next_number()
        hidden, types = hidden_name(loaded), dict(shape.types)
        plain = compile_question(written, place, catalog, hidden)
        given = None
        if types:
            name = f"{hidden}.given{number}"
            given = Relation(name, tuple(types), tuple(types.values()), is_derived=False)
            if not take_parameters(tree, name):
                return None
            catalog.add(given_table(name, types))
        query = replace(place, file=SourceFile("SQL", shape.text)).bind(tree, catalog)
        if given is not None and not is_same_for_all_values(query, given.name):
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
        plan = ShapePlan(asked.program, asked.literal, given, answers)
        return QuestionShape(question, plan, lookup)


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
        Column(name, TypeName.of(type_))
        for name, type_ in zip(given.columns, given.types, strict=True)
    )
    declared = (*question.rules.declarations, Declaration(given.name, columns))
    rules = replace(question.rules, declarations=declared)
    return replace(question, rules=rules, rows={given.name: ()})


# --- lookups -----------------------------------------------------------------------------------


def _lookup_of(query: Query, values: str, loaded: LoadedProgram) -> Lookup | None:
    """Return what a question looks up: rows of one stored relation, where columns are given.

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
    normal = loaded.normal
    relation = normal.relations[normal.bags.get(table.relation, table.relation)]
    if not relation.is_stored:
        return None
    if len(list(sources_in(query))) > 2:  # the relation, and the values
        return None
    ordered = tuple(sorted(bound))
    names = tuple(bound[each] for each in ordered)
    columns = _read_columns(select, given)
    if columns is not None and table.is_bag:
        columns = (*columns, relation.arity - 1)
    return Lookup(relation.name, ordered, names, columns, table.is_bag)


def _read_columns(select: Select, given: TableSource) -> tuple[_Read, ...] | None:
    """Return what a block selects, if it is simple and reads a column of the relation."""

    def read(each: Expression) -> _Read | None:
        match each:
            case ColumnReference(depth=0, source=source, column=column):
                return given.columns[column].name if source == given.number else column
            case ConstantValue() if not is_untyped(each):
                return each
            case FunctionCall(functor=functor, arguments=arguments) if functor in _KERNELS:
                parts = [read(part) if part.type.is_number else None for part in arguments]
                found = tuple(part for part in parts if part is not None)
                return _Computed(functor, found) if len(found) == len(parts) == 2 else None
            case _:
                return None

    found = [read(each) for _, each in select.columns]
    columns = tuple(each for each in found if each is not None)
    is_simple = len(columns) == len(found) and any(True for _ in _stored_columns(columns))
    return columns if is_simple else None


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
