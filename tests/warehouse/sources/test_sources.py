"""Sources: what is read again, that differences are exact, and who may be read at all."""

import math
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.core.arrow import from_python, to_python
from corollary.core.program import Relation
from corollary.core.types import FLOAT, NUMBER, SYMBOL
from corollary.errors import InputError
from corollary.warehouse.copies import difference
from corollary.warehouse.files import input_files
from corollary.warehouse.sources import file_source
from corollary.warehouse.sources.file_formats import FORMATS
from corollary.warehouse.sources.file_listing import ListedFile
from corollary.warehouse.sources.source import TableRows
from support.selection import examples
from support.source_model import (
    FORMS,
    P,
    Row,
    Run,
    a_source,
    canonical,
    csv,
    objects,
    parquet,
    refused,
)

OPTIONAL = Relation(
    "p",
    ("a", "b", "c"),
    (NUMBER.with_null(True), FLOAT.with_null(True), SYMBOL.with_null(True)),
    is_derived=False,
)
VALUES = st.tuples(
    st.sampled_from([None, 0, 1]),
    st.sampled_from([None, 0.0, -0.0, math.nan, math.inf, 1.5]),
    st.sampled_from([None, "", "a", 'b"\n']),
)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are opened."""
    names: list[str] = []
    really = input_files.open_file

    def note(path: Path, name: str, span: Any) -> Any:
        names.append(path.name)
        return really(path, name, span)

    monkeypatch.setattr(input_files, "open_file", note)
    return names


# --- differences --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMS)
def test_every_format(tmp_path: Path, name: str) -> None:
    run, write = Run(a_source(tmp_path, name)), FORMS[name]
    rows: list[Row] = [(1, "a"), (2, "b")]
    (tmp_path / name).write_bytes(write(rows))
    run.step(rows)
    (tmp_path / name).write_bytes(write([(2, "b"), (3, "c"), (3, "c")]))
    change = run.step([(2, "b"), (3, "c")])
    assert to_python(change.added) == [(3, "c")]
    assert to_python(change.removed) == [(1, "a")]
    (tmp_path / name).write_bytes(write([]))
    run.step([])


@pytest.mark.parametrize("name", FORMS)
def test_a_row_listed_three_times_then_twice(tmp_path: Path, name: str) -> None:
    run, write = Run(a_source(tmp_path, name)), FORMS[name]
    for times, expected in ((3, [(1, "a")]), (2, [(1, "a")]), (1, [(1, "a")]), (0, [])):
        (tmp_path / name).write_bytes(write([(1, "a")] * times))
        run.step(expected)


def test_formats_by_parameter(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(objects([(1, "a")]))
    for said in ({"format": "jsonl"}, {"IO": "jsonlines"}):
        Run(a_source(tmp_path, "data", **said)).step([(1, "a")])
    (tmp_path / "data").write_bytes(parquet([(1, "a")]))
    for said in ({"format": "parquet"}, {"IO": "parquet"}):
        Run(a_source(tmp_path, "data", **said)).step([(1, "a")])
    (tmp_path / "p.jsonl").write_bytes(csv([(1, "a")]))
    Run(a_source(tmp_path, "p.jsonl", format="csv")).step([(1, "a")])


@pytest.mark.parametrize("name", ["p.facts", "p.jsonl", "p.parquet"])
def test_a_nullary_relation(tmp_path: Path, name: str) -> None:
    unit = Relation("p", (), (), is_derived=False)
    texts = {"p.facts": b"()\n", "p.jsonl": b"{}\n[]\n", "p.parquet": parquet([(1, "a")])}
    empty = {"p.facts": b"", "p.jsonl": b"\n", "p.parquet": parquet([])}
    run = Run(a_source(tmp_path, name, relation=unit))
    for _ in range(2):
        (tmp_path / name).write_bytes(texts[name])
        run.step([()])
        (tmp_path / name).write_bytes(empty[name])
        run.step([])


@given(st.lists(VALUES, max_size=8), st.lists(VALUES, max_size=8))
@settings(max_examples=examples(25, 150))
def test_set_difference(before: list[Row], now: list[Row]) -> None:
    tables = [
        pa.concat_tables(
            [from_python([row], OPTIONAL) for row in rows] or [from_python([], OPTIONAL)]
        )
        for rows in (before, now)
    ]
    came, went = (list(map(canonical, to_python(each))) for each in difference(*tables))
    then, there = set(map(canonical, before)), set(map(canonical, now))
    assert sorted(map(str, came)) == sorted(map(str, there - then))
    assert sorted(map(str, went)) == sorted(map(str, then - there))


def quoted(rows: list[Row]) -> bytes:
    def text(value: Any) -> str:
        if isinstance(value, str):
            return '"' + value.replace('"', '""') + '"'
        return "" if value is None else str(value)

    return "".join(",".join(map(text, row)) + "\n" for row in rows).encode()


def lines(rows: list[Row]) -> bytes:
    def plain(row: Row) -> Row:
        return tuple(
            str(value) if isinstance(value, float) and not math.isfinite(value) else value
            for value in row
        )

    return objects(map(plain, rows), OPTIONAL.columns)


@given(seed=st.integers(0, 2**32), form=st.sampled_from(["csv", "jsonl", "parquet"]))
@settings(max_examples=examples(8, 25))
def test_random_edits_of_a_folder(
    tmp_path_factory: pytest.TempPathFactory, seed: int, form: str
) -> None:
    write: Any = {
        "csv": quoted,
        "jsonl": lines,
        "parquet": lambda rows: parquet(rows, OPTIONAL),
    }[form]
    numbers = random.Random(seed)
    folder = tmp_path_factory.mktemp("folder")
    said = {"rfc4180": "true"} if form == "csv" else {}
    run = Run(a_source(folder, ".", relation=OPTIONAL, **said))
    held: dict[str, list[Row]] = {}

    def some() -> list[Row]:
        choices = ([None, 0, 1], [None, -0.0, 0.0, math.nan, 1.5], [None, "", 'b"\n'])
        return [tuple(map(numbers.choice, choices)) for _ in range(numbers.randrange(5))]

    for _ in range(5):
        for _ in range(numbers.randrange(1, 3)):
            name = f"{numbers.randrange(3)}.{form}"
            match numbers.choice(["write", "append", "remove", "touch"]):
                case "append":
                    held[name] = held.get(name, []) + some()
                case "remove":
                    held.pop(name, None)
                    (folder / name).unlink(missing_ok=True)
                    continue
                case "touch" if name in held:
                    pass
                case _:
                    held[name] = some()
            (folder / name).write_bytes(write(held[name]))
        run.step(row for rows in held.values() for row in rows)


# --- what is read -------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_has_not_changed_is_not_read(tmp_path: Path, opened: list[str]) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(1000):
        (folder / f"{number}.tsv").write_text(f"{number % 700}\ta\n")
    run = Run(a_source(tmp_path, "many"))
    run.step({(number, "a") for number in range(700)})
    assert len(opened) == 1000
    opened.clear()
    assert run.source.is_unchanged(run.position)
    change = run.step()
    assert not opened
    assert run.asked == 0
    assert not change.added.num_rows + change.removed.num_rows
    (folder / "1000.tsv").write_text("1\ta\n1000\ta\n")
    assert not run.source.is_unchanged(run.position)
    assert to_python(run.step().added) == [(1000, "a")]
    assert opened == ["1000.tsv"]


def test_a_removed_file_takes_only_rows_that_no_other_has(tmp_path: Path) -> None:
    for name, text in (("a", "1\tx\n2\tx\n"), ("b", "2\tx\n3\tx\n"), ("c", "9\tx\n")):
        (tmp_path / f"{name}.tsv").write_text(text)
    run = Run(a_source(tmp_path, "*.tsv"))
    run.step([(1, "x"), (2, "x"), (3, "x"), (9, "x")])
    (tmp_path / "a.tsv").unlink()
    change = run.step([(2, "x"), (3, "x"), (9, "x")])
    assert to_python(change.removed) == [(1, "x")]
    (tmp_path / "b.tsv").write_text("4\tx\n")
    run.step([(4, "x"), (9, "x")])
    (tmp_path / "b.tsv").rename(tmp_path / "d.tsv")
    assert not to_python(run.step([(4, "x"), (9, "x")]).added)


@pytest.mark.parametrize(("format_", "name"), [("csv", "p.facts"), ("jsonl", "p.jsonl")])
def test_a_file_that_got_longer_is_parsed_from_there(
    tmp_path: Path, format_: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = csv if format_ == "csv" else objects
    starts: list[int] = []
    read = FORMATS[format_].read

    def note(text: Any, name: str, expected: Any, earlier: Any, progress: Any) -> Any:
        starts.append(progress.bytes - text.mark_bytes if earlier else 0)
        return read(text, name, expected, earlier, progress)

    monkeypatch.setitem(FORMATS, format_, replace(FORMATS[format_], read=note))
    for mark in (b"", input_files.BYTE_ORDER_MARK):
        starts.clear()
        run = Run(a_source(tmp_path, name, quarantine=True))
        first = mark + write([(1, "a"), (2, "b")])
        (tmp_path / name).write_bytes(first)
        run.step([(1, "a"), (2, "b")])
        (tmp_path / name).write_bytes(first + write([(3, "c"), (1, "a"), ("bad", "d")]))
        change = run.step([(1, "a"), (2, "b"), (3, "c")])
        assert starts == [0, len(first) - len(mark)]
        assert [(bad.file, bad.line) for bad in run.bad_records(change)] == [(name, 5)]
        assert not change.reread_files
        (tmp_path / name).touch()
        assert not run.step([(1, "a"), (2, "b"), (3, "c")]).added.num_rows
        assert len(starts) == 2
        (tmp_path / name).write_bytes(write([(2, "b")]))
        assert run.step([(2, "b")]).reread_files == {name}


@pytest.mark.parametrize("checked_first", [0, 1 << 24])
def test_growth_within_a_record_is_a_change(
    tmp_path: Path, checked_first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_source, "CHECKED_FIRST_MAX_BYTES", checked_first)
    path = tmp_path / "p.facts"
    for said in ({}, {"rfc4180": "true", "delimiter": "\t"}):
        run = Run(a_source(tmp_path, **said))
        path.write_text("1\ta")
        run.step([(1, "a")])
        path.write_text("1\tab\n")
        run.step([(1, "ab")])
        path.write_text('1\tab\n2\t"c\n')
        if not said:
            run.step([(1, "ab"), (2, '"c')])
    path.write_text('1\t"a\n"\n')
    run.step([(1, "a\n")])
    path.write_text('1\t"a\n"\n2\t""\n')
    run.step([(1, "a\n"), (2, "")])


def test_growth_of_a_quoted_field_that_was_open(tmp_path: Path) -> None:
    path = tmp_path / "p.facts"
    run = Run(a_source(tmp_path, quarantine=True, rfc4180="true"))
    path.write_text('1,a"b\n2,"c\n')
    assert len(run.step([(1, 'a"b')]).bad_rows) == 1
    path.write_text('1,a"b\n2,"c\nd"\n')
    assert not len(run.step([(1, 'a"b'), (2, "c\nd")]).bad_rows)


@given(
    st.lists(st.text(st.sampled_from('12a,"\n\r\0x'), max_size=8), min_size=1, max_size=4),
    st.sampled_from([{}, {"rfc4180": "true"}, {"headers": "true"}, {"delimiter": ",,"}]),
    st.sampled_from(["p.csv", "p.jsonl"]),
    st.sampled_from(["", "\ufeff", "x,y\n1,a\n", '1,"a"\n', '[1,"a"]\n']),
)
@settings(max_examples=examples(12, 40))
def test_growing_is_reading_anew(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[str],
    said: dict[str, str],
    name: str,
    first: str,
) -> None:
    folder = tmp_path_factory.mktemp("grow")
    asked = {"delimiter": ",", **said} if name == "p.csv" else {}
    run = Run(a_source(folder, name, quarantine=True, **asked))
    bad: list[tuple[int, str]] = []
    for number in range(len(parts) + 1):
        (folder / name).write_text(first + "".join(parts[:number]), newline="")
        anew = Run(a_source(folder, name, quarantine=True, **asked))
        try:
            whole = anew.step()
            change = run.step(anew.rows)
        except InputError as error:
            assert error.diagnostics[0].code in ("C0945", "C0950")  # noqa: PT017
            return
        bad = ([] if change.reread_files else bad) + [
            (each.line, each.raw) for each in run.bad_records(change)
        ]
        assert bad == [(each.line, each.raw) for each in run.bad_records(whole)]


def test_another_directive_means_other_rows(tmp_path: Path) -> None:
    (tmp_path / "p.facts").write_text("1\t2\n")
    run = Run(a_source(tmp_path))
    run.step([(1, "2")])
    run.source = a_source(tmp_path, columns="1:0")
    assert not run.source.is_unchanged(run.position)
    run.step([(2, "1")])
    run.source = a_source(tmp_path, columns="1:0", new_columns="refuse")
    assert run.source.is_unchanged(run.position)


def test_a_write_at_once_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "p.facts"
    run = Run(a_source(tmp_path))
    for number in range(10):
        path.write_text(f"{number}\ta\n")
        run.step([(number, "a")])


def test_unix_times_that_are_set_back_do_not_deceive(tmp_path: Path) -> None:
    path = tmp_path / "p.facts"
    path.write_text("1\ta\n")
    run = Run(a_source(tmp_path))
    run.step([(1, "a")])
    times = path.stat()
    path.write_text("2\tb\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    run.step([(2, "b")])


# --- files that others write meanwhile ----------------------------------------------------------


def while_reading(monkeypatch: pytest.MonkeyPatch, action: Any, times: int = 1) -> None:
    """Lets something happen between the look at a file and its reading, some times."""
    really = input_files.wait_for_tick
    left = [times]

    def hurried(fingerprint: input_files.Fingerprint) -> None:
        really(fingerprint)
        if left[0]:
            left[0] -= 1
            action()

    monkeypatch.setattr(input_files, "wait_for_tick", hurried)
    monkeypatch.setattr(
        input_files, "RETRY_PAUSES_SECONDS", (0.0,) * len(input_files.RETRY_PAUSES_SECONDS)
    )


@pytest.mark.parametrize("name", ["p.facts", "p.jsonl", "p.parquet"])
@pytest.mark.parametrize("how", ["replaced", "written", "cut"])
def test_a_file_written_while_it_is_read(
    tmp_path: Path, name: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = FORMS[name]
    (tmp_path / name).write_bytes(write([(1, "a")]))

    def meanwhile() -> None:
        path = tmp_path / name
        if how == "replaced":
            (tmp_path / "new").write_bytes(write([(2, "b")]))
            (tmp_path / "new").replace(path)
        else:
            path.write_bytes(write([(2, "b")] * 2 if how == "written" else []))

    while_reading(monkeypatch, meanwhile)
    Run(a_source(tmp_path, name)).step([] if how == "cut" else [(2, "b")])


def test_a_file_that_never_rests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.facts"
    path.write_text("1\ta\n")

    def grow() -> None:
        with path.open("a") as file:
            file.write("1\ta\n")

    while_reading(monkeypatch, grow, times=1000)
    (found,) = refused(Run(a_source(tmp_path)).step, "C0953")
    assert "is written while it is read; 5 attempts failed" in found.message
    assert "rename it into place" in str(found.note)


def test_a_file_that_vanishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.tsv", "b.tsv"):
        (tmp_path / name).write_text(f"1\t{name}\n")
    while_reading(monkeypatch, (tmp_path / "b.tsv").unlink)
    Run(a_source(tmp_path, "*.tsv")).step([(1, "a.tsv")])
    listed = file_source.list_files

    def late(place: Any) -> Any:
        found = listed(place)
        return [*found, ListedFile("c.tsv", str(tmp_path / "c.tsv"), found[0].fingerprint)]

    with monkeypatch.context() as patch:
        patch.setattr(file_source, "list_files", late)
        refused(Run(a_source(tmp_path, "*.tsv")).step, "C0953")
    (tmp_path / "p.facts").write_text("1\ta\n")
    run = Run(a_source(tmp_path))
    while_reading(monkeypatch, (tmp_path / "p.facts").unlink)
    (found,) = refused(run.step, "C0804")
    assert found.message == f"`{tmp_path}/p.facts` cannot be read: No such file or directory"


def test_the_content_before_in_another_order(tmp_path: Path) -> None:
    source = a_source(tmp_path)
    (tmp_path / "p.facts").write_bytes(csv([(1, "a"), (2, "b")]))
    before = source.change_since(None, TableRows(from_python([], P))).position
    (tmp_path / "p.facts").write_bytes(csv([(2, "b"), (3, "c")]))
    content = from_python([(1, "a"), (2, "b")], P).select(["y", "x"])
    change = source.change_since(before, TableRows(content))
    assert to_python(change.added) == [(3, "c")]
    assert to_python(change.removed) == [(1, "a")]
