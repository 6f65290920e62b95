"""Aggregates over the rows of a pipeline: one query for a join and all that is asked of its groups.

The rows are those of a set: a pipeline that may derive one twice makes them distinct first. Groups
come by their codes where these are known; what is computed of a group comes as numbers, as its
*summary* says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from corollary.core.pipeline import Pipeline
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.sqlgen import nodes
from corollary.sqlgen.compiled import (
    MARK,
    ROWS,
    CompiledGroups,
    CompiledQuery,
    NotCompiled,
    OutputColumn,
    Summary,
)
from corollary.sqlgen.dialect import NotExactError, SqlDialect
from corollary.sqlgen.nodes import Node
from corollary.sqlgen.pipelines import EncodeConstant, query_of
from corollary.sqlgen.query_frames import SOURCE, aggregate_form, count_rows
from corollary.sqlgen.udf import DIGIT, PLACE, ReadDigits, SplitDigits, call_udf


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """The rows that are aggregated.

    Attributes:
        pipeline: what gives them. If it is a bag, its rows are known to be distinct, or to count
            each; else they are made distinct.
        types: the column types of its head.
        keys: the columns of its head that rows of a group agree in.
    """

    pipeline: Pipeline
    types: tuple[Type, ...]
    keys: tuple[int, ...]


def compile_groups(
    rows: GroupedRows,
    summaries: Sequence[Sequence[Summary]],
    types: Mapping[str, tuple[Type, ...]],
    dialect: SqlDialect,
    encode: EncodeConstant | None = None,
) -> CompiledGroups | NotCompiled:
    """Return groups of rows as a query, or the reason why they have none.

    A value that is null is no value, except for a sum, which is null where it is too large.

    Args:
        rows: what is aggregated.
        summaries: what is asked of each group, each list by somebody else.
        types: the column types of every relation.
        dialect: the engine that runs the query.
        encode: the codes of constants, for a dialect with codes.
    """
    try:
        return _Grouping(rows, tuple(summaries), dialect).compile(types, encode)
    except NotExactError as error:
        return NotCompiled(str(error))


class _Grouping:
    def __init__(
        self, rows: GroupedRows, summaries: tuple[Sequence[Summary], ...], dialect: SqlDialect
    ) -> None:
        self._summaries = summaries
        self._dialect = dialect
        pipeline, groups = rows.pipeline, rows.keys
        every = (each.column for asked in summaries for each in asked)
        values = dict.fromkeys(each for each in every if each is not None)
        # What nobody asks for is left out, unless it makes rows distinct. A key that is aggregated,
        # too, is a column of its own, as it may have another form.
        shared = [at for at in values if at in groups]
        others = (
            (at for at in values if at not in groups)
            if pipeline.is_bag
            else (at for at in range(len(pipeline.head)) if at not in groups)
        )
        columns = (*groups, *others, *shared)
        self._rows = replace(pipeline, head=tuple(pipeline.head[at] for at in columns))
        self._types = tuple(rows.types[at] for at in columns)
        self._groups = range(len(groups))
        last = len(columns) - 1
        self._places = {at: last - columns[::-1].index(at) for at in values}

    def compile(
        self, types: Mapping[str, tuple[Type, ...]], encode: EncodeConstant | None
    ) -> CompiledGroups:
        """Return the query."""
        values = frozenset(self._places.values())
        body = query_of(self._rows, types, self._types, self._dialect, encode, values=values)
        if not self._rows.is_bag:
            body.query.set("distinct", exp.Distinct())
        names = _column_names(body.outputs)
        keys = [
            nodes.column(name, SOURCE) for at in self._groups if (name := names[at]) is not None
        ]
        outputs = tuple(body.outputs[at] for at in self._groups)
        if self._is_sum_of_floats():
            return self._sum_digits(body, keys, names, outputs)
        items = [nodes.named(each, f"h{at}") for at, each in enumerate(keys)]
        marks: list[Node] = []
        places: list[tuple[int, int]] = []
        count = 0
        for asked in self._summaries:
            made = [column for each in asked for column in self._summarise(each, names, marks)]
            items += [nodes.named(each, f"m{count + at}") for at, each in enumerate(made)]
            places.append((count, len(made)))
            count += len(made)
        items.append(nodes.named(count_rows(), ROWS))
        if body.has_mark:
            marks.append(nodes.call("BOOL_OR", nodes.column(MARK, SOURCE)))
        mark = nodes.any_of(marks)
        if mark is not None:
            items.append(nodes.named(mark, MARK))
        query = nodes.select(items, nodes.subquery(body.query, SOURCE), groups=keys)
        if not keys:  # an aggregate of no rows would be a row
            test = nodes.binary(exp.GT, count_rows(), nodes.integer(0, "BIGINT"))
            query.set("having", exp.Having(this=test))
        found = CompiledQuery(query, body.fault_queries, mark is not None, outputs, body.inputs)
        return CompiledGroups(found, tuple(places))

    def _is_sum_of_floats(self) -> bool:
        """Whether the digits of floats are to be summed, which is a query of its own."""
        if not self._dialect.calls_udf or [len(each) for each in self._summaries] != [1]:
            return False
        ((summary,),) = self._summaries
        if summary.operator not in ("sum", "mean") or summary.column is None:
            return False
        return self._types[self._places[summary.column]].is_float

    def _sum_digits(
        self,
        body: CompiledQuery,
        keys: Sequence[Node],
        names: Sequence[str | None],
        outputs: tuple[OutputColumn, ...],
    ) -> CompiledGroups:
        """Return the query for a sum or mean of floats, or its running totals.

        Each float is expanded into the places that it counts at (`core/totals.py`), and what groups
        have at each place is summed; the sums of a group's places are then read by our own code.
        """
        ((summary,),) = self._summaries
        assert summary.column is not None
        name = names[self._places[summary.column]]
        if name is None:
            raise NotExactError(f"`{summary.operator}` of a constant has no exact form in SQL")
        kept = [nodes.named(each, f"h{at}") for at, each in enumerate(keys)]
        has_mark = body.has_mark
        mark = [nodes.named(nodes.column(MARK, SOURCE), MARK)] if has_mark else []
        call = call_udf(SplitDigits(summary.operator), nodes.column(name, SOURCE))
        rows = nodes.select(
            [*kept, *mark, nodes.call("INLINE", call)], nodes.subquery(body.query, SOURCE)
        )
        keys = [nodes.column(f"h{at}", SOURCE) for at in range(len(keys))]
        kept = [nodes.named(each, f"h{at}") for at, each in enumerate(keys)]
        marked = nodes.call("BOOL_OR", nodes.column(MARK, SOURCE))
        mark = [nodes.named(marked, MARK)] if has_mark else []
        place = nodes.column(PLACE, SOURCE)
        total = nodes.call("SUM", nodes.column(DIGIT, SOURCE))
        query = nodes.select(
            [
                *kept,
                nodes.named(place, "m0"),
                nodes.named(total, "m1"),
                nodes.named(count_rows(), ROWS),
                *mark,
            ],
            nodes.subquery(rows, SOURCE),
            groups=[*keys, place],
        )
        # Digits that cancel out are no row; a marked one is kept, as it decides.
        zero = nodes.integer(0, "BIGINT")
        test = nodes.either(nodes.binary(exp.NEQ, total, zero), marked if has_mark else None)
        query.set("having", exp.Having(this=test))
        size = 2
        if summary.result is not None:
            digits = [nodes.column(each, SOURCE) for each in ("m0", "m1")]
            pairs = nodes.call("NAMED_STRUCT", *labelled((PLACE, DIGIT), digits))
            call = call_udf(ReadDigits(summary.operator), nodes.call("COLLECT_LIST", pairs))
            query = nodes.select(
                [*kept, nodes.named(call, "m0"), nodes.named(count_rows(), ROWS), *mark],
                nodes.subquery(query, SOURCE),
                groups=keys,
            )
            if not keys:
                test = nodes.binary(exp.GT, count_rows(), zero)
                query.set("having", exp.Having(this=test))
            size = 1
        found = CompiledQuery(query, body.fault_queries, has_mark, outputs, body.inputs)
        return CompiledGroups(found, ((0, size),))

    def _summarise(
        self, summary: Summary, names: Sequence[str | None], marks: list[Node]
    ) -> list[Node]:
        """Return the columns of a summary; tests whether they are inexact go to the marks."""
        if summary.column is None:
            return [count_rows()]
        place = self._places[summary.column]
        name, source = names[place], self._types[place]
        if name is None:
            raise NotExactError(f"`{summary.operator}` of a constant has no exact form in SQL")
        column = nodes.column(name, SOURCE)
        if summary.result is not None:
            value, mark = aggregate_form(summary.operator, source, self._dialect)(
                column, source, summary.result
            )
            marks += [] if mark is None else [mark]
            return [value]
        if summary.operator == "count":
            return [nodes.call("COUNT", column)]
        form = self._dialect.totals.get(source.kind)
        if form is None:
            raise NotExactError(f"running totals of {source} have no exact form in SQL")
        return list(form(column, source))


def labelled(labels: Sequence[str], values: Sequence[Node]) -> list[Node]:
    """Return values, each behind its label."""
    return [
        part
        for label, value in zip(labels, values, strict=True)
        for part in (nodes.string(label), value)
    ]


def _column_names(outputs: Sequence[OutputColumn]) -> list[str | None]:
    """Return the columns of a query for its outputs; constants have none."""
    names: list[str | None] = []
    count = 0
    for output in outputs:
        names.append(None if output.form is None else f"h{count}")
        count += output.form is not None
    return names
