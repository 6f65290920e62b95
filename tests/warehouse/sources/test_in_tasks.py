"""Large sources, read in tasks by file and by block: the same rows, findings and positions."""

import gc
import gzip
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.core.arrow import from_python, to_python
from corollary.core.program import Relation
from corollary.core.types import FLOAT, NUMBER, SYMBOL
from corollary.errors import InputError
from corollary.warehouse.files.file_rows import FileRows, table_of
from corollary.warehouse.sources import portions
from corollary.warehouse.sources.source import TableRows
from corollary.warehouse.sources.tasks import staging
from support.selection import examples
from support.source_model import FORMS, Row, Run, a_source, csv, parquet, refused
from support.spark.in_process_partitions import InProcessTasks

WIDE = Relation(
    "p",
    ("id", "text", "share"),
    (NUMBER, SYMBOL.with_null(True), FLOAT.with_null(True)),
    is_derived=False,
)
FILES = 3


@pytest.fixture
def tasks(tmp_path_factory: pytest.TempPathFactory) -> InProcessTasks:
    """Tasks for everything that is read."""
    return InProcessTasks(tmp_path_factory.mktemp("tasks"))


@pytest.fixture(autouse=True)
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let portions have few bytes."""
    portion_size(monkeypatch, 40)


def portion_size(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(portions, "PORTION_BYTES", size)
    monkeypatch.setattr(portions, "PARQUET_PORTION_BYTES", size)


# --- what is read -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMS)
def test_every_format(tmp_path: Path, tasks: InProcessTasks, name: str) -> None:
    run, write = Run(a_source(tmp_path, name, tasks=tasks)), FORMS[name]
    for rows in ([(n, f"text {n}") for n in range(50)], [(1, "b"), (3, "c")], []):
        (tmp_path / name).write_bytes(write(rows))
        change = run.step(rows)
        assert change.good_records == len(rows)
    assert tasks.titles


def test_the_rows_stay_where_they_are(tmp_path: Path, tasks: InProcessTasks) -> None:
    (tmp_path / "p.facts").write_bytes(csv((n, "x") for n in range(100)))
    source = a_source(tmp_path, tasks=tasks)
    change = source.change_since(None, TableRows(from_python((), source.relation)))
    assert isinstance(change.added, FileRows)
    assert len(change.added) == 100
    assert len(change.added.files) > 3
    assert sum(change.added.map_partitions(len)) == 100
    assert len(list(Path(tasks.directory).iterdir())) == 1
    del change
    assert not list(Path(tasks.directory).iterdir())


def test_row_groups_are_portions(tmp_path: Path, tasks: InProcessTasks) -> None:
    rows: list[Row] = [(n, f"text {n}") for n in range(100)]
    relation = a_source(tmp_path).relation
    pq.write_table(from_python(rows, relation), tmp_path / "p.parquet", row_group_size=7)
    source = a_source(tmp_path, "p.parquet", tasks=tasks)
    change = source.change_since(None, TableRows(from_python((), relation)))
    assert isinstance(change.added, FileRows)
    assert len(change.added.files) == 15
    assert sorted(to_python(change.added.table())) == sorted(rows)


def test_findings_have_their_lines(tmp_path: Path, tasks: InProcessTasks) -> None:
    lines = [f"{n}\ttext" if n % 10 else "bad" for n in range(1, 101)]
    (tmp_path / "p.facts").write_text("\n".join(lines))
    source = a_source(tmp_path, tasks=tasks, quarantine=True)
    run, here = Run(source), Run(a_source(tmp_path, quarantine=True))
    run.step(here.rows.values() if here.step() else ())
    assert run.bad_lines() == here.bad_lines() == {"p.facts": list(range(10, 101, 10))}
    found = refused(Run(a_source(tmp_path, tasks=tasks)).step, "C0802")
    assert [each.span and each.span.line for each in found] == list(range(10, 101, 10))


def test_quotes_that_are_not_regular(tmp_path: Path, tasks: InProcessTasks) -> None:
    """One lone quote, and no range begins where it seems to: the file is read by one task."""
    rows = [f'{n},"two\nlines, {n}"' for n in range(50)]
    for broken in (None, 20, 49):
        lines = [f'{n},a"b' if n == broken else row for n, row in enumerate(rows)]
        (tmp_path / "p.csv").write_text("\n".join(lines))
        run, here = (
            Run(a_source(tmp_path, "p.csv", tasks=each, quarantine=True)) for each in (tasks, None)
        )
        here.step()
        run.step(here.rows.values())
        assert len(run.rows) >= 49
        assert run.bad_lines() == here.bad_lines()
        assert run.position == here.position


def test_the_first_header_names_the_columns(tmp_path: Path, tasks: InProcessTasks) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,a\n")
    (tmp_path / "b.csv").write_text("y,more,x\nb,?,2\n")
    run, here = (
        Run(a_source(tmp_path, "*.csv", tasks=each, headers="true")) for each in (tasks, None)
    )
    here.step([(1, "a"), (2, "b")])
    run.step([(1, "a"), (2, "b")])
    assert run.position == here.position
    (tmp_path / "c.csv").write_text("z,y\n1,a\n")
    refused(run.step, "C0950")


@pytest.mark.slow
def test_rows_with_one_key_meet(tmp_path: Path, tasks: InProcessTasks) -> None:
    for name in "abc":
        (tmp_path / f"{name}.csv").write_bytes(csv(((n, f"{n}{name}") for n in range(30)), ","))
    asked: dict[str, Any] = {"key": ("x",), "tasks": tasks}
    Run(a_source(tmp_path, "*.csv", order="y", **asked)).step([(n, f"{n}c") for n in range(30)])
    found = refused(Run(a_source(tmp_path, "*.csv", **asked)).step, "C0954")
    assert "same key (x)" in found[0].message
    del found
    gc.collect()  # the traceback
    assert not list(Path(tasks.directory).iterdir())


def test_too_many_malformed_records(
    tmp_path: Path, tasks: InProcessTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "QUARANTINED_MAX", 9)
    (tmp_path / "p.facts").write_text("bad\n" * 10)
    refused(Run(a_source(tmp_path, tasks=tasks, quarantine=True)).step, "C1530")


# --- what has changed ----------------------------------------------------------------------------


def test_added_files_are_read_by_themselves(tmp_path: Path, tasks: InProcessTasks) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_bytes(csv(((n, name) for n in range(9)), ","))
    run = Run(a_source(tmp_path, "*.csv", tasks=tasks))
    run.step()
    tasks.min_tuples = 5
    (tmp_path / "c.csv").write_bytes(csv(((n, "c" if n < 20 else "a") for n in range(30)), ","))
    before = run.position
    change = run.step()
    assert change.reread_files == {"c.csv"}
    assert len(change.added) == 30
    assert before is not None
    assert len(run.rows) == 18 + 30


def test_what_is_small_is_read_here(tmp_path: Path, tasks: InProcessTasks) -> None:
    tasks.min_tuples = 1000
    (tmp_path / "p.facts").write_bytes(csv((n, "x") for n in range(10)))
    run = Run(a_source(tmp_path, tasks=tasks))
    run.step([(n, "x") for n in range(10)])
    assert not tasks.titles


@pytest.mark.slow
def test_a_text_that_grew_and_one_that_was_altered(tmp_path: Path, tasks: InProcessTasks) -> None:
    rows: list[Row] = [(n, "some text") for n in range(400)]
    (tmp_path / "p.facts").write_bytes(csv(rows))
    run = Run(a_source(tmp_path, tasks=tasks))
    tasks.min_tuples = 50
    run.step(rows)
    tasks.titles.clear()
    (tmp_path / "p.facts").write_bytes(csv([*rows, (7000, "y")]))
    run.step([*rows, (7000, "y")])
    assert not tasks.titles
    (tmp_path / "p.facts").write_bytes(csv([*rows[1:], *rows[:1], (8000, "y"), (8001, "z")]))
    run.step([*rows, (8000, "y"), (8001, "z")])
    assert tasks.titles


def test_a_file_that_is_written_meanwhile(
    tmp_path: Path, tasks: InProcessTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.facts"
    path.write_bytes(csv((n, "x") for n in range(40)))
    really, left = tasks.run, [3]

    def run_and_write(*arguments: Any) -> Any:
        if left[0]:
            left[0] -= 1
            path.write_bytes(csv((n, "y") for n in range(40)))
        return really(*arguments)

    monkeypatch.setattr(tasks, "run", run_and_write)
    Run(a_source(tmp_path, tasks=tasks)).step([(n, "y") for n in range(40)])
    left[0] = 100
    refused(Run(a_source(tmp_path, tasks=tasks)).step, "C0953")


# --- the oracle: everything is read here, and anew -----------------------------------------------


def some_row(numbers: random.Random) -> Row:
    texts = [None, "", "a", 'say "so"', "two\nlines", ",", "\N{SNOWMAN}" * 5]
    return numbers.randrange(30), numbers.choice(texts), numbers.choice([None, 0.5, float("nan")])


def quoted(rows: Iterable[Row], numbers: random.Random) -> bytes:
    """Returns rows as CSV; now and then with a record that is malformed."""

    def field(value: Any) -> str:
        if value is None:
            return ""
        text = str(value)
        is_quoted = isinstance(value, str) or numbers.random() < 0.1
        return '"' + text.replace('"', '""') + '"' if is_quoted else text

    lines = ["id,text,share"]
    for row in rows:
        lines.append(",".join(map(field, row)))
        if numbers.random() < 0.05:
            lines.append(numbers.choice(["bad", '1,a"b,', "1,2,3,4", '"x,y', "", "\x00,,"]))
    return ("\n".join(lines) + numbers.choice(["", "\n"])).encode()


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32),
    form=st.sampled_from(["csv", "csv.gz", "parquet"]),
    key=st.sampled_from([(), ("id", "text")]),
    size=st.sampled_from([1, 7, 40, 100]),
)
@settings(max_examples=examples(6, 120), deadline=None)
def test_tasks_read_what_is_read_here(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    form: str,
    key: tuple[str, ...],
    size: int,
) -> None:
    numbers = random.Random(seed)
    folder = tmp_path_factory.mktemp("files")
    tasks = InProcessTasks(tmp_path_factory.mktemp("tasks"), min_tuples=numbers.choice([0, 0, 2]))
    said = {"headers": "true", "rfc4180": "true"} if form != "parquet" else {}
    said |= {"order": "share"} if key else {}
    asked: dict[str, Any] = {"relation": WIDE, "key": key, "quarantine": True, **said}
    run = Run(a_source(folder, f"*.{form}", tasks=tasks, **asked))
    with pytest.MonkeyPatch.context() as patch:
        portion_size(patch, size)
        for _ in range(3):
            for name in numbers.sample("abc", numbers.randrange(1, FILES)):
                rows = [some_row(numbers) for _ in range(numbers.randrange(12))]
                data = parquet(rows, WIDE) if form == "parquet" else quoted(rows, numbers)
                (folder / f"{name}.{form}").write_bytes(
                    gzip.compress(data) if form.endswith("gz") else data
                )
            here = Run(a_source(folder, f"*.{form}", **asked))
            here.position, here.rows, here.quarantine = run.position, {**run.rows}, run.quarantine
            try:
                here.step()
            except InputError as error:
                refused(run.step, *dict.fromkeys(each.code for each in error.diagnostics))
                continue
            run.step(here.rows.values())
            assert run.bad_lines() == here.bad_lines()
            assert table_of(run.quarantine) == here.quarantine
            assert run.position == here.position
