r"""Functors with lambdas: as functions of Python over each row, and what has no value."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from typing import Any

import pytest

import corollary
from corollary.core.printer import print_clause
from corollary.engines.local.evaluation.functions import lambdas
from corollary.frontends.datalog.parser import parse_clause

DICE = random.Random(11)
Row = tuple[int, tuple[int | None, ...] | None, tuple[str | None, ...]]
ROWS: list[Row] = [
    (
        k,
        None if k % 7 == 3 else tuple(DICE.choice((None, 0, 1, 2, 9)) for _ in range(k % 6)),
        tuple(DICE.choice((None, "", "a", "bc")) for _ in range(k % 4)),
    )
    for k in range(28)
]


def opened() -> corollary.Database:
    db = corollary.open(None, engine="local")
    db.load(text=".decl t(k: number, a: [number]?, s: [symbol])")
    with db.transaction() as transaction:
        transaction.insert("t", ROWS)
    return db


def ask(db: corollary.Database, goal: str) -> list[tuple[Any, ...]]:
    columns = db.query(goal).to_pydict().values()
    plain = ([tuple(x) if isinstance(x, list) else x for x in each] for each in columns)
    return list(zip(*plain, strict=True))


def judge(truths: list[bool | None], decisive: bool) -> bool | None:
    if decisive in truths:
        return decisive
    return None if None in truths else not decisive


def padded(one: tuple[Any, ...], other: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    size = max(len(one), len(other))
    return list(zip(*((*each, *[None] * (size - len(each))) for each in (one, other)), strict=True))


def total(numbers: tuple[int | None, ...], start: int) -> int | None:
    return None if None in numbers else start + sum(each or 0 for each in numbers)


GOALS: dict[str, Callable[[int, Any, Any], Any]] = {
    r"transform(a, \x -> \x + k)": lambda k, a, s: tuple(None if x is None else x + k for x in a),
    r"transform(s, \x \n -> cat(coalesce(\x, '-'), to_string(\n + k)))": lambda k, a, s: tuple(
        f"{'-' if x is None else x}{at + k}" for at, x in enumerate(s)
    ),
    r"filter(a, \x \n -> lt(\x, \n))": lambda k, a, s: tuple(
        x for at, x in enumerate(a) if x is not None and x < at
    ),
    r"exists(a, \x -> gt(\x, k % 3))": lambda k, a, s: judge(
        [None if x is None else x > k % 3 for x in a], True
    ),
    r"forall(a, \x -> lt(\x, 9))": lambda k, a, s: judge(
        [None if x is None else x < 9 for x in a], False
    ),
    r"zip_with(s, a, \x \y -> cat(coalesce(\x, '?'), coalesce(to_string(\y), '!')))": (
        lambda k, a, s: tuple(
            f"{'?' if x is None else x}{'!' if y is None else y}" for x, y in padded(s, a)
        )
    ),
    r"reduce(a, k, \acc \x -> \acc + \x)": lambda k, a, s: total(a, k),
    r"reduce(s, '', \acc \x -> cat(coalesce(\x, to_string(k)), \acc))": lambda k, a, s: reduce(
        lambda acc, x: f"{k if x is None else x}{acc}", s, ""
    ),
    r"transform(a, \x -> reduce(a, \x, \x \y -> \x + coalesce(\y, k)))": lambda k, a, s: tuple(
        None if x is None else x + sum(k if y is None else y for y in a) for x in a
    ),
    r"sort_with(a, \x \y -> coalesce(\y, 5) % 9 - coalesce(\x, 5) % 9)": lambda k, a, s: tuple(
        sorted(a, key=lambda x: -((5 if x is None else x) % 9))
    ),
    r"sort_with(s, \x \y -> if(is_null(\x), 0, 1) - if(is_null(\y), 0, 1))": (
        lambda k, a, s: tuple(sorted(s, key=lambda x: x is not None))
    ),
}


def test_as_functions_of_each_row() -> None:
    terms = ", ".join(f"x{at} is {text}" for at, text in enumerate(GOALS)).replace("'", '"')
    with opened() as db:
        found = {row[0]: row[3:] for row in ask(db, f"t(k, a, s), {terms}")}
    for k, a, s in ROWS:
        for (text, function), value in zip(GOALS.items(), found[k], strict=True):
            is_of_s = "(s," in text and "zip" not in text
            wanted = None if a is None and not is_of_s else function(k, a or (), s)
            assert value == wanted, (text, k, a, s)


def test_pairs_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lambdas, "PAIRS_MAX", 5)
    monkeypatch.setattr(lambdas, "SORT_MAX_ELEMENTS", 3)
    with opened() as db:
        goal = r"t(_, a, _), x is try(sort_with(a, \x \y -> coalesce(\y, 5) - coalesce(\x, 5)))"
        for a, x in ask(db, goal):
            known = sorted(a or (), key=lambda x: -(5 if x is None else x))
            assert x == (None if a is None or len(set(a)) > 3 else tuple(known))


MISSING = {
    r"transform(array(1, 0), \x -> 1 / \x)": "division by zero",
    r"reduce(array(0, 1), 5, \acc \x -> if(eq(\x, 0), \acc / \x, 1))": "division by zero",
    r"reduce(array(1), 9223372036854775807, \acc \x -> \acc + \x)": "verflow",
    r"filter(array(1, 0), \x -> gt(1 / \x, 0))": "division by zero",
    r"sort_with(array(1, 2), \x \y -> 1)": "comparator",
    r"sort_with(array(1, 2, null), \x \y -> coalesce(\x - \y, 0))": "comparator",
    r"sort_with(array(2, 1), \x \y -> null_if(1, 1))": "comparator",
    r"sort_with(array(1, 1), \x \y -> null_if(1, 1))": "comparator",
    r"get(array(exists(array(1, 0), \x -> gt(1 / \x, 1))), 0)": "division by zero",
}


@pytest.mark.parametrize("term", MISSING)
def test_what_has_no_value(term: str) -> None:
    with corollary.open(None, engine="local") as db:
        assert ask(db, f"x is try({term})") == [(None,)]
        with pytest.raises(corollary.CorollaryError, match=f"(?i){MISSING[term]}"):
            db.query(f"x is {term}")


def test_what_does_not_count() -> None:
    with corollary.open(None, engine="local") as db:
        for term, wanted in {
            r"exists(array(0, 1), \x -> eq(1 / \x, 1))": True,
            r"forall(array(0, 2), \x -> eq(1 / \x, 1))": False,
            r"transform(slice(array(1), 1, 0), \x -> \x / 0)": (),
            r"transform(array(0, 2), \x -> if(eq(\x, 0), 7, 4 / \x))": (7, 2),
            r"reduce(slice(array(1), 1, 0), 3, \acc \x -> \acc / 0)": 3,
            r"sort_with(array(4), \x \y -> \x / 0)": (4,),
        }.items():
            assert ask(db, f"x is {term}") == [(wanted,)], term


def test_deep_bodies_words_and_decimals() -> None:
    deep = " + ".join([r"\x", *(["k"] * 70)])
    with opened() as db:
        found = ask(db, rf"t(k, _, _), k = 2, x is transform(array(1, 2), \x -> {deep})")
        assert found == [(2, (141, 142))]
        goal = r'x = to_decimal("1.25", 2), y = transform(array(x), \v -> \v * 2)'
        assert ask(db, goal) == [(Decimal("1.25"), (Decimal("2.50"),))]
    text = '.pragma "arithmetic" "32"\n.decl p(x: [number])\n'
    with corollary.open(None, engine="local") as db:
        db.load(text=text + r"p(transform(array(2147483647, 1), \x -> \x + 1)) :- true.")
        assert db.relation("p").rows() == [((-2147483648, 2),)]


@pytest.mark.parametrize(
    "text",
    [
        r"p(transform(a, \x \i -> -1 - \x * (\i + k))) :- q(k, a).",
        r"p(x) :- q(a), x = reduce(a, \`odd name`, \acc \`odd name` -> cat(\acc, \`odd name`)).",
        r"p(x) := q(a), x is filter(a, \x -> exists(a, \y -> if(lt(\x, \y), true, null))).",
    ],
)
def test_a_rule_is_printed_as_it_is_written(text: str) -> None:
    clause = parse_clause(text)
    assert print_clause(clause) == text
    assert parse_clause(print_clause(clause)) == clause
