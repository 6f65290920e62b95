"""Index files: what is saved comes back, is read block by block, and damage is always noticed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import corollary
from corollary.core.arrow import to_python
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.core.types import FLOAT, NUMBER, SYMBOL, UNSIGNED, Type, decimal
from corollary.engines.local.engine import LocalEngine
from corollary.engines.local.storage import blocks, stored_run
from corollary.engines.local.storage.blocks import pack_columns, unpack_columns
from corollary.engines.local.storage.code_range import ZERO_CODE, CodeRange
from corollary.engines.local.storage.index_files import DICTIONARY_FILE
from corollary.engines.local.storage.layout import Layout, layout_of
from corollary.engines.local.storage.runs import MemoryRun, sort_distinct
from corollary.engines.local.storage.stored_run import StoredRun
from corollary.engines.local.values import domains, stored_strings, symbols
from corollary.errors import WarehouseError
from support.selection import examples

if TYPE_CHECKING:
    from corollary.database.database import Database

Row: TypeAlias = tuple[Any, ...]
Files: TypeAlias = dict[str, pa.Buffer]
Words: TypeAlias = "np.ndarray[Any, Any]"


@contextmanager
def small_blocks(size: int = 4, many: int = 1) -> Iterator[None]:
    """Blocks of a few tuples, so that small data has many; with `many` = 1, none is read ahead."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (stored_run, stored_strings, domains):
            patch.setattr(module, "BLOCK_ROWS", size)
        patch.setattr(stored_strings, "HASH_BLOCK_ROWS", 2 * size)
        for module in (stored_run, stored_strings):
            patch.setattr(module, "DECODE_ALL_RATIO", many)
        patch.setattr(symbols, "LOAD_ALL_SEARCH_RATIO", many - 1)
        yield


# ----------------------------------------------------------------------------------------- integers


@given(
    st.lists(
        st.integers(0, 64).flatmap(
            lambda bits: st.lists(st.integers(0, (1 << bits) - 1), min_size=5, max_size=5)
        ),
        max_size=4,
    ),
    st.binary(max_size=40),
)
def test_integers_are_packed_and_unpacked(columns: list[list[int]], text: bytes) -> None:
    block = pack_columns([np.array(column, np.uint64) for column in columns], text)
    found, rest = unpack_columns(memoryview(block), len(columns), 5)
    assert [column.tolist() for column in found] == columns
    assert bytes(rest) == text


# --------------------------------------------------------------------------------------------- runs


@st.composite
def sorted_words(draw: st.DrawFn) -> tuple[Layout, Words]:
    """Draws tuples of codes, packed: narrow or wide, dense or sparse, with or without a key."""
    widths = draw(st.lists(st.sampled_from((1, 3, 11, 21, 40, 63)), min_size=1, max_size=4))
    bases = [draw(st.sampled_from((0, ZERO_CODE))) if width < 61 else 0 for width in widths]
    layout = layout_of(tuple(map(CodeRange, bases, widths)))
    codes = [
        st.one_of(
            st.integers(column.base + 1, min(column.base + 4, column.last)),
            st.integers(column.base + 1, column.last),
        )
        for column in layout.columns
    ]
    rows = draw(st.lists(st.tuples(*codes), min_size=1, max_size=40))
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    return layout, sort_distinct(layout.pack(columns, len(rows)))


@given(sorted_words(), st.sampled_from((1, 2, 5, 64)), st.sampled_from((1, 4)), st.data())
@settings(max_examples=examples(25, 300))
def test_a_stored_run_is_a_run(
    drawn: tuple[Layout, Words], size: int, many: int, data: st.DataObject
) -> None:
    layout, words = drawn
    with small_blocks(size, many):
        stored_words = stored_run.store_order(words, layout)
        plain, run = MemoryRun(words), StoredRun(stored_words)
        assert len(run) == len(plain)
        assert run.decoded_blocks == 0
        for _ in range(data.draw(st.integers(0, 4))):
            check_probe(plain, run, layout, data)
        assert run.decoded_blocks <= len(stored_words.blocks)
        assert run.words.tobytes() == words.tobytes()
        check_probe(plain, run, layout, data)
        assert run.nbytes >= words.nbytes


def check_probe(plain: MemoryRun, run: StoredRun, layout: Layout, data: st.DataObject) -> None:
    """Ask both runs the same."""
    count = len(plain)
    places = data.draw(st.lists(st.integers(0, count - 1), max_size=4))
    near = layout.unpack(plain.words[places])
    drift = data.draw(st.sampled_from((0, 1)))
    lasts = [column.last for column in layout.columns]
    columns = [np.minimum(column + drift, last) for column, last in zip(near, lasts, strict=True)]
    needles = layout.pack(columns, len(places))
    assert run.contains(needles).tolist() == plain.contains(needles).tolist()
    keys = columns[: data.draw(st.integers(0, len(columns)))]
    for found, wanted in zip(
        run.ranges(layout, keys, len(places)), plain.ranges(layout, keys, len(places)), strict=True
    ):
        assert found.tolist() == wanted.tolist()
    asked = np.array(places, np.int64)
    assert run.take(asked).tobytes() == plain.take(asked).tobytes()
    first, last = sorted(data.draw(st.tuples(st.integers(0, count), st.integers(0, count))))
    assert run.slice(first, last).tobytes() == plain.slice(first, last).tobytes()


@pytest.mark.parametrize("widths", [(20, 20), (40, 40)], ids=["narrow", "wide"])
def test_a_probe_decodes_the_blocks_it_falls_in(widths: tuple[int, int]) -> None:
    layout = layout_of(tuple(CodeRange(0, width) for width in widths))
    count = 40 * stored_run.BLOCK_ROWS
    columns = [np.arange(count) // 7, np.arange(count) % 7 * 100]
    words = layout.pack(columns, count)
    run = StoredRun(stored_run.store_order(words, layout))
    key = np.array([5 * stored_run.BLOCK_ROWS // 7, 20 * stored_run.BLOCK_ROWS // 7])
    start, end = run.ranges(layout, [key], 2)
    assert (end - start).tolist() == [7, 7]
    assert run.decoded_blocks <= 4
    assert run.take(start).tobytes() == words[start].tobytes()
    assert run.contains(words[:: 10 * stored_run.BLOCK_ROWS]).all()
    assert not run.contains(layout.pack([key, key * 0 + 1], 2)).any()
    assert run.decoded_blocks <= 8
    assert run.nbytes < words.nbytes // 2
    assert run.words.tobytes() == words.tobytes()
    assert run.decoded_blocks == 40


# ------------------------------------------------------------------------------------------ strings

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


@given(
    st.lists(TEXTS, unique=True), st.lists(TEXTS, max_size=5), st.sampled_from((1, 3)), st.data()
)
def test_strings_are_found_by_number_and_by_value(
    values: list[str], others: list[str], size: int, data: st.DataObject
) -> None:
    with small_blocks(size):
        kept = stored_strings.store_strings(pa.array(["", *values], pa.large_string()))
        wanted = data.draw(st.permutations([*values, *others]))
        known = {value: number for number, value in enumerate(values, 1)}
        assert kept.find(wanted) == {each: known[each] for each in wanted if each in known}
        numbers = data.draw(st.lists(st.integers(0, len(values))))
        found = kept.take(np.array(numbers, np.int64))
        assert found.to_pylist() == [["", *values][number] for number in numbers]
        assert kept.read_all().to_pylist() == ["", *values]
        assert kept.find(wanted) == {each: known[each] for each in wanted if each in known}


@given(
    st.lists(TEXTS, unique=True), st.lists(st.integers(0, 9), max_size=4), st.sampled_from((1, 3))
)
def test_strings_that_are_appended(values: list[str], cuts: list[int], size: int) -> None:
    every = ["", *values]
    ends = sorted({min(1 + cut, len(every)) for cut in cuts} | {len(every)})
    with small_blocks(size):
        kept = stored_strings.store_strings(pa.array(every[: ends[0]], pa.large_string()))
        for start, end in pairwise(ends):
            blocks = [bytes(kept.texts.block(number)) for number in range(start // size)]
            kept = kept.append(pa.array(every[start:end], pa.large_string()))
            assert [bytes(kept.texts.block(number)) for number in range(len(blocks))] == blocks
        whole = stored_strings.store_strings(pa.array(every, pa.large_string()))
        assert len(kept) == len(whole)
        assert kept.read_all().to_pylist() == every
        assert kept.find([*values, "no such text"]) == whole.find(values)
        for part in ("texts", "hashes", "fences"):
            ours, theirs = (getattr(each, part) for each in (kept, whole))
            assert ours.ends.tolist() == theirs.ends.tolist()
            assert ours.checksums.tolist() == theirs.checksums.tolist()


@pytest.mark.parametrize("is_loaded", [False, True])
def test_an_index_that_is_saved_again_has_new_texts(is_loaded: bool) -> None:
    values = [f"text {number}" for number in range(2_000)]
    engine: Any = reopened(engine_with({"r": ((SYMBOL,), [(each,) for each in values])})).engine
    if is_loaded:
        engine._dictionary.encode_python(values, SYMBOL)
    more = [f"new {number}" for number in range(700)]
    for part in (more[:3], more[3:600], more[600:]):
        engine.insert("r", [(each,) for each in part])
        engine.commit()
        engine = reopened(engine).engine
    assert {value for (value,) in to_python(engine.read("r"))} == {*values, *more}
    codes = engine._dictionary.encode_python([values[1999], more[0], more[-1]], SYMBOL)
    assert codes.tolist() == [2_000, 2_001, 2_700]


def test_few_blocks_of_strings_are_read() -> None:
    values = [f"symbol {number * 7919 % 100_003}" for number in range(100_000)]
    first = engine_with({"r": ((SYMBOL,), [(value,) for value in values])})
    second = reopened(first)
    assert second.restored == {"r"}
    domain: Any = second.engine._dictionary.domain(SYMBOL)
    texts = domain._stored
    assert texts.decoded_blocks == 0
    codes = second.engine._dictionary.encode_python([values[77], "new", values[5]], SYMBOL)
    assert codes.tolist() == [78, 100_001, 6]
    assert second.engine._dictionary.decode(codes, SYMBOL).tolist() == [
        values[77],
        "new",
        values[5],
    ]
    assert 0 < texts.decoded_blocks <= 40 < len(texts.texts)
    assert domain.nbytes < first._dictionary.domain(SYMBOL).nbytes
    assert second.engine.read("r").column(0).to_pylist() == values  # all at once
    everything = np.arange(1, 100_002)
    assert domain.decode(everything).tolist() == [*values, "new"]
    assert domain._stored is not None
    assert second.engine._dictionary.encode_python(values, SYMBOL).tolist() == list(
        range(1, 100_001)
    )
    assert domain._stored is None


# ---------------------------------------------------------------------------------------- relations

CENTS = decimal(9, 2)
SCHEMAS: tuple[tuple[Type, ...], ...] = (
    (),
    (NUMBER,),
    (NUMBER, NUMBER),
    (SYMBOL, NUMBER.with_null(True)),
    (FLOAT.with_null(True), CENTS),
    (NUMBER, NUMBER, NUMBER, NUMBER),
    (UNSIGNED, SYMBOL.with_null(True), CENTS.with_null(True), FLOAT, UNSIGNED),
)
LARGE = (2**20, 2**61 - 1, 2**61, -1, -(2**20), -(2**61), -(2**61) - 1, 2**63 - 1, -(2**63))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "number": st.one_of(st.integers(0, 9), st.sampled_from((100, *LARGE))),
    "unsigned": st.one_of(st.integers(0, 3), st.sampled_from((2**40, 2**61, 2**64 - 1))),
    "symbol": TEXTS,
    "float": st.floats(allow_nan=False),
    "decimal": st.integers(-(10**9) + 1, 10**9 - 1).map(lambda cents: Decimal(cents).scaleb(-2)),
}
Contents: TypeAlias = dict[str, tuple[tuple[Type, ...], list[Row]]]


class Reopened:
    """An engine that was filled from the files of another one."""

    def __init__(self, engine: LocalEngine, restored: set[str], files: Files) -> None:
        self.engine = engine
        self.restored = restored
        self.files = files


def relation(name: str, types: tuple[Type, ...]) -> Relation:
    return Relation(name, tuple(f"c{at}" for at in range(len(types))), types, is_derived=False)


def engine_with(contents: Contents) -> LocalEngine:
    """An engine that holds relations."""
    engine = LocalEngine()
    engine.declare({name: relation(name, types) for name, (types, _) in contents.items()})
    for name, (_, rows) in contents.items():
        engine.insert(name, rows)
    engine.commit()
    return engine


def files_of(engine: LocalEngine) -> Files:
    return {name: pa.py_buffer(data) for name, data in engine.save(list(engine._relations))}


def like(engine: LocalEngine) -> LocalEngine:
    """An engine with the same relations, all empty."""
    other = LocalEngine()
    other.declare(engine._relations)
    return other


def reopened(engine: LocalEngine) -> Reopened:
    files = files_of(engine)
    other = like(engine)
    return Reopened(other, other.restore(files), files)


def rows_of(engine: LocalEngine, name: str, state: State = State.NEW) -> list[Row]:
    return sorted(to_python(engine.read(name, state)), key=repr)


def check_same(first: LocalEngine, second: LocalEngine) -> None:
    """Two engines hold the same, packed the same, in the same orders."""
    for name, table in first._tables.items():
        other = second._tables[name]
        assert other.size(State.OLD) == table.size(State.OLD)
        assert rows_of(second, name) == rows_of(first, name)
        assert list(other._others) == list(table._others)
        for order in (table.primary_order, *table._others):
            words = table.tuples(State.OLD, order)
            assert other.tuples(State.OLD, order).tobytes() == words.tobytes()


@st.composite
def contents(draw: st.DrawFn) -> Contents:
    """Draws relations."""
    found: Contents = {}
    for name in ("r", "s"):
        types = draw(st.sampled_from(SCHEMAS))
        row = st.tuples(
            *(
                st.one_of(VALUES[type_.kind], st.none()) if type_.nullable else VALUES[type_.kind]
                for type_ in types
            )
        )
        found[name] = (types, draw(st.lists(row, max_size=20)))
    return found


@pytest.mark.slow
@given(contents(), contents(), st.data())
@settings(max_examples=examples(25, 150), suppress_health_check=[HealthCheck.too_slow])
def test_relations_come_back(drawn: Contents, later: Contents, data: st.DataObject) -> None:
    with small_blocks():
        first = engine_with(drawn)
        for table in first._tables.values():
            orders = st.permutations(table.primary_order).map(tuple)
            for order in data.draw(st.lists(orders, max_size=2)):
                table.arrangement(order)
        for name, (types, _) in drawn.items():  # several runs, tombstones, and an open change
            first.delete(name, drawn[name][1][:3])
            first.commit()
            if later[name][0] == types:
                first.insert(name, later[name][1])
                first.delete(name, drawn[name][1][3:5])
        before = {name: rows_of(first, name) for name in drawn}
        second = reopened(first)
        assert {name: rows_of(first, name) for name in drawn} == before
        first.rollback()
        assert second.restored == set(drawn)
        again = files_of(second.engine)  # nothing was touched: nothing is coded anew
        assert {name: bytes(each) for name, each in again.items()} == {
            name: bytes(each) for name, each in second.files.items()
        }
        assert second.engine.statistics().rows == first.statistics().rows
        check_same(first, second.engine)
        for engine in (first, second.engine):
            for name, (types, rows) in later.items():
                if drawn[name][0] == types:
                    engine.insert(name, rows)
                    engine.delete(name, drawn[name][1][5:9])
            engine.commit()
        check_same(first, second.engine)
        check_same(first, reopened(second.engine).engine)


def test_saving_takes_relations_as_they_are_when_it_begins() -> None:
    first = engine_with({"r": ((SYMBOL,), [("a",)]), "s": ((SYMBOL,), [("b",)])})
    saving = first.save(["r", "s"])
    files = dict([next(saving)])
    for name in ("r", "s"):
        first.insert(name, [("c",)])
        first.delete(name, [("a",), ("b",)])
    first.commit()
    files |= dict(saving)
    second = like(first)
    assert second.restore({name: pa.py_buffer(data) for name, data in files.items()}) == {"r", "s"}
    assert [rows_of(second, name) for name in ("r", "s")] == [[("a",)], [("b",)]]


def test_statistics_of_restored_relations_read_nothing() -> None:
    rows = [(number // 10, number % 10) for number in range(3 * stored_run.BLOCK_ROWS)]
    first = engine_with({"r": ((NUMBER, NUMBER), rows)})
    second = reopened(first).engine
    assert second.statistics() == first.statistics()
    (layer,) = second._tables["r"].arrangement((0, 1)).layers(State.OLD)
    assert isinstance(layer.run, StoredRun)
    assert layer.run.decoded_blocks == 0
    second.delete("r", rows[: 2 * stored_run.BLOCK_ROWS])
    first.delete("r", rows[: 2 * stored_run.BLOCK_ROWS])
    assert second.statistics() == first.statistics()


# ------------------------------------------------------------------------------- what does not fit


def test_what_does_not_fit_is_passed_over() -> None:
    first = engine_with({"r": ((SYMBOL, NUMBER), [("a", 1)]), "s": ((SYMBOL,), [("b",)])})
    files = files_of(first)
    for types in ((SYMBOL,), (NUMBER, NUMBER), (NUMBER, SYMBOL), (SYMBOL, NUMBER, NUMBER)):
        other = LocalEngine()
        other.declare({"r": relation("r", types), "s": relation("s", (SYMBOL,))})
        assert other.restore(files) == {"s"}
        assert (rows_of(other, "r"), rows_of(other, "s")) == ([], [("b",)])
    other = LocalEngine()
    other.declare({"s": relation("s", (SYMBOL,))})
    assert other.restore(files) == {"s"}
    assert like(first).restore({}) == set()
    assert like(first).restore({DICTIONARY_FILE: files[DICTIONARY_FILE]}) == set()
    del files[DICTIONARY_FILE]
    assert like(first).restore(files) == set()


def test_files_of_two_indexes_do_not_mix() -> None:
    first = engine_with({"r": ((SYMBOL,), [("a",)]), "s": ((SYMBOL,), [("b",)])})
    second = engine_with({"r": ((SYMBOL,), [("b",)]), "s": ((SYMBOL,), [("a",)])})
    files = files_of(first)
    mixed = {**files, "1.tuples": files_of(second)["1.tuples"]}
    assert like(first).restore(mixed) == {"r"}


def test_another_format_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    first = engine_with({"r": ((SYMBOL,), [("a",)])})
    files = files_of(first)
    monkeypatch.setattr(blocks, "MAGIC", b"corolix1")
    assert like(first).restore(files) == set()
    assert (
        like(first).restore({**files, DICTIONARY_FILE: files_of(first)[DICTIONARY_FILE]}) == set()
    )


# ------------------------------------------------------------------------------------------- damage

DAMAGED: Contents = {
    "r": ((SYMBOL, NUMBER), [(f"value {number % 13}", number << 57) for number in range(40)]),
    "s": ((NUMBER,) * 4, [(number, -number, 2**40 + number, 3) for number in range(12)]),
    "t": ((), [()]),
    "u": ((FLOAT,), []),
}


def read_all(files: Files) -> dict[str, list[Row]]:
    """What a fresh engine makes of files, in all their orders."""
    engine = LocalEngine()
    engine.declare({name: relation(name, types) for name, (types, _) in DAMAGED.items()})
    found = {}
    for name in engine.restore(files):
        table = engine._tables[name]
        found[name] = rows_of(engine, name)
        for order, other in table._others.items():
            words = other.words(State.OLD)
            columns = other.layout.unpack(words)
            primary = [columns[order.index(at)] for at in table.primary_order]
            assert table.contains_codes(primary, len(words), State.OLD).all()
        engine.delete(name, DAMAGED[name][1])
        assert not engine.size(name)
    return found


@given(st.data())
@settings(max_examples=examples(25, 400))
def test_no_byte_can_change_unnoticed(data: st.DataObject) -> None:
    with small_blocks(8):
        engine = engine_with(DAMAGED)
        engine._tables["r"].arrangement((1, 0))
        files = files_of(engine)
        right = read_all(files)
        assert right.keys() == DAMAGED.keys()
        name = data.draw(st.sampled_from(sorted(files)))
        whole = bytearray(files[name])
        at = data.draw(st.integers(0, len(whole) - 1))
        if data.draw(st.integers(0, 7)):
            whole[at] ^= data.draw(st.integers(1, 255))
        else:
            del whole[at:]
        try:
            found = read_all({**files, name: pa.py_buffer(bytes(whole))})
        except WarehouseError:
            return
        assert all(right[relation] == rows for relation, rows in found.items())


def damaged_at_the_end(files: Files, name: str) -> Files:
    """The files, with the last byte of one of them another: it is in its last block."""
    whole = bytearray(files[name])
    whole[-1] ^= 1
    return {**files, name: pa.py_buffer(bytes(whole))}


def test_a_damaged_block_stops_what_needs_it_and_nothing_else() -> None:
    """A commit that would have to read it changes nothing, and can be taken back."""
    with small_blocks():
        first = engine_with(
            {"q": ((NUMBER,), [(1,)]), "r": ((NUMBER,), [(n * 100,) for n in range(40)])}
        )
        second = like(first)
        assert second.restore(damaged_at_the_end(files_of(first), "1.tuples")) == {"q", "r"}
        second.insert("q", [(2,)])
        second.insert("r", [(7,)])
        with pytest.raises(WarehouseError, match="`index of r` is damaged"):
            second.commit()
        assert rows_of(second, "q", State.OLD) == [(1,)]
        with pytest.raises(WarehouseError):  # a wider column: all tuples are packed anew
            second.insert("r", [(2**50,)])
        second.rollback()
        assert rows_of(second, "q") == [(1,)]
        with pytest.raises(WarehouseError, match="`index of r` is damaged"):
            second.read("r")
        assert second.size("r") == 40


# ---------------------------------------------------------------------------------------- databases

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.decl weight(x: symbol, w: number)
.decl reach(x: symbol, y: symbol)
.decl heavy(x: symbol, n: number)
.decl lone(x: symbol)
reach(x, y) :- edge(x, y).
reach(x, z) :- reach(x, y), edge(y, z).
heavy(x, n) :- weight(x, _), n = sum w : { reach(x, y), weight(y, w) }.
lone(x) :- weight(x, _), !reach(x, "a").
"""
NODES = "abcdefgh"
EDGES = st.tuples(st.sampled_from(NODES), st.sampled_from(NODES))
WEIGHTS = st.tuples(st.sampled_from(NODES), st.sampled_from((1, 2, 30, 2**40, -5)))


@st.composite
def changes(draw: st.DrawFn) -> tuple[set[Row], set[Row], set[Row], set[Row]]:
    """Draws edges and weights to insert, and to delete."""
    few, some = st.sets(EDGES, max_size=3), st.sets(WEIGHTS, max_size=3)
    return draw(few), draw(few), draw(some), draw(some)


def change(database: Database, drawn: tuple[set[Row], set[Row], set[Row], set[Row]]) -> Any:
    with database.transaction() as transaction:
        for name, added, removed in (("edge", *drawn[:2]), ("weight", *drawn[2:])):
            transaction.delete(name, sorted(removed))
            transaction.insert(name, sorted(added))
    return {name: (each.counts) for name, each in transaction.changes.items()}


def second_database(database: Database, algorithm: str, program: str) -> Database:
    """A database in the same state, made from the files of an index."""
    engine = database._state.engine
    assert isinstance(engine, LocalEngine)
    other = corollary.open(None, algorithm=algorithm)
    other.load(text=program)
    assert isinstance(other._state.engine, LocalEngine)
    other._state.engine.declare(engine._relations)
    assert other._state.engine.restore(files_of(engine)) == set(engine._relations)
    other._state.loaded = database._state.loaded
    other._state.planner.payload = database._state.planner.payload
    return other


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["auto", "ranked", "dred", "epf"])
@given(st.lists(changes(), min_size=2, max_size=6), st.sampled_from((1, 4)), st.data())
@settings(max_examples=examples(4, 15), suppress_health_check=[HealthCheck.too_slow])
@example([({("a", "b")}, set(), {("a", 1)}, set()), (set(), {("a", "b")}, set(), set())], 1, None)
def test_a_reopened_database_goes_on_as_if_nothing_had_been(
    algorithm: str, steps: list[Any], many: int, data: st.DataObject | None
) -> None:
    with small_blocks(4, many):
        first = corollary.open(None, algorithm=algorithm)
        first.load(text=PROGRAM)
        at = 1 if data is None else data.draw(st.integers(1, len(steps) - 1))
        for step in steps[:at]:
            change(first, step)
        second = second_database(first, algorithm, PROGRAM)
        for step in steps[at:]:
            assert change(first, step) == change(second, step)
        for name in ("edge", "weight", "reach", "heavy", "lone"):
            assert sorted(second.relation(name).rows()) == sorted(first.relation(name).rows())


# --------------------------------------------------------------------------------------------- size

CLOSURE = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


@pytest.fixture(scope="module")
def closure() -> Database:
    """The closure of a random graph, about 1.4 million tuples, that has seen a change."""
    draw = random.Random(1)
    edges: set[Row] = set()
    while len(edges) < 3_000:
        edges.add((draw.randrange(1_500), draw.randrange(1_500)))
    database = corollary.open(None, algorithm="ranked")
    database.load(text=CLOSURE)
    with database.transaction() as transaction:
        transaction.insert("edge", sorted(edges))
    with database.transaction() as transaction:
        transaction.delete("edge", [min(edges)])
    return database


def test_an_index_is_small(closure: Database) -> None:
    """Two orders of the closure, and two with ranks, take less than twice its Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(closure.relation("path").arrow(), sink, compression="zstd")
    assert isinstance(closure._state.engine, LocalEngine)
    ranks = "path•rank"
    assert {name: len(closure._state.engine._tables[name]._others) for name in ("path", ranks)} == {
        "path": 1,
        ranks: 1,
    }
    sizes = {name: len(data) for name, data in closure._state.engine.save(["path", ranks])}
    assert sum(sizes.values()) < 2 * sink.getvalue().size, sizes


def test_a_small_change_after_reopening_reads_few_blocks(closure: Database) -> None:
    assert isinstance(closure._state.engine, LocalEngine)
    second = second_database(closure, "ranked", CLOSURE)
    alone = set(range(1_500)) - {node for edge in closure.relation("edge").rows() for node in edge}
    with second.transaction() as transaction:
        transaction.insert("edge", [(min(alone), max(alone))])
    assert transaction.changes["path"].counts == (1, 0)
    assert isinstance(second._state.engine, LocalEngine)
    for name in ("path", "path•rank"):
        table = second._state.engine._tables[name]
        for order in (table.primary_order, *table._others):
            run = table.arrangement(order).runs[0]
            assert isinstance(run, StoredRun)
            assert run.decoded_blocks <= 10 < len(run.stored.blocks)
