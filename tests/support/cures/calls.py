"""Cures of calls from Python."""

from dataclasses import dataclass

PROGRAM = """
.decl e(x: number, y: number)
.decl k(id: number, v: number) key(id)
.decl v(x: number) virtual
v(x) :- e(x, _).
.decl s(x: number)
s(x) :- e(x, _).
lost(x) :- -e(x, _).
.decl b(x: number) bag
"""

FRAMES = """
import pyarrow as pa
from corollary.streaming.frames import FrameReader
from support.streaming.stream_frames import Frame, frame
shape = db.relation("e").shape
"""
VIEWS = "from pathlib import Path\nfrom corollary.documents.input_files import read_views\n"


@dataclass(frozen=True)
class Call:
    """Statements that fail with a code, a part of its note, and what helps.

    They see `db`, a warehouse with the program above and the tuple `e(1, 2)`, `tx`, the transaction
    that has inserted it, and `corollary`.
    """

    code: str
    wrong: str
    note: str
    right: str


CALLS = [
    Call(
        "C0338",
        "corollary.functor('shared')(len)\ncorollary.functor('shared')(abs)",
        '@corollary.functor("name")',
        "corollary.functor('shared_by_another')(abs)",
    ),
    Call("C1400", "db.why('e(1, x), s(x)')", "one relation", "db.why('e(1, 2)')"),
    Call("C1420", "db.why_not('e(x, 9)')", "a value for each", "db.why_not('e(1, 9)')"),
    Call("C1421", "db.why_not('s(1)')", "`db.why(…)`", "db.why('s(1)')"),
    Call("C0907", "db.at('soon')", "a date such as `2026-11-15`", "db.at('2999-11-15')"),
    Call(
        "C0910",
        "db.transaction().insert('e', [('1', 2)])",
        "`int`",
        "db.transaction().insert('e', [(1, 2)])",
    ),
    Call(
        "C0997",
        "db.sql(f\"SELECT * FROM e WHERE x IN ({', '.join(map(str, range(200_001)))})\")",
        "join it",
        "with db.transaction() as more:\n"
        "    more.insert('k', [(each, each) for each in range(9)])\n"
        "db.sql('SELECT e.* FROM e JOIN k ON x = id')",
    ),
    Call(
        "C0914",
        "tx.insert('e', [(3, 4)])",
        "`db.transaction()`",
        "db.transaction().insert('e', [(3, 4)])",
    ),
    Call(
        "C0918",
        "corollary.open(None, engine='local').log()",
        "corollary.open(DIRECTORY)",
        "other = corollary.open('other', engine='local')\nother.load(text='.decl e(x: number)')\n"
        "other.log()",
    ),
    Call("C0920", "db.transaction(idempotency='')", "1 to 200", "db.transaction(idempotency='k')"),
    Call(
        "C0921",
        "db.transaction().upsert('e', [(1, 3)])",
        "as in `.decl e(…) key(…)`",
        "db.transaction().upsert('k', [(1, 3)])",
    ),
    Call(
        "C0923", "corollary.Limits(rounds=-1)", "None for no limit", "corollary.Limits(rounds=None)"
    ),
    Call(
        "C1500",
        "corollary.open(None, driver_memory='much')",
        "500M or 2G",
        "corollary.open(None, driver_memory='2G')",
    ),
    Call(
        "C0928",
        "db.load(text='.decl e(x: number, y: number)\\ne(5, 5).')\ndb.sql('DELETE FROM e')",
        "change the fact in the program",
        "with db.transaction() as t:\n    t.remove_rule('e(5, 5).')",
    ),
    Call("C0924", "db.log(-1)", "0 or more", "db.log(0)"),
    Call(
        "C0925",
        "other = corollary.open('other', engine='local')\nother.close()\nother.relation('e')",
        "open it again",
        "corollary.open('other', engine='local').close()",
    ),
    Call(
        "C0926",
        "tx.changes['v']",
        'db.watch("v")',
        "db.watch('v')\nwith db.transaction() as tx:\n"
        "    tx.insert('e', [(3, 4)])\ntx.changes['v']",
    ),
    Call(
        "C0927", "db.load()", 'db.load(text="…")', "db.load(text='.decl e(x: number, y: number)')"
    ),
    Call("C0927", "db.run('p.dl', max_bad='some')", "`off`", "db.run('p.dl', max_bad='off')"),
    Call(
        "C0975",
        "db.feed('v')",
        "db.watch",
        "db.watch('v')\nwith db.transaction() as tx:\n    tx.insert('e', [(3, 4)])\ndb.feed('v')",
    ),
    Call(
        "C0976",
        "db.transaction().insert('b.rows', [(1, 0)])",
        "how many copies to add or to remove",
        "db.transaction().insert('b.rows', [(1, 2)])",
    ),
    Call(
        "C0977",
        "db.load(text='.decl e(x: number, y: number) bag')",
        "keep the old declaration, or give the new relation another name",
        "db.load(text='.decl e(x: number, y: number) .decl e2(x: number, y: number) bag')",
    ),
    Call(
        "C1231",
        "d = corollary.ActiveDocument.from_terms('r[!f]')\nd.end('f')\nd.add('f', 'a')",
        "",
        "d = corollary.ActiveDocument.from_terms('r[!f]', late='ignore')\n"
        "d.end('f')\nd.add('f', 'a')",
    ),
    Call(
        "C1252",
        f"{VIEWS}Path('views.txt').write_text('')\nread_views(Path('views.txt'))",
        "a query into each line",
        f"{VIEWS}Path('views.txt').write_text('/r[a]')\nread_views(Path('views.txt'))",
    ),
    Call(
        "C0983",
        f"{FRAMES}FrameReader().check(frame(('a',), names=('x',)), shape)",
        'frame.select("x", "y")',
        f"{FRAMES}FrameReader().check(Frame(pa.table({{'x': [1], 'y': [2]}})), shape)",
    ),
    Call(
        "C0984",
        "import pyarrow as pa\ndb.stream(pa.table({'x': [1], 'y': [2]}), into='e')",
        "`tx.insert(relation, frame)`",
        "import pyarrow as pa\ndb.transaction().insert('e', pa.table({'x': [1], 'y': [2]}))",
    ),
    Call("C1013", "db.on('lots')", "`lost`", "db.on('lost')"),
    Call(
        "C1041",
        "db.reader('alice').load(text='')",
        "without `reader=`",
        "db.load(text='.decl e(x: number, y: number)')",
    ),
    Call(
        "C1050",
        "corollary.open(None, engine='local', existing='keep')",
        "report, refuse, accept",
        "corollary.open(None, engine='local', existing='report')",
    ),
    Call(
        "C1378",
        "db.ask('DELETE FROM e', None, {})",
        "`db.sql(…)`",
        "db.sql('DELETE FROM e')",
    ),
    Call("C1379", "db.sql('COMMIT')", "begin one: `BEGIN`", "db.sql('BEGIN; COMMIT')"),
    Call(
        "C1384",
        "db.sql('INSERT INTO k VALUES (1, 2) ON CONFLICT (v) DO NOTHING')",
        "`PRIMARY KEY`",
        "db.sql('INSERT INTO k VALUES (1, 2) ON CONFLICT (id) DO NOTHING')",
    ),
]
