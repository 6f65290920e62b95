"""The examples that Spark prints, as questions, virtual and stored views, through changes.

Their constants are values of columns, and what is compared is what Spark has for these columns,
in rows with nulls, too. Each engine has what the local one has, to the last bit.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import corollary
from corollary.core.engine import BulkMode
from corollary.errors import EvaluationError, InputError
from corollary.frontends.sql.catalog import SqlCatalog, TableDefinition
from corollary.frontends.sql.query_tree import QueryColumn, output_columns
from support.figures import FIGURES
from support.query_text import bind_text
from support.selection import sampled, seed_of_run
from support.sql.spark_examples import (
    DIFFERENT,
    GENERATORS,
    Lifted,
    is_same,
    lifted,
    printed_examples,
    rows_of,
    shown,
)
from support.sql.spark_values import comparable, edge_session

PARTS, SPARK_PARTS = 24, 120
"""How many tests all examples are divided into; on Spark, where each step is a job, more."""

GROUPING_SETS = re.compile("cube|rollup|grouping sets", re.IGNORECASE)
"""Where the set `()` has a row for a table without rows here, as SQL says, but not in Spark."""

KINDS = ("question", "virtual view", "stored view")
ENGINES: dict[str, dict[str, Any]] = {
    "local": {"engine": "local", "bulk": BulkMode.NEVER},
    "bulk": {"engine": "local", "bulk": BulkMode.ALWAYS},
    "tasks": {"engine": "spark", "placement": "partitions", "bulk": BulkMode.NEVER},
    "spark sql": {"engine": "spark", "placement": "partitions", "bulk": BulkMode.ALWAYS},
}
NOTHING = slice(0, 0)
STATES = (slice(None, None, 2), slice(None), slice(1, None), NOTHING)
"""Which rows the tables have, one state after the other."""


class Acceptance:
    """Whether both engines take an example over columns."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def __call__(self, text: str, literals: dict[str, str]) -> bool:
        """Return whether a text is the columns of a SELECT from a table of literals."""
        try:
            columns = tuple(
                QueryColumn(name, output_columns(bind_text(f"SELECT {literal}"))[0].type)
                for name, literal in literals.items()
            )
            catalog = SqlCatalog([TableDefinition("edge", columns, is_bag=True)])
            bind_text(f"SELECT {text} FROM edge", catalog=catalog)
        except (InputError, EvaluationError):
            return False
        source = ", ".join(f"{literal} AS {name}" for name, literal in literals.items())
        try:
            return bool(self._session.sql(f"SELECT {text} FROM (SELECT {source or 1})").schema)
        except Exception:  # noqa: BLE001 - of any class of Spark's
            return False


class Part:
    """Tables and views of them, made of some examples.

    Attributes:
        columns: the types of the columns of tables.
        rows: their rows, as texts.
        views: queries over them.
        seen: what the first engine has in a state.
        wrong: what is wrong in the first engine.
        count: the number of examples in the views.
    """

    def __init__(self, session: Any, found: list[Lifted]) -> None:
        self._session = session
        self.columns: dict[str, dict[str, str]] = {}
        self.rows: dict[str, list[list[str]]] = {}
        self.views: list[str] = []
        self.seen: dict[int, list[tuple[Any, ...]]] = {}
        self.wrong: list[str] = []
        self.count = len(found)
        self._answers: dict[int, list[pa.Table]] = {}
        for number, each in enumerate(each for each in found if each.query):
            self._add_rows(f"own{number}", each)
        literals = [each for each in found if not each.query]
        # After the word ARRAY, Spark reads `>>` as the end of types.
        self._add_literals(sorted(literals, key=lambda each: ">>" not in each.example.query))

    def _add_rows(self, table: str, each: Lifted) -> None:
        values = ", ".join(f"({', '.join(row)})" for row in each.rows)
        self.columns[table] = self._types_of(
            f"* FROM VALUES {values} AS t({', '.join(each.names)})"
        )
        self.rows[table] = each.rows
        query = re.sub(r" ORDER BY [^()]*$", "", each.query)  # a view has no order
        self.views.append(query.replace("{table}", table))

    def _add_literals(self, found: list[Lifted]) -> None:
        """Add a table of all literals: a row of them, one of nulls, one with some nulls."""
        literals = {name: text for each in found for name, text in each.literals.items()}
        literals = literals or {"nothing": "1"}
        self.columns["edge"] = self._types_of(
            ", ".join(f"{literal} AS {name}" for name, literal in literals.items())
        )
        dice = random.Random(seed_of_run())
        some = {name for name in literals if dice.random() < 0.5}
        failing: list[Lifted] = []
        for _ in range(2):  # again, with a value wherever an example has none for a null
            kept = {name for each in failing for name in each.literals}
            self.rows["edge"] = [
                [text if name in kept | given else "NULL" for name, text in literals.items()]
                for given in ({*literals}, set[str](), some, {*literals})
            ]
            self.fill(STATES[1])
            failing = self._failing(found)
        self.count -= len(failing)
        sound = [each for each in found if each not in failing]
        self.views += [
            f"SELECT row, {', '.join(each.items)} FROM edge" for each in sound if each.is_alone
        ]
        items = [item for each in sound if not each.is_alone for item in each.items]
        self.views.append(f"SELECT {', '.join(['row', *self._named(items)])} FROM edge")

    def _named(self, items: list[str]) -> list[str]:
        """Return columns; what has months, which Spark does not hand over, are texts."""
        columns = {f"v{number}": item for number, item in enumerate(items)}
        types = self._types_of(
            f"{', '.join(f'{item} AS {name}' for name, item in columns.items()) or 1} FROM edge"
        )
        return [
            f"CAST({item} AS STRING) AS {name}"
            if re.search("interval (year|month)", types[name])
            else f"{item} AS {name}"
            for name, item in columns.items()
        ]

    def _types_of(self, items: str) -> dict[str, str]:
        fields = self._session.sql(f"SELECT {items}").schema.fields
        types = {each.name: each.dataType.simpleString() for each in fields}
        return {name: "int" if of == "void" else of for name, of in types.items()}

    def _failing(self, found: list[Lifted]) -> list[Lifted]:
        """Return the examples that have an error in Spark in some row of the table."""
        items = [
            f"CAST({item} AS STRING)"
            for each in found
            for item in each.items
            if not GENERATORS.match(item)
        ]
        try:
            self._session.sql(f"SELECT {', '.join(items) or 1} FROM edge").toArrow()
        except Exception:  # noqa: BLE001 - of any class of Spark's
            half = len(found) // 2
            return self._failing(found[:half]) + self._failing(found[half:]) if half else found
        return []

    def fill(self, state: slice) -> None:
        """Set the rows of the tables in Spark."""
        for table, columns in self.columns.items():
            casts = [f"CAST({name} AS {of}) AS {name}" for name, of in columns.items()]
            rows = [
                f"({', '.join(self.rows[table][at])}, {at})" for at in self.numbers(table, state)
            ]
            empty = f"({'NULL, ' * len(columns)} -1)"
            source = f"VALUES {', '.join(rows or [empty])} AS given({', '.join(columns)}, row)"
            query = f"SELECT {', '.join(casts)}, row FROM {source} WHERE row >= 0"
            self._session.sql(query).localCheckpoint().createOrReplaceTempView(table)

    def numbers(self, table: str, state: slice) -> range:
        """Return the numbers of the rows of a state."""
        return range(len(self.rows[table]))[state]

    def answers(self, state: int) -> list[pa.Table]:
        """Return what the views have in a state in Spark."""
        if state not in self._answers:
            self.fill(STATES[state])
            self._answers[state] = [self._session.sql(each).toArrow() for each in self.views]
        return self._answers[state]

    def create(self, db: Any) -> None:
        """Create the tables."""
        for table, columns in self.columns.items():
            typed = ", ".join(f"{name} {of}" for name, of in columns.items())
            db.sql(f"CREATE TABLE {table} ({typed}, row INT)")

    def change(self, db: Any, before: slice, now: slice) -> None:
        """Make the rows of one state those of another, in one transaction."""
        statements = ["BEGIN"]
        for table, rows in self.rows.items():
            old, new = ({*self.numbers(table, each)} for each in (before, now))
            if gone := ", ".join(map(str, sorted(old - new))):
                statements.append(f"DELETE FROM {table} WHERE row IN ({gone})")
            if added := [f"({', '.join(rows[at])}, {at})" for at in sorted(new - old)]:
                statements.append(f"INSERT INTO {table} VALUES {', '.join(added)}")
        db.sql(";\n".join([*statements, "COMMIT"]))


def failing_here(part: Part) -> list[str]:
    """Return what has an error here; take it out of a part, and what is refused as a view.

    The last view is of examples that the binder takes.
    """
    wrong, joint = [], part.views[-1]
    with corollary.open(None, **ENGINES["local"]) as db:
        part.create(db)
        part.change(db, NOTHING, STATES[1])
        for view in [*part.views]:
            try:
                db.sql(f"CREATE OR REPLACE VIEW tried AS {view}")
                db.sql("SELECT * FROM tried").arrow()
            except (EvaluationError, InputError) as error:
                part.views.remove(view)
                if isinstance(error, InputError) and view != joint:
                    part.count -= 1
                else:
                    wrong.append(f"{view}: {error}")
    return wrong


def held(db: Any, part: Part) -> list[tuple[Any, ...]]:
    """Return what each view has, as a question, virtual and stored."""
    return [
        tuple(
            db.sql(each).arrow() for each in (view, f"SELECT * FROM v{at}", f"SELECT * FROM m{at}")
        )
        for at, view in enumerate(part.views)
    ]


def wrong_views(part: Part, engine: str, states: Sequence[int], spark: Any = None) -> list[str]:
    """Return what is not as in Spark, or not the same in views of each kind, a line each."""
    wrong = []
    options = {**ENGINES[engine], **({} if spark is None else {"spark": spark})}
    with corollary.open(None, **options) as db:
        part.create(db)
        db.sql(
            "; ".join(
                f"CREATE VIEW v{at} AS {view}; CREATE MATERIALIZED VIEW m{at} AS {view}"
                for at, view in enumerate(part.views)
            )
        )
        before = NOTHING
        for state in states:
            part.change(db, before, STATES[state])
            before = STATES[state]
            if spark is not None and state != states[-1]:
                continue  # each answer takes a job
            answers = held(db, part)
            part.seen.setdefault(state, answers)
            for view, found, first, wanted in zip(
                part.views, answers, part.seen[state], part.answers(state), strict=True
            ):
                if STATES[state] == NOTHING and GROUPING_SETS.search(view):
                    continue
                exact = comparable(rows_of(first[0]))
                for kind, answer in zip(KINDS, found, strict=True):
                    if not is_same(answer, wanted) or comparable(rows_of(answer)) != exact:
                        told = f"{shown(answer)} here, {shown(wanted)} in Spark"
                        wrong.append(f"{engine}, {kind}, state {state}: {view}: {told}")
                FIGURES["states of examples as views"] += len(KINDS)
    return wrong


@pytest.fixture(scope="module")
def part_of(quick: Any) -> Callable[[int, int], Part]:
    """A function that returns some of the examples, as the local engine has them."""
    session = edge_session(quick)
    accepts = Acceptance(session)
    examples = [each for each in printed_examples(session) if each.function not in DIFFERENT]

    @cache
    def made(at: int, parts: int) -> Part:
        found = [lifted(each, f"c{n}", accepts) for n, each in enumerate(examples[at::parts])]
        part = Part(session, [each for each in found if each is not None])
        part.wrong += failing_here(part)
        part.wrong += wrong_views(part, "local", range(len(STATES)) if parts == PARTS else [2])
        return part

    return made


@pytest.mark.parametrize("at", sampled(range(PARTS), 12))
def test_examples_are_maintained(part_of: Callable[[int, int], Part], at: int) -> None:
    part = part_of(at, PARTS)
    FIGURES["examples of Spark as views"] += part.count
    wrong = [*part.wrong, *wrong_views(part, "bulk", range(len(STATES)))]
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("engine", ["tasks", "spark sql"])
@pytest.mark.parametrize("at", sampled(range(SPARK_PARTS), 2 * SPARK_PARTS))
def test_examples_are_maintained_on_spark(
    quick: Any, part_of: Callable[[int, int], Part], at: int, engine: str
) -> None:
    """Through one change, with what the local engine has."""
    part = part_of(at, SPARK_PARTS)
    wrong = [*part.wrong, *wrong_views(part, engine, [1, 2], quick)]
    assert wrong == [], "\n".join(wrong)
