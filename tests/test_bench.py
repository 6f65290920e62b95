"""The benchmarks at tiny sizes: they run, the answers agree, and a wrong one is detected."""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest

sys.path.append(str(Path(__file__).parents[1]))  # `bench` stands beside `tests`, not in `src`

from bench import data, startup
from bench.__main__ import compare, main
from bench.contenders import DuckdbQuery, LocalEvaluation
from bench.measure import difference, in_order, measure
from bench.report import Result, line
from bench.workloads import LEFT, LEFT_CTE, Workload, workloads

SCALE = 0.01
WORKLOADS = {each.name: each for each in workloads(SCALE)}
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


@pytest.mark.parametrize("name", WORKLOADS)
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
    for workload in WORKLOADS.values():
        one, other = workload.relations(), workload.relations()
        assert all(one[name].equals(other[name]) for name in one)
