"""The commands of upkeep: text, JSON and exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from corollary.cli.main import group
from corollary.warehouse.catalog.schema import FORMAT
from support.warehouse_history import House

OK, INPUT, USAGE = 0, 1, 2
UPKEEP = ("status", "verify", "gc", "backup", "restore", "alter", "erase")


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.chdir(tmp_path)
    found = House("w", 7)
    found.change(4)
    found.fold()
    found.change(2)
    found.db.publish()
    yield found
    found.close()


def cli(*arguments: str) -> Result:
    return CliRunner().invoke(group, arguments)


def of_json(result: Result) -> Any:
    (line,) = result.stdout.splitlines()
    return json.loads(line)


def test_status(house: House) -> None:
    house.warehouse.catalog.insert_intent()
    text = cli("status", "w")
    assert text.exit_code == OK
    for part in ("commits  1 to", "index    of commit", "disk ", "0 alerts waiting", "writer   "):
        assert part in text.stdout
    assert "path" in text.stdout
    told = of_json(cli("status", "w", "--format", "json"))
    assert told["commits"]["last"] == house.db.commits


@pytest.mark.slow
def test_verify(house: House) -> None:
    good = cli("verify", "w")
    assert good.exit_code == OK
    assert good.stdout.startswith("sound: ")
    for snapshot in house.root.glob("data/*/snapshot-*"):
        snapshot.unlink()
    bad = cli("verify", "w")
    assert bad.exit_code == INPUT
    assert "error[C0933]" in bad.stdout
    assert "corollary verify --repair" in bad.stdout
    told = of_json(cli("verify", "w", "--format", "json"))
    assert not told["sound"]
    assert told["findings"][0]["repairable"]
    mended = cli("verify", "w", "--repair")
    assert mended.exit_code == OK
    assert mended.stdout.startswith("repaired: ")
    assert of_json(cli("verify", "w", "--repair", "--format", "json"))["sound"]


def test_verify_of_what_is_lost(house: House) -> None:
    with house.warehouse.catalog.write_transaction() as connection:
        connection.execute(
            "UPDATE corollary_changes SET checksum = '0' WHERE relation = ? AND commit_number = ?",
            "node",
            house.db.commits,
        )
        connection.execute(
            "UPDATE corollary_changes SET checksum = '0' WHERE relation = ?", "edge•manual"
        )
    result = cli("verify", "w", "--repair")
    assert result.exit_code == INPUT
    assert "restore the warehouse from a backup" in result.stdout
    assert "were not recomputed" in result.stdout


def test_gc(house: House) -> None:
    assert cli("gc", "w").stdout.startswith(("nothing to do", "the catalog is"))
    dry = cli("gc", "w", "--keep-commits", "2", "--dry-run")
    assert "would be no longer kept: " in dry.stdout
    told = of_json(cli("gc", "w", "--keep-commits", "2", "--format", "json"))
    assert told["commits"] == house.db.commits - 2
    assert told["oldest"] == house.db.commits - 1
    house.warehouse.catalog.insert_intent()
    text = cli("gc", "w", "--keep-intents", "0", "--keep-days", "0")
    assert "given up: the writer " in text.stdout
    assert "no longer kept: 1 commit before commit " in text.stdout
    assert cli("gc", "w", "--keep-commits", "0").exit_code == USAGE
    past = cli("query", "w", "edge(x, y)", "--at", "1")
    assert past.exit_code == INPUT
    assert "is no longer kept" in past.output


def test_backup_and_restore(house: House) -> None:
    done = cli("backup", "w", "b")
    assert done.exit_code == OK
    assert done.stdout.startswith("copied: commits 1 to ")
    again = cli("backup", "w", "b")
    assert again.exit_code == INPUT
    assert "C0960" in again.stderr
    told = of_json(cli("restore", "b", "v", "--format", "json"))
    assert told["commit"] == house.db.commits
    assert cli("restore", "b", "u").stdout.startswith("restored: ")
    one, two = (cli("query", place, "path(x, y)").stdout for place in ("w", "v"))
    assert one == two


def test_export_and_import(house: House) -> None:
    done = cli("export", "w", "--all", "--to", "e")
    assert done.exit_code == OK, done.output
    assert done.stdout.startswith(f"commit {house.db.commits} in e: ")
    told = of_json(cli("import", "e", "v", "--format", "json"))
    assert told["commit"] == 1
    assert cli("import", "e", "u").stdout.startswith("imported: commit 1: ")
    one, two = (cli("query", place, "path(x, y)").stdout for place in ("w", "v"))
    assert one == two
    for words in (("edge", "--all"), (), ("--all", "--at", "1"), ("--all", "--as", "alice")):
        assert cli("export", "w", *words, "--to", "f").exit_code == USAGE
    assert not Path("f").exists()


def test_upgrade(house: House) -> None:
    assert cli("upgrade", "w").stdout == f"format {FORMAT} is current\n"
    catalog = house.warehouse.catalog
    with catalog.write_transaction() as connection:
        catalog.replace_meta(connection, "format", "4")
    refused = cli("upgrade", "w")
    assert refused.exit_code == INPUT
    assert "C0931" in refused.stderr


def test_alter(house: House) -> None:
    done = cli("alter", "w", "node", "--add", "note: symbol", "--value", "note=a=b")
    assert done.exit_code == OK
    assert ".decl node(x: symbol, weight: number?, note: symbol)" in done.stdout
    assert "lone(x) :- node(x, _, _), !path(x, _)." in done.stdout
    assert '"a=b"' in cli("query", "w", "node(x, _, n)", "--format", "json").stdout
    told = of_json(cli("alter", "w", "node", "--rename", "note=remark", "--format", "json"))
    assert told["tuples"]["before"] == told["tuples"]["after"]
    Path("new.dl").write_text(
        ".decl node(x: symbol) .decl edge(x: symbol, y: symbol) .decl lone(x: symbol) "
        "lone(x) :- node(x), !edge(x, _)."
    )
    given = cli("alter", "w", "node", "--program", "new.dl")
    assert given.exit_code == OK
    assert "the program now says" not in given.stdout
    assert cli("verify", "w").exit_code == OK
    for arguments, code in (
        (("--add", "x: number", "--program", "new.dl"), USAGE),
        (("--rename", "x"), USAGE),
        (("--value", "=3"), USAGE),
        (("--rename", "x=y", "--rename", "x=z"), USAGE),
        (("--drop", "nothing"), INPUT),
    ):
        assert cli("alter", "w", "node", *arguments).exit_code == code, arguments


def test_erase(house: House) -> None:
    with house.db.transaction() as tx:
        tx.insert("edge", [("secret", "a")])
    done = cli("erase", "w", 'edge("secret", "a")')
    assert done.exit_code == OK
    assert done.stdout.startswith("erased: 1 tuple; history begins at commit ")
    again = of_json(cli("erase", "w", 'edge("secret", "a")', "--format", "json"))
    assert again["erased"] == 0
    refused = cli("erase", "w", 'edge("t", "u")')
    assert refused.exit_code == INPUT
    assert "C0961" in refused.stderr
    assert cli("erase", "w").exit_code == USAGE


@pytest.mark.parametrize("name", UPKEEP)
def test_help_and_no_warehouse(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = cli(name, "--help")
    assert shown.exit_code == OK
    assert f"corollary {name} " in shown.stdout.partition("Options:")[0].partition("\n")[2]
    more = {"backup": ["b"], "restore": ["b"], "alter": ["p", "--drop", "x"], "erase": ["p(1)"]}
    result = cli(name, "nowhere", *more.get(name, []))
    assert result.exit_code == INPUT
    assert "C0930" in result.stderr
    assert not list(tmp_path.iterdir())
    told = of_json(cli(name, "nowhere", *more.get(name, []), "--format", "json"))
    assert told["diagnostics"][0]["code"] == "C0930"
