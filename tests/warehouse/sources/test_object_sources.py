"""Sources in an object store: read as files are, here and in tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import corollary
from corollary.errors import InputError
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.places import place_of
from corollary.warehouse.sources import portions
from support.command_line import OK, USAGE, cli
from support.processes.object_store_server import KEY, SECRET, ObjectStoreServer
from support.spark.in_process_partitions import share_out

pytestmark = pytest.mark.integration

PROGRAM = """
.decl a(x: number, s: symbol) key(x)
.input a(filename="a.csv", headers=true)
.decl b(x: number, s: symbol)
.input b(filename="b", format=jsonl)
.decl c(x: number, s: symbol)
.input c(filename="c/*/part-?.parquet")
.decl d(x: number, s: symbol)
.input d(filename="d")
.decl all(x: number)
all(x) :- a(x, _). all(x) :- b(x, _). all(x) :- c(x, _). all(x) :- d(x, _).
"""


@pytest.fixture
def folder(object_store_server: ObjectStoreServer) -> ObjectPath:
    found = place_of(object_store_server.place())
    assert isinstance(found, ObjectPath)
    return found


def rows(numbers: range) -> list[tuple[int, str]]:
    return [(number, f"text {number}") for number in numbers]


def csv(some: list[tuple[int, str]], *more: str) -> bytes:
    return "\n".join(("x,s", *(f"{x},{s}" for x, s in some), *more, "")).encode()


def jsonl(some: list[tuple[int, str]]) -> bytes:
    return "".join(json.dumps({"x": x, "s": s}) + "\n" for x, s in some).encode()


def table(some: list[tuple[int, str]]) -> pa.Table:
    return pa.table({"x": [x for x, _ in some], "s": [s for _, s in some]})


def parquet(some: list[tuple[int, str]]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table(some), sink, row_group_size=7)
    found: bytes = sink.getvalue().to_pybytes()
    return found


FIRST = {
    "a.csv": csv(rows(range(40)), "bad,line,here"),
    "b/one.jsonl": jsonl(rows(range(10))),
    "b/two.jsonl": jsonl(rows(range(5, 20))),
    "b/_hidden.jsonl": b"not read",
    "c/x/part-1.parquet": parquet(rows(range(20))),
    "c/y/part-2.parquet": parquet(rows(range(20, 30))),
    "c/y/other.parquet": b"not read",
    "c/y/z/part-3.parquet": b"not read",
}
SECOND = {
    "a.csv": csv(rows(range(41)), "bad,line,here"),  # a line more
    "b/one.jsonl": None,
    "b/three.jsonl": jsonl(rows(range(100, 102))),
    "c/x/part-1.parquet": parquet(rows(range(3, 20))),
}


def put(place: ObjectPath | Path, files: dict[str, Any]) -> None:
    for name, data in files.items():
        path = place / name
        if data is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def run(place: Path, program: Path, facts: ObjectPath | Path) -> dict[str, Any]:
    with corollary.open(place) as db:
        found = db.run(program, facts=str(facts))
        counts = {name: found.changes[name].counts for name in found.changes}
        held = {name: sorted(db.relation(name).rows()) for name in ("a", "b", "c", "d", "all")}
        bad = [row[2:5] for row in db.relation("quarantine").rows()]
    return {"counts": counts, "rows": held, "bad": bad, "read": found.quarantined}


@pytest.mark.parametrize("is_in_tasks", [False, True])
def test_sources_of_every_format(
    is_in_tasks: bool, folder: ObjectPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read of objects is what is read of files, the first time and after changes."""
    if is_in_tasks:
        share_out(monkeypatch, "partitions")
        monkeypatch.setattr(portions, "PORTION_BYTES", 100)
        monkeypatch.setattr(portions, "PARQUET_PORTION_BYTES", 1)
    program = tmp_path / "p.dl"
    program.write_text(PROGRAM)
    places: list[tuple[Path, ObjectPath | Path]] = [
        (tmp_path / "there", folder),
        (tmp_path / "here", tmp_path / "facts"),
    ]
    found = []
    for warehouse, facts in places:
        put(facts, FIRST)
        write_deltalake(str(facts / "d"), table(rows(range(30))))
        first = run(warehouse, program, facts)
        again = run(warehouse, program, facts)
        assert not again["counts"]
        put(facts, SECOND)
        delta = DeltaTable(str(facts / "d"))
        delta.delete("x < 4")
        write_deltalake(str(facts / "d"), table(rows(range(200, 203))), mode="append")
        second = run(warehouse, program, facts)
        found.append((first, second))
    assert found[0] == found[1]
    first, second = found[0]
    assert first["rows"]["a"] == rows(range(40))
    assert first["rows"]["b"] == rows(range(20))
    assert first["rows"]["c"] == rows(range(30))
    assert first["bad"] == [("a.csv", 42, "C0802")]
    assert second["rows"]["b"] == [*rows(range(5, 20)), *rows(range(100, 102))]
    assert second["rows"]["c"] == rows(range(3, 30))
    assert second["rows"]["d"] == [*rows(range(4, 30)), *rows(range(200, 203))]


def test_names_of_objects_in_the_program(folder: ObjectPath, tmp_path: Path) -> None:
    """Objects and files side by side: objects lie in the root, files in the directory of facts."""
    put(folder, {"a/one.tsv": b"1\n", "a/two.tsv": b"2\n"})
    put(tmp_path, {"b.facts": b"3\n"})
    program = tmp_path / "p.dl"
    text = ".decl a(x: number)\n.input a(filename={})\n.decl b(x: number)\n.input b\n"
    for name in (f"{folder}/a/*.tsv", f"{folder}/a"):
        program.write_text(text.format(json.dumps(name)))
        with corollary.open(None) as db:
            db.load(program, facts=tmp_path, root=str(folder))
            assert sorted(db.relation("a").rows()) == [(1,), (2,)]
            assert set(db.relation("b").rows()) == {(3,)}
            with pytest.raises(InputError, match=r"C0805.*leads outside the root"):
                db.load(program, facts=tmp_path)
            with pytest.raises(InputError, match=r"C0805.*leads outside the root"):
                db.load(program, facts=tmp_path, root=f"{folder}/other")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("nothing.csv", "C0804.*there is no such object"),
        ("nothing/*.csv", None),
        ("../a.csv", "C0805"),
        ("https://host/a.csv", "C0805.*not one of objects"),
        ("s3://no-such-bucket-of-ours/a.csv", "C0805"),
    ],
)
def test_names_that_lead_nowhere(
    name: str, code: str | None, folder: ObjectPath, tmp_path: Path
) -> None:
    program = tmp_path / "p.dl"
    program.write_text(f".decl a(x: number)\n.input a(filename={json.dumps(name)})\n")
    with corollary.open(tmp_path / "w") as db:
        if code is None:
            assert not db.run(program, facts=str(folder)).changes
            return
        with pytest.raises(InputError, match=code) as raised:
            db.run(program, facts=str(folder))
    assert KEY not in str(raised.value)
    assert SECRET not in str(raised.value)


def test_a_bucket_that_is_not_there(folder: ObjectPath, tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(".decl a(x: number)\n.input a\n")
    with corollary.open(tmp_path / "w") as db, pytest.raises(InputError, match=r"C0804.*bucket"):
        db.run(program, facts="s3://no-such-bucket-of-ours/facts")


def test_the_command_line(
    folder: ObjectPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put(folder, {"edge.facts": b"1\t2\n2\t3\n"})
    text = ".decl edge(x: number, y: number)\n.input edge\n.output edge(IO=stdout)\n"
    Path("p.dl").write_text(text)
    assert "2\t3" in cli("run", "p.dl", "-F", str(folder)).stdout
    for _ in range(2):
        done = cli("run", "p.dl", "-F", str(folder), "--warehouse", "w")
        assert done.exit_code == OK
    put(folder, {"edge.facts": b"1\t2\n"})
    cli("run", "p.dl", "-F", str(folder), "--warehouse", "w")
    with corollary.open("w") as db:
        assert set(db.relation("edge").rows()) == {(1, 2)}
    refused = cli("run", "p.dl", "-F", "s3://user:password@bucket/x")
    assert refused.exit_code == USAGE
    assert "C1551" in refused.stderr
    assert "password" not in refused.stderr


def test_an_object_that_is_written_while_it_is_read(
    folder: ObjectPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that has seen two contents reads again."""
    put(folder, {"a.facts": b"1\n"})
    program = tmp_path / "p.dl"
    program.write_text(".decl a(x: number)\n.input a\n")
    read = ObjectPath.read_ranges
    left = [b"2\n3\n"]

    def write_first(self: ObjectPath, starts: Any, ends: Any) -> Any:
        found = read(self, starts, ends)
        if left and self.name == "a.facts":
            self.write_bytes(left.pop())
        return found

    monkeypatch.setattr(ObjectPath, "read_ranges", write_first)
    with corollary.open(tmp_path / "w") as db:
        db.run(program, facts=str(folder))
        assert set(db.relation("a").rows()) == {(2,), (3,)}
