r"""Functions that take a lambda: `transform(a, (x, i) -> x + i)`, `aggregate`, `exists` ….

The body is bound as any expression, in which the parameters win over columns. Its types are exact,
as in Spark: what `aggregate` merges must have the type of its start, and a comparator gives an INT.

    aggregate(a, s, (acc, x) -> m, acc -> f)    get(transform(array(reduce(a, s, …)), acc -> f), 0)
"""

from dataclasses import replace

from sqlglot import exp

from corollary.core.functors.catalog import FUNCTORS
from corollary.core.functors.lambdas import lambda_name
from corollary.core.functors.spec import FunctorSpec
from corollary.core.types import BOOL, INT, SYMBOL, Kind, Type, array_of
from corollary.frontends.sql.binder.context import ExpressionContext, name_of
from corollary.frontends.sql.binder.values.conversions import (
    as_known,
    column_type,
    integer,
    is_untyped,
)
from corollary.frontends.sql.binder.values.operators import Site, condition, unfit
from corollary.frontends.sql.query_tree import Expression, FunctionCall

_FUNCTORS = {"aggregate": "reduce", "array_sort": "sort_with"}
"""The functors of functions that have another name."""

LAMBDA_FUNCTIONS = (
    *("transform", "filter", "exists", "forall", "zip_with"),
    *("aggregate", "reduce", "array_sort"),
)


def bind_lambda_call(context: ExpressionContext, node: exp.Anonymous) -> Expression | None:
    """Return a function that takes a lambda; None if it is called without one."""
    name, parts = name_of(node), list(node.expressions)
    if name == "array_sort" and len(parts) == 1:
        return None
    spec = FUNCTORS[_FUNCTORS.get(name, name)]
    site = context.site(node, *parts, name=name)
    finish = parts.pop() if spec.name == "reduce" and len(parts) == 4 else None
    if len(parts) != len(spec.parameters):
        more = " or 4" if spec.name == "reduce" else ""
        message = f"`{name}` takes {len(spec.parameters)}{more} arguments."
        raise site.error("C1306", message, "see docs/sql.md for its arguments")
    given = [as_known(context.bind(each)) for each in parts[:-1]]
    made = _applied(context, spec, given, parts[-1], site)
    if finish is None:
        return made
    only = FunctionCall("array", (made,), array_of(made.type), site.span)
    ended = _applied(context, FUNCTORS["transform"], [only], finish, site)
    assert ended.type.element is not None
    return FunctionCall("get", (ended, integer(0)), ended.type.element.with_null(True), site.span)


def _applied(
    context: ExpressionContext,
    spec: FunctorSpec,
    given: list[Expression],
    function: exp.Expr,
    site: Site,
) -> Expression:
    """Return a functor applied to arguments and a lambda."""
    known: dict[str, Type] = {"number": INT}
    for at, argument in enumerate(given):
        type_ = column_type(argument)
        if spec.shape_at(at).startswith("["):
            if type_.element is None:
                raise unfit(site, argument, array_of(SYMBOL))
            type_ = type_.element
        known[spec.shape_at(at).strip("[]")] = type_.with_null(True)
    names, body = _bound(context, function, spec.lambda_at(len(given)), known, site)
    taken, result = spec.shape[len(given)].rpartition("->")[2], spec.shape[-1]
    if taken == Kind.BOOL:
        body = condition(body, site, f"`{site.name}`")
    elif is_untyped(body):
        message = f"Nothing says which type the NULL of `{site.name}` has."
        raise site.error("C1307", message, "write `CAST(NULL AS INT)` or another type")
    wanted = INT if taken == Kind.NUMBER else known.get(taken)
    if wanted is not None and column_type(body).spark_name != wanted.spark_name:
        found, name = column_type(body).spark_name, wanted.spark_name
        message = f"The lambda of `{site.name}` must give {name}, but gives {found}."
        raise site.error("C1307", message, f"write `CAST(… AS {name})` in it")
    known[taken] = column_type(body)
    type_ = known.get(result.strip("[]"), BOOL)
    if result.startswith("["):
        type_ = array_of(type_)
    is_nullable = spec.may_be_null([each.type.nullable for each in given])
    applied = FunctionCall(lambda_name(names), (body,), body.type, context.session.span(function))
    return FunctionCall(spec.name, (*given, applied), type_.with_null(is_nullable), site.span)


def _bound(
    context: ExpressionContext,
    function: exp.Expr,
    taken: tuple[str, ...],
    known: dict[str, Type],
    site: Site,
) -> tuple[list[str], Expression]:
    """Return the parameters of a lambda, and its body; what is no lambda is a body without them."""
    session, names = context.session, list[str]()
    body = function
    if isinstance(function, exp.Lambda):
        session.check(function, "this", "expressions")
        names, body = [each.name for each in function.expressions], function.this
        least = sum(not each.endswith("?") for each in taken)
        if not least <= len(names) <= len(taken):
            count = f"{least} or {len(taken)}" if least < len(taken) else str(least)
            message = f"This lambda of `{site.name}` takes {len(names)}, but is given {count}."
            raise session.error("C1306", message, function, "write as many parameters")
        if len({each.lower() for each in names}) < len(names):
            message = "Two parameters of a lambda have one name."
            raise session.error("C1306", message, function, "give them different names")
    types = [known[each.rstrip("?")] for each in taken]
    parameters = {
        name.lower(): FunctionCall(lambda_name((name,)), (), type_)
        for name, type_ in zip(names, types, strict=False)
    }
    inner = replace(context, parameters={**context.parameters, **parameters}, with_windows=False)
    return names or ["_"], as_known(inner.bind(body))
