"""Thirty edits of one program, as somebody makes them who works on views every day.

A program is a dictionary of blocks; an edit replaces some of them, or takes them out (None). Beside
some edits the data changes too: `sale.csv` is a source, `visit` is written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

BASE = """\
.decl sale(id: number, item: symbol, shop: symbol, pieces: number, price: number) key(id)
.input sale(filename="sale.csv", delimiter=",")
.decl item(name: symbol, kind: symbol)
item("apple", "fruit"). item("pear", "fruit"). item("leek", "greens"). item("soap", "other").
.decl visit(shop: symbol, day: number)
.decl road(a: symbol, b: symbol)
road("east", "mid"). road("mid", "west"). road("west", "north").
"""

FIRST: dict[str, str] = {
    "base": BASE,
    "amount": """\
.decl amount(id: number, total: number)
amount(i, p * n) :- sale(i, _, _, n, p).
.output amount
""",
    "by_shop": """\
.decl by_shop(shop: symbol, total: number)
by_shop(s, t) :- sale(_, _, s, _, _), t = sum a : { sale(i, _, s, _, _), amount(i, a) }.
.output by_shop
""",
    "reach": """\
.decl reach(a: symbol, b: symbol)
reach(a, b) :- road(a, b).
reach(a, c) :- reach(a, b), road(b, c).
.output reach
""",
    "busy": """\
.decl busy(shop: symbol)
busy(s) :- by_shop(s, t), t > 20.
.output busy
""",
}


@dataclass(frozen=True)
class Edit:
    """One edit: blocks that change, lines of the source that come and go, visits that come."""

    title: str
    blocks: Mapping[str, str | None]
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    visits: tuple[tuple[str, int], ...] = field(default=())


AMOUNT_KIND = """\
.decl amount(id: number, kind: symbol, total: number)
amount(i, k, p * n) :- sale(i, x, _, n, p), item(x, k).
.output amount
"""
BY_SHOP_OF_THREE = """\
.decl by_shop(shop: symbol, total: number)
by_shop(s, t) :- sale(_, _, s, _, _), t = sum a : { sale(i, _, s, _, _), amount(i, _, a) }.
.output by_shop
"""
BY_SHOP_TOTALS = """\
.decl by_shop(shop: symbol, total: number, sales: number)
by_shop(s, t, n) :- sale(_, _, s, _, _), t = sum a : { sale(i, _, s, _, _), amount(i, _, a) },
    n = count : { sale(_, _, s, _, _) }.
.output by_shop
"""
BUSY_OF_THREE = """\
.decl busy(shop: symbol)
busy(s) :- by_shop(s, t, _), t > 20.
.output busy
"""
HOPS = """\
.decl reach(a: symbol, b: symbol, hops: number)
reach(a, b, 1) :- road(a, b).
reach(a, c, n + 1) :- reach(a, b, n), road(b, c), n < 4.
.output reach
"""
NEAR = """\
.decl near(a: symbol, b: symbol)
near(a, b) :- reach(a, b, n), n <= 2.
.output near
"""
PLACES = """\
.decl place(name: symbol) virtual
place(a) :- road(a, _).
place(b) :- road(_, b).
.decl lonely(name: symbol)
lonely(x) :- place(x), !sale(_, _, x, _, _).
.output lonely
"""

EDITS: tuple[Edit, ...] = (
    Edit("a column is added", {"amount": AMOUNT_KIND, "by_shop": BY_SHOP_OF_THREE}),
    Edit(
        "an aggregate is added",
        {"by_shop": BY_SHOP_TOTALS, "busy": BUSY_OF_THREE},
        added=("9,leek,east,2,4",),
    ),
    Edit("a column is renamed", {"busy": BUSY_OF_THREE.replace("(shop: symbol)", "(at: symbol)")}),
    Edit("rows come, nothing else", {}, added=("10,soap,north,1,30",), visits=(("east", 3),)),
    Edit("a recursive view gets a column", {"reach": HOPS}),
    Edit("a view is added over it", {"near": NEAR}),
    Edit("a rule of a new view changes", {"near": NEAR.replace("n <= 2", "n <= 3, a != b")}),
    Edit("a virtual view and one over it", {"places": PLACES}, removed=("2,pear,west,1,3",)),
    Edit("the virtual view is stored", {"places": PLACES.replace(" virtual", "")}),
    Edit(
        "a stored view becomes virtual",
        {"near": NEAR.replace(") \n", ")").replace("b: symbol)", "b: symbol) virtual", 1)
         .replace(".output near\n", "")},
        added=("11,pear,mid,2,7",),
    ),
    Edit("its consumer is published", {
        "far": ".decl far(a: symbol, b: symbol)\n"
        "far(a, b) :- reach(a, b, _), !near(a, b).\n.output far\n",
    }),
    Edit("the virtual view is stored and published again", {"near": NEAR}),
    Edit("a view is renamed", {
        "far": ".decl distant(a: symbol, b: symbol)\n"
        "distant(a, b) :- reach(a, b, _), !near(a, b).\n.output distant\n",
    }),
    Edit("a view is split", {
        "by_shop": """\
.decl shop_total(shop: symbol, total: number)
shop_total(s, t) :- sale(_, _, s, _, _), t = sum a : { sale(i, _, s, _, _), amount(i, _, a) }.
.decl shop_sales(shop: symbol, sales: number)
shop_sales(s, n) :- sale(_, _, s, _, _), n = count : { sale(_, _, s, _, _) }.
.decl by_shop(shop: symbol, total: number, sales: number)
by_shop(s, t, n) :- shop_total(s, t), shop_sales(s, n).
.output by_shop
.output shop_total
""",
    }),
    Edit("columns change places", {
        "amount": AMOUNT_KIND.replace("id: number, kind: symbol", "kind: symbol, id: number")
        .replace("amount(i, k,", "amount(k, i,"),
        "by_shop": BY_SHOP_TOTALS.replace("amount(i, _, a)", "amount(_, i, a)"),
    }, removed=("1,apple,east,3,5",)),
    Edit("columns of one type change places", {
        "by_shop": BY_SHOP_TOTALS.replace("amount(i, _, a)", "amount(_, i, a)")
        .replace("total: number, sales: number", "sales: number, total: number")
        .replace("by_shop(s, t, n) :-", "by_shop(s, n, t) :-"),
        "busy": BUSY_OF_THREE.replace("by_shop(s, t, _)", "by_shop(s, _, t)"),
    }),
    Edit("a type changes", {
        "by_shop": """\
.decl by_shop(shop: symbol, sales: number, total: float)
by_shop(s, n, to_float(t)) :- sale(_, _, s, _, _), t = sum a : { sale(i, _, s, _, _),
    amount(_, i, a) }, n = count : { sale(_, _, s, _, _) }.
.output by_shop
""",
        "busy": ".decl busy(shop: symbol)\nbusy(s) :- by_shop(s, _, t), t > 20.0.\n.output busy\n",
    }, added=("12,apple,west,9,9",)),
    Edit("a view is merged into another", {
        "near": None,
        "far": ".decl distant(a: symbol, b: symbol)\n"
        "distant(a, b) :- reach(a, b, n), n > 2.\n.output distant\n",
    }),
    Edit("a column may be null", {
        "visited": """\
.decl visited(shop: symbol, day: number?)
visited(s, d) :- visit(s, d).
visited(s, null) :- place(s), !visit(s, _).
.output visited
""",
    }, visits=(("mid", 4),)),
    Edit("and may not any more", {
        "visited": """\
.decl visited(shop: symbol, day: number)
visited(s, d) :- visit(s, d).
.output visited
""",
    }),
    Edit("rules move to another relation", {
        "reach": HOPS.replace("reach(a, b, 1) :- road(a, b).", "reach(a, b, 1) :- step(a, b).")
        .replace("road(b, c)", "step(b, c)")
        + ".decl step(a: symbol, b: symbol)\nstep(a, b) :- road(a, b).\n"
          "step(b, a) :- road(a, b), visit(b, _).\n",
    }),
    Edit("a view is dropped that was published", {"places": PLACES.partition(".decl lonely")[0]}),
    Edit("it comes back with another column", {
        "places": PLACES.partition(".decl lonely")[0] + """\
.decl lonely(name: symbol, roads: number)
lonely(x, n) :- place(x), !sale(_, _, x, _, _), n = count : { road(x, _) }.
.output lonely
""",
    }),
    Edit("it is not published any more", {
        "places": PLACES.replace(".output lonely\n", ""),
    }, removed=("10,soap,north,1,30",)),
    Edit("and is again", {"places": PLACES}, added=("13,leek,mid,1,2",)),
    Edit("a column of an aggregate is dropped", {
        "by_shop": """\
.decl by_shop(shop: symbol, total: float)
by_shop(s, to_float(t)) :- sale(_, _, s, _, _), t = sum a : { sale(i, _, s, _, _),
    amount(_, i, a) }.
.output by_shop
""",
        "busy": ".decl busy(shop: symbol)\nbusy(s) :- by_shop(s, t), t > 20.0.\n.output busy\n",
    }),
    Edit("the last column is dropped", {
        "busy": ".decl busy()\nbusy() :- by_shop(_, t), t > 20.0.\n.output busy\n",
    }),
    Edit("columns come back", {
        "busy": ".decl busy(shop: symbol, total: float)\n"
        "busy(s, t) :- by_shop(s, t), t > 20.0.\n.output busy\n",
    }, visits=(("west", 5),)),
    Edit("a base relation of the text gets a column", {
        "base": BASE.replace("road(a: symbol, b: symbol)", "road(a: symbol, b: symbol, km: number)")
        .replace('"mid").', '"mid", 3).').replace('"west").', '"west", 4).')
        .replace('"north").', '"north", 9).'),
        "reach": ".decl reach(a: symbol, b: symbol, km: number)\n"
        "reach(a, b, k) :- road(a, b, k).\n"
        "reach(a, c, k + l) :- reach(a, b, k), road(b, c, l), k < 100.\n.output reach\n",
        "places": PLACES.replace("road(a, _)", "road(a, _, _)")
        .replace("road(_, b)", "road(_, b, _)"),
    }),
    Edit("everything goes but one view", {
        "reach": None, "places": None, "far": None, "by_shop": None, "busy": None, "visited": None,
    }, removed=("9,leek,east,2,4",)),
    Edit("and is there again as at first", {
        "base": BASE, **{name: text for name, text in FIRST.items() if name != "base"},
    }),
)  # fmt: skip

SALES = (
    "1,apple,east,3,5",
    "2,pear,west,1,3",
    "3,leek,mid,4,2",
    "4,soap,east,1,9",
    "5,apple,mid,2,6",
)


def programs() -> Iterator[tuple[Edit, str]]:
    """Yield each edit with the text of the program after it; the first one makes it."""
    blocks = dict(FIRST)
    yield Edit("the first program", {}), "".join(blocks.values())
    for edit in EDITS:
        for name, text in edit.blocks.items():
            blocks.pop(name, None)
            if text is not None:
                blocks[name] = text
        yield edit, "".join(blocks[name] for name in sorted(blocks, key=lambda n: n != "base"))
