"""`corollary advise` on the command line: reports, verification, application, errors."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.advisor.check import measurement
from corollary.advisor.inputs import measure_update_rates
from corollary.warehouse.catalog.query_log import logged_queries
from support.command_line import INPUT, OK, USAGE, cli, of_json, put

PROGRAM = """
.decl services(airline: symbol, airport: symbol)
.input services
.decl connection(a: symbol, b: symbol)
.input connection
.decl base(airline: symbol, airport: symbol)
.input base
.decl view(airline: symbol, base: symbol) virtual
view(a, b) :- services(a, p1), services(a, p2), connection(p1, p2), base(a, b).
"""
REWRITTEN = "view(a, b) :- mv_view_1(a), base(a, b)."


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dice = random.Random(1)
    put("airline.dl", PROGRAM)
    airports = [f"p{number}" for number in range(40)]
    services = [(f"l{at}", port) for at in range(30) for port in dice.sample(airports, 6)]
    connections = [dice.sample(airports, 2) for _ in range(25)]
    bases = [(f"l{at}", dice.choice(airports)) for at in range(30)]
    for name, rows in (("services", services), ("connection", connections), ("base", bases)):
        put(f"facts/{name}.facts", "".join("\t".join(row) + "\n" for row in rows))


def advise(*arguments: str, status: int = OK) -> str:
    result = cli("advise", *arguments)
    assert result.exit_code == status, result.output
    return result.output


def keep() -> None:
    made = cli("run", "airline.dl", "-F", "facts", "--warehouse", "wh", "--engine", "local", "-q")
    assert made.exit_code == OK, made.output


def answers() -> Any:
    asked = cli("query", "wh", "view(x, y)", "--format", "json")
    return of_json(asked)["rows"]


def test_report() -> None:
    lines = advise("airline.dl", "--query", "view").splitlines()
    assert lines[0] == "view/2   N^3 -> N^2   (bushy without storage N^3, Spark pipeline N^4)"
    assert f"  after   {REWRITTEN}" in lines
    assert (
        "          degree 1 <= 2 (set by services)  build N^3  upkeep N^1 per changed row" in lines
    )
    assert "  why     p1, p2 occur only inside this group; only a leaves it." in lines
    (rejected,) = (line for line in lines if line.startswith("  rejected"))
    assert rejected == "  rejected candidate(a, p1, p2): degree 3 > 2"


def test_json() -> None:
    found = of_json(cli("advise", "airline.dl", "--query", "view", "--format", "json"))
    assert set(found["queries"]["view"].pop("sql")) == {"spark", "duckdb"}
    assert found["queries"]["view"] == {
        "applicable": True,
        "reason": None,
        "before": 3,
        "after": 2,
        "bushy": 3,
        "pipelined": 4,
        "virtual_after": 3,
        "exact": True,
        "frequency": 1.0,
        "rewritten": [REWRITTEN],
        "global_before": 3,
        "global_after": 2,
    }
    assert found["scheme_effective_arity"] == {"value": 2, "set_by": "services"}
    (view,) = found["materialise"]
    assert (view["name"], view["arity"], view["degree"]) == ("mv_view_1", 1, 1)
    assert view["self_materialisation"] is False
    assert view["recommendation"] == "store"
    assert [each["why"] for each in found["rejected"]] == ["degree 3 > 2"]


def test_sizes_of_facts_and_keys() -> None:
    text = advise("airline.dl", "-F", "facts", "--keys", "--updates", "services=60/min")
    assert "row-ops" in text
    assert "row-ops an hour" in text
    assert "proposed  base key(airline): holds in 30 tuples" in text


@pytest.mark.slow
def test_apply_verify_and_revert() -> None:
    keep()
    before = answers()
    assert before
    text = advise("airline.dl", "--query", "view", "--apply", "wh", "--verify", "--to", "new.dl")
    assert [line.split(":")[0] for line in text.splitlines() if line.startswith("verified")] == [
        "verified  static",
        "verified  random",
        "verified  data",
        "verified  changes",
    ]
    assert "DIFFERS" not in text
    assert "commit 2: stored mv_view_1" in text
    assert REWRITTEN in Path("new.dl").read_text(encoding="utf-8")
    assert answers() == before
    again = cli("run", "new.dl", "-F", "facts", "--warehouse", "wh", "--engine", "local", "-q")
    assert again.exit_code == OK, again.output
    assert "not applicable" in advise("wh", "--query", "view")
    assert advise("--revert", "wh").startswith("commit 3: dropped mv_view_1")
    assert answers() == before
    assert "C1104" in advise("--revert", "wh", status=INPUT)


def test_applied_views_are_maintained() -> None:
    keep()
    advise("wh", "--query", "view", "--apply", "wh")
    put("gone.tsv", Path("facts/connection.facts").read_text(encoding="utf-8"))
    cli("apply", "wh", "--delete", "connection=gone.tsv")
    database = corollary.open("wh", engine="local")
    with database:
        with database.transaction() as transaction:
            transaction.insert("connection", [("p1", "p2")])
        held = {row[0] for row in database.relation("mv_view_1").rows()}
        served: dict[str, set[str]] = {}
        links = database.relation("connection").rows()
        for airline, airport in database.relation("services").rows():
            served.setdefault(airline, set()).add(airport)
        assert held == {a for a, ports in served.items() if any({*link} <= ports for link in links)}


def test_the_program_has_to_be_the_one_in_force() -> None:
    keep()
    put("other.dl", PROGRAM.replace("base(a, b).", "base(a, b), services(a, b)."))
    text = advise("other.dl", "--query", "view", "--apply", "wh", status=INPUT)
    assert "C1103" in text
    assert "not applicable" not in advise("airline.dl", "--query", "view", "--stats", "wh")


def test_measure() -> None:
    keep()
    found = of_json(
        cli("advise", "wh", "--query", "view^bf", "--measure", "--engine", "local",
            "--format", "json")
    )  # fmt: skip
    (query,) = found["measured"]["queries"]
    assert query["query"].startswith('view("l')
    assert query["runs"] == 5
    assert found["measured"]["rows"]["mv_view_1"] > 0
    assert found["queries"]["view"]["before"] == 2
    text = advise("wh", "--query", "view", "--measure", "--engine", "local")
    assert "was expected" in text


def test_seconds_come_from_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "CALIBRATION_MIN_ROWS", 20)
    keep()
    assert "row-op is thought" not in advise("wh", "--query", "view")  # no view was maintained
    put("more.dl", PROGRAM + ".decl at(p: symbol) stored\nat(p) :- services(a, p), base(a, p).\n")
    made = cli("run", "more.dl", "-F", "facts", "--warehouse", "wh", "--engine", "local", "-q")
    assert made.exit_code == OK, made.output
    with corollary.open("wh", engine="local", log_queries=False) as database:
        assert database._store is not None
        (stats,) = (
            each.stats["at"] for each in database._store.warehouse.commits() if "at" in each.stats
        )
    each = stats["seconds"] / (2 * stats["base_probes"] + stats["actual"])
    found = of_json(cli("advise", "wh", "--query", "view", "--format", "json"))
    assert found["calibration"] == {
        "seconds_per_row_op": pytest.approx(each),
        "from": "1 commit of the history (local)",
        "seconds_per_call": pytest.approx(0.5, abs=0.5),
    }
    floor = found["calibration"]["seconds_per_call"]
    assert floor > 0
    view, (made_new,) = found["queries"]["view"], found["materialise"]
    for name in ("before", "after"):
        seconds = pytest.approx(floor + each * view[f"work_{name}"], rel=0.1)
        assert view[f"estimated_seconds_{name}"] == seconds
    assert made_new["estimated_build_seconds"] > 0
    text = advise("wh", "--query", "view", "--updates", "services=100/h")
    assert text.splitlines()[-2].startswith("a row-op is thought to take ")
    assert text.splitlines()[-2].endswith(" us, going by 1 commit of the history (local)")
    assert text.splitlines()[-1].startswith("every call takes ")
    assert "row-ops   est. " in text.splitlines()[0]
    assert "row-ops an hour, est. " in text


def test_seconds_come_from_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    keep()
    arguments = ("wh", "--query", "view", "--measure", "--engine", "local", "--updates", "base=9/s")
    assert "for a row-op" not in advise(*arguments)  # so few rows tell nothing
    monkeypatch.setattr(measurement, "CALIBRATION_MIN_ROWS", 100)
    text = advise(*arguments, "--updates", "services=9/s")
    assert " for a row-op, going by 1 measured run of the rules as they are" in text
    assert "expected  mv_view_1 takes " in text
    found = of_json(cli("advise", *arguments, "--format", "json"))
    (query,) = found["measured"]["queries"]
    # By chance, the query of few rows may have been faster than that of none.
    least = found["calibration"]["seconds_per_call"]
    assert found["queries"]["view"]["estimated_seconds_before"] == pytest.approx(
        max(query["before_seconds"], least)
    )


@pytest.mark.slow
def test_sizes_come_from_a_sample() -> None:
    keep()
    arguments = ("advise", "wh", "--query", "view", "--engine", "local", "--format", "json")
    measured = of_json(cli(*arguments, "--measure"))["measured"]["rows"]["mv_view_1"]
    (whole,) = of_json(cli(*arguments, "--sample", "1"))["sampled"]
    assert whole == {
        "view": "mv_view_1",
        "rows": measured,
        "column": "a",
        "values": 30,
        "of_values": 30,
        "found": measured,
    }
    (half,) = of_json(cli(*arguments, "--sample", "0.5"))["sampled"]
    assert (half,) == tuple(of_json(cli(*arguments, "--sample", "0.5"))["sampled"])
    assert 5 < half["values"] < 25
    assert half["found"] <= half["values"]
    assert half["rows"] == round(half["found"] * 30 / half["values"])
    text = advise("wh", "--query", "view", "--sample", "0.5")
    assert "sampled   mv_view_1 has about " in text
    assert " of 30 values of a; " in text


def test_frequencies_come_from_the_query_log() -> None:
    keep()
    for goal in ('view("l1", y)', 'view("l2", y)', "view(x, y)", 'services("l1", y)'):
        assert cli("query", "wh", goal).exit_code == OK
    assert cli("query", "wh", "view(x, y)", "--no-log").exit_code == OK
    database = corollary.open("wh", engine="local", log_queries=False)
    with database:
        assert database._store is not None
        asked = logged_queries(database._store.warehouse.catalog)
        database.query("view(x, y)")
    assert {each.form: each.count for each in asked} == {
        "view^bf": 2,
        "view^ff": 1,
        "services^bf": 1,
    }
    text = advise("wh")
    assert text.startswith("view^bf   N^2 -> N^1")
    assert "f=3/h" in text


@pytest.mark.parametrize("is_apart", [False, True], ids=["with the program", "behind it"])
def test_what_came_first_is_no_change(is_apart: bool) -> None:
    rows = [("l1", f"p{at}") for at in range(50)]
    with corollary.open("wh", engine="local") as database:
        declared = PROGRAM if is_apart else PROGRAM + 'services("l0", "p1").'
        database.load(
            text="\n".join(each for each in declared.splitlines() if ".input" not in each)
        )
        with database.transaction() as transaction:
            transaction.insert("services", rows)
        with database.transaction() as transaction:
            transaction.delete("services", rows[:2])
            transaction.insert("base", [("l1", "p1")])
        expected = 2.0 if is_apart else 52.0
        assert measure_update_rates(database) == {"services": expected, "base": 1.0}


def test_drop_tells_views_that_do_not_pay() -> None:
    keep()
    advise("wh", "--query", "view", "--apply", "wh")
    assert cli("query", "wh", "view(x, y)").exit_code == OK
    assert advise("--drop", "wh").startswith("keep  mv_view_1: saves")
    found = of_json(
        cli("advise", "--drop", "wh", "--updates", "services=1000/s", "--format", "json")
    )
    (account,) = found["views"]
    assert account["drop"]
    assert account["upkeep_per_hour"] > account["saved_per_hour"]


def test_a_broken_dependency_is_told() -> None:
    put("fd.dl", PROGRAM + ".fd view(airline -> base)\n")
    put("facts/base.facts", "l1\tp1\nl1\tp2\nl2\tp3\n")
    put("facts/services.facts", "l1\tp1\nl1\tp2\n")
    put("facts/connection.facts", "p1\tp2\n")
    assert "C1106" in advise("fd.dl", "-F", "facts")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("airline.dl", "--query", "base"), INPUT, "C1100"),
        (("airline.dl", "--query", "veiw"), INPUT, "C0916"),
        (("airline.dl", "--query", "view^bbb"), INPUT, "C1101"),
        (("airline.dl", "--query", "view", "--selection", "budget"), INPUT, "C1102"),
        (("airline.dl", "--selection", "paper", "--budget", "1GB"), INPUT, "C1102"),
        (("airline.dl", "--budget", "much"), USAGE, "2GB"),
        (("airline.dl", "--updates", "services"), USAGE, "services=1000/h"),
        (("airline.dl", "--frequency", "view=1/x"), USAGE, "rate"),
        (("airline.dl", "--revert", "wh"), USAGE, "--revert"),
        ((), USAGE, "--drop"),
        (("missing.dl",), INPUT, "missing.dl"),
        (("airline.dl", "--apply", "nowhere"), INPUT, "C0930"),
        (("airline.dl", "--measure"), USAGE, "needs data"),
        (("airline.dl", "--sample", "0.5"), USAGE, "needs data"),
        (("airline.dl", "--sample", "0"), USAGE, "0<x<=1"),
    ],
)
def test_errors(arguments: tuple[str, ...], status: int, said: str) -> None:
    assert said in advise(*arguments, status=status)


def test_a_budget() -> None:
    keep()
    assert "not applicable" in advise("wh", "--query", "view", "--budget", "1B")
    rich = advise("wh", "--query", "view", "--budget", "1GB", "--frequency", "view=100/h")
    assert "store   mv_view_1(a)" in rich
