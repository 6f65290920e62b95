"""Sources of many files: what is read after a change, and that it is as if all were read anew."""

import datetime as dt
import json
import random
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corollary
from corollary.core.arrow import from_python, to_python
from corollary.core.engine import ValueRange
from corollary.core.program import Relation
from corollary.core.types import BOOL, DATE, FLOAT, NUMBER, SYMBOL, UNSIGNED, Kind, Type
from corollary.database.intake.pipeline import Inputs, PartRows
from corollary.database.intake.pipeline import run as run_pipeline
from corollary.database.program.parts import SOURCE_PREFIX
from corollary.engines.local.engine import LocalEngine
from corollary.engines.spark.relation import handle
from corollary.errors import InputError
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from corollary.warehouse.files import input_files
from corollary.warehouse.formats import text_records
from corollary.warehouse.formats.block_tables import BlockTables
from corollary.warehouse.sources import portions
from corollary.warehouse.sources.file_bounds import bounds_of, boxes_of, is_within
from support.selection import examples
from support.source_model import Row, Run, a_source, canonical, csv, parquet
from support.spark.in_process_partitions import share_out

DECIMAL = Type(Kind.DECIMAL, precision=6, scale=2)
WIDE = Relation(
    "p",
    ("id", "part", "text", "price", "day", "flag", "share"),
    (
        NUMBER,
        UNSIGNED,
        SYMBOL.with_null(True),
        DECIMAL.with_null(True),
        DATE,
        BOOL,
        FLOAT.with_null(True),
    ),
    is_derived=False,
)
FILES = 4
EXTREME = 2**63 - 1


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


# --- what is read -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_other_months_are_not_read(tmp_path: Path, form: str, opened: list[str]) -> None:
    write: Callable[[Iterable[Row]], bytes] = (
        partial(csv, delimiter=",") if form == "csv" else parquet
    )
    months = {month: [(100 * month + day, "x") for day in range(30)] for month in range(12)}
    run = Run(a_source(tmp_path, f"*.{form}"))

    def store(month: int, rows: list[Row]) -> None:
        months[month] = rows  # type: ignore[assignment]
        (tmp_path / f"{month:02}.{form}").write_bytes(write(rows))

    def step() -> list[str]:
        opened.clear()
        run.step(row for rows in months.values() for row in rows)
        return sorted(opened)

    for month, rows in list(months.items()):
        store(month, list(rows))
    assert len(step()) == 12
    store(3, list(months[3][:-5]))
    assert step() == [f"03.{form}"]
    store(3, [(7_000_000, "y")])
    store(12, [(9_000, "x")])
    assert step() == [f"03.{form}", f"12.{form}"]
    del months[5]
    (tmp_path / f"05.{form}").unlink()
    assert step() == []
    # A row of two files: the other one has to be looked at when the first loses it.
    store(6, [*months[6], (705, "x")])
    assert step() == [f"06.{form}"]
    store(7, [row for row in months[7] if row != (705, "x")])
    assert step() == [f"06.{form}", f"07.{form}"]


def test_a_text_that_keeps_files_apart(tmp_path: Path, opened: list[str]) -> None:
    for name in ("north", "south"):
        (tmp_path / f"{name}.csv").write_bytes(csv((at, name * 20) for at in range(9)))
    run = Run(a_source(tmp_path, "*.csv", delimiter="\t"))
    run.step()
    opened.clear()
    (tmp_path / "south.csv").write_bytes(csv((at, "south" * 20) for at in range(1, 10)))
    change = run.step()
    assert opened == ["south.csv"]
    assert (change.added.num_rows, change.removed.num_rows) == (1, 1)


def test_bounds_of_compact_tables() -> None:
    """Large files have narrow columns; their bounds are the same."""
    numbers = random.Random(7)
    rows = [some_row(numbers, file) for file in range(FILES) for _ in range(9)]
    rows = [row for row in rows if row[0] not in {EXTREME, -EXTREME} and row[1] < 9]
    for held in (rows, rows[:1], [(*row[:2], None, None, *row[4:]) for row in rows]):
        table = from_python(held, WIDE)
        tables = BlockTables(WIDE)
        for at in range(0, len(held), 5):
            tables.add(table.slice(at, 5))
        assert bounds_of(tables.union()) == bounds_of(table)


def test_files_of_several_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_records, "BLOCK_BYTES", 200)
    numbers = random.Random(3)
    run, anew = (
        Run(a_source(tmp_path, "*.csv", relation=WIDE, headers="true", rfc4180="true"))
        for _ in range(2)
    )
    held = {f"{file}.csv": [some_row(numbers, file) for _ in range(40)] for file in range(3)}
    for _ in range(3):
        store(tmp_path, held, WIDE, "csv")
        anew.position, anew.rows = None, {}
        anew.step()
        run.step(anew.rows.values())
        assert len(run.rows) > 60
        held["1.csv"] = held["1.csv"][3:]


def test_a_row_that_was_left_out_comes_back(tmp_path: Path) -> None:
    """Of rows with one key only the last is taken; when it goes, another file has the next."""
    rows = {"a": [(1, "1"), (5, "5")], "b": [(1, "2")], "c": [(9, "9")]}
    run = Run(a_source(tmp_path, "*.csv", delimiter="\t", key=("x",), order="y"))
    for name, each in rows.items():
        (tmp_path / f"{name}.csv").write_bytes(csv(each))
    run.step([(1, "2"), (5, "5"), (9, "9")])
    (tmp_path / "b.csv").write_bytes(csv([(2, "0")]))
    run.step([(1, "1"), (2, "0"), (5, "5"), (9, "9")])
    (tmp_path / "c.csv").write_bytes(csv([(5, "6")]))
    run.step([(1, "1"), (2, "0"), (5, "6")])
    (tmp_path / "c.csv").unlink()
    run.step([(1, "1"), (2, "0"), (5, "5")])


# --- the oracle: everything is read anew --------------------------------------------------------


def some_row(numbers: random.Random, file: int) -> Row:
    """A row: files have values of their own, and share a few with the next one."""
    number = numbers.choice([-EXTREME, EXTREME, 0]) if numbers.random() < 0.03 else None
    return (
        10 * file + numbers.randrange(12) if number is None else number,
        numbers.randrange(3) if numbers.random() < 0.95 else 2**64 - 1,
        numbers.choice([None, "", "a", f"file {file}", "\N{SNOWMAN}" * 40]),
        numbers.choice([None, Decimal("-1.50"), Decimal(file).quantize(Decimal("0.01"))]),
        dt.date(2026, 1 + file, 1 + numbers.randrange(2)),
        numbers.random() < 0.5,
        numbers.choice([None, 0.5, float(file), float("nan"), float("-inf")]),
    )


def as_text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def with_headers(rows: list[Row], names: tuple[str, ...], *, is_mixed: bool = False) -> bytes:
    order = sorted(range(len(names)), key=lambda at: names[at] if is_mixed else str(at))
    lines = [names, *rows]
    return "".join(",".join(as_text(line[at]) for at in order) + "\n" for line in lines).encode()


def as_objects(rows: list[Row], names: tuple[str, ...]) -> bytes:
    def plain(value: Any) -> Any:
        return value if value is None or isinstance(value, bool | int) else str(value)

    def line(row: Row) -> str:
        return json.dumps(dict(zip(names, map(plain, row), strict=True)))

    return "".join(line(row) + "\n" for row in rows).encode()


WRITERS: dict[str, Callable[[list[Row], Relation], bytes]] = {
    "csv": lambda rows, relation: with_headers(rows, relation.columns),
    "mixed.csv": lambda rows, relation: with_headers(
        rows, relation.columns, is_mixed=len(rows) % 2 > 0
    ),
    "jsonl": lambda rows, relation: as_objects(rows, relation.columns),
    "parquet": parquet,
}


def edit(numbers: random.Random, held: dict[str, list[Row]], form: str) -> None:
    """Changes one of the files, or two."""
    file = numbers.randrange(FILES)
    name, other = f"{file}.{form}", f"{numbers.randrange(FILES)}.{form}"
    rows = [some_row(numbers, file) for _ in range(numbers.randrange(5))]
    match numbers.choice(["write", "append", "shrink", "remove", "rename", "swap", "move", "bad"]):
        case "append" if name in held:
            held[name] = held[name] + rows
        case "shrink" if held.get(name):
            held[name] = held[name][1:]
        case "remove":
            held.pop(name, None)
        case "rename" if name in held:
            held[other] = held.pop(name)
        case "swap" if name in held and other in held:
            held[name], held[other] = held[other], held[name]
        case "move" if held.get(name) and other != name:
            held[other] = [*held.get(other, []), held[name][-1]]
            held[name] = held[name][: numbers.choice([-1, len(held[name])])]
        case "bad" if form != "parquet" and name in held:
            held[name] = [*held[name], ("bad", *some_row(numbers, file)[1:])]
        case _:
            held[name] = rows


def store(folder: Path, held: dict[str, list[Row]], relation: Relation, form: str) -> None:
    """Writes the files, all of them: what has not changed is written again with the same bytes."""
    for path in folder.iterdir():
        if path.name not in held:
            path.unlink()
    for name, rows in held.items():
        path, data = folder / name, WRITERS[form](rows, relation)
        if not path.exists() or path.read_bytes() != data or len(rows) % 3 == 0:
            path.write_bytes(data)


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32),
    form=st.sampled_from([*WRITERS]),
    key=st.sampled_from([(), ("id", "part"), ("text",)]),
    has_order=st.booleans(),
)
@settings(max_examples=examples(8, 60))
def test_a_change_is_reading_anew(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    form: str,
    key: tuple[str, ...],
    has_order: bool,
) -> None:
    numbers = random.Random(seed)
    folder = tmp_path_factory.mktemp("files")
    said = {"headers": "true", "rfc4180": "true"} if form.endswith("csv") else {}
    if key and has_order:
        said = {**said, "order": "price"}
    asked: dict[str, Any] = {"relation": WIDE, "key": key, "quarantine": True, **said}
    run = Run(a_source(folder, f"*.{form}", **asked))
    held: dict[str, list[Row]] = {f"0.{form}": []}  # its headers say how columns are called
    store(folder, held, WIDE, form)
    run.step()
    assert run.position is not None
    for _ in range(8):
        for _ in range(numbers.randrange(1, 4)):
            edit(numbers, held, form)
        store(folder, held, WIDE, form)
        anew = Run(a_source(folder, f"*.{form}", **asked))
        anew.position = {**run.position, "files": {}}
        try:
            anew.step()
        except InputError as error:
            with pytest.raises(InputError) as caught:
                run.step()
            codes = [each.code for each in error.diagnostics]
            assert [each.code for each in caught.value.diagnostics] == codes
            continue
        try:
            run.step(anew.rows.values())
        except InputError as error:  # a file that had good rows must not have bad ones only
            assert error.diagnostics[0].code == "C0950"  # noqa: PT017
            continue
        assert run.bad_lines() == anew.bad_lines()


PROGRAM = """
.decl p(id: number, part: unsigned, text: symbol?, price: decimal(6, 2)?,
        day: date, flag: bool, share: float?){key}
.input p(filename="*.{form}", headers=true, rfc4180=true{order})
.decl all_of(id: number, n: number) stored
all_of(i, n) :- p(i, _, _, _, _, _, _), n = count : {{ p(i, _, _, _, _, _, _) }}.
.output all_of
"""


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), has_key=st.booleans(), form=st.sampled_from(["csv", "parquet"]))
@settings(max_examples=examples(2, 20), deadline=None)
def test_warehouses_follow_files(
    tmp_path_factory: pytest.TempPathFactory, seed: int, has_key: bool, form: str
) -> None:
    follow_files(tmp_path_factory.mktemp("followed"), seed, has_key, form)


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), has_key=st.booleans(), form=st.sampled_from(["csv", "parquet"]))
@settings(max_examples=examples(1, 20), deadline=None)
def test_partitioned_warehouses_follow_files(
    tmp_path_factory: pytest.TempPathFactory, seed: int, has_key: bool, form: str
) -> None:
    """The same if tasks read all files, and all relations are in partitions."""
    with pytest.MonkeyPatch.context() as patch:
        share_out(patch, "partitions")
        patch.setattr(handle, "DISTRIBUTED_MIN_TUPLES", 1)
        patch.setattr(portions, "PORTION_BYTES", 100)
        follow_files(tmp_path_factory.mktemp("followed"), seed, has_key, form)


def follow_files(place: Path, seed: int, has_key: bool, form: str) -> None:
    """Run a program on files that change, and compare with a warehouse made anew each time."""
    numbers = random.Random(seed)
    (place / "files").mkdir()
    key, order = (" key(id, part)", ', order="price"') if has_key else ("", "")
    text = PROGRAM.format(key=key, order=order, form=form)
    if form == "parquet":
        text = text.replace("headers=true, rfc4180=true", 'format="parquet"')
    program = parse(SourceFile("p.dl", text))
    held: dict[str, list[Row]] = {}
    for number in range(6):
        for _ in range(numbers.randrange(1, 4)):
            edit(numbers, held, form)
        store(place / "files", held, WIDE, form)
        inputs = Inputs(place / "files")
        with corollary.open(place / f"anew{number}") as fresh:
            try:
                run_pipeline(fresh, program, inputs)
            except InputError:
                continue
            expected = {name: rows_of(fresh, name) for name in ("p", "all_of")}
        with corollary.open(place / "followed") as database:
            try:
                run_pipeline(database, program, inputs)
            except InputError as error:
                assert error.diagnostics[0].code == "C0950"  # noqa: PT017
                continue
            assert {name: rows_of(database, name) for name in expected} == expected


def rows_of(database: Any, name: str) -> set[Row]:
    return set(map(canonical, to_python(database.relation(name).arrow())))


# --- rows in the engine -------------------------------------------------------------------------


@pytest.mark.slow
@given(st.integers(0, 2**32))
@settings(max_examples=examples(25, 200))
def test_rows_within_bounds(seed: int) -> None:
    numbers = random.Random(seed)
    engine = LocalEngine()
    engine.declare({"p": WIDE})
    rows = [some_row(numbers, numbers.randrange(FILES)) for _ in range(40)]
    engine.insert("p", rows[:20])
    engine.commit()
    engine.insert("p", rows[20:])
    engine.delete("p", rows[10:15])
    engine.commit()
    held = to_python(engine.read("p"))
    boxes = [
        bounds_of(from_python(numbers.sample(rows, numbers.randrange(1, 6)), WIDE))
        for _ in range(numbers.randrange(1, 3))
    ]
    found = engine.within("p", boxes_of(boxes))
    assert len({canonical(row) for row in to_python(found)}) == found.num_rows
    inside = {
        canonical(row)
        for row in held
        if any(is_within(from_python([row], WIDE), box).all() for box in boxes)
    }
    assert inside <= {canonical(row) for row in to_python(found)} <= set(map(canonical, held))


def test_few_blocks_are_decoded_for_a_range() -> None:
    relation = Relation("p", ("x",), (NUMBER,), is_derived=False)
    engine = LocalEngine()
    engine.declare({"p": relation})
    engine.insert("p", [(number,) for number in range(100)])
    engine.commit()
    found = engine.within("p", [{0: ValueRange(10, 12, False)}, {0: ValueRange(11, 14, False)}])
    assert sorted(to_python(found)) == [(number,) for number in range(10, 15)]
    assert not engine.within("p", [{0: ValueRange(10**6, 10**7, True)}]).num_rows


def test_earlier_rows_of_a_part(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("1,a\n2,b\n2,c\n")
    program = parse(
        SourceFile(
            "p.dl",
            ".decl p(x: number, y: symbol)\n"
            '.input p(filename="p.csv", delimiter=",")\n.decl q(x: number)\nq(x) :- p(x, _).\n',
        )
    )
    with corollary.open(tmp_path / "warehouse") as database:
        run_pipeline(database, program, Inputs(tmp_path))
        with database.transaction() as transaction:
            transaction.insert("p", [(2, "manual")])
        state = database._state
        relation = state.loaded.normal.relations["p"]
        rows = PartRows(state, relation, SOURCE_PREFIX + "p < p.csv")
        given_rows = from_python([(2, "z"), (3, "b")], relation)
        assert sorted(to_python(rows.matching(given_rows, [0]))) == [(2, "b"), (2, "c")]
        assert not rows.matching(given_rows, [0, 1]).num_rows
        assert len(rows) == rows.table().num_rows == 3
        none = PartRows(state, relation, SOURCE_PREFIX + "p < other.csv")
        assert not len(none) + none.table().num_rows + none.within([{}]).num_rows
        assert not none.matching(given_rows, [0]).num_rows
