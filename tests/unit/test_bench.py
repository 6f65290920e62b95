"""The benchmarks at tiny sizes: they run, the answers agree, and a wrong one is detected."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.paths import REPOSITORY
from support.selection import sampled

sys.path.append(str(REPOSITORY))  # `bench` stands beside `tests`, not in `src`

from bench import active, advisor, data, startup
from bench.__main__ import compare, main
from bench.contenders import DuckdbQuery, LocalEvaluation
from bench.maintain import report as maintain_report
from bench.maintain import run
from bench.maintain.contenders import DuckdbAnew, Maintained, Sample, Told
from bench.maintain.task import BEST, DELETE, INSERT, Bar, Step, Task
from bench.maintain.tasks import CLOSURE_SQL, some_rows, tasks
from bench.maintain.tracks import Outcome, Track
from bench.maintain.turns import take_turns
from bench.maintain.verdicts import verdicts
from bench.measure import difference, in_order, measure
from bench.pipelines import race
from bench.pipelines.project import MORE
from bench.report import Result, line
from bench.workloads import LEFT, LEFT_CTE, Workload, workloads
from corollary.pipelines.dry_run import compile_dry
from corollary.pipelines.project import load_project

SCALE = 0.01
WORKLOADS = {each.name: each for each in workloads(SCALE)}
TASKS = {each.name: each for each in tasks(SCALE)}
QUERY = f"{LEFT_CTE} FROM tc"


def naive_points_to(relations: data.Relations) -> set[tuple[int, int]]:
    """Apply the four rules to sets until nothing is new."""

    def rows(name: str) -> set[tuple[int, ...]]:
        return {tuple(row.values()) for row in relations[name].to_pylist()}

    points = {(v, o) for v, o in rows("new")}
    heap: set[tuple[int, int, int]] = set()
    while True:
        of: dict[int, set[int]] = {}
        for v, o in points:
            of.setdefault(v, set()).add(o)
        more_heap = {
            (p, f, o) for b, f, w in rows("store") for p in of.get(b, ()) for o in of.get(w, ())
        }
        more = {(v, o) for v, w in rows("assign") for o in of.get(w, ())}
        more |= {
            (v, o)
            for v, b, f in rows("load")
            for p, field, o in heap
            if field == f and p in of.get(b, ())
        }
        if more <= points and more_heap <= heap:
            return points
        points |= more
        heap |= more_heap


@pytest.mark.matrix(4)
@pytest.mark.parametrize("name", sampled(WORKLOADS, 4))
def test_answers_agree(name: str) -> None:
    workload = WORKLOADS[name]
    measurement = compare(workload, repeat=2)
    assert measurement.differences == []
    assert [each.name for each in measurement.timings] == (
        ["corollary", "duckdb"] if workload.sql and workload.is_race else ["corollary"]
    )
    for timing in measurement.timings:
        assert len(timing.seconds) == 2
        assert timing.tuples > 0


def test_points_to_is_right() -> None:
    workload = WORKLOADS["points-to"]
    relations = workload.relations()
    ours = LocalEvaluation(relations, workload.program, "answer")
    ours.ready()
    ours.run()
    found = {(row["v"], row["object"]) for row in ours.answer().to_pylist()}
    assert found == naive_points_to(relations)
    assert ours.notes()["rounds"] > 1


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("", "corollary found"),
        ("WHERE NOT (x = 0 AND y = (SELECT max(y) FROM tc WHERE x = 0))", "corollary found"),
        ("UNION ALL SELECT -1, -1", "corollary found"),
    ],
    ids=["base only", "one missing", "one more"],
)
def test_wrong_counts_are_detected(rule: str, message: str) -> None:
    relations = data.random_tree(30)
    wrong = DuckdbQuery(relations, f"{QUERY} {rule}" if rule else "FROM edge")
    measurement = measure([LocalEvaluation(relations, LEFT, "answer"), wrong], repeat=1)
    assert measurement.differences[0].startswith(message)


def test_wrong_contents_are_detected() -> None:
    relations = data.random_tree(30)
    turned = DuckdbQuery(relations, f"{LEFT_CTE} SELECT y, x FROM tc")
    ours = LocalEvaluation(relations, LEFT, "answer")
    as_rival = measure([ours, turned], repeat=1)
    as_referee = measure([ours], repeat=1, referees=[turned])
    for measurement in (as_rival, as_referee):
        assert "differ at row" in measurement.differences[0]
        result = Result("turned", "", measurement, bar=1e9)
        assert result.verdict == "WRONG"
        assert measurement.differences[0] in line(result)


def test_an_answer_that_changes_between_runs_is_detected() -> None:
    class Growing(DuckdbQuery):
        def run(self) -> None:
            self._connection.execute("INSERT INTO edge VALUES (-1, -1)")
            super().run()

    growing = Growing(data.random_tree(30), "FROM edge")
    assert "in run 2" in measure([growing], repeat=2).differences[0]


@pytest.mark.parametrize("row", range(9))
def test_the_first_difference_is_found(row: int) -> None:
    one = in_order(pa.table({"x": range(0, 18, 2)}))
    other = pa.table({"x": [2 * number + (number == row) for number in range(9)]})
    (found,) = difference("one", one, "other", other)
    assert (
        f"differ at row {row} of 9: {{column0: {2 * row}}} and {{column0: {2 * row + 1}}}" in found
    )


@pytest.mark.long
def test_the_command_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "bench.json"
    chosen = ["--only", "tc-tree", "--only", "tc-nonlinear"]
    assert main([*chosen, "--repeat", "3", "--scale", "0.01", "--json", str(target)]) == 0
    printed = capsys.readouterr().out
    assert "tc-tree" in printed
    assert "tuples/s" in printed
    written = json.loads(target.read_text(encoding="utf-8"))
    first, second = written["results"]
    assert [len(each["seconds"]) for each in first["contenders"]] == [3, 3]
    assert first["ratio"] > 0
    assert second["ratio"] is None


def test_a_wrong_answer_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = Workload("wrong", "", lambda: data.random_tree(30), LEFT, "FROM edge", 2.0)
    monkeypatch.setattr("bench.__main__.workloads", lambda scale=1.0: (wrong,))
    assert main(["--only", "wrong", "--repeat", "1"]) == 1
    assert "WRONG" in capsys.readouterr().out


def test_a_missed_bar_is_reported_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = Workload("slow", "", lambda: data.random_tree(30), LEFT, QUERY, 1e-9)
    monkeypatch.setattr("bench.__main__.workloads", lambda scale=1.0: (slow,))
    assert main(["--only", "slow", "--repeat", "1"]) == 0
    assert "missed" in capsys.readouterr().out


def test_the_profile_names_functions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--profile", "tc-tree", "--scale", "0.01"]) == 0
    assert "pipelines.py" in capsys.readouterr().out


def test_start() -> None:
    assert startup.heavy(startup.modules_loaded()) == []
    measurement = measure([startup.Help()], repeat=1)
    assert measurement.timings[0].tuples > 5


def test_data_is_the_same_every_time() -> None:
    makers = [each.relations for each in WORKLOADS.values()]
    makers += [make for each in TASKS.values() for make in each.relations.values()]
    for make in makers:
        one, other = make(), make()
        assert all(one[name].equals(other[name]) for name in one)


# --- maintenance ---------------------------------------------------------------------------------


def closure_task(**options: Any) -> Task:
    """Return a small closure under changes of single edges."""
    known = {"sql": CLOSURE_SQL, "algorithms": ("ranked",), "bars": ()} | options
    relations = {"": lambda: data.random_tree(30)}
    return Task(
        "small", "smalls", "a small tree", relations, LEFT, rounds=some_rows("edge"), **known
    )


def shortened(task: Task) -> Task:
    """Return a task with two rounds."""
    return replace(task, rounds=lambda relations: task.rounds(relations)[:2])


@pytest.mark.matrix(4)
@pytest.mark.parametrize("name", sampled(TASKS, 9))
def test_maintained_answers_agree(name: str) -> None:
    task = shortened(TASKS[name])
    outcome = run.compare(task)
    assert outcome.differences == []
    assert len(outcome.tracks) == len(task.relations) * (1 + len(task.algorithms))
    assert outcome.kinds == [DELETE, INSERT]
    for track in outcome.tracks:
        assert track.tuples > 0
        assert track.rounds
        assert bool(track.told) == ("duckdb" not in track.name)
    (first, *_) = maintain_report.lines(task, outcome)
    assert first == f"{name}: {task.about}"


def test_changes_come_back() -> None:
    for task in TASKS.values():
        for make in task.relations.values():
            relations = make()
            for steps in task.rounds(relations):
                delete, insert = steps
                assert (delete.kind, insert.kind) == (DELETE, INSERT)
                assert delete.rows.equals(insert.rows)
                assert delete.rows.num_rows > 0


def test_growing_trees_have_equal_branches() -> None:
    small, large = (data.grown_tree(nodes, 3, 4, 5)["edge"] for nodes in (40, 100))
    assert small.slice(0, 27).equals(large.slice(0, 27))
    for table, nodes in ((small, 40), (large, 100)):
        parent, child = table["x"].to_pylist(), table["y"].to_pylist()
        assert child == list(range(1, nodes))
        assert all(one < two for one, two in zip(parent, child, strict=True))
        assert not set(parent[27:]) & set(range(1, 28))


@pytest.mark.matrix(4)
@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("FROM edge", "after delete in round 1: duckdb found"),
        (f"{LEFT_CTE} SELECT y, x FROM tc", "differ at row"),
    ],
    ids=["base only", "turned"],
)
def test_wrong_maintenance_is_detected(sql: str, message: str) -> None:
    task = closure_task(sql=sql)
    outcome = run.compare(task)
    assert message in outcome.differences[0]
    assert "    WRONG after delete" in "\n".join(maintain_report.lines(task, outcome))


@pytest.mark.long
def test_a_wrong_count_is_detected() -> None:
    class Forgetful(Maintained):
        def size(self) -> int:
            return super().size() - 1

    task = shortened(closure_task())
    relations = data.random_tree(30)
    team = [Forgetful("ranked", relations, LEFT), DuckdbAnew(relations, CLOSURE_SQL)]
    outcome = take_turns([team], task.rounds(relations), task)
    assert outcome.differences[0].startswith("tuples after delete in round 2: ")
    assert "start 76" in outcome.differences[1]


@pytest.mark.long
def test_a_step_that_takes_too_long_is_given_up() -> None:
    contender = Maintained("dred", data.random_graph(50, 100), LEFT)
    referee = DuckdbAnew(data.random_graph(50, 100), CLOSURE_SQL)
    row = data.random_graph(50, 100)["edge"].slice(0, 1)
    step = Step(DELETE, "edge", row)
    assert contender.take(step, 0.0) == Sample(0.0, is_cut=True)
    referee.take(step, None)
    assert contender.size() == referee.size()
    assert contender.told == {}
    assert not contender.take(Step(INSERT, "edge", row), 100.0).is_cut


def rounds_of(*seconds: float, is_cut: bool = False) -> list[dict[str, Sample]]:
    return [{DELETE: Sample(each, is_cut), INSERT: Sample(2 * each)} for each in seconds]


def test_rounds_of_both_are_compared() -> None:
    one = Track("one", rounds=rounds_of(1, 2, 3, 100, 100, 100))
    two = Track("two", rounds=rounds_of(10, 20, 30))
    steady = Track("steady", is_steady=True, rounds=rounds_of(7))
    outcome = Outcome([one, two, steady])
    assert outcome.ratio("two", "one", DELETE) == 10
    assert outcome.ratio("steady", "one", DELETE) == 7 / 51.5
    assert outcome.ratio("one", "one") == 1


def test_a_contender_rests() -> None:
    assert not Track("", rounds=rounds_of(5, 5)).has_done_enough(10)
    assert Track("", rounds=rounds_of(5, 5, 5)).has_done_enough(10)
    assert not Track("", rounds=rounds_of(1, 1, 1)).has_done_enough(10)
    assert Track("", is_steady=True, rounds=rounds_of(5)).has_done_enough(10)
    assert Track("", rounds=rounds_of(1, 1, 1, is_cut=True)).has_done_enough(10)


def test_verdicts() -> None:
    told = {DELETE: Told(), INSERT: Told(switches=2)}
    told[DELETE].reasons["no reason"] += 3
    tracks = [
        Track("auto", rounds=rounds_of(3, 3, 3), told=told),
        Track("dred", rounds=rounds_of(2, 2, 2), told=told),
        Track("pf", rounds=rounds_of(1, 1, 1, is_cut=True), told=told),
        Track("duckdb", is_steady=True, rounds=rounds_of(30)),
    ]
    bars = (
        Bar("auto", BEST, 1 / 1.2, switched=1 / 3.2),
        Bar("auto", "duckdb", 8),
        Bar("auto", "dred", 2, INSERT),
    )
    task = closure_task(bars=bars)
    outcome = Outcome(tracks)
    best, duckdb, dred = verdicts(task, outcome)
    assert [(each.kind, each.rival) for each in best.judged] == [(DELETE, "dred"), (INSERT, "pf")]
    assert best.word == "missed (delete)"
    assert duckdb.word == "ok"
    assert dred.word == "missed (insert)"
    printed = "\n".join(maintain_report.lines(task, outcome))
    assert "auto against best: delete 1.5 x the time of dred (at most 1.2), insert 3 x" in printed
    assert "      delete: no reason" in printed
    assert "auto against duckdb: delete 10 x quicker (at least 8), insert 10 x" in printed
    assert "> 1,000.00      2,000.00    > 1,500.00        3" in printed
    assert "(at most" not in "\n".join(maintain_report.lines(task, outcome, with_bars=False))


@pytest.mark.long
def test_the_command_maintains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "bench.json"
    chosen = ["--only", "maintain-growth", "--only", "maintain-dag", "--clock", "cpu"]
    assert main([*chosen, "--scale", "0.01", "--json", str(target)]) == 0
    printed = capsys.readouterr().out
    assert "tc-tree" not in printed
    written = json.loads(target.read_text(encoding="utf-8"))
    assert written["results"] == []
    names = [each["workload"] for each in written["maintained"]]
    assert names == ["maintain-growth-100000", "maintain-growth-1000000", "maintain-dag"]
    dag = written["maintained"][-1]
    assert dag["bars"][0]["judged"][0]["rival"] == "duckdb"
    assert set(dag["contenders"][0]["seconds"][0]) == {DELETE, INSERT}
    assert dag["contenders"][0]["told"][DELETE]["algorithms"] == {"ranked": 20}


def test_wrong_maintenance_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = closure_task(sql="FROM edge")
    monkeypatch.setattr("bench.__main__.tasks", lambda scale=1.0: (wrong,))
    assert main(["--only", "smalls"]) == 1
    assert "WRONG" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize("options", [[], ["--algorithm", "dred"]])
def test_the_profile_of_maintenance(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--profile", "maintain-dag", "--scale", "0.01", *options]) == 0
    assert "transaction.py" in capsys.readouterr().out


@pytest.mark.long
def test_the_advisor_is_measured_and_exact() -> None:
    figures = {each.name: each for each in advisor.run(0.002)}
    assert not any(each.differences for each in figures.values())
    assert figures["rows"].value > 0
    assert figures["exact"].value == 0


@pytest.mark.long
def test_what_monitoring_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(active, "CHANGES", 2)
    monkeypatch.setattr(active, "TURNS", 1)
    figures = list(active.run(0.01))
    assert {each.differences for each in figures} == {()}
    assert [each.name for each in figures if each.bar is not None] == [
        *(f"1,000 rules, {name} {sign}" for name in ("tree", "graph") for sign in "−+"),
        *(f"virtual, tree {sign}" for sign in "−+"),
    ]
    assert {each.name for each in figures} >= {"cousins −sip", "vessels −specialisation"}
    assert all(each.value > 0 for each in figures)


def test_monitors_that_tell_other_things_are_detected() -> None:
    edges = [(0, 1), (1, 2)]
    whole = active.Monitor.on("whole", active.CLOSURE + active.EVERY_LINK, edges)
    part = active.Monitor.on("part", active.CLOSURE + '.alert link "{x}"\n', edges)
    first, *_ = active._turns([whole, part], [(1, 2)], lambda told: told)
    assert first.startswith("delete 0 in turn 1: part tells 0 tuples, whole 2")


def test_the_pipeline_has_18_datasets_that_are_maintained(tmp_path: Path) -> None:
    race.write_project(tmp_path)
    (tmp_path / "transformations/more.sql").write_text(MORE.format(number=10))
    plans = compile_dry(load_project(tmp_path / "spark-pipeline.yml")).plans
    assert len(plans) == race.DATASETS + 1
    assert {each.how.partition(" ")[0] for each in plans} == {"maintained", "appended"}
