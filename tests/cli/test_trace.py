"""`corollary trace`: the papers' tables as text and as JSON, and updates that do not fit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import corollary
from corollary.cli import options
from corollary.cli.main import group
from corollary.cli.report import tables
from corollary.cli.report.trace import trace_as_json, trace_lines
from corollary.core.engine import Limits
from corollary.core.states import State
from corollary.database.transaction import Transaction
from corollary.errors import EvaluationError
from corollary.maintain.choose import SELECTABLE_ALGORITHMS
from support.generators.programs import programs, updates
from support.selection import examples
from support.spark.in_process_partitions import share_out

OK, INPUT, USAGE, LIMIT = 0, 1, 2, 5

CLOSURE = """\
.decl edge(x: symbol, y: symbol)
.input edge
.decl tc(x: symbol, y: symbol)
tc(x, y) :- edge(x, y).
tc(x, y) :- tc(x, w), edge(w, y).
"""
EDGES = "a\tb\na\tc\nb\td\nc\td\nd\te1\nd\te2\nd\te3\n"
"""Figure 2 of the EPF paper, with n = 3."""

FIGURE_3 = """\
rules
    1  tc(x, y) :- edge(x, y).
    2  tc(x, y) :- tc(x, w), edge(w, y).

tc: removals
    rule  updates     approximation            disqualified  actual
    1     edge(b, d)  (b, d)                   –             (b, d)
    2     tc(b, d)    (b, e1) (b, e2) (b, e3)  –             (b, e1) (b, e2) (b, e3)
    2     edge(b, d)  (a, d)                   (a, d)        –

1 invocation with an empty approximation left out; -v shows all

changes
    edge  −(b, d)
    tc    −(b, d) −(b, e1) −(b, e2) −(b, e3)

counters
    tc: epf, asked for
        propagated 6, approximated 5, filtered 5, disqualified 1, actual 4, base_probes"""

REACH = """\
.decl edge(x: symbol, y: symbol)
.input edge
.decl reach(x: symbol, y: symbol)
reach(x, y) :- edge(x, y).
reach(x, y) :- reach(x, z), edge(z, y).
"""
REACHED = "a\tb\na\tc\nb\te\nc\td\nd\tf\ne\tf\ne\tg\nf\tg\nf\th\n"

TABLE_2 = """\
reach: removals
    rule  updates      approximation  disqualified  actual
    1     edge(e, f)   (e, f)         –             (e, f)
    2     reach(e, f)  (e, g) (e, h)  (e, g)        (e, h)
    2     reach(e, h)  –              –             –
    2     edge(e, f)   (a, f) (b, f)  (a, f)        (b, f)
    2     reach(b, f)  (b, g) (b, h)  (b, g)        (b, h)
    2     reach(b, h)  –              –             –
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory with the program of the paper, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    put("tc.dl", CLOSURE)
    put("edge.facts", EDGES)


def put(name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")


def cli(*arguments: str) -> Result:
    return CliRunner().invoke(group, ["trace", *arguments])


def traced(*arguments: str) -> str:
    result = cli("tc.dl", *arguments)
    assert result.exit_code == OK, result.output
    return result.stdout


def document(*arguments: str) -> Any:
    return json.loads(traced(*arguments, "--format", "json"))


# ------------------------------------------------------------------------------ the papers' tables


def test_a_propagation_says_which_partitions_it_has_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    update = ("--remove", 'edge("b", "d")', "--algorithm", "epf")
    here = document(*update)
    share_out(monkeypatch, "partitions")
    there = document(*update, "--engine", "spark")
    jobs = there.pop("jobs")
    assert (there["rows"], there["changes"]) == (here["rows"], here["changes"])
    assert "jobs" not in here
    assert {"arrange edge", "probe edge"} <= {job["title"] for job in jobs}
    asked = [(name, at) for job in jobs for name, each in job["partitions"].items() for at in each]
    assert {name for name, _ in asked} == {"edge", "tc"}
    assert len({at for _, at in asked}) > 1
    assert all(job["bytes_sent"] > 0 < job["bytes_returned"] for job in jobs)
    text = traced(*update, "--engine", "spark")
    assert re.search(r"\njobs\n    1  arrange edge: partitions edge [0-9 ]+ \([0-9,]+ B to", text)


def test_the_table_of_the_epf_paper() -> None:
    assert traced("--remove", 'edge("b", "d")', "--algorithm", "epf").startswith(FIGURE_3)


def test_the_table_of_the_entry_on_recursive_views() -> None:
    put("tc.dl", REACH)
    put("edge.facts", REACHED)
    said = traced("--remove", 'edge("e", "f")', "--algorithm", "pf", "-v")
    assert TABLE_2 in said
    assert "left out" not in said
    assert "    reach  −(b, f) −(b, h) −(e, f) −(e, h)\n" in said


PROVED = """\
    disqualified: provable after the change
        tc("a", "d")     rule 2  tc.dl:5
        +- tc("a", "c")  rule 1  tc.dl:4
        |  +- edge("a", "c")
        +- edge("c", "d")
        height 2, 4 tuples; no proof is lower

"""


def test_a_candidate_that_stays_is_shown_with_its_proof() -> None:
    put("edge.facts", "a\tb\na\tc\nb\td\nc\td\n")
    remove = ("--remove", 'edge("b", "d")', "--algorithm", "epf", "-v")
    assert PROVED in traced(*remove)
    *_, last = document(*remove)["rows"]
    (proof,) = last["proofs"]
    assert (proof["goal"], proof["height"], last["disqualified_without_proof"]) == (
        'tc("a", "d")',
        2,
        0,
    )
    added = traced("--add", 'edge("a", "d")', "--algorithm", "epf", "-v")
    assert 'disqualified: provable before the change\n        tc("a", "d")     rule 2' in added


def test_the_first_candidates_of_a_row_are_proved() -> None:
    put("edge.facts", EDGES + "c\tb\n")
    remove = ("--remove", 'edge("c", "d")', "--compare", "dred,epf", "-v")
    said = traced(*remove)
    assert "dred, tc: removals" in said
    # Rederived are (a, d) and (c, d) in one round, six tuples in the next one.
    assert "    3 more disqualified without a proof here\n" in said
    row = document(*remove)["dred"]["rows"][-1]
    assert (len(row["disqualified"]), len(row["proofs"])) == (8, 3)
    assert row["disqualified_without_proof"] == 5


TABLE_1 = """\
reach: removals
    stage         round  rule  updates      approximation         disqualified          actual
    overestimate  1      1     edge(e, f)   (e, f)                –                     –
    overestimate  1      2     edge(e, f)   (a, f) (b, f)         –                     –
    overestimate  2      2     reach(a, f)  (a, g) (a, h) (b, g)  –                     –
                               reach(b, f)  (b, h) (e, g) (e, h)
                               reach(e, f)
    rederived     1      1     reach(a, f)  (e, g)                (e, g)                –
"""


def test_the_other_table_of_that_entry_by_rule_and_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    put("tc.dl", REACH)
    put("edge.facts", REACHED)
    said = traced("--remove", 'edge("e", "f")', "--algorithm", "dred")
    assert TABLE_1 in said
    rows = document("--remove", 'edge("e", "f")', "--algorithm", "dred")["rows"]
    over = [each for each in rows if each["stage"] == "overestimate"]
    assert sorted(row for each in over for row in each["approximation"]) == sorted(
        map(list, ("ef", "eg", "eh", "af", "bf", "ag", "ah", "bg", "bh"))
    )
    back = [row for each in rows if each["stage"] == "rederived" for row in each["disqualified"]]
    assert sorted(back) == sorted(map(list, ("eg", "af", "ag", "ah", "bg")))
    assert rows[-1]["stage"] == "result"
    assert rows[-1]["actual"] == [["b", "f"], ["b", "h"], ["e", "f"], ["e", "h"]]


def test_ranked_by_rule_and_round() -> None:
    put("tc.dl", REACH)
    put("edge.facts", REACHED)
    rows = document("--remove", 'edge("e", "f")', "--algorithm", "ranked")["rows"]
    told = [(each["stage"], each["round"], each["approximation"]) for each in rows]
    assert told == [
        ("candidates", 1, [["e", "f"]]),
        ("candidates", 1, [["a", "f"], ["b", "f"]]),
        ("kept", 1, [["a", "f"]]),
        ("suspended", 1, [["b", "f"], ["e", "f"]]),
        ("candidates", 2, [["b", "h"], ["e", "h"]]),
        ("suspended", 2, [["b", "h"], ["e", "h"]]),
        ("result", 1, [["b", "f"], ["b", "h"], ["e", "f"], ["e", "h"]]),
    ]


@pytest.mark.parametrize("algorithm", ["dred", "ranked"])
def test_a_trace_counts_what_is_counted_without_one(algorithm: str) -> None:
    counted = []
    for is_traced in (False, True):
        db = corollary.open(None, engine="local", algorithm=algorithm)
        db.load(text=REACH.replace(".input edge\n", ""))
        edges = [tuple(line.split("\t")) for line in REACHED.splitlines()]
        with db.transaction() as tx:
            tx.insert("edge", edges)
        with db.transaction(is_traced=is_traced) as tx:
            tx.delete("edge", [("e", "f")])
            tx.insert("edge", [("h", "a")])
        counted.append(dict(tx.stats["reach"].counts))
        assert bool(tx.trace) == is_traced
    assert counted[0] == counted[1]


# -------------------------------------------------------------------------------------- comparisons


def test_algorithms_side_by_side() -> None:
    put("tc.dl", REACH)
    put("edge.facts", REACHED)
    remove = ("--remove", 'edge("e", "f")')
    said = traced(*remove, "--compare", "dred,pf,epf,ranked")
    for algorithm in ("dred", "pf", "epf", "ranked"):
        assert f"{algorithm}, reach: removals\n" in said
    assert "    the same for all\n" in said
    assert "    reach         dred  pf  epf  ranked\n" in said
    assert "    approximated  9     7   7    5\n" in said
    compared = document(*remove, "--compare", "dred, epf")
    assert list(compared) == ["dred", "epf"]
    for algorithm, each in compared.items():
        alone = document(*remove, "--algorithm", algorithm)
        assert (each["rows"], each["changes"]) == (alone["rows"], alone["changes"])


def test_what_is_compared_must_exist() -> None:
    add = ("tc.dl", "--add", 'edge("z", "a")')
    assert "there is no algorithm 'magic'" in cli(*add, "--compare", "dred,magic").stderr
    assert "name two or more" in cli(*add, "--compare", "dred").stderr
    both = cli(*add, "--compare", "dred,epf", "--algorithm", "pf")
    assert (both.exit_code, "leave out --algorithm" in both.stderr) == (USAGE, True)
    assert "C0820" in cli(*add, "--compare", "dred,counting").stderr
    idle = cli("tc.dl", "--add", 'edge("a", "b")', "--compare", "dred,epf")
    assert (idle.exit_code, idle.stdout) == (OK, "nothing has changed\n")
    assert idle.stderr.count("was there already") == 1


def test_an_algorithm_that_cannot_be_had_is_told() -> None:
    put("tc.dl", CLOSURE.replace("tc(x: symbol, y: symbol)", "tc(x: symbol, y: symbol) virtual"))
    said = traced("--remove", 'edge("b", "d")', "--algorithm", "dred")
    assert "    tc: epf, not dred, which was asked for; virtual: nothing is stored" in said
    compared = traced("--remove", 'edge("b", "d")', "--compare", "dred,epf")
    assert "    algorithm     epf   epf\n" in compared
    assert "    dred: epf, not dred, which was asked for; virtual" in compared


def test_without_an_optimisation() -> None:
    view = ".decl far(x: symbol, y: symbol) virtual\nfar(x, y) :- tc(x, y), !edge(x, y).\n"
    put("tc.dl", CLOSURE + view + 'lost(y) :- -far("a", y).\n.alert lost "{y}"\n')
    remove = ("--remove", 'edge("c", "d")', "--algorithm", "epf")
    assert "far.for1" in document(*remove)["counters"]
    plain = document(*remove, "--without", "specialisation")["counters"]
    assert "far" in plain
    assert "far.for1" not in plain
    assert "C1053" in cli("tc.dl", *remove, "--without", "speed").stderr


def test_a_fact_of_the_text_stays_as_apply_says() -> None:
    put("tc.dl", CLOSURE.replace(".input edge", 'edge("a", "b"). edge("b", "c").'))
    result = cli("tc.dl", "--remove", 'edge("a", "b")')
    assert (result.exit_code, result.stdout) == (OK, "nothing has changed\n")
    assert result.stderr == "1 tuple of `edge` stays: the program text asserts it too\n"


def test_the_table_in_json_has_every_invocation() -> None:
    said = document("--remove", 'edge("b", "d").', "--algorithm", "epf")
    assert set(said) == {"rows", "counters", "changes"}
    first, second = "tc(x, y) :- edge(x, y).", "tc(x, y) :- tc(x, w), edge(w, y)."
    removed = [["b", "e1"], ["b", "e2"], ["b", "e3"]]
    base = {"relation": "edge", "row": ["b", "d"]}
    assert said["rows"] == [
        row(first, [base], [["b", "d"]], [], [["b", "d"]]),
        row(second, [{"relation": "tc", "row": ["b", "d"]}], removed, [], removed),
        row(second, [{"relation": "tc", "row": each} for each in removed], [], [], []),
        row(second, [base], [["a", "d"]], [["a", "d"]], []),
    ]
    assert said["changes"] == {
        "edge": {"added": [], "removed": [["b", "d"]]},
        "tc": {"added": [], "removed": [["b", "d"], *removed]},
    }
    counters = said["counters"]["tc"]
    assert (counters["algorithm"], counters["reason"]) == ("epf", "asked for")
    assert (counters["approximated"], counters["refiltered"], counters["actual"]) == (5, 0, 4)


def row(rule: str, updates: Any, approximation: Any, disqualified: Any, actual: Any) -> Any:
    return {
        "rule": rule,
        "updates": updates,
        "approximation": approximation,
        "disqualified": disqualified,
        "actual": actual,
    }


@pytest.mark.parametrize("algorithm", [each for each in options.ALGORITHMS if each != "counting"])
@pytest.mark.parametrize("storage", ["", " virtual"])
def test_every_algorithm_finds_the_same_changes(algorithm: str, storage: str) -> None:
    put("tc.dl", CLOSURE.replace("tc(x: symbol, y: symbol)", f"tc(x: symbol, y: symbol){storage}"))
    updates = ("--remove", 'edge("b", "d")', "--add", 'edge("e1", "a"). edge("e1", "b").')
    said = document(*updates, "--algorithm", algorithm)
    assert said["changes"]["edge"] == {
        "added": [["e1", "a"], ["e1", "b"]],
        "removed": [["b", "d"]],
    }
    change = said["changes"]["tc"]
    assert change["removed"] == [["b", "d"], ["b", "e1"], ["b", "e2"], ["b", "e3"]]
    assert ["d", "d"] in change["added"]
    assert said["counters"]["tc"]["algorithm"] in {algorithm, "epf", "ranked", "recompute"}


def test_additions_and_removals_have_tables_of_their_own() -> None:
    put(
        "tc.dl",
        CLOSURE + ".decl far(x: symbol, y: symbol) virtual\nfar(x, y) :- tc(x, y), !edge(x, y).\n",
    )
    said = traced("--remove", 'edge("b", "d")', "--add", 'edge("a", "d")', "--algorithm", "epf")
    assert said.index("tc: removals") < said.index("far: removals")
    assert "far: removals\n    rule  updates" in said
    assert "edge(a, d)  (a, d)" in said
    assert "    far   −(a, d) −(b, e1) −(b, e2) −(b, e3)\n" in said


def test_rules_may_come_and_go() -> None:
    said = document("--add-rule", "tc(x, x) :- edge(x, _)", "--algorithm", "epf")
    assert said["changes"] == {"tc": {"added": [[x, x] for x in "abcd"], "removed": []}}
    assert said["rows"][0]["rule"] == "tc(x, x) :- edge(x, _)."
    assert said["rows"][0]["updates"] == []
    gone = traced("--remove-rule", "tc(p, q) :- tc(p, r), edge(r, q).")
    assert "    tc  −(a, d)" in gone
    swapped = document(
        "--remove-rule", "tc(x, y) :- edge(x, y).", "--add-rule", "tc(x, y) :- edge(y, x)."
    )
    assert ["b", "a"] in swapped["changes"]["tc"]["added"]


def test_algorithms_by_relation_and_the_reason() -> None:
    put("tc.dl", CLOSURE + ".decl node(x: symbol)\nnode(x) :- edge(x, _).\n")
    said = document("--remove", 'edge("b", "d")', "--relation", "tc=dred")["counters"]
    assert (said["tc"]["algorithm"], said["tc"]["reason"]) == ("dred", "asked for")
    assert said["node"]["algorithm"] == "counting"
    assert "    tc: ranked, stored and recursive" in traced("--remove", 'edge("b", "d")')


def test_only_what_is_watched_is_traced() -> None:
    virtual = "".join(f".decl {n}(x: symbol) virtual\n{n}(x) :- edge(x, _).\n" for n in "pq")
    put("tc.dl", CLOSURE + virtual)
    every = document("--add", 'edge("z", "a")')["changes"]
    assert {"p", "q"} <= set(every)
    some = document("--add", 'edge("z", "a")', "--watch", "p")["changes"]
    assert "p" in some
    assert "q" not in some


@st.composite
def traces(draw: st.DrawFn) -> Transaction:
    """A traced transaction on a random program, under a random algorithm."""
    case = draw(programs())
    algorithm = draw(st.sampled_from(["auto", "dred", "pf", "epf", "ranked"]))
    db = corollary.open(None, algorithm=algorithm, limits=Limits(rounds=2000))
    (inserts, deletes), *_ = draw(updates(case, max_size=1)) or [({}, {})]
    try:
        db.load(text=case.text)
        with db.transaction(algorithm="recompute") as tx:
            for name, rows in case.facts.items():
                tx.insert(name, list(rows))
        with db.transaction(is_traced=True) as tx:
            for name, rows in deletes.items():
                tx.delete(name, list(rows))
            for name, rows in inserts.items():
                tx.insert(name, list(rows))
    except EvaluationError:
        assume(False)
    return tx


@pytest.mark.slow
@settings(max_examples=examples(6, 25), deadline=None, suppress_health_check=list(HealthCheck))
@given(traces())
def test_tables_of_random_programs_are_true(tx: Transaction) -> None:
    said = trace_as_json(tx, 10**6)
    json.dumps(said)
    found: dict[tuple[str, State | None], set[str]] = {}
    for row in tx.trace:
        approximated, disqualified, actual = (
            set(map(json.dumps, part)) for part in (row.approximation, row.disqualified, row.actual)
        )
        assert not actual & disqualified
        assert actual | disqualified <= approximated
        known = found.setdefault((row.relation, row.sign), set())
        assert not known & actual
        known |= actual
    for name, stats in tx.stats.items():
        if stats.algorithm in ("recompute", "none") or name not in said["changes"]:
            continue
        for sign in (State.ADDED, State.REMOVED):
            expected = set(map(json.dumps, said["changes"][name][sign]))
            assert found.get((name, sign), set()) == expected, (name, sign)


@pytest.mark.slow
@settings(max_examples=examples(6, 25), deadline=None, suppress_health_check=list(HealthCheck))
@given(traces(), st.booleans(), st.integers(0, 5))
def test_reports_of_random_programs_fit(tx: Transaction, is_full: bool, most: int) -> None:
    lines = list(trace_lines(tx, most, is_full=is_full))
    assert lines
    for row in tx.trace:
        assert is_full is False or f"{row.relation}: " in "\n".join(lines)
    table = [line for line in lines if "rule  updates" in line]
    assert len(table) <= len(tx.trace)


# ------------------------------------------------------------------------------- how it is laid out


def test_long_lists_are_wrapped_and_cut() -> None:
    put("edge.facts", "".join(f"n{at:02}\tn{at + 1:02}\n" for at in range(30)))
    said = traced("--remove", 'edge("n00", "n01")', "--algorithm", "epf")
    assert max(map(len, said.splitlines())) <= 100
    assert "… 10 more" in said
    assert said.endswith("lists are cut at 20 tuples; --max-rows shows more\n")
    full = traced("--remove", 'edge("n00", "n01")', "--algorithm", "epf", "--max-rows", "100")
    assert "more" not in full
    cut = document("--remove", 'edge("n00", "n01")', "--algorithm", "dred", "--max-rows", "2")
    *_, row = cut["rows"]
    assert row["stage"] == "result"
    assert row["actual"] == [["n00", "n01"], ["n00", "n02"]]
    assert (row["truncated"], row["counts"]["actual"]) == (True, 30)
    assert cut["changes"]["tc"]["counts"] == {"added": 0, "removed": 30}


@pytest.mark.parametrize("columns", ["20", "60", "200"])
def test_the_table_fits_the_terminal(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    put("edge.facts", EDGES + "".join(f"e1\tx{at}\n" for at in range(15)))
    said = traced("--remove", 'edge("b", "d")', "--algorithm", "epf")
    tables = [line for line in said.splitlines() if line.startswith("    ") and "(b," in line]
    assert max(map(len, tables)) <= max(int(columns), 80)


def test_symbols_that_could_be_misread_are_quoted() -> None:
    said = traced("--add", 'edge("two words", "a\\"b")', "--algorithm", "epf")
    assert 'edge("two words", "a\\"b")' in said
    assert '+("two words", "a\\"b")' in said


def test_cells_break_between_pieces_and_inside_long_ones() -> None:
    assert tables.wrap(["abcdefgh", "ij"], 3) == ["abc", "def", "gh", "ij"]
    assert tables.wrap([], 3) == [""]
    assert tables.truncate(["a"], 0) == ["… 1 more"]
    rows = [[["1"], ["x" * 30], ["y" * 30]]]
    assert max(map(len, tables.table(["a", "b", "c"], rows, 40))) <= 40
    assert tables.table(["a", ""], [[["x"], [""]]], 40) == ["a", "x"]


def test_algorithms_of_the_command_line_are_those_there_are() -> None:
    assert list(map(str, SELECTABLE_ALGORITHMS)) == list(options.ALGORITHMS)


# -------------------------------------------------------------------------- updates without effect


def test_updates_without_effect_are_named() -> None:
    result = cli("tc.dl", "--add", 'edge("a", "b")', "--remove", 'edge("x", "y")')
    assert (result.exit_code, result.stdout) == (OK, "nothing has changed\n")
    assert 'edge("a", "b") was there already' in result.stderr
    assert 'edge("x", "y") was not there to be removed' in result.stderr
    assert cli("tc.dl", "--add", 'edge("a", "b")', "-q").stderr == ""
    assert document("--add", 'edge("a", "b")') == {"rows": [], "counters": {}, "changes": {}}


def test_removals_come_before_additions() -> None:
    result = cli("tc.dl", "--add", 'edge("a", "b")', "--remove", 'edge("a", "b")')
    assert (result.exit_code, result.stdout, result.stderr) == (OK, "nothing has changed\n", "")


def test_recomputation_has_no_table() -> None:
    said = traced("--remove", 'edge("b", "d")', "--algorithm", "recompute")
    assert said.startswith("no table: nothing was propagated rule by rule\n\nchanges\n")


def test_what_nobody_asks_for_is_counted() -> None:
    put("tc.dl", CLOSURE + ".decl note(x: symbol)\n")
    said = document("--add", 'note("a")')
    assert said["counters"]["note"]["irrelevant_updates"] == 1
    assert said["counters"]["note"]["reason"] == "nobody asks for it"


def test_alerts_are_shown_and_go_nowhere() -> None:
    put("tc.dl", CLOSURE + '.alert tc "new {x}"\n.alert tc "{y}" (IO=jsonlines, filename="a")\n')
    result = cli("tc.dl", "--add", 'edge("z", "a")')
    assert "alert: new z" in result.stdout.splitlines()
    assert not [each for each in Path().iterdir() if each.name == "a"]


# ------------------------------------------------------------------------- updates that do not fit

WRONG = {
    'egde("a", "b")': ("C0916", "did you mean `edge`?"),
    'other("a", "b")': ("C0916", "the relations are `edge`, `tc`"),
    'tc("a", "b")': ("C0915", "change the relations it is derived from"),
    'edge("a")': ("C0202", "2 columns"),
    'edge("a", 1)': ("C0301", 'write `"1"`'),
    'edge("a", b)': ("C0406", "write a symbol in quotes"),
    'edge("a", _)': ("C0405", "`_`"),
    'edge("a", cat("b", "c"))': ("C0919", 'as in `edge("a", "b")`'),
    "tc(x, y) :- edge(y, x).": ("C0919", "is not a tuple"),
    '+edge("a", "b")': ("C0919", "is not a tuple"),
    ".decl p(x: number)": ("C0101", ""),
    "": ("C0919", "the text is empty"),
    'edge("a", "b"': ("C0101", "never closed"),
    "edge('a', 'b')": ("C0101", "double quotes"),
}


@pytest.mark.parametrize("text", WRONG)
@pytest.mark.parametrize("option", ["--add", "--remove"])
def test_tuples_that_do_not_fit_are_explained(option: str, text: str) -> None:
    code, cure = WRONG[text]
    result = cli("tc.dl", option, text)
    assert (result.exit_code, result.stdout) == (INPUT, "")
    assert f"error[{code}]" in result.stderr
    assert cure in result.stderr
    if code != "C0919":
        assert f"--> {option}:1:" in result.stderr
    (found, *_) = json.loads(cli("tc.dl", option, text, "--format", "json").stdout)["diagnostics"]
    assert found["code"] == code


@pytest.mark.parametrize(
    ("arguments", "status", "fragment"),
    [
        ((), USAGE, "nothing changes"),
        (("--add-rule", "tc(x, y) :- nothing(x, y)."), INPUT, "C0201"),
        (("--add-rule", "tc(x, y) :- "), INPUT, "C0101"),
        (("--remove-rule", "tc(x, y) :- edge(y, x)."), INPUT, "its rules are"),
        (("--remove-rule", 'edge("a", "b").'), INPUT, "`delete`"),
        (("--add", 'edge("z", "a")', "--algorithm", "counting"), INPUT, "C0820"),
        (("--add", 'edge("z", "a")', "--algorithm", "magic"), USAGE, "--algorithm"),
        (("--add", 'edge("z", "a")', "--relation", "tc=magic"), USAGE, "link=epf"),
        (("--add", 'edge("z", "a")', "--relation", "ct=epf"), INPUT, "C0916"),
        (("--add", 'edge("z", "a")', "--watch", "edge"), INPUT, "C0917"),
        (("--add", 'edge("z", "a")', "-F", "nowhere"), INPUT, "C0804"),
        (("--add", 'edge("z", "a")', "--limit-tuples", "5"), LIMIT, "--limit-tuples"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_other_wrong_uses(arguments: tuple[str, ...], status: int, fragment: str) -> None:
    result = cli("tc.dl", *arguments)
    assert result.exit_code == status, result.output
    assert fragment in result.stderr
    assert result.stdout == ""


def test_inputs_stay_under_the_root() -> None:
    put("tc.dl", CLOSURE.replace(".input edge", '.input edge(filename="../edge.facts")'))
    Path("facts").mkdir()
    add = ("--add", 'edge("z", "a")')
    assert "C0805" in cli("tc.dl", "-F", "facts", *add).stderr
    assert cli("tc.dl", "-F", "facts", "--root", ".", *add).exit_code == OK


def test_no_file_is_changed() -> None:
    put("tc.dl", CLOSURE + ".output tc\n")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    traced("--remove", 'edge("b", "d")')
    assert {path: path.read_bytes() for path in Path().iterdir()} == before
