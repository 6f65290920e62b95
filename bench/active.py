"""What monitoring costs: alerts on views that are stored nowhere.

| figure | how it is taken |
|---|---|
| 1,000 rules | that many alerts, each on one node of a virtual closure, against one of them alone |
| virtual | alerts on all of a virtual closure, against keeping that closure stored, without any |
| −optimisation | a workload without one of the paper's optimisations, against all of them |

A change is an edge that goes (`−`) or comes (`+`), one a transaction. What is compared are the
transactions that concern the one rule: it watches a node that reaches many, and the edges are
among those that it reaches. Contenders take turns; their alerts have to be the same. Seconds are
those of the processor: all of this runs in one thread.
"""

import random
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import corollary
from bench.data import random_graph, random_tree
from bench.figure import Figure
from corollary.core.arrow import to_python
from corollary.core.monitoring_optimisations import MonitoringOptimisation
from corollary.database.database import Database, state_of

NAME = "active"
ABOUT = "alerts on views that are stored nowhere, changes of one edge"

RULES = 1_000
CHANGES = 20
TURNS = 2
"""So often the changes are made before any time is taken, and again while it is."""

Edge = tuple[int, int]
Told = frozenset[tuple[str, tuple[Any, ...]]]

CLOSURE = """
.decl edge(x: number, y: number)
.decl link(x: number, y: number) virtual
link(x, y) :- edge(x, y).
link(x, z) :- link(x, y), edge(y, z).
"""
EVERY_LINK = """
lost(x, y) :- -link(x, y).
won(x, y) :- +link(x, y).
.alert lost "lost {x} -> {y}"
.alert won "won {x} -> {y}"
"""
COUSINS = """
.decl edge(x: number, y: number)
.decl cousin(x: number, y: number) virtual
cousin(x, y) :- edge(p, x), edge(p, y).
cousin(x, y) :- cousin(x, x1), edge(xp, x1), cousin(xp, yp), edge(yp, y1), cousin(y1, y).
met(x, y) :- +cousin(x, y).
parted(x, y) :- -cousin(x, y).
.alert met "{x} and {y} met"
.alert parted "{x} and {y} parted"
"""
VESSELS = """
.decl edge(v: number, t: number)
.decl limit(v: number, t: number)
.decl violation(v: number) virtual
.decl abnormal(v: number) virtual
violation(v) :- edge(v, t), limit(v, m), t > m.
abnormal(v) :- limit(v, _), violation(v).
failure(5) :- +abnormal(5).
.alert failure "vessel {c1} may fail"
limit(v, 100) :- edge(v, _).
"""
COUNTERS = ("propagated", "filtered", "refiltered", "base_probes", "irrelevant_updates")


@dataclass(slots=True)
class Monitor:
    """A database that is changed, what it has told so far, and the seconds it took for that."""

    name: str
    database: Database
    seconds: dict[str, float] = field(default_factory=lambda: {"delete": 0.0, "insert": 0.0})
    counts: dict[str, int] = field(default_factory=dict)
    alerts: int = 0

    @classmethod
    def on(
        cls, name: str, program: str, edges: Collection[Edge], without: Iterable[str] = ()
    ) -> "Monitor":
        """Return one that has a program and edges."""
        database = corollary.open(None, engine="local", without=without)
        database.load(text=program)
        with database.transaction() as transaction:
            transaction.insert("edge", edges)
        return cls(name, database)

    def change(self, verb: str, edges: Sequence[Edge]) -> Any:
        """Make one transaction, and return it."""
        began = time.process_time()
        with self.database.transaction() as transaction:
            getattr(transaction, verb)("edge", edges)
        self.seconds[verb] += time.process_time() - began
        self.alerts += len(transaction.alerts)
        for stats in transaction.stats.values():
            for name in COUNTERS:
                self.counts[name] = self.counts.get(name, 0) + stats.counts.get(name, 0)
        return transaction

    def begin(self) -> None:
        """Forget the time taken so far, and what was counted."""
        self.seconds = dict.fromkeys(self.seconds, 0.0)
        self.counts, self.alerts = {}, 0


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    nodes = int(5_000 * scale)
    tree: list[Any] = to_python(random_tree(nodes)["edge"])
    graph: list[Any] = to_python(random_graph(nodes, nodes)["edge"])
    for name, edges in (("tree", tree), ("graph", graph)):
        yield from _many(name, edges, nodes)
    yield from _virtual(tree)
    yield from _optimisations(scale)


def _many(name: str, edges: Sequence[Edge], nodes: int) -> Iterator[Figure]:
    """Compare a thousand rules with one of them."""
    reached = _reached(edges, range(min(RULES, nodes)))
    first = max(reached, key=lambda node: len(reached[node]))
    seeded = random.Random(1)
    others = [node for node in range(nodes) if node != first]
    watched = [first, *seeded.sample(others, min(RULES, nodes) - 1)]
    concerning = [edge for edge in edges if edge[0] == first or edge[0] in reached[first]]
    changes = seeded.sample(concerning, min(CHANGES, len(concerning)))
    for sign, verb in (("−", "delete"), ("+", "insert")):
        many, one = (
            Monitor.on(f"{len(each):,} rules", CLOSURE + _watching(each, sign), edges)
            for each in (watched, [first])
        )
        differences = _turns([many, one], changes, lambda told: _of(told, f"e{first}"))
        value = many.seconds[verb] / one.seconds[verb]
        times = " against ".join(_each(one_of, verb, changes) for one_of in (many, one))
        about = f"{times}; {many.alerts:,} against {one.alerts:,} alerts"
        yield Figure(f"{RULES:,} rules, {name} {sign}", value, "x", 3.0, about, False, differences)


def _virtual(edges: Sequence[Edge]) -> Iterator[Figure]:
    """Compare the monitoring of a virtual closure with the maintenance of a stored one."""
    changes = random.Random(1).sample(edges, min(CHANGES, len(edges)))
    virtual = Monitor.on("virtual", CLOSURE + EVERY_LINK, edges)
    stored = Monitor.on("stored", CLOSURE.replace(" virtual", ""), edges)
    differences = _turns([virtual, stored], changes, lambda told: told)
    differences += _kept(virtual.database)
    for sign, verb in (("−", "delete"), ("+", "insert")):
        value = virtual.seconds[verb] / stored.seconds[verb]
        about = " against ".join(_each(each, verb, changes) for each in (virtual, stored))
        yield Figure(f"virtual, tree {sign}", value, "x", 2.0, about, False, differences)


def _optimisations(scale: float) -> Iterator[Figure]:
    """Leave out one optimisation after the other."""
    count = max(2, int(10 * scale))
    diamonds = [(0, 1), *(edge for at in range(count) for edge in _diamond(4 * at + 1))]
    family = [(number // 2, number) for number in range(2, 3 * count)]
    vessels = [(vessel, 90) for vessel in range(100 * count)]
    closure = CLOSURE + _watching(range(2 * count), "−")
    yield from _without("closure", closure, diamonds, [diamonds[0], diamonds[2 * count]])
    yield from _without("cousins", COUSINS, family, family[-2:])
    hot = [(vessel, 120) for vessel, _ in vessels]
    yield from _without("vessels", VESSELS, vessels, [hot])


def _without(
    name: str, program: str, edges: Sequence[Edge], changes: Sequence[Any]
) -> Iterator[Figure]:
    monitors = [Monitor.on("all", program, edges)]
    monitors += [Monitor.on(f"−{each}", program, edges, [each]) for each in MonitoringOptimisation]
    differences = _turns(monitors, changes, lambda told: told)
    for each in monitors:
        taken = 1_000 * sum(each.seconds.values()) / (2 * TURNS * len(changes))
        counted = ", ".join(
            f"{counter} {each.counts[counter]:,}"
            for counter in COUNTERS
            if each is monitors[0] or each.counts[counter] != monitors[0].counts[counter]
        )
        yield Figure(f"{name} {each.name}", taken, "ms", None, counted, False, differences)


def _turns(monitors: Sequence[Monitor], changes: Sequence[Any], seen: Any) -> tuple[str, ...]:
    """Let all make the same changes and undo them; return where what they tell differs."""
    differences: list[str] = []
    for turn in range(2 * TURNS):
        if turn == TURNS:
            for each in monitors:
                each.begin()
        for number, change in enumerate(changes):
            edges = change if isinstance(change, list) else [change]
            verbs = ("delete", "insert") if not isinstance(change, list) else ("insert", "delete")
            for verb in verbs:
                told = [seen(_told(each.change(verb, edges))) for each in monitors]
                differences += [
                    f"{verb} {number} in turn {turn + 1}: {other.name} tells {len(found):,} "
                    f"tuples, {monitors[0].name} {len(told[0]):,}, and not the same"
                    for other, found in zip(monitors, told, strict=True)
                    if found != told[0]
                ]
    return tuple(differences[:3])


def _told(transaction: Any) -> Told:
    """Return what a transaction tells: its alerts, or without any, the changes of its view."""
    if transaction.alerts or "link" not in transaction.changes:
        return frozenset((each.event, tuple(each.row)) for each in transaction.alerts)
    change = transaction.changes["link"]
    signed = (("won", change.added), ("lost", change.removed))
    return frozenset((event, row) for event, rows in signed for row in to_python(rows))


def _of(told: Told, event: str) -> Told:
    return frozenset(each for each in told if each[0] == event)


def _watching(nodes: Iterable[int], sign: str) -> str:
    mark = "-" if sign == "−" else "+"
    return "".join(
        f'e{node}(y) :- {mark}link({node}, y).\n.alert e{node} "{node} and {{y}}"\n'
        for node in nodes
    )


def _kept(database: Database) -> tuple[str, ...]:
    """Say which relations hold tuples although only edges are to be stored."""
    engine: Any = state_of(database).engine
    allowed = {"edge", *state_of(database).planned_program.constants}
    held = [name for name in engine.relations if name not in allowed and engine.size(name)]
    return tuple(f"`{name}` holds {engine.size(name):,} tuples" for name in held)


def _each(monitor: Monitor, verb: str, changes: Sequence[Any]) -> str:
    return f"{1_000 * monitor.seconds[verb] / (TURNS * len(changes)):.1f} ms"


def _diamond(at: int) -> list[Edge]:
    """Return two ways from a node to the next one, of different length."""
    return [(at, at + 1), (at + 1, at + 4), (at, at + 2), (at + 2, at + 3), (at + 3, at + 4)]


def _reached(edges: Iterable[Edge], nodes: Iterable[int]) -> Mapping[int, set[int]]:
    """Return what nodes reach."""
    after: dict[int, list[int]] = {}
    for x, y in edges:
        after.setdefault(x, []).append(y)
    found: dict[int, set[int]] = {}
    for node in nodes:
        seen: set[int] = set()
        work = [node]
        while work:
            new = [each for each in after.get(work.pop(), ()) if each not in seen]
            seen.update(new)
            work += new
        found[node] = seen
    return found
