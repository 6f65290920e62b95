"""What differs between two commits, compared with the difference of the two states."""

import random
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.database.access.principals import OWNER, AccessRole, Principal
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.handlers.dispatch import handle
from corollary.serve.requests import DifferenceRequest
from corollary.serve.service import ServiceLimits

PROGRAM = """
.decl edge(x: number, y: number?)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y), y = y.
path(x, y) :- path(x, z), edge(z, y), y = y.
.decl alarm()
alarm() :- path(x, x).
.decl twin(x: number) virtual
twin(x) :- edge(x, y), edge(y, x).
"""


def differences(context: HandlerContext, since: int, at: int, **other: Any) -> dict[str, Any]:
    """Return the changes between two commits."""
    request = DifferenceRequest(since, at=at, **other)
    changes: dict[str, Any] = handle(context, OWNER, request).json["changes"]
    return changes


@pytest.fixture
def history(tmp_path: Path) -> Any:
    """A warehouse with eight commits, and what its stored relations hold after each."""
    chance = random.Random(5)
    with corollary.open(tmp_path / "warehouse", engine="local") as db:
        db.load(text=PROGRAM)
        states = {}
        while len(states) < 8:
            edges = {tuple(row) for row in db.relation("edge").rows()}
            row = (chance.randrange(4), chance.choice([None, 0, 1, 2, 3]))
            with db.transaction() as transaction:
                (transaction.delete if row in edges else transaction.insert)("edge", [row])
            names = ("edge", "path", "alarm")
            states[db.commits] = {
                name: {tuple(row) for row in db.relation(name).rows()} for name in names
            }
        yield HandlerContext(db, ServiceLimits()), states


@pytest.mark.slow
def test_the_difference_is_that_of_the_states(history: Any) -> None:
    context, states = history
    for since in states:
        for at in states:
            found = differences(context, since, at)
            expected = {}
            for name in ("edge", "path", "alarm"):
                came = states[at][name] - states[since][name] if since < at else set()
                went = states[since][name] - states[at][name] if since < at else set()
                if came or went:
                    expected[name] = (came, went)
            shown = {
                name: ({tuple(r) for r in each["added"]}, {tuple(r) for r in each["removed"]})
                for name, each in found.items()
                if name != "twin"
            }
            assert shown == expected, (since, at)
            assert {name: each["counts"] for name, each in found.items() if name != "twin"} == {
                name: [len(came), len(went)] for name, (came, went) in expected.items()
            }


def test_a_limit_leaves_the_counts(history: Any) -> None:
    context, states = history
    first, last = min(states), max(states)
    whole, cut = differences(context, first, last), differences(context, first, last, limit=0)
    assert {name: each["counts"] for name, each in whole.items()} == {
        name: each["counts"] for name, each in cut.items()
    }
    assert all(
        each["added"] == each["removed"] == [] for name, each in cut.items() if name != "alarm"
    )


def test_a_reader_sees_what_was_granted(history: Any) -> None:
    context, states = history
    context.database.grant("ann", "path")
    ann = Principal("ann", AccessRole.READ)
    found = handle(context, ann, DifferenceRequest(min(states), at=max(states))).json["changes"]
    assert set(found) <= {"path"}
