"""Random typed expressions, and rows of values at the edges of their types to compute them on."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from corollary.core.functors.catalog import FUNCTORS, result_type
from corollary.core.functors.conversions import CHECKED_SUM, PARTITION_OF
from corollary.core.functors.holistic import ARGUMENTS
from corollary.core.functors.texts import FROM_JSON
from corollary.core.logic import NO_RULE, Condition, Constant, Expression, Functor, Variable
from corollary.core.pipeline import Compute, Filter, Pipeline, Probe, Reference
from corollary.core.types import (
    BINARY,
    BOOL,
    DATE,
    DURATION,
    FLOAT,
    FLOAT32,
    MONTHS,
    NUMBER,
    PRIMITIVES,
    SYMBOL,
    TIME_OF_DAY,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UNSIGNED,
    Kind,
    Type,
    decimal,
)
from corollary.core.values import decimal_value
from corollary.engines.local.evaluation.expressions import (
    evaluate,
    evaluate_condition,
)
from corollary.engines.local.evaluation.value_vector import dense_mask
from corollary.engines.local.values.codes import Dictionary
from corollary.sqlgen.dialect import NotExactError, SqlDialect
from corollary.sqlgen.expressions import CHOICE_FORMS

DECIMALS = tuple(
    decimal(*digits) for digits in ((12, 2), (18, 3), (19, 2), (28, 10), (38, 2), (38, 38))
)

TYPES = (
    SYMBOL,
    NUMBER,
    UNSIGNED,
    FLOAT,
    FLOAT32,
    *DECIMALS,
    BOOL,
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    BINARY,
    DURATION,
    MONTHS,
    TIME_OF_DAY,
)
TOP = 2**63
SPECIAL_FLOATS = (float("inf"), float("-inf"), float("nan"))


def _decimals(type_: Type) -> tuple[Decimal, ...]:
    """Return decimals at the edges: of their digits, of 64 bits, and with halves to round."""
    top = 10**type_.precision - 1
    edges = (0, 1, 5, 15, 125, 250, 333, 1000, top, top // 3, top // 10 + 1)
    edges += tuple(10**digits + more for digits in (9, 18, 19, 28, 37) for more in (-1, 0, 1))
    edges += (2**53, 2**53 + 1, 2**61, 2**62, 2**63 - 1, 2**63, 2**64)
    found = sorted({sign * each for each in edges if each <= top for sign in (1, -1)})
    return tuple(decimal_value(each, type_.scale) for each in found)


SAMPLES: dict[Type, tuple[Any, ...]] = {
    SYMBOL: ("", "a", "Z", "abc", "añ😀", "é\x00x", "7", "-1.50", "a\nb", "[", "'", "a+"),
    NUMBER: (0, 1, -1, 2, -2, 3, 7, -7, 10, 2**31, -(2**31), 2**53 + 1, TOP - 1, -TOP, 1 - TOP),
    UNSIGNED: (0, 1, 2, 3, 10, 2**32, TOP - 1, TOP, 2**64 - 1),
    FLOAT: (0.0, 1.0, -1.0, 0.1, -2.5, 1e16, 1e-5, 5e-324, 1e308, -1e308, *SPECIAL_FLOATS),
    FLOAT32: (0.0, 1.0, -2.5, 2.0**24, 2.0**-149, (2 - 2.0**-23) * 2**127, *SPECIAL_FLOATS),
    **{type_: _decimals(type_) for type_ in DECIMALS},
    BOOL: (True, False),
    DURATION: tuple(timedelta(microseconds=each) for each in (0, -1, 86_400_000_000, 2**63 - 1)),
    MONTHS: (0, 1, -13, 2**31 - 1),
    TIME_OF_DAY: (time(), time(8, 5), time(23, 59, 59, 999_999)),
    BINARY: (b"", b"\0", b"a", b"a\0", b"\x7f", b"\x80", b"\xff", b"abc"),
    DATE: (date.min, date(1969, 12, 31), date(1970, 1, 1), date(2026, 11, 15), date.max),
    TIMESTAMP_NTZ: tuple(
        map(
            datetime.fromisoformat,
            ("0001-01-01", "1969-12-31T23:59:59.999999", "2026-11-15T08:00:00.0005"),
        )
    ),
    TIMESTAMP: (
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2026, 11, 15, 8, 0, 0, 500, tzinfo=UTC),
    ),
}

INTERNAL = (ARGUMENTS, CHECKED_SUM, PARTITION_OF, "range", "try")
"""Functors that no user writes, and those that are no single value."""

REWRITTEN = ("as", "autoinc", "window")
"""Functors that no engine sees: passes take them out."""

REWRITTEN_FORMS = frozenset({("+", Kind.SYMBOL)})
"""Functors that no engine sees with operands of a kind: `+` of texts becomes `cat`."""

VARIABLES = {
    f"{name}{type_}": type_.with_null(name == "n") for name, type_ in product("xyn", TYPES)
}
"""Two variables of each type that are not null, and one that may be."""


@dataclass
class Rows:
    """Values of all variables, and their codes."""

    values: dict[str, list[Any]]
    dictionary: Dictionary = field(default_factory=Dictionary)

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(next(iter(self.values.values())))

    @property
    def columns(self) -> list[Any]:
        """The columns of a relation of these rows: their numbers, then all variables."""
        numbers = self.dictionary.encode(np.arange(self.count), None, NUMBER)
        return [numbers, *self.codes.values()]

    def decode_numbers(self, codes: Any) -> list[int]:
        """Return the numbers of rows."""
        return [int(each) for each in self.dictionary.decode(codes, NUMBER)]

    @cached_property
    def codes(self) -> dict[str, Any]:
        """The codes of all values."""
        return {
            name: self.dictionary.encode_python(found, VARIABLES[name])
            for name, found in self.values.items()
        }


def random_rows(generator: random.Random, count: int) -> Rows:
    """Return rows of sample values; some of the nullable ones are null."""
    values = {}
    for name, type_ in VARIABLES.items():
        samples = [*SAMPLES[type_.with_null(False)], *([None] * 3 if type_.nullable else [])]
        values[name] = [generator.choice(samples) for _ in range(count)]
    return Rows(values)


def applicable(dialect: SqlDialect) -> list[tuple[str, Kind]]:
    """Return the functors that a dialect has, each with a kind of operands or of what is chosen."""
    logical = ("and", "or", "not")
    choices = [(name, kind) for name in CHOICE_FORMS if name not in logical for kind in PRIMITIVES]
    forms = [
        (name, kind)
        for name, spec in FUNCTORS.items()
        if spec.parameters
        for kind in spec.kinds(0) & set(PRIMITIVES)
        if _has_form(dialect, name, kind)
    ]
    return sorted([*forms, *choices, *((name, Kind.BOOL) for name in logical)])


def _has_form(dialect: SqlDialect, name: str, kind: Kind) -> bool:
    try:
        dialect.form(name, Type(kind))
    except NotExactError:
        return False
    return True


def left_to_us(dialect: SqlDialect) -> list[tuple[str, Kind]]:
    """Return the functors that a dialect has no form of, each with a kind of the first operand.

    Records are left out: passes give their functors a type that is stored. So are `arrays_zip` and
    `struct`, whose first operand is the names of what comes after it, and `from_json`, whose second
    operand is the type of its result.
    """
    known = {*applicable(dialect), *((name, kind) for name in INTERNAL for kind in PRIMITIVES)}
    every = {
        (name, kind)
        for name, each in FUNCTORS.items()
        if name not in (*REWRITTEN, "arrays_zip", "struct", FROM_JSON)
        and each.result is not Kind.RECORD
        for kind in each.kinds(0) & set(PRIMITIVES)
    }
    return sorted(every - known - REWRITTEN_FORMS)


def random_expression(
    generator: random.Random, dialect: SqlDialect, kind: Kind, depth: int
) -> Expression:
    """Return an expression of a kind, made of functors that a dialect has."""
    forms = [
        (name, first)
        for name, first in applicable(dialect)
        if name != CHECKED_SUM and (FUNCTORS[name].result or first) is kind
    ]
    if depth == 0 or not forms or generator.random() < 0.15:
        return _leaf(generator, kind)
    return random_application(generator, dialect, *generator.choice(forms), depth)


def random_application(
    generator: random.Random, dialect: SqlDialect, name: str, first: Kind, depth: int
) -> Functor:
    """Return a functor applied to expressions, the first of which has a kind."""
    signature = FUNCTORS[name]
    if name == CHECKED_SUM:
        total = _leaf(generator, first, is_variable=True)
        return Functor(name, (total,), total.type)
    extra = generator.randrange(2) if signature.is_variadic else 0
    count = len(signature.parameters) + extra * (2 if signature.is_paired else 1)
    taken = [signature.kinds(at, count) for at in range(count)]
    kinds = [first if first in each else min(each) for each in taken]
    arguments: list[Expression] = []
    digits = 0
    for at, kind in enumerate(kinds):
        literals = literal_choices(name, at)
        if literals:
            value = generator.choice(literals)
            digits = value if isinstance(value, int) else digits
            arguments.append(Constant(value, SYMBOL if isinstance(value, str) else NUMBER))
        else:
            arguments.append(random_expression(generator, dialect, kind, depth - 1))
    if name in ("if", "coalesce") and generator.random() < 0.2:
        null = _type(arguments[-2]).with_null(True)
        arguments[-1] = Constant(None, null)
    type_ = result_type(name, [_type(each) for each in arguments], digits)
    return Functor(name, tuple(arguments), type_)


def literal_choices(name: str, at: int) -> tuple[Any, ...]:
    """Return the values of an argument that must be a literal; none if it need not be."""
    spec = FUNCTORS[name]
    if at in spec.literals:
        values = spec.literals[at]
        few = (8, 20, 32, 64)
        return tuple(e for e in values if isinstance(e, str) or -2 <= e < 5 or e in few)
    if spec.time_letters and at == 1:
        return ("%Y-%m-%d", "%F") if name != "format_time" else ("%Y-%j %H:%M", "%d.%m.%Y %f")
    if spec.arguments[at : at + 1] == ("group",):
        return (0,)
    if (name, at) == ("like", 1):
        return ("", "a%", "%a", "%b%", "_", "a_c%", "\\%", "%\\_", "a%\\\\", "%")
    return ("a", "[a-z]$", "^.b", "") if at in spec.patterns else ()


def _type(expression: Expression) -> Type:
    assert expression.type is not None
    return expression.type


def _leaf(generator: random.Random, kind: Kind, *, is_variable: bool = False) -> Expression:
    names = [name for name, type_ in VARIABLES.items() if type_.logical_kind is kind]
    name = generator.choice(names)
    if is_variable or generator.random() < 0.7:
        return Variable(name, VARIABLES[name])
    type_ = VARIABLES[name].with_null(False)
    return Constant(generator.choice(SAMPLES[type_]), type_)


def random_condition(
    generator: random.Random, dialect: SqlDialect, depth: int, kinds: Sequence[Kind] = PRIMITIVES
) -> Condition:
    """Return a condition, made of functors that a dialect has."""
    if generator.random() < 0.25:
        name = generator.choice([*dialect.predicates, *(f"!{each}" for each in dialect.predicates)])
        sides = (random_expression(generator, dialect, Kind.SYMBOL, depth) for _ in range(2))
        return Condition(name, *sides)
    kind = generator.choice(list(kinds))
    left, right = (random_expression(generator, dialect, kind, depth) for _ in range(2))
    return Condition(generator.choice(["=", "!=", "<", "<=", ">", ">=", "is"]), left, right)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The value of an expression in a row: `missing`, null, or its code."""

    codes: list[int]
    missing: list[bool]


ROW = Variable("row", NUMBER)
RESULT = "result"
ROW_TYPES = (NUMBER, *VARIABLES.values())
"""The columns of the relation that pipelines read."""


def as_pipeline(compared: Expression | Condition) -> tuple[Pipeline, tuple[Type, ...]]:
    """Return a pipeline that computes an expression, or tests a condition, in each row.

    Its head is the number of the row and the value, or the numbers of rows that pass.
    """
    slots = (ROW, *(Variable(name, type_) for name, type_ in VARIABLES.items()))
    probe = Probe(Reference("rows"), slots, ())
    if isinstance(compared, Condition):
        return Pipeline((probe, Filter(compared)), (ROW,), NO_RULE), (NUMBER,)
    result = Variable(RESULT, _type(compared))
    stages = (probe, Compute(result, compared, accepts_null=True))
    return Pipeline(stages, (ROW, result), NO_RULE), (NUMBER, _type(compared))


def collect(found: Iterable[tuple[int, int, bool]], rows: Rows) -> Outcome:
    """Return an outcome from numbers of rows with a code and whether the value is missing."""
    outcome = Outcome([0] * rows.count, [False] * rows.count)
    for number, code, is_missing in found:
        outcome.codes[number] = code
        outcome.missing[number] = is_missing
    return outcome


def local_outcome(compared: Expression | Condition, rows: Rows) -> Outcome:
    """Return what the local engine computes in each row."""
    if isinstance(compared, Condition):
        return local_truths(compared, rows)
    return local_values(compared, rows)


def local_values(expression: Expression, rows: Rows) -> Outcome:
    """Return what the local engine computes."""
    batch = evaluate(expression, rows.codes, rows.count, rows.dictionary)
    missing = dense_mask(batch.fault_mask, rows.count)
    nulls = dense_mask(batch.nulls, rows.count) | missing
    codes = rows.dictionary.encode(batch.values, nulls, batch.type)
    return Outcome(codes.tolist(), missing.tolist())


def local_truths(condition: Condition, rows: Rows) -> Outcome:
    """Return in which rows the local engine holds a condition for true."""
    found = evaluate_condition(condition, rows.codes, rows.count, rows.dictionary)
    missing = np.zeros(rows.count, np.bool_)
    for mask, _ in found.faults:
        missing |= mask
    return Outcome(found.true.astype(np.int64).tolist(), missing.tolist())


def differences(ours: Outcome, theirs: Outcome, *, is_exact: bool) -> Iterator[int]:
    """Yield the rows in which an SQL engine differs from ours.

    Args:
        ours: what the local engine has.
        theirs: what the other one has.
        is_exact: whether it must not miss values that there are.
    """
    for row, (code, other) in enumerate(zip(ours.codes, theirs.codes, strict=True)):
        missing, their_missing = ours.missing[row], theirs.missing[row]
        if missing or their_missing:
            if (missing and not their_missing) or (is_exact and missing != their_missing):
                yield row
        elif code != other:
            yield row


def aligns_decimals(functor: Functor) -> bool:
    """Whether a choice brings decimals to one scale: SQL then gives up on some that lose."""
    scales = {each.type.scale for each in functor.arguments if getattr(each, "type", None)}
    return FUNCTORS[functor.name].is_choice and len(scales) > 1


def shown(rows: Rows, row: int, names: Sequence[str]) -> dict[str, Any]:
    """Return the values of some variables in a row, for a message."""
    return {name: rows.values[name][row] for name in names}
