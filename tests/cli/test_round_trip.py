"""What an `.output` has written, an `.input` of the same name reads, without options."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.command_line import INPUT, OK, cli, put


@pytest.fixture(autouse=True)
def _directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


ROWS = """.decl item(name: symbol, count: number?, price: decimal(7,2))
item("pen", 3, 1.5). item("ink", null, 2.25).
item("paper, white", 0, 3.0). item("(a) \\"b\\"", 7, 0.01).
"""
NASTY = 'item("two\\nlines", 1, 1.0). item("a\\tb", 2, 1.0). item("", 4, 1.0). item("é", 5, 1.0).\n'
READ = """.decl item(name: symbol, count: number?, price: decimal(7,2))
.input item{options}
.decl same(name: symbol, count: number?, price: decimal(7,2))
same(n, c, p) := item(n, c, p).
.output same(filename="same.facts", delimiter=";")
"""


def written(options: str, facts: str = ROWS) -> Path:
    """Write the rows with an `.output`; return the file."""
    put("write.dl", f"{facts}.output item{options}\n")
    assert cli("run", "write.dl", "-D", "data").exit_code == OK
    (file,) = Path("data").iterdir()
    return file


def read(options: str) -> str:
    put("read.dl", READ.format(options=options))
    result = cli("run", "read.dl", "-F", "data", "-D", "out")
    assert result.exit_code == OK, result.stderr
    return Path("out/same.facts").read_text()


PLAIN = '(a) "b";7;0.01\nink;;2.25\npaper, white;0;3.00\npen;3;1.50\n'


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("item.csv", b'"(a) ""b""",7,0.01\n'),
        ("deep/item.csv.gz", b""),
        ("item.tsv", b'(a) "b"\t7\t0.01\n'),
        ("item.facts", b'(a) "b"\t7\t0.01\n'),
        ("item.txt", b'(a) "b"\t7\t0.01\n'),
        ("item.jsonl", b'{"name": "(a) \\"b\\"", "count": 7, "price": "0.01"}\n'),
        ("item.ndjson", b'{"name": '),
        ("item.parquet", b"PAR1"),
    ],
)
def test_the_ending_decides_for_both(name: str, beginning: bytes) -> None:
    put("write.dl", f'{ROWS}.output item(filename="{name}")\n')
    assert cli("run", "write.dl", "-D", "data").exit_code == OK
    assert (Path("data") / name).read_bytes().startswith(beginning)
    assert read(f'(filename="{name}")') == PLAIN


@pytest.mark.parametrize("name", ["item.csv", "item.jsonl", "item.parquet"])
def test_nasty_texts_come_back(name: str) -> None:
    written(f'(filename="{name}")', ROWS + NASTY)
    put("read.dl", READ.format(options=f'(filename="{name}")').replace("same.facts", "same.jsonl")
        .replace(', delimiter=";"', ""))  # fmt: skip
    assert cli("run", "read.dl", "-F", "data", "-D", "out").exit_code == OK
    lines = Path("out/same.jsonl").read_text().splitlines()
    names = sorted(line.split(', "count')[0] for line in lines)
    assert names == sorted(
        f'{{"name": {text}'
        for text in (
            *('"pen"', '"ink"', '"paper, white"', '"(a) \\"b\\""'),
            *('"two\\nlines"', '"a\\tb"', '""', '"é"'),
        )
    )


def test_the_default_output_has_tabs_and_is_read_back() -> None:
    file = written("")
    assert file.name == "item.csv"
    assert file.read_text().startswith('(a) "b"\t7\t0.01\nink\t\t2.25\npaper, white\t0\t3.00\n')
    assert read('(filename="item.csv")') == PLAIN


def test_the_default_output_is_a_source_that_grows() -> None:
    put("read.dl", READ.format(options='(filename="item.csv")').replace("same.facts", "s.facts"))
    file = put("data/item.csv", "ink\t\t2.25\n")
    for more, size in (("pen, blue\t3\t1.50\n", 2), ("cap\t1\t1.00\n", 3)):
        with file.open("a") as stream:
            stream.write(more)
        assert cli("run", "read.dl", "-F", "data", "--warehouse", "w").exit_code == OK
        answers = cli("query", "w", "item(n, _, _)").stdout.splitlines()[1:]
        assert len(answers) == size
    put("more.csv", "hat\t2\t1.25\n")
    assert cli("apply", "w", "--insert", "item=more.csv").exit_code == OK
    assert "hat" in cli("query", "w", "item(n, 2, _)").stdout


def test_commas_win_where_both_would_do() -> None:
    put("p.dl", '.decl p(x: symbol, y: symbol)\n.input p(filename="p.csv")\n.output p\n')
    put("facts/p.csv", "a\tb,c\nd,e\n")
    assert "C0808" in cli("run", "p.dl", "-F", "facts").stderr  # the tab is in a text


@pytest.mark.parametrize("option", ['delimiter=";"', "headers=true", 'columns="2:1:0"'])
def test_parameters_of_text_do_not_apply_to_other_formats(option: str) -> None:
    put("write.dl", f'{ROWS}.output item(filename="item.parquet", {option})\n')
    result = cli("run", "write.dl", "-D", "data")
    assert result.exit_code == INPUT
    assert "C0806" in result.stderr
    assert "does not apply to `item.parquet`" in result.stderr
    assert not Path("data").exists()


STRUCTS = """.type Point = [x: number, y: float]
.type Path = [at: Point, next: Path]
.type Mark = Named {name: symbol, at: Point} | None {}
.decl path(id: number, p: Path, m: Mark)
.input path(filename="{file}")
.output path
.decl step(id: number, x: number)
step(i, x) :- path(i, [[x, _], _], _).
.output step
"""
FAR = {"at": {"x": 3, "y": 1.0}, "next": None}
PATHS = [
    {"id": 1, "p": {"at": {"x": 1, "y": 0.5}, "next": FAR}, "m": {"branch": "None"}},
    {"id": 2, "p": None, "m": {"branch": "Named", "Named": {"name": "a, b", "at": None}}},
]
WRITTEN = '1\t[[1, 0.5], [[3, 1.0], nil]]\t$None\n2\tnil\t$Named("a, b", nil)\n'


def test_structs_of_parquet_files_are_records() -> None:
    pq.write_table(pa.Table.from_pylist(PATHS), put("facts/path.parquet", ""))
    put("p.dl", STRUCTS.replace("{file}", "path.parquet"))
    assert cli("run", "p.dl", "-F", "facts", "-D", "out").exit_code == OK
    assert Path("out/path.csv").read_text() == WRITTEN
    assert Path("out/step.csv").read_text() == "1\t1\n"
    first = cli("run", "p.dl", "-F", "facts", "--warehouse", "w", "--engine", "local")
    assert first.exit_code == OK, first.output
    more = {"id": 3, "p": FAR, "m": {"branch": "None"}}
    pq.write_table(pa.Table.from_pylist([PATHS[0], more]), "facts/path.parquet")
    again = cli("run", "p.dl", "-F", "facts", "--warehouse", "w", "--engine", "local")
    assert again.exit_code == OK, again.output
    assert cli("query", "w", "step(i, x)").stdout == "i\tx\n1\t1\n3\t3\n"
    wrong = pa.Table.from_pylist([{"id": 1, "p": {"at": {"x": "1", "y": 0.5}}, "m": None}])
    pq.write_table(wrong, "facts/path.parquet")
    assert "C0950" in cli("run", "p.dl", "-F", "facts").stderr


def test_objects_of_json_lines_are_records() -> None:
    named = [
        {**PATHS[0], "m": {"None": []}},
        {**PATHS[1], "m": {"Named": {"name": "a, b", "at": None}}},
    ]
    put("facts/path.jsonl", "".join(json.dumps(each) + "\n" for each in named))
    put("p.dl", STRUCTS.replace("{file}", "path.jsonl"))
    assert cli("run", "p.dl", "-F", "facts", "-D", "out").exit_code == OK
    assert Path("out/path.csv").read_text() == WRITTEN
    point = '.type Point = [x: number, y: float]\n.decl p(p: Point)\n.input p(filename="p.jsonl")\n'
    put("p.dl", point + ".output p\n")
    put("facts/p.jsonl", '{"p": {"y": 1, "x": 2}}\n{"p": null}\n')
    assert cli("run", "p.dl", "-F", "facts", "-D", "out").exit_code == OK
    assert Path("out/p.csv").read_text() == "[2, 1.0]\nnil\n"
    for line in ('{"p": {"x": 2}}', '{"p": {"x": 2, "y": 1, "z": 3}}', '{"p": {"x": 2, "y": NaN}}'):
        put("facts/p.jsonl", f"{line}\n")
        assert cli("run", "p.dl", "-F", "facts").exit_code == INPUT
