"""Least values and sums through recursion: evaluated, and maintained when one row goes and returns.

| workload | rows | what changes |
|---|---|---|
| paths by value | 20,000 nodes, 100,000 edges, lengths ≥ 0, one source | an edge of a path |
| paths by round | the same, lengths that may be negative as far as the rules know | the same |
| five sources | the same, from five nodes | the same |
| least labels | the least node of every component, edges in both directions | an edge of it |
| bill | sums over parts and their parts, 20,000 groups | one quantity |

A figure is the median over some rows, in seconds on the clock; beside it the median number of rows
looked up in base relations, and that of the evaluation. Evaluation and maintenance start at the
same facts, so the share is what a change costs of an evaluation from scratch. Answers are those of
Dijkstra's algorithm, of a search through components, and of a sum by descending parts, after each
row that goes and in the end.
"""

import heapq
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import corollary
from bench.data import SEED, bill
from bench.figure import Figure
from bench.workloads import BILL
from corollary.database.database import Database

NAME = "recursive-aggregates"
ABOUT = "least values and sums through recursion, and one row that goes and returns"
NODES, EDGES, WHOLES = 20_000, 100_000, 20_000
LENGTH_MAX = 100
SOURCES = 5
ROWS = 20
"""A median over so many rows that go and return."""
BAR_SHARE = 0.1

Row = tuple[int, ...]
Rows = list[Row]
Answer = dict[Row, int]
"""The value of each key."""

EDGE = """
.decl edge(x: number, y: number, w: number)
.decl source(s: number)
"""
PATHS = """
.decl answer(s: number, y: number, c: number)
answer(s, s, 0) :- source(s).
answer(s, y, c + w) :- answer(s, x, c), edge(x, y, w){condition}.
answer(s, y, a) <= answer(s, y, b) :- b <= a.
"""
LABELS = """
.decl answer(x: number, m: number)
answer(x, x) :- edge(x, _, _).
answer(x, x) :- edge(_, x, _).
answer(y, m) :- answer(x, m), edge(x, y, _).
answer(x, m) :- answer(y, m), edge(x, y, _).
answer(x, a) <= answer(x, b) :- b <= a.
"""


@dataclass(frozen=True, slots=True)
class RecursiveView:
    """A view, its facts, and what judges it.

    Attributes:
        relation: the one that loses a row and gets it back.
        solve: computes the answer from the facts.
        is_used: whether the answer depends on a row.
    """

    name: str
    program: str
    facts: dict[str, Rows]
    relation: str
    solve: Callable[[dict[str, Rows]], Answer]
    is_used: Callable[[Row, Answer], bool]


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    for view in _views(scale):
        yield from _figures(view, BAR_SHARE if scale >= 1 else None)


def _views(scale: float) -> Iterator[RecursiveView]:
    random = np.random.default_rng(SEED)
    nodes, count = max(50, int(NODES * scale)), max(250, int(EDGES * scale))
    codes = random.choice(nodes * nodes, count, replace=False)
    lengths = random.integers(0, LENGTH_MAX, count)
    edges: Rows = [
        (int(code) // nodes, int(code) % nodes, int(length))
        for code, length in zip(codes, lengths, strict=True)
    ]
    five: Rows = [(node,) for node in range(SOURCES)]
    by_value, by_round = (EDGE + PATHS.format(condition=each) for each in (", w >= 0", ""))
    for name, program, sources in (
        ("paths by value", by_value, five[:1]),
        ("paths by round", by_round, five[:1]),
        ("five sources", by_value, five),
    ):
        facts: dict[str, Rows] = {"edge": edges, "source": sources}
        yield RecursiveView(name, program, facts, "edge", shortest_paths, _is_on_path)
    facts = {"edge": edges[: nodes * 3 // 4], "source": []}
    yield RecursiveView("least labels", EDGE + LABELS, facts, "edge", least_labels, _is_next_to)
    tables = bill(max(20, int(WHOLES * scale)))
    facts = {
        name: list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        for name, table in tables.items()
    }
    yield RecursiveView("bill", BILL, facts, "uses", quantities, _is_used_in_any)


def _figures(view: RecursiveView, bar: float | None) -> Iterator[Figure]:
    facts = {name: list(rows) for name, rows in view.facts.items()}
    with corollary.open(None, engine="local") as database:
        database.load(text=view.program)
        evaluation, evaluated = _timed(database, inserts=facts)
        answer = view.solve(facts)
        wrong = [*_differences(database, answer, "after the evaluation")]
        about = f"{len(answer):,} tuples, {evaluated:,} rows read"
        yield Figure(f"{view.name}, evaluation", evaluation, "s", None, about)
        going, coming, read = [], [], []
        for row in _rows_in_use(view, answer):
            change = {view.relation: [row]}
            seconds, rows = _timed(database, deletes=change)
            going.append(seconds)
            read.append(rows)
            rest = {**facts, view.relation: [each for each in facts[view.relation] if each != row]}
            wrong += _differences(database, view.solve(rest), f"without {row}")
            seconds, rows = _timed(database, inserts=change)
            coming.append(seconds)
            read.append(rows)
        wrong += _differences(database, answer, "in the end")
        about = f"{statistics.median(read):,.0f} rows read, at most {max(read):,}"
        yield Figure(f"{view.name}, goes", statistics.median(going), "s", None, about)
        yield Figure(f"{view.name}, returns", statistics.median(coming), "s", None, "")
        share = max(map(statistics.median, (going, coming))) / evaluation
        yield Figure(f"{view.name}, share", share, "×", bar, "", differences=tuple(wrong))


def _timed(
    database: Database,
    inserts: dict[str, Rows] | None = None,
    deletes: dict[str, Rows] | None = None,
) -> tuple[float, int]:
    """Commit a change; return its seconds, and the rows that it read of base relations."""
    start = time.perf_counter()
    with database.transaction() as transaction:
        for name, rows in (deletes or {}).items():
            transaction.delete(name, rows)
        for name, rows in (inserts or {}).items():
            transaction.insert(name, rows)
    seconds = time.perf_counter() - start
    counts = (each.counts.get("base_probes", 0) for each in transaction.stats.values())
    return seconds, sum(counts)


def _rows_in_use(view: RecursiveView, answer: Answer) -> Sequence[Row]:
    """Return some rows that the answer depends on, always the same."""
    used = [row for row in view.facts[view.relation] if view.is_used(row, answer)]
    random = np.random.default_rng(SEED)
    return [used[at] for at in random.choice(len(used), min(ROWS, len(used)), replace=False)]


def _differences(database: Database, answer: Answer, when: str) -> Iterator[str]:
    found, wanted = database.relation("answer").rows(), answer
    rows = {row[:-1]: row[-1] for row in found}
    if len(found) != len(rows) or rows != wanted:
        wrong = sum(rows.get(key) != value for key, value in wanted.items())
        yield f"{when}: {wrong} of {len(wanted):,} keys have another value, {len(found):,} tuples"


# --- independent algorithms ----------------------------------------------------------------------


def shortest_paths(facts: dict[str, Rows]) -> Answer:
    """Return the length of the shortest path from each source to each node (Dijkstra 1959)."""
    after: dict[int, list[tuple[int, int]]] = {}
    for one, other, length in facts["edge"]:
        after.setdefault(one, []).append((other, length))
    found: Answer = {}
    for (source,) in facts["source"]:
        queue = [(0, source)]
        while queue:
            length, node = heapq.heappop(queue)
            if (source, node) not in found:
                found[source, node] = length
                for other, more in after.get(node, ()):
                    heapq.heappush(queue, (length + more, other))
    return found


def least_labels(facts: dict[str, Rows]) -> Answer:
    """Return the least node that each node is connected with, by a search from each least one."""
    beside: dict[int, list[int]] = {}
    for one, other, _ in facts["edge"]:
        beside.setdefault(one, []).append(other)
        beside.setdefault(other, []).append(one)
    found: Answer = {}
    for label in sorted(beside):
        work = [] if (label,) in found else [label]
        while work:
            node = work.pop()
            if (node,) not in found:
                found[node,] = label
                work += beside[node]
    return found


def quantities(facts: dict[str, Rows]) -> Answer:
    """Return what each whole needs: parts have larger numbers than what they are used in."""
    parts: dict[int, list[tuple[int, int]]] = {}
    for whole, part, quantity in facts["uses"]:
        parts.setdefault(whole, []).append((part, quantity))
    found: Answer = {(part,): needed for part, needed in facts["bought"]}
    for whole in sorted(parts, reverse=True):
        found[whole,] = sum(q * found.get((part,), 0) for part, q in parts[whole])
    return found


def _is_on_path(row: Row, answer: Answer) -> bool:
    one, other, length = row
    before, after = answer.get((0, one)), answer.get((0, other))
    return before is not None and before + length == after


def _is_next_to(row: Row, answer: Answer) -> bool:
    one, other, _ = row
    return one != other and answer[one,] in (one, other)


def _is_used_in_any(row: Row, answer: Answer) -> bool:
    return row[:1] in answer
