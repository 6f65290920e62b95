"""What SQL has, as tables of docs/sql.md: how constructs are maintained, what is in the corpus."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import corollary
from corollary.errors import InputError
from corollary.explain.forecast import CHANGE, way_of
from support.sql.corpus import FOLDER, corpus

ENGINES = ("duckdb", "sqlite", "spark")


def constructs() -> Iterator[tuple[str, str]]:
    """Yield the constructs of `tests/sql/constructs.sql`, each with its example."""
    for block in (FOLDER / "constructs.sql").read_text("utf-8").strip().split("\n\n")[1:]:
        name, query = block.split("\n", 1)
        yield name.removeprefix("-- "), query


def constructs_tables() -> tuple[list[str], list[str]]:
    """Return the lines of the tables of constructs that views may have, and of others."""
    accepted = ["| views with | after a change |", "|---|---|"]
    refused = ["| refused | because | instead |", "|---|---|---|"]
    for name, query in constructs():
        with corollary.open(None, engine="local") as db:
            db.sql("CREATE TABLE t (k INT PRIMARY KEY, a INT, b INT, s STRING)")
            db.sql("CREATE TABLE u (a INT, b INT)")
            try:
                db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
            except InputError as error:
                (found, *_) = error.diagnostics
                reason = re.sub(r"^`[^`]*` is refused: it ", "it ", found.message.rstrip("."))
                refused.append(_line(name, reason, found.note or ""))
                continue
            accepted.append(_line(name, "; ".join(_ways(db))))
    return accepted, refused


def _ways(db: corollary.Database) -> list[str]:
    """Return how the view of a database follows a small change of its tables."""
    with db.transaction() as tx:
        tx.insert("t", [(k, k % 50, k % 7, str(k)) for k in range(400)])
        tx.insert("u", [(k % 97, k % 113) for k in range(400)])
    tx = db.sql("BEGIN; DELETE FROM t WHERE k = 7; INSERT INTO u VALUES (4, 200); COMMIT")
    found: dict[str, None] = {}
    stats_of_view = {name: each for name, each in tx.stats.items() if name.startswith("v")}
    for relation, stats in stats_of_view.items():
        found.setdefault(way_of(relation, stats.algorithm))
    others = [each for each in found if each != CHANGE]
    return others or [CHANGE]


def _line(*cells: str) -> str:
    return f"| {' | '.join(each.replace('|', chr(92) + '|') for each in cells)} |"


def corpus_table() -> list[str]:
    """Return the lines of the table of the corpus: views by family, and who else computes them."""
    views = Counter(each.file for each in (*corpus(), *corpus("recursive")))
    absent = Counter(
        (each.file, name) for each in (*corpus(), *corpus("recursive")) for name in each.absent
    )
    lines = ["| family | views | as DuckDB | as SQLite | as Spark |", "|---|---|---|---|---|"]
    for file, count in sorted(views.items()):
        shown = (str(count - absent[file, name]) for name in ENGINES)
        lines.append(_line(file.replace("_", " "), str(count), *shown))
    every = (str(sum(views.values()) - sum(absent[f, name] for f in views)) for name in ENGINES)
    lines.append(_line("all views", str(sum(views.values())), *every))
    for file, what in (("answers", "questions, each with its answer"), ("refusals", "refusals")):
        blocks = (FOLDER / f"{file}.sql").read_text("utf-8").split("\n\n")
        count = sum(bool(re.sub(r"(?m)^--.*\n?", "", each).strip()) for each in blocks)
        lines.append(_line(what, str(count), "", "", ""))
    return lines
