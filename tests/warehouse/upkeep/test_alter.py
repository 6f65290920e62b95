"""Other columns of a base relation: the data stays, derived relations are right, history too."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import corollary
from corollary.core.printer import print_program
from corollary.database.database import Database
from corollary.database.intake.pipeline import Inputs, run
from corollary.database.program.column_mapping import Alteration
from corollary.database.program.loaded_program import read_programs
from corollary.database.upkeep.alter import alter
from corollary.database.upkeep.verify import verify
from corollary.errors import ConstraintError, InputError
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from support.selection import examples
from support.warehouse_history import state

PROGRAM = """\
.type Town <: symbol
.decl edge(x: Town, y: Town) key(x, y)
.decl path(x: Town, y: Town)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl fan(x: Town, n: number)
fan(x, n) :- edge(x, _), n = count : { edge(x, _) }.
.decl same(x: Town, y: Town) eqrel
same(x, y) :- edge(x, y).
same("g", "h").
.decl lone(x: Town)
lone(x) :- (edge(_, x); x = "q"), !edge(x, _).
.decl far(x: Town, y: Town) virtual
far(x, z) :- edge(x, y), edge(y, z).
.decl noted(x: Town)
noted("q").
noted(x) :- far(x, _).
.output edge
.output path
edge("t", "u").
"""
DERIVED = ("path", "fan", "same", "lone", "noted")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse to be copied."""
    place = tmp_path_factory.mktemp("template") / "warehouse"
    with corollary.open(str(place)) as database:
        database.load(text=PROGRAM)
        with database.transaction() as tx:
            tx.insert("edge", [("a", "b"), ("b", "c"), ("t", "u")])
            tx.insert("noted", [("m",)])
        database.publish()
    return place


@pytest.fixture
def db(template: Path, tmp_path: Path) -> Iterator[Database]:
    shutil.copytree(template, tmp_path / "warehouse")
    with corollary.open(str(tmp_path / "warehouse")) as database:
        yield database


def rows(database: Database, name: str) -> list[Any]:
    return sorted(database.relation(name).rows(), key=repr)


def derived(database: Database) -> dict[str, Any]:
    return {name: rows(database, name) for name in DERIVED}


def demand_sound(database: Database) -> None:
    assert database._store is not None
    findings = verify(database._store.warehouse).findings
    assert not findings, "\n".join(map(str, findings))


def parsed(text: str) -> Any:
    return parse(SourceFile("new.dl", text))


# --- the program in force is edited --------------------------------------------------------------


def test_a_column_more(db: Database, tmp_path: Path) -> None:
    before, number = derived(db), db.commits
    altered = alter(db, Alteration("edge", add=("note: symbol?",)))
    assert altered.commit == number + 1 == db.commits
    assert (altered.before, altered.after) == (3, 3)
    assert not altered.changes
    assert altered.declaration == ".decl edge(x: Town, y: Town, note: symbol?) key(x, y)"
    assert "fan(x, n) :- edge(x, _, _), n = count : { edge(x, _, _) }." in altered.rules
    assert rows(db, "edge") == [("a", "b", None), ("b", "c", None), ("t", "u", None)]
    assert derived(db) == before
    demand_sound(db)
    with db.transaction() as tx:
        tx.insert("edge", [("c", "d", "new")])
        tx.delete("edge", [("a", "b", None)])
    assert tx.changes["path"].counts == (2, 2)
    demand_sound(db)
    with corollary.open(str(tmp_path / "warehouse")) as again:
        assert state(again) == state(db)
        assert print_program(again.program) == print_program(db.program)


def test_the_past_has_the_columns_of_then(db: Database) -> None:
    assert db._store is not None
    db._store.fold(db._state)
    number, before = db.commits, rows(db, "edge")
    alter(db, Alteration("edge", add=("w: number",), values={"w": "7"}))
    assert rows(db.at(number), "edge") == before
    assert rows(db.at(number + 1), "edge") == [(*row, 7) for row in before]
    assert db.changes(number)["edge"].counts == (2, 0)
    db._store.fold(db._state)
    alter(db, Alteration("edge", drop=("w",)))
    assert rows(db.at(number + 1), "edge") == [(*row, 7) for row in before]
    assert rows(db, "edge") == before
    demand_sound(db)


@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        ("n: number", "-3", -3),
        ("n: unsigned", "0x1f", 31),
        ("n: symbol", "", ""),
        ("n: symbol?", "", None),
        ("n: symbol", 'a "quoted" \\ ü\n', 'a "quoted" \\ ü\n'),
        ("n: float", "nan", "nan"),
        ("n: bool", "true", True),
        ("n: Town", "x", "x"),
        ("n: decimal(5, 2)", "1.5", "1.50"),
        ("n: date", "2026-11-15", "2026-11-15"),
        ("n: timestamp?", "2026-11-15T08:00:00Z", "2026-11-15T08:00:00Z"),
    ],
)
def test_values_of_every_type(db: Database, column: str, text: str, value: Any) -> None:
    from corollary.core.values import format_value

    alter(db, Alteration("edge", add=(column,), values={"n": text}))
    type_ = db._state.loaded.normal.relations["edge"].types[2]
    found = {row[2] for row in rows(db, "edge")}
    assert len({format_value(each, type_) for each in found}) == 1
    (one, *_) = found
    assert one == value or format_value(one, type_) == value
    assert len(rows(db, "edge")) == 3, "the fact of the text and the written tuple are one"
    demand_sound(db)


def test_new_names(db: Database, tmp_path: Path) -> None:
    before = derived(db)
    altered = alter(db, Alteration("edge", rename={"x": "y", "y": "x"}))
    assert altered.declaration == ".decl edge(y: Town, x: Town) key(y, x)"
    assert not altered.rules
    assert derived(db) == before
    db.publish()
    shown = DeltaTable(str(tmp_path / "warehouse" / "tables" / "edge")).to_pyarrow_table()
    assert sorted((row["y"], row["x"]) for row in shown.to_pylist()) == rows(db, "edge")
    demand_sound(db)


def test_a_column_less_merges(tmp_path: Path) -> None:
    with corollary.open(str(tmp_path / "warehouse")) as db:
        db.load(
            text=".decl p(x: number, y: symbol) .decl q(x: number) q(x) :- p(x, _). "
            '.decl n(c: number) n(c) :- c = count : { p(_, _) }. p(1, "t").'
        )
        with db.transaction() as tx:
            tx.insert("p", [(1, "a"), (1, "b"), (2, "b")])
        altered = alter(db, Alteration("p", drop=("y",)))
        assert (altered.before, altered.after) == (4, 2)
        assert altered.changes == {"n": (1, 1)}
        assert rows(db, "p") == [(1,), (2,)]
        assert rows(db, "n") == [(2,)]
        demand_sound(db)
        with db.transaction() as tx:
            tx.delete("p", [(1,), (2,)])
        assert rows(db, "p") == [(1,)]
        assert [row for kept in tx.kept.values() for row in kept.table().to_pylist()] == [{"x": 1}]
        demand_sound(db)


def test_the_last_column(tmp_path: Path) -> None:
    with corollary.open(str(tmp_path / "warehouse")) as db:
        db.load(text=".decl p(x: number) .decl q() q() :- p(_).")
        with db.transaction() as tx:
            tx.insert("p", [(1,), (2,)])
        alter(db, Alteration("p", drop=("x",)))
        assert rows(db, "p") == [()]
        alter(db, Alteration("p", add=("z: number",), values={"z": "5"}))
        assert rows(db, "p") == [(5,)]
        demand_sound(db)


def test_active_rules_and_messages(tmp_path: Path) -> None:
    text = """
.decl p(x: number, y: number) key(x)
.decl log(x: number, y: number)
+log(x, y) :- +p(x, y).
.alert p "new {x}, {y} {{x}}"
.input p(order="y")
"""
    with corollary.open(str(tmp_path / "warehouse")) as db:
        db.load(text=text)
        alter(db, Alteration("p", rename={"y": "z"}))
        printed = print_program(db.program)
        assert '.alert p "new {x}, {z} {{x}}"' in printed
        assert '.input p(order="z")' in printed
        alter(db, Alteration("log", add=("why: symbol",), values={"why": "rule"}))
        assert '+log(x, y, "rule") :- +p(x, y).' in print_program(db.program)


def test_triggers_are_not_set_off_again(tmp_path: Path) -> None:
    text = """
.decl sale(x: number) bag
sale(7).
.decl log(x: number) bag
+log(x) :- +sale(x).
.decl waiting(x: number)
-waiting(x) :- +sale(x).
.decl day(d: date)
day(d) :- d = today().
"""
    with corollary.open(str(tmp_path / "warehouse")) as db:
        db.set_today("2026-11-17")
        db.load(text=text)
        with db.transaction() as tx:
            tx.insert("sale", [(1,), (1,)])
        with db.transaction() as tx:
            tx.insert("waiting", [(1,), (7,)])
        alter(db, Alteration("waiting", rename={"x": "y"}))
        assert sorted(db.relation("sale").rows()) == [(1,), (1,), (7,)]
        assert sorted(db.relation("log").rows()) == [(1,), (7,)]
        assert sorted(db.relation("waiting").rows()) == [(1,), (7,)]
        assert db.relation("day").rows() == [(date(2026, 11, 17),)]


def test_another_process_follows(db: Database, tmp_path: Path) -> None:
    with corollary.open(str(tmp_path / "warehouse")) as other:
        state(other)
        late = other.transaction()
        late.insert("edge", [("x", "y")])
        alter(db, Alteration("edge", add=("w: number?",)))
        with pytest.raises(InputError, match="have been altered since"):
            late.commit()
        with other.transaction() as tx:
            tx.delete("edge", [("b", "c", None)])
        assert tx.changes["path"].counts == (0, 2)
    demand_sound(db)


def test_others_commit_meanwhile(db: Database, tmp_path: Path, monkeypatch: Any) -> None:
    with corollary.open(str(tmp_path / "warehouse")) as other:
        store = db._store
        assert store is not None
        real, once = store.warehouse.commit, [True]

        def meanwhile(*arguments: Any) -> int:
            if once:
                once.clear()
                with other.transaction() as tx:
                    tx.insert("edge", [("x", "y")])
            return real(*arguments)

        monkeypatch.setattr(store.warehouse, "commit", meanwhile)
        altered = alter(db, Alteration("edge", add=("w: number?",)))
    assert altered.after == 4
    assert ("x", "y", None) in rows(db, "edge")
    demand_sound(db)


# --- a new program -------------------------------------------------------------------------------

GIVEN = """\
.decl edge(length: number?, dst: symbol, src: symbol)
.decl path(x: symbol, y: symbol, hops: number)
path(x, y, 1) :- edge(_, y, x).
path(x, z, 2) :- path(x, y, 1), edge(_, z, y).
.decl noted(x: symbol)
noted("q").
.decl extra(x: symbol)
extra(x) :- edge(null, _, x).
edge(1, "u", "t").
.output path
"""


def test_a_new_program(db: Database) -> None:
    altered = alter(db, Alteration("edge", rename={"x": "src", "y": "dst"}), parsed(GIVEN))
    assert rows(db, "edge") == [(1, "u", "t"), (None, "b", "a"), (None, "c", "b"), (None, "u", "t")]
    assert rows(db, "path")[0] == ("a", "b", 1)
    assert rows(db, "noted") == [("m",), ("q",)]
    assert altered.changes.keys() >= {"path", "extra"}
    assert set(db._state.loaded.normal.relations) & {"fan", "same"} == set()
    db.publish()
    demand_sound(db)
    with pytest.raises(InputError, match="C0916"):
        db.relation("fan")
    with db.transaction() as tx:
        tx.delete("edge", [(None, "b", "a")])
    demand_sound(db)


def test_rows_for_a_relation_that_is_no_more(db: Database, tmp_path: Path) -> None:
    with corollary.open(str(tmp_path / "warehouse")) as other:
        late = other.transaction()
        late.insert("noted", [("x",)])
        text = ".decl edge(x: symbol, y: symbol)"
        with db.transaction() as tx:
            tx.delete("noted", [("m",)])
        alter(db, Alteration("edge"), parsed(text))
        with pytest.raises(InputError, match="C0916"):
            late.commit()


def test_wider_types_are_taken(db: Database) -> None:
    text = PROGRAM
    for old, new in (
        ("edge(x: Town, y: Town)", "edge(x: Town, y: Town?)"),
        ("path(x: Town, y: Town)", "path(x: Town, y: Town?)"),
        ("far(x: Town, y: Town)", "far(x: Town, y: Town?)"),
        ("same(x, y) :- edge(x, y).", 'same(x, y) :- edge(x, y), y != "".'),
        ("lone(x) :- (edge(_, x);", 'lone(x) :- (edge(_, x), x != "";'),
    ):
        text = text.replace(old, new)
    before = derived(db)
    alter(db, Alteration("edge"), parsed(text))
    with db.transaction() as tx:
        tx.insert("edge", [("z", None)])
    assert len(rows(db, "edge")) == 4
    assert before["same"] == rows(db, "same")
    demand_sound(db)


def test_sources_are_read_again(tmp_path: Path) -> None:
    (tmp_path / "one.dl").write_text(
        ".decl p(x: number, y: symbol)\n.input p\n.decl q(y: symbol)\nq(y) :- p(_, y).\n.output q\n"
    )
    (tmp_path / "two.dl").write_text(
        ".decl p(x: number, y: symbol, z: number)\n.input p\n"
        ".decl q(y: symbol)\nq(y) :- p(_, y, _).\n.output q\n"
    )
    (tmp_path / "p.facts").write_text("1\ta\n2\tb\nbad\n")
    one, two = (read_programs([tmp_path / name]) for name in ("one.dl", "two.dl"))
    with corollary.open(str(tmp_path / "warehouse")) as db:
        run(db, one, Inputs(tmp_path))
        with db.transaction() as tx:
            tx.insert("p", [(3, "c")])
        alter(db, Alteration("p", values={"z": "0"}), two)
        assert rows(db, "p") == [(1, "a", 0), (2, "b", 0), (3, "c", 0)]
        assert len(rows(db, "quarantine")) == 1
        (tmp_path / "p.facts").write_text("1\ta\t10\n4\td\t40\n")
        run(db, two, Inputs(tmp_path))
        assert rows(db, "p") == [(1, "a", 10), (3, "c", 0), (4, "d", 40)]
        assert rows(db, "q") == [("a",), ("c",), ("d",)]
        demand_sound(db)
        with pytest.raises(InputError, match="corollary alter"):
            run(db, one, Inputs(tmp_path))


# --- what is refused -----------------------------------------------------------------------------

REFUSED: dict[str, tuple[Alteration, str, str]] = {
    "nothing": (Alteration("edge"), "C0962", "Nothing is to be altered"),
    "no relation": (Alteration("egde", drop=("x",)), "C0916", "did you mean `edge`"),
    "derived": (Alteration("path", drop=("x",)), "C0963", "has rules"),
    "derived with facts": (Alteration("noted", rename={"x": "y"}), "C0963", "has rules"),
    "no column to rename": (Alteration("edge", rename={"a": "b"}), "C0962", "no column `a`"),
    "no column to drop": (Alteration("edge", drop=("a",)), "C0962", "its columns are `x`, `y`"),
    "both": (Alteration("edge", drop=("x",), rename={"x": "z"}), "C0962", "renamed and dropped"),
    "taken": (Alteration("edge", rename={"x": "y"}), "C0962", "two columns `y`"),
    "there": (Alteration("edge", add=("x: number?",)), "C0962", "two columns `x`"),
    "no type": (Alteration("edge", add=("z",)), "C0962", "`z` is not a column"),
    "nothing to add": (Alteration("edge", add=("",)), "C0962", "Nothing is to be altered"),
    "strange type": (Alteration("edge", add=("z: strange",)), "C0214", "`strange`"),
    "no value": (Alteration("edge", add=("z: number",)), "C0966", "--value z="),
    "no number": (
        Alteration("edge", add=("z: number",), values={"z": "x"}), "C0966", "not a number"
    ),
    "value of nothing": (
        Alteration("edge", add=("z: number?",), values={"y": "x"}), "C0962", "no new column `y`"
    ),
    "in the key": (Alteration("edge", drop=("x",)), "C0965", "in the key of `edge`"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(db: Database, name: str) -> None:
    asked, code, text = REFUSED[name]
    before, number = state(db), db.commits
    with pytest.raises(InputError) as raised:
        alter(db, asked)
    assert code in str(raised.value)
    assert text in str(raised.value)
    assert all(each.note for each in raised.value.diagnostics)
    assert db.commits == number
    assert state(db) == before


IN_THE_WAY: dict[str, tuple[str, Alteration, str]] = {
    "a rule": ("q(x) :- p(x, 1, _).", Alteration("p", drop=("b",)), "q(x) :- p(x, 1, _)."),
    "a negation": ("q(x) :- r(x), !p(x, x, _).", Alteration("p", drop=("b",)), "uses `b`"),
    "an aggregate": (
        "q(n) :- n = sum c : { p(_, _, c) }.", Alteration("p", drop=("c",)), "uses `c`"
    ),
    "a disjunction": ("q(x) :- (r(x); p(_, x, _)).", Alteration("p", drop=("b",)), "uses `b`"),
    "a dependency": (".fd p(a -> b)", Alteration("p", drop=("b",)), "in an `.fd`"),
    "a message": ('.alert p "{b}"', Alteration("p", drop=("b",)), "message of `.alert p`"),
    "positions": (
        '.input p(columns="0:1:2")', Alteration("p", drop=("b",)), "says where in the file"
    ),
    "an order": ('.input p(order="b")', Alteration("p", drop=("b",)), "orders rows"),
    "a deleting trigger": (
        "-p(x, x, x) :- +r(x).", Alteration("p", add=("d: number?",)), "what it deletes"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_THE_WAY)
def test_in_the_way(tmp_path: Path, name: str) -> None:
    line, asked, text = IN_THE_WAY[name]
    with corollary.open(str(tmp_path / "warehouse")) as db:
        declared = ".decl p(a: number, b: number, c: number) .decl r(x: number) .decl q(x: number) "
        if "order" in line:
            declared = declared.replace("c: number)", "c: number) key(a)")
        db.load(text=f"{declared}\n{line}")
        before = db.commits
        with pytest.raises(InputError) as raised:
            alter(db, asked)
        assert "C0965" in str(raised.value)
        assert text in str(raised.value)
        assert "--program" in str(raised.value)
        assert db.commits == before


PROGRAMS: dict[str, tuple[str, Alteration, str]] = {
    "add as well": (PROGRAM, Alteration("edge", add=("z: number?",)), "C0962"),
    "no column": (PROGRAM, Alteration("edge", rename={"a": "x"}), "C0962"),
    "no new column": (PROGRAM, Alteration("edge", rename={"x": "a"}), "C0962"),
    "another type": (
        ".decl edge(x: symbol, y: number) .decl noted(x: symbol)", Alteration("edge"), "C0967"
    ),
    "another relation": (
        ".decl edge(x: symbol) .decl noted(x: number)", Alteration("edge"), "C0967"
    ),
    "a relation less": (".decl edge(x: symbol)", Alteration("edge"), "C0913"),
    "the relation itself": (".decl noted(x: symbol)", Alteration("edge"), "C0913"),
    "no value": (
        ".decl edge(x: symbol, y: symbol, z: number) .decl noted(x: symbol)",
        Alteration("edge"),
        "C0966",
    ),
    "an error": (".decl edge(x: symbol, y: symbol) nothing(1).", Alteration("edge"), "C0201"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_refused_programs(db: Database, name: str) -> None:
    text, asked, code = PROGRAMS[name]
    before = state(db)
    with pytest.raises(InputError, match=code):
        alter(db, asked, parsed(text))
    assert state(db) == before


def test_a_key_that_would_not_hold(db: Database) -> None:
    text = PROGRAM.replace('edge("t", "u").', 'edge("a", "z").').replace("key(x, y)", "key(x)")
    before = state(db)
    with pytest.raises(ConstraintError, match="C0937"):
        alter(db, Alteration("edge"), parsed(text))
    assert state(db) == before


def test_quarantine_is_fixed(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(".decl p(x: number)\n.input p\n.output p\n")
    (tmp_path / "p.facts").write_text("1\nx\n")
    with corollary.open(str(tmp_path / "warehouse")) as db:
        run(db, read_programs([tmp_path / "p.dl"]), Inputs(tmp_path))
        with pytest.raises(InputError, match="C0963"):
            alter(db, Alteration("quarantine", drop=("raw",)))


# --- at random -----------------------------------------------------------------------------------

SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


class Model:
    """A relation as a Python set of dictionaries, and what is done to it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.columns = ["k", "a"]
        self.tuples: set[tuple[int, ...]] = set()
        self.fresh = 0

    def alteration(self) -> Alteration:
        """Return a random alteration, and let it happen here."""
        drop = [name for name in self.columns[1:] if self.random.random() < 0.3]
        kept = [name for name in self.columns if name not in drop]
        rename = {}
        for name in kept:
            if self.random.random() < 0.3:
                self.fresh += 1
                rename[name] = f"r{self.fresh}"
        add, values = [], {}
        for _ in range(self.random.choice((0, 1, 1, 2)) or (not drop and not rename)):
            self.fresh += 1
            name = f"c{self.fresh}"
            add.append(f"{name}: number")
            values[name] = str(self.random.randrange(3))
        places = [self.columns.index(name) for name in kept]
        self.tuples = {
            (*(row[at] for at in places), *map(int, values.values())) for row in self.tuples
        }
        self.columns = [*(rename.get(name, name) for name in kept), *values]
        return Alteration("p", tuple(add), values, rename, tuple(drop))

    def rows(self) -> list[tuple[int, ...]]:
        return [
            tuple(self.random.randrange(4) for _ in self.columns)
            for _ in range(self.random.randint(1, 5))
        ]


@pytest.mark.slow
@settings(
    max_examples=examples(4, 15),
    suppress_health_check=SLOW,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(seed=st.integers(0, 100_000))
def test_any_alterations(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    model = Model(seed)
    text = (
        ".decl p(k: number, a: number) .decl keys(k: number) keys(k) :- p(k, _). "
        ".decl size(n: number) size(n) :- n = count : { p(_, _) }."
    )
    with corollary.open(str(tmp_path_factory.mktemp("w") / "warehouse")) as db:
        db.load(text=text)
        seen: dict[int, Any] = {}
        for _ in range(8):
            act = model.random.random()
            if act < 0.5:
                come, go = model.rows(), model.rows()
                with db.transaction() as tx:
                    tx.delete("p", go)
                    tx.insert("p", come)
                model.tuples = (model.tuples - set(go)) | set(come)
            elif act < 0.85:
                altered = alter(db, model.alteration())
                assert altered.after == len(model.tuples)
            else:
                assert db._store is not None
                db._store.fold(db._state)
            assert set(db.relation("p").rows()) == model.tuples
            assert list(db._state.loaded.normal.relations["p"].columns) == model.columns
            assert set(db.relation("keys").rows()) == {row[:1] for row in model.tuples}
            assert db.relation("size").rows() == [(len(model.tuples),)]
            seen[db.commits] = state(db)
        for number, each in seen.items():
            if number:
                assert state(db.at(number)) == each
        demand_sound(db)
