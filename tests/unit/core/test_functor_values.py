"""What every functor gives of random values: a value, or a reason why there is none."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from typing import Any

import pytest

import corollary
from corollary.core.functors.arrays import FIELD, FIELDS, STRUCT, ZIP
from corollary.core.functors.catalog import FUNCTORS, HIGHER_ORDER, result_type
from corollary.core.functors.spec import LETTERS, FunctorSpec
from corollary.core.functors.texts import FROM_JSON, JSON_OPTIONS
from corollary.core.logic import Constant, Expression, Functor, Variable
from corollary.core.types import (
    FLOAT,
    NESTED,
    NUMBER,
    PRIMITIVES,
    SYMBOL,
    Kind,
    Type,
    array_of,
    map_of,
    struct_of,
)
from corollary.engines.local.evaluation.expressions import encode_vector, evaluate
from corollary.engines.local.values.codes import Dictionary
from corollary.errors import EvaluationError
from support.selection import examples, seed_of_run
from support.sql.expressions import (
    INTERNAL,
    REWRITTEN,
    REWRITTEN_FORMS,
    SAMPLES,
    TYPES,
    literal_choices,
)

ROWS = 12
SECONDS_MAX = 60
NAMED = (STRUCT, FIELD, FIELDS, ZIP, FROM_JSON)
"""Functors whose types follow from literals, which `tests/sql` tries."""
APPLIED = sorted(
    name
    for name in FUNCTORS.keys() - HIGHER_ORDER - {*INTERNAL, *REWRITTEN, *NAMED}
    if name.isascii()
)
STRUCTURE = struct_of((("a", NUMBER.with_null(True)), ("b", SYMBOL.with_null(True))))
LETTER_TYPES = (*TYPES, array_of(NUMBER.with_null(True)), STRUCTURE)


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    """End what does not end."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def random_value(dice: random.Random, type_: Type) -> Any:
    """Return a value of a type, often one at its edge."""
    if type_.nullable and dice.random() < 0.1:
        return None
    match type_.logical_kind:
        case Kind.ARRAY:
            assert type_.element is not None
            return [random_value(dice, type_.element) for _ in range(dice.randrange(4))]
        case Kind.STRUCT:
            return {name: random_value(dice, each) for name, each in type_.members}
        case Kind.MAP:
            (_, key), (_, value) = type_.members
            keys = {
                random_value(dice, key.with_null(False)): None for _ in range(dice.randrange(4))
            }
            return [(each, random_value(dice, value)) for each in keys]
        case Kind.NUMBER if type_.bits == 64 and dice.random() < 0.5:
            return dice.choice((-1, 1)) * dice.getrandbits(dice.choice((3, 12, 31, 34, 63)))
        case Kind.SYMBOL if dice.random() < 0.5:
            signs = dice.choice(
                ("01.-+eE", "ab, :;{}[]\"'", "\x00\x7f\ud7ff\U0010ffffé$%\\", "yMdHhmsa-: 09")
            )
            return "".join(dice.choices(signs, k=dice.randrange(12)))
    return dice.choice(SAMPLES[type_.with_null(False)])


def type_of_word(dice: random.Random, word: str, known: dict[str, Type]) -> Type:
    """Return the type of a word of a signature."""
    word = word.rstrip("?")
    if word[0] == "[":
        return array_of(type_of_word(dice, word[1:-1], known).with_null(True))
    if word[0] == "{":
        key, value = word[1:-1].split(",")
        types = (type_of_word(dice, each, known) for each in (key, value))
        return map_of(*(each.with_null(at == 1) for at, each in enumerate(types)))
    if word not in LETTERS:
        return type_of_kind(dice, Kind(word))
    if word not in known:
        types = [each for each in LETTER_TYPES if word != "K" or each in (SYMBOL, NUMBER)]
        known[word] = dice.choice(types)
    return known[word]


def type_of_kind(dice: random.Random, kind: Kind) -> Type:
    """Return a type of a kind."""
    if kind is Kind.ARRAY:
        return array_of(type_of_kind(dice, dice.choice(PRIMITIVES)).with_null(True))
    if kind is Kind.MAP:
        return map_of(SYMBOL, type_of_kind(dice, dice.choice(PRIMITIVES)).with_null(True))
    if kind is Kind.STRUCT:
        return STRUCTURE
    return dice.choice([each for each in TYPES if each.logical_kind is kind])


def random_call(
    dice: random.Random, spec: FunctorSpec, frame: dict[str, Any], codes: Dictionary
) -> Functor:
    """Return a functor applied to random literals, and to variables that a frame gets."""
    fewest, most = spec.min_arguments, len(spec.parameters)
    count = max(1, dice.randint(fewest, most)) + (
        2 if spec.is_variadic and dice.random() < 0.5 else 0
    )
    known: dict[str, Type] = {}
    alike = range(count) if spec.is_comparing else spec.alike(count)
    kinds = [
        sorted(
            kind
            for kind in spec.kinds(at, count) - {Kind.RECORD}
            if (spec.name, kind) not in REWRITTEN_FORMS
        )
        for at in range(count)
    ]
    first = type_of_kind(dice, dice.choice(kinds[alike[0]])) if len(alike) else FLOAT
    arguments: list[Expression] = []
    digits = 0
    for at in range(count):
        is_options = at == JSON_OPTIONS.get(spec.name)
        literals = ("{}",) if is_options else literal_choices(spec.name, at)
        if literals:
            value = dice.choice(literals)
            digits = value if isinstance(value, int) else digits
            arguments.append(Constant(value, SYMBOL if isinstance(value, str) else NUMBER))
            continue
        if spec.shape:
            type_ = type_of_word(dice, spec.shape_at(at), known)
        elif at in alike and first.logical_kind in kinds[at]:
            type_ = first
        else:
            type_ = type_of_kind(dice, dice.choice(kinds[at]))
        type_ = type_.with_null(True)
        value = random_value(dice, type_)
        if type_.logical_kind in NESTED and value is not None:
            name = f"x{at}"
            frame[name] = codes.encode_python([value], type_)
            arguments.append(Variable(name, type_))
        else:
            arguments.append(Constant(value, type_))
    types = [each.type for each in arguments]
    return Functor(spec.name, tuple(arguments), result_type(spec.name, types, digits))


@pytest.mark.parametrize("name", APPLIED)
def test_every_functor_has_a_value_or_a_reason(name: str) -> None:
    dice = random.Random(f"{name} {seed_of_run()}")
    codes = Dictionary()
    for _ in range(examples(40, 400)):
        frame: dict[str, Any] = {}
        signal.alarm(SECONDS_MAX)
        call = random_call(dice, FUNCTORS[name], frame, codes)
        found = evaluate(call, frame, 1, codes)
        reasons = [reason for mask, reason in found.faults if mask.all()]
        assert reasons or len(codes.decode_arrow(encode_vector(found, codes), found.type)) == 1, (
            call
        )
        assert all(map(str.strip, reasons)), call


@pytest.mark.parametrize(
    "call",
    [
        "sequence(n, 9223372036854775807)",
        "sequence(n, -9223372036854775807, -1)",
        "sequence(n, 16777218)",
        "array_repeat(n, 16777217)",
        "array_repeat(s, 1000000)",
        "array_insert(array(n), 16777217, n)",
    ],
)
def test_arrays_without_a_bound(call: str) -> None:
    """An array that a number makes is an error where it is too long, before it is made."""
    with corollary.open(None, engine="local") as database:
        database.sql("CREATE TABLE t (n BIGINT, s STRING)")
        database.sql("INSERT INTO t SELECT 1, repeat('a', 1000)")
        with pytest.raises(EvaluationError, match=r"elements|no such element"):
            database.sql(f"SELECT size({call}) AS x FROM t").rows()
