"""Rules that come and go while there is data: in any order, of any kind, or by editing."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from corollary.database.database import Database
from corollary.errors import InputError
from support.maintained_database import (
    ALGORITHMS,
    MIXED,
    Judged,
    apply,
    changes_of,
    closure,
    held,
    insert,
    opened,
    pairs,
    rules_of,
)
from support.selection import sampled

EVERY = (*ALGORITHMS, MIXED)
BASE, LEFT, RIGHT = (
    "reach(x, y) :- edge(x, y).",
    "reach(x, z) :- reach(x, y), edge(y, z).",
    "reach(x, z) :- edge(x, y), reach(y, z).",
)
GRAPH = pairs("ab bc ca cd de")


def judged_with(text: str, algorithm: str, **facts: Any) -> Judged:
    """A database under a program, filled."""
    judged = Judged(text, algorithm)
    judged.step((facts, {}))
    return judged


@pytest.fixture(params=sampled(EVERY, 4, ["auto"]))
def algorithm(request: pytest.FixtureRequest) -> str:
    """Every algorithm in turn."""
    return str(request.param)


# ---------------------------------------------------------------------------------------- recursion


@pytest.mark.parametrize("order", list(permutations((BASE, LEFT, RIGHT))))
def test_rules_of_a_recursion_come_and_go_in_any_order(order: Any, algorithm: str) -> None:
    declarations = "\n".join(line for line in closure().splitlines() if line.startswith("."))
    judged = judged_with(declarations + "\n", algorithm, edge=GRAPH)
    for rule in order:
        judged.step(add=[rule])
    judged.step(({"edge": pairs("ea")}, {"edge": pairs("bc")}))
    for rule in order:
        judged.step(({"edge": pairs("fa")}, {"edge": pairs("fb")}), remove=[rule])
        judged.step(({"edge": pairs("fb")}, {"edge": pairs("fa")}))
    assert judged.expected["reach"] == set()
    assert judged.counts["changed"] >= 4


def test_the_base_rule_of_a_recursion_may_go_first(algorithm: str) -> None:
    judged = judged_with(closure(), algorithm, edge=GRAPH)
    tx = judged.step(remove=[BASE])
    assert len(changes_of(tx, "reach")[1]) == 16
    judged.step(({"edge": pairs("xy")}, {"edge": pairs("ab")}))
    judged.step(({"edge": pairs("ab")}, {}), add=[BASE])
    judged.step(({}, {"edge": pairs("ca")}), remove=[BASE, LEFT], add=[RIGHT])
    judged.step(add=[BASE])
    assert judged.counts["changed"] == 5


MUTUAL = """
.decl e(x: number, y: number)
.decl start(x: number)
.decl p(x: number)
.decl q(x: number)
.decl r(x: number)
p(x) :- start(x).
q(y) :- p(x), e(x, y).
r(y) :- q(x), e(x, y).
r(y) :- r(x), e(x, y), y > 2.
"""
RING = [(0, 1), (1, 2), (2, 3), (3, 0), (1, 0)]


def test_strata_merge_and_split(algorithm: str) -> None:
    judged = judged_with(MUTUAL, algorithm, e=RING, start=[(0,)])
    judged.step(add=["p(y) :- r(x), e(x, y)."])  # p, q and r are one stratum now
    judged.step(({}, {"start": [(0,)]}))
    judged.step(({"start": [(1,)]}, {"e": [(1, 0)]}))
    judged.step(({}, {"e": [(2, 3)]}), add=["q(x) :- r(x)."])
    judged.step(({"e": [(2, 3)]}, {}), remove=["q(y) :- p(x), e(x, y)."])
    judged.step(({"start": [(2,)]}, {"start": [(1,)]}), add=["q(y) :- p(x), e(x, y)."])
    judged.step(({}, {"e": [(3, 0)]}), remove=["p(y) :- r(x), e(x, y)."])  # three strata again
    judged.step(({}, {"start": [(2,)]}))
    assert judged.expected["p"] == judged.expected["q"] == judged.expected["r"] == set()
    assert judged.counts["changed"] >= 6


def test_a_relation_becomes_recursive_and_plain_again(algorithm: str) -> None:
    text = """
.decl e(x: number, y: number)
.decl p(x: number, y: number)
p(x, y) :- e(x, y).
.decl above(x: number)
above(x) :- p(x, _), !p(x, x).
"""
    judged = judged_with(text, algorithm, e=RING)
    rule = "p(x, z) :- p(x, y), p(y, z)."
    judged.step(({}, {"e": [(1, 0)]}), add=[rule])
    judged.step(({"e": [(1, 1)]}, {"e": [(3, 0)]}))
    judged.step(({"e": [(0, 3)]}, {}), remove=[rule])
    judged.step(({"e": [(0, 0)]}, {"e": [(1, 1)]}))
    assert judged.counts["changed"] == 5


# ------------------------------------------------------------------------- other kinds of relations

AGGREGATES = """
.decl v(k: symbol, x: number)
.decl bad(k: symbol, x: number)
.decl report(what: symbol, n: number)
report("sum", n) :- n = sum x : { v(_, x) }.
report("count", n) :- n = count : { v(_, _) }.
report("max", n) :- n = max x : { v(k, x), !bad(k, _) }.
report("per", n) :- v(k, _), n = count : { v(k, _) }.
.decl fine(k: symbol)
fine(k) :- v(k, _), !bad(k, _).
"""


def test_numbers_of_made_up_relations_shift(algorithm: str) -> None:
    rows = [("a", 1), ("a", 2), ("b", 5), ("c", 2)]
    judged = judged_with(AGGREGATES, algorithm, v=rows, bad=[("b", 1), ("b", 2)])
    rules = [rule for rule in rules_of(AGGREGATES) if rule.startswith("report")]
    judged.step(({}, {"v": [("a", 2)]}), remove=rules[:1])
    judged.step(({"v": [("c", 9)]}, {"bad": [("b", 1)]}), remove=rules[1:2])
    judged.step(({"v": [("a", 2)]}, {"bad": [("b", 2)]}), add=rules[:1])
    judged.step(({"bad": [("c", 0)]}, {}), remove=rules[2:3], add=rules[1:2])
    judged.step(remove=["fine(k) :- v(k, _), !bad(k, _)."])
    judged.step(({}, {"v": [("b", 5)]}), remove=rules[3:], add=rules[2:3])
    judged.step(add=["fine(k) :- v(k, _), !bad(k, _).", *rules[3:]])
    assert judged.counts["changed"] == 7
    text = "\n".join([*AGGREGATES.splitlines()[:4], *reversed(AGGREGATES.splitlines()[4:8])])
    judged.edit(text + "\n" + "\n".join(AGGREGATES.splitlines()[8:]) + "\n")
    judged.step(({"v": [("d", 1)]}, {"v": [("a", 1)]}))


@pytest.mark.slow
def test_one_rule_of_two_with_the_same_aggregate_goes(algorithm: str) -> None:
    text = """
.decl b(x: number)
.decl p(x: float)
.decl q(x: number)
p(v) :- v = mean w : { b(w) }.
p(u) :- b(_), u = mean w : { b(w) }.
q(x) :- b(x), !b(_).
q(x) :- b(x), x > 1, !b(_).
"""
    judged = judged_with(text, algorithm, b=[(1,), (2,)])
    for rule in list(rules_of(text)):
        judged.step(({"b": [(3,)]}, {}), remove=[rule])
        judged.step(({}, {"b": [(3,)]}), add=[rule])


def test_a_virtual_recursion_loses_all_its_rules(algorithm: str) -> None:
    text = (
        ".decl edge(x: symbol, y: symbol)\n.decl reach(x: symbol, y: symbol) virtual\n"
        f"{BASE}\n{LEFT}\n"
    )
    judged = Judged(text, algorithm, ("reach",))
    judged.step(({"edge": GRAPH}, {}))
    judged.step(({"edge": pairs("xy")}, {"edge": pairs("ab")}), remove=[BASE, LEFT])
    judged.step(add=[BASE, LEFT])


def test_facts_of_a_virtual_relation_that_gets_a_rule(algorithm: str) -> None:
    rule = "p(x) :- q(x)."
    text = ".decl q(x: number)\n.decl p(x: number) virtual\np(0).\n"
    judged = Judged(text, algorithm, ("p",))
    judged.step(({"q": [(1,)]}, {}))
    judged.step(add=[rule])
    judged.step(({"q": [(2,)]}, {"q": [(1,)]}))


def test_the_aggregate_of_a_virtual_relation_goes_with_its_rule(algorithm: str) -> None:
    rule = "most(x, n) :- node(x), n = max y : { edge(x, y) }."
    text = (
        ".decl node(x: number)\n.decl edge(x: number, y: number)\n"
        f".decl most(x: number, n: number) virtual\n{rule}\nmost(x, 0) :- node(x).\n"
    )
    judged = Judged(text, algorithm, ("most",))
    judged.step(({"node": [(1,), (2,)], "edge": [(1, 2), (1, 3)]}, {}))
    judged.step(({"node": [(3,)]}, {"node": [(1,)]}), remove=[rule])
    judged.step(add=[rule])


def test_a_base_relation_that_gets_a_rule_keeps_its_tuples(algorithm: str) -> None:
    text = """
.decl e(x: number, y: number)
.decl f(x: number, y: number)
.decl far(x: number)
far(x) :- e(x, y), !e(y, _).
"""
    judged = judged_with(text, algorithm, e=[(1, 2), (2, 3)], f=[(2, 3), (3, 4)])
    tx = judged.step(add=["e(x, y) :- f(x, y)."])
    assert changes_of(tx, "e") == ([(3, 4)], [])
    judged.step(({"e": [(9, 9)]}, {"e": [(2, 3)]}))  # which is still derived
    judged.step(({}, {"f": [(2, 3)]}))
    judged.step(({}, {"e": [(1, 2)]}), add=["e(x, z) :- e(x, y), e(y, z)."])
    judged.step(({"e": [(4, 1)]}, {}), remove=["e(x, y) :- f(x, y)."])
    tx = judged.step(remove=["e(x, z) :- e(x, y), e(y, z)."])
    assert judged.expected["e"] == {(9, 9), (4, 1)}
    judged.step(({"e": [(1, 2)]}, {"e": [(4, 1)]}))
    assert judged.counts["changed"] >= 5


def test_a_relation_that_loses_its_rules_is_a_base_relation(algorithm: str) -> None:
    text = closure() + ".decl pair(x: symbol, y: symbol)\npair(x, y) :- reach(x, y), reach(y, x).\n"
    judged = judged_with(text, algorithm, edge=GRAPH)
    judged.step(remove=[BASE, LEFT])
    assert judged.expected["reach"] == judged.expected["pair"] == set()
    judged.step(({"reach": pairs("xy yx")}, {}))
    assert judged.expected["pair"] == set(pairs("xy yx"))
    judged.step(({}, {"reach": pairs("xy")}), add=[BASE])
    judged.step(({"reach": pairs("ea")}, {"edge": pairs("ab")}), add=[LEFT])
    judged.step(({}, {"reach": pairs("ea")}), remove=[BASE])
    assert judged.counts["changed"] == 6


def test_new_relations_come_with_an_edited_text(algorithm: str) -> None:
    judged = judged_with(closure(), algorithm, edge=GRAPH)
    text = closure() + ".decl loop(x: symbol)\nloop(x) :- reach(x, x).\n"
    text += ".decl size(n: number)\nsize(n) :- n = count : { loop(_) }.\n"
    tx = judged.edit(text)
    assert changes_of(tx, "loop") == ([("a",), ("b",), ("c",)], [])
    judged.step(({}, {"edge": pairs("ca")}))
    judged.edit(text.replace("loop(x) :- reach(x, x).", "loop(x) :- reach(x, _), !reach(_, x)."))
    judged.step(({"edge": pairs("ca")}, {}))


# ------------------------------------------------------------------------------------- equivalences


def state_of(db: Database) -> dict[str, Any]:
    """What a database holds in the relations that its program declares."""
    relations = held(db)["relations"]
    return {each.name: relations[each.name] for each in db.program.declarations}


@pytest.mark.parametrize(
    "rule",
    [
        "reach(y, x) :- edge(x, y).",
        "reach(x, x) :- edge(x, _).",
        "edge(x, y) :- reach(y, x), x < y.",
        "reach(x, y) :- edge(x, _), edge(_, y), 4 < count : { edge(_, _) }.",
        'reach("q", x) :- edge(x, _), !edge(_, x).',
        'reach("p", "q").',
    ],
)
def test_adding_a_rule_and_removing_it_changes_nothing(rule: str, algorithm: str) -> None:
    judged = judged_with(closure(), algorithm, edge=[*GRAPH, ("r", "a")])
    before = state_of(judged.db)
    added = judged.step(add=[rule])
    removed = judged.step(remove=[rule])
    assert changes_of(added, "reach") == changes_of(removed, "reach")[::-1]
    assert state_of(judged.db) == before
    with judged.db.transaction() as tx:
        tx.add_rule(rule)
        tx.remove_rule(rule)
    assert not list(tx.changes)
    judged.judge_state()
    judged.step(({"edge": pairs("ea")}, {"edge": pairs("bc")}))


def test_a_rule_may_be_there_twice(algorithm: str) -> None:
    judged = judged_with(closure(), algorithm, edge=GRAPH)
    judged.step(add=[BASE])
    judged.step(({}, {"edge": pairs("ab")}), add=["reach(from, to) :- edge(from, to)."])
    judged.step(({"edge": pairs("ab")}, {}), remove=[BASE])
    with judged.db.transaction() as tx:  # the names of variables do not matter
        tx.remove_rule("reach(u, v) :- edge(u, v).")
    assert not list(tx.changes)
    with judged.db.transaction() as tx:
        tx.remove_rule(BASE)
    assert tx.changes["reach"].counts == (0, 16)
    with pytest.raises(InputError, match="C0911"):
        judged.db.transaction().remove_rule(BASE)


EDITS = [
    AGGREGATES.replace("max", "min"),
    AGGREGATES.replace(', !bad(k, _) }.\nreport("per"', ' }.\nreport("per"'),
    AGGREGATES.replace('report("sum", n) :- n = sum x : { v(_, x) }.\n', ""),
    AGGREGATES + 'report("bad", n) :- n = count : { bad(_, _) }.\n',
    AGGREGATES + "v(k, x) :- bad(k, x), !fine(k).\n".replace("!fine(k)", "x > 1"),
    AGGREGATES,
]


@pytest.mark.slow
def test_editing_the_text_is_changing_the_rules(algorithm: str) -> None:
    facts = {"v": [("a", 1), ("a", 2), ("b", 5)], "bad": [("b", 1), ("c", 2)]}
    edited = judged_with(AGGREGATES, algorithm, **facts)
    changed = judged_with(AGGREGATES, algorithm, **facts)
    for text in EDITS:
        old, new = list(rules_of(changed.text)), list(rules_of(text))
        one = edited.edit(text)
        other = changed.step(
            remove=[rule for rule in old if rule not in new],
            add=[rule for rule in new if rule not in old],
        )
        for name in edited.expected:
            assert changes_of(one, name) == changes_of(other, name)
        edited.step(({"v": [("c", 7)]}, {"bad": [("b", 1)]}))
        changed.step(({"v": [("c", 7)]}, {"bad": [("b", 1)]}))
        edited.step(({"bad": [("b", 1)]}, {"v": [("c", 7)]}))
        changed.step(({"bad": [("b", 1)]}, {"v": [("c", 7)]}))
    tx = edited.db.load(text=AGGREGATES)
    assert not list(tx.changes)


def test_facts_in_the_text_may_be_edited(algorithm: str) -> None:
    text = closure() + 'edge("a", "b").\nedge("b", "c").\nreach("x", "y").\n'
    judged = Judged(text, algorithm)
    judged.step(({"edge": pairs("cd ya")}, {}))
    judged.edit(text.replace('edge("b", "c").\n', ""))
    judged.edit(text.replace('edge("b", "c").\n', 'edge("d", "e").\n'))
    judged.edit(text.replace('reach("x", "y").\n', ""))
    judged.edit(text.replace('edge("a", "b").\n', 'edge("a", "a").\n'))
    judged.step(({"edge": pairs("ab")}, {"edge": pairs("cd")}))
    judged.step(add=['edge("c", "d").', 'reach("z", "a").'], remove=['edge("a", "a").'])
    assert judged.counts["changed"] == judged.counts["steps"] == 7


# ------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("reach(x, y) :- nowhere(x, y).", "C02"),
        ("reach(x, y) :- edge(x, _).", "C04"),
        ("reach(x, 1) :- edge(x, _).", "C03"),
        ("reach(x) :- edge(x, _).", "C02"),
        ("reach(x, y) :- edge(x, y), !reach(y, x).", "C0501"),
        ("edge(x, y) :- edge(x, y), 1 < count : { reach(x, _) }.", "C0505"),
        ("reach(x, y) :- .", "C01"),
        (".decl p(x: number)", "C01"),
        ("reach(x, y) :- edge(x, y). reach(x, y) :- edge(y, x).", "C01"),
        ("reach(x, y).", "C04"),
    ],
)
def test_bad_rules_change_nothing(rule: str, code: str) -> None:
    db = opened(closure())
    insert(db, "edge", GRAPH)
    before = held(db)
    with pytest.raises(InputError, match=code):
        apply(db, ({"edge": pairs("zz")}, {"edge": pairs("ab")}), add=[rule])
    assert held(db) == before
    assert insert(db, "edge", pairs("zz")).changes["reach"].counts == (1, 0)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (closure().replace("reach(x: symbol", "reach(x: number"), "C0"),
        (closure().replace(".decl edge(x: symbol", ".decl edge(a: symbol"), "C0912"),
        (closure("left-linear", "number"), "C0912"),
        ("", "C0913"),
        (closure().replace(BASE, "reach(x, y) :- edge(x, z)."), "C04"),
    ],
)
def test_bad_edits_change_nothing(text: str, code: str) -> None:
    db = opened(closure())
    insert(db, "edge", GRAPH)
    before = held(db)
    with pytest.raises(InputError, match=code):
        db.load(text=text)
    assert held(db) == before
    assert insert(db, "edge", pairs("zz")).changes["reach"].counts == (1, 0)


def test_removing_a_rule_that_is_not_there_names_those_that_are() -> None:
    db = opened(closure())
    with pytest.raises(InputError, match="C0911") as error:
        db.transaction().remove_rule("reach(x, y) :- edge(y, x).")
    assert BASE in str(error.value)
