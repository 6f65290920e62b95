"""Projections: which columns a DataFrame has, and missing values in them."""

import re
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql.connect.proto import expressions_pb2 as pb
from pyspark.sql.connect.proto import relations_pb2 as relations
from pyspark.sql.connect.types import parse_attr_name, proto_schema_to_pyspark_data_type
from pyspark.sql.types import StructType
from sqlglot import exp

from corollary.core.types import Type
from corollary.errors import InputError
from corollary.frontends.sql.binder.generators import is_generator
from corollary.frontends.sql.binder.names import near_names
from corollary.frontends.sql.binder.select import has_aggregate
from corollary.pipelines.lowering.expressions import (
    ExpressionLowering,
    cast,
    number,
)
from corollary.pipelines.lowering.frames import (
    SHOWN,
    FrameBlock,
    FrameColumn,
    identifier,
)
from corollary.pipelines.lowering.names import spark_name
from corollary.pipelines.lowering.reading import FrameNames, ReadLowering, frame_of


class ProjectionLowering(ReadLowering):
    """Lowers what changes columns."""

    # --- projections ---------------------------------------------------------------------------

    def _visit_project(self, node: relations.Project) -> FrameBlock:
        frame = FrameBlock(None, ())
        if node.HasField("input"):
            frame = self.opened(self.lower(node.input))
        frame, items = self.computed(
            frame, lambda to: self.items(node.expressions, frame_of(to), to)
        )
        return self.projected(frame, items)

    def items(
        self, nodes: Sequence[pb.Expression], frame: FrameBlock, to: ExpressionLowering
    ) -> list[FrameColumn]:
        """Return the columns that the terms of a projection stand for."""
        found: list[FrameColumn] = []
        for node in nodes:
            match node.WhichOneof("expr_type"):
                case "unresolved_star":
                    found += self._starred(node.unresolved_star, frame)
                case "unresolved_regex":
                    pattern = node.unresolved_regex.col_name.strip("`")
                    found += [
                        e for e in frame.visible if re.fullmatch(pattern, e.name, re.IGNORECASE)
                    ]
                case _:
                    found.append(self._item(to.lower(node), frame))
        return found

    def _item(self, tree: exp.Expr, frame: FrameBlock) -> FrameColumn:
        """Return the column that a tree is; a plain one stays known as that of its DataFrames."""
        if isinstance(tree, exp.Alias):
            return FrameColumn(tree.alias, tree.this)
        if isinstance(tree, exp.Column):
            for each in frame.columns:
                if each.node == tree:
                    name = str(tree.meta.get(SHOWN, each.name))
                    return replace(each, name=name, node=tree, is_hidden=False)
        if isinstance(tree, exp.Dot):
            return FrameColumn(tree.name, tree)
        is_cast = isinstance(tree, exp.Cast) and not tree.meta.get(SHOWN)
        if is_cast and isinstance(tree.this, exp.Column | exp.Dot):
            return FrameColumn(spark_name(tree.this).rpartition(".")[2], tree)
        return FrameColumn(spark_name(tree), tree)

    def _starred(self, node: pb.Expression.UnresolvedStar, frame: FrameBlock) -> list[FrameColumn]:
        target = node.unparsed_target.removesuffix(".*").lower()
        if node.HasField("plan_id"):
            return [each for each in frame.visible if node.plan_id in each.plan_ids]
        if not target:
            return list(frame.visible)
        found = [each for each in frame.columns if target in each.qualifiers]
        if found:
            return found
        struct, _ = frame.find([target], None)
        if len(struct) != 1:
            note = near_names(target, frame.names, "the columns are")
            raise InputError.of("C1303", f"There is no source `{target}`.", self.span, note)
        types = self.types(replace(frame, columns=(struct[0],)))
        return [
            FrameColumn(name, exp.Dot(this=struct[0].node.copy(), expression=identifier(name)))
            for name, _ in types[0].members
        ]

    def projected(self, frame: FrameBlock, items: Sequence[FrameColumn]) -> FrameBlock:
        """Return a frame with other columns."""
        trees = [each.node for each in items]
        generators = [at for at, tree in enumerate(trees) if is_generator(_unaliased(tree))]
        if generators:
            return self._generated(frame, items, generators[0])
        if any(has_aggregate(tree) for tree in trees):
            return replace(frame, columns=tuple(items), is_closed=True, order=(), dropped=())
        return replace(frame, columns=tuple(items), dropped=(*frame.dropped, *frame.columns))

    def _generated(self, frame: FrameBlock, items: Sequence[FrameColumn], at: int) -> FrameBlock:
        """Return the frame of a projection with a generator, whose columns the binder names."""
        query = replace(frame, columns=tuple(items), order=()).query()
        tree = items[at].node
        if isinstance(tree, exp.Aliases) or items[at].name == spark_name(tree):
            query.expressions[at].replace(tree.copy())
        count = len(self.bound(query)) - len(items) + 1
        known = [*items[:at], *[FrameColumn("", exp.Null())] * count, *items[at + 1 :]]
        return self._bound_frame(query, known)

    def _visit_with_columns(self, node: relations.WithColumns) -> FrameBlock:
        frame = self.opened(self.lower(node.input))
        frame, trees = self.computed(frame, lambda to: to.all([e.expr for e in node.aliases]))
        given = [
            FrameColumn(each.name[0], tree) for each, tree in zip(node.aliases, trees, strict=True)
        ]
        return self.projected(frame, _replaced(frame.visible, given))

    def _visit_with_columns_renamed(self, node: relations.WithColumnsRenamed) -> FrameBlock:
        frame = self.lower(node.input)
        renames = [(e.col_name, e.new_col_name) for e in node.renames]
        renames += list(node.rename_columns_map.items())
        columns = list(frame.visible)
        for old, new in renames:
            columns = [
                FrameColumn(new, each.node) if each.name.lower() == old.lower() else each
                for each in columns
            ]
        return replace(frame, columns=tuple(columns))

    def _visit_to_df(self, node: relations.ToDF) -> FrameBlock:
        frame = self.lower(node.input)
        if len(node.column_names) != len(frame.visible):
            text = f"`toDF` has {len(node.column_names)} names for {len(frame.visible)} columns."
            raise InputError.of("C1315", text, self.span, "give one name for each column")
        columns = [
            FrameColumn(name, each.node)
            for name, each in zip(node.column_names, frame.visible, strict=True)
        ]
        return replace(frame, columns=tuple(columns))

    def _visit_drop(self, node: relations.Drop) -> FrameBlock:
        frame = self.lower(node.input)
        dropped = {each.lower() for each in node.column_names}
        nodes: list[exp.Expr] = []
        for each in node.columns:
            attribute = each.unresolved_attribute
            parts = parse_attr_name(attribute.unparsed_identifier) or []
            plan_id = attribute.plan_id if attribute.HasField("plan_id") else None
            nodes += [column.node for column in frame.find(parts, plan_id)[0]]
        kept = [
            each
            for each in frame.visible
            if each.name.lower() not in dropped and not any(each.node is node for node in nodes)
        ]
        return replace(frame, columns=tuple(kept))

    def _visit_to_schema(self, node: relations.ToSchema) -> FrameBlock:
        frame = self.opened(self.lower(node.input))
        schema = proto_schema_to_pyspark_data_type(node.schema)
        assert isinstance(schema, StructType)

        def columns(to: ExpressionLowering) -> list[FrameColumn]:
            read = [to.names.column([each.name], None, self.span) for each in schema.fields]
            return [
                FrameColumn(each.name, cast(tree, each.dataType.simpleString()))
                for each, tree in zip(schema.fields, read, strict=True)
            ]

        frame, items = self.computed(frame, columns)
        return self.projected(frame, items)

    # --- missing values ------------------------------------------------------------------------

    def _visit_fill_na(self, node: relations.NAFill) -> FrameBlock:
        frame = self.opened(self.lower(node.input))
        columns = [column.lower() for column in node.cols]
        given = list(node.values) * (len(columns) if len(node.values) == 1 else 1)
        values = dict(zip(columns, given, strict=True)) if columns else {}
        filled: list[FrameColumn] = []
        frame = self._plain(frame)
        for column, type_ in zip(frame.visible, self.types(frame), strict=True):
            value = values.get(column.name.lower()) if columns else node.values[0]
            if value is None or not _fits(value, type_):
                filled.append(column)
                continue
            read = column.node.copy()
            if type_.is_float:
                read = exp.Anonymous(this="nanvl", expressions=[read, exp.Null()])
            literal_ = cast(self.constant(value), type_.spark_name)
            tree = exp.Anonymous(this="coalesce", expressions=[read, literal_])
            filled.append(FrameColumn(column.name, tree))
        return replace(frame, columns=tuple(filled))

    def constant(self, node: pb.Expression.Literal) -> exp.Expr:
        """Return the tree of a literal."""
        return ExpressionLowering(
            self.file, self.span, FrameNames(self, FrameBlock(None, ()))
        ).lower(pb.Expression(literal=node))

    def _plain(self, frame: FrameBlock) -> FrameBlock:
        """Return a frame whose columns are columns of sources."""
        return frame if all(each.is_plain for each in frame.columns) else self.wrapped(frame)

    def _visit_drop_na(self, node: relations.NADrop) -> FrameBlock:
        frame = self._plain(self.opened(self.lower(node.input)))
        chosen = {each.lower() for each in node.cols}
        there: list[exp.Expr] = []
        for column, type_ in zip(frame.visible, self.types(frame), strict=True):
            if chosen and column.name.lower() not in chosen:
                continue
            test: exp.Expr = exp.Not(this=exp.Is(this=column.node.copy(), expression=exp.Null()))
            if type_.is_float:
                nan = exp.Anonymous(this="isnan", expressions=[column.node.copy()])
                test = exp.And(this=test, expression=exp.Not(this=nan))
            there.append(test)
        if not node.HasField("min_non_nulls"):
            return replace(frame, tests=(*frame.tests, *there))
        counts: exp.Expr = number(0)
        for test in there:
            one = exp.Case(ifs=[exp.If(this=test, true=number(1))], default=number(0))
            counts = exp.Add(this=counts, expression=one)
        enough = exp.GTE(this=exp.Paren(this=counts), expression=number(node.min_non_nulls))
        return replace(frame, tests=(*frame.tests, enough))

    def _visit_replace(self, node: relations.NAReplace) -> FrameBlock:
        frame = self._plain(self.opened(self.lower(node.input)))
        chosen = {each.lower() for each in node.cols}
        columns: list[FrameColumn] = []
        for column, type_ in zip(frame.visible, self.types(frame), strict=True):
            pairs = [each for each in node.replacements if _fits(each.old_value, type_)]
            if not pairs or (chosen and column.name.lower() not in chosen):
                columns.append(column)
                continue
            arms = [
                exp.If(
                    this=exp.EQ(this=column.node.copy(), expression=self.constant(each.old_value)),
                    true=cast(self.constant(each.new_value), type_.spark_name),
                )
                for each in pairs
            ]
            tree = exp.Case(ifs=arms, default=column.node.copy())
            columns.append(FrameColumn(column.name, tree))
        return replace(frame, columns=tuple(columns))


def _unaliased(tree: exp.Expr) -> exp.Expr:
    return tree.this if isinstance(tree, exp.Alias | exp.Aliases) else tree


def _replaced(columns: Sequence[FrameColumn], given: Sequence[FrameColumn]) -> list[FrameColumn]:
    """Return columns in which some are replaced; the others are added."""
    by_name = {each.name.lower(): each for each in given}
    known = {each.name.lower() for each in columns}
    found = [by_name.get(each.name.lower(), each) for each in columns]
    return [*found, *[each for each in given if each.name.lower() not in known]]


def _fits(value: pb.Expression.Literal, type_: Type) -> bool:
    """Whether a value of `fill` or `replace` is for columns of a type."""
    match value.WhichOneof("literal_type"):
        case "boolean":
            return type_.is_bool
        case "string":
            return type_.is_symbol
        case "integer" | "long" | "double" | "float":
            return type_.is_number or type_.is_float or type_.is_decimal
        case _:
            return False
