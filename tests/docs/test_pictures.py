"""The pictures of docs/why.md and docs/monitoring.md are what the code draws, of their files.

`COROLLARY_ACCEPT=1` writes them: look at them before you commit them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import corollary
from corollary.database.intake.change_files import read_changes
from support.command_line import cli
from support.paths import REPOSITORY

DOCS = REPOSITORY / "docs"
FILE = re.compile(r"<!-- file: (.+?) -->\n```\w+\n(.*?)```\n", re.DOTALL)


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[corollary.Database]:
    """Give the warehouse of the page, after its three commits."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILE.findall((DOCS / "why.md").read_text("utf-8")):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, "utf-8")
    with corollary.open("wh", engine="local") as db:
        db.run("network.dl", facts="facts")
        for name in ("pier.jsonl", "strike.jsonl"):
            with db.transaction() as transaction:
                read_changes(name, db._state.loaded.normal).apply_to(transaction)
        yield db


def test_pictures(network: corollary.Database) -> None:
    pictures = {
        "why-link.svg": network.why('link("airport", "pier")', at=2),
        "why-reach.svg": network.why('reach("centre", 4)', at=2),
        "why-removed.svg": network.why_removed('link("airport", "pier")', 3),
    }
    for name, answer in pictures.items():
        path = DOCS / name
        if os.environ.get("COROLLARY_ACCEPT"):
            path.write_text(answer.to_svg(), "utf-8")
        assert path.read_text("utf-8") == answer.to_svg(), name
        assert f"({name})" in (DOCS / "why.md").read_text("utf-8")


def test_picture_of_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILE.findall((DOCS / "monitoring.md").read_text("utf-8")):
        Path(name).write_text(text, "utf-8")
    query = Path("late.txt").read_text("utf-8").removeprefix("late: ").strip()
    types = "--type", "bank=payment", "--type", "carrier=delivery"
    told = "--updates", "morning.jsonl", "--plot", "monitoring.svg"
    cli("documents", "match", "--doc", "shop.xml", "--query", query, *types, *told)
    drawn, path = Path("monitoring.svg").read_text("utf-8"), DOCS / "monitoring.svg"
    if os.environ.get("COROLLARY_ACCEPT"):
        path.write_text(drawn, "utf-8")
    assert path.read_text("utf-8") == drawn
