"""Generated relations; the same seed gives the same rows."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Relations = Mapping[str, pa.Table]
Pairs = npt.NDArray[np.int64]

SEED = 20_251


def random_graph(nodes: int, edges: int, seed: int = SEED) -> Relations:
    """Return `edge(x, y)`: distinct pairs, each as likely as any other."""
    random = np.random.default_rng(seed)
    codes = random.choice(nodes * nodes, edges, replace=False)
    return {"edge": _pairs(codes // nodes, codes % nodes)}


def local_dag(nodes: int, edges: int, reach: int, seed: int = SEED) -> Relations:
    """Return `edge(x, y)` with x < y ≤ x + reach: many rounds, and much to find twice."""
    random = np.random.default_rng(seed)
    codes = random.choice((nodes - 1) * reach, min(2 * edges, (nodes - 1) * reach), replace=False)
    source = codes // reach
    target = source + 1 + codes % reach
    inside = np.flatnonzero(target < nodes)[:edges]
    return {"edge": _pairs(source[inside], target[inside])}


def random_tree(nodes: int, seed: int = SEED) -> Relations:
    """Return `edge(parent, child)`; every node hangs under one of those before it."""
    random = np.random.default_rng(seed)
    child = np.arange(1, nodes)
    return {"edge": _pairs((random.random(nodes - 1) * child).astype(np.int64), child)}


def teams(rows: int, width: int, seed: int = SEED) -> Relations:
    """Return `reading(id, value)` and `member(id, team)`, so many readings to a team.

    The readings are the same whatever the width.
    """
    random = np.random.default_rng(seed)
    ids = np.arange(rows)
    return {
        "reading": pa.table({"id": ids, "value": random.integers(0, 1_000_000, rows)}),
        "member": pa.table({"id": ids, "team": ids // width}),
    }


def bill(wholes: int, seed: int = SEED) -> Relations:
    """Return `uses(p, s, q)` and `bought(p, n)`: each whole has three parts, used by it alone."""
    random = np.random.default_rng(seed)
    parts = np.arange(1, 3 * wholes + 1)
    quantities = random.integers(1, 4, len(parts))
    leaves = np.arange(wholes, 3 * wholes + 1)
    return {
        "uses": pa.table({"p": (parts - 1) // 3, "s": parts, "q": quantities}),
        "bought": pa.table({"p": leaves, "n": random.integers(1, 10, len(leaves))}),
    }


def grown_tree(nodes: int, branches: int, depth: int, below: int, seed: int = SEED) -> Relations:
    """Return `edge(parent, child)`: a random tree, and at its root branches of one form.

    A branch is a path of `depth` edges and, at its end, `below` leaves. Its nodes have the same
    numbers whatever the size of the tree: branch `b` starts at `1 + b * (depth + below)`.
    """
    width = depth + below
    within = np.concatenate((np.arange(depth) - 1, np.full(below, depth - 1)))
    first = 1 + width * np.arange(branches).repeat(width)
    branch = np.where(np.tile(within, branches) < 0, 0, first + np.tile(within, branches))
    start = branches * width
    count = max(1, nodes - 1 - start)
    random = np.random.default_rng(seed)
    rest = (random.random(count) * (1 + np.arange(count))).astype(np.int64)
    parent = np.concatenate((branch, np.where(rest == 0, 0, start + rest)))
    return {"edge": _pairs(parent, np.arange(1, 1 + len(parent)))}


def sales(rows: int, products: int, stores: int, seed: int = SEED) -> Relations:
    """Return `sale(id, product, store, amount)`, `product(id, category)`, `store(id, region)`."""
    random = np.random.default_rng(seed)
    sale = {
        "id": np.arange(rows),
        "product": random.integers(0, products, rows),
        "store": random.integers(0, stores, rows),
        "amount": random.integers(1, 10_000, rows),
    }
    product = {"id": np.arange(products), "category": random.integers(0, 50, products)}
    store = {"id": np.arange(stores), "region": random.integers(0, 20, stores)}
    return {"sale": pa.table(sale), "product": pa.table(product), "store": pa.table(store)}


def heap(variables: int, seed: int = SEED) -> Relations:
    """Return the statements of a made-up program: new, assign, load and store.

    Variables are grouped in methods of twenty, and 95 % of the statements stay within one. With
    90 % nearly everything would point to nearly everything, as in no real program.
    """
    random = np.random.default_rng(seed)

    def near(count: int) -> tuple[Pairs, Pairs]:
        one = random.integers(0, variables, count)
        two = one // 20 * 20 + random.integers(0, 20, count)
        far = random.random(count) < 0.05
        two[far] = random.integers(0, variables, int(far.sum()))
        return one, np.minimum(two, variables - 1)

    def fields(count: int) -> Pairs:
        return random.integers(0, 10, count)

    sites = variables // 4
    places = max(1, variables // 5)
    load, store = near(places), near(places)
    return {
        "new": _pairs(random.integers(0, variables, sites), np.arange(sites)),
        "assign": _pairs(*near(variables)),
        "load": pa.table({"to": load[0], "base": load[1], "field": fields(places)}),
        "store": pa.table({"base": store[0], "field": fields(places), "from": store[1]}),
    }


def _pairs(one: Pairs, two: Pairs) -> pa.Table:
    return pa.table({"x": one.astype(np.int64), "y": two.astype(np.int64)})
