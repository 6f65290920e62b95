"""Cures of what is done to a warehouse: changes by hand, columns, copies, constraints, grants."""

from support.cures import NETWORK, Cure

ONE_COLUMN = (
    '.decl edge(x: symbol)\n.input edge(columns="0")\n.decl link(x: symbol)\nlink(x) :- edge(x).\n'
)
LONG = "k" * 201

CURES = [
    Cure(
        "C0920",
        f"apply wh --insert edge=more.csv --idempotency-key {LONG}",
        "1 to 200 characters",
        helps=f"apply wh --insert edge=more.csv --engine local --idempotency-key {LONG[1:]}",
    ),
    Cure(
        "C0929",
        "apply wh --insert edge=more.csv --delete edge=more.csv --idempotency-key k",
        "use a new key",
        helps="apply wh --insert edge=more.csv --delete edge=more.csv --idempotency-key l "
        "--engine local",
        before=("apply wh --insert edge=more.csv --engine local --idempotency-key k",),
    ),
    Cure("C0960", "backup wh facts", "does not exist yet", helps="backup wh copy"),
    Cure(
        "C0969", "import facts new", "export --all", helps="export wh --all --to e && import e new"
    ),
    Cure(
        "C0961",
        'erase wh \'edge("b", "c")\'',
        "",
        {"facts/edge.facts": "a\tb\n"},
        'run net.dl -F facts --warehouse wh --engine local && erase wh \'edge("b", "c")\'',
    ),
    Cure("C0962", "alter wh edge --rename z=w", "`x`, `y`", helps="alter wh edge --rename x=w"),
    Cure(
        "C0963",
        "alter wh link --rename x=w",
        "--program",
        {"net.dl": NETWORK.replace("link(x: symbol", "link(w: symbol")},
        "run net.dl -F facts --warehouse wh --engine local",
    ),
    Cure(
        "C0965",
        "alter wh edge --drop y",
        "--program",
        helps="alter wh edge --program narrow.dl",
    ),
    Cure(
        "C0966",
        "alter wh edge --add 'w: number'",
        "--value w=…",
        helps="alter wh edge --add 'w: number' --value w=0",
    ),
    Cure(
        "C0967",
        "alter wh edge --program retyped.dl",
        "add a column of the new type",
        helps="alter wh edge --add 'z: number' --value z=0",
    ),
    Cure(
        "C0970",
        "apply wh --changes wrong.jsonl",
        "`insert`",
        {"wrong.jsonl": '{"op": "insert", "relation": "edge", "row": ["a", "b"]}\n'},
        "apply wh --changes wrong.jsonl --engine local",
    ),
    Cure(
        "C0971",
        "apply wh --changes short.jsonl",
        "each of x, y",
        {"short.jsonl": '{"op": "insert", "relation": "edge", "row": ["a", "b"]}\n'},
        "apply wh --changes short.jsonl --engine local",
    ),
    Cure(
        "C0974",
        "apply wh --insert edge=header.csv --engine local --dry-run",
        "--headers",
        helps="apply wh --insert edge=header.csv --engine local --dry-run --headers",
        is_warning=True,
    ),
    Cure(
        "C0975",
        "changes virtual v",
        "declare it without `virtual`",
        {"virtual.dl": f"{NETWORK}.decl v(x: symbol)\nv(x) :- edge(x, _).\n"},
        "run virtual.dl -F facts --warehouse virtual --engine local && changes virtual v",
        ("run virtual.dl -F facts --warehouse virtual --engine local",),
    ),
    Cure(
        "C0975",
        "changes virtual v",
        "look at the relations it is derived from",
        helps="changes virtual edge",
        before=("run virtual.dl -F facts --warehouse virtual --engine local",),
    ),
    Cure(
        "C1012",
        "run net.dl -F facts --warehouse wh --allow-webhook hooks --engine local",
        "`https://hooks.example/team`",
        helps="run net.dl -F facts --warehouse wh --allow-webhook https://hooks.example/team "
        "--engine local",
    ),
    Cure(
        "C1044", "grant wh ' ' link", "1 to 200 printable characters", helps="grant wh alice link"
    ),
    Cure(
        "C1051",
        "apply looped --insert edge=loop.csv --engine local",
        "caused by `+edge(c, a)`",
        {"loop.csv": "c,d\n"},
        before=("run looped.dl -F facts --warehouse looped --engine local",),
    ),
    Cure(
        "C1052",
        "run forbidding.dl -F facts --warehouse wh --existing refuse --engine local",
        "--existing report",
        helps="run forbidding.dl -F facts --warehouse wh --existing report --engine local",
    ),
    Cure(
        "C1053",
        "explain net.dl -F facts --removed edge --without sop",
        "sip",
        helps="explain net.dl -F facts --removed edge --without sip",
    ),
    Cure(
        "C1106",
        "advise dependency.dl -F facts --query link --engine local",
        "",
        {"dependency.dl": NETWORK},
        is_warning=True,
    ),
    Cure(
        "C1102",
        "advise net.dl --query link --budget 10",
        "facts with -F",
        helps="advise net.dl --query link --budget 10 -F facts --engine local",
    ),
]

FILES = {
    "narrow.dl": ONE_COLUMN,
    "retyped.dl": NETWORK.replace("edge(x: symbol, y: symbol)", "edge(x: symbol, y: number)")
    .replace("link(x: symbol, y: symbol)", "link(x: symbol, y: number)")
    .replace("link(x, z) :- link(x, y), edge(y, z).\n", ""),
    "wrong.jsonl": '{"op": "inser", "relation": "edge", "row": ["a", "b"]}\n',
    "short.jsonl": '{"op": "insert", "relation": "edge", "row": ["a"]}\n',
    "header.csv": "x,y\nq,r\n",
    "virtual.dl": f"{NETWORK}.decl v(x: symbol) virtual\nv(x) :- edge(x, _).\n",
    "dependency.dl": f"{NETWORK}.fd link(x -> y)\n",
    "loop.csv": "c,a\n",
    "forbidding.dl": NETWORK + '.decl bad(x: symbol)\nbad(x) :- edge(x, "b").\n.abort bad "{x}"\n',
}
