"""The judge of active rules, held against what was worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from oracles.active_rules import Alert, Outcome, react
from oracles.evaluation import OracleError, OracleLimit

Rows = set[tuple[Any, ...]]

LINKS = """
.decl direct_link(src: symbol, dst: symbol)
.decl link(src: symbol, dst: symbol) virtual
link(x, y) :- direct_link(x, y).
link(x, y) :- link(x, z), direct_link(z, y).
connection_lost(x, y) :- -link(x, y).
.alert connection_lost "lost {x} -> {y}"
"""
SALARIES = """
.decl base_salary(e: symbol, s: number)
.decl yearly_bonus(e: symbol, b: number)
.decl high_salaried_employee(e: symbol, total: number)
high_salaried_employee(e, t) :- base_salary(e, s), yearly_bonus(e, b), t = s + b, t >= 50000.
large_raise_given(e) :- -high_salaried_employee(e, old), +high_salaried_employee(e, new),
                        new * 10 >= old * 11.
.alert large_raise_given "{e}"
"""
STOCK = """
.decl part(p: symbol, have: number)
.decl stock_required(p: symbol, need: number)
.decl batch_size(p: symbol, n: number)
.decl reorder(p: symbol, n: number)
inventory_shortage(p) :- +part(p, have), stock_required@new(p, need), have <= need.
+reorder(p, n) :- inventory_shortage(p), batch_size(p, n).
"""
VESSELS = """
.decl vessels_in_use(v: symbol)
.decl temp(v: symbol, t: number)
.decl max_temps(v: symbol, t: number)
.decl pressure(v: symbol, p: number)
.decl max_pressure(v: symbol, p: number)
.decl vessel_spec_violation(v: symbol) virtual
vessel_spec_violation(v) :- temp(v, t), max_temps(v, m), t > m.
vessel_spec_violation(v) :- pressure(v, p), max_pressure(v, m), p > m.
.decl abnormal_vessel_condition(v: symbol) virtual
abnormal_vessel_condition(v) :- vessels_in_use(v), vessel_spec_violation(v).
possible_vessel_failure("v5") :- +abnormal_vessel_condition("v5").
.alert possible_vessel_failure "vessel {c1}"
"""


def pairs(text: str) -> Rows:
    return {tuple(each) for each in text.split()}


def told(outcome: Outcome) -> list[str]:
    return [each.message for each in outcome.alerts]


# ----------------------------------------------------------------------------- the paper's examples


def test_connection_lost() -> None:
    base = {"direct_link": pairs("ab bc ac cd")}
    outcome = react(LINKS, base, [("-", "direct_link", ("a", "c"))])
    assert told(outcome) == []  # b is still between them
    outcome = react(LINKS, base, [("-", "direct_link", ("c", "d"))])
    assert told(outcome) == ["lost a -> d", "lost b -> d", "lost c -> d"]
    assert outcome.changes["link"] == (set(), pairs("ad bd cd"))


def test_large_raise_given() -> None:
    base = {
        "base_salary": {("ann", 50_000), ("bob", 60_000), ("cy", 40_000), ("di", 70_000)},
        "yearly_bonus": {("ann", 0), ("bob", 0), ("cy", 0), ("di", 0)},
    }
    operations = [
        ("-", "base_salary", ("ann", 50_000)),
        ("+", "base_salary", ("ann", 55_000)),  # ten percent
        ("-", "yearly_bonus", ("bob", 0)),
        ("+", "yearly_bonus", ("bob", 5_999)),  # less than ten percent
        ("-", "base_salary", ("cy", 40_000)),
        ("+", "base_salary", ("cy", 90_000)),  # was not high-salaried
        ("-", "base_salary", ("di", 70_000)),
        ("+", "base_salary", ("di", 60_000)),
        ("-", "yearly_bonus", ("di", 0)),
        ("+", "yearly_bonus", ("di", 17_000)),
    ]
    assert told(react(SALARIES, base, operations)) == ["ann", "di"]


def test_inventory_shortage_reads_the_new_state() -> None:
    base = {
        "part": {("nut", 50), ("bolt", 50)},
        "stock_required": {("nut", 10), ("bolt", 10)},
        "batch_size": {("nut", 100), ("bolt", 200)},
    }
    operations = [
        ("-", "part", ("nut", 50)),
        ("+", "part", ("nut", 5)),
        ("-", "part", ("bolt", 50)),
        ("+", "part", ("bolt", 8)),
        ("-", "stock_required", ("bolt", 10)),
        ("+", "stock_required", ("bolt", 7)),
    ]
    outcome = react(STOCK, base, operations)
    assert outcome.events == {"inventory_shortage": {("nut",)}}
    assert outcome.changes["reorder"] == ({("nut", 100)}, set())
    assert outcome.cascade == (frozenset({("+", "reorder", ("nut", 100))}),)


def test_only_vessel_v5_is_watched() -> None:
    base = {
        "vessels_in_use": {("v4",), ("v5",)},
        "max_temps": {("v4", 100), ("v5", 100)},
        "max_pressure": {("v5", 8)},
        "temp": {("v4", 90), ("v5", 90)},
    }
    heated = [("+", "temp", ("v4", 120))]
    assert told(react(VESSELS, base, heated)) == []
    outcome = react(VESSELS, base, [*heated, ("+", "pressure", ("v5", 9))])
    assert outcome.alerts == (Alert("possible_vessel_failure", ("v5",), "vessel v5"),)
    assert told(react(VESSELS, outcome.base, [("+", "temp", ("v5", 101))])) == []  # known


# -------------------------------------------------------------------------------- event predicates

EDGES = ".decl e(x: number, y: number) .decl r(x: number, y: number) "


def events(rules: str, base: Rows, *operations: tuple[str, tuple[Any, ...]]) -> dict[str, Rows]:
    done = [(sign, "e", row) for sign, row in operations]
    return dict(react(EDGES + rules, {"e": base}, done).events)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("v(x) :- +e(x, _).", {(3,)}),
        ("v(x) :- -e(x, _).", {(1,)}),
        ("v(x) :- +e(x, _), !e@old(x, _).", {(3,)}),
        ("v(y) :- -e(x, y), e@old(y, _).", {(2,)}),
        ("v(y) :- -e(x, y), e(y, _).", {(2,)}),
        ("v(x) :- e@old(x, _), +e(_, _).", {(1,), (2,)}),
        ("v(x) :- e@new(x, _), -e(_, _).", {(2,), (3,)}),
        ("v(n) :- -e(_, _), n = count : { e@old(_, _) }.", {(2,)}),
        ("v(n) :- n = count : { +e(_, _) }.", {(1,)}),
        ("u(x) :- +e(x, _). v(y) :- e(y, _), -e(_, y), !u(y).", {(2,)}),
        ("u(x, y) :- +e(x, y). u(x, z) :- u(x, y), e(y, z). v(z) :- u(_, z).", {(1,)}),
    ],
)
def test_events(rules: str, expected: Rows) -> None:
    found = events(rules, {(1, 2), (2, 3)}, ("-", (1, 2)), ("+", (3, 1)))
    assert found["v"] == expected


def test_recursive_events() -> None:
    rules = "lost(x) :- -e(_, x). lost(y) :- lost(x), e@old(x, y), !kept(y). kept(9) :- -e(_, _)."
    found = events(rules, {(1, 2), (2, 3), (3, 9), (9, 4)}, ("-", (1, 2)))
    assert found["lost"] == {(2,), (3,)}


def test_no_net_change_fires_nothing() -> None:
    rules = "v(x) :- e@old(x, _)."
    assert events(rules, {(1, 2)}, ("-", (1, 2)), ("+", (1, 2))) == {}
    assert events(rules, {(1, 2)}, ("+", (1, 2))) == {}
    assert events(rules, {(1, 2)}, ("-", (1, 2)))["v"] == {(1,)}


def test_messages() -> None:
    text = """
    .decl p(a: symbol?, b: decimal(6,2), c: bool)
    .alert p "{{{a}}} {b}, {c}"
    """
    row = (None, 2, True)
    assert told(react(text, {}, [("+", "p", row)])) == ["{null} 2.00, true"]


# -------------------------------------------------------------------------------------- constraints

ACCOUNTS = """
.decl account(id: number, b: number)
.decl overdrawn(id: number)
overdrawn(i) :- account(i, b), b < 0.
.abort overdrawn "account {id} would be negative"
.alert account "{id}: {b}"
"""


def test_a_constraint_leaves_everything_as_it_was() -> None:
    base = {"account": {(1, 5)}}
    outcome = react(ACCOUNTS, base, [("+", "account", (2, -1)), ("+", "account", (3, 1))])
    assert outcome.is_aborted
    assert [each.message for each in outcome.violations] == ["account 2 would be negative"]
    assert (outcome.base, dict(outcome.changes), outcome.alerts) == (base, {}, ())


def test_a_constraint_is_judged_at_the_end_and_on_what_is_new() -> None:
    base = {"account": {(1, -5)}}
    passing = [("+", "account", (2, -1)), ("-", "account", (2, -1)), ("+", "account", (2, 1))]
    assert told(react(ACCOUNTS, base, passing)) == ["2: 1"]
    changed = [("-", "account", (1, -5)), ("+", "account", (1, -6))]
    assert not react(ACCOUNTS, base, changed).is_aborted  # `overdrawn(1)` is not new


# ----------------------------------------------------------------------------------------- triggers


def test_deletes_come_before_inserts() -> None:
    text = EDGES + "+r(x, y) :- +e(x, y). -r(x, y) :- +e(x, y)."
    outcome = react(text, {"r": {(1, 1)}}, [("+", "e", (1, 1)), ("+", "e", (2, 2))])
    assert outcome.base["r"] == {(1, 1), (2, 2)}


def test_a_round_sees_the_changes_of_the_round_before() -> None:
    text = """
    .decl a(x: number) .decl b(x: number) .decl c(x: number) .decl d(x: number)
    +b(x) :- +a(x).
    +c(x) :- +b(x), !b@old(x).
    +d(x) :- +c(x), !first(x).
    first(x) :- +a(x).
    both(x) :- +a(x), +c(x).
    .alert both "{x}"
    """
    outcome = react(text, {}, [("+", "a", (1,))])
    assert outcome.base == {name: {(1,)} for name in "abcd"}
    assert len(outcome.cascade) == 3
    assert told(outcome) == ["1"]  # the net change has both, no round has


def test_an_endless_cascade_and_one_that_is_too_long() -> None:
    ping = EDGES + "-r(x, y) :- +r(x, y). +r(x, y) :- -r(x, y)."
    with pytest.raises(OracleLimit):
        react(ping, {}, [("+", "r", (1, 2))])
    count = EDGES + "+e(x + 1, y) :- +e(x, y), x < y."
    assert len(react(count, {}, [("+", "e", (0, 9))]).cascade) == 9
    with pytest.raises(OracleLimit):
        react(count, {}, [("+", "e", (0, 9))], rounds=5)


def test_a_cascade_that_undoes_everything_fires_nothing() -> None:
    text = EDGES + '-e(x, y) :- +e(x, y). .alert e "{x}" .abort e "{x}"'
    outcome = react(text, {}, [("+", "e", (1, 2))])
    assert (dict(outcome.changes), outcome.alerts, outcome.is_aborted) == ({}, (), False)


def test_a_failing_event_rule_is_an_error() -> None:
    with pytest.raises(OracleError):
        events("v(z) :- +e(x, y), z = x / y.", set(), ("+", (1, 0)))


def test_rules_that_come_and_go() -> None:
    before = EDGES + "r(x, y) :- e(x, y). gone(x) :- -r(x, _)."
    after = EDGES + "r(y, x) :- e(x, y). gone(x) :- -r(x, _)."
    outcome = react(after, {"e": {(1, 2)}}, [], before=before)
    assert outcome.events == {"gone": {(1,)}}
    assert outcome.changes["r"] == ({(2, 1)}, {(1, 2)})


def test_triggers_make_no_recursion() -> None:
    """The greatest of each group stays, though a trigger changes what the groups are made of."""
    program = """
        .decl p(x: number, y: number)
        .decl greatest(n: number)
        greatest(n) :- p(x, _), n = max y : { p(x, y) }.
        -p(n, 0) :- +greatest(n).
    """
    found = react(program, {}, [("+", "p", (1, 2)), ("+", "p", (2, 5))])
    assert found.changes["greatest"] == ({(2,), (5,)}, set())
