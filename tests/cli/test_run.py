"""The command line: exit codes, text and JSON, and that nothing is written when something fails."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

from corollary.cli.main import COMMANDS
from support.command_line import (
    COMMAND,
    CONSTRAINT,
    INPUT,
    INTERRUPTED,
    LIMIT,
    OK,
    USAGE,
    cli,
    of_json,
    put,
    real,
    tree,
)

NETWORK = """\
.decl edge(x: symbol, y: symbol)
.input edge
.decl link(x: symbol, y: symbol)
link(x, y) :- edge(x, y).
link(x, z) :- link(x, y), edge(y, z).
.decl first(x: symbol)
first(x) :- edge(x, _), !link(_, x).
.output link
.printsize first
"""
EDGES = "a\tb\nb\tc\n"
LINKS = "a\tb\na\tc\nb\tc\n"
ENDLESS = ".decl n(x: number)\nn(0).\nn(x + 1) :- n(x).\n.output n\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a program and its facts, which is the current one."""
    monkeypatch.chdir(tmp_path)
    put("network.dl", NETWORK)
    put("facts/edge.facts", EDGES)
    return tmp_path


def evaluate(*options: str, program: str = "network.dl") -> Result:
    return cli("run", program, "-F", "facts", "-D", "out", *options)


# --------------------------------------------------------------------------------------------- run


def test_run_writes_outputs_and_prints_sizes() -> None:
    result = evaluate()
    assert result.exit_code == OK
    assert result.stdout == "first\t1\n"
    assert "link: 3 tuples in" in result.stderr
    assert tree("out") == {"out/link.csv": LINKS.encode()}


def test_quiet_run_prints_results_only() -> None:
    result = evaluate("-q")
    assert (result.stdout, result.stderr) == ("first\t1\n", "")


def test_run_in_json() -> None:
    said = of_json(evaluate("--format", "json"))
    assert set(said) == {"outputs", "sizes", "rows", "warnings", "seconds"}
    (written,) = said["outputs"]
    assert (written["relation"], written["tuples"]) == ("link", 3)
    assert Path(written["file"]).read_text() == LINKS
    assert said["sizes"] == {"first": 1}
    assert 0 <= said["seconds"] < 60


def test_run_replaces_earlier_outputs_and_leaves_other_files() -> None:
    put("out/link.csv", "old\n")
    put("out/other.txt", "mine\n")
    assert evaluate().exit_code == OK
    assert tree("out") == {"out/link.csv": LINKS.encode(), "out/other.txt": b"mine\n"}


def test_run_defaults_to_the_current_directory() -> None:
    put("edge.facts", EDGES)
    assert cli("run", "network.dl").exit_code == OK
    assert Path("link.csv").read_text() == LINKS


def test_outputs_go_into_directories_that_are_made() -> None:
    put("p.dl", '.decl p(x: number)\np(1).\n.output p(filename="deep/er/p.txt")\n')
    assert cli("run", "p.dl", "-D", "new").exit_code == OK
    assert Path("new/deep/er/p.txt").read_text() == "1\n"


def test_several_files_make_one_program() -> None:
    put("types.dl", ".type Id <: number\n.decl p(x: Id)\n")
    put("rules.dl", ".decl q(x: Id)\nq(x) :- p(x), x > 1.\n.output q\n")
    put("data.dl", "p(1). p(2).\n")
    assert cli("run", "rules.dl", "data.dl", "types.dl", "-D", "out").exit_code == OK
    assert Path("out/q.csv").read_text() == "2\n"


def test_findings_of_all_files_are_reported_at_once() -> None:
    put("one.dl", ".decl p(x number)\n")
    put("two.dl", "q(1) : r(1).\n")
    result = cli("run", "one.dl", "missing.dl", "two.dl")
    assert result.exit_code == INPUT
    assert all(place in result.stderr for place in ("one.dl:1:", "`missing.dl`", "two.dl:1:"))


def test_a_relation_declared_in_two_files_is_named_with_both_places() -> None:
    put("one.dl", ".decl p(x: number)\n.output p\n")
    put("two.dl", ".decl p(x: number)\n")
    result = cli("run", "one.dl", "two.dl")
    assert result.exit_code == INPUT
    assert "C02" in result.stderr
    assert "one.dl:1:" in result.stderr
    assert "two.dl:1:" in result.stderr


def test_facts_from_standard_input() -> None:
    put("sum.dl", ".decl n(x: number)\n.input n(IO=stdin)\n.decl s(x: number)\n"
        "s(t) :- t = sum x : { n(x) }.\n.output s(IO=stdout)\n")  # fmt: skip
    result = cli("run", "sum.dl", stdin="1\n2\n40\n")
    assert result.exit_code == OK
    assert result.stdout == "---------------\ns\n===============\n43\n===============\n"


def test_malformed_standard_input_is_named() -> None:
    put("n.dl", ".decl n(x: number)\n.input n(IO=stdin)\n.output n\n")
    result = cli("run", "n.dl", "-D", "out", stdin="1\ntwo\n")
    assert result.exit_code == INPUT
    assert "<stdin>:2:1" in result.stderr
    assert "`two`" in result.stderr
    assert not Path("out/n.csv").exists()


FORMATS = {
    "edge.csv": b'a,b\n"b",c\n',
    "edge.csv.gz": gzip.compress(b"a,b\nb,c\n"),
    "edge.tsv": EDGES.encode(),
    "edge.txt": EDGES.encode(),
    "edge.jsonl": b'{"x": "a", "y": "b"}\n["b", "c"]\n',
    "edge.parquet": None,
    "edges": None,
    "*.csv": None,
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_ending_of_a_name_is_its_format(name: str) -> None:
    put("network.dl", NETWORK.replace(".input edge", f'.input edge(filename="{name}")'))
    table = pa.table({"y": ["b", "c"], "x": ["a", "b"]})
    if name == "edge.parquet":
        pq.write_table(table, "facts/edge.parquet")
    elif FORMATS[name] is None:
        folder = "facts" if name == "*.csv" else "facts/edges"
        put(f"{folder}/1.csv", "a,b\n")
        put(f"{folder}/2.csv", "b,c\n")
    else:
        put(f"facts/{name}", FORMATS[name] or b"")
    assert evaluate().exit_code == OK
    assert tree("out") == {"out/link.csv": LINKS.encode()}
    assert cli("query", "network.dl", "-F", "facts", 'link("b", y)').stdout == "y\nc\n"
    assert cli("explain", "network.dl", "-F", "facts", "--removed", "edge").exit_code == OK


def test_a_delimiter_counts_more_than_the_ending() -> None:
    for said in ('filename="edge.csv", delimiter="\\t"', 'filename="edge.facts"'):
        put("network.dl", NETWORK.replace(".input edge", f".input edge({said})"))
        put("facts/edge.csv", EDGES)
        assert evaluate().exit_code == OK
    put("facts/edge.csv", 'a,"b\nb,c\n')
    put(
        "network.dl",
        NETWORK.replace(".input edge", '.input edge(filename="edge.csv", rfc4180=false)'),
    )
    assert evaluate().exit_code == OK
    assert b'a\t"b\n' in (tree("out")["out/link.csv"] or b"")


def test_tabs_in_a_file_of_commas_are_explained() -> None:
    put("network.dl", NETWORK.replace(".input edge", '.input edge(filename="edge.csv")'))
    put("facts/edge.csv", "a\tb\tc\n")
    result = evaluate()
    assert result.exit_code == INPUT
    assert 'the delimiter is `,`; another is named as in delimiter="\\t"' in result.stderr


def test_a_pattern_without_files_is_a_warning() -> None:
    put("network.dl", NETWORK.replace(".input edge", '.input edge(filename="none*.csv")'))
    result = evaluate()
    assert result.exit_code == OK
    assert "C0958" in result.stderr


def test_engine_can_be_named() -> None:
    assert evaluate("--engine", "local").exit_code == OK
    assert evaluate("--engine", "abacus").exit_code == USAGE


# ------------------------------------------------------------------------- what is wrong with facts

MALFORMED = {
    "wrong type": ("id: number, v: date", b"1\t2026-01-01\n2\tsoon\n", "2:3", "`soon`"),
    "not a number": ("id: number, v: symbol", b"1\ta\n2\tb\nx3\tc\n", "3:1", "`x3`"),
    "out of range": ("id: number, v: unsigned", b"1\t-1\n", "1:3", "`-1`"),
    "too few": ("id: number, v: symbol", b"1\ta\n2\n", "2:2", "1 field"),
    "too many": ("id: number, v: symbol", b"1\ta\tb\n", "1:5", "3 fields"),
    "not UTF-8": ("id: number, v: symbol", b"1\ta\n2\t\xff\n", "2:3", "0xff"),
    "NUL": ("id: number, v: symbol", b"1\ta\0\n", "1:4", "NUL"),
    "empty": ("id: number, v: number", b"1\t\n", "1:3", "an empty field"),
    "not in the calendar": ("id: number, v: date", b"1\t2026-02-30\n", "1:3", "`2026-02-30`"),
    "digits": ("id: number, v: decimal(5,2)", b"1\t1.005\n", "1:3", "`1.005`"),
    "truth": ("id: number, v: bool", b"1\tyes\n", "1:3", "`yes`"),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_malformed_facts_are_named_and_nothing_is_written(kind: str) -> None:
    columns, data, place, fragment = MALFORMED[kind]
    put(
        "p.dl",
        f".decl p({columns})\n.input p\n.decl q(i: number)\nq(i) :- p(i, _).\n.output p, q\n",
    )
    put("facts/p.facts", data)
    put("out/q.csv", "from an earlier run\n")
    before = tree("out")
    result = evaluate(program="p.dl")
    assert result.exit_code == INPUT
    assert f"p.facts:{place}\n" in result.stderr
    assert fragment in result.stderr
    assert result.stdout == ""
    assert tree("out") == before


def test_malformed_facts_in_json() -> None:
    put("facts/edge.facts", "a\tb\nc\nd\te\tf\n")
    result = evaluate("--format", "json")
    assert result.exit_code == INPUT
    said = of_json(result)
    assert set(said) == {"error", "diagnostics"}
    short, long = said["diagnostics"]
    assert set(short) == {"code", "severity", "message", "file", "line", "column", "note"}
    assert short["file"].endswith("facts/edge.facts")
    assert (short["code"], short["severity"]) == ("C0802", "error")
    assert (short["line"], short["column"]) == (2, 2)
    assert (long["line"], long["column"]) == (3, 5)


def test_missing_facts_are_an_error_that_names_the_file() -> None:
    Path("facts/edge.facts").unlink()
    result = evaluate()
    assert result.exit_code == INPUT
    assert "edge.facts" in result.stderr
    assert "network.dl:2:1" in result.stderr
    assert not Path("out").exists()


def test_many_malformed_lines_are_reported_up_to_a_bound() -> None:
    put("facts/edge.facts", "alone\n" * 5000)
    result = evaluate()
    assert result.exit_code == INPUT
    assert len(result.stderr) < 20_000


# ---------------------------------------------------------------------- what is wrong with programs

NOT_SUPPORTED = {
    ".decl p(x: number)\np(recursive_iteration_cnt()).": "recursive_iteration_cnt",
    ".lattice L { }": ".lattice",
    ".decl p(x: number)\n.input p(IO=xml)": "IO=xml",
}


@pytest.mark.parametrize("text", NOT_SUPPORTED)
@pytest.mark.parametrize("command", ["run", "check"])
def test_unsupported_features_are_named(command: str, text: str) -> None:
    put("p.dl", text + "\n")
    result = cli(command, "p.dl")
    assert result.exit_code == INPUT
    assert "C0102" in result.output
    assert re.search("does not support|not supported", result.output)
    assert NOT_SUPPORTED[text] in result.output


def test_unknown_pragmas_are_ignored_with_a_warning() -> None:
    put("p.dl", '.pragma "colour" "blue"\n.decl p(x: number)\np(1).\n.output p\n')
    result = cli("check", "p.dl")
    assert result.exit_code == OK
    assert "warning" in result.output
    assert "pragma" in result.output
    assert cli("run", "p.dl", "-D", "out").exit_code == OK


def test_a_wrong_program_writes_nothing() -> None:
    put("p.dl", ".decl p(x: number)\np(1).\n.decl q(x: symbol)\nq(x) :- p(x).\n.output p, q\n")
    result = cli("run", "p.dl", "-D", "out")
    assert result.exit_code == INPUT
    assert "p.dl:4:" in result.stderr
    assert not Path("out").exists()


def test_a_failing_rule_leaves_earlier_outputs_as_they_are() -> None:
    put("p.dl", ".decl a(x: number)\na(0).\n.decl b(x: number)\nb(1 / x) :- a(x).\n.output a, b\n")
    put("out/a.csv", "earlier\n")
    before = tree("out")
    result = cli("run", "p.dl", "-D", "out", "--format", "json")
    assert result.exit_code == INPUT
    (found,) = of_json(result)["diagnostics"]
    assert found["code"] == "C0810"
    assert "division by zero" in found["message"]
    assert (found["file"], found["line"]) == ("p.dl", 4)
    assert tree("out") == before


def test_two_relations_in_one_file_are_refused() -> None:
    put("p.dl", '.decl a, b(x: number)\na(1). b(2).\n.output a, b(filename="same.csv")\n')
    result = cli("run", "p.dl", "-D", "out")
    assert result.exit_code == INPUT
    assert "same.csv" in result.stderr
    assert not Path("out/same.csv").exists()


def test_texts_that_could_not_be_read_back_are_warned_about() -> None:
    put("p.dl", '.decl a(s: symbol)\na("one\\ttwo"). a("x\\ny").\n.output a\n')
    result = cli("run", "p.dl", "-D", "out")
    assert result.exit_code == OK
    assert result.stderr.count("warning[C0808]") == 1  # once for each output
    assert "rfc4180" in result.stderr
    assert Path("out/a.csv").read_text() == "one\ttwo\nx\ny\n"
    assert "C0808" not in cli("run", "p.dl", "-D", "out", "--allow", "C0808").stderr


def test_texts_that_would_be_another_value_are_refused() -> None:
    put("p.dl", '.decl a(s: symbol?)\na("").\n.decl b(x: number)\nb(1).\n.output b, a\n')
    result = cli("run", "p.dl", "-D", "out")
    assert result.exit_code == INPUT
    assert "C0807" in result.stderr
    assert "rfc4180" in result.stderr
    assert [path for path in Path("out").rglob("*") if path.is_file()] == []


def test_a_dash_for_the_outputs_prints_them_all_with_headers() -> None:
    program = """.decl a(x: number, s: symbol)
a(1, "one"). a(2, "two").
.decl none()
none().
.output a(filename="b.csv", delimiter=";")
.output none
.printsize a
"""
    put("p.dl", program)
    result = cli("run", "p.dl", "-D", "-")
    bar, line = "===============\n", "---------------\n"
    tuples = f"{line}a\nx;s\n{bar}1;one\n2;two\n{bar}{line}none\n{bar}()\n{bar}"
    assert result.stdout == f"{tuples}a\t2\n"
    assert not Path("-").exists()


def test_json_is_read_from_standard_input_and_printed() -> None:
    program = """.decl a(x: number, s: symbol)
.input a(IO=json)
.output a(IO=json, format=object, params="{\\"relation\\": {\\"params\\": [\\"n\\", \\"t\\"]}}")
"""
    put("p.dl", program)
    result = cli("run", "p.dl", stdin='[[2, "b"], {"s": "a", "x": 1}]')
    assert result.stdout == '[{"n": 1, "t": "a"},\n{"n": 2, "t": "b"}]\n'
    for text, code in (("[[1,", "C0957"), ('[[1, "b"], 3]', "C0957"), ('[["1", "b"]]', "C0801")):
        result = cli("run", "p.dl", stdin=text)
        assert (result.exit_code, f"[{code}]" in result.stderr) == (INPUT, True)


@pytest.mark.parametrize("directory", ["network.dl/out", "/proc/nowhere"])
def test_an_output_directory_that_cannot_be_made_is_named(directory: str) -> None:
    result = cli("run", "network.dl", "-F", "facts", "-D", directory)
    assert result.exit_code == INPUT
    assert isinstance(result.exception, SystemExit)
    assert "C080" in result.stderr
    assert "network.dl:8:1" in result.stderr


# ------------------------------------------------------------------------------------------ limits


@pytest.mark.parametrize(
    ("name", "amount"),
    [
        ("rounds", "20"),
        ("tuples", "500"),
        ("seconds", "0.2"),
        ("memory", "10M"),
        ("memory", "200k"),
    ],
)
def test_limits_end_a_run_with_their_own_exit_code(name: str, amount: str) -> None:
    doubling = '.decl s(t: symbol)\ns("ab").\ns(cat(t, t)) :- s(t).\n.output s\n'
    put("endless.dl", doubling if name == "memory" else ENDLESS)
    put("out/n.csv", "earlier\n")
    before = tree("out")
    result = cli("run", "endless.dl", "-D", "out", f"--limit-{name}", amount)
    assert result.exit_code == LIMIT
    assert f"--limit-{name}" in result.stderr
    # On a slow machine the seconds are over before there is a rule to work on.
    is_early = name == "seconds" and "before the evaluation" in result.stderr
    assert is_early or "at work on the rule `" in result.stderr
    assert tree("out") == before


def test_a_limit_in_json() -> None:
    put("endless.dl", ENDLESS)
    result = cli("run", "endless.dl", "--limit-rounds", "9", "--format", "json")
    assert result.exit_code == LIMIT
    said = of_json(result)
    assert "9 rounds" in said["error"]
    assert said["diagnostics"] == []


def test_a_limit_on_a_query() -> None:
    put("endless.dl", ENDLESS)
    result = cli("query", "endless.dl", "n(x)", "--limit-tuples", "100")
    assert result.exit_code == LIMIT
    assert "--limit-tuples" in result.stderr


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    every = ("--limit-rounds", "50", "--limit-tuples", "50", "--limit-seconds", "50")
    assert evaluate(*every, "--limit-memory", "0.5G").exit_code == OK
    assert Path("out/link.csv").read_text() == LINKS


@pytest.mark.parametrize("amount", ["lots", "", "5X", "M", "-1", "-5M", "nan", "inf"])
def test_an_amount_of_memory_that_makes_no_sense_is_wrong_usage(amount: str) -> None:
    result = evaluate("--limit-memory", amount)
    assert result.exit_code == USAGE
    assert "--limit-memory" in result.stderr


# ------------------------------------------------------------------------------------------- roots


@pytest.mark.parametrize(
    "name", ["../secret.facts", "{root}/secret.facts", "link.facts", "file:///x"]
)
def test_inputs_outside_of_the_root_are_refused(name: str, project: Path) -> None:
    put("secret.facts", "a\tb\n")
    Path("facts/link.facts").symlink_to(project / "secret.facts")
    name = name.format(root=project)
    put("p.dl", f'.decl e(x: symbol, y: symbol)\n.input e(filename="{name}")\n.output e\n')
    result = evaluate(program="p.dl")
    assert result.exit_code == INPUT
    assert "C0805" in result.stderr
    assert "p.dl:2:1" in result.stderr
    assert not Path("out/e.csv").exists()


@pytest.mark.parametrize("name", ["../stolen.csv", "{root}/stolen.csv", "away/stolen.csv"])
def test_outputs_outside_of_the_root_are_refused(name: str, project: Path) -> None:
    put("elsewhere/keep.txt", "")
    Path("out").mkdir()
    Path("out/away").symlink_to(project / "elsewhere")
    name = name.format(root=project)
    put("p.dl", f'.decl a, b(x: number)\na(1). b(1).\n.output a(filename="sub/a.csv")\n'
        f'.output b(filename="{name}")\n')  # fmt: skip
    result = cli("run", "p.dl", "-D", "out")
    assert result.exit_code == INPUT
    assert "C0805" in result.stderr
    assert not Path("stolen.csv").exists()
    assert tree("elsewhere") == {"elsewhere/keep.txt": b""}
    assert not Path("out/sub/a.csv").exists()


def test_a_refused_output_leaves_no_directory_behind() -> None:
    put("p.dl", '.decl a, b(x: number)\na(1). b(1).\n.output a(filename="sub/a.csv")\n'
        '.output b(filename="../b.csv")\n')  # fmt: skip
    Path("out").mkdir()
    assert cli("run", "p.dl", "-D", "out").exit_code == INPUT
    assert tree("out") == {}


def test_a_wider_root_lets_inputs_and_outputs_reach_further() -> None:
    put("shared/e.facts", "1\n")
    put("p.dl", '.decl e(x: number)\n.input e(filename="../shared/e.facts")\n'
        '.output e(filename="../results/e.csv")\n')  # fmt: skip
    assert evaluate("--root", ".", program="p.dl").exit_code == OK
    assert Path("results/e.csv").read_text() == "1\n"
    assert evaluate("--root", "facts", program="p.dl").exit_code == INPUT


def test_included_files_stay_below_the_program() -> None:
    put("secret.dl", ".decl p(x: number)\n")
    put("inner/p.dl", '#include "../secret.dl"\n')
    result = cli("run", "inner/p.dl")
    assert result.exit_code == INPUT
    assert "../secret.dl" in result.stderr


# ------------------------------------------------------------------------------------------- query


def ask(goal: str, *options: str) -> Result:
    return cli("query", "network.dl", goal, "-F", "facts", *options)


def test_query_prints_a_line_per_answer() -> None:
    result = ask('link("a", y)')
    assert (result.exit_code, result.stdout) == (OK, "y\nb\nc\n")
    assert ask("link(x, y)").stdout == "x\ty\n" + LINKS
    assert ask('link(x, "c")').stdout == "x\na\nb\n"
    assert ask("link(x, x)").stdout == "x\n"
    assert ask("link(_, y)").stdout == "y\nb\nc\n"
    assert ask('edge("b", y).').stdout == "y\nc\n"
    assert ask('first("a")?').stdout == "yes\n"


ODD = "a\\tb\\\\c\\nd\\u001b[31m\\r\\u0085é"


def test_query_escapes_what_would_be_ambiguous() -> None:
    put("odd.dl", f'.decl t(x: symbol, y: symbol?)\nt("{ODD}", "e").\nt("plain", null).\n')
    result = cli("query", "odd.dl", "t(x, y)")
    assert result.stdout == "x\ty\n" + r"a\tb\\c\nd\x1b[31m\r\x85é" + "\te\nplain\t\n"


def test_standard_output_has_no_terminal_escapes() -> None:
    put("odd.dl", f'.decl t(x: symbol)\nt("{ODD}").\n.output t(IO=stdout)\n')
    assert "\na\tb\\c\nd\\x1b[31m\\r\\x85é\n" in cli("run", "odd.dl").stdout


KEYED = ".decl p(x: number, y: symbol) key(x)\n{}.output p\n"
DOORS = {
    "a file": ".input p\n",
    "JSON lines": '.input p(filename="p.jsonl")\n',
    "the text": 'p(1, "a").\np(1, "b").\n',
    "two files": '.input p(filename="1.csv")\n.input p(filename="2.csv")\n',
}


@pytest.mark.parametrize("door", DOORS)
def test_a_violated_key_has_one_exit_status(door: str) -> None:
    put("p.dl", KEYED.format(DOORS[door]))
    put("facts/p.facts", "1\ta\n1\tb\n")
    put("facts/p.jsonl", '[1, "a"]\n[1, "b"]\n')
    put("facts/1.csv", "1,a\n")
    put("facts/2.csv", "1,b\n")
    for options in ((), ("--warehouse", "wh", "--engine", "local")):
        result = cli("run", "p.dl", "-F", "facts", *options)
        assert result.exit_code == CONSTRAINT
        assert "C0937" in result.stderr or "C0954" in result.stderr
    assert cli("query", "p.dl", "-F", "facts", "p(x, y)").exit_code == CONSTRAINT
    put("empty.dl", KEYED.format(""))
    cli("run", "empty.dl", "--warehouse", "other", "--engine", "local")
    said = cli("apply", "other", "--insert", "p=facts/p.facts")
    assert said.exit_code == CONSTRAINT


def test_of_a_key_the_last_row_counts_without_a_warehouse_too() -> None:
    put("p.dl", KEYED.format('.input p(order="y")\n'))
    put("facts/p.facts", "1\ta\n1\tb\n")
    assert evaluate(program="p.dl").exit_code == OK
    assert tree("out") == {"out/p.csv": b"1\tb\n"}


def test_query_without_variables_says_yes_or_no() -> None:
    assert ask('link("a", "c")').stdout == "yes\n"
    assert ask('link("c", "a")').stdout == "no\n"
    assert ask("link(_, _)").stdout == "yes\n"


def test_query_in_json() -> None:
    assert of_json(ask('link("a", y)', "--format", "json")) == {
        "columns": ["y"],
        "rows": [["b"], ["c"]],
    }
    assert of_json(ask('link("a", "c")', "--format", "json")) == {"columns": [], "rows": [[]]}
    assert of_json(ask('link("c", "a")', "--format", "json")) == {"columns": [], "rows": []}


def test_query_in_json_keeps_types() -> None:
    put("t.dl", ".decl t(n: number, f: float, d: decimal(6,2), b: bool, s: symbol?, w: date)\n"
        't(9007199254740993, 0.5, 12.50, true, null, d"2026-11-15").\n')  # fmt: skip
    said = of_json(cli("query", "t.dl", "t(n, f, d, b, s, w)", "--format", "json"))
    assert said["columns"] == ["n", "f", "d", "b", "s", "w"]
    assert said["rows"] == [[9007199254740993, 0.5, "12.50", True, None, "2026-11-15"]]


def test_query_computes_only_what_the_goal_asks_for() -> None:
    chain = "".join(f"n{i}\tn{i + 1}\n" for i in range(300))
    put("facts/edge.facts", chain + "a\tb\n")
    few = ("--limit-tuples", "2000")
    assert evaluate(*few).exit_code == LIMIT
    assert ask('link("a", y)', *few).stdout == "y\nb\n"


def test_query_writes_nothing() -> None:
    before = tree(".")
    assert ask('link("a", y)').exit_code == OK
    assert tree(".") == before


@pytest.mark.parametrize(
    ("goal", "fragment"),
    [
        ("lunk(x, y)", "`lunk`"),
        ("link(x)", "link"),
        ("link(1, y)", "symbol"),
        ("link(x, y), edgy(y, z)", "`edgy`"),
        ("!link(x, y)", "C0402"),
        ("link(x, _) ; link(_, y)", "C0905"),
        ("select dst from link where src = 'a'", "C0904"),
        ("link(x", "C0101"),
        ("", "C0101"),
    ],
)
def test_goals_that_do_not_fit_are_explained(goal: str, fragment: str) -> None:
    result = ask(goal)
    assert result.exit_code == INPUT
    assert fragment in result.stderr
    assert result.stdout == ""
    failed = ask(goal, "--format", "json")
    assert failed.exit_code == INPUT
    assert of_json(failed)["diagnostics"]


def test_event_predicates_cannot_be_asked_for() -> None:
    put("e.dl", ".decl p(x: number)\np(1).\ngone(x) :- -p(x).\n")
    result = cli("query", "e.dl", "gone(x)")
    assert result.exit_code == INPUT
    assert "C0902" in result.stderr


# ----------------------------------------------------------------------------------- check and show


def test_check_of_a_sound_program() -> None:
    result = cli("check", "network.dl")
    assert result.exit_code == OK
    assert "0 errors, 0 warnings" in result.output
    assert of_json(cli("check", "network.dl", "--format", "json")) == {"diagnostics": []}


def test_check_reports_everything_with_a_caret_and_a_cure() -> None:
    put("p.dl", ".decl p(x: number)\np(1, 2).\nq(x) :- p(x).\n.decl r(x: number)\nr(y) :- p(x).\n")
    result = cli("check", "p.dl")
    assert result.exit_code == INPUT
    assert all(f"p.dl:{line}:" in result.output for line in (2, 3, 5))
    assert result.output.count("^") >= 3
    assert "  = " in result.output
    found = of_json(cli("check", "p.dl", "--format", "json"))["diagnostics"]
    assert {each["line"] for each in found if each["severity"] == "error"} == {2, 3, 5}
    assert all(each["code"].startswith("C0") and each["message"] for each in found)


def test_check_of_a_syntax_error_in_json() -> None:
    put("p.dl", ".decl p(x: number)\np(1)\n.output p\n")
    result = cli("check", "p.dl", "--format", "json")
    assert result.exit_code == INPUT
    (found, *_) = of_json(result)["diagnostics"]
    assert found["code"] == "C0101"
    assert found["line"] in (2, 3)


def test_warnings_fail_only_a_strict_check() -> None:
    put("endless.dl", ENDLESS)
    result = cli("check", "endless.dl")
    assert result.exit_code == OK
    assert "warning[C0706]" in result.output
    assert cli("check", "endless.dl", "--strict").exit_code == INPUT
    assert cli("check", "network.dl", "--strict").exit_code == OK


def test_check_finds_cycles_through_negation() -> None:
    put("p.dl", ".decl p, q(x: number)\np(1).\nq(x) :- p(x), !p(x).\np(x) :- q(x).\n")
    result = cli("check", "p.dl")
    assert result.exit_code == INPUT
    assert "C0501" in result.output
    assert "`p`" in result.output
    assert "`q`" in result.output


def test_check_needs_no_facts() -> None:
    Path("facts/edge.facts").unlink()
    assert cli("check", "network.dl").exit_code == OK


def test_show_prints_the_normal_form() -> None:
    put("p.dl", ".decl p, q(x: number)\np(1). p(2).\nq(x) :- p(x), (x = 1 ; x > 5).\n.output q\n")
    result = cli("show", "p.dl")
    assert result.exit_code == OK
    assert result.stdout.count("q(x) :- ") == 2
    assert ";" not in result.stdout
    assert of_json(cli("show", "p.dl", "--format", "json"))["program"].strip() == (
        result.stdout.strip()
    )


def test_show_written_gives_a_program_that_means_the_same() -> None:
    result = cli("show", "network.dl", "--written")
    assert result.exit_code == OK
    put("again.dl", result.stdout)
    assert cli("show", "again.dl", "--written").stdout == result.stdout
    assert evaluate(program="again.dl").exit_code == OK
    assert Path("out/link.csv").read_text() == LINKS


def test_show_as_sql_of_what_a_dialect_has() -> None:
    text = """
    .decl e(x: number, y: number)
    .decl r(x: number, y: number)
    r(x, y) :- e(x, y).
    r(x, z) :- r(x, y), r(y, z).
    .decl far(x: number)
    far(x) :- x = range(1, 3), !r(x, x).
    .abort far "far {x}"
    """
    Path("p.dl").write_text(text)
    spark = cli("show", "p.dl", "--as", "sql").stdout
    assert "CREATE MATERIALIZED VIEW r AS\nWITH RECURSIVE r(x, y) AS (" in spark
    assert "-- Spark by itself has no recursion with UNION" in spark
    assert "-- far is left out: `range` makes several values of one row" in spark
    assert "-- active rules, alerts and constraints are left out" in spark
    duckdb = cli("show", "p.dl", "--as", "sql", "--dialect", "duckdb", "--relation", "r").stdout
    assert "-- r is left out: in DuckDB a recursive query may read itself once only" in duckdb
    assert "far is" not in duckdb
    assert cli("show", "p.dl", "--as", "sql", "--relation", "rr").exit_code == INPUT
    assert cli("show", "p.dl", "--as", "sql", "--written").exit_code == USAGE
    assert cli("show", "p.dl", "--relation", "r").exit_code == USAGE


def test_show_of_a_wrong_program() -> None:
    put("p.dl", ".decl p(x: number)\np(x) :- q(x).\n")
    assert cli("show", "p.dl").exit_code == INPUT
    assert of_json(cli("show", "p.dl", "--format", "json"))["diagnostics"]


# -------------------------------------------------------------------------------- graph and explain


def test_graph_in_the_language_of_graphviz() -> None:
    result = cli("graph", "network.dl")
    assert result.exit_code == OK
    assert result.stdout.startswith("digraph")
    assert '"edge" -> "link"' in result.stdout
    assert "dashed" in result.stdout
    assert result.stdout.count("{") == result.stdout.count("}")


def test_graph_as_a_picture() -> None:
    put("odd.dl", '.decl `a & <b>"`(x: number)\n`a & <b>"`(1).\n.decl q(x: number)\n'
        'q(x) :- `a & <b>"`(x).\n.output q\n')  # fmt: skip
    for program in ("network.dl", "odd.dl"):
        result = cli("graph", program, "--to", "svg")
        assert result.exit_code == OK
        root = ET.fromstring(result.stdout)
        assert root.tag.endswith("svg")
    assert 'a & <b>"' in "".join(root.itertext())


def test_graph_into_a_file() -> None:
    result = cli("graph", "network.dl", "--to", "svg", "-o", "network.svg")
    assert (result.exit_code, result.stdout) == (OK, "")
    assert ET.parse("network.svg").getroot().tag.endswith("svg")


def test_graph_of_a_wrong_program_or_kind() -> None:
    put("p.dl", "p(1).\n")
    assert cli("graph", "p.dl", "-o", "p.dot").exit_code == INPUT
    assert not Path("p.dot").exists()
    assert cli("graph", "network.dl", "--to", "png").exit_code == USAGE


def test_explain_names_strata_and_probes() -> None:
    result = cli("explain", "network.dl")
    assert result.exit_code == OK
    assert "base relations: edge" in result.stdout
    assert "stratum link (stored): recursive" in result.stdout
    assert result.stdout.index("stratum link ") < result.stdout.index("stratum first ")
    assert "edge^bf(y, z)" in result.stdout


def test_explain_of_a_goal_shows_its_bound_columns() -> None:
    result = cli("explain", "network.dl", "--goal", 'link("a", y)')
    assert result.exit_code == OK
    assert "link^bf" in result.stdout
    failed = cli("explain", "network.dl", "--goal", "lunk(x)")
    assert failed.exit_code == INPUT
    assert "`lunk`" in failed.stderr


def test_explain_in_json() -> None:
    said = of_json(cli("explain", "network.dl", "--format", "json"))
    assert said["base"] == ["edge"]
    assert said["strata"][0]["relations"] == ["link"]
    assert said["strata"][0]["recursive"] is True
    assert "main" in said["procedures"]


def test_explain_needs_no_facts_and_writes_nothing() -> None:
    Path("facts/edge.facts").unlink()
    before = tree(".")
    assert cli("explain", "network.dl").exit_code == OK
    assert tree(".") == before


# ----------------------------------------------------------------------------------- usage and help


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_mentions_an_example(command: str) -> None:
    result = cli(command, "--help")
    assert result.exit_code == OK
    assert f"corollary {command}" in result.stdout.split("Usage:")[1].split("\n", 1)[1]
    assert cli(command, "-h").stdout == result.stdout


def test_help_lists_every_command_and_the_exit_codes() -> None:
    result = cli("--help")
    assert result.exit_code == OK
    assert all(f"\n  {name} " in result.stdout for name in COMMANDS)
    assert "Exit status" in result.stdout


def test_a_misspelt_command_gets_a_hint() -> None:
    result = cli("rum", "network.dl")
    assert result.exit_code == USAGE
    assert "No such command 'rum'. Did you mean 'run'?" in result.stderr
    far = cli("zzz")
    assert far.exit_code == USAGE
    assert "Did you mean" not in far.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["query", "network.dl"],
        ["run", "network.dl", "--colour"],
        ["run", "network.dl", "--format", "xml"],
        ["run", "network.dl", "--limit-rounds", "many"],
        ["run", "network.dl", "-F", "network.dl"],
        ["run", "network.dl", "-D", "network.dl"],
        ["check"],
        ["trace", "network.dl"],
        ["trace", "network.dl", "--add", 'edge("a", "c")', "--max-rows", "-1"],
        ["explain", "network.dl", "--goal", "link(x, y)", "--added", "edge"],
        ["graph", "network.dl", "-o", "facts"],
    ],
    ids=" ".join,
)
def test_wrong_usage_has_its_own_exit_code(arguments: list[str]) -> None:
    result = cli(*arguments)
    assert result.exit_code == USAGE
    assert "Usage:" in result.stderr


@pytest.mark.parametrize(
    "command",
    ["run", "check", "show", "graph", "explain", "explain --added=edge", "trace --add=edge(1)"],
)
def test_a_program_that_is_not_there(command: str) -> None:
    name, *options = command.split()
    result = cli(name, "nowhere.dl", *options)
    assert result.exit_code == INPUT
    assert "`nowhere.dl` cannot be read" in result.stderr


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\0", b""], ids=["not UTF-8", "NUL", "empty"])
def test_odd_program_files_never_crash(content: bytes) -> None:
    put("odd.dl", content)
    for command in ("run", "check", "show", "graph", "explain"):
        result = cli(command, "odd.dl")
        assert result.exit_code == (INPUT if content else OK), command
        assert not result.exception or isinstance(result.exception, SystemExit)


def test_options_can_be_set_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    put("endless.dl", ENDLESS)
    monkeypatch.setenv("COROLLARY_RUN_LIMIT_ROUNDS", "7")
    result = cli("run", "endless.dl")
    assert result.exit_code == LIMIT
    assert "7 rounds" in result.stderr


def test_an_unknown_setting_in_the_environment_is_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (
        "RUN_LIMIT_MEMROY",
        "RUN_FACTS",
        "BULK",
        "WATCH_ANYTHING",
        *("TEST_ALL", "CONNECTION_SHOP", "SECRET_OPS", "SMTP"),
        "RUM_FACTS",
    ):
        monkeypatch.setenv(f"COROLLARY_{name}", "facts" if name == "RUN_FACTS" else "")
    result = evaluate()
    assert result.exit_code == OK
    warnings = [line for line in result.stderr.splitlines() if "C0922" in line]
    assert ["RUM_FACTS" in line or "LIMIT_MEMROY" in line for line in warnings] == [True, True]
    assert "did you mean `COROLLARY_RUN_LIMIT_MEMORY`?" in result.stderr
    assert "did you mean `COROLLARY_RUN_FACTS`?" in result.stderr
    assert evaluate("-q").stderr == ""


# --------------------------------------------------------------------------------- real processes


@pytest.mark.integration
def test_a_real_process_reads_pipes_and_ends_with_the_exit_code() -> None:
    put("n.dl", ".decl n(x: number)\n.input n(IO=stdin)\n.output n(IO=stdout)\n")
    said = real("run", "n.dl", input="2\n1\n2\n")
    assert (said.returncode, said.stderr) == (OK, "")
    assert said.stdout == "---------------\nn\n===============\n1\n2\n===============\n"
    failed = real("run", "n.dl", input="one\n")
    assert failed.returncode == INPUT
    assert "<stdin>:1:1" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_the_package_is_a_program() -> None:
    command = [sys.executable, "-m", "corollary", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.stdout.startswith("corollary, version ")


@pytest.mark.integration
def test_a_real_process_traces() -> None:
    said = real("trace", "network.dl", "-F", "facts", "--remove", 'edge("b", "c")')
    assert (said.returncode, said.stderr) == (OK, "")
    assert "    link  −(a, c) −(b, c)\n" in said.stdout


def test_updates_are_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COROLLARY_TRACE_ADD", 'edge("a","c")')
    assert cli("trace", "network.dl", "-F", "facts").exit_code == USAGE
    monkeypatch.setenv("COROLLARY_TRACE_FACTS", "facts")
    monkeypatch.setenv("COROLLARY_TRACE_ALGORITHM", "dred")
    result = cli("trace", "network.dl", "--add", 'edge("c", "d")')
    assert "    link: dred, asked for\n" in result.stdout


@pytest.mark.slow
def test_a_closed_pipe_ends_without_a_traceback() -> None:
    put("big.dl", ".decl n(x: number)\nn(x) :- x = range(0, 200000).\n.output n(IO=stdout)\n")
    command = f"{shlex.join(COMMAND)} run big.dl | head -n 4"
    said = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert said.stdout == "---------------\nn\n===============\n0\n"
    assert said.stderr == ""


@pytest.mark.slow
def test_an_interrupt_ends_quietly_and_writes_nothing() -> None:
    put("reads.dl", ".decl n(x: number)\n.input n(IO=stdin)\n.output n\n")
    command = [*COMMAND, "run", "reads.dl", "-D", "out"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        # More than a pipe holds: when this returns, the run is reading, and waits for the end.
        process.stdin.write("7\n" * 500_000)
        process.stdin.flush()
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    assert "Traceback" not in said
    assert "nothing was written" in said
    assert not Path("out").exists()


@pytest.mark.long  # docs/command-line.md shows it, too
def test_the_demo_runs_from_end_to_end() -> None:
    result = cli("demo", "--keep", "example", "--engine", "local")
    assert result.exit_code == OK, result.output
    assert "corollary run network.dl" in result.stdout
    assert "corollary serve example/warehouse" in result.stdout
    assert re.search(r"feeds +\+2,510 −2,522  ranked ", result.stdout)
    assert re.search(r"dark +\+2,401 ", result.stdout)
    assert "tables/feeds: version 2, 3,003,510 rows" in result.stdout
    alerts = [line.strip() for line in result.stdout.splitlines() if "alert: " in line]
    assert alerts == [
        "alert: homes cut off from r11: 1",
        "alert: homes cut off from r3: 2400",
        "alert: homes cut off from r5: 2400",
    ]
    assert result.stdout.split("\n\n")[-3].endswith(alerts[-1])
    kept = {path.name for path in Path("example").iterdir()}
    assert {"network.dl", "cable.facts", "warehouse"} <= kept
    assert cli("check", "example/network.dl", "--strict").exit_code == OK
    again = cli("demo", "--keep", "example")
    assert again.exit_code == USAGE
    assert "There is a warehouse in `example` already" in again.stderr


def test_accepted_warnings_are_neither_printed_nor_counted() -> None:
    put(
        "n.dl",
        ".decl n(x: number)\n.output n\nn(0).\n.decl m(x: number)\n",
    )
    said = cli("check", "n.dl", "--strict")
    assert (said.exit_code, "C0701" in said.stdout) == (INPUT, True)
    assert cli("check", "n.dl", "--strict", "--allow", "C0701").exit_code == OK
    assert "0 warnings" in cli("check", "n.dl", "--allow", "C0701").stderr
    assert "C0701" in cli("run", "n.dl").stderr
    assert "C0701" not in cli("run", "n.dl", "--allow", "C0701").stderr
    assert of_json(cli("run", "n.dl", "--allow", "C0701", "--format", "json"))["warnings"] == []
    assert cli("check", "n.dl", "--allow", "everything").exit_code == USAGE


def test_answers_in_order() -> None:
    result = ask('link("a", y), y != "b"', "--order", "y desc", "--limit", "1")
    assert result.stdout.split() == ["y", max(ask('link("a", y)').stdout.split()[1:])]
    rows = of_json(ask("link(x, y)", "--order", "y desc", "--order", "x", "--format", "json"))[
        "rows"
    ]
    assert rows == sorted(sorted(rows), key=lambda row: row[1], reverse=True)
    assert ask("link(x, y)", "--order", "z").exit_code == INPUT
    assert ask("link(x, y)", "--limit", "-1").exit_code == USAGE


LATE = """.decl order(id: number, due: date)
order(1, d"2026-11-14"). order(2, d"2026-11-16").
.decl late(id: number)
late(i) :- order(i, d), d < today().
.output late
"""


def test_the_day_comes_from_the_command_line() -> None:
    put("late.dl", LATE)
    refused = cli("run", "late.dl")
    assert refused.exit_code == INPUT
    assert "C0908" in refused.stderr
    assert "--today" in refused.stderr
    assert cli("run", "late.dl", "--today", "2026-11-15", "-D", "out").exit_code == OK
    assert Path("out/late.csv").read_text("utf-8") == "1\n"
    day = ("--today", "2026-11-17")
    assert cli("query", "late.dl", "late(x)", *day).stdout == "x\n1\n2\n"
    assert cli("query", "late.dl", "x = today()", *day).stdout == "x\n2026-11-17\n"
    assert "corollary.today" in cli("explain", "late.dl").stdout
    assert "corollary.today" in cli("explain", "late.dl", "--removed", "order").stdout
    traced = cli("trace", "late.dl", "--remove", 'order(1, d"2026-11-14")', *day)
    assert traced.exit_code == OK
    assert cli("run", "late.dl", "--today", "tomorrow").exit_code == USAGE


def test_a_warehouse_keeps_its_day() -> None:
    put("late.dl", LATE)
    assert cli("run", "late.dl", "--warehouse", "wh").exit_code == INPUT
    assert not Path("wh").exists()
    first = cli("run", "late.dl", "--warehouse", "wh", "--today", "2026-11-15", "--format", "json")
    assert of_json(first)["changes"]["late"]["added"] == [[1]]
    assert of_json(cli("run", "late.dl", "--warehouse", "wh", "--format", "json"))["changes"] == {}
    next_day = of_json(cli("apply", "wh", "--today", "2026-11-17", "--format", "json"))
    assert next_day["commit"] == 2
    assert next_day["changes"]["late"] == {"added": [[2]], "removed": []}
    back = ("run", "late.dl", "--warehouse", "wh", "--today", "2026-11-10", "--format", "json")
    assert of_json(cli(*back))["changes"]["late"]["removed"] == [[1], [2]]
    assert cli("query", "wh", "order(x, d), d > today()").exit_code == OK
    assert cli("query", "wh", "late(x)", "--today", "2026-11-15").exit_code == USAGE
    tried = of_json(cli("apply", "wh", "--today", "2026-11-17", "--dry-run", "--format", "json"))
    assert tried["changes"]["late"]["added"] == [[1], [2]]
    assert cli("query", "wh", "late(x)").stdout == "x\n"
