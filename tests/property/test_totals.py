"""Running totals under random changes: nulls, boundaries, infinities, groups that come and go."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import corollary
from support.generators.scenarios import EVERY, unhurried
from support.maintained_database import Judged, Row, SkipError, Step
from support.selection import examples, sampled, seed_of_run

EXAMPLES = examples(2, 40)

LARGEST = sys.float_info.max
LONG_DIGITS = ("9" * 36, "3" * 36, "9" * 26, "9" * 17, str(2**96), str(2**64))
"""Decimals with 38, 28 and 19 digits, and about the words of their sums."""

VALUES: dict[str, tuple[Any, ...]] = {
    "n": (
        None,
        0,
        1,
        -1,
        7,
        2**31,
        -(2**31),
        2**32,
        -(2**32),
        2**62,
        -(2**62),
        2**63 - 1,
        -(2**63),
    ),
    "u": (0, 1, 2**32, 2**63, 2**64 - 1),
    "d": (None, *map(Decimal, ("0.00", "0.01", "-0.01", "9999999999999999.99", "12.50"))),
    "w": (
        *(None, *map(Decimal, ("0.00", "0.01", "-0.01", "92233720368547758.08"))),
        *(Decimal(f"{sign}{digits}.99") for sign in ("", "-") for digits in LONG_DIGITS),
    ),
    "f": (
        *(None, 0.0, 1.0, -1.0, 0.1, 1e16, -1e16, 5e-324, -5e-324, sys.float_info.min, 2.0**-53),
        *(LARGEST, -LARGEST, LARGEST / 2, 2.0**970, math.inf, -math.inf, math.nan),
    ),
    "s": (None, "a", "b", "ab", "ä", ""),
    "x": (0.0, 0.1, 0.25, -1e16, 5e-324, LARGEST, math.inf, math.nan),
    "z": (*map(Decimal, ("0.01", "-0.01", "12.50", "0.00")),),
    "y": (0, 1, -1, 2**31, -(2**33), 2**61, 2**62),
}
"""By relation: what its last column may hold."""

TEXT = """
.decl k(g: number)
.decl e(i: number, j: number)
.decl n(i: number, g: number, v: number?)
.decl u(i: number, g: number, v: unsigned)
.decl d(i: number, g: number, v: decimal(18,2)?)
.decl w(i: number, g: number, v: decimal(38,2)?)
.decl f(i: number, g: number, v: float?)
.decl s(i: number, g: number, v: symbol?)
.decl x(i: number, g: number, v: float)
.decl y(i: number, g: number, v: number)
.decl z(i: number, g: number, v: decimal(18,2))
.decl count_n(g: number, c: number)
count_n(g, c) :- k(g), c = count : { n(_, g, _) }.
.decl sum_low(g: number, c: number)
sum_low(g, c) :- k(g), c = sum v / 4 : { n(_, g, v), v > -10 }.
.decl mean_n(g: number, c: float)
mean_n(g, c) :- k(g), c = mean v : { n(_, g, v) }.
.decl sum_u(g: number, c: unsigned)
sum_u(g, c) :- k(g), c = sum v : { u(_, g, v) }, g < 2.
.decl sum_d(g: number, c: decimal(18,2))
sum_d(g, c) :- k(g), c = sum v : { d(i, g, v), e(i, _) }.
.decl mean_d(c: float)
mean_d(c) :- c = mean v : { d(_, _, v) }.
.decl sum_w(g: number, c: decimal(38,2))
sum_w(g, c) :- k(g), c = sum v : { w(_, g, v) }.
.decl mean_w(g: number, c: float)
mean_w(g, c) :- k(g), c = mean v : { w(i, g, v), !e(i, 0) }.
.decl sum_product(c: decimal(38,2))
sum_product(c) :- c = sum v * 0.25 : { w(i, _, v), e(i, _) }.
.decl least_w(g: number, a: decimal(38,2), b: decimal(38,2))
least_w(g, a, b) :- k(g), a = min v : { w(_, g, v) }, b = max v : { w(_, g, v) }.
.decl sum_f(g: number, c: float)
sum_f(g, c) :- k(g), c = sum v : { f(_, g, v) }.
.decl mean_f(g: number, c: float)
mean_f(g, c) :- k(g), c = mean v : { f(i, g, v), !e(i, 0) }.
.decl least(g: number, a: number, b: float, c: symbol)
least(g, a, b, c) :-
    k(g), a = min v : { n(_, g, v) }, b = min v : { f(_, g, v) }, c = min v : { s(_, g, v) }.
.decl greatest(g: number, c: float)
greatest(g, c) :- k(g), c = max v : { f(i, g, v), e(i, _) }.
.decl latest(c: symbol)
latest(c) :- c = max v : { s(_, _, v) }.
.decl either(g: number, c: number)
either(g, c) :- k(g), c = max v : { (n(_, g, v) ; n(g, _, v)), v < 100 }.
.decl floats(g: number, c: number, s: float, m: float, a: float, b: float)
floats(g, c, s, m, a, b) :- k(g), c = count : { x(_, g, _) }, s = sum v : { x(_, g, v) },
    m = mean v : { x(_, g, v) }, a = min v : { x(_, g, v) }, b = max v : { x(_, g, v) }.
.decl joined(g: number, s: float, t: number, a: number, b: number, m: float)
joined(g, s, t, a, b, m) :- k(g), s = sum v : { x(i, g, v), y(i, _, w) },
    t = sum w : { x(i, g, v), y(i, _, w) }, a = min w : { x(i, g, v), y(i, _, w) },
    b = max w : { x(i, g, v), y(i, _, w) }, m = mean w : { x(i, g, v), y(i, _, w) }.
.decl ends(c: number, a: number, b: number)
ends(c, a, b) :- c = count : { y(i, _, v), e(i, _) }, a = min v : { y(i, _, v), e(i, _) },
    b = max v : { y(i, _, v), e(i, _) }.
.decl means(s: number, a: float, b: float)
means(s, a, b) :- s = sum v : { y(i, _, v), z(i, _, w) }, a = mean w : { y(i, _, v), z(i, _, w) },
    b = mean v : { y(i, _, v), z(i, _, w) }.
.decl nulls(g: number, c: number, a: number?, b: number?)
nulls(g, c, a, b) := k(g), c = count : { n(i, g, v), e(i, _) },
    a is min v : { n(i, g, v), e(i, _) }, b is max v : { n(i, g, v), e(i, _) }.
.decl texts(g: number, a: symbol?, s: float)
texts(g, a, s) := k(g), a is max t : { s(i, g, t), x(i, _, v) },
    s = sum v : { s(i, g, t), x(i, _, v) }.
.decl nested(c: number)
nested(c) :- c = sum m : { k(g), m = count : { n(_, g, _) } }.
.decl over(c: number)
over(c) :- c = max x : { count_n(_, x) }.
"""
VIEWS = ("count_n", "sum_f", "mean_w", "least_w", "least", "nested", "floats", "joined", "nulls")


def row(relation: str) -> st.SearchStrategy[Row]:
    small = st.integers(0, 2)
    if relation == "k":
        return st.tuples(small)
    if relation == "e":
        return st.tuples(st.integers(0, 4), small)
    known = st.sampled_from(VALUES[relation])
    values = st.one_of(known, known, st.floats()) if relation == "f" else known
    return st.tuples(st.integers(0, 4), small, values)


@st.composite
def steps(draw: st.DrawFn) -> list[Step]:
    """Draw transactions that insert, delete what is there, and move rows between groups."""
    present: dict[str, list[Row]] = {}
    found: list[Step] = []
    for _ in range(draw(st.integers(3, 6))):
        inserts: dict[str, list[Row]] = {}
        deletes: dict[str, list[Row]] = {}
        for relation in draw(
            st.lists(st.sampled_from(("k", "e", *VALUES)), min_size=2, max_size=5)
        ):
            inserts[relation] = draw(st.lists(row(relation), max_size=6))
            if present.get(relation):
                deletes[relation] = draw(st.lists(st.sampled_from(present[relation]), max_size=4))
            present.setdefault(relation, []).extend(inserts[relation])
        found.append((inserts, deletes))
    return found


@pytest.mark.smoke
@pytest.mark.parametrize("algorithm", sampled(EVERY, 4))
def test_totals_are_those_of_the_groups(algorithm: str) -> None:
    counts = {"steps": 0, "payload": 0}

    @unhurried(EXAMPLES)
    @given(steps(), st.sets(st.sampled_from(VIEWS)), st.integers(1, 5))
    def run(drawn: list[Step], virtual: set[str], reopened: int) -> None:
        with TemporaryDirectory() as folder:
            judged = Judged(TEXT, algorithm, sorted(virtual), place=str(Path(folder) / "w"))
            try:
                judged.step(({"k": [(0,), (1,), (2,)]}, {}))
                for number, step in enumerate(drawn):
                    judged.step(step)
                    if number % reopened == 1:
                        judged.reopen()
            except SkipError:
                pass
            finally:
                judged.db.close()
            for name in counts:
                counts[name] += judged.counts[name]

    run()
    assert counts["steps"] >= EXAMPLES
    assert counts["payload"] >= EXAMPLES


TABLES = """
.decl t(i: number, g: number, a: number, b: number?, d: decimal(18,2), x: float?, s: symbol?)
.decl k(i: number)
"""
RECORDS = """
.decl r(g: number, n: number, sa: number, la: number, ha: number, lb: number?, hb: number?,
    m: float, sx: float, lx: float?, hs: symbol?)
r(g, n, sa, la, ha, lb, hb, m, sx, lx, hs) := t(i, g, _, _, _, _, _), {rows},
    n = count : {{ {body} }}, sa = sum a : {{ {body} }},
    la = min a : {{ {body} }}, ha = max a : {{ {body} }}, lb is min b : {{ {body} }},
    hb is max b : {{ {body} }}, m = mean d : {{ {body} }},
    sx = sum x : {{ {body} }}, lx is min x : {{ {body} }}, hs is max s : {{ {body} }}.
.decl least(g: number, n: number, lb: number)
least(g, n, lb) := t(i, g, _, _, _, _, _), {rows}, n = count : {{ {body} }},
    lb = min b : {{ {body} }}.
.decl ends(g: number, n: number, la: number)
ends(g, n, la) := t(i, g, _, _, _, _, _), {rows}, n = count : {{ {body} }},
    la = min a : {{ {body} }}.
"""
ROWS = "t(j, g, a, b, d, x, s)"


@pytest.mark.parametrize(("rows", "body"), [("i = i", ROWS), ("k(i)", f"{ROWS}, k(j)")])
@pytest.mark.parametrize("most", [3, 40])
def test_records_follow_changes_of_few_and_of_many_rows(rows: str, body: str, most: int) -> None:
    random = Random(seed_of_run())
    present = {row[0]: row for row in (record_row(random) for _ in range(30))}
    known = {random.randint(0, 99) for _ in range(30)}
    with corollary.open(None, engine="local", algorithm="dred") as db:
        db.load(text=TABLES)
        with db.transaction() as tx:
            tx.insert("t", list(present.values()))
            tx.insert("k", [(each,) for each in known])
        db.load(text=TABLES + RECORDS.format(rows=rows, body=body))
        for _ in range(25):
            gone = random.sample(sorted(present), min(len(present), random.randint(0, most)))
            came = [record_row(random) for _ in range(random.randint(0, most))]
            flipped = {random.randint(0, 99) for _ in range(most)}
            with db.transaction() as tx:
                tx.delete("t", [present.pop(each) for each in gone])
                fresh = {row[0]: row for row in came if row[0] not in present}
                tx.insert("t", list(fresh.values()))
                tx.delete("k", [(each,) for each in flipped & known])
                tx.insert("k", [(each,) for each in flipped - known])
            present |= fresh
            known ^= flipped
            counted = [row for row in present.values() if rows != "k(i)" or row[0] in known]
            expected = records(counted)
            assert sorted(db.relation("r").rows()) == expected
            present_least = [(*row[:2], row[5]) for row in expected if row[5] is not None]
            assert sorted(db.relation("least").rows()) == present_least
            assert sorted(db.relation("ends").rows()) == [(*row[:2], row[3]) for row in expected]
            assert "recompute" not in {each.algorithm for each in tx.stats.values()}


def record_row(random: Random) -> Row:
    i, g, a = random.randint(0, 99), random.randint(0, 3), random.randint(-2, 2)
    b, s = random.choice((None, 0, 5, -3)), random.choice((None, "a", "b"))
    d, x = Decimal(random.randint(-99, 99)) / 100, random.choice((None, 0.0, 2.25, -0.5))
    return i, g, a, b, d, x, s


def records(rows: list[Row]) -> list[Row]:
    """Return the groups as Python aggregates them; sums of quarters are exact."""
    groups: dict[int, list[Row]] = {}
    for each in rows:
        groups.setdefault(each[1], []).append(each)
    found = []
    for group, members in sorted(groups.items()):
        _, _, a, b, d, x, s = ([*column] for column in zip(*members, strict=True))
        numbers, floats, texts = (
            [each for each in column if each is not None] for column in (b, x, s)
        )
        bounds = min(a), max(a), min(numbers, default=None), max(numbers, default=None)
        mean = float(Fraction(sum(d)) / len(d))
        ends = min(floats, default=None), max(texts, default=None)
        found.append((group, len(members), sum(a), *bounds, mean, sum(floats), *ends))
    return found
