"""Guards: sources that are broken rather than changed are refused, and what is refused changes
nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result

from support.command_line import INPUT, OK, USAGE, cli, of_json, put, tree

STOCK = """\
.decl stock(item: number, held: number)
.input stock(filename="stock.csv", delimiter=","{more})
.decl short(item: number)
short(i) :- stock(i, n), n < 5.
.output short
"""
MANY = 2000


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def program(more: str = "", text: str = STOCK) -> None:
    put("shop.dl", text.replace("{more}", more))


def stock(*lines: str) -> None:
    put("stock.csv", "".join(f"{line}\n" for line in lines))


def numbered(first: int, last: int, held: int = 7) -> list[str]:
    return [f"{item},{held}" for item in range(first, last)]


def run(*options: str) -> Result:
    return cli("run", "shop.dl", "--warehouse", "wh", "--engine", "local", *options)


def done(result: Result) -> Result:
    assert result.exit_code == OK, result.output
    return result


def refused(*words: str, options: tuple[str, ...] = ()) -> None:
    """Demands that a run is refused with these words, and leaves everything as it was."""
    before = commits()
    result = run(*options)
    assert result.exit_code == INPUT, result.output
    for word in (*words, "nothing was changed"):
        assert word in result.stderr, result.stderr
    assert commits() == before


def commits() -> object:
    if not Path("wh").exists():
        return None
    return of_json(cli("log", "wh", "--format", "json"))


def held() -> list[list[int]]:
    goal = "stock(item, held)"
    return list(of_json(done(cli("query", "wh", goal, "--format", "json")))["rows"])


# --- malformed records ---------------------------------------------------------------------------


def test_a_source_of_mostly_malformed_records() -> None:
    program()
    stock("1,1", "2", "3", "4,4,4")
    refused("C0944", "3 of the 4 records of `stock.csv` are malformed", "at most 50%", "line 2")
    assert not Path("wh").exists()
    refused("C0944", options=("--max-bad", "74%"))
    refused("C0944", "at most 2 may be", options=("--max-bad", "2"))
    refused("C0944", "none may be", options=("--max-bad", "0"))
    for allowed in ("75%", "3", "off"):
        done(run("--max-bad", allowed))


def test_half_of_the_records_is_accepted() -> None:
    program()
    stock("1,1", "2")
    done(run())


def test_an_input_says_what_it_accepts() -> None:
    program(', max_bad="10%"')
    stock("1,1", "2,2", "3")
    refused("C0944", "at most 10%", '.input stock(max_bad="off")', options=("--max-bad", "off"))
    program(', max_bad="off"')
    stock("1", "2")
    done(run())


def test_the_records_of_earlier_runs_count() -> None:
    program()
    stock(*numbered(0, 10))
    done(run())
    stock(*numbered(0, 10), *["bad"] * 8)
    done(run())
    assert "C0944" not in run().stderr
    stock(*numbered(0, 10), *["bad"] * 8, "11,1", "bad", "bad")
    done(run())  # 10 of 21
    stock(*numbered(0, 10), *["bad"] * 8, "11,1", "bad", "bad", "bad", "bad")
    refused("C0944", "12 of the 23 records")


def test_what_was_quarantined_before_is_a_reason_to_abort() -> None:
    program()
    stock("1,1", "2")
    done(run())
    refused(
        "C0948",
        "1 malformed record of `stock.csv` is in quarantine",
        options=("--bad-rows", "abort"),
    )
    stock("1,1", "2", "3,3")  # only the new line is read
    refused("C0948", "line 2 of `stock.csv`", options=("--bad-rows", "abort"))
    done(run("--bad-rows", "quarantine"))
    stock("1,1", "2,2", "3,3")
    done(run("--bad-rows", "abort"))
    assert held() == [[1, 1], [2, 2], [3, 3]]


# --- headers -----------------------------------------------------------------------------------


def test_a_promised_header_that_is_a_row() -> None:
    program(", headers=true")
    stock("1,1", "2,2")
    result = run()
    assert result.exit_code == INPUT
    assert "error[C0945]: `stock.csv` has no header: its first line is a row" in result.stderr
    assert not Path("wh").exists()
    assert cli("run", "shop.dl").exit_code == INPUT  # nor without a warehouse
    stock("item,held", "1,1", "2,2")
    done(run())
    stock("1,1", "2,2")
    assert "C0945" in run().stderr
    assert held() == [[1, 1], [2, 2]]


def test_a_header_of_numbers_is_accepted_if_asked_for() -> None:
    program(', headers=true, max_bad="off"')
    stock("2025,2026", "1,1")
    done(run())
    assert held() == [[1, 1]]


def test_a_header_of_texts_is_never_taken_for_a_row() -> None:
    program(
        ", headers=true",
        ".decl stock(item: symbol, held: symbol?)\n"
        + STOCK.split("\n", 1)[1]
        .replace("n < 5", 'n = "0"')
        .replace("short(item: number)", "short(item: symbol)"),
    )
    stock("a,b", "c,d")
    done(run())


def test_a_file_that_has_lost_everything() -> None:
    program(", headers=true")
    put("stock.csv", "")
    done(run())  # it was never anything else
    stock("item,held", "1,1")
    done(run())
    put("stock.csv", "")
    refused(
        "C0946", "`stock.csv` is empty, without the header that it promises", "--max-deletes off"
    )
    assert held() == [[1, 1]]
    done(run("--max-deletes", "off"))
    assert held() == []


def test_a_header_alone_is_an_empty_table() -> None:
    program(", headers=true")
    stock("item,held", "1,1")
    done(run())
    stock("item,held")
    done(run())
    assert held() == []


# --- deletions -----------------------------------------------------------------------------------


def test_a_source_that_deletes_most_of_a_relation() -> None:
    program()
    stock(*numbered(0, MANY))
    done(run())
    stock(*numbered(0, 999))
    refused(
        "C0947",
        "`stock.csv` would delete 1,001 of the 2,000 rows of `stock`",
        "at most 50%",
        "--max-deletes off",
        '.input stock(max_deletes="off")',
    )
    refused("C0947", "at most 1000", options=("--max-deletes", "1000"))
    done(run("--max-deletes", "60%"))
    assert len(held()) == 999


def test_half_of_a_relation_may_go() -> None:
    program()
    stock(*numbered(0, MANY))
    done(run())
    stock(*numbered(0, 1000))
    done(run())
    stock(*numbered(0, 1))  # 1,000 rows are not small
    refused("C0947", "999 of the 1,000")
    stock(*numbered(0, 999))
    done(run())
    stock()  # 999 are
    done(run())
    assert held() == []


def test_a_number_counts_in_small_relations_too() -> None:
    program(', max_deletes="2"')
    stock(*numbered(0, 10))
    done(run())
    stock(*numbered(0, 7))
    refused("C0947", "3 of the 10", options=("--max-deletes", "off"))
    stock(*numbered(0, 8))
    done(run())


def test_a_row_of_a_key_that_gets_other_values_is_not_deleted() -> None:
    program(text=STOCK.replace("held: number)", "held: number) key(item)", 1))
    stock(*numbered(0, MANY, 1))
    done(run())
    stock(*numbered(0, MANY, 2))
    done(run())
    stock(*numbered(1500, 1500 + MANY, 3))
    refused("C0947", "1,500 of the 2,000")


def test_rows_of_no_key_that_get_other_values_are_deleted() -> None:
    program()
    stock(*numbered(0, MANY, 1))
    done(run())
    stock(*numbered(0, MANY, 2))
    refused("C0947", "2,000 of the 2,000")


def test_a_source_that_is_renamed_deletes_nothing() -> None:
    program()
    stock(*numbered(0, MANY))
    done(run())
    Path("stock.csv").rename("store.csv")
    program(text=STOCK.replace("stock.csv", "store.csv"))
    done(run())
    assert len(held()) == MANY


def test_a_source_that_the_program_does_not_read_any_more() -> None:
    program()
    stock(*numbered(0, MANY))
    done(run())
    program(text=STOCK.replace(".input", "// .input"))
    refused("C0947", "The program does not read `stock.csv` any more, which deletes 2,000")
    done(run("--max-deletes", "off"))
    assert held() == []


def test_every_door_says_what_a_bound_is() -> None:
    program(', max_bad="most", max_deletes="-1"')
    stock("1,1")
    said = run()
    assert said.exit_code == INPUT
    assert said.stderr.count("a share such as `10%`, a number of rows, or `off`") == 2
    program()
    for bound in ("most", "-1", "101%", "1e3", ""):
        assert run("--max-bad", bound).exit_code == USAGE
        assert "write 10%, a number of rows, or off" in run("--max-deletes", bound).stderr
    assert tree("wh") == {}
    assert cli("run", "shop.dl", "--max-bad", "off").exit_code == USAGE  # only with a warehouse
    said = cli("run", "shop.dl", "--warehouse", "wh", env={"COROLLARY_RUN_MAX_BAD": "most"})
    assert said.exit_code == USAGE


def test_watch_has_the_same_guards() -> None:
    program()
    stock("1", "2")
    asked = ("watch", "shop.dl", "--warehouse", "wh", "--engine", "local", "--once")
    assert "C0944" in cli(*asked).stderr
    done(cli(*asked, "--max-bad", "off"))
