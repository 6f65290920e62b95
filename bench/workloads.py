"""The workloads: generated relations, a program, the query that gives the same answer, a bar."""

from collections.abc import Callable
from dataclasses import dataclass

from bench import data
from bench.data import Relations


@dataclass(frozen=True, slots=True)
class Workload:
    """One task for all contenders.

    Attributes:
        name: what `--only` takes.
        about: one line for the reader.
        relations: makes the data.
        program: rules that define the relation `answer`.
        sql: the same answer by DuckDB; None where nothing there can give it.
        bar: our seconds may be this many times DuckDB's; None is for information.
        is_race: whether the query does the same work as the program. A recursive query has one
            recursive reference, so it can confirm the answer of a non-linear program, but comparing
            its time with ours would say nothing.
    """

    name: str
    about: str
    relations: Callable[[], Relations]
    program: str
    sql: str | None = None
    bar: float | None = None
    is_race: bool = True


EDGE = ".decl edge(x: number, y: number)\n"
CLOSURE = ".decl {name}(x: number, y: number)\n{name}(x, y) :- edge(x, y).\n"
LEFT = EDGE + CLOSURE.format(name="answer") + "answer(x, z) :- answer(x, y), edge(y, z)."
RIGHT = EDGE + CLOSURE.format(name="answer") + "answer(x, z) :- edge(x, y), answer(y, z)."
BOTH = EDGE + CLOSURE.format(name="answer") + "answer(x, z) :- answer(x, y), answer(y, z)."

LEFT_CTE = """WITH RECURSIVE tc(x, y) AS (
    FROM edge UNION SELECT tc.x, edge.y FROM tc JOIN edge ON tc.y = edge.x)
"""
RIGHT_CTE = """WITH RECURSIVE tc(x, y) AS (
    FROM edge UNION SELECT edge.x, tc.y FROM edge JOIN tc ON edge.y = tc.x)
"""

GENERATION = f"""{EDGE}
.decl answer(x: number, y: number)
answer(x, y) :- edge(p, x), edge(p, y).
answer(x, y) :- edge(a, x), answer(a, b), edge(b, y).
"""
GENERATION_SQL = """WITH RECURSIVE same(x, y) AS (
    SELECT one.y, two.y FROM edge one JOIN edge two ON one.x = two.x
    UNION
    SELECT one.y, two.y FROM same JOIN edge one ON one.x = same.x JOIN edge two ON two.x = same.y)
FROM same
"""

REVENUE = """
.decl sale(id: number, product: number, store: number, amount: number)
.decl product(id: number, category: number)
.decl store(id: number, region: number)
.decl line(id: number, category: number, region: number, amount: number)
line(i, c, r, a) :- sale(i, p, s, a), product(p, c), store(s, r).
.decl answer(category: number, region: number, total: number)
answer(c, r, t) :- line(_, c, r, _), t = sum a : { line(_, c, r, a) }.
"""
REVENUE_SQL = """
SELECT category, region, sum(amount)::BIGINT
FROM sale JOIN product ON product = product.id JOIN store ON store = store.id GROUP BY ALL
"""

TEAMS = """
.decl reading(id: number, value: number)
.decl member(id: number, team: number)
.decl answer(team: number, total: number)
answer(t, s) :- member(_, t), s = sum v : { reading(i, v), member(i, t) }.
"""
TEAMS_SQL = "SELECT team, sum(value)::BIGINT FROM reading JOIN member USING (id) GROUP BY team"

BILL = """
.decl uses(p: number, s: number, q: number)
.decl bought(p: number, n: number)
.decl answer(p: number, n: number)
answer(p, n) :- bought(p, n).
answer(p, n) :- uses(p, _, _), n = sum q * m : { uses(p, s, q), answer(s, m) }.
"""
BILL_SQL = """WITH RECURSIVE below(p, s, q) AS (
SELECT p, s, q FROM uses
UNION ALL SELECT below.p, uses.s, below.q * uses.q FROM below JOIN uses ON below.s = uses.p
) SELECT p, n FROM bought
UNION ALL SELECT whole.p, coalesce(sum(q * n), 0)::BIGINT
FROM (SELECT DISTINCT p FROM uses) whole LEFT JOIN below ON below.p = whole.p
LEFT JOIN bought ON bought.p = below.s GROUP BY whole.p"""

UNREACHABLE = f"""{EDGE}{CLOSURE.format(name="tc")}
tc(x, z) :- tc(x, y), edge(y, z).
.decl node(x: number)
node(x) :- edge(x, _).
node(x) :- edge(_, x).
.decl answer(x: number, y: number)
answer(x, y) :- node(x), node(y), !tc(x, y).
"""
UNREACHABLE_SQL = f"""{LEFT_CTE}, node(x) AS (SELECT x FROM edge UNION SELECT y FROM edge)
SELECT one.x, two.x AS y FROM node one, node two
WHERE NOT EXISTS (FROM tc WHERE tc.x = one.x AND tc.y = two.x)
"""

POINTS_TO = """
.decl new(v: number, object: number)
.decl assign(to: number, from: number)
.decl load(to: number, base: number, field: number)
.decl store(base: number, field: number, from: number)
.decl answer(v: number, object: number)
answer(v, o) :- new(v, o).
answer(v, o) :- assign(v, w), answer(w, o).
answer(v, o) :- load(v, b, f), answer(b, p), heap(p, f, o).
.decl heap(base: number, field: number, object: number)
heap(p, f, o) :- store(b, f, w), answer(b, p), answer(w, o).
"""


def workloads(scale: float = 1.0) -> tuple[Workload, ...]:
    """Return all workloads; bars are meant for a scale of 1."""

    def size(full: int) -> int:
        return max(10, round(full * scale))

    def sparse() -> Relations:
        return data.random_graph(size(1500), size(3000))

    def dense() -> Relations:
        return data.random_graph(size(1500), size(6000))

    def local() -> Relations:
        return data.local_dag(size(3000), size(9000), reach=60)

    def tree() -> Relations:
        return data.random_tree(size(100_000))

    left = f"{LEFT_CTE} FROM tc"
    right = f"{RIGHT_CTE} FROM tc"
    return (
        Workload("tc-random-3000", "closure, 1,500 nodes, 3,000 edges", sparse, LEFT, left, 2.0),
        Workload("tc-random-6000", "closure, 1,500 nodes, 6,000 edges", dense, LEFT, left, 2.0),
        Workload("tc-dag", "closure of a DAG, 3,000 nodes, 9,000 edges", local, LEFT, left, 2.0),
        Workload("tc-tree", "closure of a tree, 100,000 nodes", tree, LEFT, left, 2.5),
        Workload("tc-right", "right-linear closure, as tc-random-3000", sparse, RIGHT, right),
        Workload(
            "tc-nonlinear",
            "non-linear closure, 500 nodes, 1,000 edges",
            lambda: data.random_graph(size(500), size(1000)),
            BOTH,
            left,
            is_race=False,
        ),
        Workload(
            "same-generation",
            "same generation on a tree, 3,000 nodes",
            lambda: data.random_tree(size(3000)),
            GENERATION,
            GENERATION_SQL,
        ),
        Workload(
            "join-sum",
            "three-way join with sum, 1,000,000 rows",
            lambda: data.sales(size(1_000_000), size(10_000), size(500)),
            REVENUE,
            REVENUE_SQL,
            2.0,
        ),
        Workload(
            "unreachable",
            "negation over the closure of tc-random-3000",
            sparse,
            UNREACHABLE,
            UNREACHABLE_SQL,
        ),
        Workload(
            "points-to",
            "Andersen's analysis, 100,000 variables",
            lambda: data.heap(size(100_000)),
            POINTS_TO,
        ),
    )
