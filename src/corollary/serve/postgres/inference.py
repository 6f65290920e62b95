"""The types that PostgreSQL would give to texts and parameters without one, from what is around."""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from corollary.serve.postgres.problems import PgError
from corollary.serve.postgres.relations import VisibleRelations
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
    BOOL.oid: "BOOLEAN",
    INT2.oid: "SMALLINT",
    INT4.oid: "INT",
    INT8.oid: "BIGINT",
    FLOAT4.oid: "DOUBLE",
    FLOAT8.oid: "DOUBLE",
    NUMERIC.oid: "DECIMAL",
    DATE.oid: "DATE",
    TIMESTAMP.oid: "TIMESTAMPTZ",
    TIMESTAMPTZ.oid: "TIMESTAMPTZ",
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
    for node in tree.find_all(exp.Placeholder):
        at = parameter_number(node) - 1
        if found[at] is None:
            found[at] = constant_type(node, tree, relations)
    return [TEXT if each is None else each for each in found]


def cast_type(type_: WireType) -> exp.DataType | None:
    """Return a type as a cast names it."""
    name = _CAST_TYPES.get(type_.oid)
    return None if name is None else exp.DataType.build(name)


def constant_type(node: exp.Expr, tree: exp.Expr, relations: VisibleRelations) -> WireType | None:
    """Return the type that a constant has because of what is around it; None if that is open."""
    inner = node
    while isinstance(inner.parent, exp.Paren):
        inner = inner.parent
    around = inner.parent
    if isinstance(around, exp.Cast):
        return _BY_NAME.get(around.to.this)
    if isinstance(around, _COUNTS):
        return INT8
    if isinstance(around, exp.Any) and isinstance(around.parent, _COMPARISONS):
        found = expression_type(around.parent.this, tree, relations)
        return None if found is None else array_of(found)
    if isinstance(around, _COMPARISONS):
        others = (each for each in around.iter_expressions() if each is not inner)
        kinds = (expression_type(each, tree, relations) for each in others)
        return next((each for each in kinds if each is not None), None)
    if isinstance(around, exp.Tuple) and isinstance(around.parent, exp.Values):
        return _inserted_type(inner, tree, relations)
    if isinstance(around, exp.Alias):
        inner, around = around, around.parent
    if isinstance(tree, exp.Insert) and around is tree.expression:
        return _inserted_type(inner, tree, relations)
    return None


def _inserted_type(value: exp.Expr, tree: exp.Expr, relations: VisibleRelations) -> WireType | None:
    """Return the type of the column that a value of an INSERT goes to."""
    if not isinstance(tree, exp.Insert) or value.index is None:
        return None
    at = value.index
    target = tree.this
    names = None
    if isinstance(target, exp.Schema):
        names = [each.name.lower() for each in target.expressions]
        target = target.this
    relation = relations.get(target.name)
    if relation is None:
        return None
    columns = {each.name.lower(): each for each in relation.columns}
    names = list(columns) if names is None else names
    if at >= len(names) or names[at] not in columns:
        return None
    return column_type(columns[names[at]].type)[0]


def expression_type(node: exp.Expr, tree: exp.Expr, relations: VisibleRelations) -> WireType | None:
    """Return the type of an expression, as far as columns and casts in it tell."""
    match node:
        case exp.Column():
            return _column_type(node, tree, relations)
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
            return expression_type(node.this, tree, relations)
        case _ if isinstance(node, _SAME_TYPE):
            return expression_type(node.this, tree, relations)
        case _ if isinstance(node, _ARITHMETIC):
            for part in node.iter_expressions():
                found = expression_type(part, tree, relations)
                if found is not None:
                    return found
        case _:
            pass
    return None


def _column_type(
    column: exp.Column, tree: exp.Expr, relations: VisibleRelations
) -> WireType | None:
    """Return the type of a column: of its table, or of all tables if they agree."""
    name, qualifier = column.name.lower(), column.table.lower()
    tables = list(_read_relations(tree, relations))
    named = [relation for alias, relation in tables if alias == qualifier] if qualifier else []
    found = {
        column_type(each.type)[0]
        for relation in named or [relation for _, relation in tables]
        for each in relations[relation].columns
        if each.name.lower() == name
    }
    return found.pop() if len(found) == 1 else None


def _read_relations(tree: exp.Expr, relations: VisibleRelations) -> Iterator[tuple[str, str]]:
    """Yield the relations that a statement names, with the names that they have in it."""
    for table in tree.find_all(exp.Table):
        if table.name.lower() in relations:
            yield table.alias_or_name.lower(), table.name.lower()
