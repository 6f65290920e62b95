"""The benchmarks of bulk work at tiny sizes: data, views and queries are what they should be."""

import sys
from pathlib import Path

import pytest

from oracles.evaluation import evaluate
from support.command_line import cli
from support.paths import REPOSITORY
from support.selection import sampled

sys.path.append(str(REPOSITORY))  # `bench` stands beside `tests`, not in `src`

from bench import process
from bench.__main__ import compare, main
from bench.bulk import load, paths, totals
from bench.contenders import THREADS
from bench.measure import difference, in_order
from bench.process import run_duckdb, run_process
from bench.shop import race
from bench.shop.data import Tables, first_tables, next_tables, write
from bench.tpch.data import tables
from bench.tpch.queries import queries
from corollary.core.arrow import to_python

SCALE = 0.0005
QUERIES = {each.name: each for each in queries(0.002)}


def shop_differences(place: Path, now: Tables) -> list[str]:
    """Run the shop on its files; say how its views differ from DuckDB's and the oracle's."""
    arguments = ["run", str(race.PROGRAM), "-F", str(place / "data")]
    result = cli(*arguments, "--warehouse", str(place / "warehouse"), "--engine", "local")
    assert result.exit_code == 0, result.output
    run_duckdb(race.SQL, place / "rival.duckdb", place / "data", THREADS)
    facts = {name: to_python(table) for name, table in now.items()}
    oracle = evaluate(race.PROGRAM.read_text(encoding="utf-8"), facts)
    found = []
    for name, (ours, rival) in race.answers(place / "warehouse", place / "rival.duckdb").items():
        found += difference(name, in_order(ours), "duckdb", rival)
        if set(to_python(ours)) != oracle[name]:
            found.append(f"{name} is not what the oracle says")
    return found


@pytest.mark.long
def test_the_views_of_the_shop_are_right(tmp_path: Path) -> None:
    first = first_tables(SCALE)
    later = next_tables(first)
    assert {name for name in first if not first[name].equals(later[name])} >= {
        *("customer", "orders", "item")
    }
    for now in (first, later):
        write(tmp_path / "data", now)
        assert shop_differences(tmp_path, now) == []


def test_files_are_the_same_every_time(tmp_path: Path) -> None:
    def content(folder: Path) -> dict[str, bytes]:
        files = (file for file in folder.rglob("*") if file.is_file())
        return {str(file.relative_to(folder)): file.read_bytes() for file in files}

    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        write(folder, first_tables(SCALE))
        load.write(folder / "event.csv", 100)
        paths.write(folder / "part.csv", paths.bill(4))
    assert content(one) == content(other)
    for is_text in (False, True):
        made = [tables(200, is_text=is_text) for _ in range(2)]
        assert all(made[0][name].equals(made[1][name]) for name in made[0])


def test_one_more_day_touches_what_has_changed(tmp_path: Path) -> None:
    first = first_tables(0.01)
    write(tmp_path, first)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.*")}
    times = {file: file.stat().st_mtime_ns for file in before}
    write(tmp_path, next_tables(first))
    touched = {file for file in before if file.stat().st_mtime_ns != times[file]}
    new = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.*")} - {
        str(file.relative_to(tmp_path)) for file in before
    }
    assert new == {str(Path("item", "2026-11-16.parquet"))}
    assert {file.name for file in touched} >= {"customer.csv", "2026-10.csv", "2026-11.csv"}
    grown = tmp_path / "orders" / "2026-11.csv"
    assert grown.read_bytes().startswith(before[grown])
    assert len(touched) < len(before) / 2


@pytest.mark.matrix(4)
@pytest.mark.parametrize("name", sampled(QUERIES, 4))
def test_queries_agree(name: str) -> None:
    measurement = compare(QUERIES[name], repeat=1)
    assert measurement.differences == []
    assert measurement.timings[0].tuples > 0
    assert all(each.processor for each in measurement.timings)


def test_totals_agree() -> None:
    (figure,) = totals.run(0.004)
    assert figure.differences == ()


MEASURED = """
import subprocess, sys
from pathlib import Path
held = bytearray(50_000_000)
Path("held").touch()
while not Path("looked").exists():  # until the memory has been looked at
    pass
subprocess.run([sys.executable, "-c", "sum(range(5_000_000))"])
print(len(held))
"""


def test_a_process_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look = process._anonymous_memory

    def looked(number: int) -> int:
        is_held, found = (tmp_path / "held").exists(), look(number)
        if is_held:
            (tmp_path / "looked").touch()
        return found

    monkeypatch.setattr(process, "_anonymous_memory", looked)
    spent = run_process([sys.executable, "-c", MEASURED], tmp_path)
    assert spent.printed == "50000000\n"
    assert spent.processor > 0.05
    assert spent.memory > 50_000_000 or not Path("/proc/self/status").exists()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run_process([sys.executable, "-c", "1 / 0"])


def test_too_little_room_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "DISK_FACTOR", 1e9)
    with pytest.raises(SystemExit, match=r"need .* GB in"):
        list(load.run(1))


@pytest.mark.long
def test_the_command_reports_bulk_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(race, "RUNS", 1)
    chosen = [option for name in ("shop", "paths", "load") for option in ("--only", name)]
    assert main([*chosen, "--scale", str(SCALE), "--rows", "1000"]) == 0
    printed = capsys.readouterr().out
    for name in ("first load", "one more day", "one row", "storing", "rate"):
        assert name in printed
    for name in ("shop", "shop-next"):
        assert main(["--profile", name, "--scale", str(SCALE)]) == 0
        assert "commit.py" in capsys.readouterr().out


def test_duckdb_refuses_two_rows_with_one_key(tmp_path: Path) -> None:
    write(tmp_path, first_tables(SCALE))
    customer = tmp_path / "customer.csv"
    customer.write_text(customer.read_text("utf-8") + "1,nobody,AT,2026-01-01,\n", "utf-8")
    with pytest.raises(RuntimeError, match="two rows of customer have one key"):
        run_duckdb(race.SQL, tmp_path / "rival.duckdb", tmp_path, THREADS)
