"""The plan of a run that changes nothing: what it would read, change, publish, refuse and send.

The work itself is done, in a transaction that is rolled back: numbers of tuples are exact, and the
seconds are those that reading and deriving took. What a dry run does not do, it cannot measure:
storing the tuples and publishing them.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from corollary.core.printer import print_program
from corollary.core.program import Program, Relation
from corollary.data_class import dataclass
from corollary.database.database import Database, state_of, warehouse_of
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.program.names import published_relations
from corollary.database.relation_plans import RelationEdit, RelationPlan
from corollary.errors import ConstraintError, Diagnostic, InputError
from corollary.warehouse.sources.quarantine import QUARANTINE

if TYPE_CHECKING:
    from corollary.database.pending_commit import Position
    from corollary.database.transaction import Transaction
    from corollary.warehouse.files.places import Place
    from corollary.warehouse.publishing.table_schemas import TableSchema


PLAN_ID_LENGTH = 12


class SourceReading(StrEnum):
    """What a run finds of a source."""

    UNCHANGED = "unchanged"
    READ = "read"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """What a run reads of a source.

    Attributes:
        counts: how many rows it adds and removes.
        malformed: how many records are set aside.
    """

    name: str
    relation: str
    state: SourceReading
    counts: tuple[int, int] = (0, 0)
    malformed: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the plan as a dry run prints it."""
        added, removed = self.counts
        return {
            "source": self.name,
            "relation": self.relation,
            "state": str(self.state),
            "rows": {"added": added, "removed": removed, "malformed": self.malformed},
        }


class TableEdit(StrEnum):
    """What happens to a published table."""

    CREATED = "created"
    CHANGED = "changed"
    REWRITTEN = "rewritten"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What a run does to a published table.

    Attributes:
        before: its schema; None if there is no table.
        after: the schema from now on; None if it is not published any more.
        rows: how many rows are written.
    """

    relation: str
    edit: TableEdit
    before: "TableSchema | None"
    after: "TableSchema | None"
    rows: int

    def as_json(self) -> dict[str, Any]:
        """Return the plan as a dry run prints it."""
        before, after = (
            None if each is None else [{"name": name, "type": type_} for name, type_ in each]
            for each in (self.before, self.after)
        )
        return {
            "relation": self.relation,
            "change": str(self.edit),
            "schema": {"before": before, "after": after},
            "rows": self.rows,
        }


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a dry run has found.

    Attributes:
        before: the program in force.
        after: the one that would be in force.
        constraints: what would abort the transaction.
        lost_grants: by reader, the relations that are dropped and were granted.
        seconds: how long reading and deriving took.
    """

    before: Program
    after: Program
    sources: Sequence[SourcePlan]
    relations: Sequence[RelationPlan]
    tables: Sequence[TablePlan]
    constraints: Sequence[Diagnostic]
    lost_grants: Mapping[str, Sequence[str]]
    seconds: float

    @property
    def has_new_program(self) -> bool:
        """Whether the program changes."""
        return self.after != self.before

    @property
    def stored_tuples(self) -> int:
        """How many tuples of declared relations would be stored or deleted."""
        return sum(
            (each.rows_after or 0) if each.edit is RelationEdit.REBUILT else sum(each.counts)
            for each in self.relations
        )

    @property
    def published_rows(self) -> int:
        """How many rows would be written to tables."""
        return sum(each.rows for each in self.tables)

    def as_json(self) -> dict[str, Any]:
        """Return the plan as a dry run prints it."""
        return {
            "new_program": self.has_new_program,
            "sources": [each.as_json() for each in self.sources],
            "relations": [each.as_json() for each in self.relations],
            "tables": [each.as_json() for each in self.tables],
            "constraints": [
                {"code": each.code, "message": each.message, "note": each.note}
                for each in self.constraints
            ],
            "lost_grants": {name: list(each) for name, each in self.lost_grants.items()},
            "cost": {
                "seconds": round(self.seconds, 6),
                "tuples_to_store": self.stored_tuples,
                "rows_to_publish": self.published_rows,
            },
        }


def try_out(
    database: Database, transaction: "Transaction", sources: Sequence[SourcePlan] = ()
) -> RunPlan:
    """Do what a dry transaction asks for, roll it back, and return what was found.

    Raises:
        InputError: what is asked for is not possible.
        LimitError: a limit was hit.
    """
    began = time.monotonic()
    state, warehouse = state_of(database), warehouse_of(database)
    failures: Sequence[Diagnostic] = ()
    if not transaction.is_repeated:
        try:
            transaction.commit()
        except ConstraintError as error:
            failures = error.diagnostics
    gone = {each.relation for each in transaction.plan if each.edit is RelationEdit.DROPPED}
    lost = {reader: sorted(gone & {*names}) for reader, names in database.grants().items()}
    root = None if warehouse is None else warehouse.root
    return RunPlan(
        state.program,
        transaction.next_program.program,
        sources,
        [each for each in transaction.plan if each.relation != QUARANTINE.name or any(each.counts)],
        plan_tables(root, state.loaded, transaction, state.engine.size),
        failures,
        {reader: names for reader, names in lost.items() if names},
        time.monotonic() - began,
    )


def plan_id(
    database: Database, program: Program, positions: "Mapping[str, Position | None]"
) -> str:
    """Return what a plan is known by: the commit that it follows, its program and its sources.

    Args:
        database: the warehouse, at the commit.
        program: what is to be in force.
        positions: how far each source has been read by then.
    """
    state, warehouse = state_of(database), warehouse_of(database)
    has_commits = warehouse is not None and state.commits > 0
    base = warehouse.commit_at(state.commits) if warehouse is not None and has_commits else None
    time_of_base = None if base is None else base.time.isoformat()
    known = [state.commits, time_of_base, str(state.day), print_program(program), positions]
    text = json.dumps(known, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:PLAN_ID_LENGTH]


def check_approved(approved: str, found: str) -> None:
    """Refuse a run whose plan is not the one that was approved.

    Raises:
        InputError: `C1905`.
    """
    if approved != found:
        raise InputError.of(
            "C1905",
            f"The plan is not `{approved}` any more: it is `{found}`; nothing was changed.",
            None,
            "something was committed, or the program or a source has changed since: look at "
            "`corollary plan` again, or `corollary promote` without `--approve`, and approve "
            f"`{found}`",
        )


def plan_tables(
    root: "Place | None",
    before: LoadedProgram,
    transaction: "Transaction",
    size: Callable[[str], int],
) -> list[TablePlan]:
    """Return what happens to the tables of `.output` relations.

    Args:
        root: the directory of the warehouse; None if there is none yet.
        before: the program in force.
        transaction: the one that was tried.
        size: returns how many tuples a relation has now.
    """
    from corollary.warehouse.publishing.table_schemas import present_schema, schema_to_publish

    after = transaction.next_program
    published = {each.name: each for each in _published(after)}
    plans = []
    changed = set(transaction.changes)
    sizes = {each.relation: each.rows_after or 0 for each in transaction.plan}
    for name, relation in published.items():
        was = None if root is None else present_schema(root, name)
        now = schema_to_publish(relation)
        change = transaction.changes[name].counts if name in changed else None
        if was != now:
            edit = TableEdit.CREATED if was is None else TableEdit.REWRITTEN
            rows = sizes[name] if name in sizes else size(name)
            plans.append(TablePlan(name, edit, was, now, rows))
        elif change is not None:
            plans.append(TablePlan(name, TableEdit.CHANGED, was, now, change[0]))
    for each in _published(before):
        if each.name not in published and root is not None:
            was = present_schema(root, each.name)
            if was is not None:
                plans.append(TablePlan(each.name, TableEdit.LEFT, was, None, 0))
    return plans


def _published(program: LoadedProgram) -> list[Relation]:
    return published_relations(program.normal, program.program.directives)
