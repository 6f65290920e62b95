"""The types that PostgreSQL would give to texts and parameters without one, from what is around."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import field

from sqlglot import exp

from corollary.data_class import dataclass
from corollary.serve.postgres.problems import PgError
from corollary.serve.postgres.relations import VisibleRelation, VisibleRelations
from corollary.serve.postgres.wire_types import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    WireType,
    array_of,
    column_type,
)

PARAMETERS_MAX = 65_535

_BY_NAME = {
    exp.DataType.Type.BOOLEAN: BOOL,
    exp.DataType.Type.SMALLINT: INT2,
    exp.DataType.Type.INT: INT4,
    exp.DataType.Type.BIGINT: INT8,
    exp.DataType.Type.FLOAT: FLOAT4,
    exp.DataType.Type.DOUBLE: FLOAT8,
    exp.DataType.Type.DECIMAL: NUMERIC,
    exp.DataType.Type.TEXT: TEXT,
    exp.DataType.Type.VARCHAR: VARCHAR,
    exp.DataType.Type.DATE: DATE,
    exp.DataType.Type.TIMESTAMP: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPNTZ: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ: TIMESTAMPTZ,
}
_CAST_TYPES = {
    BOOL.oid: exp.DataType.Type.BOOLEAN,
    INT2.oid: exp.DataType.Type.SMALLINT,
    INT4.oid: exp.DataType.Type.INT,
    INT8.oid: exp.DataType.Type.BIGINT,
    FLOAT4.oid: exp.DataType.Type.DOUBLE,
    FLOAT8.oid: exp.DataType.Type.DOUBLE,
    NUMERIC.oid: exp.DataType.Type.DECIMAL,
    DATE.oid: exp.DataType.Type.DATE,
    TIMESTAMP.oid: exp.DataType.Type.TIMESTAMPTZ,
    TIMESTAMPTZ.oid: exp.DataType.Type.TIMESTAMPTZ,
}
_COMPARISONS = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Between, exp.In, exp.Coalesce, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod),
)
_COUNTS = (exp.Limit, exp.Offset, exp.Fetch)
_SAME_TYPE = (exp.Paren, exp.Neg, exp.Min, exp.Max, exp.Alias, exp.Abs)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Coalesce)


def parameter_count(tree: exp.Expr) -> int:
    """Return the highest number of the parameters of a statement."""
    return max(map(parameter_number, tree.find_all(exp.Placeholder)), default=0)


def parameter_number(node: exp.Expr) -> int:
    """Return the number of a parameter, which `with_placeholders` has made of `$1`.

    Raises:
        PgError: it is another kind of parameter.
    """
    number = str(node.this or "").removeprefix("p")
    if not number.isdecimal() or not 1 <= int(number) <= PARAMETERS_MAX:
        raise PgError("42601", "Parameters are written as in `$1`.")
    return int(number)


def parameter_types(
    tree: exp.Expr, declared: Sequence[WireType | None], relations: VisibleRelations
) -> list[WireType]:
    """Return the types of all parameters: what was declared, else what is around; else text."""
    found: list[WireType | None] = list(declared)
    found += [None] * (parameter_count(tree) - len(found))
    types = ExpressionTypes.of(tree, relations)
    for node in tree.find_all(exp.Placeholder):
        at = parameter_number(node) - 1
        if found[at] is None:
            found[at] = types.of_constant(node)
    return [TEXT if each is None else each for each in found]


def cast_type(type_: WireType) -> exp.DataType | None:
    """Return a type as a cast names it."""
    found = _CAST_TYPES.get(type_.oid)
    return None if found is None else exp.DataType(this=found)


@dataclass(frozen=True, slots=True)
class ExpressionTypes:
    """The types of the expressions of a statement, as far as columns and casts in it tell."""

    _tree: exp.Expr
    _columns: "_ColumnTypes"
    _targets: Sequence[WireType | None]
    _by_node: dict[int, WireType] = field(default_factory=dict)
    _of_operands: dict[int, WireType] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: exp.Expr, relations: VisibleRelations) -> "ExpressionTypes":
        """Find the types of all expressions of a statement; each node is visited once."""
        found = cls(tree, _ColumnTypes.of(tree, relations), _target_types(tree, relations))
        for node in reversed(list(tree.walk())):  # operands before what they are operands of
            found._visit(node)
        return found

    def of_expression(self, node: exp.Expr) -> WireType | None:
        """Return the type of an expression; None if it is not known."""
        return self._by_node.get(id(node))

    def of_constant(self, node: exp.Expr) -> WireType | None:
        """Return the type that a constant has because of what is around it; None if it is open."""
        inner = node
        while isinstance(inner.parent, exp.Paren):
            inner = inner.parent
        around = inner.parent
        if isinstance(around, exp.Cast):
            return _BY_NAME.get(around.to.this)
        if isinstance(around, _COUNTS):
            return INT8
        if isinstance(around, exp.Any) and isinstance(around.parent, _COMPARISONS):
            found = self.of_expression(around.parent.this)
            return None if found is None else array_of(found)
        if isinstance(around, _COMPARISONS):
            return self._of_operands.get(id(around))
        if isinstance(around, exp.Tuple) and isinstance(around.parent, exp.Values):
            return self._inserted(inner)
        if isinstance(around, exp.Alias):
            inner, around = around, around.parent
        if isinstance(self._tree, exp.Insert) and around is self._tree.expression:
            return self._inserted(inner)
        return None

    def _inserted(self, value: exp.Expr) -> WireType | None:
        """Return the type of the column that a value of an INSERT goes to."""
        at = value.index
        return None if at is None or at >= len(self._targets) else self._targets[at]

    def _visit(self, node: exp.Expr) -> None:
        if isinstance(node, (*_COMPARISONS, *_ARITHMETIC)):
            kinds = map(self.of_expression, node.iter_expressions())
            operand = next((each for each in kinds if each is not None), None)
            if operand is not None:
                self._of_operands[id(node)] = operand
        found = self._type_of(node)
        if found is not None:
            self._by_node[id(node)] = found

    def _type_of(self, node: exp.Expr) -> WireType | None:
        match node:
            case exp.Column():
                return self._columns.type_of(node.table.lower(), node.name.lower())
            case exp.Cast():
                return _BY_NAME.get(node.to.this)
            case exp.Literal():
                if node.is_string:
                    return None
                return INT8 if node.name.isdecimal() else NUMERIC
            case exp.Boolean():
                return BOOL
            case exp.Count():
                return INT8
            case exp.TimestampTrunc() | exp.CurrentTimestamp():
                return TIMESTAMPTZ
            case exp.CurrentDate():
                return DATE
            case exp.Lower() | exp.Upper() | exp.Concat() | exp.DPipe() | exp.Substring():
                return TEXT
            case exp.Avg():
                return FLOAT8
            case exp.Sum():
                return self.of_expression(node.this)
            case _ if isinstance(node, _SAME_TYPE):
                return self.of_expression(node.this)
            case _ if isinstance(node, _ARITHMETIC):
                return self._of_operands.get(id(node))
            case _:
                return None


@dataclass(frozen=True, slots=True)
class _ColumnTypes:
    """The types of the columns of the relations that a statement names.

    Attributes:
        columns: those of each relation.
        by_alias: the relations that have a name in the statement.
        found: what was looked up, by qualifier (empty for none) and name.
    """

    columns: dict[str, dict[str, WireType]] = field(default_factory=dict)
    by_alias: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    found: dict[tuple[str, str], WireType | None] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: exp.Expr, relations: VisibleRelations) -> "_ColumnTypes":
        made = cls()
        for table in tree.find_all(exp.Table):
            name = table.name.lower()
            if name in relations:
                made.by_alias[table.alias_or_name.lower()].add(name)
        for name in set().union(*made.by_alias.values()):
            made.columns[name] = _columns_of(relations[name])
        return made

    def type_of(self, qualifier: str, name: str) -> WireType | None:
        """Return the type of a column: of its table, or of all tables if they agree."""
        key = (qualifier, name)
        if key not in self.found:
            relations = self.by_alias.get(qualifier) if qualifier else None
            kinds = {self.columns[each].get(name) for each in relations or self.columns} - {None}
            self.found[key] = kinds.pop() if len(kinds) == 1 else None
        return self.found[key]


def _columns_of(relation: VisibleRelation) -> dict[str, WireType]:
    return {each.name.lower(): column_type(each.type)[0] for each in relation.columns}


def _target_types(tree: exp.Expr, relations: VisibleRelations) -> list[WireType | None]:
    """Return the types of the columns that an INSERT fills, in the order of its values."""
    if not isinstance(tree, exp.Insert):
        return []
    target, names = tree.this, None
    if isinstance(target, exp.Schema):
        names = [each.name.lower() for each in target.expressions]
        target = target.this
    relation = relations.get(target.name)
    if relation is None:
        return []
    columns = _columns_of(relation)
    return [columns.get(each) for each in (columns if names is None else names)]
