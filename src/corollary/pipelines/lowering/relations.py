"""Relations of Spark Connect become blocks of SQL; what only Spark computes says why."""

from dataclasses import replace
from typing import Any

from pyspark.sql.connect.proto import relations_pb2 as relations
from sqlglot import exp

from corollary.errors import InputError
from corollary.frontends.sql.binder.names import near_names
from corollary.pipelines.lowering.expressions import (
    ExpressionLowering,
    left_to_spark,
    number,
)
from corollary.pipelines.lowering.frames import (
    FrameBlock,
    FrameColumn,
    distinct_names,
    identifier,
    source_frame,
)
from corollary.pipelines.lowering.names import spark_name
from corollary.pipelines.lowering.projections import ProjectionLowering
from corollary.pipelines.lowering.reading import FrameNames, frame_of

_EMPTY_COUNTS = frozenset(("count", "count_if", "collect_list", "collect_set", "array_agg"))
"""Aggregates that have a value of no rows, where a pivot has null."""
_OPERATORS = {1: exp.Intersect, 2: exp.Union, 3: exp.Except}


class RelationLowering(ProjectionLowering):
    """Lowers one query."""

    # --- rows ----------------------------------------------------------------------------------

    def _visit_filter(self, node: relations.Filter) -> FrameBlock:
        frame = self.opened(self.lower(node.input))
        if any(each.node.find(exp.Window) for each in frame.columns):
            frame = self.wrapped(frame)
        frame, test = self.computed(frame, lambda to: to.lower(node.condition), is_loose=True)
        return replace(frame, tests=(*frame.tests, test))

    def _visit_sort(self, node: relations.Sort) -> FrameBlock:
        frame = self.opened(self.lower(node.input))
        if node.HasField("is_global") and not node.is_global:
            return frame
        frame, terms = self.computed(
            frame, lambda to: [to.ordered(each) for each in node.order], is_loose=True
        )
        return replace(frame, order=tuple(terms))

    def _visit_limit(self, node: relations.Limit) -> FrameBlock:
        frame = self.lower(node.input)
        return self._cut(frame, "limit", exp.Limit(expression=number(node.limit)))

    def _visit_offset(self, node: relations.Offset) -> FrameBlock:
        frame = self.lower(node.input)
        return self._cut(frame, "offset", exp.Offset(expression=number(node.offset)))

    def _cut(self, frame: FrameBlock, part: str, clause: exp.Expr) -> FrameBlock:
        if not frame.order or "limit" in frame.tail:
            what = f"`{part}` without an order"
            raise left_to_spark(
                what, self.span, "write `orderBy` before it: which rows is not said"
            )
        order = exp.Order(expressions=[each.copy() for each in frame.order])
        tail = {**frame.tail, "order": order, part: clause}
        return replace(frame, tail=tail, is_closed=True)

    def _visit_deduplicate(self, node: relations.Deduplicate) -> FrameBlock:
        frame = self.opened(self.lower(node.input))
        names = {each.lower() for each in node.column_names}
        if node.within_watermark or not (
            node.all_columns_as_keys or names == {each.lower() for each in frame.names}
        ):
            what = "`dropDuplicates` by some of the columns"
            note = "which row stays is not said: choose it by `F.row_number()`, or group the rows"
            raise left_to_spark(what, self.span, note)
        columns = frame.visible
        return replace(
            frame, columns=columns, tail={"distinct": exp.Distinct()}, is_closed=True, order=()
        )

    def _same(self, node: Any) -> FrameBlock:
        """Return the frame of something that changes no row."""
        return self.lower(node.input)

    _visit_hint = _visit_repartition = _visit_repartition_by_expression = _same

    def _visit_with_watermark(self, node: relations.WithWatermark) -> FrameBlock:
        self.watermarks.append((node.event_time, node.delay_threshold))
        return self.lower(node.input)

    def _visit_subquery_alias(self, node: relations.SubqueryAlias) -> FrameBlock:
        frame = self.lower(node.input)
        qualifiers = frozenset((node.alias.lower(),))
        columns = tuple(replace(each, qualifiers=qualifiers) for each in frame.visible)
        return replace(frame, columns=columns)

    def _visit_with_relations(self, node: relations.WithRelations) -> FrameBlock:
        for each in node.references:
            self.references[each.common.plan_id] = each
            if each.WhichOneof("rel_type") == "subquery_alias":
                self.views[each.subquery_alias.alias.lower()] = each
        return self.lower(node.root)

    # --- groups --------------------------------------------------------------------------------

    def _visit_aggregate(self, node: relations.Aggregate) -> FrameBlock:
        frame = self.opened(self.lower(node.input))
        kinds = relations.Aggregate.GroupType

        def work(to: ExpressionLowering) -> tuple[list[FrameColumn], list[FrameColumn], Any]:
            inner = frame_of(to)
            keys = self.items(node.grouping_expressions, inner, to)
            sets = [to.all(each.grouping_set) for each in node.grouping_sets]
            pivot = to.lower(node.pivot.col) if node.HasField("pivot") else sets
            return keys, self.items(node.aggregate_expressions, inner, to), pivot

        frame, (keys, values, more) = self.computed(frame, work)
        if node.group_type == kinds.GROUP_TYPE_PIVOT:
            values = self._pivoted(node.pivot, more, values)
        group = exp.Group(expressions=[each.node.copy() for each in keys])
        nodes = group.expressions
        match node.group_type:
            case kinds.GROUP_TYPE_ROLLUP:
                group = exp.Group(expressions=[exp.Rollup(expressions=nodes)])
            case kinds.GROUP_TYPE_CUBE:
                group = exp.Group(expressions=[exp.Cube(expressions=nodes)])
            case kinds.GROUP_TYPE_GROUPING_SETS:
                members = [exp.Tuple(expressions=each) for each in more]
                group = exp.Group(expressions=[exp.GroupingSets(expressions=members)])
            case _:
                pass
        is_plain = node.group_type in (kinds.GROUP_TYPE_GROUPBY, kinds.GROUP_TYPE_PIVOT)
        if not is_plain:
            keys = [FrameColumn(each.name, each.node) for each in keys]
        tail: dict[str, exp.Expr] = {"group": group} if keys or not is_plain else {}
        columns = (*keys, *values)
        return replace(frame, columns=columns, tail=tail, is_closed=True, order=())

    def _pivoted(
        self, pivot: relations.Aggregate.Pivot, key: exp.Expr, values: list[FrameColumn]
    ) -> list[FrameColumn]:
        """Return a column for each value of a pivot and each aggregate."""
        if not pivot.values:
            what = "A `pivot` without values"
            raise left_to_spark(what, self.span, 'list them: `pivot("a", [1, 2])`')
        found: list[FrameColumn] = []
        for each in pivot.values:
            constant = self.constant(each)
            test = exp.NullSafeEQ(this=key.copy(), expression=constant)
            for value in values:
                tree = _filtered(value.node.copy(), test)
                if value.node.find(exp.Anonymous) and _counts(value.node):
                    count = _filtered(exp.Anonymous(this="count", expressions=[number(1)]), test)
                    is_there = exp.GT(this=count, expression=number(0))
                    tree = exp.Case(ifs=[exp.If(this=is_there, true=tree)])
                name = "null" if isinstance(constant, exp.Null) else spark_name(constant)
                found.append(
                    FrameColumn(name if len(values) == 1 else f"{name}_{value.name}", tree)
                )
        return found

    def _visit_unpivot(self, node: relations.Unpivot) -> FrameBlock:
        frame = self.opened(self.lower(node.input))

        def work(to: ExpressionLowering) -> tuple[list[FrameColumn], list[FrameColumn]]:
            ids = self.items(node.ids, frame_of(to), to)
            if node.HasField("values"):
                return ids, self.items(node.values.values, frame_of(to), to)
            taken = [each.node for each in ids]
            return ids, [each for each in frame_of(to).visible if each.node not in taken]

        frame, (ids, values) = self.computed(frame, work)
        parts = [
            part for each in values for part in (exp.Literal.string(each.name), each.node.copy())
        ]
        stack = exp.Anonymous(this="stack", expressions=[number(len(values)), *parts])
        names = [identifier(each) for each in (node.variable_column_name, node.value_column_name)]
        tree = exp.Aliases(this=stack, expressions=names)
        return self.projected(frame, [*ids, FrameColumn(spark_name(tree), tree)])

    # --- several relations ---------------------------------------------------------------------

    def _visit_set_op(self, node: relations.SetOperation) -> FrameBlock:
        left, right = self.lower(node.left_input), self.lower(node.right_input)
        columns, names = left.visible, left.names
        one, other = replace(left, columns=columns), replace(right, columns=right.visible)
        if node.by_name:
            one, other = self._by_name(one, other, node.allow_missing_columns)
            columns = tuple(
                columns[at] if at < len(columns) else FrameColumn(each.name, each.node)
                for at, each in enumerate(one.columns)
            )
            names = one.names
        if len(one.columns) != len(other.columns):
            counts = f"{len(one.columns)} and {len(other.columns)}"
            text = f"The DataFrames have {counts} columns."
            raise InputError.of("C1315", text, self.span, "select as many columns of each")
        unique = distinct_names(names)
        query = _OPERATORS[node.set_op_type](
            this=one.query(unique), expression=other.query(unique), distinct=not node.is_all
        )
        return source_frame(exp.Subquery(this=query), self.alias(), columns, unique)

    def _by_name(
        self, one: FrameBlock, other: FrameBlock, allows_missing: bool
    ) -> tuple[FrameBlock, FrameBlock]:
        """Return two frames with the same columns in the same order."""
        there = {each.name.lower(): each for each in other.columns}
        known = {each.name.lower() for each in one.columns}
        missing = [each.name for each in one.columns if each.name.lower() not in there]
        extra = [each for each in other.columns if each.name.lower() not in known]
        if (missing or extra) and not allows_missing:
            name = missing[0] if missing else extra[0].name
            text = f"Only one of the DataFrames has the column `{name}`."
            note = "write `allowMissingColumns=True`, or select the same columns"
            raise InputError.of("C1303", text, self.span, note)
        if any(each.is_closed for each in (one, other)) and (missing or extra):
            one, other = self.opened(one), self.opened(other)
            return self._by_name(one, other, allows_missing)
        rights = [
            there.get(each.name.lower(), FrameColumn(each.name, exp.Null())) for each in one.columns
        ]
        lefts = [*one.columns, *[FrameColumn(each.name, exp.Null()) for each in extra]]
        return replace(one, columns=tuple(lefts)), replace(other, columns=(*rights, *extra))

    def _visit_join(self, node: relations.Join) -> FrameBlock:
        kinds = relations.Join.JoinType
        left, right = self.lower(node.left), self._side(self.lower(node.right))
        is_chain = not (left.is_closed or left.tests) and all(e.is_plain for e in left.columns)
        left = left if is_chain and left.source is not None else self.wrapped(left)
        both = replace(left, columns=left.columns + right.columns, order=())
        hidden: list[FrameColumn] = []
        columns = both.columns
        test: exp.Expr | None = None
        if node.using_columns:
            test, columns = self._using(node, left, right)
        elif node.HasField("join_condition"):
            names = FrameNames(self, both)
            test = ExpressionLowering(self.file, self.span, names).lower(node.join_condition)
        side, kind = {
            kinds.JOIN_TYPE_LEFT_OUTER: ("LEFT", ""),
            kinds.JOIN_TYPE_RIGHT_OUTER: ("RIGHT", ""),
            kinds.JOIN_TYPE_FULL_OUTER: ("FULL", ""),
            kinds.JOIN_TYPE_LEFT_SEMI: ("LEFT", "SEMI"),
            kinds.JOIN_TYPE_LEFT_ANTI: ("LEFT", "ANTI"),
        }.get(node.join_type, ("", "" if test is not None else "CROSS"))
        if kind in ("SEMI", "ANTI"):
            columns = left.columns
        if test is None and kind != "CROSS":
            test = exp.Boolean(this=True)
        assert right.source is not None
        join = exp.Join(this=right.source, side=side, kind=kind, on=test)
        self._place(join, self.span)
        return replace(both, columns=(*columns, *hidden), joins=(*left.joins, join))

    def _side(self, frame: FrameBlock) -> FrameBlock:
        """Return a frame that is one source."""
        is_source = frame.source is not None and not (
            frame.is_closed or frame.tests or frame.joins or frame.order
        )
        if is_source and all(each.is_plain for each in frame.columns):
            return frame
        return self.wrapped(frame)

    def _using(
        self, node: relations.Join, left: FrameBlock, right: FrameBlock
    ) -> tuple[exp.Expr, tuple[FrameColumn, ...]]:
        """Return the condition of a join by names, and the columns after it."""
        kinds = relations.Join.JoinType
        tests: list[exp.Expr] = []
        merged: list[FrameColumn] = []
        keys: list[FrameColumn] = []
        for name in node.using_columns:
            pair = []
            for side, frame in (("left", left), ("right", right)):
                found, _ = frame.find([name], None)
                if len(found) != 1:
                    what = "has no column" if not found else "has several columns"
                    text = f"The {side} side of the join {what} `{name}`."
                    note = near_names(name, frame.names, "its columns are")
                    raise InputError.of("C1303", text, self.span, note)
                pair.append(found[0])
            one, other = pair
            tests.append(exp.EQ(this=one.node.copy(), expression=other.node.copy()))
            keys += pair
            chosen = other if node.join_type == kinds.JOIN_TYPE_RIGHT_OUTER else one
            if node.join_type == kinds.JOIN_TYPE_FULL_OUTER:
                nodes = [one.node.copy(), other.node.copy()]
                tree = exp.Anonymous(this="coalesce", expressions=nodes)
                chosen = FrameColumn(one.name, tree)
            merged.append(replace(chosen, name=one.name))
        test = tests[0]
        for each in tests[1:]:
            test = exp.And(this=test, expression=each)
        rest = [
            each for each in (*left.columns, *right.columns) if not any(each is key for key in keys)
        ]
        hidden = [
            replace(key, is_hidden=True) for key in keys if key.node not in [m.node for m in merged]
        ]
        return test, (*merged, *rest, *hidden)


def _filtered(tree: exp.Expr, test: exp.Expr) -> exp.Expr:
    """Return an expression of aggregates that only see the rows of a test."""
    from corollary.frontends.sql.binder.aggregates import AGGREGATES

    def narrowed(node: exp.Expr) -> exp.Expr:
        is_call = isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES
        if is_call or isinstance(node, exp.IgnoreNulls):
            return exp.Filter(this=node, expression=exp.Where(this=test.copy()))
        for part in list(node.iter_expressions()):
            part.replace(narrowed(part))
        return node

    return narrowed(tree)


def _counts(tree: exp.Expr) -> bool:
    return any(each.name.lower() in _EMPTY_COUNTS for each in tree.find_all(exp.Anonymous))
