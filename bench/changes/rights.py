"""Access rights under many changes: grants, documents that move, people who join and leave groups.

The program is the library's `AccessRights`, with groups in groups and folders in folders; the
relation of who may do what is stored. Of 100 changes 80 are grants that are given or withdrawn, 15
move a document to another folder, 4 are people who join or leave a group, 1 is a prohibition. Half
of each takes back what there is. At the end the rights are compared with those computed anew.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import corollary
from bench.figure import Figure

NAME = "rights"
ABOUT = "access rights: changes a second in batches of 1,000 to 100,000"
PROGRAM = """
#include <access_rights.dl>
.init rights = AccessRights<symbol, symbol>
.output rights.may
"""
PEOPLE, GROUPS, FOLDERS, DOCUMENTS = 20_000, 1000, 2000, 50_000
GRANTS = 200_000
BATCHES = (1000, 10_000, 100_000)
ROUNDS = 3
PARTS = {"granted": 0.80, "inside": 0.15, "member": 0.04, "denied": 0.01}
BAR = 100_000


@dataclass(slots=True)
class Company:
    """People, groups, documents and folders, and what is written of them.

    Attributes:
        rows: the tuples of each base relation.
    """

    scale: float
    rng: np.random.Generator
    rows: dict[str, set[tuple[str, ...]]]

    @classmethod
    def make(cls, scale: float) -> "Company":
        """Return a company."""
        made = cls(scale, np.random.default_rng(7), {})
        rng = made.rng
        groups, folders = made.count(GROUPS), made.count(FOLDERS)
        member = {(f"g{n}", f"g{rng.integers(n)}") for n in range(groups // 20 + 1, groups)}
        inside = {(f"f{n}", f"f{rng.integers(n)}") for n in range(folders // 10 + 1, folders)}
        granted = {(f"g{n}", "read", f"f{folders - 1 - n % folders}") for n in range(groups)}
        made.rows = {
            "member": member | made.draw("member", made.count(2 * PEOPLE)),
            "inside": inside | made.draw("inside", made.count(DOCUMENTS)),
            "granted": granted | made.draw("granted", made.count(GRANTS)),
            "denied": made.draw("denied", made.count(PEOPLE // 20)),
            "implies": {("own", "write"), ("write", "read")},
        }
        return made

    def count(self, size: int) -> int:
        """Return a size for the scale of the run."""
        return max(10, round(size * self.scale))

    def draw(self, relation: str, number: int) -> set[tuple[str, ...]]:
        """Return new rows of a relation."""
        rng = self.rng

        def some(letter: str, size: int) -> list[str]:
            return [f"{letter}{each}" for each in rng.integers(self.count(size), size=number)]

        match relation:
            case "member":
                return set(zip(some("p", PEOPLE), some("g", GROUPS), strict=True))
            case "inside":
                return set(zip(some("d", DOCUMENTS), some("f", FOLDERS), strict=True))
            case _:
                rights = [("read", "write", "own")[each] for each in rng.integers(3, size=number)]
                return set(zip(some("p", PEOPLE), rights, some("d", DOCUMENTS), strict=True))

    def batch(self, size: int) -> dict[str, tuple[pa.Table, pa.Table]]:
        """Return what is inserted and deleted of each relation in a batch; it is taken over."""
        found = {}
        for name, part in PARTS.items():
            there, half = self.rows[name], max(1, round(size * part / 2))
            added = self.draw(name, half) - there
            own = sorted(each for each in there if each[0][0] in "pd")
            places = self.rng.choice(len(own), min(half, len(own)), replace=False)
            removed = {own[at] for at in places}
            found[name] = as_table(added), as_table(removed)
            there |= added
            there -= removed
        return found


def as_table(rows: set[tuple[str, ...]]) -> pa.Table:
    """Return rows as an Arrow table."""
    columns = list(zip(*sorted(rows), strict=True))
    return pa.table([pa.array(each, pa.string()) for each in columns], list("abc"[: len(columns)]))


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures."""
    for place in ("in memory", "in a warehouse"):
        with ExitStack() as stack:
            where = None
            if place == "in a warehouse":
                where = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "warehouse"
            database = stack.enter_context(corollary.open(where, engine="local"))
            for figure in _figures(database, place, scale):
                yield figure if scale == 1 else replace(figure, bar=None)


def _figures(database: corollary.Database, place: str, scale: float) -> Iterator[Figure]:
    company = Company.make(scale)
    _load(database, company)
    rights = len(database.relation("rights.may"))
    figures = []
    for size in BATCHES:
        speeds, came = [], 0
        for _ in range(ROUNDS):
            batch = company.batch(company.count(size))
            began = time.perf_counter()
            with database.transaction() as transaction:
                for name, (added, removed) in batch.items():
                    transaction.delete(f"rights.{name}", removed)
                    transaction.insert(f"rights.{name}", added)
            seconds = time.perf_counter() - began
            changes = sum(each.num_rows for pair in batch.values() for each in pair)
            speeds.append(changes / seconds)
            found = transaction.changes["rights.may"]
            came = len(found.added) + len(found.removed)
        about = f"{rights:,} rights; a batch changes {came:,} of them"
        name = f"{size:,} {place}"
        figures.append(Figure(name, float(np.median(speeds)), "/s", None, about))
    wrong = _differences(database, company)
    *others, last = figures
    yield from others
    yield replace(last, bar=BAR, is_floor=True, differences=wrong)


def _load(database: corollary.Database, company: Company) -> None:
    database.load(text=PROGRAM)
    with database.transaction() as transaction:
        for name, rows in company.rows.items():
            transaction.insert(f"rights.{name}", as_table(rows))


def _differences(database: corollary.Database, company: Company) -> tuple[str, ...]:
    with corollary.open(None, engine="local") as anew:
        _load(anew, company)
        expected = set(anew.relation("rights.may").rows())
    found = set(database.relation("rights.may").rows())
    return tuple(f"{each} is wrong" for each in sorted(found ^ expected)[:5])
