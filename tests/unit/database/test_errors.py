"""What a database refuses: each with its code and a cure, and nothing is changed."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import corollary
from corollary.core.engine import Limits
from corollary.database.database import Database
from corollary.database.program.loaded_program import read_facts
from corollary.database.transaction import Transaction
from corollary.errors import CorollaryError, InputError, LimitError
from support.diagnostic_codes import codes_in
from support.paths import TESTS

CLOSURE = """\
.decl edge(x: number, y: number)
.decl tc(x: number, y: number)
tc(x, y) :- edge(x, y).
tc(x, y) :- tc(x, w), edge(w, y).
"""
PROGRAM = f"""{CLOSURE}
.decl half(x: number, y: number)
half(x, 100 / x) :- edge(x, _).
.decl seen(at: timestamp, price: decimal(5, 2)?, who: symbol)
"""


@pytest.fixture
def db() -> Database:
    database = corollary.open(None, engine="local")
    database.load(text=PROGRAM)
    with database.transaction() as tx:
        tx.insert("edge", [(1, 2), (2, 3)])
    return database


def inserted(relation: str, rows: Any) -> Callable[[Transaction], None]:
    return lambda tx: tx.insert(relation, rows)


def removed(rule: str) -> Callable[[Transaction], None]:
    return lambda tx: tx.remove_rule(rule)


NOW = datetime(2026, 11, 15, tzinfo=UTC)
NULL = pa.table({"x": pa.array([1, None]), "y": pa.array([1, 2])})

ROWS: dict[str, tuple[str, Any, str]] = {
    "too few values": ("edge", [(1, 2), (1,)], "Row 2 has 1 value"),
    "a mapping without a column": ("edge", [{"x": 1}], "Row 1 for `edge` has no `y`"),
    "a mapping with another": ("edge", [{"x": 1, "y": 2, "z": 3}], "`z`, which is no column"),
    "one mapping": ("edge", {"x": 1, "y": 2}, "The rows for `edge` are a `dict`"),
    "a text": ("edge", "ab", "The rows for `edge` are a `str`"),
    "no rows at all": ("edge", 7, "The rows for `edge` are a `int`"),
    "bytes": ("edge", [b"ab"], "Row 1 has 1 value"),
    "an array of one dimension": ("edge", np.zeros(2), "has 1 dimension"),
    "an array of three columns": ("edge", np.zeros((2, 3)), "has 3 columns, `edge` has 2"),
    "an array of fractions": ("edge", np.full((2, 2), 0.5), "`0.5` is not a number"),
    "an array of texts": ("edge", np.array([["a", "b"]]), "has `string` in the column `x`"),
    "a frame of texts": ("edge", pd.DataFrame({"x": ["a"], "y": [1]}), "which is a `number`"),
    "a mixed frame": ("edge", pd.DataFrame({"x": [1, "a"], "y": [1, 2]}), "does not fit `edge`"),
    "NUL": ("seen", [(NOW, 1, "a\0b")], "remove NUL"),
    "NUL in Arrow": (
        "seen",
        pa.table({"at": [NOW], "price": [None], "who": ["\0"]}),
        "contains a NUL character",
    ),
    "some names in Arrow": ("edge", pa.table({"x": [1], "z": [1]}), "name them x, y, each once"),
    "a name twice": (
        "edge",
        pa.Table.from_arrays([pa.array([1])] * 3, ["x", "x", "y"]),
        "The columns of the table, `x`, `x`, `y`, are not those of `edge`",
    ),
    "wrong type": ("edge", [(1, "2")], "convert it to `int` first"),
    "truth for a number": ("edge", [(1, True)], "convert it to `int` first"),
    "out of range": ("edge", [(1, 2**63)], "in the range of `number`"),
    "null": ("edge", [(1, None)], "declare the column as `number?`"),
    "no time zone": ("seen", [(NOW.replace(tzinfo=None), None, "a")], "give it a time zone"),
    "too many digits": ("seen", [(NOW, 10**6, "a")], "in the range of `decimal"),
    "half a surrogate pair": ("seen", [(NOW, 1, "a\ud800")], r"'a\ud800' in the column `who`"),
    "null in Arrow": ("edge", NULL, "null in the column `x`"),
    "text in Arrow": ("edge", pa.table({"x": ["a"], "y": [1]}), "convert it to `int64` first"),
    "columns in Arrow": ("edge", pa.table({"z": [1]}), "has 1 column, `edge` has 2"),
}

RULES: dict[str, tuple[str, str, str]] = {
    "no such rule": ("tc(x, y) :- edge(y, x).", "C0911", "its rules are"),
    "no rule at all": ("edge(x, y) :- tc(x, y).", "C0911", "no rule for `edge`"),
    "no such fact": ("edge(1, 2).", "C0911", "with `delete`"),
}

REFUSED: dict[str, tuple[Callable[[Transaction], None], str, str]] = {
    **{name: (inserted(to, rows), "C0910", text) for name, (to, rows, text) in ROWS.items()},
    **{name: (removed(rule), code, text) for name, (rule, code, text) in RULES.items()},
    "derived": (inserted("tc", [(1, 2)]), "C0915", "or declare `.input tc`"),
    "derived, deleted": (lambda tx: tx.delete("tc", [(1, 2)]), "C0915", "change the relations"),
    "misspelt": (inserted("egde", []), "C0916", "did you mean `edge`?"),
    "unknown": (inserted("nothing_like_it", []), "C0916", "the relations are `edge`, `tc`"),
    "rule that does not fit": (lambda tx: tx.add_rule("tc(x, z) :- edge(x, _)."), "C0401", "`z`"),
    "no rule": (lambda tx: tx.add_rule("tc(x, y"), "C0101", "never closed"),
    "no value": (inserted("edge", [(0, 1)]), "C0810", "division by zero"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_transaction_that_is_refused_changes_nothing(case: str, db: Database) -> None:
    ask, code, fragment = REFUSED[case]
    commits = db.commits

    def attempt() -> None:
        with db.transaction() as tx:
            tx.insert("edge", [(3, 4)])
            ask(tx)

    fails(attempt, code, fragment)
    assert db.commits == commits
    assert sorted(db.relation("edge").rows()) == [(1, 2), (2, 3)]
    assert sorted(db.relation("tc").rows()) == [(1, 2), (1, 3), (2, 3)]


def fails(action: Callable[[], object], code: str, fragment: str) -> None:
    with pytest.raises(InputError) as raised:
        action()
    (found,) = raised.value.diagnostics
    assert found.code == code
    assert found.note
    assert fragment in str(raised.value)


def test_programs_that_cannot_follow(db: Database) -> None:
    other = PROGRAM.replace("edge(x: number, y: number)", "edge(x: number, z: number)")
    fails(lambda: db.load(text=other), "C0912", "was `(x: number, y: number)`, and is declared as")
    fails(lambda: db.load(text=".decl other(x: number)"), "C0913", "does not declare `edge`")
    assert db.commits == 2


def test_a_transaction_ends_once(db: Database) -> None:
    with db.transaction() as tx:
        tx.insert("edge", [(3, 4)])
    actions: tuple[Callable[[], None], ...] = (
        tx.commit,
        lambda: tx.insert("edge", [(4, 5)]),
        lambda: tx.delete("edge", []),
        lambda: tx.add_rule("edge(1, 1)."),
        lambda: tx.remove_rule("edge(1, 1)."),
    )
    for action in actions:
        fails(action, "C0914", "begin another one")
    assert len(db.relation("edge")) == 3


def test_an_error_in_the_block_rolls_back(db: Database) -> None:
    tx = db.transaction()
    with pytest.raises(RuntimeError, match="mine"), tx:
        raise _after(tx.insert("edge", [(3, 4)]), RuntimeError("mine"))
    assert len(db.relation("edge")) == 2
    fails(tx.commit, "C0914", "rolled back")


def _after(_: None, error: Exception) -> Exception:
    return error


def test_names_are_demanded_wherever_they_are_used(db: Database) -> None:
    for use in (db.relation, db.watch):
        fails(lambda use=use: use("egde"), "C0916", "did you mean `edge`?")  # type: ignore[misc]
    fails(lambda: corollary.open(None).relation("p"), "C0916", "load a program")
    fails(lambda: db.query("egde(x, y)"), "C0201", "did you mean `edge`?")
    with pytest.raises(KeyError, match=r"db\.watch"):
        db.transaction().changes["far"]


def test_algorithms(db: Database) -> None:
    fails(lambda: corollary.open(None, algorithm="magic"), "C0917", "auto, recompute, dred")
    fails(lambda: corollary.open(None, algorithm={"tc": "magic"}), "C0917", "`magic`")
    fails(lambda: db.transaction(algorithm="magic"), "C0917", "`magic`")

    def count() -> None:
        with db.transaction(algorithm="counting") as tx:
            tx.insert("edge", [(3, 4)])

    fails(count, "C0820", "`tc` is recursive")
    assert len(db.relation("edge")) == 2


def test_one_algorithm_maintains_what_depends_on_each_other() -> None:
    db = corollary.open(None, algorithm={"odd": "dred", "even": "epf"})
    text = """\
.decl next(x: number, y: number)
.decl odd, even(x: number)
even(0).
odd(y) :- even(x), next(x, y).
even(y) :- odd(x), next(x, y).
"""
    fails(lambda: db.load(text=text), "C0821", "the same algorithm")
    assert db.commits == 0


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    fails(lambda: corollary.open(tmp_path, create=False), "C0930", "There is no warehouse")
    fails(lambda: corollary.open(None, engine="abacus"), "C0918", "choose one of local, spark")
    fails(lambda: corollary.open(None, placement="here"), "C0918", "choose one of auto, driver")
    fails(lambda: corollary.open(None).log(), "C0918", "in memory, so it has no history")


def test_tuples_as_text(db: Database) -> None:
    assert read_facts(db._state.loaded, "edge(1, 2). edge(-1, 3)", "here") == [
        ("edge", (1, 2)),
        ("edge", (-1, 3)),
    ]
    fails(
        lambda: read_facts(db._state.loaded, "tc(x, y) :- edge(x, y)", "here"),
        "C0919",
        "is not a tuple",
    )
    fails(lambda: read_facts(db._state.loaded, "edge(1, 1 + 1)", "here"), "C0919", "here:1:1")


def test_limits_change_nothing() -> None:
    db = corollary.open(None, limits=Limits(rounds=50))
    db.load(
        text=".decl n(x: number)\n.decl m(x: number)\nm(x) :- n(x).\nm(x + 1) :- m(x), x < 999.\n"
    )
    with pytest.raises(LimitError, match="50 rounds"), db.transaction() as tx:
        tx.insert("n", [(0,)])
    assert db.relation("n").rows() == db.relation("m").rows() == []
    with db.transaction() as tx:
        tx.insert("n", [(990,)])
    assert len(db.relation("m")) == 10


def test_a_strict_database_fails_rather_than_recompute() -> None:
    size = 200
    circle = [(at, (at + 1) % size) for at in range(size)]

    def opened(is_strict: bool) -> tuple[Database, Transaction]:
        db = corollary.open(None, strict=is_strict)
        db.load(text=CLOSURE)
        with db.transaction(algorithm="recompute") as tx:
            tx.insert("edge", circle)
        tx = db.transaction()
        tx.delete("edge", circle[:1])
        return db, tx

    _, tx = opened(is_strict=False)
    tx.commit()
    assert tx.changes["tc"].counts == (0, size * (size + 1) // 2)
    assert tx.stats["tc"].algorithm == "recompute"
    assert "ranked outgrew" in tx.stats["tc"].reason
    db, tx = opened(is_strict=True)
    with pytest.raises(LimitError, match="strict"):
        tx.commit()
    assert len(db.relation("tc")) == size * size


def test_every_code_of_the_database_is_tested() -> None:
    tests = (*TESTS.rglob("test_*.py"), *TESTS.glob("support/cures/*.py"))
    text = "".join(each.read_text("utf-8") for each in tests)
    mine = codes_in("database", "maintain") - {"C0804"}
    assert {code for code in mine if code not in text} == set()


def test_errors_have_one_base() -> None:
    assert issubclass(InputError, CorollaryError)
    assert issubclass(LimitError, CorollaryError)


def test_what_is_no_text_is_refused(db: Database, tmp_path: Path) -> None:
    """A lone surrogate or NUL cannot be written down, so it comes in nowhere."""
    for action, code in (
        (lambda: db.query('seen(_, _, "\udc00")'), "C0103"),
        (lambda: db.load(text=f'{PROGRAM}.decl p(x: symbol)\np("\ud800").\n'), "C0103"),
        (lambda: db.transaction().add_rule('tc(1, 1) :- seen(_, _, "\ud800").'), "C0103"),
        (lambda: db.transaction(idempotency="\ud800"), "C0920"),
        (lambda: db.transaction(idempotency="k" * 201), "C0920"),
        (lambda: db.transaction(idempotency=""), "C0920"),
        (lambda: db.query('seen(_, _, "\0")'), "C0103"),
        (lambda: db.query('seen(_, _, "\\u0000")'), "C0103"),
        (lambda: db.transaction(idempotency="\0"), "C0920"),
        (lambda: corollary.open(tmp_path / "w\0"), "C0930"),
        (lambda: corollary.open(tmp_path / "w\udcff"), "C0930"),
    ):
        with pytest.raises(InputError) as caught:
            action()
        assert [each.code for each in caught.value.diagnostics] == [code]
        assert caught.value.diagnostics[0].note
        str(caught.value).encode()


@pytest.mark.parametrize(
    "bounds",
    [{"memory": -1}, {"rounds": -1}, {"tuples": True}, {"seconds": "7"}, {"seconds": math.nan}],
)
def test_limits_are_numbers(bounds: dict[str, Any]) -> None:
    fails(lambda: corollary.Limits(**bounds), "C0923", "not negative")
