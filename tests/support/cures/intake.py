"""Cures of programs, files and sources that a run reads."""

from support.cures import KEYED, NETWORK, Cure

HEADED = '.decl k(id: number, v: number)\n.input k(filename="k.csv", headers=true)\n'
MUTUAL = """.decl e(x: number)
.decl a(x: number)
.decl b(x: number)
a(x) :- e(x).
a(x) :- b(x).
b(x) :- a(x).
"""
JSON = '.decl j(x: number)\n.input j(filename="j.jsonl")\n'
WIDER = ".decl k(id: number, v: number, w: number?) key(id)\n.input k\n.output k\n"
ROW = "1,2\n"
THOUSAND = "".join(f"{number}\t0\n" for number in range(1000))
HEAD = "run head.dl -F facts --warehouse head --engine local"

CURES = [
    Cure(
        "C0803",
        "run number.dl -F latin",
        "convert the file to UTF-8",
        {"latin/n.facts": "2\n"},
        before=("run files.dl --engine local",),
    ),
    Cure(
        "C0806",
        "run form.dl",
        "leave it out, or let the name end in `.csv`",
        {"form.dl": '.decl t(x: symbol)\nt("a").\n.output t(filename="t.csv", headers=true)\n'},
    ),
    Cure(
        "C0821",
        "run mutual.dl --warehouse w2 --relation a=epf --relation b=dred --engine local",
        "the same algorithm for all of them",
        helps="run mutual.dl --warehouse w2 --relation a=epf --relation b=epf --engine local",
    ),
    Cure(
        "C0912",
        "run wider.dl -F facts --warehouse keyed --engine local",
        "corollary alter W k --add 'w: number?'",
        helps="alter keyed k --add 'w: number?'",
        before=("run keyed.dl -F facts --warehouse keyed --engine local",),
    ),
    Cure(
        "C0913",
        "run other.dl --warehouse hand --engine local",
        "corollary apply W --delete h=FILE",
        helps="apply hand --delete h=second.csv --engine local && "
        "run other.dl --warehouse hand --engine local",
        before=(
            "run hand.dl --warehouse hand --engine local",
            "apply hand --insert h=second.csv --engine local",
        ),
    ),
    Cure(
        "C0944",
        "run keyed.dl -F short --warehouse k --engine local",
        "--max-bad off",
        helps="run keyed.dl -F short --warehouse k --engine local --max-bad off",
    ),
    Cure(
        "C0944",
        "run keyed.dl -F short --warehouse k --engine local",
        '.input k(max_bad="off")',
        {"keyed.dl": KEYED.replace(".input k", '.input k(max_bad="off")')},
    ),
    Cure("C0945", HEAD, "put the names of the columns there", {"facts/k.csv": "id,v\n1,2\n"}),
    Cure(
        "C0945", HEAD, "take `headers=true` out", {"head.dl": HEADED.replace(", headers=true", "")}
    ),
    Cure(
        "C0945", HEAD, 'max_bad="off"', {"head.dl": HEADED.replace("=true", '=true, max_bad="off"')}
    ),
    Cure(
        "C0946",
        f"{HEAD.replace('facts', 'emptied')}",
        "--max-deletes off",
        helps=f"{HEAD.replace('facts', 'emptied')} --max-deletes off",
        before=(HEAD.replace("facts", "named"),),
    ),
    Cure(
        "C0947",
        "run keyed.dl -F facts --warehouse keyed --engine local",
        "--max-deletes off",
        helps="run keyed.dl -F facts --warehouse keyed --engine local --max-deletes off",
        before=("run keyed.dl -F many --warehouse keyed --engine local",),
    ),
    Cure(
        "C0948",
        "run keyed.dl -F odd --warehouse keyed --engine local --bad-rows abort",
        "correct the file",
        {"odd/k.facts": "1\t1\n2\t2\n3\t3\n"},
        before=("run keyed.dl -F odd --warehouse keyed --engine local",),
    ),
    Cure(
        "C0950",
        HEAD.replace("facts", "renamed"),
        'columns="0:1"',
        {"head.dl": HEADED.replace("=true", '=true, columns="0:1"')},
        before=(HEAD.replace("facts", "named"),),
    ),
    Cure(
        "C0951",
        HEAD.replace("facts", "wide"),
        "",
        {"head.dl": HEADED.replace("v: number", "v: number, z: number")},
        "alter head k --program head.dl --value z=0",
        (HEAD.replace("facts", "named"),),
        is_warning=True,
    ),
    Cure(
        "C0954",
        "run keyed.dl -F twice --warehouse keyed --engine local",
        "keep one of them",
        {"twice/k.facts": "1\t1\n"},
    ),
    Cure(
        "C0954",
        "run keyed.dl -F twice --warehouse keyed --engine local",
        '.input k(order="…")',
        {"keyed.dl": KEYED.replace(".input k", '.input k(order="v")')},
    ),
    Cure(
        "C0955",
        "run delta.dl -F facts --warehouse d --engine local",
        "",
        {"delta.dl": '.decl k(id: number, v: number)\n.input k(filename="k.csv")\n'},
    ),
    Cure(
        "C0956",
        "run std.dl -F facts --warehouse std --engine local",
        "read from a file",
        {"std.dl": ".decl k(id: number, v: number)\n.input k\n"},
    ),
    Cure(
        "C0957",
        "run json.dl -F facts",
        "one whole JSON object or array",
        {"facts/j.jsonl": '{"x": 1}\n'},
    ),
    Cure(
        "C0958",
        "run pattern.dl -F facts --warehouse p --engine local",
        "correct the name",
        {"pattern.dl": '.decl k(id: number, v: number)\n.input k(filename="k*.csv")\n'},
        is_warning=True,
    ),
    Cure(
        "C0959",
        "run quarantine.dl -F odd --warehouse q --engine local",
        "another name",
        {"quarantine.dl": f"{KEYED}.decl aside(x: number)\n"},
    ),
    Cure(
        "C0990",
        "run spark.dl --warehouse sp --engine local",
        "write `.output p`",
        {"spark.dl": ".decl p(x: number)\np(1).\n.output p\n"},
    ),
]

FILES = {
    "files.dl": ".decl none(x: number)\n",
    "form.dl": '.decl t(x: symbol)\nt("a").\n.output t(filename="t.parquet", headers=true)\n',
    "mutual.dl": MUTUAL,
    "wider.dl": WIDER,
    "hand.dl": ".decl h(x: number, y: number)\n",
    "other.dl": ".decl o(x: number)\n",
    "head.dl": HEADED,
    "facts/k.csv": ROW,
    "delta.dl": '.decl k(id: number, v: number)\n.input k(filename="table")\n',
    "facts/table/_delta_log/00000000000000000000.json": "{\n",
    "named/k.csv": "id,v\n1,2\n",
    "emptied/k.csv": "",
    "renamed/k.csv": "id,w\n1,2\n",
    "wide/k.csv": "id,v,z\n1,2,3\n",
    "many/k.facts": THOUSAND,
    "odd/k.facts": "1\t1\n2\t2\nx\t3\n",
    "twice/k.facts": "1\t1\n1\t2\n",
    "std.dl": ".decl k(id: number, v: number)\n.input k(IO=stdin)\n",
    "json.dl": JSON,
    "facts/j.jsonl": "{\n",
    "pattern.dl": '.decl k(id: number, v: number)\n.input k(filename="no*.csv")\n',
    "quarantine.dl": f"{KEYED}.decl quarantine(x: number)\n",
    "spark.dl": '.decl p(x: number)\np(1).\n.output p(IO=spark, format="parquet", filename="p")\n',
    "latin/n.facts": b"\xff\n",
    "looped.dl": f'{NETWORK}loop(x) :- +link(x, x).\n.abort loop "{{x}}"\n',
}
