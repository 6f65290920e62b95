"""Readers: answers are a function of what was granted, and say no more."""

from __future__ import annotations

import random

import pytest

import corollary
from corollary.errors import AccessError
from support.maintained_database import apply
from support.selection import examples

TYPES = "(x: number, y: number)"
DECLARED = "\n".join(f".decl {name}{TYPES}" for name in ("e", "h", "p", "q", "s"))
VISIBLE = (
    "p(x, y) :- e(x, y).",
    "p(x, z) :- p(x, y), e(y, z).",
    "q(x, y) :- p(x, y), !e(y, x), x < y.",
    "q(x, n) :- e(x, _), n = count : { p(x, _) }.",
)
HIDDEN = (
    "p(x, y) :- h(x, y).",
    "p(y, x) :- s(x, y), h(x, _).",
    "q(x, y) :- h(x, y), p(y, x).",
    "s(x, y) :- h(y, x), p(x, y).",
)
GRANTED = ("e", "p", "q")
Rows = set[tuple[int, int]]


def opened(rules: tuple[str, ...], base: dict[str, Rows]) -> corollary.Database:
    db = corollary.open(None, engine="local")
    db.load(text="\n".join((DECLARED, *rules)))
    apply(db, (base, {}))
    db.grant("alice", *GRANTED)
    return db


def contents(db: corollary.Database) -> dict[str, Rows]:
    return {name: set(db.relation(name).rows()) for name in GRANTED}


def rendered(reader: corollary.Reader, goal: str, *, holds: bool) -> list[object]:
    """Return an answer in all its forms."""
    if holds:
        proof = reader.why(goal)
        return [proof.to_json(), proof.to_text(), proof.to_svg(), proof._repr_html_()]
    absence = reader.why_not(goal, insertions=1)
    return [absence.to_json(), absence.to_text(), absence.to_svg(), absence._repr_html_()]


def rows(generator: random.Random, count: int) -> Rows:
    return {(generator.randrange(4), generator.randrange(4)) for _ in range(count)}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(examples(1, 6)))
def test_equal_in_what_was_granted_equal_in_bytes(seed: int) -> None:
    """The other database derives the granted relations in another way, from other data."""
    generator = random.Random(seed)
    base = {"e": rows(generator, 4), "h": rows(generator, 3)}
    one = opened((*VISIBLE, *generator.sample(HIDDEN, 3)), base)
    seen = contents(one)
    # All of it is hidden data here, behind rules of other names and numbers.
    other = corollary.open(None, engine="local")
    hidden = "\n".join(f".decl {name}_hidden{TYPES}" for name in GRANTED)
    copied = "\n".join(f"{name}(x, y) :- {name}_hidden(x, y)." for name in GRANTED)
    other.load(text="\n".join((hidden, DECLARED, "s(x, y) :- h(y, x).", copied, *VISIBLE)))
    apply(other, ({f"{name}_hidden": found for name, found in seen.items()}, {}))
    other.grant("alice", *GRANTED)
    assert contents(other) == seen
    for name, found in seen.items():
        some = sorted(found)[:3]
        for row in (*some, (3, 9)):
            goal = f"{name}({row[0]}, {row[1]})"
            answers = [
                rendered(db.reader("alice"), goal, holds=row in found) for db in (one, other)
            ]
            assert answers[0] == answers[1], goal
    for db in (one, other):
        db.close()


def test_what_is_under_a_hidden_rule_is_sealed() -> None:
    db = opened((HIDDEN[0], *VISIBLE), {"e": {(1, 2)}, "h": {(2, 3), (5, 6)}})
    alice = db.reader("alice")
    assert str(alice.why("p(5, 6)")) == (
        "p(5, 6)  sealed\nheight 0, 1 tuple; what is under it may not be seen\n"
    )
    assert str(alice.why("p(1, 2)")) == (
        "p(1, 2)     rule 1\n+- e(1, 2)  sealed\nheight 1, 2 tuples; no proof is lower\n"
    )
    assert "h(" not in str(alice.why("p(2, 3)"))
    assert db.why("p(5, 6)").rules[1].text == HIDDEN[0]


def test_tuples_that_only_need_each_other_are_sealed() -> None:
    rules = ("p(x, y) :- p(y, x).", "p(x, y) :- h(x, y).", "q(x, y) :- p(x, y).")
    alice = opened(rules, {"h": {(1, 2)}}).reader("alice")
    assert [node.kind for node in alice.why("q(2, 1)").nodes] == ["derived", "sealed"]
    assert str(alice.why("p(2, 1)")).startswith("p(2, 1)  sealed\n")


def test_rules_and_attempts_name_granted_relations_only() -> None:
    db = opened((*VISIBLE, *HIDDEN), {"e": {(1, 2)}, "h": {(2, 3)}})
    alice = db.reader("alice")
    found = alice.why_not("p(2, 9)", insertions=2)
    assert {each.rule for each in found.attempts} == {1, 2}
    assert found.insertions is not None
    assert not found.insertions.complete
    text = found.to_text() + repr(found.to_json())
    assert "h(" not in text
    assert "s(" not in text


def test_what_was_not_granted_is_refused() -> None:
    alice = opened(VISIBLE, {"e": {(1, 2)}}).reader("alice")
    for ask in (alice.why, alice.why_not):
        with pytest.raises(AccessError, match="C1040"):
            ask("h(1, 2)")
    for ask in (alice.why_added, alice.why_removed):
        with pytest.raises(AccessError, match="C1041"):
            ask("p(1, 2)", 1)
    with pytest.raises(AccessError, match="C1041"):
        alice.what_if("e(1, 2)")
