"""Steps of a plan as queries of Spark SQL, with a column for each column of the target.

A query has the columns of the target's tuples, `v0`, `v1`, …, and `mark`, which is true for rows
that may lack a value.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from corollary.core.logic import NO_RULE, Windowing
from corollary.core.pipeline import Pipeline
from corollary.core.plans import Aggregate, Derive, ReadTotals, Reduce, Total, Window
from corollary.core.totals import word_slices
from corollary.core.types import DECIMAL_MAX_DIGITS, NUMBER, Type
from corollary.data_class import dataclass
from corollary.engines.local.bulk.fusion import GroupStep, scan, summaries_of
from corollary.engines.spark.bulk.spark_columns import column_names
from corollary.sqlgen import nodes, udf
from corollary.sqlgen.compiled import (
    MARK,
    ROWS,
    CompiledQuery,
    InputTable,
    NotCompiled,
    OutputColumn,
    Representation,
)
from corollary.sqlgen.dialect import NotExactError
from corollary.sqlgen.groups import GroupedRows, compile_groups, labelled
from corollary.sqlgen.nodes import Node
from corollary.sqlgen.pipelines import compile_pipeline, query_of
from corollary.sqlgen.query_frames import InputColumns, count_rows
from corollary.sqlgen.spark_dialect import SPARK
from corollary.sqlgen.windows import exact_window

QUERY = "q"
SHARED = "shared_groups"
"""The view of what several steps read."""

Types = Mapping[str, tuple[Type, ...]]


@dataclass(frozen=True, slots=True)
class StepQuery:
    """A step as SQL, or several aggregations of the same rows.

    Attributes:
        trees: what udfs are looked for in.
        texts: for each step, the query of its tuples.
        fault_texts: each gives a row if an expression had no value that is looked up.
        inputs: the tables that each of their pipelines reads.
        shared: what the queries of several steps read, as the view `SHARED`: it is computed once.
    """

    trees: tuple[Node, ...]
    texts: tuple[str, ...]
    fault_texts: tuple[str, ...]
    inputs: tuple[tuple[InputTable, ...], ...]
    shared: str | None = None


def derive_query(
    step: Derive, types: Types, distinct_after: Mapping[int, Collection[int]]
) -> StepQuery | NotCompiled:
    """Return the heads of all pipelines of a step, or the reason why they have no query.

    Args:
        step: the step.
        types: the column types of every relation.
        distinct_after: for each pipeline the stages after which rows are made distinct.
    """
    head = types[step.target]
    parts: list[CompiledQuery] = []
    for at, pipeline in enumerate(step.pipelines):
        found = compile_pipeline(
            pipeline,
            types,
            head,
            SPARK,
            sums_last=step.reduce is Reduce.SUM,
            distinct_after=distinct_after.get(at, ()),
        )
        if isinstance(found, NotCompiled):
            return found
        parts.append(found)
    queries = [
        _named(each.query, _head_values(each.outputs), head, has_mark=each.has_mark)
        for each in parts
    ]
    return _joined(queries, parts)


def group_query(
    steps: Sequence[GroupStep], rows: Pipeline | None, types: Types
) -> StepQuery | NotCompiled:
    """Return the tuples of aggregations, or the reason why they have no query.

    Args:
        steps: aggregations of the same rows by the same keys.
        rows: what gives the rows of their body, None if they are a relation.
        types: the column types of every relation.
    """
    body = types[steps[0].body.relation]
    pipeline = scan(steps[0], types) if rows is None else rows
    grouped = GroupedRows(pipeline, body, steps[0].aggregation.groups)
    found = compile_groups(grouped, [summaries_of(each, types) for each in steps], types, SPARK)
    if isinstance(found, NotCompiled):
        return found
    compiled = found.compiled
    is_shared = len(steps) > 1
    source = exp.to_table(SHARED, quoted=True) if is_shared else compiled.query
    queries = []
    for step, (first, count) in zip(steps, found.summaries, strict=True):
        columns = [nodes.column(f"m{at}", QUERY) for at in range(first, first + count)]
        values = [*_head_values(compiled.outputs), *columns]
        query = _named(source, values, types[step.target], has_mark=compiled.has_mark)
        kept = _is_kept(step, columns, body)
        if kept is not None:
            query.set("where", exp.Where(this=kept))
        queries.append(query)
    if not is_shared:
        return _joined(queries, [compiled])
    made = _joined([compiled.query], [compiled])
    texts = tuple(map(SPARK.text, queries))
    return replace(made, trees=(*made.trees, *queries), texts=texts, shared=made.texts[0])


def totals_query(step: ReadTotals, types: Types) -> StepQuery:
    """Return the groups and values that running totals say."""
    target, aggregation = types[step.target], step.aggregation
    length = len(aggregation.groups)
    table, source = InputColumns(), step.totals
    table.use(source)
    keys = [table.read(source, Representation.VALUE, at) for at in range(length)]
    rest = [
        table.read(source, Representation.VALUE, at)
        for at in range(length, len(types[source.relation]))
    ]
    groups: list[Node] = []
    is_float = step.terms[0].is_float
    if is_float:
        struct = nodes.call("NAMED_STRUCT", *labelled((udf.PLACE, udf.DIGIT), rest))
        listed = nodes.call("COLLECT_LIST", struct)
        read, groups = [udf.call_udf(udf.ReadDigits(aggregation.only.operator), listed)], keys
    else:
        slices, read = word_slices(aggregation.values, step.terms), []
        for each, type_ in zip(aggregation.accumulators, target[length:], strict=True):
            words = rest[slices[each.value]]
            match each.operator:
                case "count":
                    read.append(rest[0])
                case "mean":
                    read.append(udf.call_udf(udf.MeanOfWords(step.term_of(each)), rest[0], *words))
                case _:
                    read.append(udf.call_udf(udf.JoinWords(_widest(type_)), *words))
    values = zip(column_names(target), (*keys, *read), strict=True)
    items = [nodes.named(each, name) for name, each in values]
    mark = nodes.named(exp.Boolean(this=False), MARK)
    query = nodes.select([*items, mark], table.use(source), groups=groups)
    if groups == [] and is_float:  # an aggregate of no rows would be a row
        test = nodes.binary(exp.GT, count_rows(), nodes.integer(0, "BIGINT"))
        query.set("having", exp.Having(this=test))
    return StepQuery((query,), (SPARK.text(query),), (), (table.tables(),))


def window_query(step: Window, rows: Pipeline | None, types: Types) -> StepQuery | NotCompiled:
    """Return rows with the values of their window functions, or why they have no query.

    Args:
        step: the step.
        rows: what gives the rows of its body, None if they are a relation.
        types: the column types of every relation.
    """
    windowing, body, target = step.windowing, types[step.body.relation], types[step.target]
    pipeline = scan(step, types) if rows is None else rows
    try:
        compiled = query_of(pipeline, types, body, SPARK, None, values=range(len(body)))
    except NotExactError as error:
        return NotCompiled(str(error))
    if not pipeline.is_bag:
        compiled.query.set("distinct", exp.Distinct())
    columns = _head_values(compiled.outputs)
    try:
        values = [
            exact_window(each, windowing, list(zip(columns, body, strict=True)), result, SPARK)
            for each, result in zip(windowing.functions, target[len(body) :], strict=True)
        ]
    except NotExactError as error:
        if not windowing.partition:
            return NotCompiled(f"{error}, and there is no `partition by`")
        query = _windows_by_udf(windowing, compiled, target)
    else:
        query = _named(compiled.query, [*columns, *values], target, has_mark=compiled.has_mark)
    if windowing.top is not None:
        at, most = windowing.top
        name = column_names(target)[len(body) + at]
        number = nodes.integer(most, SPARK.type_name(NUMBER))
        is_top = nodes.binary(exp.LTE, nodes.column(name, QUERY), number)
        first = nodes.either(is_top, nodes.column(MARK, QUERY))
        query = nodes.select([exp.Star()], nodes.subquery(query, QUERY), first)
    return _joined([query], [compiled])


def _windows_by_udf(
    windowing: Windowing, rows: CompiledQuery, target: tuple[Type, ...]
) -> exp.Select:
    """Return the query whose window functions our own code computes, partition by partition."""
    columns = _head_values(rows.outputs)
    struct = nodes.call("NAMED_STRUCT", *labelled(column_names(target)[: len(columns)], columns))
    function = udf.WindowRows(replace(windowing, relation="", body="", origin=NO_RULE), target)
    call = udf.call_udf(function, nodes.call("COLLECT_LIST", struct))
    mark: Node = exp.Boolean(this=False)
    if rows.has_mark:
        mark = nodes.call("BOOL_OR", nodes.column(MARK, QUERY))
    keys = [columns[at] for at in windowing.partition if rows.outputs[at].form is not None]
    items = [nodes.named(call, ROWS), nodes.named(mark, MARK)]
    grouped = nodes.select(items, nodes.subquery(rows.query, QUERY), groups=keys)
    marked = nodes.named(nodes.column(MARK, QUERY), MARK)
    inlined = nodes.call("INLINE", nodes.column(ROWS, QUERY))
    every = nodes.select([marked, inlined], nodes.subquery(grouped, QUERY))
    values = [nodes.column(name, QUERY) for name in column_names(target)]
    return _named(every, values, target, has_mark=True)


def _is_kept(step: GroupStep, columns: Sequence[Node], body: tuple[Type, ...]) -> Node | None:
    """Return the test whether a group has a value; None for all."""
    match step:
        case Aggregate(aggregation=aggregation):
            if aggregation.has_every_group:
                return None
            return nodes.either(nodes.is_present(columns[0]), nodes.column(MARK, QUERY))
        case Total(aggregation=aggregation):
            if any(body[at].is_float for at in aggregation.values):
                return None
            zero = nodes.integer(0, "BIGINT")
            tests = [nodes.binary(exp.NEQ, each, zero) for each in columns]
            return nodes.any_of([*tests, nodes.column(MARK, QUERY)])


def _head_values(outputs: Sequence[OutputColumn]) -> list[Node]:
    """Return the columns of a query's result; constants are none of them."""
    found: list[Node] = []
    count = 0
    for output in outputs:
        if output.form is None:
            assert output.constant is not None
            found.append(SPARK.constant(output.constant.value, output.constant.type or NUMBER))
        else:
            found.append(nodes.column(f"h{count}", QUERY))
            count += 1
    return found


def _named(
    source: exp.Select | exp.Table, values: Sequence[Node], types: Sequence[Type], *, has_mark: bool
) -> exp.Select:
    """Return a query with the columns of a relation, and one for marks."""
    items = [
        nodes.named(nodes.cast(value, SPARK.type_name(_widest(type_))), name)
        for name, type_, value in zip(column_names(types), types, values, strict=True)
    ]
    if not has_mark:
        mark = nodes.named(exp.Boolean(this=False), MARK)
        source = nodes.select([exp.Star(), mark], _aliased(source))
    marked = nodes.named(nodes.column(MARK, QUERY), MARK)
    return nodes.select([*items, marked], _aliased(source))


def _aliased(source: exp.Select | exp.Table) -> Node:
    """Return what a query reads under the name that it has there."""
    if isinstance(source, exp.Table):
        table = source.copy()
        table.set("alias", exp.TableAlias(this=exp.to_identifier(QUERY)))
        return table
    return nodes.subquery(source, QUERY)


def _widest(type_: Type) -> Type:
    """Return a type with all digits: whether they are too many is not decided by a query."""
    if not type_.is_decimal:
        return type_
    return replace(type_, precision=DECIMAL_MAX_DIGITS)


def _joined(queries: Sequence[exp.Select], parts: Sequence[CompiledQuery]) -> StepQuery:
    """Return the union of queries; the tables of each get names of their own."""
    inputs: list[tuple[InputTable, ...]] = []
    trees: list[Node] = []
    faults: list[str] = []
    texts: list[str] = []
    for number, (query, part) in enumerate(zip(queries, parts, strict=True)):
        names = {each.name: f"p{number}_{each.name}" for each in part.inputs}
        inputs.append(tuple(replace(each, name=names[each.name]) for each in part.inputs))
        for tree in (query, *part.fault_queries):
            renamed = tree.copy()
            for table in list(renamed.find_all(exp.Table)):
                table.set("this", exp.to_identifier(names[table.name], quoted=True))
            trees.append(renamed)
            (texts if tree is query else faults).append(SPARK.text(renamed))
    return StepQuery(tuple(trees), (" UNION ALL ".join(texts),), tuple(faults), tuple(inputs))
