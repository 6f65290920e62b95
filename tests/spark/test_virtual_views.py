"""Virtual views over partitioned relations: their changes are found by probes, each a job."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.core.arrow import to_python
from support.command_line import cli
from support.spark.in_process_partitions import InProcess, forbid_collecting, share_out
from support.streaming.stream_frames import closure

PROGRAM = """
.decl works(person: number, team: number)
.decl team(team: number, boss: number)
.decl absent(person: number)
.decl reports(person: number, boss: number) virtual
reports(p, b) :- works(p, t), team(t, b), !absent(p).
.decl above(person: number, boss: number) virtual
above(p, b) :- reports(p, b).
above(p, c) :- above(p, b), reports(b, c).
.decl head(boss: number, people: number) virtual
head(b, n) :- team(_, b), n = count : { reports(_, b) }.
"""
PEOPLE, TEAMS = 60, 12


def views(base: dict[str, set[tuple[Any, ...]]]) -> dict[str, set[tuple[Any, ...]]]:
    """The views by their definitions."""
    reports = {
        (person, boss)
        for person, team in base["works"]
        for other, boss in base["team"]
        if team == other and (person,) not in base["absent"]
    }
    bosses = {boss for _, boss in base["team"]}
    heads = {(boss, sum(b == boss for _, b in reports)) for boss in bosses}
    return {"reports": reports, "above": closure(reports), "head": heads}


def a_change(chance: random.Random, base: dict[str, set[tuple[Any, ...]]]) -> list[tuple[str, str]]:
    """Some inserts and deletes, as (method, relation)."""
    kinds = [("insert", "works"), ("delete", "works"), ("insert", "absent"), ("delete", "absent")]
    return chance.sample([*kinds, ("insert", "team"), ("delete", "team")], chance.randint(1, 3))


def a_row(chance: random.Random, relation: str) -> tuple[int, ...]:
    person, team = chance.randrange(PEOPLE), chance.randrange(TEAMS)
    found = {
        "works": (person, team),
        "team": (team, chance.randrange(PEOPLE)),
        "absent": (person,),
    }
    return found[relation]


@pytest.mark.parametrize("algorithm", ["pf", "epf"])
def test_changes_are_found_by_jobs(
    algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No relation is read as a whole, and each job probes base relations."""
    share_out(monkeypatch, "partitions")
    titles: list[str] = []
    run = InProcess._run_tasks

    def noted(self: InProcess, task: Any, numbers: Any, title: str) -> list[bytes]:
        titles.append(title)
        return run(self, task, numbers, title)

    monkeypatch.setattr(InProcess, "_run_tasks", noted)
    chance = random.Random(7)
    base: dict[str, set[tuple[Any, ...]]] = {
        "works": {(person, chance.randrange(TEAMS)) for person in range(PEOPLE)},
        "team": {(team, chance.randrange(PEOPLE)) for team in range(TEAMS)},
        "absent": set(),
    }
    with corollary.open(tmp_path / "w", algorithm=algorithm) as db:
        db.load(text=PROGRAM)
        with db.transaction() as tx:
            for name, rows in base.items():
                tx.insert(name, sorted(rows))
        before = views(base)
        for name in before:
            db.watch(name)
        titles.clear()
        forbid_collecting(monkeypatch)
        for _ in range(8):
            with db.transaction() as tx:
                for method, name in a_change(chance, base):
                    row = a_row(chance, name)
                    if method == "delete" and base[name]:
                        row = chance.choice(sorted(base[name]))
                    getattr(tx, method)(name, [row])
                    (base[name].add if method == "insert" else base[name].discard)(row)
            now = views(base)
            for name, rows in now.items():
                change = tx.changes[name]
                assert set(to_python(change.added)) == rows - before[name]
                assert set(to_python(change.removed)) == before[name] - rows
            before = now
    kinds = {title.split()[0] for title in titles}
    assert kinds == {"probe", "arrange"}  # an order is made when it is asked for first
    probes = [title.removeprefix("probe ") for title in titles if title.startswith("probe ")]
    asked = {name for each in probes for name in each.partition(" for ")[0].split(", ")}
    assert asked == base.keys()


def test_explain_says_which_relations_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    share_out(monkeypatch, "partitions")
    program = tmp_path / "staff.dl"
    program.write_text(PROGRAM + ".input works\n")
    (tmp_path / "works.facts").write_text("1\t2\n3\t4\n")
    asked_for = ("--removed", "works", "--watch", "above", "--placement", "partitions")
    text = cli("explain", str(program), "-F", str(tmp_path), *asked_for).stdout
    assert "stratum above: epf, virtual" in text
    asked = re.search(r"asked up to (\d+) times \(absent (\d+), team (\d+), works (\d+)\)", text)
    assert asked is not None
    total, *parts = map(int, asked.groups())
    assert total == sum(parts) > 0
