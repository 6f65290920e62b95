"""`LIKE`, `ILIKE` and their `ESCAPE`."""

from sqlglot import exp

from corollary.core.types import BOOL, SYMBOL
from corollary.frontends.sql.binder.context import ExpressionContext
from corollary.frontends.sql.binder.problems import unsupported
from corollary.frontends.sql.binder.values.conversions import call
from corollary.frontends.sql.binder.values.operators import connect, negate
from corollary.frontends.sql.query_tree import ConstantValue, Expression


def like(context: ExpressionContext, node: exp.Expr) -> Expression:
    """Return `text LIKE pattern`."""
    return _like(context, node, None)


def like_with_escape(context: ExpressionContext, node: exp.Escape) -> Expression:
    """Return `text LIKE pattern ESCAPE character`."""
    context.session.check(node, "this", "expression")
    if not isinstance(node.this, exp.Like | exp.ILike):
        raise unsupported(node, context.session.file)
    return _like(context, node.this, node.args["expression"])


def _like(context: ExpressionContext, node: exp.Expr, escape: exp.Expr | None) -> Expression:
    session = context.session
    session.check(node, "this", "expression", "negate")
    pattern_node = node.args["expression"]
    if isinstance(pattern_node, exp.Any | exp.All) and escape is None:
        return _like_several(context, node, pattern_node)
    site = context.site(node, node.this, pattern_node, name="LIKE")
    text, pattern = context.bind_text(node.this, site), context.bind_text(pattern_node, site)
    if escape is not None:
        pattern = _with_backslashes(context, pattern, escape, pattern_node)
    if isinstance(node, exp.ILike):
        text, pattern = (call("lower", (each,), SYMBOL, each.span) for each in (text, pattern))
    found = call("like", (text, pattern), BOOL, site.span)
    return negate(found, site.span) if node.args.get("negate") else found


def _like_several(context: ExpressionContext, node: exp.Expr, several: exp.Expr) -> Expression:
    """Return `text LIKE ANY (pattern, …)` or `LIKE ALL`."""
    context.session.check(several, "this")
    inner = several.this.unnest() if isinstance(several.this, exp.Paren) else several.this
    patterns = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
    if not patterns:
        message = f"`LIKE {type(several).__name__.upper()}` has no patterns."
        raise context.session.error("C1315", message, node, "write at least one")
    tests = []
    for pattern in patterns:
        part = node.copy()
        part.set("expression", pattern.copy())
        tests.append(_like(context, part, None))
    word = "or" if isinstance(several, exp.Any) else "and"
    return connect(word, tests, context.session.span(node))


def _with_backslashes(
    context: ExpressionContext, pattern: Expression, escape: exp.Expr, node: exp.Expr
) -> ConstantValue:
    """Return a pattern with a backslash in place of another escape character."""
    sign = context.bind(escape)
    is_one = isinstance(sign, ConstantValue) and len(str(sign.value)) == 1
    if not is_one or not isinstance(pattern, ConstantValue):
        note = "write both as literals, as in `LIKE 'a!_b' ESCAPE '!'`"
        message = "`ESCAPE` needs a character and a literal."
        raise context.session.error("C1310", message, node, note)
    assert isinstance(sign, ConstantValue)
    found, rest = "", iter(str(pattern.value))
    for character in rest:
        if character == sign.value:
            found += "\\" + next(rest, "")
        else:
            found += "\\\\" if character == "\\" else character
    return ConstantValue(found, SYMBOL, pattern.span)
