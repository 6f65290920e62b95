"""Streams of change events: what messages become, what they do to a relation, and in which order.

Expectations of random events come from `described`, which goes through them one by one.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.database.database import Database
from corollary.errors import CorollaryError, InputError

TYPE_1 = """
.decl p(id: number, v: symbol?, n: number?) key(id)
.input p(IO=events, filename="in", sequence_by="ts", apply_as_deletes="op = 'gone'", {more})
"""
TYPE_2 = """
.decl p(id: number, v: symbol?, n: number?, __START_AT: number, __END_AT: number?)
.input p(IO=events, filename="in", keys="id", sequence_by="ts", apply_as_deletes="op = 'gone'",
         stored_as_scd_type=2, {more})
"""
ENVELOPES = """
.decl p(id: number, v: symbol?, born: date?, at: timestamp?, net: decimal(8,2)?) key(id)
.input p(IO=events, filename="in", format=debezium, sequence_by="source.lsn", {more})
"""
Event = Mapping[str, Any]


class Stream:
    """A folder of events, and a database in memory that reads it."""

    def __init__(self, place: Path, text: str, more: str = "") -> None:
        self.place, self.folder = place, place / "in"
        self.folder.mkdir()
        self.program = place / "p.dl"
        self.program.write_text(text.replace(", {more}", f", {more}" if more else ""))
        self.db: Database = corollary.open(None, engine="local")

    def add(self, name: str, events: Iterable[Event | str]) -> None:
        lines = (each if isinstance(each, str) else json.dumps(each) for each in events)
        with (self.folder / name).open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def run(self, **options: Any) -> Any:
        return self.db.run(self.program, facts=self.place, **options)

    def rows(self, relation: str = "p") -> list[tuple[Any, ...]]:
        table = self.db.relation(relation).arrow()
        return sorted(zip(*table.to_pydict().values(), strict=True), key=repr)

    def quarantined(self) -> list[tuple[Any, ...]]:
        return sorted((file, line, code) for _, _, file, line, code, *_ in self.rows("quarantine"))


def described(events: Sequence[Event], *, has_history: bool) -> list[tuple[Any, ...]]:
    """Return the rows that events describe, whose sequences differ but where they are repeated."""
    found: list[tuple[Any, ...]] = []
    for key in {each["id"] for each in events}:
        by_sequence = {each["ts"]: each for each in events if each["id"] == key}
        ordered = [by_sequence[each] for each in sorted(by_sequence)]
        if not has_history:
            last = ordered[-1]
            found += [] if "op" in last else [(key, last["v"], last["n"])]
            continue
        run: tuple[Any, ...] | None = None
        for each in [*ordered, None]:
            values = None if each is None or "op" in each else (each["v"], each["n"])
            if run is not None and (each is None or values != run[:2]):
                found.append((key, *run, None if each is None else each["ts"]))
                run = None
            if run is None and values is not None and each is not None:
                run = (*values, each["ts"])
    return sorted(found, key=repr)


def random_events(rng: random.Random, number: int, keys: int) -> list[Event]:
    found: list[Event] = []
    for ts in range(number):
        event: dict[str, Any] = {"id": rng.randrange(keys), "ts": ts}
        if rng.random() < 0.25:
            event["op"] = "gone"
        else:
            event |= {"v": rng.choice(["a", "b", None]), "n": rng.choice([1, 2, None])}
        found += [event] * (1 + (rng.random() < 0.1))  # some come twice
    rng.shuffle(found)
    return found


@pytest.mark.parametrize("text", [TYPE_1, TYPE_2], ids=["type1", "type2"])
@pytest.mark.parametrize("seed", range(3))
def test_events_in_any_order_describe_one_table(tmp_path: Path, text: str, seed: int) -> None:
    """Late, repeated and out of order; in several commits, and rolled back in between."""
    rng = random.Random(seed)
    events = random_events(rng, 60, 5)
    stream = Stream(tmp_path, text, "max_events=17")
    for number, part in enumerate([events[:25], events[25:40], events[40:]]):
        stream.add(f"{number}.jsonl", part)
        stream.run()
        seen = events[: (25, 40, len(events))[number]]
        assert stream.rows() == described(seen, has_history=text is TYPE_2)
    assert stream.run().transaction is None


def test_a_delete_of_an_unknown_key_is_remembered(tmp_path: Path) -> None:
    stream = Stream(tmp_path, TYPE_1)
    stream.add("1.jsonl", [{"id": 1, "op": "gone", "ts": 5}])
    stream.run()
    stream.add("2.jsonl", [{"id": 1, "v": "late", "ts": 4}, {"id": 2, "v": "b", "ts": 1}])
    stream.run()
    assert stream.rows() == [(2, "b", None)]
    stream.add("2.jsonl", [{"id": 1, "v": "new", "n": 3, "ts": 6}])
    stream.run()
    assert stream.rows() == [(1, "new", 3), (2, "b", None)]


def test_without_a_sequence_events_count_as_they_come(tmp_path: Path) -> None:
    text = '.decl p(id: number, v: symbol) key(id)\n.input p(IO=events, filename="in")\n'
    stream = Stream(tmp_path, text)
    stream.add("1.jsonl", [{"id": 1, "v": "a"}, {"id": 1, "v": "b"}, {"id": 1, "v": "a"}])
    stream.run()
    assert stream.rows() == [(1, "a")]
    stream.add("2.jsonl", [{"id": 1, "v": "c"}])
    stream.run()
    assert stream.rows() == [(1, "c")]


def test_events_without_a_key_only_add_rows(tmp_path: Path) -> None:
    """Equal rows are one, or as many as came where rows are counted."""
    text = '.decl p(v: symbol)\n.input p(IO=events, filename="in")\n'
    text += '.decl q(v: symbol) bag\n.input q(IO=events, filename="in")\n'
    stream = Stream(tmp_path, text)
    for name in ("1.jsonl", "2.jsonl"):
        stream.add(name, [{"v": "a"}, {"v": "a"}, {"v": name}])
        stream.run()
    assert stream.rows() == [("1.jsonl",), ("2.jsonl",), ("a",)]
    assert stream.rows("q") == [("1.jsonl",), ("2.jsonl",), *[("a",)] * 4]


def test_another_sequence_reads_all_again(tmp_path: Path) -> None:
    """Nothing of the former one counts any more."""
    stream = Stream(tmp_path, TYPE_1, 'except_columns="op, tt"')
    stream.add("1.jsonl", [{"id": 1, "v": "a", "ts": 9}, {"id": 2, "v": "b", "ts": 1, "tt": 1}])
    stream.run()
    text = stream.program.read_text().replace('"ts"', '"tt"')
    stream.program.write_text(text)
    stream.add("1.jsonl", [{"id": 2, "v": "c", "ts": 0, "tt": 2}])
    stream.run()
    assert stream.rows() == [(2, "c", None)]
    assert stream.quarantined() == [("in/1.jsonl", 1, "C1732")]


def test_several_fields_are_one_sequence(tmp_path: Path) -> None:
    """The position in a log counts after the number of the log; numbers by their value."""
    text = TYPE_1.replace('"ts"', '"log.file, log.pos"').replace("n: number?", "n: number?")
    stream = Stream(tmp_path, text, 'except_columns="op"')
    events = [("bin.2", 9, "c"), ("bin.1", 100, "b"), ("bin.1", 20, "a"), ("bin.2", 10, "d")]
    stream.add(
        "1.jsonl", [{"id": 1, "v": v, "log": {"file": file, "pos": pos}} for file, pos, v in events]
    )
    stream.run()
    assert stream.rows() == [(1, "d", None)]


def test_columns_that_are_left_out_stay_null(tmp_path: Path) -> None:
    stream = Stream(tmp_path, TYPE_2, 'except_columns="n, op"')
    stream.add(
        "1.jsonl", [{"id": 1, "v": "a", "n": 1, "ts": 1}, {"id": 1, "v": "a", "n": 2, "ts": 2}]
    )
    assert stream.run().warnings == []
    assert stream.rows() == [(1, "a", None, 1, None)]


def test_only_tracked_columns_begin_a_row_of_history(tmp_path: Path) -> None:
    stream = Stream(tmp_path, TYPE_2, 'track_history_columns="v"')
    values = [("a", 1), ("a", 2), ("b", 3)]
    stream.add("1.jsonl", [{"id": 1, "v": v, "n": n, "ts": n} for v, n in values])
    stream.run()
    assert stream.rows() == [(1, "a", 2, 1, 3), (1, "b", 3, 3, None)]


# --- what is set aside ---------------------------------------------------------------------------


def test_poison_is_set_aside_with_its_place_and_reason(tmp_path: Path) -> None:
    stream = Stream(tmp_path, TYPE_1)
    bad = ["{", "[1]", '{"id": 1, "v": "a"}', '{"v": "a", "ts": 1}', '{"id": "x", "ts": 1}']
    bad.append('{"id": 1, "ts": "soon"}')
    stream.add("1.jsonl", ['{"id": 7, "v": "good", "ts": 1}', *bad])
    with (stream.folder / "1.jsonl").open("ab") as file:
        file.write(b'{"id": 2, "v": "\xff", "ts": 1}\n')
    stream.add("2.jsonl", ['{"id": 8, "v": "good", "ts": 1}'])
    stream.run()
    assert stream.rows() == [(7, "good", None), (8, "good", None)]
    codes = ["C1731", "C1731", "C1732", "C0802", "C0801", "C1732", "C1731"]
    assert stream.quarantined() == [
        ("in/1.jsonl", line, code) for line, code in enumerate(codes, 2)
    ]
    stream.add("1.jsonl", ["nonsense"])
    with pytest.raises(InputError) as caught:
        stream.run(bad_rows="abort")
    assert "C1731" in str(caught.value)
    assert "1.jsonl:9" in str(caught.value)


def test_many_poisonous_events_are_refused(tmp_path: Path) -> None:
    stream = Stream(tmp_path, TYPE_1)
    stream.add("1.jsonl", [{"id": n, "ts": 1} for n in range(600)] + ["x"] * 700)
    with pytest.raises(InputError, match="C0944"):
        stream.run()


# --- envelopes -----------------------------------------------------------------------------------


def envelope(op: str, lsn: int, before: Any = None, after: Any = None, **more: Any) -> Event:
    return {"op": op, "before": before, "after": after, "source": {"lsn": lsn}, **more}


def person(number: int, v: Any = "a", **more: Any) -> Event:
    return {"id": number, "v": v, "born": None, "at": None, "net": None, **more}


def test_envelopes_say_what_rows_are(tmp_path: Path) -> None:
    """Updates need no image from before; transactions and statements are no rows."""
    stream = Stream(tmp_path, ENVELOPES)
    events = [
        envelope("r", 1, after=person(1)),
        envelope("c", 2, after=person(2, net="12.50")),
        {"status": "BEGIN", "id": "571", "event_count": None},
        envelope("u", 3, after=person(1, "b", born=19_000)),
        envelope("u", 3, after=person(1, "b", born=19_000)),
        envelope("d", 5, before={"id": 2}),
        envelope("u", 4, after=person(2, "late")),
        {"source": {"lsn": 6}, "ddl": "ALTER TABLE p ADD x INT"},
        envelope("m", 7, message={"prefix": "x"}),
    ]
    stream.add("1.jsonl", events)
    assert stream.run().quarantined == 0
    born = __import__("datetime").date(2022, 1, 8)
    assert stream.rows() == [(1, "b", born, None, None)]


def test_a_schema_says_what_values_stand_for(tmp_path: Path) -> None:
    """Days, microseconds and the bytes of decimals, as Debezium sends them by default."""
    logical = {
        "born": {"type": "int32", "name": "io.debezium.time.Date"},
        "at": {"type": "int64", "name": "io.debezium.time.MicroTimestamp"},
        "net": {
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "2"},
        },
    }
    row = [{"field": name, **each} for name, each in logical.items()]
    schema = {"fields": [{"field": "before", "fields": row}, {"field": "after", "fields": row}]}
    values = {"born": 19_000, "at": 1_700_000_000_123_456, "net": "BN4="}  # 1246 hundredths
    stream = Stream(tmp_path, ENVELOPES)
    payload = envelope("c", 1, after=person(1, **values))
    stream.add("1.jsonl", [{"schema": schema, "payload": payload}])
    stream.run()
    ((_, _, born, at, net),) = stream.rows()
    assert (str(born), str(net)) == ("2022-01-08", "12.46")
    assert at.isoformat() == "2023-11-14T22:13:20.123456+00:00"


def test_numbers_for_times_need_a_unit(tmp_path: Path) -> None:
    stream = Stream(tmp_path, ENVELOPES)
    stream.add("1.jsonl", [envelope("c", 1, after=person(1, at=1_700_000_000_000))])
    with pytest.raises(InputError, match="C1733"):
        stream.run()
    text = stream.program.read_text().replace('lsn"', 'lsn", timestamp_unit="ms"')
    stream.program.write_text(text)
    stream.run()
    assert stream.rows()[0][3].isoformat() == "2023-11-14T22:13:20+00:00"


def test_a_new_column_is_named(tmp_path: Path) -> None:
    stream = Stream(tmp_path, ENVELOPES)
    stream.add("1.jsonl", [envelope("c", 1, after=person(1))])
    stream.run()
    stream.add("2.jsonl", [envelope("c", 2, after=person(2, mail="x"))])
    (warning,) = stream.run().warnings
    assert warning.code == "C0951"
    assert "`mail`" in warning.message


@pytest.mark.parametrize(
    ("event", "code", "said"),
    [
        (envelope("c", 9, after={"id": 2, "born": None, "at": None, "net": None}), "C0950", "`v`"),
        (envelope("c", 9, after=person(2, 5)), "C1733", "was text"),
        ({"op": "t", "source": {"lsn": 9}}, "C1734", "TRUNCATE"),
    ],
    ids=["missing", "retyped", "truncated"],
)
def test_an_altered_table_stops_before_a_write(
    tmp_path: Path, event: Event, code: str, said: str
) -> None:
    stream = Stream(tmp_path, ENVELOPES)
    stream.add("1.jsonl", [envelope("c", 1, after=person(1))])
    stream.run()
    before = stream.rows()
    stream.add("2.jsonl", [envelope("u", 8, after=person(1, "new")), event])
    with pytest.raises(InputError) as caught:
        stream.run()
    assert code in str(caught.value)
    assert said in str(caught.value)
    assert stream.rows() == before


def test_envelopes_that_do_not_have_it_all_are_set_aside(tmp_path: Path) -> None:
    stream = Stream(tmp_path, ENVELOPES)
    unchanged = "__debezium_unavailable_value"
    stream.add(
        "1.jsonl",
        [
            envelope("u", 1, after=person(1, unchanged)),
            envelope("c", 2),
            envelope("d", 3),
            {"id": 4},
            envelope("c", 5, after=person(5)),
        ],
    )
    stream.run()
    assert [row[0] for row in stream.rows()] == [5]
    codes = ["C1731", "C1731", "C1732", "C1731"]
    assert stream.quarantined() == [
        ("in/1.jsonl", line, code) for line, code in enumerate(codes, 1)
    ]


# --- files ---------------------------------------------------------------------------------------


def test_lines_are_read_once_and_when_they_are_whole(tmp_path: Path) -> None:
    stream = Stream(tmp_path, TYPE_1)
    file = stream.folder / "1.jsonl"
    file.write_text('{"id": 1, "v": "a", "ts": 1}\n{"id": 2, "v": "b"')
    stream.run()
    assert stream.rows() == [(1, "a", None)]
    with file.open("a") as opened:
        opened.write(', "ts": 1}')  # whole, without an end
    stream.run()
    assert stream.rows() == [(1, "a", None), (2, "b", None)]
    with file.open("a") as opened:
        opened.write('\n\n{"id": 1, "v": "c", "ts": 2}\nbad\n')
    stream.run()
    assert stream.rows() == [(1, "c", None), (2, "b", None)]
    assert stream.quarantined() == [("in/1.jsonl", 5, "C1731")]


def test_compressed_files_are_read_too(tmp_path: Path) -> None:
    stream = Stream(tmp_path, TYPE_1, "max_events=2")
    lines = "".join(f'{{"id": {n}, "v": "a", "ts": 1}}\n' for n in range(5))
    (stream.folder / "1.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    stream.run()
    assert len(stream.rows()) == 5
    assert stream.run().transaction is None


def test_a_file_that_was_overwritten_is_refused(tmp_path: Path) -> None:
    stream = Stream(tmp_path, TYPE_1)
    stream.add("1.jsonl", [{"id": 1, "ts": 1}, {"id": 2, "ts": 1}])
    stream.run()
    (stream.folder / "1.jsonl").write_text('{"id": 3, "ts": 1}\n')
    with pytest.raises(InputError, match="C1735"):
        stream.run()


# --- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "deleted"),
    [
        ("op IN ('gone', 'x')", [1]),
        ("NOT (op IS NULL) OR n >= 7", [1, 3]),
        ("flag", [2]),
        ("flag = false", [3]),
        ("meta.kind <> 'k'", [2]),
        ("n BETWEEN 6 AND 8", [3]),
    ],
)
def test_conditions_of_deletes(tmp_path: Path, condition: str, deleted: list[int]) -> None:
    text = TYPE_1.replace("op = 'gone'", condition)
    stream = Stream(tmp_path, text)
    events: list[Event] = [
        {"id": 1, "op": "gone", "meta": {"kind": "k"}},
        {"id": 2, "flag": True, "meta": {"kind": "l"}},
        {"id": 3, "n": 7, "flag": False},
        {"id": 4},
    ]
    stream.add("1.jsonl", [{**each, "ts": 1} for each in events])
    stream.run()
    assert [row[0] for row in stream.rows()] == [n for n in range(1, 5) if n not in deleted]


@pytest.mark.parametrize("condition", ["lower(op) = 'x'", "op =", "id IN (SELECT 1)"])
def test_conditions_that_are_none(tmp_path: Path, condition: str) -> None:
    stream = Stream(tmp_path, TYPE_1.replace("op = 'gone'", condition))
    stream.add("1.jsonl", [{"id": 1, "ts": 1}])
    with pytest.raises(CorollaryError, match="C1730"):
        stream.run()


def test_streams_need_a_warehouse(tmp_path: Path) -> None:
    from support.command_line import cli

    Stream(tmp_path, TYPE_1)
    outcome = cli("run", str(tmp_path / "p.dl"), "-F", str(tmp_path))
    assert outcome.exit_code == 1
    assert "C0982" in outcome.stderr


def test_tables_of_sql_read_events(tmp_path: Path) -> None:
    stream = Stream(tmp_path, "")
    stream.program = tmp_path / "p.sql"
    stream.program.write_text(
        "CREATE TABLE p (id BIGINT PRIMARY KEY, v STRING) USING events OPTIONS (path 'in', "
        "sequence_by 'ts', apply_as_deletes 'gone = true');"
    )
    stream.add("1.jsonl", [{"id": 1, "v": "a", "ts": 2}, {"id": 1, "gone": True, "ts": 1}])
    stream.run()
    assert stream.rows() == [(1, "a")]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ('IO=kafka, topic="t"', "where the brokers are"),
        ('IO=kafka, servers="x"', "A topic is missing"),
        ('IO=events, keys="nope"', "names `nope`"),
        ("IO=events, stored_as_scd_type=2", "no place for when"),
        ("IO=events, stored_as_scd_type=3", "`1` or `2`"),
        ("IO=events, max_events=0", "number of events"),
        ("IO=push, max_events=5", "no parameter `max_events`"),
        ('IO=events, sequence_by=""', "is empty"),
    ],
)
def test_parameters_are_checked(tmp_path: Path, parameters: str, said: str) -> None:
    stream = Stream(tmp_path, f".decl p(id: number) key(id)\n.input p({parameters})\n")
    with pytest.raises(InputError, match=r"C020[56]") as caught:
        stream.run()
    assert said in str(caught.value)


def test_rows_with_copies_have_no_key(tmp_path: Path) -> None:
    text = '.decl p(id: number) bag\n.input p(IO=events, filename="in", keys="id")\n'
    with pytest.raises(InputError, match="copies"):
        Stream(tmp_path, text).run()
