"""The judge of all engines: a naive evaluator over Python sets that shares no code with them.

`evaluate(text, facts)` gives every declared relation as a set of tuples of Python values.

    text      --parse-->  rules      --dnf-->  one `Conjunction` per branch of a body
    strata (SCCs of the dependency graph), lowest first; in each: apply all rules until nothing
    is new. A rule is applied by joining all its positive atoms, and only then judging the rest.

**False dominates error.** An expression gives a value, None (null) or a `Failure`. An instance
whose relational literals hold is dropped if any comparison is false, and raises `OracleError` only
if none is false and some expression failed. A variable that only a failing equation could bind is
itself a `Failure` (unknown). `NoTuple` (min, max, mean of nothing) drops the instance too.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from operator import add, mul, sub, truediv
from typing import Any, TypeAlias

import re2

from oracles import calendar, groups, records, scalars
from oracles.parser import (
    Agg,
    And,
    Atom,
    Cmp,
    Decl,
    Expr,
    Fn,
    Formula,
    Lit,
    Not,
    Or,
    OracleRejected,
    Program,
    Rule,
    Subsumption,
    Truth,
    TypeName,
    Var,
    int_of,
    opposite,
    parse,
    read_date,
    read_timestamp,
)
from oracles.rounds import Rounds, parts_of
from oracles.windows import body_of, is_windowed, rows_of
from oracles.witnesses import with_witnesses

__all__ = ["OracleError", "OracleLimit", "OracleRejected", "evaluate", "typed_rows"]


class OracleError(ValueError):
    """A run-time error of a rule instance: overflow, division by zero, failed conversion, ..."""


class OracleLimit(Exception):  # noqa: N818 (a verdict, not a mistake)
    """The evaluation passed the bound on rounds or tuples."""


class Fault(Exception):  # noqa: N818 (never leaves this module)
    """Raised by a functor; becomes a `Failure`."""


class NoTuple(Exception):  # noqa: N818 (never leaves this module)
    """min, max or mean over nothing: the rule instance does not hold."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The value of an expression that failed, and of a variable that it should have bound."""

    reason: str


@dataclass(frozen=True, slots=True)
class Type:
    """A primitive type; scale and precision matter for decimals only."""

    name: str
    scale: int = 0
    precision: int = 38
    nullable: bool = False

    def fits(self, other: Type) -> bool:
        return (self.name, self.scale) == (other.name, other.scale)


Value: TypeAlias = Any
Env: TypeAlias = dict[str, Value]
Run: TypeAlias = Callable[[Env], Value]
Literal: TypeAlias = Atom | Cmp | Not

PLAIN: dict[str, Callable[[Any, Any], Any]] = {"+": add, "-": sub, "*": mul}
NUMBER, UNSIGNED, FLOAT, SYMBOL, BOOL, DATE, TIMESTAMP = (
    Type(name) for name in ("number", "unsigned", "float", "symbol", "bool", "date", "timestamp")
)
PRIMITIVES = {t.name: t for t in (NUMBER, UNSIGNED, FLOAT, SYMBOL, BOOL, DATE, TIMESTAMP)}
BOUNDS = {"number": (-(2**63), 2**63 - 1), "unsigned": (0, 2**64 - 1)}
PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "number": (int,), "unsigned": (int,), "float": (float, int), "symbol": (str,),
    "bool": (bool,), "date": (date,), "timestamp": (datetime,), "decimal": (Decimal, int),
}  # fmt: skip
ARITHMETIC = ("+", "-", "*", "/", "%", "^", "neg")
BITS = ("band", "bor", "bxor", "bnot", "bshl", "bshr", "bshru", "land", "lor", "lxor", "lnot")
MIXED = ("+", "-", "*", "/")
SAME_TYPE = (*ARITHMETIC, *BITS, "min", "max", "range")
RESULTS = {
    "cat": SYMBOL, "strlen": NUMBER, "substr": SYMBOL, "ord": NUMBER, "to_number": NUMBER,
    "to_unsigned": UNSIGNED, "to_float": FLOAT, "to_string": SYMBOL, "to_date": DATE,
    "to_timestamp": TIMESTAMP, "format_time": SYMBOL, "parse_date": DATE, "parse_time": TIMESTAMP,
    **dict.fromkeys(calendar.NUMBERS, NUMBER),
    **{name: PRIMITIVES[kind] for name, kind in scalars.RESULTS.items()},
}  # fmt: skip
PARAMETERS: dict[str, tuple[Type | None, ...]] = {
    "strlen": (SYMBOL,),
    "substr": (SYMBOL, NUMBER, NUMBER),
    "ord": (SYMBOL,),
    "days_between": (DATE, DATE),
    **dict.fromkeys(("seconds_between", "microseconds_between"), (TIMESTAMP, TIMESTAMP)),
    **dict.fromkeys(("hour", "minute", "second", "microsecond"), (TIMESTAMP,)),
    **dict.fromkeys(("add_days", "add_months"), (None, NUMBER)),
    **dict.fromkeys(("add_seconds", "add_microseconds"), (TIMESTAMP, NUMBER)),
    **dict.fromkeys((f"start_of_{unit}" for unit in calendar.CLOCK), (TIMESTAMP,)),
    "format_time": (None, SYMBOL),
    **dict.fromkeys(("parse_date", "parse_time"), (SYMBOL, SYMBOL)),
}
ARITIES = {
    **dict.fromkeys((*ARITHMETIC, *BITS, "to_decimal"), (2, 2)),
    **dict.fromkeys(("neg", "bnot", "lnot", "strlen", "ord"), (1, 1)),
    **dict.fromkeys((name for name in RESULTS if name.startswith("to_")), (1, 1)),
    **dict.fromkeys(("min", "max", "cat"), (2, 99)),
    "substr": (3, 3), "range": (2, 3),
    **dict.fromkeys(calendar.FUNCTORS, (1, 1)),
    **dict.fromkeys((name for name in calendar.FUNCTORS if name in calendar.BINARY), (2, 2)),
    **scalars.ARITIES,
}  # fmt: skip
ORDERINGS = ("=", "!=", "<", "<=", ">", ">=", "is", "!is")
EQUATIONS = ("=", "is")
NEGATED = {
    "is": "!is",
    "=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
    "match": "!match", "contains": "!contains",
}  # fmt: skip


# ------------------------------------------------------------------------------------------ values


def canonical(value: Value) -> Value:
    """One float per equivalence class: -0.0 becomes 0.0, and there is one NaN object."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    return value


def order(value: Value) -> Value:
    """The sort key of a value: NaN equals itself and is greatest."""
    if isinstance(value, float):
        return (True, 0.0) if math.isnan(value) else (False, value)
    return value


def word(value: Value, type_: Type, bits: int) -> Value:
    """The value in so many bits: integers wrap around, floats are rounded to single precision."""
    if bits == 64 or type_.name not in ("number", "unsigned", "float"):
        return value
    if type_.name == "float":
        try:
            return float(struct.unpack("f", struct.pack("f", value))[0])
        except OverflowError:
            raise Fault("overflow of float") from None
    pattern = value % 2**bits
    return pattern - 2**bits if type_.name == "number" and pattern >= 2 ** (bits - 1) else pattern


def in_words(name: str, type_: Type, function: Callable[..., Value]) -> Callable[..., Value]:
    """The function on words of 32 bits, by its function on longer ones."""

    def apply(*args: Value) -> Value:
        if name in ("bshl", "bshr", "bshru"):
            value, shift = args
            args = (value % 2**32 if name == "bshru" else value, shift % 32)
        elif name == "-" and type_.name == "unsigned":
            return (args[0] - args[1]) % 2**32
        elif name == "neg" and type_.name == "unsigned":
            return -args[0] % 2**32
        elif name == "to_unsigned" and type(args[0]) is int:
            return args[0] % 2**32
        result = function(*args)
        is_wide = name in ("to_number", "to_unsigned") and type(args[0]) is not int
        if is_wide and word(result, type_, 32) != result:
            raise Fault(f"failed conversion to {type_.name}")
        return word(result, type_, 32)

    return apply


def bounded(value: int, type_: Type) -> int:
    low, high = BOUNDS[type_.name]
    if not low <= value <= high:
        raise Fault(f"overflow of {type_.name}")
    return value


def decimal_of(value: Fraction, scale: int, precision: int = 38) -> Decimal:
    """Round half up (away from zero) to the scale; more digits than the precision overflow."""
    digits = math.floor(abs(value) * 10**scale + Fraction(1, 2))
    if digits >= 10**precision:
        raise Fault("overflow of decimal")
    return Decimal(f"{digits if value >= 0 else -digits}e-{scale}")


def scaled(value: Value, type_: Type) -> Value:
    """A decimal with the digits of its type, any other value as it is."""
    return decimal_of(Fraction(value), type_.scale) if type_.name == "decimal" else value


def truncated(value: Fraction) -> int:
    return math.floor(value) if value >= 0 else math.ceil(value)


def integer_op(op: str, x: int, y: int) -> int:
    if op in ("/", "%"):
        if y == 0:
            raise Fault("division by zero")
        quotient = truncated(Fraction(x, y))
        return quotient if op == "/" else x - y * quotient
    if op != "^":
        return int(PLAIN[op](x, y))
    if y < 0:
        if x == 0:
            raise Fault("division by zero")
        return int(x ** (-y)) if abs(x) == 1 else 0
    if abs(x) > 1 and y > 64:
        raise Fault("overflow of ^")
    return int(x**y)


def float_op(op: str, x: float, y: float) -> float:
    try:
        result = {**PLAIN, "/": truediv, "^": math.pow}[op](x, y)
    except ZeroDivisionError:
        raise Fault("division by zero") from None
    except (OverflowError, ValueError):
        raise Fault("overflow or invalid power of float") from None
    if math.isinf(result) and math.isfinite(x) and math.isfinite(y):
        raise Fault("overflow of float")
    return float(result)


def decimal_op(op: str, x: Decimal, y: Decimal, scale: int) -> Decimal:
    left, right = Fraction(x), Fraction(y)
    if op in ("/", "%"):
        if right == 0:
            raise Fault("division by zero")
        quotient = left / right
        return decimal_of(quotient if op == "/" else left - right * truncated(quotient), scale)
    return decimal_of(PLAIN[op](left, right), scale)


def bit_op(op: str, type_: Type, x: int, y: int = 0) -> int:
    """On the 64-bit pattern; the logical ones give 0 or 1."""
    if op in ("land", "lor", "lxor", "lnot"):
        p, q = x != 0, y != 0
        return int({"land": p and q, "lor": p or q, "lxor": p != q, "lnot": not p}[op])
    shift, pattern = y % 64, x % 2**64
    bits = {
        "band": x & y, "bor": x | y, "bxor": x ^ y, "bnot": ~x,
        "bshl": x << shift, "bshr": x >> shift, "bshru": pattern >> shift,
    }[op] % 2**64  # fmt: skip
    return bits - 2**64 if type_.name == "number" and bits >= 2**63 else bits


def to_integer(value: Value, type_: Type) -> int:
    if isinstance(value, str):
        if not re.fullmatch(r"[+-]?([0-9]+|0[xX][0-9a-fA-F]+|0[bB][01]+)", value):
            raise Fault(f"failed conversion of {value!r} to {type_.name}")
        sign = -1 if value[0] == "-" else 1
        return bounded(sign * int_of(value.lstrip("+-")), type_)
    if isinstance(value, float) and not math.isfinite(value):
        raise Fault(f"failed conversion of {value} to {type_.name}")
    return bounded(int(value), type_)


def to_float(value: Value) -> float:
    if isinstance(value, str):
        plain = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
        special = r"[+-]?(inf|nan)"
        if not re.fullmatch(f"{plain}|{special}", value):
            raise Fault(f"failed conversion of {value!r} to float")
        if math.isinf(float(value)) and "inf" not in value:
            raise Fault("overflow of float")
    return float(value)


def to_decimal(value: Value, scale: int) -> Decimal:
    if isinstance(value, str) and not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", value):
        raise Fault(f"failed conversion of {value!r} to decimal")
    if isinstance(value, float) and not math.isfinite(value):
        raise Fault(f"failed conversion of {value} to decimal")
    return decimal_of(Fraction(value), scale)


def to_string(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def to_date(value: Value) -> date:
    try:
        return value.date() if isinstance(value, datetime) else read_date(value)
    except ValueError as error:
        raise Fault(f"failed conversion: {error}") from None


def to_timestamp(value: Value) -> datetime:
    try:
        if isinstance(value, date):
            return datetime.combine(value, time(), UTC)
        return read_timestamp(value)
    except (ValueError, OverflowError) as error:
        raise Fault(f"failed conversion: {error}") from None


def on_calendar(name: str, *args: Value) -> Value:
    try:
        return calendar.FUNCTORS[name](*args)
    except (ValueError, OverflowError) as error:
        raise Fault(f"{name}: {error}") from None


def scalar(name: str, type_: Type) -> Callable[..., Value]:
    def apply(*args: Value) -> Value:
        try:
            if name in scalars.TYPED:
                return scalars.TYPED[name](type_.name, type_.scale, *args)
            if name == "abs":
                return scalars.absolute(type_.name, *args)
            return scalars.STRICT[name](*args)
        except scalars.Missing as missing:
            raise Fault(f"{name}: {missing}") from None

    return apply


def strictly(function: Callable[..., Value], runs: list[Run]) -> Run:
    """A functor that fails where an argument does, and is null where one is."""

    def run(env: Env) -> Value:
        values = [run(env) for run in runs]
        for value in values:
            if isinstance(value, Failure):
                return value
        if any(value is None for value in values):
            return None
        try:
            return canonical(function(*values))
        except Fault as fault:
            return Failure(str(fault))

    return run


def arms(name: str, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The arguments that have the type of the result."""
    return (*args[1:-1:2], args[-1]) if name == "if" else args


def check_literals(name: str, args: tuple[Expr, ...]) -> None:
    for at, arg in enumerate(args):
        allowed = scalars.LITERALS.get((name, at))
        if allowed and not (isinstance(arg, Lit) and arg.value in allowed):
            raise OracleRejected(f"{name} needs a literal number")
    if name in ("rlike", "regexp_replace", "regexp_extract"):
        pattern = args[1]
        options = re2.Options()
        options.log_errors = False
        try:
            groups = re2.compile(pattern.value if isinstance(pattern, Lit) else "(", options).groups
        except re2.error:
            raise OracleRejected(f"{name} needs a literal pattern") from None
        group = args[2] if name == "regexp_extract" else Lit("int", 0)
        if not isinstance(group, Lit) or group.value not in range(groups + 1):
            raise OracleRejected("no such group")


def deciding(name: str, type_: Type, runs: list[Run]) -> Run:
    """A functor that decides itself about null and failures."""

    def is_failure(value: Value) -> bool:
        return isinstance(value, Failure)

    def run(env: Env) -> Value:
        found = scalars.own(name, is_failure, [run(env) for run in runs])
        if found is None or is_failure(found) or name not in scalars.CHOICES:
            return found
        try:
            return canonical(scaled(found, type_))
        except Fault as fault:
            return Failure(str(fault))

    return run


def as_decimal(run: Run) -> Run:
    """An integer beside a decimal."""

    def converted(env: Env) -> Value:
        value = run(env)
        try:
            return value if value is None or isinstance(value, Failure) else to_decimal(value, 0)
        except Fault as fault:
            return Failure(str(fault))

    return converted


def substr(text: str, index: int, length: int) -> str:
    if not 0 <= index <= len(text) or length < 0:
        return ""
    return text[index : index + length]


def range_of(limit: int, start: Value, stop: Value, step: Value = None) -> list[Value]:
    if step is None:
        step = 1 if start <= stop else -1
    if step == 0:
        return [] if start == stop else [canonical(start)]
    if start + step == start:
        raise Fault("range that does not move")
    values = []
    while start < stop if step > 0 else start > stop:
        values.append(canonical(start))
        if len(values) > limit:
            raise OracleLimit(f"range of more than {limit} values")
        start += step
    return values


def functor(name: str, type_: Type, limit: int) -> Callable[..., Value]:
    """The Python function of a functor whose result (and operands, if alike) have this type."""
    if name in ("+", "-", "*", "/", "%", "^"):
        if type_.name in BOUNDS:
            return lambda x, y: bounded(integer_op(name, x, y), type_)
        if type_.name == "decimal":
            return lambda x, y: decimal_op(name, x, y, type_.scale)
        return lambda x, y: float_op(name, x, y)
    if name == "neg":
        return lambda x: bounded(-x, type_) if type_.name in BOUNDS else opposite(x)
    if name in BITS:
        return lambda *args: bit_op(name, type_, *args)
    if name in calendar.FUNCTORS:
        return lambda *args: on_calendar(name, *args)
    if name in scalars.NAMES:
        return scalar(name, type_)
    table: dict[str, Callable[..., Value]] = {
        "min": lambda *args: scaled(min(args, key=order), type_),
        "max": lambda *args: scaled(max(args, key=order), type_),
        "cat": lambda *args: "".join(args),
        "strlen": len,
        "substr": substr,
        "ord": lambda s: int(hashlib.sha256(s.encode()).hexdigest()[:15], 16),
        "to_number": lambda v: to_integer(v, type_),
        "to_unsigned": lambda v: to_integer(v, type_),
        "to_float": to_float,
        "to_decimal": to_decimal,
        "to_string": to_string,
        "to_date": to_date,
        "to_timestamp": to_timestamp,
        "range": lambda *args: range_of(limit, *args),
    }
    return table[name]


def compare(op: str, left: Value, right: Value) -> bool:
    """A comparison of two values of one type, neither of them null."""
    if op in ("match", "!match"):
        options = re2.Options()
        options.log_errors = False
        try:
            matched = re2.compile(left, options).fullmatch(right) is not None
        except re2.error:
            raise Fault(f"bad pattern {left!r}") from None
        return matched == (op == "match")
    if op in ("contains", "!contains"):
        return (left in right) == (op == "contains")
    x, y = order(left), order(right)
    table = {"=": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}
    return bool(table[op])


def or_null(run: Run) -> Run:
    """What `is` compares: an aggregate without a value is null."""

    def found(env: Env) -> Value:
        try:
            return run(env)
        except NoTuple:
            return None

    return found


def aggregate(op: str, type_: Type, values: list[Value]) -> Value:
    """The aggregate of the non-null targets, one per assignment."""
    if op != "sum" and not values:
        raise NoTuple
    if op in ("min", "max"):
        return min(values, key=order) if op == "min" else max(values, key=order)
    exact: Value
    if any(isinstance(v, float) and not math.isfinite(v) for v in values):
        exact = sum(v for v in values if not math.isfinite(v))
    else:
        exact = sum((Fraction(v) for v in values), Fraction(0))
    try:
        if op == "mean":
            is_float = isinstance(values[0], float)
            return float_of(exact) / len(values) if is_float else float(exact / len(values))
        if type_.name == "float":
            return float_of(exact)
        if type_.name == "decimal":
            return decimal_of(exact, type_.scale)
        return bounded(int(exact), type_)
    except Fault as fault:
        return Failure(f"{fault} in {op}")


def in_bits(value: Value, type_: Type, bits: int) -> Value:
    """The result of an aggregate in so many bits."""
    return value if isinstance(value, Failure) else word(value, type_, bits)


def float_of(exact: Value) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


# ------------------------------------------------------------------------------------------- terms


def dnf(formula: Formula, positive: bool = True) -> list[tuple[Literal, ...]]:
    """The branches of a body, each a conjunction of atoms, negated atoms and comparisons."""
    match formula:
        case Atom():
            return [(formula if positive else Not(formula),)]
        case Cmp(op, left, right):
            return [(formula if positive else Cmp(NEGATED[op], left, right),)]
        case Truth(value):
            return [()] if value == positive else []
        case Not(inner):
            return dnf(inner, not positive)
        case And(parts) | Or(parts):
            branches = [dnf(part, positive) for part in parts]
            if isinstance(formula, And) == positive:
                return [tuple(itertools.chain(*pick)) for pick in itertools.product(*branches)]
            return list(itertools.chain(*branches))


def children(node: Expr | Formula) -> tuple[Any, ...]:
    match node:
        case Var() | Lit() | Truth():
            return ()
        case Fn(_, args) | Atom(_, args):
            return args
        case Agg(_, target, body):
            return (body,) if target is None else (target, body)
        case Cmp(_, left, right):
            return (left, right)
        case Not(inner):
            return (inner,)
        case And(parts) | Or(parts):
            return parts


def walk(node: Expr | Formula) -> Iterator[Any]:
    """The node and everything in it, aggregates included."""
    yield node
    for child in children(node):
        yield from walk(child)


def sides(test: Cmp) -> Iterator[Var]:
    """The sides of a comparison that are variables."""
    yield from (side for side in (test.left, test.right) if isinstance(side, Var))


def strict_variables(node: Expr | Formula) -> set[str]:
    """The variables without which a comparison or its side has no value but null."""
    if isinstance(node, Var):
        return {node.name}
    if isinstance(node, Agg) or (isinstance(node, Fn) and node.name in scalars.OWN):
        return set()
    return set().union(*(strict_variables(child) for child in children(node)))


def nullable_given(node: Expr, suspects: set[str]) -> bool:
    """Whether an expression may be null if some variables may be."""
    match node:
        case Var(name):
            return name in suspects
        case Lit(kind):
            return kind == "null"
        case Fn("try" | "null_if"):
            return True
        case Fn("is_null" | "same"):
            return False
        case Fn(name, args):
            found = [nullable_given(arg, suspects) for arg in arms(name, args)]
            return all(found) if name in ("coalesce", "greatest", "least") else any(found)
        case _:
            return False


def is_wild(node: Expr) -> bool:
    return isinstance(node, Var) and node.is_wild


def is_range_call(node: Expr) -> bool:
    return isinstance(node, Fn) and node.name == "range"


def names(node: Expr | Formula) -> set[str]:
    return {part.name for part in walk(node) if isinstance(part, Var)}


def positions(node: Expr | Formula, keys: set[str], inside: bool = False) -> Iterator[str]:
    """Variables at body positions: in atoms, and outer ones (keys) anywhere in aggregate bodies."""
    match node:
        case Var(name):
            if inside:
                yield name
        case Agg(_, _, body):
            yield from (p.name for p in walk(body) if isinstance(p, Var) and p.name in keys)
        case _:
            for child in children(node):
                yield from positions(child, keys, inside or isinstance(node, Atom))


def literal_scale(node: Expr) -> int:
    """The fractional digits of a literal as written."""
    if isinstance(node, Lit) and isinstance(node.value, Decimal):
        return -int(node.value.as_tuple().exponent)
    return 0


def convert(literal: Lit, expected: Type | None) -> tuple[Type, Value]:
    """A literal in the type that its context asks for."""
    value: Any = literal.value
    if literal.kind == "null":
        return replace(expected or NUMBER, nullable=True), None
    if literal.kind == "uint":
        return UNSIGNED, bounded(value, UNSIGNED)
    if literal.kind not in ("int", "frac"):
        return PRIMITIVES[literal.kind], value
    type_ = expected
    if type_ is None or type_.name not in ("number", "unsigned", "float", "decimal"):
        type_ = NUMBER if literal.kind == "int" else FLOAT
    if type_.name == "decimal":
        scale = max(type_.scale, literal_scale(literal))
        return Type("decimal", scale), decimal_of(Fraction(value), scale)
    if type_.name == "float":
        return FLOAT, canonical(float(value))
    if literal.kind == "frac":
        raise OracleRejected(f"{value} is not a {type_.name}")
    return type_, bounded(value, type_)


# ------------------------------------------------------------------------------------ conjunctions


class Conjunction:
    """One branch of a rule body or aggregate body, with the types of its variables.

    Args:
        oracle: Gives column types and, while running, the relations.
        literals: The branch.
        outer: The variables bound outside that may occur inside, with their types if known yet.
        heads: Atoms whose arguments this branch must be able to compute.
        is_null_safe: Whether null joins null.
    """

    def __init__(
        self,
        oracle: Oracle,
        literals: Iterable[Literal],
        outer: Mapping[str, Type | None],
        heads: tuple[Atom, ...] = (),
        is_null_safe: bool = False,
    ) -> None:
        self.oracle = oracle
        self.is_null_safe = is_null_safe
        self.outer = set(outer)
        self.types = {name: type_ for name, type_ in outer.items() if type_}
        self.atoms: list[Atom] = []
        self.negated: list[Atom] = []
        self.tests: list[Cmp] = []
        self.count: dict[str, int] = defaultdict(int)
        literals = list(literals)
        if oracle.program.records:
            literals = list(itertools.chain(*map(records.without_patterns, literals)))
        for literal in literals:
            self.add(literal)
        self.candidates = self.outer | {v for atom in self.atoms for v in names(atom)}
        self.candidates |= {var.name for var, _ in self.equations()}
        for literal in literals:
            for name in positions(literal, self.candidates):
                self.count[name] += 1
        self.infer(heads)
        self.check_safety(heads)

    def add(self, literal: Literal) -> None:
        """File a literal; an expression in a positive atom becomes a variable and an equation."""
        if isinstance(literal, Cmp):
            self.tests.append(literal)
            return
        atom = literal.inner if isinstance(literal, Not) else literal
        assert isinstance(atom, Atom)
        self.oracle.check_arity(atom)
        if isinstance(literal, Not):
            self.negated.append(atom)
            return
        plain: list[Expr] = []
        for arg in atom.args:
            if isinstance(arg, Var | Lit):
                plain.append(arg)
            else:
                # What `_` in a record stands for counts: the record is a variable like others.
                plain.append(Var(f"{'r#' if records.is_record(arg) else '%'}{len(self.tests)}"))
                equation = Cmp("is" if self.is_null_safe else "=", plain[-1], arg)
                self.tests += records.equations(equation)
        self.atoms.append(Atom(atom.relation, tuple(plain)))

    def equations(self) -> Iterator[tuple[Var, Expr]]:
        """Each way in which a comparison may bind a variable."""
        for test in self.tests:
            if test.op in EQUATIONS:
                for var, other in ((test.left, test.right), (test.right, test.left)):
                    if isinstance(var, Var):
                        yield var, other

    def free(self, node: Expr | Formula) -> set[str]:
        """The variables an expression needs; of an aggregate, those bound outside of it."""
        if isinstance(node, Var):
            return {node.name}
        if isinstance(node, Agg):
            return names(node) & self.candidates
        return set().union(*(self.free(child) for child in children(node)))

    # types

    def infer(self, heads: tuple[Atom, ...]) -> None:
        """Column types, then equations, comparisons, heads, aggregates, defaults of literals."""
        for atom in (*self.atoms, *self.negated):
            for arg, type_ in zip(atom.args, self.oracle.columns[atom.relation], strict=True):
                if isinstance(arg, Var):
                    known = self.types.setdefault(arg.name, type_)
                    if not known.fits(type_):
                        raise OracleRejected(f"{arg.name} is {known.name} and {type_.name}")
        phases = [
            self.infer_comparisons,
            lambda: self.infer_heads(heads),
            self.infer_aggregates,
            self.infer_defaults,
        ]
        while True:
            before = len(self.types)
            self.infer_equations()
            if len(self.types) == before:
                if not phases:
                    break
                phases.pop(0)()

    def infer_equations(self) -> None:
        for var, other in self.equations():
            found = self.type_of(other)
            if found:
                self.types.setdefault(var.name, replace(found, nullable=False))

    def infer_comparisons(self) -> None:
        for test in self.tests:
            found = self.type_of(test.left) or self.type_of(test.right)
            if found and test.op in ORDERINGS:
                self.push(test.left, found)
                self.push(test.right, found)

    def infer_aggregates(self) -> None:
        """A variable from outside has the type of its columns inside."""
        inner = (node.body for test in self.tests for node in walk(test) if isinstance(node, Agg))
        for atom in (part for body in inner for part in walk(body) if isinstance(part, Atom)):
            for arg, type_ in zip(atom.args, self.oracle.columns[atom.relation], strict=False):
                if isinstance(arg, Var) and arg.name in self.candidates:
                    self.types.setdefault(arg.name, replace(type_, nullable=False))

    def infer_heads(self, heads: tuple[Atom, ...]) -> None:
        for atom in (*self.negated, *heads):
            for arg, type_ in zip(atom.args, self.oracle.columns[atom.relation], strict=True):
                self.push(arg, replace(type_, nullable=False))

    def infer_defaults(self) -> None:
        for var, other in self.equations():
            if var.name not in self.types and self.free(other) <= set(self.types):
                self.types[var.name] = self.default(other)

    def push(self, node: Expr, type_: Type) -> None:
        """Tell the still untyped variables of an expression what its context asks for."""
        if isinstance(node, Var) and not node.is_wild:
            self.types.setdefault(node.name, type_)
        elif isinstance(node, Fn) and node.name[0] in "[$" and type_.name in self.oracle.records:
            fields = self.oracle.records[type_.name].get(node.name, ())
            for arg, field in zip(node.args, fields, strict=False):
                self.push(arg, field)
        elif isinstance(node, Fn) and (node.name in SAME_TYPE or node.name in scalars.ALIKE):
            for arg in arms(node.name, node.args):
                self.push(arg, type_)
        elif isinstance(node, Fn) and node.name in scalars.LIKE_FIRST:
            self.push(node.args[0], type_)

    def default(self, node: Expr | Formula) -> Type:
        is_fraction = any(isinstance(p, Lit) and p.kind == "frac" for p in walk(node))
        return FLOAT if is_fraction else NUMBER

    def type_of(self, node: Expr) -> Type | None:
        """The type of an expression, or None while only flexible literals decide it."""
        match node:
            case Var(name):
                return self.types.get(name)
            case Lit("int" | "frac" | "null"):
                return None
            case Lit("uint"):
                return UNSIGNED
            case Lit(kind):
                return PRIMITIVES[kind]
            case Fn("to_decimal", (_, Lit("int", int(scale)))):
                return Type("decimal", scale)
            case Fn("#field", (whole, Lit(_, str(branch)), Lit(_, int(at)))):
                record = self.type_of(whole)
                return self.oracle.field(record, branch, at) if record else None
            case Fn(name) if name.startswith("$"):
                return self.oracle.branch_type(name)
            case Fn(name, args) if name in SAME_TYPE:
                known = [t for t in map(self.type_of, args) if t]
                if name in MIXED and any(t.name == "decimal" for t in known):
                    known = [t for t in known if t.name not in BOUNDS]
                if known and known[0].name == "decimal":
                    scales = [t.scale for t in known] + [literal_scale(arg) for arg in args]
                    return Type("decimal", max(scales))
                return known[0] if known else None
            case Fn(name, args) if name in calendar.LIKE_FIRST:
                return self.type_of(args[0])
            case Fn(name) if name in scalars.NAMES:
                return self.scalar_type(node)
            case Fn(name):
                return RESULTS.get(name)
            case Agg("count"):
                return NUMBER
            case Agg("mean"):
                return FLOAT
            case Agg():
                branches = self.branches(node)
                return branches[0].types.get("%target") if branches else None

    def scalar_type(self, node: Fn) -> Type | None:
        name, args = node.name, node.args
        if name in scalars.SCALED:
            scale = args[scalars.SCALED[name]] if len(args) > scalars.SCALED[name] else None
            known = scale.value if isinstance(scale, Lit) else None
            return Type("decimal", known) if isinstance(known, int) else None
        if name in scalars.ALIKE:
            chosen = arms(name, args)
            found = [t for t in map(self.type_of, chosen) if t]
            if found and found[0].name == "decimal":
                return Type(
                    "decimal", max([t.scale for t in found] + [*map(literal_scale, chosen)])
                )
            return found[0] if found else None
        first = self.type_of(args[0])
        if name in scalars.LIKE_FIRST:
            if name == "null_if" and first is None:
                first = self.type_of(args[1])
            if name == "fit" and first and isinstance(args[1], Lit):
                return replace(first, precision=int(str(args[1].value)), nullable=False)
            return first
        if name == "sign":
            return FLOAT if first and first.name == "float" else NUMBER
        return RESULTS[name]

    def branches(self, node: Agg) -> list[Conjunction]:
        """The body of an aggregate; its target is an equation, so that null targets drop out."""
        outer = {name: self.types.get(name) for name in names(node) & self.candidates}
        target = () if node.target is None else (Cmp("=", Var("%target"), node.target),)
        bodies = [(*branch, *target) for branch in dnf(node.body)]
        return [
            Conjunction(self.oracle, body, outer, is_null_safe=self.is_null_safe) for body in bodies
        ]

    # compilation

    def check_safety(self, heads: tuple[Atom, ...]) -> None:
        bound = self.outer | {v for atom in self.atoms for v in names(atom)}
        while True:
            more = {v.name for v, other in self.equations() if self.free(other) <= bound} - bound
            if not more:
                break
            bound |= more
        used = set(self.candidates).union(*(self.free(test) for test in self.tests))
        for atom in self.negated:
            used |= {v for arg in atom.args if not is_wild(arg) for v in self.free(arg)}
        for head in heads:
            used |= self.free(head)
        if used - bound:
            raise OracleRejected(f"unsafe variables: {', '.join(sorted(used - bound))}")

    def compile(self) -> None:
        """Make the closures; done once, when the types are final."""
        self.plan = [self.compile_atom(atom, seen) for atom, seen in self.join_order()]
        self.not_null = [
            name for name, count in self.count.items() if count > 1 and not self.is_null_safe
        ]
        self.bindings: list[tuple[str, set[str], Run, bool]] = []
        self.lets_null = {v.name for test in self.tests if test.op == "is" for v in sides(test)}
        said = {(test.left, test.right) for test in self.tests if test.op == "is"}
        for var, other in self.equations():
            is_range = is_range_call(other)
            run = self.expression(other, self.types[var.name], is_range)[1]
            if (var, other) in said or (other, var) in said:
                run = or_null(run)
            self.bindings.append((var.name, self.free(other), run, is_range))
        self.checks = [self.comparison(test) for test in self.tests]
        self.checks += [self.negation(atom) for atom in self.negated]

    def join_order(self) -> Iterator[tuple[Atom, set[str]]]:
        """Greedily the atom with the most bound arguments; with the variables bound before it."""
        left, seen = list(self.atoms), set(self.outer)
        while left:
            best = max(left, key=lambda a: sum(names(arg) <= seen for arg in a.args))
            left.remove(best)
            yield best, set(seen)
            seen |= names(best)

    def compile_atom(
        self, atom: Atom, seen: set[str]
    ) -> tuple[str, tuple[int, ...], list[Run], list[tuple[int, str]]]:
        """The relation, its bound columns with the values to look up, and the columns that bind."""
        bound: list[tuple[int, Run]] = []
        fresh: list[tuple[int, str]] = []
        for i, (arg, type_) in enumerate(
            zip(atom.args, self.oracle.columns[atom.relation], strict=True)
        ):
            if isinstance(arg, Var) and arg.name not in seen:
                fresh.append((i, arg.name))
            else:
                bound.append((i, self.typed(arg, type_)))
        return atom.relation, tuple(i for i, _ in bound), [run for _, run in bound], fresh

    def typed(self, node: Expr, type_: Type) -> Run:
        """An expression that must have exactly the type of a column."""
        found, run = self.expression(node, type_)
        if not found.fits(type_):
            raise OracleRejected(f"{found.name} where {type_.name} is asked for")
        return run

    def expression(
        self, node: Expr, expected: Type | None = None, may_range: bool = False
    ) -> tuple[Type, Run]:
        """The type of an expression and the function from an environment to its value."""
        match node:
            case Var(name):
                return self.types[name], lambda env: env[name]
            case Lit():
                try:
                    type_, value = convert(node, expected)
                except Fault as fault:
                    raise OracleRejected(f"literal {node.value}: {fault}") from None
                value = value if value is None else word(value, type_, self.oracle.program.bits)
                return type_, lambda _: value
            case Agg():
                return self.aggregate(node)
            case Fn("nil" | "[]" | "#field" | "#branch"):
                return self.record(node, expected)
            case Fn(name) if name.startswith("$"):
                return self.record(node, expected)
            case Fn(name, args):
                if name == "range" and not may_range:
                    raise OracleRejected("range is only for `x = range(...)`")
                low, high = ARITIES[name]
                if not low <= len(args) <= high:
                    raise OracleRejected(f"wrong number of arguments of {name}")
                return self.call(name, args, expected)

    def record(self, node: Fn, expected: Type | None) -> tuple[Type, Run]:
        """A record that is made, a field of one (null if it has another branch), or its branch."""
        oracle, args = self.oracle, node.args
        if node.name in ("#field", "#branch"):
            whole_type, whole = self.expression(args[0])
            if node.name == "#branch":
                return SYMBOL, strictly(lambda text: oracle.parts(text, whole_type)[0], [whole])
            assert isinstance(args[1], Lit)
            assert isinstance(args[2], Lit)
            branch, at = str(args[1].value), int(str(args[2].value))

            def field(text: Value) -> Value:
                found, values = oracle.parts(text, whole_type)
                return values[at] if found == branch else None

            return oracle.field(whole_type, branch, at), strictly(field, [whole])
        type_ = self.type_of(node) or expected
        if type_ is None or type_.name not in oracle.records:
            raise OracleRejected(f"no type for a record {node.name}")
        branches = oracle.records[type_.name]
        if node.name == "nil" and "[]" in branches:
            return type_, lambda _: "nil"
        types = branches.get(node.name)
        if types is None or len(types) != len(args):
            raise OracleRejected(f"{node.name} is not a {type_.name}")
        runs = [self.typed(arg, field) for arg, field in zip(args, types, strict=True)]
        return type_, strictly(lambda *values: records.text_of(node.name, values, types), runs)

    def call(self, name: str, args: tuple[Expr, ...], expected: Type | None) -> tuple[Type, Run]:
        node = Fn(name, args)
        type_ = self.type_of(node)
        if name in SAME_TYPE:
            type_ = type_ or expected or self.default(node)
            compiled = [self.expression(arg, type_) for arg in args]
            if name in MIXED and type_.name == "decimal":
                compiled = [
                    (Type("decimal"), as_decimal(run)) if found.name in BOUNDS else (found, run)
                    for found, run in compiled
                ]
            if any(found.name != type_.name for found, _ in compiled):
                raise OracleRejected(f"operands of {name} differ in type")
            if type_.name == "decimal":
                type_ = Type("decimal", max(found.scale for found, _ in compiled))
            check_operator(name, type_)
        elif name in scalars.NAMES:
            return self.scalar_call(name, args, type_ or expected)
        else:
            if type_ is None:
                raise OracleRejected(f"{name} needs a literal scale")
            wanted = PARAMETERS.get(name, (SYMBOL if name == "cat" else None,) * len(args))
            compiled = [self.expression(arg, w) for arg, w in zip(args, wanted, strict=True)]
            for (found, _), asked in zip(compiled, wanted, strict=True):
                if asked and found.name != asked.name:
                    raise OracleRejected(f"{name} of a {found.name}")
            check_conversion(name, compiled[0][0])
        function, runs = functor(name, type_, self.oracle.limit), [run for _, run in compiled]
        if self.oracle.program.bits == 32:
            function = in_words(name, type_, function)
        return replace(type_, nullable=False), strictly(function, runs)

    def scalar_call(
        self, name: str, args: tuple[Expr, ...], type_: Type | None
    ) -> tuple[Type, Run]:
        check_literals(name, args)
        if name == "if" and len(args) % 2 == 0:
            raise OracleRejected("if takes pairs and one more")
        wanted = self.wanted(name, args, type_)
        compiled = [self.expression(arg, asked) for arg, asked in zip(args, wanted, strict=True)]
        for (found, _), asked in zip(compiled, wanted, strict=True):
            if asked and found.name != asked.name:
                raise OracleRejected(f"{name} of a {found.name}")
        if name in scalars.NUMERIC and compiled[0][0].name not in (*BOUNDS, "float", "decimal"):
            raise OracleRejected(f"{name} of a {compiled[0][0].name}")
        if name in RESULTS:
            type_ = self.type_of(Fn(name, args))
        elif name in scalars.LIKE_FIRST:
            type_ = compiled[0][0]
            if name == "fit":
                type_ = replace(type_, precision=int(str(args[1].value)))  # type: ignore[union-attr]
            elif name != "try":
                type_ = replace(type_, precision=38)
        elif name in scalars.ALIKE:
            sized = [
                found for (found, _), arg in zip(compiled, args, strict=True)
                if any(arg is arm for arm in arms(name, args)) and arg != Lit("null", None)
            ] or [compiled[-1][0]]  # fmt: skip
            type_ = sized[0]
            if type_.name == "decimal":
                type_ = Type("decimal", max(each.scale for each in sized))
        if type_ is None:
            raise OracleRejected(f"the type of {name} is not known")
        runs = [run for _, run in compiled]
        if name in scalars.OWN:
            return replace(type_, nullable=False), deciding(name, type_, runs)
        return replace(type_, nullable=False), strictly(
            functor(name, type_, self.oracle.limit), runs
        )

    def wanted(self, name: str, args: tuple[Expr, ...], type_: Type | None) -> list[Type | None]:
        """The types that arguments must have."""
        if name in ("and", "or"):
            return [BOOL] * len(args)
        if name in scalars.COMPARED:
            known = next((t for t in map(self.type_of, args) if t), None)
            both = known or self.default(Fn(name, args))
            return [both, both]
        if name in scalars.ALIKE:
            one = self.type_of(Fn(name, args)) or type_ or self.default(Fn(name, args))
            chosen = arms(name, args)
            return [one if any(arg is arm for arm in chosen) else BOOL for arg in args]
        taken = scalars.PARAMETERS[name]
        if name in scalars.LIKE_FIRST or taken[0] is None:
            own = self.type_of(args[0]) or (type_ if name in scalars.LIKE_FIRST else None)
            first = own or self.default(args[0])
            return [first, *(PRIMITIVES[kind] if kind else None for kind in taken[1:])]
        return [
            (self.type_of(arg) or Type("decimal", literal_scale(arg)))
            if kind == "decimal"
            else PRIMITIVES[str(kind)]
            for kind, arg in zip(taken, args, strict=True)
        ]

    def aggregate(self, node: Agg) -> tuple[Type, Run]:
        """Each key is computed once, since aggregates depend on lower strata, or once a round."""
        branches = self.branches(node)
        keys = sorted(names(node) & self.candidates)
        type_ = self.type_of(node) or NUMBER
        if node.op == "sum":
            type_ = Type("decimal", type_.scale) if type_.name == "decimal" else type_
        if node.op in ("sum", "mean") and branches:
            target = branches[0].types["%target"]
            if target.name not in ("number", "unsigned", "float", "decimal"):
                raise OracleRejected(f"{node.op} of a {target.name}")
        for branch in branches:
            branch.compile()
        memo: dict[tuple[Value, ...], Value] = {}
        self.oracle.memos.append(memo)

        def compute(env: Env) -> Value:
            assignments: dict[frozenset[tuple[str, Value]], Value] = {}
            for branch in branches:
                for found, failure in branch.solve(env):
                    if failure:
                        return failure
                    shown = frozenset(item for item in found.items() if item[0][0] != "%")
                    assignments[shown] = found.get("%target")
            if node.op == "count":
                return len(assignments)
            found = aggregate(node.op, type_, list(assignments.values()))
            return canonical(in_bits(found, type_, self.oracle.program.bits))

        def run(env: Env) -> Value:
            key = tuple(env[name] for name in keys)
            for value in key:
                if isinstance(value, Failure):
                    return value
            if key not in memo:
                try:
                    memo[key] = compute({name: env[name] for name in keys})
                except NoTuple:
                    memo[key] = NoTuple
            if memo[key] is NoTuple:
                raise NoTuple
            return memo[key]

        return type_, run

    def comparison(self, test: Cmp) -> Run:
        known = self.type_of(test.left) or self.type_of(test.right)
        if test.op not in ORDERINGS:
            known = SYMBOL
        known = known or self.default(test)
        is_range = test.op == "=" and isinstance(test.left, Var) and is_range_call(test.right)
        left_type, left = self.expression(test.left, known)
        right_type, right = self.expression(test.right, known, is_range)
        if test.op == "is":
            left, right = or_null(left), or_null(right)
        alike = {left_type.name, right_type.name}
        if len(alike) > 1 or (test.op not in ORDERINGS and alike != {"symbol"}):
            raise OracleRejected(f"{test.op} of {left_type.name} and {right_type.name}")

        def run(env: Env) -> Value:
            x, y = left(env), right(env)
            for value in (x, y):
                if isinstance(value, Failure):
                    return value
            if test.op in ("is", "!is"):
                same = y is None if x is None else y is not None and compare("=", x, y)
                return same == (test.op == "is")
            if x is None or y is None:
                return False
            if is_range:
                return any(order(x) == order(value) for value in y)
            try:
                return compare(test.op, x, y)
            except Fault as fault:
                return Failure(str(fault))

        return run

    def negation(self, atom: Atom) -> Run:
        bound = [
            (i, self.typed(arg, type_))
            for i, (arg, type_) in enumerate(
                zip(atom.args, self.oracle.columns[atom.relation], strict=True)
            )
            if not is_wild(arg)
        ]
        columns = tuple(i for i, _ in bound)

        def run(env: Env) -> Value:
            key = tuple(run(env) for _, run in bound)
            for value in key:
                if isinstance(value, Failure):
                    return value
            return not self.oracle.lookup(atom.relation, columns, key)

        return run

    def is_nullable(self, node: Expr) -> bool:
        """Whether a head argument may be null: see `may_be_null` for variables."""
        return nullable_given(node, self.may_be_null())

    def may_be_null(self) -> set[str]:
        """The variables that may be null.

        They are seen in nullable columns only (and once, unless null joins null), are never
        compared, and never said to be (`is`) what is not null.
        """
        suspects = set(self.types)
        for atom in self.atoms:
            for arg, type_ in zip(atom.args, self.oracle.columns[atom.relation], strict=True):
                if isinstance(arg, Var) and not type_.nullable:
                    suspects.discard(arg.name)
        if not self.is_null_safe:
            suspects -= {name for name, count in self.count.items() if count > 1}
        for test in self.tests:
            if test.op not in ("is", "!is"):
                suspects -= strict_variables(test)
                if not self.is_null_safe:
                    inner = (part for part in walk(test) if isinstance(part, Agg))
                    suspects -= set().union(*(self.free(part) for part in inner))
        while True:
            self_is = [
                (var.name, other)
                for test in self.tests
                if test.op == "is"
                for var, other in ((test.left, test.right), (test.right, test.left))
                if isinstance(var, Var)
            ]
            sure = {
                name
                for name, other in self_is
                if not nullable_given(other, suspects)
                if not (isinstance(other, Agg) and other.op in ("min", "max", "mean"))
            }
            if not sure & suspects:
                return suspects
            suspects -= sure

    # solving

    def solve(self, env: Env) -> Iterator[tuple[Env, Failure | None]]:
        """Every instance that holds, with the failure of its expressions if there is one."""
        yield from self.join(0, dict(env))

    def join(self, i: int, env: Env) -> Iterator[tuple[Env, Failure | None]]:
        if i == len(self.plan):
            if all(env.get(name, 0) is not None for name in self.not_null):
                yield from self.judge(env)
            return
        relation, columns, runs, fresh = self.plan[i]
        key = tuple(run(env) for run in runs)
        for row in self.oracle.lookup(relation, columns, key):
            longer = dict(env)
            for column, name in fresh:
                if order(longer.setdefault(name, row[column])) != order(row[column]):
                    break
            else:
                yield from self.join(i + 1, longer)

    def judge(self, env: Env) -> Iterator[tuple[Env, Failure | None]]:
        """Bind the variables that no atom binds, then judge comparisons and negated atoms.

        A working equation is preferred to a failing one, whatever their order; ranges come next;
        a variable left with failing equations only becomes a failure itself.
        """
        while any(name not in env for name, *_ in self.bindings):
            open_ = [b for b in self.bindings if b[0] not in env and b[1] <= env.keys()]
            try:
                outcomes = [(name, run(env), is_range) for name, _, run, is_range in open_]
            except NoTuple:
                return
            if any(value is None and name not in self.lets_null for name, value, _ in outcomes):
                return
            works = [o for o in outcomes if not isinstance(o[1], Failure)]
            plain = [o for o in works if not o[2]]
            if plain:
                env[plain[0][0]] = plain[0][1]
            elif works:
                name, values, _ = works[0]
                for value in values:
                    yield from self.judge({**env, name: value})
                return
            else:
                env[outcomes[0][0]] = outcomes[0][1]
        try:
            results = [check(env) for check in self.checks]
        except NoTuple:
            return
        if not any(result is False for result in results):
            yield env, next((r for r in results if isinstance(r, Failure)), None)


def check_operator(name: str, type_: Type) -> None:
    """Refuse operators that a type does not have."""
    kinds = {"number", "unsigned", "float", "decimal"}
    if name in BITS:
        kinds = {"number", "unsigned"}
    elif name in ("%", "range"):
        kinds -= {"float"} if name == "%" else {"decimal"}
    elif name == "^":
        kinds -= {"decimal"}
    elif name in ("min", "max"):
        return
    if type_.name not in kinds:
        raise OracleRejected(f"{name} on {type_.name}")


def check_conversion(name: str, source: Type) -> None:
    numeric = {"symbol", "float", "unsigned", "number", "bool", "decimal"}
    allowed = {
        "to_number": numeric, "to_unsigned": numeric, "to_float": numeric,
        "to_decimal": numeric - {"bool"}, "to_date": {"symbol", "timestamp"},
        "to_timestamp": {"symbol", "date"},
        **{each: {"date", "timestamp"} for each in calendar.OF_DAYS},
    }  # fmt: skip
    if name in allowed and source.name not in allowed[name]:
        raise OracleRejected(f"{name} of a {source.name}")


# ---------------------------------------------------------------------------------------- programs


Entry: TypeAlias = tuple[str, Conjunction, list[Run]]


class Oracle:
    """A program with its relations while they grow."""

    def __init__(self, program: Program, limit: int, rounds: int) -> None:
        program.rules = [with_witnesses(rule) for rule in program.rules]
        self.program, self.limit, self.rounds = program, limit, rounds
        self.records = {
            name: {branch: tuple(map(self.resolve, fields)) for branch, fields in branches.items()}
            for name, branches in program.records.items()
        }
        self.columns = {
            name: tuple(self.resolve(column) for column in decl.columns)
            for name, decl in program.decls.items()
        }
        self.relations: dict[str, set[tuple[Value, ...]]] = {name: set() for name in self.columns}
        self.indexes: dict[tuple[str, tuple[int, ...]], tuple[int, dict[Any, list[Any]]]] = {}
        self.memos: list[dict[tuple[Value, ...], Value]] = []
        self.pairs = self.compile_subsumptions()
        events = event_predicates(program.rules)
        self.rules = [
            rule
            for rule in program.rules
            if not any(head.mark or head.relation in events for head in rule.heads)
        ]
        self.extremes = recursive_extremes(self.rules)

    def field(self, type_: Type, branch: str, at: int) -> Type:
        fields = self.records.get(type_.name, {}).get(branch, ())
        if at >= len(fields):
            raise OracleRejected(f"no field {at} of {branch} in {type_.name}")
        return fields[at]

    def branch_type(self, branch: str) -> Type:
        for name, branches in self.records.items():
            if branch in branches:
                return Type(name)
        raise OracleRejected(f"no branch {branch}")

    def parts(self, text: str, type_: Type) -> tuple[str, tuple[Value, ...]]:
        """The branch and the fields of a record."""
        return records.parts_of(text, type_.name, self.records)

    def resolve(self, column: TypeName) -> Type:
        """The primitive type behind a subtype or a union."""
        if column.name in self.program.records:
            return Type(column.name)
        name, seen = column.name, set()
        while name in self.program.types and name not in seen:
            seen.add(name)
            members = {self.resolve(TypeName(m)).name for m in self.program.types[name]}
            if len(members) != 1:
                raise OracleRejected(f"type {name} mixes {', '.join(sorted(members))}")
            name = members.pop()
        if name in self.program.records:
            return Type(name)
        if name == "decimal" and len(column.args) == 2:
            precision, scale = column.args
            if not 0 <= scale <= precision <= 38 or not precision:
                raise OracleRejected(f"decimal({precision},{scale})")
            return Type("decimal", scale, precision, column.nullable)
        if name not in PRIMITIVES:
            raise OracleRejected(f"unknown type {name}")
        return replace(PRIMITIVES[name], nullable=column.nullable)

    def check_arity(self, atom: Atom) -> None:
        if atom.relation not in self.columns:
            raise OracleRejected(f"{atom.relation} is not declared")
        if len(atom.args) != len(self.columns[atom.relation]):
            raise OracleRejected(f"wrong number of arguments of {atom.relation}")

    def lookup(
        self, relation: str, columns: tuple[int, ...], key: tuple[Value, ...]
    ) -> list[tuple[Value, ...]]:
        """The tuples with these values in these columns (relations only grow, so size is age)."""
        rows = self.relations[relation]
        size, index = self.indexes.get((relation, columns), (-1, {}))
        if size != len(rows):
            index = defaultdict(list)
            for row in rows:
                index[tuple(row[i] for i in columns)].append(row)
            self.indexes[relation, columns] = (len(rows), index)
        return index.get(key, [])

    def insert(self, relation: str, row: Iterable[Value]) -> bool:
        """Add a tuple if it is new; its values must fit the columns."""
        values = tuple(
            records.read_text(value, type_.name, self.records)
            if type_.name in self.records
            else in_column(value, type_, self.program.bits)
            for value, type_ in zip(row, self.columns[relation], strict=True)
        )
        if values in self.relations[relation]:
            return False
        self.relations[relation].add(values)
        if sum(map(len, self.relations.values())) > self.limit:
            raise OracleLimit(f"more than {self.limit} tuples")
        return True

    def run(self) -> None:
        """All strata, lowest first; within one, all rules until nothing is new."""
        windowed = {each.heads[0].relation: each for each in self.rules if is_windowed(each)}
        compiled = [self.compile_rule(each) for each in self.rules if not is_windowed(each)]
        for stratum in strata(
            self.rules,
            self.program.decls,
            self.program.subsumptions,
            has_rounds=self.program.has_rounds,
        ):
            if stratum & windowed.keys():
                (name,) = stratum
                self.run_windows(windowed[name])
                continue
            if any(self.program.decls[name].domains for name in stratum):
                self.run_choice(stratum, [c for rule in compiled for c in rule])
                continue
            if groups.is_grouped(self.rules, stratum):
                self.run_groups(stratum)
                continue
            if self.program.has_rounds and stratum & self.pairs.keys():
                if not Rounds(self, self.rules, stratum).run(self.rounds):
                    raise OracleLimit(f"more than {self.rounds} rounds")
                continue
            mine = [c for c in compiled if any(head in stratum for head, *_ in c)]
            if stratum & (self.pairs.keys() | {name for name, *_ in self.extremes}):
                self.climb(stratum, [entry for rule in mine for entry in rule])
                continue
            for round_ in itertools.count():
                if round_ > self.rounds:
                    raise OracleLimit(f"more than {self.rounds} rounds")
                new = [self.apply(branch, stratum) for rule in mine for branch in rule]
                closed = [self.close(name) for name in stratum if self.program.decls[name].is_eqrel]
                if not any(new) and not any(closed):
                    break

    def run_windows(self, rule: Rule) -> None:
        """The values of window functions, once all rows are there."""
        (head,), atom = rule.heads, body_of(rule)
        self.check_arity(head)
        self.check_arity(atom)
        types = self.columns[atom.relation]

        def summed(values: list[Value], column: int) -> Value:
            found = aggregate("sum", types[column], values)
            if isinstance(found, Failure):
                raise OracleError(str(found))
            return canonical(in_bits(found, types[column], self.program.bits))

        for row in rows_of(rule, self.relations[atom.relation], ascending, summed):
            self.insert(head.relation, row)

    def run_choice(self, stratum: set[str], entries: list[Entry]) -> None:
        """Derive all heads of a round, then take them one by one, the least first.

        A head that agrees on a choice domain with a tuple that was taken is left out.
        """
        given: dict[str, set[tuple[Value, ...]]] = {}
        for name in stratum:
            given[name], self.relations[name] = self.relations[name], set()
        for _ in range(self.rounds):
            found = {name: set(rows) for name, rows in given.items()}
            for entry in entries:
                if entry[0] in stratum:
                    found[entry[0]] |= self.heads(entry, is_lenient=False)
            sizes = {name: len(self.relations[name]) for name in stratum}
            for name, rows in found.items():
                for row in sorted(rows, key=lambda row: [ascending(value) for value in row]):
                    if not self.is_taken(name, row):
                        self.insert(name, row)
            if sizes == {name: len(self.relations[name]) for name in stratum}:
                return
        raise OracleLimit(f"more than {self.rounds} rounds")

    def is_taken(self, relation: str, row: tuple[Value, ...]) -> bool:
        """Whether a tuple agrees with one of its relation on a choice domain."""
        return any(
            all(one[at] == row[at] for at in domain)
            for domain in self.program.decls[relation].domains
            for one in self.relations[relation]
        )

    def run_groups(self, stratum: set[str]) -> None:
        """Compute all groups again and again from what they were, if none reads itself."""
        arcs: dict[Any, set[Any]] = defaultdict(set)
        for reader, read, rule in groups.reading_rules(self.rules, stratum):
            width = len(groups.keys(self.rules, reader, stratum))
            for env, _, runs in self.instances(rule, reader, read, stratum):
                row = tuple(run(env) for run in runs)
                if not any(isinstance(value, Failure) for value in row):
                    arcs[reader, row[:width]].add((read, row[width:]))
        if groups.has_cycle(arcs):
            raise OracleError("a group depends on itself")
        given = {name: set(self.relations[name]) for name in stratum}
        mine = [rule for rule in self.rules if any(head.relation in stratum for head in rule.heads)]
        failure: OracleError | None = None
        for _ in range(self.rounds):
            before = {name: set(self.relations[name]) for name in stratum}
            entries = [self.compile_rule(rule) for rule in mine]  # forgets aggregates of before
            rows: dict[str, set[tuple[Value, ...]]] = {name: set(given[name]) for name in stratum}
            failure = None
            for entry in (entry for rule in entries for entry in rule if entry[0] in stratum):
                try:
                    rows[entry[0]] |= self.heads(entry, is_lenient=False)
                except OracleError as error:
                    failure = error  # counts only if it stays
            for name in stratum:
                self.relations[name] = set()
                for row in rows[name]:
                    self.insert(name, row)
            self.indexes.clear()
            if before == {name: self.relations[name] for name in stratum}:
                break
        else:
            raise OracleLimit(f"more than {self.rounds} rounds")
        if failure is not None:
            raise failure

    def instances(
        self, rule: Rule, reader: str, read: str, stratum: set[str]
    ) -> Iterator[tuple[Env, Failure | None, list[Run]]]:
        """The instances of a rule for pairs of keys, each with what computes its head."""
        own = groups.keys(self.rules, reader, stratum)
        theirs = groups.keys(self.rules, read, stratum)
        columns = (
            *(self.columns[reader][at] for at in own),
            *(self.columns[read][at] for at in theirs),
        )
        self.columns["%pairs"] = columns
        (head,) = rule.heads
        named = Atom("%pairs", head.args)
        for branch in dnf(rule.body):
            conjunction = Conjunction(self, branch, {}, (named,), rule.is_null_safe)
            conjunction.compile()
            runs = [conjunction.typed(a, t) for a, t in zip(named.args, columns, strict=True)]
            for env, failure in conjunction.solve({}):
                yield env, failure, runs

    def climb(self, stratum: set[str], entries: list[Entry]) -> None:
        """A stratum of which the best tuples count: all heads from the best so far, and again.

        What has no value counts in the last round only, in which the premises are the best.
        """
        given = {name: set(self.relations[name]) for name in stratum}
        for round_ in itertools.count():
            if round_ > self.rounds:
                raise OracleLimit(f"more than {self.rounds} rounds")
            found = {name: set(rows) for name, rows in given.items()}
            for memo in self.memos:
                memo.clear()
            for relation, conjunction, runs in entries:
                if relation in stratum:
                    rows = self.heads((relation, conjunction, runs), is_lenient=True)
                    types = self.columns[relation]
                    found[relation] |= {
                        tuple(fitted(v, t) for v, t in zip(row, types, strict=True)) for row in rows
                    }
            before = {name: self.relations[name] for name in stratum}
            self.relations |= found
            self.indexes.clear()
            best = {name: self.maximal(name) for name in stratum}
            self.relations |= best
            self.indexes.clear()
            if sum(map(len, self.relations.values())) > self.limit:
                raise OracleLimit(f"more than {self.limit} tuples")
            if best == before:
                break
        for entry in entries:
            if entry[0] in stratum:
                self.heads(entry, is_lenient=False)

    def maximal(self, relation: str) -> set[tuple[Value, ...]]:
        """The tuples that no other one dominates; all others go at once."""
        rows = self.relations[relation]
        width, gone = len(self.columns[relation]), set()
        for entry in self.pairs.get(relation, ()):
            pairs = self.heads(entry, is_lenient=False)
            gone |= {pair[:width] for pair in pairs if pair[:width] != pair[width:]}
        for name, column, op in self.extremes:
            if name == relation:
                pick = min if op == "min" else max
                best: dict[tuple[Value, ...], Value] = {}
                for row in rows:
                    key = (*row[:column], *row[column + 1 :])
                    value = order(row[column])
                    best[key] = pick(best[key], value) if key in best else value
                gone |= {
                    row
                    for row in rows
                    if order(row[column]) != best[(*row[:column], *row[column + 1 :])]
                }
        return rows - gone

    def compile_subsumptions(self) -> dict[str, list[Entry]]:
        """For each relation, what gives its pairs of a tuple and one that dominates it."""
        found: dict[str, list[Entry]] = {}
        for clause in self.program.subsumptions:
            name = clause.head.relation
            self.check_arity(clause.head)
            self.check_arity(clause.dominating)
            hidden = f"{name} <= {name}"
            self.columns[hidden] = self.columns[name] * 2
            atoms = [
                Atom(name, tuple(Var(a.name.replace("_#", "any")) if is_wild(a) else a for a in b))
                for b in (clause.head.args, clause.dominating.args)
            ]
            head = Atom(hidden, (*atoms[0].args, *atoms[1].args))
            body = And((*atoms, clause.body))
            found.setdefault(name, []).extend(
                self.compile_rule(Rule((head,), body, clause.is_null_safe))
            )
            del self.columns[hidden]
        return found

    def compile_rule(self, rule: Rule) -> list[Entry]:
        """One entry per branch and head."""
        for head in rule.heads:
            self.check_arity(head)
        entries = []
        for branch in dnf(rule.body):
            conjunction = Conjunction(self, branch, {}, rule.heads, rule.is_null_safe)
            conjunction.compile()
            for head in rule.heads:
                columns = self.columns[head.relation]
                runs = [conjunction.typed(a, t) for a, t in zip(head.args, columns, strict=True)]
                for arg, type_ in zip(head.args, columns, strict=True):
                    if conjunction.is_nullable(arg) and not type_.nullable:
                        raise OracleRejected(f"null in a not-null column of {head.relation}")
                entries.append((head.relation, conjunction, runs))
        return entries

    def apply(self, entry: Entry, stratum: set[str]) -> bool:
        if entry[0] not in stratum:
            return False
        rows = self.heads(entry, is_lenient=False)
        return sum(self.insert(entry[0], row) for row in rows) > 0

    def heads(self, entry: Entry, *, is_lenient: bool) -> set[tuple[Value, ...]]:
        """The heads of a rule; those without a value are left out, or an error."""
        relation, conjunction, runs = entry
        rows: set[tuple[Value, ...]] = set()
        for env, failure in conjunction.solve({}):
            try:
                row = tuple(run(env) for run in runs)
            except NoTuple:
                continue
            failed = [value for value in (failure, *row) if isinstance(value, Failure)]
            if failed and not is_lenient:
                raise OracleError(f"{failed[0].reason} in a rule for {relation}")
            if not failed:
                rows.add(row)
        return rows

    def close(self, relation: str) -> bool:
        """One step of the equivalence closure."""
        pairs = set(self.relations[relation])
        pairs |= {(y, x) for x, y in pairs} | {(x, x) for x, _ in pairs}
        follow = defaultdict(set)
        for x, y in pairs:
            follow[x].add(y)
        pairs |= {(x, z) for x, y in pairs for z in follow[y]}
        return sum(self.insert(relation, pair) for pair in pairs) > 0


def ascending(value: Value) -> tuple[Value, ...]:
    """Null first, then the values in their order, at last what is no number."""
    if value is None:
        return (0,)
    is_nan = isinstance(value, float) and math.isnan(value)
    return (2,) if is_nan else (1, value)


def fitted(value: Value, type_: Type) -> Value:
    """A value as it is stored in a column."""
    if value is None:
        if not type_.nullable:
            raise OracleRejected(f"null in a not-null column of {type_.name}")
        return None
    if type(value) not in PYTHON_TYPES[type_.name]:
        raise OracleRejected(f"{value!r} in a column of {type_.name}")
    if type_.name == "decimal":
        try:
            return decimal_of(Fraction(value), type_.scale, type_.precision)
        except Fault as fault:
            raise OracleError(str(fault)) from None
    return canonical(float(value) if type_.name == "float" else value)


def in_column(value: Value, type_: Type, bits: int) -> Value:
    """A value as it is stored in a column whose numbers have so many bits."""
    stored = fitted(value, type_)
    if stored is None or bits == 64:
        return stored
    short = word(stored, type_, bits)
    if type_.name != "float" and short != stored:
        raise OracleError(f"{value} has more than {bits} bits")
    return canonical(short) if type_.name == "float" else short


def event_predicates(rules: list[Rule]) -> set[str]:
    """Heads of rules that read changes or the old state, directly or through one another."""
    events: set[str] = set()
    while True:
        more = {
            head.relation
            for rule in rules
            for head in rule.heads
            if not head.mark
            and any(
                isinstance(n, Atom) and (n.mark not in ("", "new") or n.relation in events)
                for n in walk(rule.body)
            )
        }
        if more <= events:
            return events
        events |= more


def relations_in(node: Expr | Formula) -> set[str]:
    return {part.relation for part in walk(node) if isinstance(part, Atom)}


def recursive_extremes(rules: list[Rule]) -> list[tuple[str, int, str]]:
    """The columns that are the `min` or `max` of something that depends on their relation."""
    needs: dict[str, set[str]] = defaultdict(set)
    for rule in rules:
        for head in rule.heads:
            needs[head.relation] |= relations_in(rule.body)
    changed = True
    while changed:
        changed = False
        for found in needs.values():
            longer = found.union(*(needs[name] for name in found if name in needs))
            changed |= longer != found
            found |= longer
    columns = []
    for rule in rules:
        for result, node in extremes_in(rule.body):
            for head in rule.heads:
                is_recursive = any(
                    head.relation in needs.get(name, ()) for name in relations_in(node.body)
                )
                if is_recursive and head.args.count(result) == 1:  # else `strata` judges it
                    columns.append((head.relation, head.args.index(result), node.op))
    return sorted(set(columns))


def extremes_in(body: Formula) -> list[tuple[Var, Agg]]:
    """The equations `x = min e : { … }` of a body, with `max` too."""
    return [
        (one, other)
        for part in walk(body)
        if isinstance(part, Cmp) and part.op == "="
        for one, other in ((part.left, part.right), (part.right, part.left))
        if isinstance(one, Var) and isinstance(other, Agg) and other.op in ("min", "max")
    ]


def strata(
    rules: list[Rule],
    decls: Mapping[str, Decl],
    subsumptions: Iterable[Subsumption] = (),
    *,
    has_rounds: bool = False,
) -> list[set[str]]:
    """Strongly connected components, lowest first; refuses cycles through negation, aggregates."""
    needs: dict[str, set[str]] = {name: set() for name in decls}
    strict: set[tuple[str, str]] = set()
    for rule in rules:
        for head in rule.heads:
            aggregated = set().union(*(relations_in(each) for each in head.args))
            needs[head.relation] |= aggregated
            strict |= {(head.relation, name) for name in aggregated}
        for branch in dnf(rule.body):
            for literal in branch:
                everything = relations_in(literal)
                plain = {literal.relation} if isinstance(literal, Atom) else set()
                extremes = [node for _, node in extremes_in(literal)]
                inner = [
                    relations_in(node)
                    for node in walk(literal)
                    if isinstance(node, Agg) and node not in extremes
                ]
                climbing = set().union(*(relations_in(node) for node in extremes))
                lower = (everything - plain - climbing).union(*inner)
                lower |= everything if is_windowed(rule) else set()
                for head in rule.heads:
                    needs[head.relation] |= everything
                    strict |= {(head.relation, name) for name in lower}
    for clause in subsumptions:
        name = clause.head.relation
        lower = relations_in(clause.body) - {name}
        needs[name] |= lower
        plain = {part.relation for part in parts_of(clause.body) if isinstance(part, Atom)}
        strict |= {(name, each) for each in lower - (plain if has_rounds else set())}
    reach = {name: {name} | needs[name] for name in needs}
    changed = True
    while changed:
        changed = False
        for name, found in reach.items():
            longer = found.union(*(reach[other] for other in found))
            changed |= longer != found
            reach[name] = longer
    for above, below in strict:
        cycle = {name for name in reach[above] if above in reach[name]}
        if above in reach[below] and not groups.is_grouped(rules, cycle):
            raise OracleRejected(f"{above} depends on itself through !{below} or an aggregate")
    components = {frozenset(o for o in reach[n] if n in reach[o]): len(reach[n]) for n in reach}
    return [
        set(component) for component in sorted(components, key=lambda c: (components[c], sorted(c)))
    ]


def evaluate(
    text: str,
    facts: Mapping[str, Iterable[tuple[Value, ...]]] | None = None,
    limit: int = 100_000,
    rounds: int = 1_000,
) -> dict[str, set[tuple[Value, ...]]]:
    """Evaluate a program on the facts in its text and those given.

    Raises:
        OracleRejected: The program is not valid.
        OracleError: A rule instance fails at run time.
        OracleLimit: More than `limit` tuples or values of a range, or `rounds` in a stratum.

    >>> evaluate(".decl n(x: number) n(0). n(x + 1) :- n(x), x < 2.")["n"] == {(0,), (1,), (2,)}
    True
    """
    oracle = Oracle(parse(text), limit, rounds)
    given = dict(facts or {})
    for bag, copies in oracle.program.bags.items():
        types = oracle.columns[bag]
        own = [tuple(convert(a, t)[1] for a, t in zip(args, types, strict=True)) for args in copies]
        rows = (tuple(map(fitted, row, types)) for row in (*own, *given.pop(bag, ())))
        given[f"{bag}.rows"] = [(*row, count) for row, count in Counter(rows).items()]
    for relation, rows in given.items():
        if relation not in oracle.columns:
            raise OracleRejected(f"{relation} is not declared")
        for row in rows:
            oracle.insert(relation, row)
    oracle.run()
    return oracle.relations


def with_copies(
    text: str, found: Mapping[str, Iterable[tuple[Value, ...]]], relation: str
) -> list[tuple[Value, ...]]:
    """The rows of a relation, those of a bag as often as they occur."""
    if relation not in parse(text).bags:
        return list(found[relation])
    return [row[:-1] for row in found[f"{relation}.rows"] for _ in range(row[-1])]


def typed_rows(rows: Iterable[tuple[Value, ...]]) -> list[tuple[tuple[str, str], ...]]:
    """Tuples as a sorted list with types, for comparing: 1 is not "1", nor 1.0, nor True."""
    return sorted(tuple((type(v).__name__, repr(canonical(v))) for v in row) for row in rows)
