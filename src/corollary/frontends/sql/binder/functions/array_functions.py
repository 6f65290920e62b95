"""The functions on arrays, and those of texts that take arrays, too."""

from corollary.core.functors.catalog import FUNCTORS, result_type
from corollary.core.functors.lambdas import lambda_name
from corollary.core.functors.spec import FunctorSpec, Nullness
from corollary.core.spark_times import SIZES
from corollary.core.types import BOOL, NUMBER, SYMBOL, TIMESTAMP, Type, array_of
from corollary.core.values import to_stored
from corollary.frontends.sql.binder.functions.arguments import (
    MANY,
    SqlFunction,
    fitted,
    with_default,
)
from corollary.frontends.sql.binder.values.common_types import (
    bits_of,
    call,
    common_type,
    constant,
    integer,
    is_untyped,
    sized,
)
from corollary.frontends.sql.binder.values.conversions import convert, for_each, parameter
from corollary.frontends.sql.binder.values.operators import (
    Site,
    aligned,
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
    wanted = common_type(stand_ins, reads_texts=spec.name in ("array", "array_concat"))
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
    return sized(found, type_.bits) if type_.is_number else found


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
    """Return `sequence(first, last)`, which goes up or down by 1 or a day, or with a step."""
    if any(each.type.is_time for each in arguments[:2] if not is_untyped(each)):
        return _times(arguments, site)
    numbers = [fitted(each, FUNCTORS["sequence"].kinds(0), site) for each in arguments]
    held = sized(numbers[0], max(map(bits_of, numbers))).type
    if len(numbers) < 3:
        numbers.append(_direction(numbers, 1, site))
    return call("sequence", tuple(numbers), array_of(held), site.span)


def _direction(ends: list[Expression], step: int, site: Site) -> Expression:
    """Return a step up or down."""
    is_up = call("le", (ends[0], ends[1]), BOOL, site.span)
    return choose([(is_up, integer(step))], integer(-step), NUMBER, site.span)


def _times(arguments: list[Expression], site: Site) -> Expression:
    """Return a sequence of dates or timestamps: what is added to the first is one of numbers."""
    ends = list(aligned(arguments[:2], site, "`sequence`"))
    type_ = ends[0].type.with_null(False)
    is_local = type_.is_timestamp_ntz
    ends = [convert(each, TIMESTAMP) for each in ends] if is_local else ends
    stored = TIMESTAMP if is_local else type_
    step, size, is_months = _step_of(arguments, site), SIZES["DAY"], False
    if step is not None:
        is_months, size = step.type.is_months, to_stored(step.value)
    if size == 0 or (stored.is_date and not is_months and size % SIZES["DAY"]):
        message = "This step makes no sequence of dates." if size else "This step is 0."
        raise site.error("C1306", message, "write an interval of whole days or months")
    functor, between = "add_microseconds", "microseconds_between"
    if stored.is_date and not is_months:
        functor, between, size = "add_days", "days_between", size // SIZES["DAY"]
    if is_months:
        functor = "add_months"
        last = _months_between(ends, size > 0, site)
    else:
        last = call(between, (ends[0], ends[1]), NUMBER, site.span)
    by = integer(size) if step is not None else _direction(ends, size, site)
    places = call("sequence", (integer(0), last, by), array_of(NUMBER), site.span)
    made = call(functor, (ends[0], parameter("n", NUMBER)), stored)
    found = for_each(places, "n", made)
    if is_months:  # the last one may come later in its month
        test = call("le" if size > 0 else "ge", (parameter("t", stored), ends[1]), BOOL)
        kept = FunctionCall(lambda_name(("t",)), (test,), BOOL)
        found = FunctionCall("filter", (found, kept), found.type, site.span)
    return convert(found, array_of(type_).with_null(found.type.nullable))


def _step_of(arguments: list[Expression], site: Site) -> ConstantValue | None:
    if len(arguments) < 3:
        return None
    step = arguments[2]
    if isinstance(step, ConstantValue) and step.type.is_interval:
        return step
    message = "The step of a sequence of times is a literal interval."
    raise site.error("C1306", message, "write `INTERVAL 1 DAY`, say")


def _months_between(ends: list[Expression], is_up: bool, site: Site) -> Expression:
    """Return how many months of the calendar there are; where there are none, a wrong number."""
    first, last = (
        call(
            "+",
            (
                call("*", (call("year", (each,), NUMBER), integer(12)), NUMBER),
                call("month", (each,), NUMBER),
            ),
            NUMBER,
        )
        for each in ends
    )
    count = call("-", (last, first), NUMBER, site.span)
    is_wrong = call("gt" if is_up else "lt", (ends[0], ends[1]), BOOL)
    return choose([(is_wrong, integer(-1 if is_up else 1))], count, NUMBER, site.span)


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
    "json_tuple": function_of_arrays(FUNCTORS["json_tuple"]),
}
"""The functions on arrays, by their names in Spark."""
