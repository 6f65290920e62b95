"""Bulk steps: which there are, what stops them, and that faults stay with the local engine."""

import _thread
import math
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import corollary
from corollary.core.arrow import arrow_type
from corollary.core.engine import BULK_MIN_FRAME_ROWS, BULK_MIN_TUPLES, BulkMode, Limits, bulk_mode
from corollary.core.logic import Constant, Functor, Origin, Variable
from corollary.core.pipeline import Compute, Pipeline, Probe, Reference
from corollary.core.recorder import CountingRecorder
from corollary.core.states import State
from corollary.core.types import NUMBER, Type, decimal
from corollary.core.values import decimal_value
from corollary.database.program.loaded_program import load_program
from corollary.engines.local.bulk import connection
from corollary.engines.local.bulk.columns import encode_columns, read_columns
from corollary.engines.local.bulk.connection import run_query
from corollary.engines.local.bulk.estimates import RowEstimates
from corollary.engines.local.engine import LocalEngine
from corollary.engines.local.storage.code_range import ZERO_CODE
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary
from corollary.errors import EvaluationError, InputError, LimitError
from corollary.frontends.datalog.parser import parse
from corollary.maintain.algorithms import seminaive
from corollary.source import SourceFile
from corollary.sqlgen.compiled import OutputColumn, Representation

LONG_QUERY = "SELECT count(*) FROM t AS a, t AS b WHERE a.c0 % 7 < b.c0 % 5"
"""Takes minutes on the table of these tests."""

SALES = """
.decl sale(product: symbol, amount: number, price: decimal(12,2))
.decl revenue(product: symbol, total: decimal(18,2), items: number, mean: float)
revenue(p, t, n, m) :-
    sale(p, _, _),
    t = sum to_decimal(a, 0) * c : { sale(p, a, c) },
    n = count : { sale(p, _, _) },
    m = mean a : { sale(p, a, _) }.
"""


class BulkRecorder(CountingRecorder):
    """Counts the queries over whole relations."""

    def __init__(self) -> None:
        super().__init__()
        self.queries = 0

    def bulk(self) -> None:
        """Count a query."""
        self.queries += 1


def evaluate(
    text: str, facts: Mapping[str, Any], mode: BulkMode, limits: Limits | None = None
) -> tuple[LocalEngine, int]:
    """Evaluate a program; return the engine and the number of queries."""
    program = load_program(parse(SourceFile("test", text))).normal
    engine = LocalEngine(mode)
    engine.declare(program.relations)
    for name, table in facts.items():
        engine.insert(name, table)
    recorder = BulkRecorder()
    plan = seminaive.plan_program(program, engine.statistics())
    engine.run(plan, recorder, limits or Limits())
    return engine, recorder.queries


def rows_of(engine: LocalEngine, relation: str) -> list[tuple[object, ...]]:
    columns = engine.read(relation).columns
    return sorted(zip(*(column.to_pylist() for column in columns), strict=True))


def sales(count: int) -> dict[str, pa.Table]:
    prices = [Decimal(each % 99991) for each in range(count)]
    return {
        "sale": pa.table(
            {
                "product": pa.array([f"p{each % 97}" for each in range(count)]),
                "amount": pa.array(np.arange(count) % 1000),
                "price": pa.array(prices, pa.decimal128(12, 2)),
            }
        )
    }


@pytest.mark.parametrize("count", [BULK_MIN_TUPLES // 100, BULK_MIN_TUPLES])
def test_steps_are_bulk_by_the_tuples_that_lead_them(count: int) -> None:
    facts = sales(count)
    expected, none = evaluate(SALES, facts, BulkMode.NEVER)
    found, some = evaluate(SALES, facts, BulkMode.AUTO)
    assert none == 0
    assert (some > 0) == (count >= BULK_MIN_TUPLES)
    assert rows_of(found, "revenue") == rows_of(expected, "revenue")
    forced, all_steps = evaluate(SALES, facts, BulkMode.ALWAYS)
    assert all_steps > some
    assert rows_of(forced, "revenue") == rows_of(expected, "revenue")


def test_few_tuples_that_meet_many_lead_a_bulk_step() -> None:
    """All tuples of a small relation, which the larger one is not sorted for."""
    text = """
        .decl kind(k: number, weight: number)
        .decl item(n: number, k: number)
        .decl weighed(n: number, w: number)
        weighed(n, n * w) :- kind(k, w), item(n, k).
    """
    numbers = np.arange(BULK_MIN_FRAME_ROWS)
    kinds = np.arange(5)
    facts = {
        "kind": pa.table({"k": kinds, "weight": kinds + 1}),
        "item": pa.table({"n": numbers, "k": numbers % 5}),
    }
    engine, queries = evaluate(text, facts, BulkMode.AUTO)
    assert queries == 1
    assert rows_of(engine, "weighed") == [(n, n * (n % 5 + 1)) for n in range(len(numbers))]


def test_a_value_that_is_looked_up_may_be_missing() -> None:
    """The row would be lost in the join; a query of its own finds it, and the judge decides."""
    text = """
    .decl b(x: number, y: number)
    .decl c(z: number)
    .decl d(x: number)
    d(x) :- b(x, y), c(x / y).
    """
    said = []
    for mode in (BulkMode.ALWAYS, BulkMode.NEVER):
        with pytest.raises(EvaluationError) as raised:
            evaluate(text, {"b": [(1, 0), (2, 1)], "c": [(2,), (5,)]}, mode)
        said.append(str(raised.value))
    assert said[0] == said[1]
    assert "division by zero" in said[0]


def test_a_missing_value_is_no_error_where_a_condition_is_false() -> None:
    text = """
    .decl b(x: number, y: number)
    .decl d(x: number, q: number)
    d(x, q) :- b(x, y), q = x / y, y != 0.
    """
    engine, queries = evaluate(text, {"b": [(1, 0), (7, 2)]}, BulkMode.ALWAYS)
    assert queries
    assert rows_of(engine, "d") == [(7, 3)]


def test_null_has_no_length_even_where_the_variable_cannot_be_null() -> None:
    """The type of `y` in the rule is that of the condition; its column has nulls all the same."""
    text = """
    .decl b(x: symbol, y: symbol?)
    .decl d(x: symbol, y: symbol)
    d(x, y) :- b(x, y), n = strlen(y).
    """
    engine, _ = evaluate(text, {"b": [("a", None), ("b", "c")]}, BulkMode.ALWAYS)
    assert rows_of(engine, "d") == [("b", "c")]


def test_a_rule_that_compares_null_has_no_rows() -> None:
    """The alternative without a match: `y is null` binds what the comparison reads."""
    text = """
    .decl b(x: number)
    .decl c(x: number)
    .decl d(x: number, y: number?)
    d(x, y) := b(x), y is null, c(y2), y = y2, x < 3.
    """
    engine, _ = evaluate(text, {"b": [(1,)], "c": [(2,)]}, BulkMode.ALWAYS)
    assert rows_of(engine, "d") == []


@pytest.mark.parametrize("mode", [BulkMode.NEVER, BulkMode.ALWAYS])
def test_what_is_no_number_has_no_sign(mode: BulkMode) -> None:
    with corollary.open(bulk=mode) as db:
        db.load(text=".decl p(x: float)\n.decl q(s: symbol)\nq(to_string(x * 0.0)) :- p(x).")
        with db.transaction() as tx:
            tx.insert("p", [(-math.inf,), (math.inf,), (math.nan,)])
        assert db.relation("q").arrow().column(0).to_pylist() == ["nan"]


def test_statistics_say_that_a_stratum_was_bulk(tmp_path: Path) -> None:
    program = tmp_path / "sales.dl"
    program.write_text(SALES, "utf-8")
    with corollary.open(None, engine="local", bulk="always") as database:
        database.load(program)
        with database.transaction() as transaction:
            transaction.insert("sale", [("p", 1, Decimal(2))])
        assert transaction.stats["revenue"].placement == "bulk"


# --- limits --------------------------------------------------------------------------------------

NUMBERS = {"n": pa.table({"x": pa.array(np.arange(20_000))})}
PAIRS = """
.decl n(x: number)
.decl p(x: number, y: number)
p(x, y) :- n(x), n(y), (x * y) % 7 < 6.
"""


def test_a_limit_on_tuples_stops_a_query() -> None:
    with pytest.raises(LimitError, match="100000 tuples"):
        evaluate(PAIRS, NUMBERS, BulkMode.ALWAYS, Limits(tuples=100_000))


@pytest.mark.slow
def test_a_limit_on_seconds_stops_a_query() -> None:
    began = time.process_time()
    with pytest.raises(LimitError, match="seconds"):
        evaluate(PAIRS, NUMBERS, BulkMode.ALWAYS, Limits(seconds=0.5))
    assert time.process_time() - began < 20


def test_an_interrupt_stops_a_query() -> None:
    table = pa.table({"c0": pa.array(np.arange(300_000))})
    query = run_query(LONG_QUERY, {"t": table}, _thread.interrupt_main)
    with pytest.raises(KeyboardInterrupt), closing(query) as batches:
        list(batches)


class LateCursor:
    """A cursor whose queries begin after the first interrupt, which DuckDB forgets."""

    def __init__(self) -> None:
        self.cursor = duckdb.connect().cursor()
        self.register, self.close = self.cursor.register, self.cursor.close
        self.is_interrupted = Event()

    def sql(self, text: str) -> duckdb.DuckDBPyRelation:
        self.is_interrupted.wait()
        return self.cursor.sql(text)

    def interrupt(self) -> None:
        self.cursor.interrupt()
        self.is_interrupted.set()


def test_an_interrupt_stops_a_query_that_has_hardly_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"c0": pa.array(np.arange(300_000))})
    database = SimpleNamespace(cursor=LateCursor)
    monkeypatch.setattr(connection, "_database", lambda _: (database, None))
    with pytest.raises(KeyboardInterrupt):
        list(run_query(LONG_QUERY, {"t": table}, _thread.interrupt_main))


def test_what_queries_spill_is_private(tmp_path: Path) -> None:
    """Their files are in a directory that nobody else can read or guess; others are closed."""
    query = "SELECT current_setting('temp_directory') AS place, sum(c0) AS total FROM t"
    (batch,) = run_query(query, {"t": pa.table({"c0": [1, 2]})}, lambda: None)
    found = batch.to_pylist()[0]
    assert found["total"] == 3
    place = Path(found["place"])
    assert place.stat().st_mode & 0o777 == 0o700
    assert re.fullmatch(r"corollary-spill-\w{8}", place.name)
    (tmp_path / "secret").write_text("31337")
    for text in (
        f"SELECT * FROM read_text('{tmp_path}/secret')",
        f"COPY (SELECT 1) TO '{tmp_path}/copy'",
        f"ATTACH '{tmp_path}/other'",
    ):
        with pytest.raises(duckdb.PermissionException):
            list(run_query(text, {}, lambda: None))


SPILL = """
import os
from contextlib import suppress
from corollary.engines.local.bulk import connection
database, directory = connection._database(os.getpid())
database.execute("SET memory_limit = '24MB'")
query = "SELECT range AS x, hash(range) AS y FROM range(1000000) ORDER BY y"
sizes = []
def look():
    with suppress(FileNotFoundError):  # DuckDB removes files meanwhile
        sizes.append(sum(each.stat().st_size for each in directory.path.iterdir()))
assert sum(each.num_rows for each in connection.run_query(query, {}, look)) == 1000000
print(directory.path, max(sizes))
"""


@pytest.mark.slow
def test_what_queries_have_spilled_goes_with_the_process(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", SPILL]
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    place, spilled = said.stdout.split()
    assert Path(place).parent == tmp_path
    assert int(spilled) > 1 << 20
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("digits", [(18, 2), (19, 0), (28, 10), (38, 2), (38, 20), (38, 38)])
@pytest.mark.parametrize("mode", [BulkMode.ALWAYS, BulkMode.NEVER])
def test_sums_and_means_of_decimals_are_exact(digits: tuple[int, int], mode: BulkMode) -> None:
    """Sums need to fit in the end only; one that does not is no error where nobody reads it."""
    type_ = decimal(*digits)
    top, generator = 10**type_.precision - 1, random.Random(str(type_))
    sizes = (1, 10, top // 10**9 + 1, top)
    groups: dict[int, list[int]] = {0: [top, top, 1]}
    for group in range(1, 30):
        terms = [generator.randrange(-size, size + 1) for size in sizes for _ in range(10)]
        # As large on both sides, in any order.
        terms += [-each for each in terms[20:]]
        generator.shuffle(terms)
        groups[group] = terms
    rows = [(g, i, x) for g, terms in groups.items() for i, x in enumerate(terms)]
    columns = list(zip(*rows, strict=True))
    terms_of = pa.array([decimal_value(x, type_.scale) for x in columns[2]], arrow_type(type_))
    facts = {"p": pa.table({"g": columns[0], "i": columns[1], "x": terms_of})}
    text = f"""
    .decl p(g: number, i: number, x: {type_})
    .decl total(g: number, x: decimal(38,{type_.scale}))
    total(g, s) :- p(g, _, _), g > 0, s = sum x : {{ p(g, _, x) }}.
    .decl mean_of(g: number, x: float)
    mean_of(g, m) :- p(g, _, _), m = mean x : {{ p(g, _, x) }}.
    """
    engine, _ = evaluate(text, facts, mode)
    assert rows_of(engine, "total") == [
        (g, decimal_value(sum(terms), type_.scale)) for g, terms in groups.items() if g
    ]
    assert rows_of(engine, "mean_of") == [
        (g, sum(terms) / (len(terms) * 10**type_.scale)) for g, terms in groups.items()
    ]


# --- pieces --------------------------------------------------------------------------------------


def test_there_are_three_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COROLLARY_BULK", "never")
    assert bulk_mode() is BulkMode.NEVER
    assert bulk_mode("always") is BulkMode.ALWAYS
    with pytest.raises(InputError, match="choose one of auto, always, never"):
        bulk_mode("sometimes")


@pytest.mark.parametrize("type_", [decimal(38, 2), decimal(12, 2)])
def test_columns_come_back_from_duckdb_as_they_were(type_: Type) -> None:
    top = 10**type_.precision - 1
    numbers = [0, 1, -1, 10**10, top, -top, top // 3, *range(0, 4000, 7), *range(top - 50, top)]
    values = [None, *(decimal_value(number, type_.scale) for number in numbers)]
    dictionary, types = Dictionary(), (type_.with_null(True),)
    codes = dictionary.encode_python(values, types[0])
    table = Table(types)
    table.insert([codes], len(codes))
    read = read_columns(table, State.NEW, [(Representation.VALUE, 0)], dictionary)
    outputs = [OutputColumn(types[0], Representation.VALUE)]
    batches = list(run_query("SELECT v0 FROM t", {"t": read}, lambda: None))
    found = np.concatenate([encode_columns(each, outputs, dictionary)[0] for each in batches])
    assert sorted(found.tolist()) == sorted(set(codes.tolist()))
    decoded = dictionary.decode_arrow(codes, types[0]).to_pylist()
    assert decoded == values


def test_a_computed_variable_is_a_key() -> None:
    many, few = Table((NUMBER, NUMBER)), Table((NUMBER,))
    rows = ZERO_CODE + np.arange(100_000)
    many.insert([rows, rows], len(rows))
    few.insert([rows[:10]], 10)
    for table in (many, few):
        table.commit()
    x, y, z = (Variable(name, NUMBER) for name in "xyz")
    stages = (
        Probe(Reference("few"), (x,), ()),
        Compute(y, Functor("+", (x, Constant(1, NUMBER)))),
        Probe(Reference("many"), (y, z), (0,)),
    )
    estimates = RowEstimates({"many": many, "few": few})
    assert estimates.flow(Pipeline(stages, (z,), Origin(""))).most == pytest.approx(10)
