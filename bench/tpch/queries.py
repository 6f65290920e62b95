"""Queries 1, 3, 5, 6 and 10 of TPC-H, as far as the language has what they ask for.

There is no order and no `LIMIT`: an answer is a set. Products of decimals are rounded to two digits
after the point, as the language does it, which SQL has to say.
"""

from bench.data import Relations
from bench.tpch.data import tables
from bench.workloads import Workload

GROUP = "tpch-like"
LINES = 1_000_000
BAR = 2.0

TABLES = """
.decl lineitem(order: {key}, line: number, part: {key}, supplier: {key}, quantity: number,
    price: decimal(12, 2), discount: decimal(12, 2), tax: decimal(12, 2), flag: symbol,
    status: symbol, shipped: date) key(order, line)
.decl orders(id: {key}, customer: {key}, day: date, priority: number) key(id)
.decl customer(id: {key}, name: symbol, nation: number, segment: symbol,
    balance: decimal(12, 2)) key(id)
.decl supplier(id: {key}, nation: number) key(id)
.decl part(id: {key}, brand: symbol) key(id)
.decl nation(id: number, name: symbol, region: symbol) key(id)
"""

SUMMARY = """
.decl shipped(order: {key}, line: number, flag: symbol, status: symbol, quantity: number,
    price: decimal(18, 2), net: decimal(18, 2), gross: decimal(18, 2))
shipped(o, l, f, s, q, p, p * (1 - d), p * (1 - d) * (1 + t)) :-
    lineitem(o, l, _, _, q, p, d, t, f, s, day), day <= d"1998-01-15".
.decl answer(flag: symbol, status: symbol, quantity: number, price: decimal(18, 2),
    net: decimal(18, 2), gross: decimal(18, 2), average: float, lines: number)
answer(f, s, quantity, price, net, gross, average, n) :-
    shipped(_, _, f, s, _, _, _, _),
    quantity = sum q : { shipped(_, _, f, s, q, _, _, _) },
    price = sum p : { shipped(_, _, f, s, _, p, _, _) },
    net = sum x : { shipped(_, _, f, s, _, _, x, _) },
    gross = sum x : { shipped(_, _, f, s, _, _, _, x) },
    average = mean q : { shipped(_, _, f, s, q, _, _, _) },
    n = count : { shipped(_, _, f, s, _, _, _, _) }.
"""
SUMMARY_SQL = """
SELECT flag, status, sum(quantity)::BIGINT, sum(price)::DECIMAL(18, 2), sum(net)::DECIMAL(18, 2),
    sum((net * (1 + tax))::DECIMAL(18, 2))::DECIMAL(18, 2), avg(quantity), count(*)
FROM (
    SELECT *, (price * (1 - discount))::DECIMAL(18, 2) AS net
    FROM lineitem WHERE shipped <= DATE '1998-01-15')
GROUP BY ALL
"""

UNSHIPPED = """
.decl open(order: {key}, line: number, day: date, priority: number, net: decimal(18, 2))
open(o, l, day, priority, p * (1 - d)) :-
    customer(c, _, _, "BUILDING", _), orders(o, c, day, priority), day < d"1995-03-15",
    lineitem(o, l, _, _, _, p, d, _, _, _, shipped), shipped > d"1995-03-15".
.decl answer(order: {key}, day: date, priority: number, revenue: decimal(18, 2))
answer(o, day, priority, r) :-
    open(o, _, day, priority, _), r = sum x : { open(o, _, day, priority, x) }.
"""
UNSHIPPED_SQL = """
SELECT orders.id, day, priority, sum((price * (1 - discount))::DECIMAL(18, 2))::DECIMAL(18, 2)
FROM customer JOIN orders ON orders.customer = customer.id
JOIN lineitem ON lineitem."order" = orders.id
WHERE segment = 'BUILDING' AND day < DATE '1995-03-15' AND shipped > DATE '1995-03-15' GROUP BY ALL
"""

LOCAL = """
.decl local(order: {key}, line: number, nation: symbol, net: decimal(18, 2))
local(o, l, name, p * (1 - d)) :-
    lineitem(o, l, _, s, _, p, d, _, _, _, _),
    orders(o, c, day, _), day >= d"1994-01-01", day < d"1995-01-01",
    customer(c, _, n, _, _), supplier(s, n), nation(n, name, "ASIA").
.decl answer(nation: symbol, revenue: decimal(18, 2))
answer(n, r) :- local(_, _, n, _), r = sum x : { local(_, _, n, x) }.
"""
LOCAL_SQL = """
SELECT nation.name, sum((price * (1 - discount))::DECIMAL(18, 2))::DECIMAL(18, 2)
FROM lineitem JOIN orders ON lineitem."order" = orders.id
JOIN customer ON orders.customer = customer.id
JOIN supplier ON lineitem.supplier = supplier.id AND supplier.nation = customer.nation
JOIN nation ON nation.id = customer.nation
WHERE region = 'ASIA' AND day >= DATE '1994-01-01' AND day < DATE '1995-01-01' GROUP BY ALL
"""

FORECAST = """
.decl answer(revenue: decimal(18, 2))
answer(r) :- r = sum p * d : {
    lineitem(_, _, _, _, q, p, d, _, _, _, day), day >= d"1994-01-01", day < d"1995-01-01",
    d >= 0.05, d <= 0.07, q < 24 }.
"""
FORECAST_SQL = """
SELECT sum((price * discount)::DECIMAL(18, 2))::DECIMAL(18, 2) FROM lineitem
WHERE shipped >= DATE '1994-01-01' AND shipped < DATE '1995-01-01'
    AND discount BETWEEN 0.05 AND 0.07 AND quantity < 24
"""

RETURNS = """
.decl lost(order: {key}, line: number, customer: {key}, net: decimal(18, 2))
lost(o, l, c, p * (1 - d)) :-
    orders(o, c, day, _), day >= d"1993-10-01", day < d"1994-01-01",
    lineitem(o, l, _, _, _, p, d, _, "R", _, _).
.decl answer(customer: {key}, name: symbol, balance: decimal(12, 2), nation: symbol,
    revenue: decimal(18, 2))
answer(c, name, balance, nation, r) :-
    lost(_, _, c, _), customer(c, name, n, _, balance), nation(n, nation, _),
    r = sum x : { lost(_, _, c, x) }.
"""
RETURNS_SQL = """
SELECT customer.id, customer.name, balance, nation.name,
    sum((price * (1 - discount))::DECIMAL(18, 2))::DECIMAL(18, 2)
FROM orders JOIN lineitem ON lineitem."order" = orders.id
JOIN customer ON orders.customer = customer.id
JOIN nation ON nation.id = customer.nation
WHERE day >= DATE '1993-10-01' AND day < DATE '1994-01-01' AND flag = 'R' GROUP BY ALL
"""

QUERIES = (
    ("1", "sums and counts by two texts, few groups", SUMMARY, SUMMARY_SQL),
    ("3", "orders of a segment not shipped yet", UNSHIPPED, UNSHIPPED_SQL),
    ("5", "five-way join by nation", LOCAL, LOCAL_SQL),
    ("6", "one sum, selective", FORECAST, FORECAST_SQL),
    ("10", "returned items by customer", RETURNS, RETURNS_SQL),
)
TEXT_QUERIES = frozenset({"3", "5", "10"})
"""Those that join by keys which may be texts."""


def queries(scale: float = 1.0) -> tuple[Workload, ...]:
    """Return all queries, those with joins also with texts for keys."""
    lines = max(100, round(LINES * scale))

    def numbers() -> Relations:
        return tables(lines)

    def texts() -> Relations:
        return tables(lines, is_text=True)

    found = []
    for name, about, program, sql in QUERIES:
        rules = (TABLES + program).replace("{key}", "number")
        found.append(Workload(f"tpch-{name}", about, numbers, rules, sql, BAR))
    for name, about, program, sql in QUERIES:
        if name in TEXT_QUERIES:
            rules = (TABLES + program).replace("{key}", "symbol")
            about = f"{about}, keys are texts"
            found.append(Workload(f"tpch-{name}-text", about, texts, rules, sql, BAR))
    return tuple(found)
