"""Structs: how they are written, and their fields.

Fields have the names of columns and aliases, others `col1`, `col2` … by their places.
"""

from sqlglot import exp

from corollary.core.types import SYMBOL, Type, array_of, struct_of
from corollary.frontends.sql.binder.context import ExpressionContext, name_of
from corollary.frontends.sql.binder.functions.arguments import literal_text
from corollary.frontends.sql.binder.functions.table import function_call
from corollary.frontends.sql.binder.names import starred
from corollary.frontends.sql.binder.values.common_types import call, constant, is_untyped
from corollary.frontends.sql.binder.values.conversions import convert, make_struct
from corollary.frontends.sql.binder.values.operators import unfit
from corollary.frontends.sql.column_types import check_field_names
from corollary.frontends.sql.query_tree import Expression


def bind_struct(context: ExpressionContext, node: exp.Anonymous | exp.Tuple) -> Expression:
    """Return `struct(x, y AS b)`, or a row `(x, y)`."""
    scope, session = context.scope, context.session
    parts = [part for each in node.expressions for part in starred(each, scope, session)]
    if not parts:
        message = "A struct has at least one field."
        raise session.error("C1306", message, node, "write `struct(x, y AS b)`")
    values = [
        (
            _name_of(part) or f"col{number}",
            context.bind(part.this if isinstance(part, exp.Alias) else part),
        )
        for number, part in enumerate(parts, 1)
    ]
    return _made(context, node, values)


def bind_named_struct(context: ExpressionContext, node: exp.Anonymous) -> Expression:
    """Return `named_struct('a', x, 'b', y)`."""
    site = context.site(node, *node.expressions, name=name_of(node))
    if not node.expressions or len(node.expressions) % 2:
        message = "`named_struct` takes a name and a value for each field."
        raise site.error("C1306", message, "write `named_struct('a', x, 'b', y)`")
    bound = [context.bind(each) for each in node.expressions]
    names = [literal_text(each, site) for each in bound[::2]]
    return _made(context, node, list(zip(names, bound[1::2], strict=True)))


def _made(
    context: ExpressionContext, node: exp.Expr, values: list[tuple[str, Expression]]
) -> Expression:
    span = context.session.span(node)
    check_field_names([name for name, _ in values], span)
    return make_struct(values, span)


def bind_arrays_zip(context: ExpressionContext, node: exp.Anonymous) -> Expression:
    """Return `arrays_zip(a, b)`, an array of structs with an element of each array."""
    parts = node.expressions
    site = context.site(node, *parts, name=name_of(node))
    if not parts:
        raise site.error("C1306", "`arrays_zip` takes arrays.", "write `arrays_zip(a, b)`")
    names = [_name_of(part) or str(at) for at, part in enumerate(parts)]
    check_field_names(names, site.span)
    arguments: list[Expression] = []
    members: list[tuple[str, Type]] = []
    for name, part in zip(names, parts, strict=True):
        array = context.bind(part)
        array = convert(array, array_of(SYMBOL)) if is_untyped(array) else array
        if array.type.element is None:
            raise unfit(site, array, array_of(SYMBOL))
        members.append((name, array.type.element))
        arguments += [constant(name, SYMBOL), array]
    return call("arrays_zip", tuple(arguments), array_of(struct_of(members)), site.span)


def bind_exploded(context: ExpressionContext, node: exp.Anonymous) -> Expression:
    """Return `•exploded(a, n)`, a struct of the columns that `explode` has for an element."""
    parts = node.expressions
    value, number = context.bind(parts[0]), context.bind(parts[1])
    site = context.site(node, *parts, name="get")
    if not value.type.is_map:
        return make_struct([("col", function_call("get", [value, number], site))], site.span)
    entries = function_call("map_entries", [value], site)
    return function_call("get", [entries, number], site)


def _name_of(part: exp.Expr) -> str:
    """Return the name that a value has by itself; the empty text if it has none."""
    match part:
        case exp.Alias():
            return part.alias
        case exp.Column() | exp.Identifier():
            return part.name
        case exp.Dot():
            return str(part.name)
        case _:
            return ""
