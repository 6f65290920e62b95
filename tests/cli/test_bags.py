"""Relations with copies on the command line: run, apply, ask, look back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command_line import INPUT, OK, cli, put

PROGRAM = """\
.decl sale(item: symbol, price: number) bag
.input sale(filename="sale.csv")
.decl income(item: symbol, total: number)
income(i, t) :- sale(i, _), t = sum p * n : { sale.rows(i, p, n) }.
.output sale
.output income
.printsize sale
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put("shop.dl", PROGRAM)
    put("sale.csv", "pen,2\nink,5\npen,2\n")


def said(*arguments: str, status: int = OK) -> str:
    result = cli(*arguments)
    assert result.exit_code == status, result.output
    return result.stdout


def lines(*arguments: str) -> list[str]:
    return sorted(said(*arguments).splitlines())


def test_a_run_repeats_rows() -> None:
    assert "sale\t3" in said("run", "shop.dl", "-D", "out")
    assert Path("out/sale.csv").read_text("utf-8").count("pen\t2\n") == 2
    assert said("query", "shop.dl", "sale(item, _)") == "item\nink\npen\n"


@pytest.mark.slow
def test_a_warehouse_counts_copies() -> None:
    said("run", "shop.dl", "--warehouse", "wh", "--engine", "local")
    operations = (
        ("insert", "sale", ["pen", 2]),
        ("insert", "sale", ["pen", 2]),
        ("delete", "sale", ["pen", 2]),
        ("delete", "sale", ["cap", 9]),
        ("insert", "sale", ["cap", 9]),
        ("insert", "sale.rows", ["cup", 1, 3]),
    )
    changes = [{"op": op, "relation": name, "row": row} for op, name, row in operations]
    put("changes.jsonl", "".join(f"{json.dumps(each)}\n" for each in changes))
    put("more.csv", "cup,1\n" * 4)
    found = json.loads(said("apply", "wh", "--changes", "changes.jsonl", "--format", "json"))
    assert found["changes"]["sale"] == {
        "added": [["cap", 9], ["cup", 1], ["cup", 1], ["cup", 1], ["pen", 2]],
        "removed": [],
    }
    said("apply", "wh", "--delete", "sale=more.csv")
    assert said("query", "wh", "sale.rows(x, _, n)") == "x\tn\ncap\t1\nink\t1\npen\t3\n"
    said("apply", "wh", "--insert", "sale=more.csv")
    assert said("query", "wh", "income(x, n)") == "x\tn\ncap\t9\ncup\t4\nink\t5\npen\t6\n"
    said("export", "wh", "sale", "--to", "out.csv")
    assert Path("out.csv").read_text("utf-8").count('"cup",1') == 4
    assert len(lines("changes", "wh", "sale", "--commit", "3")) == 1 + 3
    assert "delete" in said("changes", "wh", "sale", "--commit", "3")
    assert "sale" in said("status", "wh")
    assert "sound" in said("verify", "wh")
    put("wrong.jsonl", '{"op": "insert", "relation": "sale.rows", "row": ["a", 1, 0]}\n')
    result = cli("apply", "wh", "--changes", "wrong.jsonl")
    assert result.exit_code == INPUT
    assert "C0976" in result.stderr
