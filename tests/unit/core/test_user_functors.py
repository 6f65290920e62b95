"""Functors in Python: registration, loading, and what becomes of their results and errors."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import corollary
from corollary.core.arrow import to_python
from corollary.core.user_functors.loading import load_functors
from corollary.errors import EvaluationError, InputError

PROGRAM = """
.functor triple(x: number): number
.functor root(n: number): number
.functor many_sum(x: number, y: number): number
.decl n(x: number)
.decl bound(x: number)
.decl t(x: number, y: number)
t(@triple(x), @many_sum(x, @triple(x))) :- n(x), @triple(x) < 100.
.decl s(total: number)
s(total) :- total = sum @triple(x) : { n(x) }.
.decl r(x: number, y: number)
r(x, @root(x)) :- bound(x), n(x).
"""


def rows(db: corollary.Database, name: str) -> list[Any]:
    return sorted(db.relation(name).rows())


@pytest.mark.parametrize("algorithm", ["auto", "dred", "ranked", "epf", "recompute"])
def test_functors_are_maintained(algorithm: str) -> None:
    db = corollary.open(None, engine="local", algorithm=algorithm)
    db.load(text=PROGRAM)
    with db.transaction() as tx:
        tx.insert("n", [(1,), (2,), (40,)])
    assert rows(db, "t") == [(3, 4), (6, 8)]
    assert rows(db, "s") == [(129,)]
    with db.transaction() as tx:
        tx.delete("n", [(2,), (40,)])
        tx.insert("n", [(5,)])
    assert to_python(tx.changes["t"].removed) == [(6, 8)]
    assert rows(db, "t") == [(3, 4), (15, 20)]
    assert rows(db, "s") == [(18,)]
    # What a functor raises aborts the transaction of the rule that needs its value, and no other.
    with db.transaction() as tx:
        tx.insert("n", [(7,), (9,)])
    said = "`@root` raised ValueError: 7 is not a square"
    with pytest.raises(EvaluationError, match=said), db.transaction() as tx:
        tx.insert("bound", [(7,), (9,)])
    assert rows(db, "r") == []
    with db.transaction() as tx:
        tx.insert("bound", [(9,)])
    assert rows(db, "r") == [(9, 3)]


def test_a_function_is_called_once_for_equal_arguments() -> None:
    calls: list[int] = []

    @corollary.functor
    def counted_calls(x: int) -> int:
        calls.append(x)
        return x

    db = corollary.open(None, engine="local", bulk="never")
    db.load(
        text=".functor counted_calls(x: number): number\n.decl n(x: number, y: number)\n"
        ".decl t(y: number)\nt(@counted_calls(x)) :- n(x, _).\n"
    )
    with db.transaction() as tx:
        tx.insert("n", [(x % 3, x) for x in range(300)])
    assert sorted(calls) == [0, 1, 2]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (lambda x: x.slice(1), "values for 1 rows"),
        (lambda x: [1, 2], "returned a list, not an Arrow array"),
        (lambda x: pa.array(["a"] * len(x)), "returned `a`, not a number"),
        (lambda x: pa.nulls(len(x), pa.int64()), "returned None, not a number"),
    ],
)
def test_results_of_vectorised_functors_are_checked(result: Any, said: str) -> None:
    name = f"bad_result_{abs(hash(said))}"
    corollary.functor(name, vectorised=True)(result)
    db = corollary.open(None, engine="local")
    db.load(
        text=f".functor {name}(x: number): number\n.decl n(x: number)\n.decl t(y: number)\n"
        f"t(@{name}(x)) :- n(x).\n"
    )
    with pytest.raises(EvaluationError, match=said), db.transaction() as tx:
        tx.insert("n", [(1,), (2,), (3,)])


def test_a_warehouse_needs_its_functors_and_never_loads_code_itself(tmp_path: Path) -> None:
    code = tmp_path / "priced.py"
    code.write_text(
        "import corollary\n\n\n@corollary.functor\ndef priced(x: int) -> int:\n    return x + 1\n"
    )
    text = (
        ".functor priced(x: number): number\n.decl n(x: number)\n"
        ".decl t(y: number)\nt(@priced(x)) :- n(x).\n"
    )
    db = corollary.open(tmp_path / "w", engine="local")
    with pytest.raises(InputError, match=r"(?s)C0336.*--functors") as raised:
        db.load(text=text)
    assert raised.value.diagnostics[0].span is not None
    db.close()
    with corollary.open(tmp_path / "w", engine="local", functors=code) as db:
        db.load(text=text)
        with db.transaction() as tx:
            tx.insert("n", [(1,)])
        assert rows(db, "t") == [(2,)]
        proof = db.why("t(2)")
        assert "n(1)" in str(proof)
    with corollary.open(tmp_path / "w", engine="local", functors=[str(code)]) as db:
        assert db.query("n(x), y = @priced(@priced(x))").to_pylist() == [{"x": 1, "y": 3}]


def test_code_that_cannot_be_loaded(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import corollary\nraise RuntimeError('no licence')\n")
    with pytest.raises(InputError, match=r"C0337.*RuntimeError: no licence"):
        load_functors(broken)
    with pytest.raises(InputError, match=r"C0337.*no such file"):
        load_functors(tmp_path / "missing.py")
    with pytest.raises(InputError, match=r"C0337.*ModuleNotFoundError"):
        load_functors("no_such_module_of_functors")
