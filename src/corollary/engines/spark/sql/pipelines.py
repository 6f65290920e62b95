"""One pipeline as one query: a stage becomes a SELECT over the stage before it.

A row whose expression has no value is dropped where that happens, as on the local engine; that it
happened is told by further rows, which hold nothing but the number of the pipeline in `fault`. The
expressions behind the last join mark the row itself; for those before it, a query of its own looks
whether there is such a row.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from sqlglot import exp

from corollary.core.logic import Constant, Functor, Slot, Variable
from corollary.core.pipeline import AntiProbe, Compute, Filter, Pipeline, Probe, Reference, Stage
from corollary.core.types import Type
from corollary.engines.local.evaluation.expressions import type_of
from corollary.engines.local.evaluation.pipelines import live_variables
from corollary.engines.spark.sql import expressions, sql
from corollary.engines.spark.sql.columns import FAULT, UNIT, names_of
from corollary.engines.spark.sql.functions import Functions, Scope
from corollary.engines.spark.sql.table import Table

FRAME, SOURCE = "f", "s"
"""The names of the rows so far, and of the relation that is joined."""

MARK = "marked"
"""The column that says that an expression of a row has no value."""


@dataclass(slots=True)
class Frame:
    """Rows under way.

    Attributes:
        query: what gives them; None for the one row that binds nothing.
        columns: the column of each variable, with its type.
        is_marked: whether there is a column for rows without a value.
    """

    query: sql.Node | None = None
    columns: dict[str, tuple[str, Type]] = field(default_factory=dict)
    is_marked: bool = False

    def source(self) -> sql.Node:
        """Return the rows as the source of a query."""
        return sql.of(sql.unit() if self.query is None else self.query.copy(), FRAME)

    def scope(self) -> Scope:
        """Return the variables as columns of the source."""
        return {
            name: (sql.column(column, FRAME), type_)
            for name, (column, type_) in self.columns.items()
        }


class Lowering:
    """Makes the query of one pipeline.

    Attributes:
        faults: queries for the rows that have met an expression without a value.
    """

    def __init__(
        self, pipeline: Pipeline, tables: Mapping[str, Table], functions: Functions
    ) -> None:
        self._pipeline = pipeline
        self._tables = tables
        self._functions = functions
        self._count = 0
        self.faults: list[sql.Node] = []

    # --- the whole -----------------------------------------------------------------------------

    def frame(self) -> Frame:
        """Return the rows that pass all stages."""
        stages = self._pipeline.stages
        needed = live_variables(self._pipeline)
        tail = 1 + max((at for at, each in enumerate(stages) if _is_join(each)), default=-1)
        frame = Frame()
        for at, stage in enumerate(stages):
            frame = self._staged(stage, frame, needed[at], is_tail=at >= tail)
        return frame

    def heads(self, types: Iterable[Type], number: int | None) -> list[sql.Node]:
        """Return queries that together give the heads, and the faults under a number if given."""
        listed = tuple(types)
        frame = self.frame()
        scope = frame.scope()
        names = names_of(listed)
        values = [
            sql.cast(self._operand(slot, scope), type_)
            for slot, type_ in zip(self._pipeline.head, listed, strict=True)
        ] or [exp.Boolean(this=True)]
        nodes = [sql.named(value, name) for value, name in zip(values, names, strict=True)]
        if number is None:
            return [sql.select(nodes, frame.source())]
        mark: sql.Node = _fault(None)
        if frame.is_marked:
            mark = exp.Case(ifs=[exp.If(this=sql.column(MARK, FRAME), true=_fault(number))])
        queries: list[sql.Node] = [sql.select([*nodes, sql.named(mark, FAULT)], frame.source())]
        for each in self.faults:
            empty = [
                sql.named(sql.cast(exp.Null(), type_), name)
                for name, type_ in zip(names, listed, strict=False)
            ] or [sql.named(exp.Boolean(this=True), UNIT)]
            told = sql.select([*empty, sql.named(_fault(number), FAULT)], sql.of(each, FRAME))
            told.set("limit", exp.Limit(expression=sql.number(1)))
            queries.append(sql.select([exp.Star()], sql.of(told, FRAME)))
        return queries

    # --- stages --------------------------------------------------------------------------------

    def _staged(
        self, stage: Stage, frame: Frame, needed: frozenset[str], *, is_tail: bool
    ) -> Frame:
        match stage:
            case Probe():
                return self._probed(stage, frame, needed)
            case AntiProbe():
                return self._absent(stage, frame)
            case Filter(condition=condition):
                lowered = expressions.lower_condition(condition, frame.scope(), self._functions)
                return self._kept(frame, lowered, lowered.value, {}, is_tail=is_tail)
            case Compute(expression=Functor(name="range") as functor, variable=variable):
                return self._ranged(variable, functor, frame)
            case Compute():
                return self._computed(stage, frame, is_tail=is_tail)
            case _:
                assert_never(stage)

    def _probed(self, stage: Probe, frame: Frame, needed: frozenset[str]) -> Frame:
        table = self._tables[stage.source.relation]
        scope = frame.scope()
        tests: list[sql.Node] = []
        fresh: dict[str, tuple[sql.Node, Type]] = {}
        layers = table.layers(stage.source.state)
        held = zip(names_of(table.types), table.types, layers.nulls, stage.slots, strict=False)
        for name, type_, may_be_null, slot in held:
            place = sql.column(name, SOURCE)
            match slot:
                case Variable(name=variable):
                    known = scope.get(variable) or fresh.get(variable)
                    if known is None:
                        fresh[variable] = (place, type_.with_null(may_be_null))
                    else:
                        is_nullable = may_be_null and known[1].nullable
                        tests.append(sql.same(known[0], place, is_nullable=is_nullable))
                case Constant(value=value):
                    node = self._operand(slot, scope)
                    tests.append(sql.same(place, node, is_nullable=value is None))
                case _:
                    pass
        kept = {name: place for name, place in scope.items() if name in needed}
        wanted = {name: place for name, place in fresh.items() if name in needed}
        source = sql.of(layers.query(), SOURCE)
        on = sql.every(tests)
        if frame.query is None:
            return self._selected({**kept, **wanted}, source, on)
        if wanted or self._pipeline.is_bag:
            kind = "CROSS" if on is None else "INNER"
        else:
            kind = "SEMI"
            on = on or exp.Boolean(this=True)
        made = self._selected({**kept, **wanted}, frame.source(), None)
        assert isinstance(made.query, exp.Select)
        sql.joined(made.query, source, on, kind)
        return made

    def _absent(self, stage: AntiProbe, frame: Frame) -> Frame:
        table = self._tables[stage.source.relation]
        if not table.size(stage.source.state):
            return frame
        scope = frame.scope()
        layers = table.layers(stage.source.state)
        held = zip(names_of(table.types), layers.nulls, stage.slots, strict=False)
        tests = [
            sql.same(self._operand(slot, scope), sql.column(name, SOURCE), is_nullable=may_be_null)
            for name, may_be_null, slot in held
        ]
        on = sql.every(tests) or exp.Boolean(this=True)
        away = layers.query()
        if self._is_lookup(stage.source):
            found = sql.select([exp.Star()], sql.of(away, SOURCE))
            away = sql.joined(found, frame.source(), on.copy(), "SEMI")
        made = self._selected(scope, frame.source(), None)
        assert isinstance(made.query, exp.Select)
        sql.joined(made.query, sql.of(away, SOURCE), on, "ANTI")
        return made

    def _is_lookup(self, source: Reference) -> bool:
        """Whether few rows are looked up among many tuples: then those that match come first."""
        first = self._pipeline.stages[0]
        table = self._tables[source.relation]
        small = table.pieces.small
        if not isinstance(first, Probe) or table.size(source.state) <= small:
            return False
        lead = first.source
        return self._tables[lead.relation].size(lead.state) <= small

    def _computed(self, stage: Compute, frame: Frame, *, is_tail: bool) -> Frame:
        lowered = expressions.lower(stage.expression, frame.scope(), self._functions)
        type_ = type_of(stage.expression)
        test = None if stage.accepts_null else sql.is_present(lowered.value)
        value = sql.cast(lowered.value, type_)
        fresh = {stage.variable.name: (value, type_.with_null(stage.accepts_null))}
        return self._kept(frame, lowered, test, fresh, is_tail=is_tail)

    def _ranged(self, variable: Variable, functor: Functor, frame: Frame) -> Frame:
        lowered = expressions.called(self._functions.range(functor, frame.scope()))
        frame = self._with_call(frame, lowered)
        self._note(frame, lowered)
        numbers = exp.Explode(this=lowered.value)
        return self._selected(
            {**frame.scope(), variable.name: (numbers, type_of(functor))}, frame.source(), None
        )

    def _kept(
        self,
        frame: Frame,
        lowered: expressions.LoweredExpression,
        test: sql.Node | None,
        fresh: Scope,
        *,
        is_tail: bool,
    ) -> Frame:
        """Return the rows that pass a test, with further columns; rows without a value go."""
        frame = self._with_call(frame, lowered)
        fault = lowered.fault
        tests = [each for each in (test,) if each is not None]
        columns = {**frame.scope(), **fresh}
        if not self._is_judged:
            return self._selected(columns, frame.source(), self._passed(tests, fault))
        if not is_tail:
            self._note(frame, lowered)
            return self._selected(columns, frame.source(), self._passed(tests, fault))
        marks = [each for each in (fault, self._mark(frame)) if each is not None]
        if not marks:
            return self._selected(columns, frame.source(), sql.every(tests))
        mark = sql.call("COALESCE", *_listed(sql.any_of(marks)), exp.Boolean(this=False))
        where = None
        if (passed := sql.every(tests)) is not None:
            where = sql.any_of([passed, mark])
        made = self._selected(columns, frame.source(), where, sql.named(mark.copy(), MARK))
        made.is_marked = True
        return made

    @staticmethod
    def _passed(tests: list[sql.Node], fault: sql.Node | None) -> sql.Node | None:
        return sql.every([*tests, *([sql.negated(fault)] if fault is not None else [])])

    @property
    def _is_judged(self) -> bool:
        return bool(self._pipeline.judge)

    @staticmethod
    def _mark(frame: Frame) -> sql.Node | None:
        return sql.column(MARK, FRAME) if frame.is_marked else None

    def _note(self, frame: Frame, lowered: expressions.LoweredExpression) -> None:
        """Look for rows of a frame whose expression has no value."""
        if self._is_judged and lowered.fault is not None:
            nodes = [sql.named(exp.Boolean(this=True), UNIT)]
            self.faults.append(sql.select(nodes, frame.source(), lowered.fault.copy()))

    # --- pieces of queries ---------------------------------------------------------------------

    @staticmethod
    def _operand(slot: Slot, scope: Scope) -> sql.Node:
        match slot:
            case Variable(name=name):
                return scope[name][0]
            case Constant(value=value):
                return sql.constant(value, type_of(slot))
            case _:
                raise AssertionError("`_` has no value")

    def _selected(
        self, columns: Scope, source: sql.Node, where: sql.Node | None, *more: sql.Node
    ) -> Frame:
        """Return a frame of some columns, which get new names."""
        named: dict[str, tuple[str, Type]] = {}
        nodes: list[sql.Node] = []
        for variable, (node, type_) in columns.items():
            self._count += 1
            name = f"v{self._count}"
            named[variable] = (name, type_)
            nodes.append(sql.named(node, name))
        nodes += more
        nodes = nodes or [sql.named(exp.Boolean(this=True), UNIT)]
        return Frame(sql.select(nodes, source, where), named)

    def _with_call(self, frame: Frame, lowered: expressions.LoweredExpression) -> Frame:
        """Return a frame in which the call of a lowered expression has been made."""
        if lowered.call is None:
            return frame
        nodes: list[sql.Node] = [
            sql.named(sql.column(name, FRAME), name) for name, _ in frame.columns.values()
        ]
        if frame.is_marked:
            nodes.append(sql.named(sql.column(MARK, FRAME), MARK))
        nodes.append(sql.named(lowered.call, expressions.CALLED))
        return Frame(sql.select(nodes, frame.source()), frame.columns, frame.is_marked)


def _fault(number: int | None) -> sql.Node:
    value = exp.Null() if number is None else sql.number(number)
    return exp.Cast(this=value, to=exp.DataType.build("INT"))


def _listed(node: sql.Node | None) -> list[sql.Node]:
    return [] if node is None else [node]


def _is_join(stage: Stage) -> bool:
    if isinstance(stage, Compute):
        return isinstance(stage.expression, Functor) and stage.expression.name == "range"
    return isinstance(stage, Probe | AntiProbe)


def is_empty(pipeline: Pipeline, tables: Mapping[str, Table]) -> bool:
    """Whether a pipeline gives nothing because a relation that it looks up is empty."""
    return any(
        isinstance(stage, Probe) and not tables[stage.source.relation].size(stage.source.state)
        for stage in pipeline.stages
    )


def inputs_of(pipeline: Pipeline, tables: Mapping[str, Table]) -> int:
    """Return how many tuples a pipeline reads."""
    return sum(
        tables[stage.source.relation].size(stage.source.state)
        for stage in pipeline.stages
        if isinstance(stage, Probe | AntiProbe)
    )
