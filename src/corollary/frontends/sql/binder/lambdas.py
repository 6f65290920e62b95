r"""Functions that take a lambda: `transform(a, (x, i) -> x + i)`, `aggregate`, `exists` ….

The body is bound as any expression, in which the parameters win over columns. Its types are exact,
as in Spark: what `aggregate` merges must have the type of its start, and a comparator gives an INT.

    aggregate(a, s, (acc, x) -> m, acc -> f)    get(transform(array(reduce(a, s, …)), acc -> f), 0)
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from sqlglot import exp

from corollary.core.functors.catalog import FUNCTORS
from corollary.core.functors.lambdas import SIGN, lambda_name, parameters_of
from corollary.core.functors.spec import FunctorSpec
from corollary.core.types import BOOL, INT, SYMBOL, Kind, Type, array_of, map_of
from corollary.frontends.sql.binder.context import ExpressionContext, name_of
from corollary.frontends.sql.binder.functions import function_call
from corollary.frontends.sql.binder.functions.map_functions import value_of
from corollary.frontends.sql.binder.session import UNTYPED
from corollary.frontends.sql.binder.values.common_types import (
    as_known,
    call,
    column_type,
    common_type,
    constant,
    integer,
    is_untyped,
)
from corollary.frontends.sql.binder.values.conversions import (
    convert,
    field,
    for_each,
    map_with,
    parameter,
    typed_null,
)
from corollary.frontends.sql.binder.values.operators import Site, condition, mismatch, unfit
from corollary.frontends.sql.query_tree import ConstantValue, Expression, FunctionCall, walk

_FUNCTORS = {"aggregate": "reduce", "array_sort": "sort_with"}
"""The functors of functions that have another name."""

LAMBDA_FUNCTIONS = (
    *("transform", "filter", "exists", "forall", "zip_with"),
    *("aggregate", "reduce", "array_sort"),
)
MAP_LAMBDAS = ("map_filter", "transform_keys", "transform_values", "map_zip_with")


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


def has_lambda(expression: Expression) -> bool:
    """Whether a lambda stands in an expression."""
    calls = (each for each in walk(expression) if isinstance(each, FunctionCall))
    return any(each.functor.startswith(SIGN) for each in calls)


def with_numbered_parameters(
    expression: Expression, numbers: Mapping[str, str] | None = None
) -> Expression:
    """Return an expression in which the parameters of lambdas are named by numbers."""
    if not isinstance(expression, FunctionCall):
        return expression
    functor, known = expression.functor, numbers or {}
    if functor.startswith(SIGN):
        names = parameters_of(functor)
        if expression.arguments:
            known = {**known, **{each: str(len(known) + at) for at, each in enumerate(names)}}
        functor = lambda_name(known.get(each, each) for each in names)
    arguments = tuple(with_numbered_parameters(each, known) for each in expression.arguments)
    return replace(expression, functor=functor, arguments=arguments)


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
    words = spec.lambda_at(len(given))
    types = [known[each.rstrip("?")] for each in words]
    least = sum(not each.endswith("?") for each in words)
    names, body = _bound(
        context, function, (least, len(words)), lambda names: map(parameter, names, types), site
    )
    taken, result = spec.shape[len(given)].rpartition("->")[2], spec.shape[-1]
    wanted = INT if taken == Kind.NUMBER else known.get(taken)
    if taken == Kind.BOOL:
        body = condition(body, site, f"`{site.name}`")
    elif is_untyped(body):
        body = replace(typed_null(wanted or SYMBOL), type=wanted or UNTYPED)
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
    counts: tuple[int, int],
    parameters: Callable[[list[str]], Iterable[Expression]],
    site: Site,
) -> tuple[list[str], Expression]:
    """Return the parameters of a lambda, and its body; what is no lambda is a body without them.

    Args:
        context: where the lambda stands.
        function: the lambda.
        counts: how many parameters it has at least, and at most.
        parameters: returns what parameters with some names stand for.
        site: the function that takes it.
    """
    session, names = context.session, list[str]()
    (least, most), body = counts, function
    if isinstance(function, exp.Lambda):
        session.check(function, "this", "expressions")
        names, body = [each.name for each in function.expressions], function.this
        if not least <= len(names) <= most:
            count = f"{least} or {most}" if least < most else str(least)
            message = f"This lambda of `{site.name}` takes {len(names)}, but is given {count}."
            raise session.error("C1306", message, function, "write as many parameters")
        if len({each.lower() for each in names}) < len(names):
            message = "Two parameters of a lambda have one name."
            raise session.error("C1306", message, function, "give them different names")
    named = dict(zip((each.lower() for each in names), parameters(names), strict=False))
    inner = replace(context, parameters={**context.parameters, **named}, with_windows=False)
    unnamed = ["_" * count for count in range(1, max(least, 1) + 1)]
    return names or unnamed, as_known(inner.bind(body))


# --- maps -------------------------------------------------------------------------------------


def bind_map_lambda(context: ExpressionContext, node: exp.Anonymous) -> Expression:
    """Return a function of maps that takes a lambda, by functions of arrays.

    map_filter(m, (k, v) -> c)        the map of filter(map_entries(m), e -> c[e.key, e.value])
    transform_keys(m, (k, v) -> x)    the map of x for each entry, and map_values(m)
    transform_values(m, (k, v) -> x)  the map of map_keys(m), and x for each entry
    map_zip_with(m, n, (k, v, w) -> x)  that of the keys of both, and x[m[k], n[k]] for each
    """
    name, parts = name_of(node), list(node.expressions)
    site = context.site(node, *parts, name=name)
    count = 3 if name == "map_zip_with" else 2
    if len(parts) != count:
        raise site.error("C1306", f"`{name}` takes {count} arguments.", "see docs/sql.md for them")
    maps = [as_known(context.bind(each)) for each in parts[:-1]]
    for each in maps:
        if not each.type.is_map:
            raise unfit(site, each, map_of(SYMBOL, SYMBOL))
    if name == "map_zip_with":
        maps = _with_one_key(maps, site)
    elements = function_call("map_entries", maps[:1], site)
    if name == "map_zip_with":
        keys = [function_call("map_keys", [each], site) for each in maps]
        elements = function_call("array_union", keys, site)
    assert elements.type.element is not None
    own = "e"
    while own in context.parameters:
        own += "_"
    element = parameter(own, elements.type.element)

    def stand_ins(_: list[str]) -> list[Expression]:
        if name != "map_zip_with":
            return [field(element, at) for at in (0, 1)]
        return [element, *(value_of([each, element], site) for each in maps)]

    _, body = _bound(context, parts[-1], (count, count), stand_ins, site)
    span = site.span
    if name == "map_filter":
        test = condition(body, site, f"`{name}`")
        kept = FunctionCall(lambda_name((own,)), (test,), test.type, span)
        made: Expression = FunctionCall("filter", (elements, kept), elements.type, span)
        sides: list[Expression] = [
            call("array_field", (made, constant(each, SYMBOL)), array_of(type_), span)
            for each, type_ in elements.type.element.members
        ]
    else:
        body = typed_null(SYMBOL) if is_untyped(body) else body
        made = for_each(elements, own, replace(body, type=column_type(body)))
        if name == "transform_keys":
            sides = [made, function_call("map_values", maps, site)]
        else:
            is_zip = name == "map_zip_with"
            keys_of = elements if is_zip else function_call("map_keys", maps, site)
            sides = [keys_of, made]
    return function_call("map_from_arrays", sides, site)


def _with_one_key(maps: list[Expression], site: Site) -> list[Expression]:
    """Return maps whose keys have one type."""
    keys = [ConstantValue(None, each.type.members[0][1]) for each in maps]
    wanted = common_type(list[Expression](keys), reads_texts=False)
    if wanted is None:
        raise mismatch(site, maps, f"`{site.name}`")
    found = [map_with(each, map_of(wanted, each.type.members[1][1]), convert) for each in maps]
    return [each for each in found if each is not None]
