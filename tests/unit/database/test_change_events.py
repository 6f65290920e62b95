"""AUTO CDC on random batches, beside a model that takes one event after the other."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corollary
from corollary.analysis.change_streams import DELETED, SEQUENCE
from corollary.database.intake.change_events import apply_events, table_query
from corollary.errors import InputError
from support.selection import examples

SCHEMA = pa.schema(
    {"id": pa.int64(), "v": pa.string(), "w": pa.int64(), SEQUENCE: pa.int64(), DELETED: pa.bool_()}
)
EVENTS = st.tuples(
    st.integers(1, 3),
    st.sampled_from(["a", "b", None]),
    st.integers(0, 1),
    st.integers(0, 6),
    st.booleans(),
)


def table(rows):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def greater(values):
    return [(each is not None, each) for each in values]


def later(old, new, *, history):
    """Whether an event that comes after another one on the same key takes its place."""
    if old is None:
        return True
    if old[3] != new[3]:
        return new[3] > old[3]
    if history:
        return new[4] or not old[4]
    return not new[4]


def first_of(batch, *, history):
    """The order in which events that come together count: the last one of equal ones is best."""
    return sorted(
        batch,
        key=lambda e: (
            e[3],
            e[4] if history else not e[4],
            [(x is not None, x or 0) for x in e[:1]],
            (e[1] is not None, e[1] or ""),
            e[2],
        ),
    )


def keep(batches, *, history):
    held = {}
    for batch in batches:
        for event in first_of(batch, history=history):
            key = (event[0], event[3]) if history else event[0]
            if later(held.get(key), event, history=history):
                held[key] = event
    return held


def histories(held, tracked):
    rows = []
    for key in {each[0] for each in held.values()}:
        current = None
        for event in sorted((e for e in held.values() if e[0] == key), key=lambda e: e[3]):
            goes_on = (
                current is not None
                and not event[4]
                and all(current[0][at] == event[at] for at in tracked)
            )
            if current is not None and not goes_on:
                rows.append((*current[0][:3], current[1], event[3]))
            start = current[1] if goes_on else event[3]
            current = None if event[4] else (event, start)
        if current is not None:
            rows.append((*current[0][:3], current[1], None))
    return rows


def kept_by_us(batches, *, history):
    held = table([])
    for batch in batches:
        added, removed = apply_events(held, table(batch), ["id"], has_history=history)
        gone = {tuple(row.values()) for row in removed.select(SCHEMA.names).to_pylist()}
        rows = [row for row in held.to_pylist() if tuple(row.values()) not in gone]
        held = pa.Table.from_pylist([*rows, *added.select(SCHEMA.names).to_pylist()], SCHEMA)
    return held


def plain(events):
    """Events as they count: of a delete, the values say nothing."""
    return [(each[0], *((None, None) if each[4] else each[1:3]), *each[3:]) for each in events]


def by_text(rows):
    return sorted(rows, key=str)


@given(st.lists(st.lists(EVENTS, max_size=6), max_size=4), st.booleans())
def test_the_events_that_count_are_those_of_the_model(batches, history):
    found = kept_by_us(batches, history=history)
    expected = keep(batches, history=history).values()
    assert by_text(plain(tuple(row.values()) for row in found.to_pylist())) == by_text(
        plain(expected)
    )


@pytest.fixture(scope="module")
def database():
    db = corollary.open(None, engine="local")
    db.sql(f"CREATE TABLE e (id BIGINT, v STRING, w BIGINT, {SEQUENCE} BIGINT, {DELETED} BOOLEAN);")
    db.sql(f"CREATE VIEW t1 AS {query(history=False)}")
    db.sql(f"CREATE MATERIALIZED VIEW t2 AS {query(history=True, tracked=['v', 'w'])}")
    db.sql(f"CREATE MATERIALIZED VIEW t3 AS {query(history=True, tracked=['v'])}")
    return db


def query(**options):
    return table_query("e", ["id", "v", "w"], ["id"], has_history=options.pop("history"), **options)


@pytest.mark.parametrize("seed", range(examples(2, 6)))
def test_tables_are_those_of_the_model(database, seed):
    import random

    generator = random.Random(seed)
    batches = [  # a stream of changes for each of 60 keys, cut anywhere
        [
            (
                generator.randint(1, 60),
                generator.choice(["a", "b", None]),
                generator.randint(0, 1),
                generator.randint(0, 9),
                generator.random() < 0.3,
            )
            for _ in range(generator.randint(0, 150))
        ]
        for _ in range(generator.randint(1, 5))
    ]
    for history in (False, True):
        held = keep(batches, history=history)
        database.sql("DELETE FROM e")
        with database.transaction() as tx:
            tx.insert("e", kept_by_us(batches, history=history))
        if history:
            for name, tracked in (("t2", (1, 2)), ("t3", (1,))):
                found = database.sql(f"SELECT * FROM {name}").rows()
                assert by_text(found) == by_text(histories(held, tracked))
        else:
            expected = [each[:3] for each in held.values() if not each[4]]
            assert by_text(database.sql("SELECT * FROM t1").rows()) == by_text(expected)


def test_events_have_keys_and_sequences():
    for at, what in ((0, "key `id`"), (3, "sequence")):
        row = [1, "a", 0, 1, False]
        row[at] = None
        with pytest.raises(InputError, match=what) as raised:
            apply_events(table([]), table([row]), ["id"], has_history=False)
        assert raised.value.diagnostics[0].code == "C1720"
