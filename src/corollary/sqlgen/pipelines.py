"""One pipeline as one query: a stage becomes a SELECT over the stage before it.

Relations are tables with a column for the code of each column (`c0`, `c1`, …), or for its value
(`v0`, …), or both: the compiler says which it needs. A variable that a probe binds is carried as
its code, as long as that is enough, and as its value where an expression reads it. What is computed
has only a value.

A row whose expression has no value is *marked*, and goes on: later stages drop it only if they are
false for certain. So a mark in the result says that some instance of the body may lack a value: the
engine runs the pipeline again by its own code, which decides. A missing value that is looked up in
a relation would be lost in a join; there rows are dropped, and a *fault query* tells of them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from sqlglot import exp

from corollary.core.logic import (
    Condition,
    Constant,
    Expression,
    Functor,
    Variable,
    type_of,
    variables_of,
)
from corollary.core.pipeline import AntiProbe, Compute, Filter, Pipeline, Probe, Reference, Stage
from corollary.core.types import Type
from corollary.sqlgen import nodes
from corollary.sqlgen.compiled import (
    MARK,
    CompiledQuery,
    NotCompiled,
    OutputColumn,
    Representation,
)
from corollary.sqlgen.dialect import NotExactError, SqlDialect
from corollary.sqlgen.expressions import SqlExpression, lower_condition, lower_expression
from corollary.sqlgen.nodes import Node
from corollary.sqlgen.query_frames import (
    FRAME,
    INNER,
    UNIT,
    InputColumns,
    QueryFrame,
    RowTest,
    fault_name,
    fault_query,
    sum_last_column,
)
from corollary.sqlgen.representations import (
    Needs,
    VariableRepresentations,
    copied_variable,
    inner_functors,
    is_strict,
    looked_up_names,
    replace_inner,
)
from corollary.sqlgen.udf import FAULT, VALUE, evaluate_by_udf

EncodeConstant = Callable[[Constant], int]
"""Returns the code of a constant."""


def compile_pipeline(
    pipeline: Pipeline,
    types: Mapping[str, tuple[Type, ...]],
    head_types: tuple[Type, ...],
    dialect: SqlDialect,
    encode: EncodeConstant | None = None,
    *,
    sums_last: bool = False,
    distinct_after: Collection[int] = (),
) -> CompiledQuery | NotCompiled:
    """Return a pipeline as a query, or the reason why it has none.

    Args:
        pipeline: what to compile.
        types: the column types of every relation.
        head_types: those of the head.
        dialect: the engine that runs it.
        encode: the codes of constants, for a dialect with codes.
        sums_last: whether the last column is to be summed for tuples that agree in the others.
        distinct_after: stages after which rows are made distinct; not in a bag.
    """
    values = (len(head_types) - 1,) if sums_last else ()
    try:
        compiler = _Compiler(pipeline, types, dialect, encode, values)
        compiled = compiler.compile(head_types, distinct_after)
        return sum_last_column(compiled, dialect) if sums_last else compiled
    except NotExactError as error:
        return NotCompiled(str(error))


def query_of(
    pipeline: Pipeline,
    types: Mapping[str, tuple[Type, ...]],
    head_types: tuple[Type, ...],
    dialect: SqlDialect,
    encode: EncodeConstant | None,
    *,
    values: Collection[int],
) -> CompiledQuery:
    """Return a pipeline as a query; some columns of its head are wanted as values.

    Raises:
        NotExactError: it has no exact form.
    """
    return _Compiler(pipeline, types, dialect, encode, values).compile(head_types, ())


class _Compiler:
    def __init__(
        self,
        pipeline: Pipeline,
        types: Mapping[str, tuple[Type, ...]],
        dialect: SqlDialect,
        encode: EncodeConstant | None,
        values: Collection[int],
    ) -> None:
        self._pipeline = pipeline
        self._types = types
        self._dialect = dialect
        self._encode = encode
        self._forms = VariableRepresentations(pipeline, has_codes=dialect.has_codes, values=values)
        self._bound: set[str] = set()
        self._nullable: set[str] = set()
        self._inputs = InputColumns()
        self._count = self._layers = 0
        self._inner: dict[str, bool] = {}  # values of inner functors, and whether they may be null
        self._value_types: dict[str, Type] = {}  # what variables can be at most
        self._null_faults: set[str] = set()  # those of them that are missing where they are null
        self._fault_queries: list[exp.Select] = []
        self._looked_up = looked_up_names(pipeline)

    def compile(
        self, head_types: tuple[Type, ...], distinct_after: Collection[int]
    ) -> CompiledQuery:
        """Return the query of the pipeline."""
        stages = self._pipeline.stages
        needs = self._forms.needs()
        frame = QueryFrame()
        for at, stage in enumerate(stages):
            frame = self._stage(stage, frame, needs[at])
            if at in distinct_after and frame.query is not None:
                frame.query.set("distinct", exp.Distinct())
        outputs: list[OutputColumn] = []
        items: list[Node] = []
        for at, (slot, type_) in enumerate(zip(self._pipeline.head, head_types, strict=True)):
            constant = slot if isinstance(slot, Constant) else frame.constants.get(slot.name)
            if constant is not None:
                outputs.append(OutputColumn(type_, constant=constant))
                continue
            assert isinstance(slot, Variable)
            form = self._forms.head_representation(at)
            items.append(nodes.named(frame.column(form, slot.name), f"h{len(items)}"))
            outputs.append(OutputColumn(type_, form))
        if frame.mark is not None:
            items.append(nodes.named(frame.mark, MARK))
        items = items or [nodes.named(nodes.integer(1, "BIGINT"), UNIT)]
        query = nodes.select(items, frame.source())
        faults = tuple(self._fault_queries)
        return CompiledQuery(query, faults, frame.has_mark, tuple(outputs), self._inputs.tables())

    # --- stages --------------------------------------------------------------------------------

    def _stage(self, stage: Stage, frame: QueryFrame, needed: Needs) -> QueryFrame:
        match stage:
            case Probe():
                return self._probe(stage, frame, needed)
            case AntiProbe():
                return self._anti_probe(stage, frame, needed)
            case Filter(condition=condition):
                return self._filter(condition, frame, needed)
            case Compute():
                return self._compute(stage, frame, needed)
            case _:
                assert_never(stage)

    def _probe(self, stage: Probe, frame: QueryFrame, needed: Needs) -> QueryFrame:
        tests: list[Node] = []
        fresh: dict[tuple[Representation, str], Node] = {}
        first: dict[str, int] = {}
        for at, slot in enumerate(stage.slots):
            match slot:
                case Variable(name=name) if name in self._bound:
                    tests.append(self._same(slot, frame, stage.source, at))
                case Variable(name=name) if name in first:
                    form = self._forms.form(name)
                    one, two = (
                        self._inputs.read(stage.source, form, each) for each in (first[name], at)
                    )
                    tests.append(nodes.same(one, two, is_nullable=form is Representation.VALUE))
                case Variable(name=name):
                    first[name] = at
                    for form in Representation:
                        if (form, name) in needed:
                            fresh[form, name] = self._inputs.read(stage.source, form, at)
                case Constant():
                    tests.append(self._same(slot, frame, stage.source, at))
                case _:
                    pass
        self._bind(stage, first)
        on = nodes.every_of(tests)
        source = self._inputs.use(stage.source)
        is_test = not fresh and not self._pipeline.is_bag
        if frame.query is None:
            made = self._select(frame, needed, fresh, source, where=on)
            if is_test and made.query is not None:
                made.query.set("limit", exp.Limit(expression=exp.Literal.number(1)))
            return made
        side, kind = (
            self._dialect.semi_join if is_test else ("", "CROSS" if on is None else "INNER")
        )
        if is_test and on is None:
            on = exp.Boolean(this=True)
        made = self._select(frame, needed, fresh, frame.source())
        assert made.query is not None
        nodes.joined(made.query, source, on, side, kind)
        return made

    def _anti_probe(self, stage: AntiProbe, frame: QueryFrame, needed: Needs) -> QueryFrame:
        tests = [
            self._same(slot, frame, stage.source, at)
            for at, slot in enumerate(stage.slots)
            if isinstance(slot, Variable | Constant)
        ]
        source = self._inputs.use(stage.source)
        made = self._select(frame, needed, {}, frame.source())
        assert made.query is not None
        side, kind = self._dialect.anti_join
        nodes.joined(made.query, source, nodes.every_of(tests) or _TRUE, side, kind)
        return made

    def _filter(self, condition: Condition, frame: QueryFrame, needed: Needs) -> QueryFrame:
        if self._forms.is_compared_by_code(condition):
            truth = self._compare_codes(condition, frame)
            return self._keep(frame, needed, RowTest(truth, truth))
        # `is`, or a functor that makes a value of null, says nothing about rows that lack one.
        is_open = condition.operator == "is" or not is_strict(condition)
        try:
            plain, (left, right) = self._unnest(frame, (condition.left, condition.right))
            changed = Condition(condition.operator, left, right)
            lowered = lower_condition(changed, self._values(plain, left, right), self._dialect)
            frame = plain
        except NotExactError:
            if not self._dialect.calls_udf:
                raise
            frame, lowered = self._call_udf(frame, condition, condition.left, condition.right)
            is_open = True  # our own code gives false for null
        possible = None if is_open else nodes.call("COALESCE", lowered.value, _TRUE)
        return self._keep(frame, needed, RowTest(lowered.value, possible, lowered.fault))

    def _compare_codes(self, condition: Condition, frame: QueryFrame) -> Node:
        """Return a test on codes; that of null is 0, and no comparison with it is true."""
        sides = (condition.left, condition.right)
        one, two = (self._code(each, frame) for each in sides)
        if condition.operator == "is":
            return nodes.binary(exp.EQ, one, two)
        test = nodes.binary(exp.EQ if condition.operator == "=" else exp.NEQ, one, two)
        known = (nodes.binary(exp.NEQ, self._code(each, frame), _NULL_CODE) for each in set(sides))
        return nodes.every(test, *known)

    def _code(self, side: Expression, frame: QueryFrame) -> Node:
        if isinstance(side, Variable):
            return frame.column(Representation.CODE, side.name)
        assert isinstance(side, Constant)
        assert self._encode is not None
        return nodes.integer(self._encode(side), "BIGINT")

    def _compute(self, stage: Compute, frame: QueryFrame, needed: Needs) -> QueryFrame:
        name, expression = stage.variable.name, stage.expression
        self._bound.add(name)
        if stage.accepts_null:
            self._nullable.add(name)
        copied = copied_variable(expression)
        if copied is not None and copied.name in frame.constants:
            expression = frame.constants[copied.name]
        if isinstance(expression, Constant):
            if expression.value is None and not stage.accepts_null:
                frame = self._select(
                    frame, needed, {}, frame.source(), where=exp.Boolean(this=False)
                )
            return replace(frame, constants={**frame.constants, name: expression})
        if copied is not None:
            return self._copy(stage, copied.name, frame, needed)
        frame, lowered = self._lower(frame, expression)
        self._value_types[name] = lowered.type
        if lowered.tests_itself:  # a text that occurs twice is long to read, for DuckDB too
            frame, (variable,) = self._add_columns(frame, [lowered], [type_of(expression)])
            column = frame.column(Representation.VALUE, variable.name)
            lowered = replace(lowered, value=column, fault=nodes.is_null(column))
        fresh = (
            {(Representation.VALUE, name): lowered.value}
            if (Representation.VALUE, name) in needed
            else {}
        )
        truth = None
        if not stage.accepts_null:
            truth = nodes.either(nodes.is_present(lowered.value), lowered.fault)
        test = RowTest(truth, None, lowered.fault)
        return self._keep(frame, needed, test, fresh, is_lost=name in self._looked_up)

    def _copy(self, stage: Compute, other: str, frame: QueryFrame, needed: Needs) -> QueryFrame:
        """Bind a variable to the value of another one; a sum that is null has no value."""
        name = stage.variable.name
        self._value_types[name] = self._value_types[other]
        fresh = {
            (form, name): frame.column(form, other)
            for form in Representation
            if (form, name) in needed
        }
        form = self._forms.form(other)
        column = frame.column(form, other)
        present = (
            nodes.binary(exp.NEQ, column, _NULL_CODE)
            if form is Representation.CODE
            else nodes.is_present(column)
        )
        if isinstance(stage.expression, Functor):
            test = RowTest(None, None, nodes.negated(present))
            return self._keep(frame, needed, test, fresh, is_lost=name in self._looked_up)
        truth = None if stage.accepts_null else present
        return self._keep(frame, needed, RowTest(truth, None), fresh)

    def _keep(
        self,
        frame: QueryFrame,
        needed: Needs,
        test: RowTest,
        fresh: Mapping[tuple[Representation, str], Node] | None = None,
        *,
        is_lost: bool = False,
    ) -> QueryFrame:
        """Return the rows that pass a test, with further columns, and those that may lack a value.

        Args:
            frame: the rows.
            needed: what is needed of them afterwards.
            test: what they have to pass.
            fresh: further columns.
            is_lost: whether rows that lack the value would be lost later on.
        """
        source, fresh = frame.source(), fresh or {}
        fault = test.fault
        if fault is not None and is_lost:
            self._fault_queries.append(fault_query(frame, fault))
            passed = nodes.every(nodes.negated(fault), test.truth)
            return self._select(frame, needed, fresh, source, where=passed)
        mark = nodes.any_of((fault, frame.mark))
        if mark is None:
            return self._select(frame, needed, fresh, source, where=test.truth)
        where: Node | None = None
        if test.truth is not None:
            possible = None if frame.mark is None else nodes.every(frame.mark, test.possible)
            where = nodes.either(nodes.is_true(test.truth), fault, possible)
        return self._select(frame, needed, fresh, source, where=where, mark=mark)

    # --- pieces --------------------------------------------------------------------------------

    def _bind(self, stage: Probe, places: Mapping[str, int]) -> None:
        self._bound |= places.keys()
        types = self._types[stage.source.relation]
        self._nullable |= {name for name, at in places.items() if types[at].nullable}
        self._value_types |= {name: types[at] for name, at in places.items()}

    def _values(self, frame: QueryFrame, *expressions: Expression) -> dict[str, SqlExpression]:
        """Return the variables of expressions as SQL."""
        found: dict[str, SqlExpression] = {}
        for variable in (each for side in expressions for each in variables_of(side)):
            name = variable.name
            if name in frame.constants:
                found[name] = lower_expression(frame.constants[name], {}, self._dialect)
                continue
            found[name] = SqlExpression(
                frame.column(Representation.VALUE, name),
                self._inner_fault(name, frame),
                self._inner.get(name, type_of(variable).nullable or name in self._nullable),
                self._value_types.get(name, type_of(variable)),
            )
        return found

    def _inner_fault(self, name: str, frame: QueryFrame) -> Node | None:
        """Return the test for a missing value of an inner functor, if it can be missing."""
        if name in self._null_faults:
            return nodes.is_null(frame.column(Representation.VALUE, name))
        fault = fault_name(name)
        return (
            frame.column(Representation.VALUE, fault)
            if (Representation.VALUE, fault) in frame.columns
            else None
        )

    def _lower(self, frame: QueryFrame, expression: Expression) -> tuple[QueryFrame, SqlExpression]:
        """Return an expression as SQL, and the frame that it reads."""
        try:
            made, (plain,) = self._unnest(frame, (expression,))
            return made, lower_expression(plain, self._values(made, plain), self._dialect)
        except NotExactError:
            if not self._dialect.calls_udf:
                raise
            return self._call_udf(frame, expression, expression)

    def _call_udf(
        self, frame: QueryFrame, what: Expression | Condition, *sides: Expression
    ) -> tuple[QueryFrame, SqlExpression]:
        """Return what our own code computes, and the frame that has it."""
        call, type_ = evaluate_by_udf(what, sides, self._values(frame, *sides), self._dialect)
        made = SqlExpression(call, None, True, type_)
        frame, (variable,) = self._add_columns(frame, [made], [type_])
        column = frame.column(Representation.VALUE, variable.name)
        value, fault = (nodes.field(column, name) for name in (VALUE, FAULT))
        return frame, SqlExpression(value, fault, True, type_)

    def _unnest(
        self, frame: QueryFrame, expressions: Sequence[Expression]
    ) -> tuple[QueryFrame, tuple[Expression, ...]]:
        """Return expressions without nested functors: inner ones become columns of the frame."""
        inner = inner_functors(expressions)
        if not inner:
            return frame, tuple(expressions)
        frame, plain = self._unnest(frame, inner)
        values = self._values(frame, *plain)
        lowered = [lower_expression(each, values, self._dialect) for each in plain]
        frame, made = self._add_columns(frame, lowered, [type_of(each) for each in inner])
        return frame, replace_inner(expressions, made)

    def _add_columns(
        self, frame: QueryFrame, values: Sequence[SqlExpression], types: Sequence[Type]
    ) -> tuple[QueryFrame, list[Variable]]:
        """Return a frame with further values, and the variables that stand for them."""
        fresh: dict[tuple[Representation, str], Node] = {}
        made: list[Variable] = []
        for lowered, type_ in zip(values, types, strict=True):
            name = f"{INNER}{len(self._inner)}"
            self._inner[name] = lowered.may_be_null
            self._value_types[name] = lowered.type
            fresh[Representation.VALUE, name] = lowered.value
            if lowered.tests_itself:
                self._null_faults.add(name)
            elif lowered.fault is not None:
                fresh[Representation.VALUE, fault_name(name)] = lowered.fault
            made.append(Variable(name, type_))
        everything = frozenset(frame.columns)
        return self._select(frame, everything, fresh, frame.source()), made

    def _same(
        self, slot: Variable | Constant, frame: QueryFrame, source: Reference, column: int
    ) -> Node:
        """Return the test whether an argument is equal to a column of a relation."""
        constant = slot if isinstance(slot, Constant) else frame.constants.get(slot.name)
        if constant is not None:
            if self._dialect.has_codes:
                code = self._code(constant, frame)
                return nodes.same(
                    self._inputs.read(source, Representation.CODE, column), code, is_nullable=False
                )
            value = self._dialect.constant(constant.value, type_of(constant))
            is_nullable = constant.value is None
            return nodes.same(
                self._inputs.read(source, Representation.VALUE, column),
                value,
                is_nullable=is_nullable,
            )
        assert isinstance(slot, Variable)
        form = self._forms.form(slot.name)
        may_be_null = slot.name in self._nullable and self._types[source.relation][column].nullable
        return nodes.same(
            self._inputs.read(source, form, column),
            frame.column(form, slot.name),
            is_nullable=may_be_null and form is Representation.VALUE,
        )

    def _select(
        self,
        frame: QueryFrame,
        needed: Needs,
        fresh: Mapping[tuple[Representation, str], Node],
        source: Node,
        *,
        where: Node | None = None,
        mark: Node | None = None,
    ) -> QueryFrame:
        """Return a frame of what is needed, with further columns; all of them get new names."""
        self._layers += 1
        if self._dialect.layers_max is not None and self._layers > self._dialect.layers_max:
            raise NotExactError("it would be a query of too many layers")
        kept = {
            key: nodes.column(name, FRAME) for key, name in frame.columns.items() if key in needed
        }
        columns: dict[tuple[Representation, str], str] = {}
        items: list[Node] = []
        for key, value in {**kept, **fresh}.items():
            self._count += 1
            columns[key] = f"x{self._count}"
            items.append(nodes.named(value, columns[key]))
        mark = frame.mark if mark is None else mark
        if mark is not None:
            items.append(nodes.named(mark, MARK))
        items = items or [nodes.named(nodes.integer(1, "BIGINT"), UNIT)]
        query = nodes.select(items, source, None if where is None else where)
        return QueryFrame(query, columns, frame.constants, mark is not None)


_TRUE = exp.Boolean(this=True)
_NULL_CODE = nodes.integer(0, "BIGINT")
