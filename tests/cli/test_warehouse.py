"""The command line of a warehouse: run, apply, query, log, changes, export."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from deltalake import DeltaTable, write_deltalake

import corollary
from corollary.database.counters import COUNTER_NAMES
from corollary.database.warehouse_store import WarehouseStore
from corollary.errors import ConflictError
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.warehouse import Warehouse
from support.command_line import (
    COMMAND,
    CONFLICT,
    CONSTRAINT,
    INPUT,
    INTERRUPTED,
    LIMIT,
    OK,
    USAGE,
    cli,
    of_json,
    put,
    tree,
)

NETWORK = """\
.decl edge(x: symbol, y: symbol)
.input edge(filename="edge.csv", delimiter=",")
.decl link(x: symbol, y: symbol)
link(x, y) :- edge(x, y).
link(x, z) :- link(x, y), edge(y, z).
.output link
"""
LOOP = "link(x, x) :- edge(x, _).\n"
SEEN = 'link("a", y)'


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a program and its source, which is the current one."""
    monkeypatch.chdir(tmp_path)
    put("network.dl", NETWORK)
    edges("a,b", "b,c")
    return tmp_path


def edges(*lines: str, name: str = "facts/edge.csv") -> None:
    put(name, "".join(f"{line}\n" for line in lines))


def program(*more: str, base: str = NETWORK) -> None:
    put("network.dl", base + "".join(more))


def run(*options: str) -> Result:
    return cli("run", "network.dl", "-F", "facts", "--warehouse", "wh", *options)


def apply(*options: str, stdin: str = "") -> Result:
    return cli("apply", "wh", *options, stdin=stdin)


def feed(*changes: dict[str, Any], options: tuple[str, ...] = ()) -> Result:
    """Applies changes that come on standard input."""
    return apply("--changes", "-", *options, stdin="".join(f"{json.dumps(c)}\n" for c in changes))


def insert(*row: Any, relation: str = "edge") -> dict[str, Any]:
    return {"op": "insert", "relation": relation, "row": list(row)}


def delete(*row: Any, relation: str = "edge") -> dict[str, Any]:
    return {"op": "delete", "relation": relation, "row": list(row)}


def rows(goal: str, *options: str) -> list[list[Any]]:
    return list(of_json(done(cli("query", "wh", goal, "--format", "json", *options)))["rows"])


def links(*options: str) -> set[str]:
    return {x + y for x, y in rows("link(x, y)", *options)}


def done(result: Result) -> Result:
    assert result.exit_code == OK, result.output
    return result


def commits() -> list[dict[str, Any]]:
    return list(of_json(done(cli("log", "wh", "--format", "json")))["commits"])


def refused(result: Result, *words: str, status: int = INPUT) -> None:
    """Demands an error that says these words, and that nothing has changed."""
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr, result.stderr
    assert "Traceback" not in result.stderr


# --------------------------------------------------------------------------------------------- run


def test_the_first_run_materialises_commits_and_publishes() -> None:
    result = done(run())
    edge, link, commit = result.stdout.splitlines()
    assert edge == "edge  +2"
    assert re.fullmatch(r"link  \+3  recompute  driver  \d+\.\d\d s", link)
    assert commit == "commit 1"
    assert result.stderr == "published: link\n"
    table = DeltaTable("wh/tables/link").to_pyarrow_table()
    assert {x + y for x, y in zip(*table.to_pydict().values(), strict=True)} == {"ab", "bc", "ac"}


def test_run_in_json_is_as_the_language_says() -> None:
    said = of_json(done(run("--format", "json")))
    assert list(said) == ["commit", "changes", "alerts", "stats"]
    assert said["commit"] == 1
    assert said["alerts"] == []
    added = [["a", "b"], ["a", "c"], ["b", "c"]]
    assert said["changes"] == {
        "edge": {"added": [["a", "b"], ["b", "c"]], "removed": []},
        "link": {"added": added, "removed": []},
    }
    assert list(said["stats"]["link"]) == ["algorithm", "placement", "seconds", *COUNTER_NAMES]
    assert said["stats"]["link"]["actual"] == 3


def test_verbose_says_what_took_how_long() -> None:
    """A line for each phase, in order, and a sum; results and JSON stay as they are."""
    said = done(run("-v", "--format", "json")).stderr.splitlines()
    assert [line.partition(":")[0] for line in said[:-1]] == [
        "read",
        "plan",
        "evaluate",
        "store",
        "publish",
    ]
    assert said[0].startswith("read: 2 rows, ")
    parts, _, total = said[-1].rpartition(": ")
    seconds = [float(each) for each in re.findall(r"[\d.]+(?= s)", parts)]
    assert round(sum(seconds), 2) == float(total.removesuffix(" s"))
    put("new.tsv", "c\td\n")
    insert = ["--insert", "edge=new.tsv"]
    for options in ([], ["-q"], ["-q", "-v"]):
        assert "read: " not in done(cli("apply", "wh", *insert, *options)).stderr
    read, *_ = done(cli("apply", "wh", *insert, "-v")).stderr.splitlines()
    assert read.startswith("read: 1 row, ")
    for command in (["query", 'link("a", y)'], ["verify"], ["gc"]):
        name, *rest = command
        assert done(cli(name, "wh", *rest, "-v")).stderr.endswith(" s\n")


def test_a_run_with_nothing_changed_says_so() -> None:
    run()
    before = tree("wh")
    result = done(run())
    assert (result.stdout, result.stderr) == ("nothing has changed since commit 1\n", "")
    said = of_json(done(run("--format", "json")))
    assert said == {"commit": 1, "changes": {}, "alerts": [], "stats": {}}
    assert tree("wh") == before


def test_a_file_that_was_only_touched_changes_nothing() -> None:
    run()
    os.utime("facts/edge.csv", (0, 0))
    assert done(run()).stdout == "nothing has changed since commit 1\n"
    assert len(commits()) == 1


def test_only_what_changed_in_a_source_flows() -> None:
    run()
    edges("a,b", "c,d")
    result = done(run())
    edge, link, commit = result.stdout.splitlines()
    assert edge.split() == ["edge", "+1", "−1"]
    assert link.split()[:3] == ["link", "+1", "−2"]
    assert commit == "commit 2"
    assert links() == {"ab", "cd"}
    edges("a,b", "c,d", "d,e")
    assert of_json(run("--format", "json"))["changes"]["link"]["added"] == [["c", "e"], ["d", "e"]]


def test_a_source_that_is_gone_is_an_error_and_changes_nothing() -> None:
    run()
    Path("facts/edge.csv").unlink()
    refused(run(), "C0804", "edge.csv")
    assert links() == {"ab", "bc", "ac"}
    assert len(commits()) == 1


def test_an_input_that_is_removed_takes_its_tuples_along() -> None:
    run()
    feed(insert("c", "d"))
    program(base=NETWORK.replace(".input", "// .input"))
    said = of_json(done(run("--format", "json")))
    assert said["changes"]["edge"] == {"added": [], "removed": [["a", "b"], ["b", "c"]]}
    assert links() == {"cd"}


def test_an_input_that_is_renamed_changes_what_differs() -> None:
    run()
    edges("b,c", "c,d", name="facts/other.csv")
    program(base=NETWORK.replace("edge.csv", "other.csv"))
    said = of_json(done(run("--format", "json")))
    assert said["changes"]["edge"] == {"added": [["c", "d"]], "removed": [["a", "b"]]}
    Path("facts/other.csv").rename("facts/third.csv")
    program(base=NETWORK.replace("edge.csv", "third.csv"))
    assert done(run()).stdout == "commit 3: no tuple has changed\n"
    assert links() == {"bc", "cd", "bd"}


def test_rules_of_the_text_come_and_go() -> None:
    run()
    program(LOOP)
    said = of_json(done(run("--format", "json")))
    assert said["changes"] == {"link": {"added": [["a", "a"], ["b", "b"]], "removed": []}}
    program()
    said = of_json(done(run("--format", "json")))
    assert said["changes"] == {"link": {"added": [], "removed": [["a", "a"], ["b", "b"]]}}
    assert links("--at", "2") == {"ab", "bc", "ac", "aa", "bb"}


def test_facts_of_the_text_come_and_go() -> None:
    program('edge("c", "d").\n')
    run()
    program('edge("c", "e"). edge("a", "b").\n')
    said = of_json(done(run("--format", "json")))
    assert said["changes"]["edge"] == {"added": [["c", "e"]], "removed": [["c", "d"]]}
    program()
    said = of_json(done(run("--format", "json")))
    assert said["changes"]["edge"] == {"added": [], "removed": [["c", "e"]]}
    assert links() == {"ab", "bc", "ac"}


def test_comments_and_layout_are_no_change() -> None:
    run()
    put("network.dl", "// the same\n" + NETWORK.replace(", ", " ,  "))
    assert done(run()).stdout == "nothing has changed since commit 1\n"


def test_a_run_puts_the_text_into_force_whatever_rules_were_applied() -> None:
    run()
    feed({"op": "add-rule", "rule": LOOP})
    assert "aa" in links()
    said = of_json(done(run("--format", "json")))
    assert said["changes"] == {"link": {"added": [], "removed": [["a", "a"], ["b", "b"]]}}


def test_views_come_and_go_with_the_text_but_base_columns_stay() -> None:
    run()
    program(".decl last(x: symbol)\nlast(y) :- edge(_, y), !edge(y, _).\n.output last\n")
    assert done(run()).stderr == "published: last\n"
    assert rows("last(x)") == [["c"]]
    program()
    done(run())
    refused(cli("query", "wh", "last(x)"), "C02")
    assert rows("last(x)", "--at", "2") == [["c"]]
    assert "c\tinsert\t2" in done(cli("changes", "wh", "last")).stdout
    program(
        base=NETWORK.replace("edge(x: symbol", "edge(y: symbol").replace("y: symbol)", "z: symbol)")
    )
    refused(run(), "C0912", "corollary alter W edge --program")


def test_a_dry_run_makes_no_warehouse() -> None:
    before = tree(".")
    said = of_json(done(run("--dry-run", "--format", "json")))
    assert tree(".") == before
    assert said["commit"] is None
    assert [each["change"] for each in said["plan"]["relations"]] == ["new", "new"]
    assert [each["change"] for each in said["plan"]["tables"]] == ["created"]
    edges("a,b", "b,c", "c")
    said = of_json(done(run("--dry-run", "--format", "json")))
    (source,) = said["plan"]["sources"]
    assert source["state"] == "read"
    assert source["rows"] == {"added": 2, "removed": 0, "malformed": 1}


WATCHED_NETWORK = """\
.decl lost(x: symbol, y: symbol)
lost(x, y) :- -link(x, y).
.alert lost "lost {x}" (IO=jsonlines, filename="lost.jsonl")
.decl loop(x: symbol)
loop(x) :- link(x, x).
.abort loop "{x} is on a loop"
"""


def test_a_dry_run_says_what_the_run_does_and_changes_nothing() -> None:
    """Neither files nor rows of the catalog: no commit, outbox entry or offset; the same status."""
    program(WATCHED_NETWORK)
    done(run())
    done(cli("grant", "wh", "maria", "link", "loop"))
    edges("a,b", "c,d", "d")
    put("new.csv", "c,a\n")
    wide = NETWORK.replace("link(x: symbol, y: symbol)", "link(x: symbol, y: symbol, z: number)")
    wide = wide.replace("link(x, y) :-", "link(x, y, 1) :-")
    wide = wide.replace("link(x, z) :- link(x, y)", "link(x, z, n + 1) :- link(x, y, n), n < 9")
    program('lost(x, y) :- -link(x, y, _).\n.alert lost "lost {x}"\n', base=wide)
    before = tree(".")
    for options in (["--dry-run"], ["--dry-run", "-v"], ["--dry-run", "--format", "json"]):
        result = done(run(*options))
        assert tree(".") == before
    plan = of_json(result)["plan"]
    assert {each["relation"]: each["change"] for each in plan["relations"]} == {
        "edge": "changed", "link": "rebuilt", "loop": "dropped", "quarantine": "changed",
    }  # fmt: skip
    (table,) = plan["tables"]
    assert [each["name"] for each in table["schema"]["before"]] == ["x", "y"]
    assert [each["name"] for each in table["schema"]["after"]] == ["x", "y", "z"]
    assert plan["lost_grants"] == {"maria": ["loop"]}
    said = of_json(result)
    real = of_json(done(run("--format", "json")))
    assert real["changes"] == said["changes"]
    assert real["alerts"] == said["alerts"] != []
    assert "plan" not in real
    with corollary.open("wh", engine="local") as db:
        assert db.grants() == {"maria": ["link"]}
    before = tree(".")
    said = of_json(done(apply("--insert", "edge=new.csv", "--dry-run", "--format", "json")))
    assert tree(".") == before
    assert said["commit"] is None
    assert [each["reason"] for each in said["plan"]["relations"]] == [
        "rows come or go", "edge changes",
    ]  # fmt: skip


def test_a_dry_run_ends_with_the_status_of_the_run() -> None:
    program(WATCHED_NETWORK)
    done(run())
    put("new.csv", "c,a\n")
    before = tree(".")
    result = apply("--insert", "edge=new.csv", "--dry-run")
    assert result.exit_code == CONSTRAINT
    assert "loop      changed" in result.stdout
    assert "is on a loop" in result.stderr
    result = apply("--insert", "edge=new.csv", "--dry-run", "--format", "json")
    assert result.exit_code == CONSTRAINT
    assert [each["code"] for each in of_json(result)["plan"]["constraints"]] == ["C1051"] * 3
    edges("a,b", "b,c", "c,a")
    assert run("--dry-run").exit_code == CONSTRAINT
    assert tree(".") == before | {"facts/edge.csv": b"a,b\nb,c\nc,a\n"}
    edges("a,b", "b,c")
    program(base=NETWORK.replace("y: symbol)\n.input", "y: symbol) key(x)\n.input"))
    done(run())
    put("new.csv", "a,z\n")
    result = apply("--insert", "edge=new.csv", "--dry-run", "--format", "json")
    assert result.exit_code == CONSTRAINT
    assert [each["code"] for each in of_json(result)["plan"]["constraints"]] == ["C0937"]
    edges("a,b", "a,c", "b,c")
    refused_status = run("--dry-run").exit_code
    assert refused_status == run().exit_code != OK
    program("nonsense")
    assert run("--dry-run").exit_code == INPUT
    assert cli("run", "network.dl", "--dry-run").exit_code == USAGE


def test_malformed_records_are_set_aside() -> None:
    edges("a,b", "b,c", "c", "d,e,f")
    result = done(run())
    (note,) = (line for line in result.stderr.splitlines() if "malformed" in line)
    assert note.startswith("2 malformed records set aside, to be seen with corollary query wh '")
    goal = note.partition("query wh '")[2].removesuffix("'")
    found = {(each[0], each[2], each[3], each[4]) for each in rows(goal)}
    assert found == {("edge", "edge.csv", 3, "C0802"), ("edge", "edge.csv", 4, "C0802")}
    assert "2 malformed records" in done(run()).stderr
    edges("a,b", "b,c", "c,d")
    result = done(run())
    assert "malformed" not in result.stderr
    assert "quarantine  −2" in result.stdout
    assert "cd" in links()


def test_malformed_records_can_be_a_reason_to_stop() -> None:
    edges("a,b", "c")
    refused(run("--bad-rows", "abort"), "C0802", "edge.csv:2", "c")
    edges("a,b")
    assert done(run("--bad-rows", "abort")).stderr == "published: link\n"
    edges("a,b", "c")
    refused(run("--bad-rows", "abort"), "C0802")
    assert "1 malformed record " in done(run()).stderr
    edges("a,b", "c,d")
    assert "quarantine  −1" in done(run("--bad-rows", "abort")).stdout


def test_the_quarantine_stays_when_no_source_is_left() -> None:
    edges("a,b", "c")
    run()
    program(base=NETWORK.replace(".input", "// .input"))
    said = of_json(done(run("--format", "json")))
    assert set(said["changes"]) == {"edge", "link", "quarantine"}
    assert said["changes"]["quarantine"]["added"] == []


def test_a_relation_of_ones_own_named_quarantine() -> None:
    program(".decl quarantine(x: symbol)\nquarantine(x) :- edge(x, _).\n.output quarantine\n")
    refused(run(), "C0959", "--bad-rows abort")
    assert done(run("--bad-rows", "abort")).stderr == "published: link, quarantine\n"
    assert rows("quarantine(x)") == [["a"], ["b"]]


def test_outputs_are_published_not_written_elsewhere() -> None:
    result = run("-D", "out")
    assert result.exit_code == USAGE
    assert "publishes its outputs" in result.stderr
    assert not Path("wh").exists()


@pytest.mark.parametrize(
    "option",
    [
        "--algorithm=dred",
        "--relation=link=dred",
        "--strict",
        "--idempotency-key=k",
        "--max-rows=3",
    ],
)
def test_options_of_a_warehouse_need_one(option: str) -> None:
    result = cli("run", "network.dl", "-F", "facts", option)
    assert result.exit_code == USAGE
    assert f"{option.partition('=')[0]} goes with --warehouse only" in result.stderr


def test_one_shot_runs_stop_at_malformed_records() -> None:
    edges("a,b", "c")
    refused(cli("run", "network.dl", "-F", "facts", "--bad-rows", "abort"), "C0802", "edge.csv:2")
    result = cli("run", "network.dl", "-F", "facts", "--bad-rows", "quarantine")
    assert result.exit_code == USAGE
    assert "goes with --warehouse" in result.stderr


def test_settings_in_the_environment_need_no_warehouse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COROLLARY_RUN_ALGORITHM", "dred")
    monkeypatch.setenv("COROLLARY_RUN_OUTPUTS", "out")
    done(cli("run", "network.dl", "-F", "facts"))
    done(run())
    edges("a,b")
    assert of_json(run("--format", "json"))["stats"]["link"]["algorithm"] == "dred"
    monkeypatch.setenv("COROLLARY_RUN_IDEMPOTENCY_KEY", "k")
    edges("a,b", "b,c")
    done(run())
    assert [each["idempotency_key"] for each in commits()] == [None] * 3


def test_algorithms_are_chosen_by_option() -> None:
    run()
    edges("a,b")
    said = of_json(done(run("--algorithm", "dred", "--relation", "link=epf", "--format", "json")))
    assert said["stats"]["link"]["algorithm"] == "epf"
    refused(run("--relation", "lnik=epf"), "C0916", "did you mean `link`?")
    refused(run("--relation", "edge=epf"), "C0917")
    assert run("--relation", "link").exit_code == USAGE


@pytest.mark.slow
def test_strict_runs_materialise_but_refuse_to_recompute() -> None:
    circle = [f"n{at},n{(at + 1) % 200}" for at in range(200)]
    edges(*circle)
    done(run("--strict"))
    edges(*circle[1:])
    refused(run("--strict"), "`--strict` forbids to recompute it", status=LIMIT)
    assert len(commits()) == 1
    assert of_json(done(run("--format", "json")))["stats"]["link"]["algorithm"] == "recompute"


def test_a_limit_changes_nothing() -> None:
    run()
    edges("a,b", "b,c", "c,d", "d,e")
    refused(run("--limit-tuples", "3"), "limit of 3 tuples", status=LIMIT)
    assert links() == {"ab", "bc", "ac"}


def test_a_wrong_program_makes_no_warehouse() -> None:
    program("link(x) :- edge(x, _).\n")
    refused(run(), "C0202")
    assert not Path("wh").exists()


def test_a_wrong_program_later_changes_nothing() -> None:
    run()
    before = tree("wh")
    program("link(x) :- edge(x, _).\n")
    refused(run(), "C0202")
    said = of_json(cli("run", "network.dl", "--warehouse", "wh", "--format", "json"))
    assert {each["code"] for each in said["diagnostics"]} == {"C0202"}
    assert tree("wh") == before


def test_big_lists_are_cut_and_counts_stay_exact() -> None:
    said = of_json(done(run("--format", "json", "--max-rows", "1")))
    assert said["changes"]["link"] == {
        "added": [["a", "b"]],
        "removed": [],
        "truncated": True,
        "counts": {"added": 3, "removed": 0},
    }


def test_a_first_run_that_fails_leaves_nothing_behind() -> None:
    Path("facts/edge.csv").unlink()
    refused(run(), "edge.csv")
    assert not Path("wh").exists()
    edges("a,b", "b")
    refused(run("--bad-rows", "abort"), "C0802")
    assert not Path("wh").exists()
    edges("a,b")
    done(run())
    assert len(commits()) == 1


def test_a_run_under_a_key_is_made_once() -> None:
    first = of_json(done(run("--idempotency-key", "monday", "--format", "json")))
    edges("a,b", "x,y")
    second = of_json(done(run("--idempotency-key", "monday", "--format", "json")))
    assert second == first
    result = done(run("--idempotency-key", "monday"))
    assert result.stdout.endswith("nothing was done: commit 1 was made under this key before\n")
    assert of_json(done(run("--idempotency-key", "tuesday", "--format", "json")))["commit"] == 2
    done(run("--idempotency-key", "wednesday"))  # nothing has changed, and the key is used
    edges("a,b", "x,z")
    assert "commit 3 was made under this key" in done(run("--idempotency-key", "wednesday")).stdout
    assert [each["idempotency_key"] for each in commits()] == ["wednesday", "tuesday", "monday"]


def test_warnings_do_not_disturb_json() -> None:
    program(".decl odd(x: symbol)\nodd(x) :- edge(x, other).\n")
    edges("a,b", "c")
    result = done(run("--format", "json"))
    assert of_json(result)["commit"] == 1
    assert "C0703" in result.stderr
    assert "1 malformed record" in result.stderr
    assert done(run("-q")).stderr == ""


def test_relations_that_only_apply_fills_or_only_queries_read_are_no_matter() -> None:
    program(".decl note(x: symbol)\n.output note\n.decl last(x: symbol)\nlast(x) :- edge(_, x).\n")
    assert {code for code in ("C0701", "C0702") if code in cli("check", "network.dl").stdout}
    assert "warning" not in done(run()).stderr


def test_a_table_that_cannot_be_published_is_a_warning() -> None:
    put("wh/tables/link/mine.txt", "mine")
    result = done(run())
    assert "commit 1" in result.stdout
    assert "warning[C0940]" in result.stderr
    assert "published: link" not in result.stderr
    assert links() == {"ab", "bc", "ac"}


def test_alerts_are_told_of_what_changes() -> None:
    done(run())
    program('.alert link "new {x} {y}"\n')
    assert "alert:" not in done(run()).output
    program('.alert link "new {x} {y}"\nedge("p", "q").\n')
    assert "alert: new p q" in done(run()).stdout.splitlines()


def test_a_run_that_ends_with_its_files_has_no_events() -> None:
    program('.alert link "new {x}"\n')
    told = done(cli("run", "network.dl", "-F", "facts", "--engine", "local"))
    assert "react to transactions: run with --warehouse" in told.stderr


def test_several_files_make_one_program() -> None:
    put("rules.dl", LOOP)
    done(cli("run", "network.dl", "rules.dl", "-F", "facts", "--warehouse", "wh"))
    assert "aa" in links()


def test_a_warehouse_in_an_impossible_place() -> None:
    put("wh", "a file")
    refused(run(), "C0932")
    refused(cli("run", "network.dl", "--warehouse", "postgresql://x@127.0.0.1/y"), "C0930", "data=")


# ------------------------------------------------------------------------------------------- apply


def test_apply_inserts_and_deletes() -> None:
    run()
    edges("c,d", name="new.csv")
    result = done(apply("--insert", "edge=new.csv"))
    edge, link, commit = result.stdout.splitlines()
    assert edge == "edge  +1"
    assert re.fullmatch(r"link  \+3  \w+  driver  \d+\.\d\d s", link)
    assert commit == "commit 2"
    assert result.stderr == "published: link\n"
    assert DeltaTable("wh/tables/link").to_pyarrow_table().num_rows == 6
    said = of_json(done(apply("--delete", "edge=new.csv", "--format", "json")))
    assert list(said) == ["commit", "changes", "alerts", "stats"]
    assert said["changes"]["edge"] == {"added": [], "removed": [["c", "d"]]}
    assert said["commit"] == 3


def test_applying_nothing_new_makes_no_commit() -> None:
    run()
    edges("a,b", name="new.csv")
    done(apply("--insert", "edge=new.csv"))
    number = len(commits())
    result = done(apply("--insert", "edge=new.csv"))
    assert result.stdout == f"nothing has changed since commit {number}\n"
    said = of_json(apply("--insert", "edge=new.csv", "--format", "json"))
    assert said == {"commit": number, "changes": {}, "alerts": [], "stats": {}}


TYPED = """\
.decl t(s: symbol, n: number, u: unsigned, f: float, d: decimal(6, 2), b: bool, day: date,
        at: timestamp, maybe: symbol?)
.decl n()
.output t, n
"""
ROW = ['it\'s, "odd"', -7, 2**64 - 1, 0.5, "1.50", True, "2026-11-15", "2026-11-15T08:00:00Z", None]


@pytest.fixture
def typed() -> None:
    put("network.dl", TYPED)
    done(run())


def _delta(path: str) -> None:
    write_deltalake(path, pa.table({"x": ["c"], "y": ["d"]}))


WRITTEN: dict[str, Callable[[str], Any]] = {
    "new.csv": lambda name: put(name, "c,d\n"),
    "new.csv.gz": lambda name: put(name, gzip.compress(b'"c","d"\n')),
    "new.tsv": lambda name: put(name, "c\td\n"),
    "new.facts": lambda name: put(name, "c\td\n"),
    "new.jsonl": lambda name: put(name, '{"y": "d", "x": "c"}\n'),
    "new.ndjson": lambda name: put(name, '["c", "d"]\n'),
    "new.parquet": lambda name: pq.write_table(pa.table({"y": ["d"], "x": ["c"]}), name),
    "a table": _delta,
    "many/*.csv": lambda name: put("many/1.csv", "c,d\n"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_files_by_their_names(name: str, project: Path) -> None:
    run()
    WRITTEN[name](name)
    for file in (name, str(project / name)):
        done(apply("--insert", f"edge={file}"))
        assert "cd" in links()
        done(apply("--delete", f"edge={file}"))
        assert "cd" not in links()


def test_headers_are_skipped_when_they_are_announced() -> None:
    run()
    edges("x,y", "c,d", name="new.csv")
    done(apply("--insert", "edge=new.csv", "--headers"))
    assert "xy" not in links()
    assert "cd" in links()
    result = done(apply("--insert", "edge=new.csv"))
    assert "warning[C0974]" in result.stderr
    assert "--headers" in result.stderr
    assert "xy" in links()


def test_a_header_among_numbers_gets_a_hint() -> None:
    put("network.dl", ".decl p(n: number)\n.output p\n")
    run()
    put("p.csv", "n\n1\n")
    refused(apply("--insert", "p=p.csv"), "C0801", "p.csv:1:1", "say `--headers`")
    done(apply("--insert", "p=p.csv", "--headers"))
    assert rows("p(n)") == [[1]]


def test_deletes_come_before_inserts_and_changes_come_last() -> None:
    run()
    edges("c,d", "d,e", name="one.csv")
    edges("d,e", "e,f", name="two.csv")
    done(apply("--insert", "edge=one.csv"))
    put("c.jsonl", json.dumps(delete("e", "f")))
    done(apply("--insert", "edge=two.csv", "--delete", "edge=one.csv", "--changes", "c.jsonl"))
    assert set(map(tuple, rows("edge(x, y)"))) == {("a", "b"), ("b", "c"), ("d", "e")}


def test_changes_line_by_line() -> None:
    run()
    result = feed(
        insert("c", "d"),
        {"op": "add-rule", "rule": "link(x, x) :- edge(x, _)."},
        {"op": "add-rule", "rule": 'edge("t", "u").'},
        {"op": "remove-rule", "rule": "link(p, q) :- edge(p, q)."},
        insert("d", "e"),
        delete("c", "d"),
    )
    done(result)
    assert set(map(tuple, rows("edge(x, y)"))) == {("a", "b"), ("b", "c"), ("t", "u"), ("d", "e")}
    assert links() == {"aa", "bb", "dd", "tt", "ab", "bc", "ac", "tu", "de"}
    (first, *_) = commits()
    assert first["new_program"]


def test_of_several_changes_of_a_tuple_the_last_one_wins() -> None:
    put("network.dl", ".decl p(f: float)\n.output p\n")
    run()
    changes = [insert(1, relation="p"), insert("nan", relation="p"), insert(2.5, relation="p")]
    feed(*changes, delete(1.0, relation="p"), delete("nan", relation="p"))
    assert rows("p(f)") == [[2.5]]
    feed(delete(2.5, relation="p"), insert("nan", relation="p"), insert(2.5, relation="p"))
    assert rows("p(f)") == [[2.5], ["nan"]]


def test_changes_of_every_type(typed: None) -> None:
    said = of_json(
        done(feed(insert(*ROW, relation="t"), insert(relation="n"), options=("--format", "json")))
    )
    assert said["changes"]["t"]["added"] == [ROW]
    assert said["changes"]["n"]["added"] == [[]]
    assert of_json(cli("query", "wh", "n()", "--format", "json"))["rows"] == [[]]
    done(feed(delete(*ROW, relation="t"), delete(relation="n")))
    assert rows("t(s,n,u,f,d,b,day,at,maybe)") == []
    assert cli("query", "wh", "n()").stdout == "no\n"


def test_changes_from_a_compressed_file_with_empty_lines() -> None:
    run()
    lines = f"\n  \n{json.dumps(insert('c', 'd'))}\r\n\n"
    put("c.jsonl.gz", gzip.compress(lines.encode()))
    done(apply("--changes", "c.jsonl.gz"))
    assert "cd" in links()


BAD_LINES = {
    "no JSON": ("{op: insert}", "C0970", "not JSON"),
    "cut off": ('{"op": "insert", "relation": "edge", "row": ["a"', "C0970", "not JSON"),
    "twice": ('{"op": "insert", "op": "delete"}', "C0970", "names a key twice"),
    "no number": ('{"op": "insert", "relation": "edge", "row": [NaN]}', "C0970", "NaN"),
    "no object": ("[1]", "C0970", "not a JSON object"),
    "a text": ('"insert"', "C0970", "not a JSON object"),
    "no op": ('{"relation": "edge", "row": ["a", "b"]}', "C0970", "the line has no `op`"),
    "other op": ('{"op": "inser", "relation": "edge"}', "C0970", "did you mean `insert`?"),
    "strange op": ('{"op": 7}', "C0970", '`op` is one of "insert", "delete"'),
    "no relation": ('{"op": "insert", "row": ["a", "b"]}', "C0970", "needs `relation`"),
    "no row": ('{"op": "delete", "relation": "edge"}', "C0970", "a `delete` needs `row`"),
    "no array": ('{"op": "insert", "relation": "edge", "row": {"x": "a"}}', "C0970", "an array"),
    "no name": ('{"op": "insert", "relation": 7, "row": []}', "C0970", "the name of a relation"),
    "more": (
        '{"op": "insert", "relation": "edge", "row": ["a", "b"], "at": 1}',
        "C0970",
        "an `insert` has no `at`",
    ),
    "no rule": ('{"op": "add-rule"}', "C0970", "an `add-rule` needs `rule`"),
    "short": ('{"op": "insert", "relation": "edge", "row": ["a"]}', "C0971", "has 1 value"),
    "long": ('{"op": "insert", "relation": "edge", "row": ["a", "b", "c"]}', "C0971", "x, y"),
    "wrong type": ('{"op": "delete", "relation": "edge", "row": ["a", 1]}', "C0971", "column `y`"),
    "null": ('{"op": "insert", "relation": "edge", "row": ["a", null]}', "C0971", "nullable"),
    "unknown": ('{"op": "insert", "relation": "egde", "row": []}', "C0916", "did you mean `edge`?"),
    "derived": ('{"op": "insert", "relation": "link", "row": ["a", "b"]}', "C0915", "`link`"),
    "no such rule": ('{"op": "remove-rule", "rule": "link(x, x)."}', "C0911", "no rule `link"),
    "bad rule": ('{"op": "add-rule", "rule": "link(x, y) < edge(x, y)"}', "C0101", ":-"),
    "wrong rule": ('{"op": "add-rule", "rule": "link(x, y) :- egde(x, y)."}', "C0201", "`edge`"),
    "not UTF-8": ('{"op": "insert", "relation": "\udcff"}', "C0803", "UTF-8"),
}


@pytest.mark.parametrize("kind", BAD_LINES)
def test_a_bad_line_is_named_with_its_cure_and_nothing_changes(kind: str) -> None:
    run()
    line, code, words = BAD_LINES[kind]
    text = f"{json.dumps(insert('c', 'd'))}\n\n{line}\n"
    put("c.jsonl", text.encode("utf-8", "surrogateescape"))
    result = apply("--changes", "c.jsonl")
    refused(result, code, "c.jsonl:3", words)
    assert "cd" not in links()
    assert len(commits()) == 1
    said = of_json(apply("--changes", "c.jsonl", "--format", "json"))
    assert {each["code"] for each in said["diagnostics"]} == {code}


def test_all_bad_lines_are_reported_at_once_up_to_a_bound() -> None:
    run()
    lines = [insert("a"), insert("a", 1), insert("x", relation="no"), insert(relation="no")]
    result = feed(*lines, {"op": "?"})
    assert re.findall(r"--> <stdin>:(\d)", result.stderr) == ["1", "2", "3", "5"]
    result = feed(*[insert("a")] * 100)
    assert result.stderr.count("error[C0971]") == 21
    assert "only the first 20 findings" in result.stderr


def test_tuples_that_others_assert_stay_and_that_is_said() -> None:
    program('edge("t", "u"). edge("t", "v").\n')
    run()
    text = '{"op":"delete","relation":"edge","row":["t","%s"]}\n'
    result = done(apply("--changes", "-", stdin=text % "u" + text % "v"))
    assert result.stdout == "nothing has changed since commit 1\n"
    who = "the program text or the source `edge.csv`"
    assert result.stderr in {
        f"2 tuples of `edge` stay: {who} asserts them too\n",
        "2 tuples of `edge` stay: the source `edge.csv` or the program text asserts them too\n",
    }
    program('edge("t", "u").\n', base=NETWORK.replace(".input", "// .input"))
    run()
    feed(insert("t", "u"), insert("t", "w"))
    result = feed(delete("t", "u"), delete("t", "w"))
    assert "edge  −1" in result.stdout
    assert "1 tuple of `edge` stays: " in result.stderr


def test_a_dry_run_tells_the_same_and_changes_nothing() -> None:
    run()
    edges("c,d", name="new.csv")
    put("c.jsonl", f'{json.dumps(delete("a", "b"))}\n{{"op":"add-rule","rule":"{LOOP.strip()}"}}')
    asked = ("--insert", "edge=new.csv", "--changes", "c.jsonl", "--idempotency-key", "k")
    before = tree("wh")
    text = done(apply(*asked, "--dry-run"))
    assert text.stdout.endswith("dry run: nothing was changed\n")
    assert "1 tuple of `edge` stays" in text.stderr
    dry = of_json(done(apply(*asked, "--dry-run", "--format", "json")))
    assert tree("wh") == before
    wet = of_json(done(apply(*asked, "--format", "json")))
    assert (dry.pop("commit"), wet.pop("commit")) == (None, 2)
    assert dry.pop("plan")["new_program"]
    for each in (*dry["stats"].values(), *wet["stats"].values()):
        each.pop("seconds")
    assert dry == wet
    again = done(apply(*asked, "--dry-run"))
    assert again.stdout.endswith("nothing was done: commit 2 was made under this key before\n")
    edges("a,b", name="new.csv")
    feed(insert("a", "b"))
    idle = done(apply("--insert", "edge=new.csv", "--dry-run"))
    assert idle.stdout == "dry run: nothing would change\n"


def test_a_large_dry_run_writes_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corollary.warehouse.warehouse.INLINE_BYTES", 1)
    run()
    before = tree("wh")
    edges(*(f"n{at},n{at + 1}" for at in range(50)), name="new.csv")
    done(apply("--insert", "edge=new.csv", "--dry-run"))
    assert tree("wh") == before


KEYED = ".decl owner(item: symbol, name: symbol) key(item)\n.output owner\n"


def test_a_violated_key_has_its_own_exit_code() -> None:
    program(KEYED)
    run()
    done(feed(insert("house", "ann", relation="owner")))
    before = tree("wh")
    refused(
        feed(insert("house", "bob", relation="owner")),
        "C0937",
        "house",
        "nothing was changed",
        status=CONSTRAINT,
    )
    result = feed(insert("house", "bob", relation="owner"), options=("--format", "json"))
    assert result.exit_code == CONSTRAINT
    assert [each["code"] for each in of_json(result)["diagnostics"]] == ["C0937"]
    assert tree("wh") == before
    done(feed(delete("house", "ann", relation="owner"), insert("house", "bob", relation="owner")))
    assert rows("owner(x, y)") == [["house", "bob"]]
    program(KEYED, 'owner("house", "eve").\n')
    refused(run(), "C0937", status=CONSTRAINT)


def test_a_conflict_has_its_own_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    run()

    def lose(*_: object) -> None:
        raise ConflictError.commit_taken(2)

    monkeypatch.setattr(Catalog, "commit", lose)
    refused(feed(insert("c", "d")), "commit 2 first; nothing was changed", status=CONFLICT)
    said = of_json(feed(insert("c", "d"), options=("--format", "json")))
    assert said["diagnostics"] == []


def test_a_limit_on_apply() -> None:
    run()
    refused(feed(insert("c", "d"), options=("--limit-tuples", "2")), "tuples", status=LIMIT)
    assert len(commits()) == 1


def test_apply_under_a_key_is_done_once() -> None:
    run()
    changes = (insert("c", "d"), {"op": "remove-rule", "rule": "link(x, y) :- edge(x, y)."})
    asked = ("--idempotency-key", "k", "--format", "json")
    first = of_json(done(feed(*changes, options=asked)))
    second = of_json(done(feed(*changes, options=asked)))
    assert second == first
    assert first["commit"] == 2
    done(feed(delete("c", "d")))
    third = of_json(done(feed(*changes, options=asked)))
    assert third == first
    assert ["c", "d"] not in rows("edge(x, y)")
    text = done(feed(*changes, options=("--idempotency-key", "k")))
    assert text.stdout.endswith("nothing was done: commit 2 was made under this key before\n")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--insert", "egde=new.csv"], "C0916", "did you mean `edge`?"),
        (["--insert", "link=new.csv"], "C0915", "derived by rules"),
        (["--delete", "edge=missing.csv"], "C0804", "`missing.csv` cannot be read"),
        (["--insert", "edge=new.txt"], "C0972", ".csv, .tsv, .facts, .jsonl"),
        (["--insert", "edge=new"], "C0972", "does not tell its format"),
        (["--insert", "edge=new.parquet.gz"], "C0972", "does not tell its format"),
        (["--insert", "edge=three.csv"], "C0802", "three.csv:1"),
        (["--insert", "edge=no.parquet"], "C0804", "Parquet"),
        (["--insert", "edge=other.parquet"], "C0950", "no column `y`"),
        (["--insert", "edge=bad.jsonl"], "C0801", "bad.jsonl:1"),
        (["--changes", "missing.jsonl"], "C0804", "`missing.jsonl` cannot be read"),
        (["--changes", "facts"], "C0804", "facts"),
        (["--insert", "edge=/dev/null"], "C0972", "format"),
    ],
)
def test_what_cannot_be_applied(arguments: list[str], code: str, words: str) -> None:
    run()
    for name in ("new.csv", "new.txt", "new", "no.parquet", "new.parquet.gz"):
        put(name, "c,d\n")
    put("three.csv", "c,d,e\n")
    put("bad.jsonl", "[1, 2]\n")
    pq.write_table(pa.table({"x": ["c"]}), "other.parquet")
    before = tree("wh")
    refused(apply(*arguments), code, words)
    assert tree("wh") == before


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--dry-run"],
        ["--insert", "edge"],
        ["--insert", "=new.csv"],
        ["--delete", "edge="],
        ["--changes", "-", "--algorithm", "best"],
        ["--changes", "-", "--max-rows", "-1"],
        ["--changes", "-", "--limit-memory", "much"],
    ],
    ids=" ".join,
)
def test_wrong_usage_of_apply(arguments: list[str]) -> None:
    run()
    result = apply(*arguments)
    assert result.exit_code == USAGE
    assert "Usage:" in result.stderr


def test_the_pipeline_goes_on_after_manual_writes() -> None:
    run()
    feed(insert("c", "d"), insert("a", "b"))
    edges("b,c")
    said = of_json(done(run("--format", "json")))
    assert said["changes"] == {}
    assert links() == {"ab", "bc", "cd", "ac", "bd", "ad"}
    feed(delete("a", "b"))
    assert links() == {"bc", "cd", "bd"}


# ---------------------------------------------------------------------------------- query, history


@pytest.mark.slow
def test_every_commit_can_be_asked_as_it_was_seen() -> None:
    chance = random.Random(5)
    seen: dict[int, set[str]] = {}
    for step in range(8):
        held = {f"{x},{y}" for x in "abc" for y in "abcd" if chance.random() < 0.4}
        edges(*sorted(held))
        program(*[LOOP] * (step % 3 == 1))
        run()
        if not step:  # later on there are manual writes, too
            done(cli("run", "network.dl", "-F", "facts", "-D", "out"))
            done(cli("export", "wh", "link", "--to", "out/link.tsv"))
            assert Path("out/link.csv").read_bytes() == Path("out/link.tsv").read_bytes()
        if step % 2:
            feed(insert(chance.choice("ab"), "z"), delete(chance.choice("ab"), "z"))
        seen[len(commits())] = links()
    assert len(seen) > 4
    for number, found in seen.items():
        assert links("--at", str(number)) == found
        text = cli("query", "wh", SEEN, "--at", str(number)).stdout
        assert text.split()[1:] == sorted(each[1] for each in found if each[0] == "a")


def test_query_in_text_and_json() -> None:
    run()
    assert cli("query", "wh", SEEN).stdout == "y\nb\nc\n"
    assert cli("query", "wh", 'link("a", "c")').stdout == "yes\n"
    assert cli("query", "wh", 'link("c", _)').stdout == "no\n"
    said = of_json(cli("query", "wh", SEEN, "--format", "json"))
    assert said == {"columns": ["y"], "rows": [["b"], ["c"]]}
    assert cli("query", "network.dl", "-F", "facts", SEEN).stdout == "y\nb\nc\n"


def test_virtual_relations_are_computed() -> None:
    program(".decl back(x: symbol, y: symbol) virtual\nback(x, y) :- link(y, x).\n")
    run()
    feed(insert("c", "d"))
    assert rows('back("d", y)') == [["a"], ["b"], ["c"]]
    assert rows('back("c", y)', "--at", "1") == [["a"], ["b"]]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["wh", SEEN, "--at", "9"], INPUT, "Commit 9 does not exist"),
        (["wh", "lnik(x, y)"], INPUT, "did you mean `link`?"),
        (["wh", "link(x)"], INPUT, "C0202"),
        (["facts", SEEN], INPUT, "There is no warehouse in `facts`"),
        (["postgresql://x@127.0.0.1/y", SEEN], INPUT, "C0930"),
        (["wh", SEEN, "--at", "0"], USAGE, "--at"),
        (["wh", SEEN, "-F", "facts"], USAGE, "it has its facts"),
        (["wh", "network.dl", SEEN], USAGE, "is a warehouse"),
        (["network.dl", SEEN, "-F", "facts", "--at", "1"], USAGE, "only a warehouse has commits"),
        (["nowhere", SEEN], INPUT, "no warehouse in `nowhere`"),
    ],
)
def test_questions_that_cannot_be_asked(arguments: list[str], status: int, words: str) -> None:
    run()
    result = cli("query", *arguments)
    assert result.exit_code == status
    assert words in result.stderr


def test_a_catalog_that_does_not_answer_is_named_without_its_password() -> None:
    place = f"postgresql://me:secret@127.0.0.1:9/none?data={Path.cwd()}/data"
    for command in (["query", place, SEEN], ["log", place], ["run", "network.dl", "--warehouse"]):
        result = cli(*command, *([place] if command[0] == "run" else []))
        assert result.exit_code == INPUT
        assert "C0935" in result.stderr
        assert "secret" not in result.output


@pytest.mark.parametrize(
    "command",
    [
        ["apply", "W", "--changes", "-"],
        ["query", "W", SEEN],
        ["log", "W"],
        ["changes", "W"],
        ["export", "W", "link", "--to", "x.csv"],
    ],
    ids=lambda command: command[0],
)
def test_a_warehouse_that_is_not_there(command: list[str]) -> None:
    put("empty/file.txt", "")
    result = cli(*("empty" if each == "W" else each for each in command))
    refused(result, "C0930", "There is no warehouse in `empty`", "corollary run PROGRAM")
    assert tree("empty") == {"empty/file.txt": b""}


def test_the_log_tells_the_story() -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    run()
    feed(insert("c", "d"), options=("--idempotency-key", "monday"))
    program(LOOP)
    run()
    result = done(cli("log", "wh"))
    header, third, second, first = result.stdout.splitlines()
    assert header.split() == ["commit", "when", "changes"]
    assert re.fullmatch(r"3 +[-0-9T:]+Z +link \+3 +new program", third)
    assert re.fullmatch(r"2 +[-0-9T:]+Z +edge \+1, link \+3 +key monday", second)
    assert re.fullmatch(r"1 +[-0-9T:]+Z +edge \+2, link \+3 +new program", first)
    newest, middle, oldest = commits()
    assert [each["commit"] for each in (newest, middle, oldest)] == [3, 2, 1]
    assert middle["changes"] == {
        "edge": {"added": 1, "removed": 0},
        "link": {"added": 3, "removed": 0},
    }
    assert [each["new_program"] for each in (newest, middle, oldest)] == [True, False, True]
    assert [each["idempotency_key"] for each in (newest, middle, oldest)] == [None, "monday", None]
    for each in (newest, middle, oldest):
        assert before < datetime.fromisoformat(each["timestamp"]) <= datetime.now(UTC)
    limited = of_json(cli("log", "wh", "--limit", "2", "--format", "json"))["commits"]
    assert limited == [newest, middle]
    assert cli("log", "wh", "--limit", "0").exit_code == USAGE


def test_a_first_manual_write_is_no_new_program() -> None:
    run()
    feed(insert("c", "d"))
    assert [each["new_program"] for each in commits()] == [False, True]


@pytest.mark.parametrize("words", [("query", SEEN), ("sql", "SELECT 1"), ("log",), ("status",)])
def test_a_misspelled_warehouse(words: tuple[str, ...]) -> None:
    run()
    command, *rest = words
    refused(cli(command, "vwh", *rest), "C0930", "did you mean `wh`?")
    assert not Path("vwh").exists()


def test_a_warehouse_without_commits() -> None:
    Warehouse.open("wh").catalog.insert_intent()
    assert cli("log", "wh").stdout == "no commit yet\n"
    assert commits() == []
    result = done(cli("changes", "wh"))
    assert (result.stdout, result.stderr) == ("", "nothing has changed\n")
    refused(cli("query", "wh", SEEN), "C0201")
    refused(feed(insert("a", "b")), "C0916")
    refused(cli("query", "wh", SEEN, "--at", "1"), "C0936")


def test_commits_that_are_no_longer_kept() -> None:
    run()
    for each in "cde":
        feed(insert("b", each))
    with sqlite3.connect("wh/catalog.sqlite") as catalog:
        catalog.execute("update corollary_meta set value = '3' where name = 'oldest'")
    catalog.close()
    assert [each["commit"] for each in commits()] == [4, 3]
    for command in (
        ["query", "wh", SEEN, "--at", "2"],
        ["export", "wh", "link", "--to", "x.csv", "--at", "1"],
        ["changes", "wh", "--commit", "2"],
        ["changes", "wh", "--since", "1"],
    ):
        refused(cli(*command), "C0936", "is no longer kept", "there are commits 3 to 4")
    assert feeds("--since", "2") == feeds()
    assert {row[-2] for row in feeds()["edge"]} == {3, 4}
    assert "bd" in links("--at", "3")


def feeds(*options: str) -> dict[str, list[list[Any]]]:
    said = of_json(done(cli("changes", "wh", *options, "--format", "json")))["changes"]
    assert all(each["columns"][-3:] == TOLD for each in said)
    return {each["relation"]: each["rows"] for each in said}


TOLD = ["_change_type", "_commit_version", "_commit_timestamp"]


def test_the_audit_feed() -> None:
    run()
    edges("b,c", "c,d")
    run()
    moments = {each["commit"]: each["timestamp"] for each in commits()}
    result = done(cli("changes", "wh", "edge"))
    assert result.stdout.splitlines() == [
        "x\ty\t_change_type\t_commit_version\t_commit_timestamp",
        f"a\tb\tinsert\t1\t{moments[1]}",
        f"b\tc\tinsert\t1\t{moments[1]}",
        f"a\tb\tdelete\t2\t{moments[2]}",
        f"c\td\tinsert\t2\t{moments[2]}",
    ]
    every = feeds()
    assert list(every) == ["edge", "link"]
    assert feeds("--commit", "2") == feeds("--since", "1")
    assert feeds("--commit", "2")["edge"] == every["edge"][2:]
    assert feeds("edge", "--since", "0") == {"edge": every["edge"]}
    assert feeds("--since", "2") == {}
    text = done(cli("changes", "wh", "--commit", "2")).stdout
    assert text.startswith("edge\nx\ty\t_change_type")
    assert "\n\nlink\nx\ty\t_change_type" in text
    idle = done(cli("changes", "wh", "link", "--since", "2"))
    assert (idle.stdout, idle.stderr) == ("", "nothing has changed\n")


@pytest.mark.slow
def test_the_feed_adds_up_to_what_is_there() -> None:
    chance = random.Random(11)
    seen: dict[int, set[str]] = {}
    run()
    for _ in range(12):
        feed(*(chance.choice([insert, delete])(*chance.sample("abcde", 2)) for _ in range(4)))
        seen[len(commits())] = links()
    state: set[str] = set()
    told = feeds("link")["link"]
    for number, found in seen.items():
        for x, y, kind, version, _ in told:
            if version == number or (version == 1 and number == min(seen)):
                assert ((x + y) in state) == (kind == "delete")
                (state.remove if kind == "delete" else state.add)(x + y)
        assert state == found


def test_the_feed_has_every_type(typed: None) -> None:
    feed(insert(*ROW, relation="t"), insert(relation="n"))
    told = feeds()
    assert [row[:-3] for row in told["t"]] == [ROW]
    assert [row[:2] for row in told["n"]] == [["insert", 2]]
    assert "2026-11-15T08:00:00Z\t\tinsert\t2\t" in cli("changes", "wh", "t").stdout


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--commit", "9"], INPUT, "Commit 9 does not exist"),
        (["--since", "9"], INPUT, "Commit 9 does not exist"),
        (["lnik"], INPUT, "did you mean `link`?"),
        (["back"], INPUT, "C0975"),
        (["--commit", "1", "--since", "1"], USAGE, "--since for all after one"),
        (["--commit", "0"], USAGE, "--commit"),
        (["--commit", "one"], USAGE, "--commit"),
    ],
)
def test_feeds_that_there_are_not(arguments: list[str], status: int, words: str) -> None:
    program(".decl back(x: symbol, y: symbol) virtual\nback(x, y) :- link(y, x).\n")
    run()
    result = cli("changes", "wh", *arguments)
    assert result.exit_code == status
    assert words in result.stderr


# ------------------------------------------------------------------------------------------ export


@pytest.mark.parametrize(
    "name",
    ["t.csv", "t.tsv", "t.facts", "t.jsonl", "t.ndjson", "t.parquet", "t.csv.gz", "t.jsonl.gz"],
)
def test_what_is_exported_can_be_applied(name: str, typed: None) -> None:
    full = [*ROW[:-1], "x"] if name.endswith((".tsv", ".facts")) else ROW
    other = ["z", 0, 0, "nan", "-0.01", False, "0001-01-01", "1969-12-31T23:59:59.999999Z", "y"]
    feed(insert(*full, relation="t"), insert(*other, relation="t"))
    said = of_json(done(cli("export", "wh", "t", "--to", name, "--format", "json")))
    assert said == {"relation": "t", "file": name, "tuples": 2}
    done(apply("--delete", f"t={name}"))
    goal = "t(s,n,u,f,d,b,day,at,maybe)"
    assert rows(goal) == []
    done(apply("--insert", f"t={name}"))
    assert rows(goal) == [full, other]


@pytest.mark.parametrize("name", ["n.csv", "n.jsonl", "n.parquet"])
def test_a_relation_without_columns_is_exported(name: str, typed: None) -> None:
    feed(insert(relation="n"))
    assert done(cli("export", "wh", "n", "--to", name)).stderr == f"n: 1 tuple in {name}\n"
    done(apply("--delete", f"n={name}"))
    assert cli("query", "wh", "n()").stdout == "no\n"
    done(apply("--insert", f"n={name}"))
    assert cli("query", "wh", "n()").stdout == "yes\n"


def test_export_with_headers_of_an_earlier_commit() -> None:
    run()
    edges("a,b")
    run()
    result = done(cli("export", "wh", "link", "--to", "new/link.csv", "--headers", "--at", "1"))
    assert result.stderr == "link: 3 tuples in new/link.csv\n"
    assert Path("new/link.csv").read_text() == 'x,y\n"a","b"\n"a","c"\n"b","c"\n'
    done(cli("export", "wh", "link", "--to", "link.tsv", "-q"))
    assert Path("link.tsv").read_text() == "a\tb\n"


def test_an_export_never_overwrites_unless_forced() -> None:
    run()
    put("link.csv", "mine\n")
    refused(cli("export", "wh", "link", "--to", "link.csv"), "C0973", "--force")
    assert Path("link.csv").read_text() == "mine\n"
    done(cli("export", "wh", "link", "--to", "link.csv", "--force"))
    assert Path("link.csv").read_text().startswith('"a","b"\n')


def test_a_virtual_relation_is_exported() -> None:
    program(".decl back(x: symbol, y: symbol) virtual\nback(x, y) :- link(y, x).\n")
    run()
    done(cli("export", "wh", "back", "--to", "back.tsv"))
    assert Path("back.tsv").read_text() == "b\ta\nc\ta\nc\tb\n"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["link", "--to", "link.xls"], INPUT, "C0972"),
        (["link", "--to", "facts"], INPUT, "C0973"),
        (["link", "--to", "network.dl/link.csv"], INPUT, "C0804"),
        (["lnik", "--to", "link.csv"], INPUT, "did you mean `link`?"),
        (["link", "--to", "link.csv", "--at", "9"], INPUT, "C0936"),
        (["link"], USAGE, "--to"),
    ],
)
def test_exports_that_cannot_be(arguments: list[str], status: int, words: str) -> None:
    run()
    before = tree(".")
    result = cli("export", "wh", *arguments)
    assert result.exit_code == status
    assert words in result.stderr
    assert tree(".") == before


def test_a_text_that_a_file_cannot_hold_leaves_no_file() -> None:
    run()
    feed(insert("tab\there", "b"))
    refused(cli("export", "wh", "edge", "--to", "edge.tsv"), "C0807")
    assert not Path("edge.tsv").exists()
    done(cli("export", "wh", "edge", "--to", "edge.csv"))


# -------------------------------------------------------------------------------------- interrupts


def interrupt(*_: object, **__: object) -> Iterator[None]:
    raise KeyboardInterrupt


def test_an_interrupt_before_the_commit_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    before = tree("wh")
    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, "commit", interrupt)
        refused(feed(insert("c", "d")), "interrupted; nothing was changed\n", status=INTERRUPTED)
        edges("a,b")
        refused(run(), "interrupted; nothing was changed\n", status=INTERRUPTED)
    assert tree("wh") == before
    assert done(run()).stdout.endswith("commit 2\n")


def test_an_interrupt_behind_the_commit_says_that_it_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run()
    with monkeypatch.context() as patch:
        patch.setattr(WarehouseStore, "publish", interrupt)
        result = feed(insert("c", "d"))
    assert result.exit_code == INTERRUPTED
    assert result.stderr.startswith("interrupted; commit 2 was made and stays")
    assert "cd" in links()
    assert DeltaTable("wh/tables/link").to_pyarrow_table().num_rows == 3
    result = done(run())
    assert result.stdout == "nothing has changed since commit 2\n"
    assert result.stderr == "published: link\n"
    assert DeltaTable("wh/tables/link").to_pyarrow_table().num_rows == 6


def test_an_interrupt_in_doubt_names_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    commit = Catalog.commit

    def made(*arguments: Any) -> None:
        commit(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(Catalog, "commit", made)
    result = feed(insert("c", "d"))
    assert result.exit_code == INTERRUPTED
    assert "`corollary log wh` tells what was committed meanwhile" in result.stderr


@pytest.mark.integration
def test_a_real_process_is_interrupted_while_it_reads() -> None:
    run()
    command = [*COMMAND, "apply", "wh", "--changes", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        # More than a pipe holds: when this returns, the command is reading, and waits for the end.
        process.stdin.write(f"{json.dumps(insert('c', 'd'))}\n" * 20_000)
        process.stdin.flush()
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    assert said == "interrupted; nothing was changed\n"
    assert len(commits()) == 1


# -------------------------------------------------------------------------------- either catalog


def test_all_commands_on_either_catalog(place: str) -> None:
    def on(command: str, *arguments: str) -> Result:
        return done(cli(command, place, *arguments))

    asked = ("run", "network.dl", "-F", "facts", "--warehouse", place)
    assert done(cli(*asked)).stdout.endswith("commit 1\n")
    assert done(cli(*asked)).stdout == "nothing has changed since commit 1\n"
    put("c.jsonl", json.dumps(insert("c", "d")))
    assert on("apply", "--changes", "c.jsonl").stdout.endswith("commit 2\n")
    assert on("query", SEEN).stdout == "y\nb\nc\nd\n"
    assert on("query", SEEN, "--at", "1").stdout == "y\nb\nc\n"
    assert [line.split()[0] for line in on("log").stdout.splitlines()] == ["commit", "2", "1"]
    assert (
        on("changes", "edge", "--commit", "2").stdout.splitlines()[1].startswith("c\td\tinsert\t2")
    )
    on("export", "link", "--to", "link.jsonl")
    assert len(Path("link.jsonl").read_text().splitlines()) == 6
