"""The functions on arrays, and those of texts that take arrays, too."""

from corollary.core.functors.catalog import FUNCTORS, result_type
from corollary.core.functors.spec import FunctorSpec, Nullness
from corollary.core.types import BOOL, NUMBER, SYMBOL, Type, array_of
from corollary.frontends.sql.binder.functions.arguments import (
    MANY,
    SqlFunction,
    fitted,
    with_default,
)
from corollary.frontends.sql.binder.values.conversions import (
    call,
    common_type,
    constant,
    convert,
    integer,
    is_untyped,
)
from corollary.frontends.sql.binder.values.operators import (
    Site,
    check_comparable,
    choose,
    mismatch,
    unfit,
)
from corollary.frontends.sql.query_tree import ConstantValue, Expression, FunctionCall

_COMPARING = frozenset(
    f"array_{word}"
    for word in (
        *("distinct", "union", "intersect", "except", "remove", "sort", "position", "contains"),
        *("min", "max"),
    )
) | {"sort_array", "arrays_overlap"}
"""The functors of arrays that compare elements."""


def shaped_call(spec: FunctorSpec, arguments: list[Expression], site: Site) -> Expression:
    """Return a functor of arrays; values beside them are converted to the type of the elements."""
    stand_ins: list[Expression] = []
    for at, argument in enumerate(arguments):
        element, shape = argument.type, spec.shape_at(at)
        for _ in range(shape.count("[")):
            if element.element is None and not is_untyped(argument):
                raise unfit(site, argument, array_of(SYMBOL))
            element = element.element or element
        if shape.strip("[]") == "T":
            is_array = shape != "T" and not is_untyped(argument)
            stand_ins.append(ConstantValue(None, element) if is_array else argument)
    for each in stand_ins if spec.name in _COMPARING else ():
        check_comparable(each.type, site)
    wanted = common_type(stand_ins, reads_texts=False)
    if wanted is None:
        raise mismatch(site, arguments, f"`{site.name}`")
    values = tuple(
        _fitted(argument, spec, at, wanted, site) for at, argument in enumerate(arguments)
    )
    if spec.name == "array" and all(isinstance(each, ConstantValue) for each in values):
        held = tuple(each.value for each in values if isinstance(each, ConstantValue))
        return ConstantValue(held, array_of(wanted), site.span)
    result = result_type(spec.name, [each.type for each in values])
    is_nullable = spec.nullness is Nullness.ALWAYS or result.nullable
    return FunctionCall(spec.name, values, result.with_null(is_nullable), site.span)


def _fitted(
    argument: Expression, spec: FunctorSpec, at: int, wanted: Type, site: Site
) -> Expression:
    shape, type_ = spec.shape_at(at), wanted
    if shape.strip("[]") != "T":
        if not shape.startswith("["):
            return fitted(argument, spec.kinds(at), site)
        type_ = SYMBOL
    for _ in range(shape.count("[")):
        type_ = array_of(type_)
    found = convert(argument, type_.with_null(argument.type.nullable))
    if found.type.element != type_.element:
        raise mismatch(site, [argument, ConstantValue(None, type_)], f"`{site.name}`")
    return found


def function_of_arrays(spec: FunctorSpec) -> SqlFunction:
    """Return the function that is a functor of arrays."""
    most = MANY if spec.is_variadic else len(spec.parameters)
    return SqlFunction(
        spec.min_arguments, most, lambda arguments, site: shaped_call(spec, arguments, site)
    )


def _concat(arguments: list[Expression], site: Site) -> Expression:
    if len(arguments) == 1:
        return arguments[0]
    return shaped_call(FUNCTORS["array_concat"], arguments, site)


def _sort(arguments: list[Expression], site: Site) -> Expression:
    ascends = [*arguments, constant(True, BOOL)][:2]
    return shaped_call(FUNCTORS["sort_array"], ascends, site)


def _sequence(arguments: list[Expression], site: Site) -> Expression:
    """Return `sequence(first, last)`, which goes up or down by 1, or with a step."""
    numbers = [fitted(each, FUNCTORS["sequence"].kinds(0), site) for each in arguments]
    if len(numbers) < 3:
        is_up = call("le", (numbers[0], numbers[1]), BOOL, site.span)
        numbers.append(choose([(is_up, integer(1))], integer(-1), NUMBER, site.span))
    return call("sequence", tuple(numbers), array_of(NUMBER), site.span)


def _to_json(arguments: list[Expression], site: Site) -> Expression:
    (value,) = arguments
    if not value.type.members:
        message = "`to_json` takes an array or a struct."
        raise site.error("C1308", message, "write `to_json(struct(x))`")
    if value.type.has_maps:
        message = "`to_json` of maps is refused: it has the order in which they were made."
        raise site.error("C1311", message, "apply it to `map_entries(m)`")
    if _has_interval(value.type):
        message = "`to_json` of intervals is refused: what is inside has no fields here."
        raise site.error("C1311", message, "cast them to STRING before")
    return call("to_json", (value,), SYMBOL, site.span)


def _has_interval(type_: Type) -> bool:
    return type_.is_interval or any(_has_interval(each) for _, each in type_.members)


def element_of(array: Expression, number: Expression, site: Site) -> Expression:
    """Return `array[number]`."""
    return shaped_call(FUNCTORS["element"], [array, number], site)


ARRAY_FUNCTIONS: dict[str, SqlFunction] = {
    "concat": SqlFunction(1, MANY, _concat),
    "reverse": function_of_arrays(FUNCTORS["array_reverse"]),
}
"""Functions of texts that are others for arrays."""

LIST_FUNCTIONS: dict[str, SqlFunction] = {
    **{
        name: function_of_arrays(spec)
        for spec in FUNCTORS.values()
        if spec.shape
        for name in spec.sql_names
    },
    "sort_array": SqlFunction(1, 2, _sort),
    "sequence": SqlFunction(2, 3, _sequence),
    "split": with_default("split", integer(-1)),
    "to_json": SqlFunction(1, 1, _to_json),
    "json_tuple": function_of_arrays(FUNCTORS["json_tuple"]),
}
"""The functions on arrays, by their names in Spark."""
