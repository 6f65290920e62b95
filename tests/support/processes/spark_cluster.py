"""What must hold on a cluster that loses executors, run as a program: it has a session of its own.

`PYTHONPATH=tests python -m support.processes.spark_cluster partitions` maintains a warehouse on a
standalone master with two workers. In the middle of each thing that it does, a task kills the
executor that it runs in; all is compared with what the local engine gives. `readers` does so in the
middle of reading sources and streams. `source` loses none, and reads and writes a warehouse by
`format("corollary")`. `cases N` and
`programs N` run one in N of the cases of changes, and so many random scenarios, with all relations
in partitions, and kill an executor in the middle of some of them; the oracle says what is right.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from hypothesis import Phase, given, seed, settings

import corollary
from corollary.core.arrow import to_python
from corollary.database import opening
from corollary.database.upkeep.verify import verify
from corollary.engines.spark import stratum
from corollary.engines.spark.engine import SparkEngine
from corollary.engines.spark.relation import files as partition_files
from corollary.engines.spark.relation import handle, source
from support.cases.change_runs import CASES, run_case
from support.generators.scenarios import Scenario, judge, scenarios, unhurried
from support.spark.source_matrix import check_matrix
from support.spark.standalone_cluster import StandaloneCluster, standalone_cluster
from support.warehouse_scenarios import store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from corollary.database.database import Database

PROGRAM = """
// A published table has other types for unsigned columns, so that it gets files of its own.
.decl edge(x: unsigned, y: unsigned)
.decl reach(x: unsigned, y: unsigned)
reach(x, y) :- edge(x, y).
reach(x, z) :- reach(x, y), edge(y, z).
.decl degree(x: unsigned, n: number)
degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.
.output reach
"""
NODES = 60
EVERY = 5
"""In one in so many of the cases and programs, an executor is lost."""
EDGES = [(n, n + 1) for n in range(NODES)] + [(n, n // 2) for n in range(0, NODES, 7)]

OPERATIONS = "corollary.engines.spark.operations"
FEW = (
    (handle, "DISTRIBUTED_MIN_TUPLES"),
    (stratum, "INLINE_MAX_TUPLES"),
    (source, "BUILD_MIN_TUPLES"),
    (partition_files, "FOLD_MIN_TUPLES"),
)
"""From here on, few tuples are treated as many are."""
PLANS = "corollary.engines.spark.stratum:RunStratum.run"
PUBLISHED = "corollary.warehouse.publishing.published_files:PublishedFileWriter.__call__"
STORED = "corollary.warehouse.files.multi_file_table:TableFileWriter.__call__"
POINTS = {
    "load": ((f"{OPERATIONS}:Build.run", "before"), (PLANS, "after"), (STORED, "after")),
    "publish": ((PUBLISHED, "before"), (PUBLISHED, "after")),
    "change": ((PLANS, "before"), (PLANS, "after"), (f"{OPERATIONS}:Match.run", "before")),
    "fold": ((f"{OPERATIONS}:Fold.run", "before"), (f"{OPERATIONS}:Fold.run", "after")),
}
"""Where executors are killed in each of the things that are done: a function, before or after."""


class Killing:
    """Databases there and here to which the same happens, there with executors lost."""

    def __init__(self, cluster: StandaloneCluster, spark: SparkSession) -> None:
        self.cluster, self.spark = cluster, spark
        self.lost = 0

    def run(self, place: Path) -> None:
        """Do everything once for each point at which it is interrupted."""
        for what, points in POINTS.items():
            for number, (point, when) in enumerate(points):
                self.interrupted(what, point, when, place / f"{what}-{number}")

    def interrupted(self, what: str, point: str, when: str, place: Path) -> None:
        """Do everything, and lose an executor in one of the things."""
        self.cluster.wait_for_executors()
        here = corollary.open(None, engine="local")
        with corollary.open(place, spark=self.spark, placement="partitions") as there:
            for database in (there, here):
                database.load(text=PROGRAM)
            for next_one in self.things(there, here):
                assert not self.cluster.is_waiting, f"no task came to {point} in {what}"
                if next_one == what:
                    self.cluster.kill_in(point, when)
        self.lost += 1
        compare_files(place, here)

    def things(self, there: Database, here: Database) -> Iterator[str]:
        """Do one thing after the other; say before each what it is."""
        yield "load"
        commits = [change(each, EDGES, []) for each in (there, here)]
        yield "publish"
        there.publish(commits[0])
        compare(there, here)
        yield "change"
        for database in (there, here):
            change(database, [(NODES, 3)], [EDGES[20], EDGES[40]])
        compare(there, here)
        yield "fold"
        store_of(there).fold(there._state)
        for database in (there, here):
            change(database, [EDGES[20]], [(NODES, 3)])
        compare(there, here)
        yield "end"


def change(database: Database, added: list[Any], removed: list[Any]) -> Any:
    """Commit a change of the edges."""
    with database.transaction() as transaction:
        transaction.insert("edge", added)
        transaction.delete("edge", removed)
    return transaction


def compare(there: Database, here: Database) -> None:
    """Hold all relations of two databases against each other."""
    for name in ("edge", "reach", "degree"):
        one, two = (sorted(each.relation(name).rows()) for each in (there, here))
        assert one == two, name


def compare_files(place: Path, here: Database) -> None:
    """See that the warehouse is whole, and its table what the view was when it was published."""
    with corollary.open(place, engine="local") as again:
        assert not verify(store_of(again).warehouse).findings
        compare(again, here)
        again.publish()
    found = to_python(DeltaTable(str(place / "tables/reach")).to_pyarrow_table())
    assert sorted(found) == sorted(here.relation("reach").rows())


READERS = "corollary.warehouse.sources.tasks"
BATCHES = "corollary.database.writing.frame_rows"
READING_POINTS = {
    "load": (
        (f"{READERS}.portion_reader:PortionReader.__call__", "before"),
        (f"{READERS}.portion_reader:PortionReader.__call__", "after"),
        (f"{READERS}.staged_rows:KeyResolver.__call__", "after"),
    ),
    "reload": (
        (f"{READERS}.portion_reader:PortionReader.__call__", "after"),
        (f"{READERS}.staged_rows:PieceComparison.__call__", "after"),
    ),
    "stream": (
        (f"{BATCHES}:EventStager.__call__", "after"),
        (f"{BATCHES}:NetChangeOfPieces.__call__", "before"),
    ),
}
"""Where executors are killed while sources and streams are read."""
READ = """
.decl edge(x: number, y: number) key(x)
.input edge(filename="edge", format=jsonl)
.decl event(x: number, y: number)
.decl both(x: number, y: number)
both(x, y) :- edge(x, y).
both(x, y) :- event(x, y).
"""


class KillingReaders:
    """Reads a source, the source when it has changed, and a stream, while executors are lost."""

    def __init__(self, cluster: StandaloneCluster, spark: SparkSession) -> None:
        self.cluster, self.spark = cluster, spark
        self.lost = 0

    def run(self, place: Path) -> None:
        """Do everything once for each point at which it is interrupted."""
        for what, points in READING_POINTS.items():
            for number, (point, when) in enumerate(points):
                self.interrupted(what, point, when, place / f"{what}-{number}")

    def interrupted(self, what: str, point: str, when: str, place: Path) -> None:
        """Do everything, and lose an executor in one of the things."""
        self.cluster.wait_for_executors()
        place.mkdir()
        with corollary.open(place / "w", spark=self.spark, placement="partitions") as there:
            for next_one in self.things(there, place):
                assert not self.cluster.is_waiting, f"no task came to {point} in {what}"
                if next_one == what:
                    self.cluster.kill_in(point, when)
        self.lost += 1
        with corollary.open(place / "w", engine="local") as again:
            assert not verify(store_of(again).warehouse).findings

    def things(self, there: Database, place: Path) -> Iterator[str]:
        """Do one thing after the other; say before each what it is."""
        program, folder = place / "p.dl", place / "edge"
        program.write_text(READ)
        folder.mkdir()
        for part in range(4):
            _write_lines(folder / f"{part}.jsonl", range(part * 50, part * 50 + 50))
        (folder / "bad.jsonl").write_text('["no", "number"]\n')
        yield "load"
        there.run(program, facts=place)
        assert sorted(there.relation("edge").rows()) == [(n, n + 1) for n in range(200)]
        assert len(there.relation("quarantine")) == 1
        yield "reload"
        _write_lines(folder / "2.jsonl", range(100, 140))
        (folder / "3.jsonl").unlink()
        _write_lines(folder / "4.jsonl", range(300, 310))
        there.run(program, facts=place)
        numbers = [*range(140), *range(300, 310)]
        assert sorted(there.relation("edge").rows()) == [(n, n + 1) for n in numbers]
        yield "stream"
        (place / "in").mkdir()
        events = [{"op": sign, "x": n, "y": 0} for sign in "+-+" for n in range(50)]
        lines = "".join(json.dumps(each) + "\n" for each in [*events[:-10], {"op": "+"}])
        (place / "in" / "1.json").write_text(lines)
        frame = self.spark.readStream.schema("op string, x long, y long").json(str(place / "in"))
        query = there.stream(frame, into="event", op="op", trigger={"availableNow": True})
        query.awaitTermination()
        assert sorted(there.relation("event").rows()) == [(n, 0) for n in range(40)]
        assert len(there.relation("quarantine")) == 2
        assert len(there.relation("both")) == len({*numbers}) + 40
        yield "end"


def _write_lines(path: Path, numbers: range) -> None:
    path.write_text("".join(f"[{n}, {n + 1}]\n" for n in numbers))


class KillingNowAndThen:
    """Runs pieces of work with all relations in partitions, and kills an executor in some of them.

    Attributes:
        run: how many there were.
        lost: how many executors were lost.
    """

    def __init__(self, cluster: StandaloneCluster, spark: SparkSession) -> None:
        self.cluster = cluster
        self.run = self.lost = 0
        opening.create_engine = lambda *_, **__: SparkEngine(spark, placement="partitions")

    def __call__(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Run something; what is due to be killed and finds no task to do it is killed later."""
        points = (f"{OPERATIONS}:Match.run", f"{OPERATIONS}:Contain.run")
        if self.run % EVERY == 0 and not self.cluster.is_waiting:
            self.cluster.wait_for_executors()
            self.cluster.kill_in(points[self.lost % 2], ("before", "after")[self.lost // 2 % 2])
        is_due = self.cluster.is_waiting
        work(*arguments)
        self.run += 1
        self.lost += is_due and not self.cluster.is_waiting


def run_cases(killing: KillingNowAndThen, one_in: int) -> None:
    """Run some of the cases of changes."""
    for case in CASES[::one_in]:
        killing(run_case, case, "as written", "auto")


def run_programs(killing: KillingNowAndThen, count: int) -> None:
    """Run random scenarios, the same every time."""

    @settings(unhurried(count), database=None, deadline=None, phases=[Phase.generate])
    @seed(count)
    @given(scenarios())
    def run(scenario: Scenario) -> None:
        killing(judge, scenario)

    run()


def main(what: str, number: str = "1") -> None:
    """Start a cluster, and lose executors of it."""
    patch = pytest.MonkeyPatch()
    for module, name in FEW:
        patch.setattr(module, name, 1)
    every = [*POINTS.values(), *READING_POINTS.values()]
    points = {point for each in every for point, _ in each}
    with standalone_cluster(points=sorted(points)) as cluster, cluster.session() as spark:
        if what in ("partitions", "readers"):
            thorough = (KillingReaders if what == "readers" else Killing)(cluster, spark)
            with tempfile.TemporaryDirectory() as directory:
                thorough.run(Path(directory))
            print("lost", thorough.lost)
        elif what == "source":
            with tempfile.TemporaryDirectory() as directory:
                check_matrix(spark, Path(directory))
            print("right")
        else:
            killing = KillingNowAndThen(cluster, spark)
            {"cases": run_cases, "programs": run_programs}[what](killing, int(number))
            print("run", killing.run, "lost", killing.lost)


if __name__ == "__main__":
    main(*sys.argv[1:])
