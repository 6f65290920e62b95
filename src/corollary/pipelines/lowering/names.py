"""What Spark calls a column that has no alias: the text of its expression."""

from sqlglot import exp

from corollary.frontends.sql.binder.context import name_of
from corollary.pipelines.lowering.frames import SHOWN

_SIGNS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NullSafeEQ: "<=>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.And: "AND",
    exp.Or: "OR",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
}


def spark_name(node: exp.Expr) -> str:  # noqa: C901 (a table of nodes)
    """Return the name that Spark gives to an expression.

    >>> from sqlglot import parse_one
    >>> spark_name(parse_one("a + 1 > 2"))
    '((a + 1) > 2)'
    """
    match node:
        case exp.Paren():
            return spark_name(node.this)
        case exp.Column() | exp.Identifier():
            return str(node.meta.get(SHOWN, node.name))
        case exp.Literal() | exp.Boolean():
            return str(node.this).lower() if isinstance(node, exp.Boolean) else str(node.this)
        case exp.Null():
            return "NULL"
        case exp.Star():
            return "1"
        case exp.Cast(this=exp.Literal() as literal) if node.meta.get(SHOWN):
            return str(literal.this)
        case exp.TryCast() | exp.Cast():
            word = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
            return f"{word}({spark_name(node.this)} AS {node.to.sql('spark')})"
        case exp.Not(this=exp.Is() as test) if SHOWN in node.meta:
            return f"({spark_name(test.this)} IS NOT NULL)"
        case exp.Neg():
            return f"(- {spark_name(node.this)})"
        case exp.Not():
            return f"(NOT {spark_name(node.this)})"
        case exp.Dot():
            return f"{spark_name(node.this)}.{node.name}"
        case exp.Bracket():
            return f"{spark_name(node.this)}[{spark_name(node.expressions[0])}]"
        case exp.Distinct():
            return "DISTINCT " + _listed(node.expressions)
        case exp.In():
            return f"({spark_name(node.this)} IN ({_listed(node.expressions)}))"
        case exp.Case():
            arms = "".join(
                f" WHEN {spark_name(arm.this)} THEN {spark_name(arm.args['true'])}"
                for arm in node.args["ifs"]
            )
            last = node.args.get("default")
            return f"CASE{arms}{f' ELSE {spark_name(last)}' if last else ''} END"
        case exp.Is():
            return f"({spark_name(node.this)} IS {spark_name(node.expression)})"
        case exp.Like() | exp.ILike() | exp.RegexpLike():
            word = {exp.Like: "LIKE", exp.ILike: "ILIKE"}.get(type(node), "RLIKE")
            text = f"{spark_name(node.this)}{{}}{spark_name(node.expression)}"
            return f"RLIKE({text.format(', ')})" if word == "RLIKE" else text.format(f" {word} ")
        case exp.IgnoreNulls() | exp.Filter():
            return spark_name(node.this)
        case exp.Window():
            return _window_name(node)
        case exp.Anonymous():
            if name_of(node) == "window":
                return "window"
            return f"{node.name}({_listed(node.expressions)})"
        case exp.Lambda():
            given = ", ".join("namedlambdavariable()" for _ in node.expressions)
            return f"lambdafunction({spark_name(node.this)}, {given})"
        case _:
            pass
    if type(node) in _SIGNS:
        left, right = spark_name(node.this), spark_name(node.args["expression"])
        return f"({left} {_SIGNS[type(node)]} {right})"
    return node.sql("spark")


def _listed(nodes: list[exp.Expr]) -> str:
    return ", ".join(map(spark_name, nodes))


def _window_name(node: exp.Window) -> str:
    parts = []
    if node.args.get("partition_by"):
        parts.append(f"PARTITION BY {_listed(node.args['partition_by'])}")
    order = node.args.get("order")
    if order is not None:
        terms = [
            f"{spark_name(each.this)} {'DESC' if each.args.get('desc') else 'ASC'} "
            f"NULLS {'FIRST' if each.args.get('nulls_first') else 'LAST'}"
            for each in order.expressions
        ]
        parts.append(f"ORDER BY {', '.join(terms)}")
    frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    if order is not None:
        frame = "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    spec = node.args.get("spec")
    if spec is not None:
        bounds = []
        for part in ("start", "end"):
            bound, side = spec.args[part], spec.args.get(f"{part}_side")
            words = bound if isinstance(bound, str) else spark_name(bound)
            bounds.append(f"{words} {side}" if side else words)
        frame = f"{spec.args['kind']} BETWEEN {bounds[0]} AND {bounds[1]}"
    return f"{spark_name(node.this)} OVER ({' '.join([*parts, frame])})"
