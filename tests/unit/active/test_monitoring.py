"""Monitoring: what the paper's optimisations change, and what they do not."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.active.events import required_changes
from corollary.active.optimise import optimise
from corollary.core.monitoring_optimisations import MonitoringOptimisation
from corollary.core.plans import Derive, steps_of
from corollary.core.printer import print_rule
from corollary.database.database import Database
from corollary.database.program.loaded_program import load_program
from corollary.errors import InputError
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from oracles.active_rules import react
from support.command_line import OK, cli, of_json
from support.selection import sampled

EVERY = tuple(MonitoringOptimisation)

CLOSURES = {
    "left": "link(x, y) :- edge(x, y).\nlink(x, z) :- link(x, y), edge(y, z).\n",
    "right": "link(x, y) :- edge(x, y).\nlink(x, z) :- edge(x, y), link(y, z).\n",
    "doubled": "link(x, y) :- edge(x, y).\nlink(x, z) :- link(x, y), link(y, z).\n",
    "mutual": "link(x, y) :- edge(x, y).\nlink(x, z) :- odd(x, y), edge(y, z).\n"
    ".decl odd(x: number, y: number) virtual\nodd(x, y) :- link(x, y).\n",
}
DECLARED = ".decl edge(x: number, y: number)\n.decl link(x: number, y: number) virtual\n"

VESSELS = """\
.decl in_use(v: symbol)
.decl temp(v: symbol, t: number)
.decl max_temp(v: symbol, t: number)
.decl violation(v: symbol) virtual
.decl abnormal(v: symbol) virtual
abnormal(v) :- in_use(v), violation(v).
violation(v) :- temp(v, t), max_temp(v, m), t > m.
failure("v5") :- +abnormal("v5").
.alert failure "vessel {c1} may fail"
"""

GENERATIONS = """\
.decl par(x: number, y: number)
.decl sg(x: number, y: number) virtual
sg(x, y) :- par(x, p), par(y, p).
sg(x, y) :- sg(x, x1), par(x1, xp), sg(xp, yp), par(y1, yp), sg(y1, y).
met(x, y) :- +sg(x, y).
parted(x, y) :- -sg(x, y).
.alert met "{x} and {y} met"
.alert parted "{x} and {y} parted"
"""


def opened(text: str, without: Iterable[str] = (), **options: Any) -> Database:
    db = corollary.open(None, engine="local", without=without, **options)
    db.load(text=text)
    return db


def alerts(tx: Any) -> list[tuple[Any, ...]]:
    return sorted((each.event, tuple(each.row), each.message) for each in tx.alerts)


def watching(constants: Iterable[int], column: int = 0) -> str:
    """Alerts on links of single nodes, all alike but for the node."""
    lines = []
    for node in constants:
        slots = f"{node}, y" if not column else f"y, {node}"
        lines.append(f'lost{node}(y) :- -link({slots}).\n.alert lost{node} "lost {{y}}"\n')
        lines.append(f"won{node}(y, {node}) :- +link({slots}), y != {node}.\n")
        lines.append(f'.alert won{node} "{node} won {{y}}"\n')
    return "".join(lines)


# ------------------------------------------------------------------------------- nothing is changed


@pytest.mark.parametrize("left_out", [*((each,) for each in EVERY), EVERY], ids=repr)
@pytest.mark.parametrize("closure", sampled(CLOSURES, 7))
def test_optimisations_change_no_alert(closure: str, left_out: tuple[str, ...]) -> None:
    constants, column = ((1, 4), 0) if closure == "left" else ((2,), 1)
    text = DECLARED + CLOSURES[closure] + watching(constants, column)
    text += 'both(x, y) :- -link(x, 3), +link(x, y), !link@old(y, x).\n.alert both "{x} {y}"\n'
    seeded = random.Random(f"{closure} {left_out}")
    db = opened(text, left_out)
    base: dict[str, set[tuple[int, int]]] = {"edge": set()}
    fired = 0
    for _ in range(16):
        step = [
            (seeded.choice("++-"), "edge", (seeded.randrange(5), seeded.randrange(5)))
            for _ in range(3)
        ]
        with db.transaction() as tx:
            for sign, name, row in step:
                (tx.insert if sign == "+" else tx.delete)(name, [row])
        outcome = react(text, base, step)
        wanted = sorted((each.event, tuple(each.row), each.message) for each in outcome.alerts)
        assert alerts(tx) == wanted, step
        base = outcome.base
        fired += len(wanted)
        assert db._state.engine.size("link") == 0
    assert fired


# ---------------------------------------------------------------------------- partial evaluation


def test_changes_for_other_vessels_are_dropped_at_the_base() -> None:
    vessels = [f"v{number}" for number in range(10)]
    for without, dropped in ((), 9), (("specialisation",), 0):
        db = opened(VESSELS, without)
        with db.transaction() as tx:
            tx.insert("in_use", [(v,) for v in vessels])
            tx.insert("max_temp", [(v, 100) for v in vessels])
            tx.insert("temp", [(v, 90) for v in vessels])
        with db.transaction() as tx:
            tx.insert("temp", [(v, 120) for v in vessels])
        assert alerts(tx) == [("failure", ("v5",), "vessel v5 may fail")]
        counted = {name: each.counts for name, each in tx.stats.items()}
        watched = "violation" if without else "violation.for1"
        assert set(counted) == {watched, watched.replace("violation", "abnormal")}
        assert counted[watched].get("irrelevant_updates", 0) == dropped
        assert counted[watched]["approximated"] == (10 if without else 1)


def normal_of(text: str) -> Any:
    return load_program(parse(SourceFile("program", text))).normal


BOTH_WAYS = "link(x, y) :- edge(x, y).\nlink(x, z) :- edge(x, y), link(z, y).\n"


def test_a_view_is_copied_unless_its_calls_bind_no_argument_in_common() -> None:
    for closure, text in {**CLOSURES, "both ways": BOTH_WAYS}.items():
        for slots in ("3, y", "y, 3"):
            lost = f'lost(y) :- -link({slots}).\n.alert lost "{{y}}"\n'
            formed = optimise(normal_of(DECLARED + text + lost))
            is_copied = any(name.startswith("link.for") for name in formed.relations)
            assert is_copied == (closure != "both ways"), (closure, slots)
            has_magic = any(name.startswith("link.magic") for name in formed.relations)
            assert has_magic == (closure in ("doubled", "mutual"))


def test_a_recursion_that_reads_itself_twice_is_copied_by_magic_sets() -> None:
    text = DECLARED + CLOSURES["doubled"] + 'lost(y) :- -link(3, y).\n.alert lost "{y}"\n'
    formed = optimise(normal_of(text))
    made = [rule for rule in formed.rules if rule.origin.passes[-1:] == ("magic_sets",)]
    assert list(formed.constants.values()) == [((3,),)]
    assert {re.sub("`?constants [0-9a-f]+`?", "given", print_rule(rule)) for rule in made} == {
        "link.magic1(`seed'`) :- given(`seed'`).",
        "link.magic1(y) :- link.magic1(x), link.for1(x, y).",
        "link.for1(x, y) :- link.magic1(x), edge(x, y).",
        "link.for1(x, z) :- link.magic1(x), link.for1(x, y), link.for1(y, z).",
    }


def test_several_constants_share_one_copy() -> None:
    formed = optimise(normal_of(DECLARED + CLOSURES["left"] + watching(range(50))))
    assert [name for name in formed.relations if name.startswith("link.for")] == ["link.for1"]
    assert sorted(len(rows) for rows in formed.constants.values()) == [50, 50, 50]
    assert len(set(formed.active.merged.values())) == 2
    assert required_changes(formed.active, set(formed.active.merged.values())).keys() == {
        "link.for1"
    }


def test_a_view_that_is_asked_for_as_a_whole_is_not_copied() -> None:
    text = DECLARED + CLOSURES["left"] + watching([1])
    whole = "".join(f"any{at}(x) :- {sign}link(x, _).\n" for at, sign in enumerate("+-"))
    for more in (whole, '.alert link "{x}"\n'):
        reacting = {"link"} if "alert link" in more else set()
        assert "link.for1" not in optimise(normal_of(text + more), reacting).relations
    # Only what is lost is asked for as a whole: the rule of what is won still has its copy.
    formed = optimise(normal_of(text + "any(x) :- -link(x, _).\n"))
    read = {each.relation for rule in formed.active.rules for each in rule.literals}
    assert {"+link.for1", "-link"} <= read
    assert "-link.for1" not in read
    stored = text.replace(" virtual", "")
    assert "link.for1" not in optimise(normal_of(stored)).relations
    db = opened(text)
    assert "link.for1" in db._state.planned_program.relations
    db.watch("link")
    assert "link.for1" not in db._state.planned_program.relations


CONSTANT_USES = {
    "stored": ".decl from_a(y: number)\nfrom_a(y) :- link(1, y).\n",
    "virtual": ".decl from_a(y: number) virtual\nfrom_a(y) :- link(1, y).\n",
    "equation": ".decl from_a(x: number, y: number)\nfrom_a(x, y) :- link(x, y), x = 1.\n",
    "two views": ".decl half(y: number) virtual\nhalf(y) :- link(1, y).\n"
    ".decl from_a(y: number)\nfrom_a(y) :- half(y), !link(2, y).\n",
    "event": "from_a(x, y) :- -link(x, y), 1 = x.\n",
}


@pytest.mark.parametrize("use", CONSTANT_USES)
@pytest.mark.parametrize("closure", CLOSURES)
def test_an_edge_that_the_constant_cannot_reach_filters_nothing(closure: str, use: str) -> None:
    text = DECLARED + CLOSURES[closure] + CONSTANT_USES[use]
    if use == "event":
        text += '.alert from_a "{y}"\n'
    edges = [(at, at + 1) for at in (1, 2, 3, 4, 11, 12, 13, 14)]
    for without in ((), ("specialisation",)):
        db = opened(text, without)
        if use == "virtual":
            db.watch("from_a")
        for some in (edges[:1], edges[1:]):
            with db.transaction() as tx:
                tx.insert("edge", some)
        with db.transaction() as tx:
            tx.delete("edge", [(13, 14)])
        filtered = sum(each.counts.get("filtered", 0) for each in tx.stats.values())
        assert bool(filtered) == bool(without)
        with db.transaction() as tx:
            tx.delete("edge", [(3, 4)])
        lost = {4, 5} - ({4, 5} if use == "two views" else set())
        if "from_a" in tx.changes:
            assert {row["y"] for row in tx.changes["from_a"].removed.to_pylist()} == lost
        elif use == "event":
            assert {each.row[1] for each in tx.alerts} == lost


@pytest.mark.slow
@pytest.mark.parametrize("closure", ["left", "right", "doubled", "mutual"])
def test_constants_in_views_change_no_tuple(closure: str) -> None:
    text = DECLARED + CLOSURES[closure]
    text += "".join(
        f".decl {name}(y: number){more}\n"
        for name, more in (
            ("from_one", ""),
            ("from_two", " virtual"),
            ("to_three", ""),
            ("apart", ""),
        )
    )
    text += "from_one(y) :- link(1, y).\nfrom_two(y) :- link(x, y), x = 2, from_one(x).\n"
    text += "to_three(x) :- link(x, 3), !link(x, 0).\napart(y) :- from_two(y), !link(1, y).\n"
    db, plain = opened(text), opened(text, ["specialisation"])
    for each in (db, plain):
        each.watch("from_two")
    seeded = random.Random(closure)
    for _ in range(25):
        told = []
        edges = [(seeded.randrange(5), seeded.randrange(5)) for _ in range(3)]
        for each in (db, plain):
            with each.transaction() as tx:
                tx.insert("edge", edges[:2] if _ % 3 else [])
                tx.delete("edge", edges[1 if _ % 3 else 0 :])
            told.append({name: change.as_json() for name, change in tx.changes.items()})
        assert told[0] == told[1]
        names = ("from_one", "from_two", "to_three", "apart")
        assert [db.relation(n).rows() for n in names] == [plain.relation(n).rows() for n in names]


# -------------------------------------------------------------------- relevance, polarity, order


def test_what_nobody_asks_for_is_not_computed() -> None:
    text = DECLARED + CLOSURES["left"] + 'lost(x, y) :- -link(x, y).\n.alert lost "{x} {y}"\n'
    for without, is_idle in ((), True), (("polarity",), False), (("relevance",), False):
        db = opened(text, without)
        with db.transaction() as tx:
            tx.insert("edge", [(1, 2), (2, 3)])
        assert (set(tx.stats) == {"edge"}) == is_idle
        if is_idle:
            assert tx.stats["edge"].counts["irrelevant_updates"] == 2


def free_calls(db: Database) -> list[str]:
    """What the plans of a database ask without a binding."""
    return sorted(
        {
            step.target
            for each in db._state.planner._plans.values()
            for made in each.by_algorithms.values()
            for step in steps_of(made.plan)
            if isinstance(step, Derive) and step.target.startswith("sg^ff")
        }
    )


def test_same_generation_never_asks_for_all_of_it() -> None:
    for without, is_asked in ((), False), (("sip",), True):
        db = opened(GENERATIONS, without)
        with db.transaction() as tx:
            tx.insert("par", [(number, number // 2) for number in range(2, 16)])
        with db.transaction() as tx:
            tx.delete("par", [(9, 4)])
            tx.insert("par", [(9, 2)])
        assert bool(free_calls(db)) == is_asked
        assert ("met", (9, 5), "9 and 5 met") in alerts(tx)
        assert ("parted", (8, 9), "8 and 9 parted") in alerts(tx)


def test_one_edge_under_same_generation_asks_for_little() -> None:
    """A tree of 63 nodes: 10 million probes, before equal rows were merged on the way."""
    db = opened(GENERATIONS)
    with db.transaction() as tx:
        tx.insert("par", [(number, number // 2) for number in range(2, 64)])
    for change in ("delete", "insert"):
        with db.transaction() as tx:
            getattr(tx, change)("par", [(63, 31)])
        assert len(alerts(tx)) == 63
        assert tx.stats["sg"].counts["base_probes"] < 100_000


@pytest.mark.parametrize("closure", ["left", "right"])
def test_one_edge_under_a_closure_asks_for_its_ancestors_once(closure: str) -> None:
    """A chain: who reaches its end is found by walking up, without what reaches those between."""
    text = DECLARED + CLOSURES[closure] + 'lost(x, y) :- -link(x, y).\n.alert lost "{x} {y}"\n'
    db = opened(text)
    with db.transaction() as tx:
        tx.insert("edge", [(at, at + 1) for at in range(300)])
    with db.transaction() as tx:
        tx.delete("edge", [(299, 300)])
    assert len(alerts(tx)) == 300
    assert tx.stats["link"].counts["base_probes"] < 5_000


def test_sharing_and_minimising_show_in_the_counters() -> None:
    """A diamond after another: what is approximated along two ways is filtered once."""
    text = DECLARED + CLOSURES["left"] + 'lost(x, y) :- -link(x, y).\n.alert lost "{x} {y}"\n'
    diamonds = [(at - 1, at) for at in (4, 8, 12)]
    diamonds += [
        edge
        for at in range(0, 12, 4)
        for edge in (
            (at, at + 1),
            (at + 1, at + 4),
            (at, at + 2),
            (at + 2, at + 3),
            (at + 3, at + 4),
        )
    ]
    refiltered = {}
    for without in ((), ("minimising",), ("sharing", "minimising")):
        db = opened(text, without)
        with db.transaction() as tx:
            tx.insert("edge", [(-1, 0), *diamonds])
        with db.transaction(is_traced=True) as tx:
            tx.delete("edge", [(-1, 0)])
        assert len(alerts(tx)) == 13
        refiltered[without] = tx.stats["link"].counts["refiltered"]
    assert refiltered[()] == 0
    assert refiltered["minimising",] > 0
    assert refiltered["sharing", "minimising"] > 0


def test_an_unknown_optimisation_is_refused() -> None:
    with pytest.raises(InputError, match=r"C1053.*`speed`"):
        corollary.open(None, engine="local", without=["speed"])


# ------------------------------------------------------------------------------- nothing is stored


def test_a_monitored_view_is_not_stored(tmp_path: Path) -> None:
    text = DECLARED + CLOSURES["left"] + watching([0, 3])
    text += 'many(n) :- -link(_, _), n = count : { link@old(_, _) }.\n.alert many "{n}"\n'
    with corollary.open(tmp_path / "w", engine="local") as db:
        db.load(text=text)
        with db.transaction() as tx:
            tx.insert("edge", [(at, at + 1) for at in range(20)])
        with db.transaction() as tx:
            tx.delete("edge", [(4, 5)])
        assert len([each for each in tx.alerts if each.event == "lost3"]) == 16
        assert db._store is not None
        db._store.fold(db._state)
        catalog = db._store.warehouse.catalog
        stored = {each.relation for _, each in catalog.changes(0, db.commits)}
        stored |= set(catalog.latest_snapshots(db.commits))
        assert stored == {"edge", "link•watched"}  # the changes, for the history
        for name in db._state.engine.relations:
            if name not in ("edge", *db._state.planned_program.constants):
                assert db._state.engine.size(name) == 0, name


# ----------------------------------------------------------------------------------- explain


def test_explain_shows_what_is_watched(tmp_path: Path) -> None:
    program = tmp_path / "vessels.dl"
    program.write_text(VESSELS)
    text = cli("explain", str(program), "--added", "temp").output
    assert "event failure: reads +abnormal.for1; alert" in text
    assert 'violation.for1() :- temp("v5", t)' in text
    document = of_json(cli("explain", str(program), "--added", "temp", "--format", "json"))
    assert document["events"] == [
        {"event": "failure", "reads": ["+abnormal.for1"], "reactions": ["alert"]}
    ]
    plain = cli("explain", str(program), "--added", "temp", "--without", "specialisation")
    assert plain.exit_code == OK
    assert "for1" not in plain.output


def test_explain_says_how_copies_were_made(tmp_path: Path) -> None:
    program = tmp_path / "links.dl"
    for closure, made in (("left", "specialise"), ("doubled", "magic_sets")):
        program.write_text(DECLARED + CLOSURES[closure] + CONSTANT_USES["stored"])
        shown = cli("explain", str(program), "--removed", "edge", "--watch", "from_a").output
        lines = shown.splitlines()
        (copy,) = (line for line in lines if line.startswith("stratum link.for1 (virtual)"))
        assert copy.endswith(f"rules, copied by {made}")


def test_explain_shows_the_order_of_the_text_without_data(tmp_path: Path) -> None:
    program = tmp_path / "generations.dl"
    program.write_text(GENERATIONS)
    for more in (["--removed", "par"], ["--goal", "sg(x, 1)"]):
        ordered, plain = (
            cli("explain", str(program), *more, *without).output
            for without in ((), ("--without", "sip"))
        )
        assert "sg^ff" in plain
        assert "sg^ff" not in ordered
