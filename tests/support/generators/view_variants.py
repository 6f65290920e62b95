"""Programs with one of many views, one of many relations that read it, and something over both.

Any of them may follow any other while there is data.
"""

EDGE = ".decl edge(x: number, y: number)\n"
TWO, THREE = "v({0}, {1})", "v({0}, {1}, _)"
LOOPLESS = "v(x, y) :- edge(x, y), x != y."
CLOSURE = "v(x, y) :- edge(x, y).\nv(x, z) :- v(x, y), edge(y, z)."
VIEWS: dict[str, tuple[str, str, str]] = {
    "two columns": ("(a: number, b: number)", LOOPLESS, TWO),
    "virtual": ("(a: number, b: number) virtual", LOOPLESS, TWO),
    "other names": ("(from: number, to: number)", LOOPLESS, TWO),
    "turned": ("(b: number, a: number)", "v(y, x) :- edge(x, y), x != y.", "v({1}, {0})"),
    "three": ("(a: number, b: number, c: number)", "v(x, y, x + y) :- edge(x, y).", THREE),
    "three, virtual": (
        "(a: number, b: number, c: number) virtual", "v(x, y, x * y) :- edge(x, y).", THREE
    ),
    "a text": ("(a: number, b: number, c: symbol)", "v(x, y, to_string(x)) :- edge(x, y).", THREE),
    "may be null": (
        "(a: number, b: number?)",
        "v(x, y) :- edge(x, y).\nv(x, null) :- edge(_, x), !edge(x, _).",
        TWO,
    ),
    "recursive": ("(a: number, b: number)", CLOSURE, TWO),
    "recursive, virtual": ("(a: number, b: number) virtual", CLOSURE, TWO),
    "an aggregate": (
        "(a: number, b: number, n: number)",
        "v(x, y, n) :- edge(x, y), n = count : { edge(x, _) }.",
        THREE,
    ),
    "facts too": ("(a: number, b: number)", "v(7, 8). v(1, 2).\nv(x, y) :- edge(y, x).", TWO),
    "an equivalence": ("(a: number, b: number) eqrel", "v(x, y) :- edge(x, y).", TWO),
    "gone": ("", "", "edge({0}, {1})"),
}  # fmt: skip
READERS: dict[str, str] = {
    "plain": ".decl w(x: number)\nw(x) :- {read}, x != 3.",
    "virtual": ".decl w(x: number) virtual\nw(x) :- {read}, x != 3.",
    "negation": ".decl w(x: number)\nw(x) :- edge(_, x), !{some}.",
    "aggregate": ".decl w(x: number, n: number)\nw(x, n) :- edge(x, _), n = sum x : {{ {read} }}.",
    "recursion": ".decl w(x: number, y: number)\nw(x, y) :- {read}.\nw(x, z) :- w(x, y), {next}.",
    "gone": "",
}
TOPS = {
    "over both": ".decl t(x: number)\nt(x) :- {read}, {w}.",
    "gone": "",
}


def program(view: str, reader: str, top: str) -> str:
    """Return a program with one of the views, something that reads it, and something over both."""
    columns, rules, atom = VIEWS[view]
    text = f".decl v{columns}\n{rules}" if columns else ""
    places = {
        "read": atom.format("x", "y") if reader != "aggregate" else atom.format("x", "_"),
        "some": atom.format("x", "_"),
        "next": atom.format("y", "z"),
    }
    w = {"aggregate": "w(x, _)", "recursion": "w(x, _)", "gone": "edge(x, _)"}.get(reader, "w(x)")
    tops = TOPS[top].format(read=atom.format("x", "_"), w=w)
    return EDGE + "\n".join((text, READERS[reader].format(**places), tops, ""))
