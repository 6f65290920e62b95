"""Arguments of functions: what they must be, and how they are converted."""

from collections.abc import Callable
from dataclasses import replace

from corollary.core.functors.catalog import FUNCTORS, result_type
from corollary.core.functors.spec import DAY, DOUBLE, MOMENT, TIME, FunctorSpec, Kinds
from corollary.core.types import (
    BOOL,
    DATE,
    FLOAT,
    NUMBER,
    NUMERIC,
    SYMBOL,
    TIMESTAMP,
    Type,
)
from corollary.data_class import dataclass
from corollary.frontends.sql.binder.values.conversions import call, convert, is_untyped, to_decimal
from corollary.frontends.sql.binder.values.operators import Site, read_literal, unfit
from corollary.frontends.sql.query_tree import ConstantValue, Expression

Builder = Callable[[list[Expression], Site], Expression]


@dataclass(frozen=True, slots=True)
class SqlFunction:
    """A function: how many arguments it takes, and what it becomes."""

    least: int
    most: int
    build: Builder


_WANTED = (NUMBER, FLOAT, SYMBOL, BOOL, TIMESTAMP, DATE)


def fitted(argument: Expression, kinds: Kinds, site: Site) -> Expression:
    """Return an argument as its parameter wants it, or refuse it.

    A parameter for dates and timestamps takes both; one for integers takes a `number`.
    """
    wanted = next(type_ for type_ in _WANTED if type_.kind in kinds)
    if is_untyped(argument):
        return ConstantValue(None, wanted.with_null(True), argument.span)
    type_ = argument.type
    if type_.kind is wanted.kind or (kinds == TIME and type_.is_date):
        return argument
    if kinds == DOUBLE and type_.kind in NUMERIC:
        return convert(argument, FLOAT)
    if kinds == DAY and type_.is_timestamp:
        return call("to_date", (argument,), DATE, argument.span)
    if kinds == MOMENT and type_.is_date:
        return convert(argument, TIMESTAMP)
    if isinstance(argument, ConstantValue) and isinstance(argument.value, str):
        return read_literal(argument, wanted, site)
    raise unfit(site, argument, DATE if kinds == TIME else wanted)


def function_of(spec: FunctorSpec) -> SqlFunction:
    """Return the function that is a functor, argument by argument."""

    def build(arguments: list[Expression], site: Site) -> Expression:
        values = tuple(map(fitted, arguments, spec.parameters, [site] * len(arguments)))
        result = plain(result_type(spec.name, [value.type for value in values]))
        return call(spec.name, values, result, site.span)

    return SqlFunction(len(spec.parameters), len(spec.parameters), build)


def with_default(functor: str, default: Expression) -> SqlFunction:
    """Return the function that is a functor whose last argument may be left out."""
    function = function_of(FUNCTORS[functor])

    def build(arguments: list[Expression], site: Site) -> Expression:
        return function.build([*arguments, default][: function.most], site)

    return SqlFunction(function.most - 1, function.most, build)


def numeric(argument: Expression, site: Site) -> Expression:
    """Return an argument that must be a number; an unsigned one becomes a decimal."""
    if is_untyped(argument):
        return ConstantValue(None, NUMBER.with_null(True), argument.span)
    if argument.type.is_unsigned:
        return to_decimal(argument, 0, 20)
    if argument.type.kind not in NUMERIC:
        raise unfit(site, argument, NUMBER)
    return argument


def literal_integer(argument: Expression, site: Site) -> int:
    """Return the value of an argument that must be an integer literal."""
    if isinstance(argument, ConstantValue) and isinstance(argument.value, int):
        return argument.value
    raise site.error(
        "C1306", f"`{site.name}` needs a literal number here.", "write it as a literal"
    )


def literal_text(argument: Expression, site: Site) -> str:
    """Return the value of an argument that must be a text literal."""
    if isinstance(argument, ConstantValue) and isinstance(argument.value, str):
        return argument.value
    raise site.error("C1306", f"`{site.name}` needs a literal text here.", "write it as a literal")


def plain(type_: Type) -> Type:
    """Return a type without null."""
    return replace(type_, nullable=False)
