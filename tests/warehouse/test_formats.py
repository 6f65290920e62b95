"""Formats of warehouses: upgrades from each one that was, and exports that every version reads."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import corollary
from corollary.cli.main import group
from corollary.core.arrow import to_python
from corollary.core.logic import Aggregation
from corollary.core.printer import print_program
from corollary.database.upkeep.transfer import export_all, import_all
from corollary.database.upkeep.verify import verify
from corollary.errors import ConstraintError, EvaluationError, InputError, WarehouseError
from corollary.rewrite.clauses import groups
from corollary.rewrite.translation_unit import TranslationUnit
from corollary.warehouse.catalog import schema
from corollary.warehouse.catalog.catalog import STEPS, upgrade
from corollary.warehouse.catalog.catalog_rows import NewCommit
from corollary.warehouse.catalog.credentials import StoredCredentials
from corollary.warehouse.warehouse_catalog import WarehouseCatalog
from support.format_fixture import COMMITS, EXPECTED, build, contents, unpack
from support.warehouse_scenarios import store_of

ARCHIVES = Path(__file__).parent / "formats"
FORMATS = range(schema.OLDEST_FORMAT, schema.FORMAT + 1)


@pytest.fixture(params=FORMATS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A warehouse of a format, as it was written, and upgraded."""
    found = unpack(ARCHIVES / f"{request.param}.tar.gz", tmp_path)
    with closing(WarehouseCatalog.open(found, create=False, in_any_format=True)) as warehouse:
        assert upgrade(warehouse.catalog) == (request.param, schema.FORMAT)
        assert upgrade(warehouse.catalog) == (schema.FORMAT, schema.FORMAT)
    return found


def test_there_is_a_warehouse_and_a_step_for_each_format() -> None:
    assert {each.name for each in ARCHIVES.iterdir()} == {f"{each}.tar.gz" for each in FORMATS}
    assert list(STEPS) == list(FORMATS[:-1])


@pytest.mark.slow
def test_the_present_format_is_as_it_is_built(tmp_path: Path) -> None:
    build(tmp_path / "warehouse", tmp_path)
    with corollary.open(tmp_path / "warehouse", engine="local") as db:
        assert contents(db) == EXPECTED
        assert db.commits == COMMITS


def test_an_upgraded_warehouse_is_whole(place: Path) -> None:
    with corollary.open(place, engine="local", create=False) as db:
        assert contents(db) == EXPECTED
        assert [each.number for each in db.log()] == [5, 4, 3, 2, 1]
        assert sorted(db.at(2).relation("edge").rows()) == [
            ("a", "b"), ("b", "c"), ("c", "d"), ("text", "a"),
        ]  # fmt: skip
        with db.transaction(idempotency="monday") as again:
            again.insert("edge", [("x", "y")])
        assert again.commit_number == 2
        assert db.grants() == {"alice": ["link", "scarce"]}
        catalog = store_of(db).warehouse.catalog
        assert [each.name for each in StoredCredentials(catalog).all()] == ["alice"]
        assert db.deliver().alerts == 1  # of the edge that went
        change(db)
        assert verify(store_of(db).warehouse).findings == []


def change(db: Any) -> None:
    """Change a database that has what the fixture has; views follow."""
    with db.transaction() as tx:
        tx.insert("edge", [("c", "e")])
        tx.insert("sale", [("pen", 1)])
    added = {("a", "e"), ("b", "e"), ("c", "e"), ("text", "e")}
    assert {*to_python(tx.changes["link"].added)} == added
    assert db.relation("income").rows() == [(24,)]
    db.sql("UPDATE stock SET amount = 7 WHERE item = 'pot'")
    assert db.relation("scarce").rows() == []


def test_an_export_makes_the_same_warehouse(place: Path, tmp_path: Path) -> None:
    with corollary.open(place, engine="local", create=False) as db:
        told = export_all(db, str(tmp_path / "exported"))
    # edge by hand, edge of its source, sale, log, open, note, the day, stock
    assert (told.commit, told.relations, told.grants, told.keys) == (COMMITS, 7, 2, 1)
    shutil.rmtree(place)
    manifest = json.loads((tmp_path / "exported" / "manifest.json").read_text())
    files = {(each["relation"], each["part"][:6]): each for each in manifest["relations"]}
    sold = tmp_path / "exported" / files["sale", "manual"]["file"]
    rows = sorted(tuple(each.values()) for each in pq.read_table(sold).to_pylist())
    assert [(name, copies) for name, _, copies in rows] == [("pen", 2), ("pot", 1)]
    assert {("edge", "manual"), ("edge", "source")} < files.keys()
    told = import_all(str(tmp_path / "exported"), place)
    assert (told.commit, told.relations, told.grants, told.keys) == (1, 7, 2, 1)
    with corollary.open(place, engine="local", create=False) as db:
        assert contents(db) == EXPECTED
        assert db.grants() == {"alice": ["link", "scarce"]}
        with db.transaction(idempotency="monday") as again:
            again.insert("edge", [("x", "y")])
        assert again.commit_number == 1
        with db.transaction() as tx:
            tx.delete("edge", [("a", "b")])  # the source asserts it, still
        assert ("a", "b") in db.relation("edge").rows()
        assert store_of(db).source_positions() == {
            name: tuple(each) for name, each in manifest["sources"].items()
        }
        change(db)
        assert verify(store_of(db).warehouse).findings == []


SUMS = """
CREATE TABLE sold (id BIGINT PRIMARY KEY, item STRING, price BIGINT, weight DOUBLE);
CREATE MATERIALIZED VIEW income AS SELECT item, SUM(price) AS total, COUNT(*) AS n, MIN(price) AS least,
    SUM(weight) AS weight FROM sold GROUP BY item;
CREATE VIEW best AS SELECT MAX(total) AS total FROM income WHERE n > 1;
"""  # noqa: E501


def _is_counted_or_summed(aggregation: Aggregation, unit: TranslationUnit) -> bool:
    """Whether an aggregate was taken together with others before floats and extremes were."""
    types = unit.relations[aggregation.body].types
    is_float = any(types[at].is_float for at in aggregation.values)
    return aggregation.has_every_group and aggregation.extreme is None and not is_float


@pytest.mark.parametrize("takes_together", [lambda *_: False, _is_counted_or_summed])
def test_what_an_earlier_version_has_rewritten_otherwise_is_computed_anew(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    takes_together: Callable[[Aggregation, TranslationUnit], bool],
) -> None:
    """Its relations beside the view are not there: what they say now, no commit has recorded."""
    (tmp_path / "sums.sql").write_text(SUMS)
    with monkeypatch.context() as earlier:
        earlier.setattr(groups, "_has_every_group", takes_together)
        with corollary.open(tmp_path / "w", engine="local") as db:
            db.load(tmp_path / "sums.sql")
            db.sql(
                "INSERT INTO sold VALUES (1, 'pen', 2, 0.5), (2, 'pen', 3, 0.25), (3, 'pot', 9, 1)"
            )
    with corollary.open(tmp_path / "w", engine="local") as db:
        assert db.relation("best").rows() == [(5,)]
        db.sql("DELETE FROM sold WHERE id = 1")
        db.sql("INSERT INTO sold VALUES (4, 'pot', 1, NULL)")
        assert db.relation("income").rows() == [("pen", 3, 1, 3, 0.25), ("pot", 10, 2, 1, 1.0)]
        assert verify(store_of(db).warehouse).findings == []
    upgraded = [CliRunner().invoke(group, ["upgrade", str(tmp_path / "w")]) for _ in range(2)]
    assert [each.stdout for each in upgraded] == [
        (
            f"format {schema.FORMAT} is current, commit 5 keeps views as this version does\n"
            "income: its rules are others\n"
        ),
        f"format {schema.FORMAT} is current\n",
    ]
    with corollary.open(tmp_path / "w", engine="local") as db:
        db.sql("INSERT INTO sold VALUES (5, 'pen', 1, 2)")
        assert db.relation("income").rows() == [("pen", 4, 2, 1, 2.25), ("pot", 10, 2, 1, 1.0)]
        relations = db._state.loaded.normal.relations.values()
        assert any(each.is_stored and not each.is_declared for each in relations)
        assert verify(store_of(db).warehouse).findings == []


TYPED = """
CREATE TABLE t (k INT PRIMARY KEY, s STRING);
CREATE MATERIALIZED VIEW wide AS SELECT k, k + 1 AS x FROM t;
CREATE MATERIALIZED VIEW text AS SELECT k FROM t WHERE s = 1;
CREATE MATERIALIZED VIEW same AS SELECT k, s FROM t WHERE k > 0;
"""
EARLIER = {
    "wide(k, to_integer(k + 1, 32))": "wide(k, k + 1)",
    "parse_integer(s) = 1": 's = "1"',
}
"""What an earlier version wrote, with integers of 64 bits and numbers compared as texts."""


def test_views_whose_types_and_conversions_are_others_are_named(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "w", engine="local") as db:
        db.sql(TYPED)
        text = print_program(db.program)
        for now, before in EARLIER.items():
            assert now in text
            text = text.replace(now, before)
        text = re.sub(r"(decl wide\(.*)int32\) stored", r"\1number) stored", text)
        db.load(text=text)
        db.sql("INSERT INTO t VALUES (1, '1'), (2, '01'), (3, '2')")
        assert db.relation("text").rows() == [(1,)]
    done = CliRunner().invoke(group, ["upgrade", str(tmp_path / "w")])
    assert done.exit_code == 0, done.output
    named = [each.partition(":")[0] for each in done.stdout.splitlines()[1:]]
    assert sorted(named) == ["text", "wide"]
    with corollary.open(tmp_path / "w", engine="local") as db:
        assert db.relation("text").rows() == [(1,), (2,)]
        with pytest.raises(EvaluationError, match="C0810"):
            db.sql("INSERT INTO t VALUES (2147483647, '7')")


ACTIVE = """
.decl sale(x: number) bag
sale(7).
.decl log(x: number) bag
+log(x) :- +sale(x).
.decl waiting(x: number)
-waiting(x) :- +sale(x).
"""


def test_an_import_sets_nothing_off_and_takes_violations_as_they_are(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "old", engine="local", existing="accept") as db:
        db.load(text=ACTIVE)
        with db.transaction() as tx:
            tx.insert("waiting", [(1,), (7,)])
        db.load(text=f'{ACTIVE}.abort waiting "{{x}} waits"\n')
        export_all(db, str(tmp_path / "exported"))
    import_all(str(tmp_path / "exported"), tmp_path / "new")
    with corollary.open(tmp_path / "new", engine="local") as db:
        assert db.relation("sale").rows() == db.relation("log").rows() == [(7,)]
        assert sorted(db.relation("waiting").rows()) == [(1,), (7,)]
        with pytest.raises(ConstraintError), db.transaction() as tx:
            tx.insert("waiting", [(2,)])


def test_keys_stand_for_the_changes_that_they_had(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "old", engine="local") as db:
        db.load(text=".decl p(x: number)\n")
        new = NewCommit(1, frozenset(), {}, keys=("alice\ta", "b"), digests={"alice\ta": "0f"})
        store_of(db).warehouse.catalog.commit(new, None)
        export_all(db, str(tmp_path / "exported"))
    import_all(str(tmp_path / "exported"), tmp_path / "new")
    with corollary.open(tmp_path / "new", engine="local") as db:
        catalog = store_of(db).warehouse.catalog
        for key, digest in (("alice\ta", "0f"), ("b", None)):
            found = catalog.find_commit_by_key(key)
            assert found is not None
            assert (found.number, catalog.find_key_digest(key)) == (1, digest)


def test_an_export_is_refused_where_something_is(place: Path, tmp_path: Path) -> None:
    with corollary.open(place, engine="local", create=False) as db:
        export_all(db, str(tmp_path / "exported"))
        with pytest.raises(WarehouseError, match="C0960"):
            export_all(db, str(tmp_path / "exported"))
    with pytest.raises(WarehouseError, match="C0960"):
        import_all(str(tmp_path / "exported"), place)


def damage_manifest(exported: Path) -> None:
    (exported / "manifest.json").write_text("{")


def damage_layout(exported: Path) -> None:
    (exported / "manifest.json").write_text('{"layout": 99}')


def damage_tuples(exported: Path) -> None:
    file = next((exported / "relations").iterdir())
    file.write_bytes(file.read_bytes()[:-1] + b"?")


def damage_program(exported: Path) -> None:
    (exported / "program.dl").write_text(".decl edge(x: symbol, y: symbol)\n")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (shutil.rmtree, "not a whole export"),
        (damage_manifest, "is damaged"),
        (damage_layout, "has layout 99"),
        (damage_tuples, "is not the file that was exported"),
        (damage_program, "does not declare"),
    ],
)
def test_damaged_exports(place: Path, tmp_path: Path, damage: Any, words: str) -> None:
    exported = tmp_path / "exported"
    with corollary.open(place, engine="local", create=False) as db:
        export_all(db, str(exported))
    damage(exported)
    with pytest.raises(InputError, match=rf"C0969.*{words}(.|\n)*nothing was changed"):
        import_all(str(exported), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_steps_are_one_transaction(place: Path) -> None:
    latest, done = schema.FORMAT + 2, []

    def add(connection: Any) -> None:
        done.append("added")
        connection.execute("CREATE TABLE corollary_more (x INTEGER)")

    def fail(connection: Any) -> None:
        done.append("failed")
        raise InterruptedError

    with closing(WarehouseCatalog.open(place, create=False)) as warehouse:
        catalog = warehouse.catalog
        steps: dict[int, Any] = {schema.FORMAT: add, schema.FORMAT + 1: fail}
        with pytest.raises(InterruptedError):
            upgrade(catalog, steps, latest)
        assert catalog.meta("format") == str(schema.FORMAT)
        with catalog.read_transaction() as connection:
            assert "corollary_more" not in connection.tables()
        steps[schema.FORMAT + 1] = lambda _: done.append("done")
        assert upgrade(catalog, steps, latest) == (schema.FORMAT, latest)
        assert done == ["added", "failed", "added", "done"]
        assert catalog.meta("format") == str(latest)
        with pytest.raises(WarehouseError, match=r"C0931(.|\n)*corollary export --all"):
            catalog.check_format()


def test_who_has_it_open_cannot_commit_to_a_later_format(place: Path) -> None:
    with corollary.open(place, engine="local", create=False) as db:
        upgrade(store_of(db).warehouse.catalog, {schema.FORMAT: lambda _: None}, schema.FORMAT + 1)
        with pytest.raises(WarehouseError, match="C0931"), db.transaction() as tx:
            tx.insert("edge", [("x", "y")])
        assert db.commits == COMMITS


@pytest.mark.parametrize(
    ("found", "cure"),
    [("4", "corollary run"), ("5", "corollary upgrade"), ("7", "import"), ("None", "import")],
)
def test_the_message_names_the_command_that_helps(found: str, cure: str) -> None:
    assert cure in str(WarehouseError.other_format(found, 5, 6))
