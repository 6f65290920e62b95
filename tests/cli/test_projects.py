"""Commands in a directory with `corollary.toml`, plans and their approval, `init`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from corollary.cli.commands.init import TEMPLATES
from corollary.testing.case_files import find_files, read_files
from corollary.testing.run_case import run_case
from support.command_line import CONSTRAINT, INPUT, OK, USAGE, cli, of_json, put, tree

PROJECT = """
program = "net.dl"
facts = "data"
warehouse = "wh"
[options]
engine = "local"
[environments.dev]
warehouse = "dev"
"""
NETWORK = """
.decl edge(x: symbol, y: symbol)
.input edge
.decl link(x: symbol, y: symbol)
link(x, y) :- edge(x, y).
link(x, z) :- link(x, y), edge(y, z).
.output link
lost(x, y) :- -link(x, y).
.alert lost "{x} {y}"
loop(x) :- +link(x, x).
.abort loop "a loop at {x}"
"""


pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put("corollary.toml", PROJECT)
    put("net.dl", NETWORK)
    put("data/edge.facts", "a\tb\nb\tc\n")


def planned(*options: str) -> str:
    """Return the id of the plan."""
    found = of_json(cli("plan", "--format", "json", *options))["id"]
    assert isinstance(found, str)
    return found


# --- settings ---------------------------------------------------------------------------------


def test_run_and_questions_need_no_arguments() -> None:
    result = cli("run", "-v")
    assert result.exit_code == OK, result.stderr
    assert "settings of corollary.toml\n" in result.stderr
    assert Path("wh").is_dir()
    assert cli("query", 'link("a", y)').stdout == "y\nb\nc\n"
    assert cli("sql", "SELECT count(*) AS n FROM link").stdout == "n\n3\n"
    assert cli("query", "wh", 'link("b", y)').stdout == "y\nc\n"
    assert cli("why", 'link("a", "c")').exit_code == OK
    assert cli("changes", "edge").stdout.startswith("x\ty\t_change_type")
    for command in ("status", "log", "check", "show"):
        assert cli(command).exit_code == OK, command
    assert cli("token", "add", "ann", "--role", "read").exit_code == OK
    assert cli("grant", "ann", "link").exit_code == OK
    assert "ann" in cli("grants").stdout


def test_environments_have_their_own_warehouse() -> None:
    result = cli("run", "--environment", "dev", "-v")
    assert "settings of corollary.toml, environment dev\n" in result.stderr
    assert Path("dev").is_dir()
    assert not Path("wh").exists()
    assert cli("status", "--environment", "dev").exit_code == OK
    assert cli("status", env={"COROLLARY_ENVIRONMENT": "dev"}).exit_code == OK
    assert "C1904" in cli("status", "--environment", "prod").stderr
    Path("corollary.toml").unlink()  # a variable that is set elsewhere, too, is of no effect
    assert cli("status", "dev", env={"COROLLARY_ENVIRONMENT": "dev"}).exit_code == OK
    assert "C1904" in cli("status", "dev", "--environment", "dev").stderr


def test_what_is_given_wins() -> None:
    put("other/edge.facts", "x\ty\n")
    assert cli("run", "-F", "other", "--warehouse", "w2").exit_code == OK
    assert cli("query", "w2", "link(x, y)").stdout == "x\ty\nx\ty\n"
    assert not Path("wh").exists()


def test_another_program_does_not_replace_that_of_the_warehouse() -> None:
    put("own.dl", ".decl p(x: number)\np(1).\n.output p(IO=stdout)\n")
    assert cli("run", "own.dl").exit_code == OK
    assert cli("run", "-D", "out").exit_code == OK
    assert Path("out/link.csv").exists()
    assert not Path("wh").exists()
    assert cli("query", "own.dl", "p(x)").stdout == "x\n1\n"


def test_a_wrong_file_is_said_before_anything_is_done() -> None:
    put("corollary.toml", 'programs = "net.dl"')
    result = cli("run", "--format", "json")
    assert result.exit_code == INPUT
    (found,) = of_json(result)["diagnostics"]
    assert (found["code"], found["note"]) == ("C1901", "did you mean `program`?")
    assert cli("run", "--help").exit_code == OK
    put("corollary.toml", PROJECT)
    assert cli("query", "link(x, y)", "--nonsense").exit_code == USAGE


# --- plans ------------------------------------------------------------------------------------


def test_a_plan_is_run_as_it_was_shown() -> None:
    before = tree(".")
    result = cli("plan")
    assert result.exit_code == OK
    assert tree(".") == before
    assert "+ link(x, z) :- link(x, y), edge(y, z).\n" in result.stdout
    assert '+ link("a", "c")\n' in result.stdout
    approved = planned()
    assert f"plan {approved}; to run it: corollary run --approve {approved}\n" in result.stdout
    assert cli("run", "--approve", approved).exit_code == OK
    again = cli("run", "--approve", approved)
    assert again.exit_code == INPUT
    assert "C1905" in again.stderr
    assert cli("run", "--approve", planned()).exit_code == OK


def test_plans_of_the_same_change_have_one_id() -> None:
    assert planned() == planned()


@pytest.mark.parametrize("other", ["source", "program", "commit"])
def test_a_plan_ends_when_something_else_changes(other: str) -> None:
    cli("run")
    put("data/edge.facts", "a\tb\n")
    approved = planned()
    if other == "source":
        put("data/edge.facts", "a\tb\nb\td\n")
    elif other == "program":
        put("net.dl", NETWORK.replace('"{x} {y}"', '"lost: {x} {y}"'))
    else:
        put("more.csv", "x,y\n")
        assert cli("apply", "--insert", "edge=more.csv").exit_code == OK
    result = cli("run", "--approve", approved)
    assert result.exit_code == INPUT
    assert "C1905" in result.stderr
    assert cli("run", "--approve", planned()).exit_code == OK


def test_a_plan_says_what_it_would_break_and_send() -> None:
    cli("run")
    put("data/edge.facts", "a\tb\n")
    document = json.loads(cli("plan", "--format", "json", "--max-deletes", "off").stdout)
    assert [each["message"] for each in document["alerts"]] == ["a c", "b c"]
    assert document["definitions"] == {"added": [], "removed": []}
    put("data/edge.facts", "a\tb\nb\ta\n")
    result = cli("plan")
    assert result.exit_code == CONSTRAINT
    assert "--approve" not in result.stdout


def test_a_plan_shows_a_sample() -> None:
    put("data/edge.facts", "".join(f"a\t{n}\n" for n in range(9)))
    lines = cli("plan", "--sample", "2").stdout.splitlines()
    assert len([each for each in lines if each.startswith("+ edge(")]) == 2
    assert "+ edge: and 7 more" in lines


def test_views_in_sql_are_shown_as_they_are_written() -> None:
    put("net.dl", "")
    put("v.sql", "CREATE TABLE t (x INT);\nCREATE VIEW v AS SELECT x FROM t WHERE x > 1;\n")
    put("corollary.toml", PROJECT.replace("net.dl", "v.sql"))
    found = json.loads(cli("plan", "--format", "json").stdout)["definitions"]
    assert found["added"] == [
        "CREATE TABLE t (x INT)",
        "CREATE VIEW v AS SELECT x FROM t WHERE x > 1",
    ]


# --- init -------------------------------------------------------------------------------------


@pytest.mark.parametrize("template", TEMPLATES)
def test_templates_work(template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = cli("init", "new", "--template", template)
    assert result.exit_code == OK
    assert "README.md" in result.stdout
    monkeypatch.chdir("new")
    cases = read_files(find_files(()), ())
    assert len(cases) == 5
    assert [list(run_case(each).lines()) for each in cases] == [[]] * 5
    assert cli("run", "--engine", "local").exit_code == OK
    assert "0 errors, 0 warnings" in cli("check").stderr


def test_nothing_is_overwritten() -> None:
    Path("corollary.toml").unlink()
    put("README.md", "mine")
    before = tree(".")
    result = cli("init")
    assert result.exit_code == INPUT
    assert "C1906" in result.stderr
    assert tree(".") == before
    assert cli("init", "new").exit_code == OK


# --- branches ---------------------------------------------------------------------------------


def test_a_branch_is_changed_and_promoted() -> None:
    cli("run")
    assert cli("branch", "dev").exit_code == OK
    assert "There is a warehouse in `dev` already" in cli("branch", "dev").stderr
    put("net.dl", NETWORK.replace("\n.output link", "\n.output link\nlink(x, y) :- edge(y, x)."))
    assert cli("run", "--environment", "dev").exit_code == CONSTRAINT  # it has loops
    put("net.dl", NETWORK + ".decl ends(x: symbol)\nends(x) :- edge(_, x), !edge(x, _).\n")
    assert cli("run", "--environment", "dev").exit_code == OK
    assert cli("query", "ends(x)").exit_code == INPUT
    put("data/edge.facts", "a\tb\n")  # sources are not read
    plan = of_json(cli("promote", "dev", "--format", "json"))
    assert plan["changes"] == {"ends": {"added": [["c"]], "removed": []}}
    assert "ends" not in cli("show", "wh").stdout
    assert cli("promote", "dev", "--approve", plan["id"]).exit_code == OK
    assert cli("query", "ends(x)").stdout == "x\nc\n"
    again = cli("promote", "dev", "--approve", plan["id"])
    assert "C1905" in again.stderr
    Path("wh").rename("elsewhere")
    assert "There is no warehouse in" in cli("promote", "dev").stderr
    assert not Path("wh").exists()


def test_what_a_promoted_definition_takes_back_is_deleted_from_its_table() -> None:
    program = NETWORK.replace(".output link", '.output link(change_data_feed="true")')
    put("net.dl", program)
    cli("run")
    cli("branch", "dev")
    far = "link(x, z) :- link(x, y), edge(y, z).\n"
    put("net.dl", program.replace(far, 'link(x, "end") :- edge(_, x), !edge(x, _).\n'))
    cli("run", "--environment", "dev")
    table = DeltaTable("wh/tables/link")
    assert table.version() == 0
    plan = of_json(cli("promote", "dev", "--format", "json"))
    assert cli("promote", "dev", "--approve", plan["id"]).exit_code == OK
    table.update_incremental()
    rows = table.to_pyarrow_table().to_pylist()
    assert sorted((row["x"], row["y"]) for row in rows) == [("a", "b"), ("b", "c"), ("c", "end")]
    feed = pa.RecordBatchReader.from_stream(table.load_cdf(starting_version=1)).read_all()
    changes = {(row["_change_type"], row["x"], row["y"]) for row in feed.to_pylist()}
    assert changes == {("delete", "a", "c"), ("insert", "c", "end")}


def test_a_branch_needs_an_origin() -> None:
    cli("run")
    assert cli("branch", "copy", "--from", "wh").exit_code == OK
    assert cli("branch", "third", "--from", "copy").exit_code == OK
    assert "`wh` is not a branch" in cli("promote", "wh").stderr
    plan = cli("promote", "wh", "--to", "copy").stdout
    assert "to run it: corollary promote wh --to copy --approve " in plan
    Path("corollary.toml").unlink()
    assert "C1909" in cli("branch", "other").stderr
