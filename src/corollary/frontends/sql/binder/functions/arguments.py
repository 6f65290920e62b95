"""Arguments of functions: what they must be, and how they are converted."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import nan

from sqlglot import exp

from corollary.core.functors.catalog import FUNCTORS, count_groups, result_type
from corollary.core.functors.spec import (
    BYTES,
    DAY,
    DOUBLE,
    MOMENT,
    TIME,
    FunctorSpec,
    Kinds,
    define,
)
from corollary.core.types import (
    BINARY,
    BOOL,
    DATE,
    FLOAT,
    FLOAT32,
    NUMBER,
    SQL_NUMERIC,
    SYMBOL,
    TIME_OF_DAY,
    TIMESTAMP,
    Type,
)
from corollary.data_class import dataclass
from corollary.frontends.sql.binder.values.common_types import (
    EPOCH,
    bits_of,
    call,
    integer,
    is_untyped,
)
from corollary.frontends.sql.binder.values.conversions import cast, convert, to_decimal
from corollary.frontends.sql.binder.values.operators import (
    Site,
    attempt,
    negative,
    read_literal,
    unfit,
)
from corollary.frontends.sql.query_tree import ConstantValue, Expression, FunctionCall
from corollary.sqlgen.templates import parse_template

MANY = 10_000
"""The maximum number of arguments of a function that takes any number."""

Builder = Callable[[list[Expression], Site], Expression]


@dataclass(frozen=True, slots=True)
class SqlFunction:
    """A function: how many arguments it takes, and what it becomes.

    Attributes:
        parameters: the kinds of its arguments, where these are all that there is to know of them.
    """

    least: int
    most: int
    build: Builder
    parameters: tuple[Kinds, ...] = ()


_WANTED = (NUMBER, FLOAT, SYMBOL, BOOL, TIMESTAMP, DATE, BINARY, TIME_OF_DAY)


def fitted(argument: Expression, kinds: Kinds, site: Site) -> Expression:
    """Return an argument as its parameter wants it, or refuse it.

    A parameter for dates and timestamps takes both; one for integers takes a `number`.
    """
    wanted = next(type_ for type_ in _WANTED if type_.logical_kind in kinds)
    if is_untyped(argument):
        return convert(argument, wanted)
    if argument.type.is_timestamp_ntz:  # in UTC it is the same time
        argument = convert(argument, TIMESTAMP)
    if argument.type.is_float32 and FLOAT.kind in kinds and FLOAT32.logical_kind not in kinds:
        return convert(argument, FLOAT)
    type_ = argument.type
    if type_.logical_kind in kinds:
        return argument
    if kinds == DOUBLE and type_.logical_kind in SQL_NUMERIC:
        return convert(argument, FLOAT)
    if kinds == BYTES and type_.is_symbol:
        return convert(argument, BINARY)
    if kinds == DAY and type_.is_timestamp:
        return call("to_date", (argument,), DATE, argument.span)
    if kinds == MOMENT and type_.is_date:
        return convert(argument, TIMESTAMP)
    if isinstance(argument, ConstantValue) and isinstance(argument.value, str):
        return read_literal(argument, wanted, site)
    if not type_.members and (type_.is_symbol or wanted.is_symbol):  # as ANSI Spark does
        found = cast(argument, wanted, 64)
        if found is not None:
            return found
    raise unfit(site, argument, DATE if kinds == TIME else wanted)


def fit_all(arguments: list[Expression], spec: FunctorSpec, site: Site) -> tuple[Expression, ...]:
    """Return arguments as a signature wants them, or refuse one of them."""
    for at in spec.patterns:
        literal_pattern(arguments[at], site)
    return tuple(fitted(each, spec.kinds(at), site) for at, each in enumerate(arguments))


def function_of(spec: FunctorSpec) -> SqlFunction:
    """Return the function that is a functor, argument by argument."""

    def build(arguments: list[Expression], site: Site) -> Expression:
        values = fit_all(arguments, spec, site)
        result = result_type(spec.name, [value.type for value in values])
        if result.is_number and spec.result is None:
            widest = max(bits_of(values[at]) for at in spec.alike(len(values)))
            result = replace(result, bits=widest)
        return FunctionCall(spec.name, values, result, site.span)

    most = MANY if spec.is_variadic else len(spec.parameters)
    return SqlFunction(spec.min_arguments, most, build, spec.parameters)


_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "rem",
}
_CONSTANTS: Mapping[str, Expression] = {
    "EPOCH": ConstantValue(EPOCH, TIMESTAMP),
    "EPOCH_DAY": ConstantValue(EPOCH.date(), DATE),
    "NAN": ConstantValue(nan, FLOAT),
}
"""What the expressions of functions may name beside their parameters."""


def expressions_of(rows: Mapping[str, str]) -> dict[str, SqlFunction]:
    """Return the functions that are expressions over functors of their arguments, by name.

    Args:
        rows: expressions by the names of a function and its parameters; a name may have several, of
            different numbers of parameters.
    """
    forms: dict[str, dict[int, tuple[FunctorSpec, str]]] = {}
    for signature, text in rows.items():
        spec = define(signature)
        for name in spec.name.split():
            forms.setdefault(name, {})[len(spec.parameters)] = spec, text
    return {name: _overloaded(found) for name, found in forms.items()}


def _overloaded(forms: Mapping[int, tuple[FunctorSpec, str]]) -> SqlFunction:
    """Return the function with a form for each number of arguments."""

    def build(arguments: list[Expression], site: Site) -> Expression:
        return _evaluate(*forms[len(arguments)], arguments, site)

    most = max(forms)
    return SqlFunction(min(forms), most, build, forms[most][0].parameters)


def _evaluate(spec: FunctorSpec, text: str, arguments: list[Expression], site: Site) -> Expression:
    values = fit_all(arguments, spec, site)
    named = {**_CONSTANTS, **dict(zip(spec.arguments, values, strict=True))}

    def make(node: exp.Expr) -> Expression:
        match node:
            case exp.Column():
                return named[node.name]
            case exp.Literal(is_string=True):
                return ConstantValue(node.name, SYMBOL)
            case exp.Literal(is_int=True):
                return integer(int(node.name))
            case exp.Literal():
                return ConstantValue(float(node.name), FLOAT)
            case exp.Paren():
                return make(node.this)
            case exp.Neg():
                return negative(make(node.this), site)
            case exp.Anonymous(name="try"):
                return attempt(make(node.expressions[0]), values, site)
            case exp.Anonymous():
                functor, parts = node.name, node.expressions
            case _:
                assert isinstance(node, exp.Binary), f"{text} has a node that is not known"
                functor, parts = _OPERATORS[type(node)], [node.left, node.right]
        made = tuple(map(make, parts))
        return FunctionCall(functor, made, result_type(functor, [x.type for x in made]), site.span)

    return make(parse_template(text))


def with_default(functor: str, default: Expression) -> SqlFunction:
    """Return the function that is a functor whose last argument may be left out."""
    function = function_of(FUNCTORS[functor])

    def build(arguments: list[Expression], site: Site) -> Expression:
        return function.build([*arguments, default][: function.most], site)

    return SqlFunction(function.most - 1, function.most, build)


def numeric(argument: Expression, site: Site) -> Expression:
    """Return an argument that must be a number; unsigned ones become decimals, FLOAT DOUBLE."""
    if is_untyped(argument):
        return convert(argument, NUMBER)
    if argument.type.is_unsigned:
        return to_decimal(argument, 0, 20)
    if argument.type.is_symbol or argument.type.is_float32:
        return convert(argument, FLOAT)
    if argument.type.logical_kind not in SQL_NUMERIC:
        raise unfit(site, argument, NUMBER)
    return argument


def literal_integer(argument: Expression, site: Site) -> int:
    """Return the value of an argument that must be an integer literal."""
    value = argument.value if isinstance(argument, ConstantValue) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if site.session.unknown is not None and is_untyped(argument):
        convert(argument, NUMBER)
        return 0
    raise site.error(
        "C1306", f"`{site.name}` needs a literal number here.", "write it as a literal"
    )


def literal_text(argument: Expression, site: Site) -> str:
    """Return the value of an argument that must be a text literal."""
    if isinstance(argument, ConstantValue) and isinstance(argument.value, str):
        return argument.value
    raise site.error("C1306", f"`{site.name}` needs a literal text here.", "write it as a literal")


def literal_pattern(argument: Expression, site: Site) -> tuple[str, int]:
    """Return an argument that must be a literal pattern of RE2, and the number of its groups."""
    pattern = literal_text(argument, site)
    try:
        return pattern, count_groups(pattern)
    except ValueError as error:
        message = f"`{pattern}` is not a pattern of RE2: {error}."
        raise site.error("C1306", message, "write it without what RE2 does not have") from None


def plain(type_: Type) -> Type:
    """Return a type without null."""
    return replace(type_, nullable=False)
