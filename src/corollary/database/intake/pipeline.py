"""The pipeline: a program, its sources and a warehouse; each run processes only what has changed.

what changed in the sources and in the text → one transaction → commit → publish → deliver alerts
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corollary.analysis.check import check
from corollary.core.arrow import from_python
from corollary.core.program import Program, Relation
from corollary.core.spark_io import is_spark_io
from corollary.core.states import State
from corollary.database.database import Database, state_of, warehouse_of
from corollary.database.intake import quarantine
from corollary.database.intake.dry_run import RunPlan, SourcePlan, SourceReading, try_out
from corollary.database.intake.operations import Operation
from corollary.database.pending_commit import DeferredOperations, Position
from corollary.database.program.loaded_program import load_program
from corollary.database.program.parts import SOURCE_PREFIX
from corollary.database.state import DatabaseState
from corollary.database.transaction import Transaction
from corollary.errors import Diagnostic, InputError
from corollary.warehouse.sources.quarantine import QUARANTINE, BadRowPolicy
from corollary.warehouse.sources.source_factory import sources_of

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.database.alerts.delivery import Delivered
    from corollary.warehouse.catalog.catalog import Catalog
    from corollary.warehouse.publishing.publisher import PublishResult
    from corollary.warehouse.sources.source import Source


ONE_SHOT_WARNINGS = {"C0701", "C0702"}
"""Warnings that do not apply here: relations may also be queried, and filled by `apply`."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Where sources are, and what is done about malformed records."""

    facts: Path = Path()
    root: Path | None = None
    bad_rows: BadRowPolicy = BadRowPolicy.QUARANTINE


@dataclass(slots=True)
class PipelineRun:
    """What a run did.

    Attributes:
        transaction: what changed; None if nothing did.
        commit: the commit it made, or the last one if there was nothing to do; None in a dry run.
        published: the tables that show it; None if nothing is published.
        delivered: the alerts that were delivered, also earlier ones; None in a dry run.
        warnings: about the program or the sources.
        quarantined: how many records are in quarantine.
        sources: what was read.
        plan: what a dry run has found.
    """

    transaction: Transaction | None = None
    commit: int | None = None
    published: "PublishResult | None" = None
    delivered: "Delivered | None" = None
    warnings: list[Diagnostic] = field(default_factory=list)
    quarantined: int = 0
    seconds: float = 0.0
    sources: list[SourcePlan] = field(default_factory=list)
    plan: RunPlan | None = None

    def as_json(self, max_rows: int) -> dict[str, Any]:
        """Return what happened as `run --warehouse` prints it."""
        found: dict[str, Any] = {"commit": None, "changes": {}, "alerts": [], "stats": {}}
        if self.transaction is not None:
            found = self.transaction.as_json(max_rows)
        found["commit"] = self.commit
        return found if self.plan is None else {**found, "plan": self.plan.as_json()}


def run(
    database: Database,
    program: Program,
    inputs: Inputs | None = None,
    *,
    idempotency: str | None = None,
    is_dry: bool = False,
) -> PipelineRun:
    """Bring a warehouse up to date with a program and its sources; or find out what that would do.

    Raises:
        InputError: the program or a source is not acceptable; nothing was changed.
        ConflictError: others committed first every time.
    """
    with state_of(database).lock:
        outcome = _run(database, program, inputs or Inputs(), idempotency, is_dry=is_dry)
    if not is_dry:
        outcome.delivered = database.deliver()
    return outcome


def _run(
    database: Database,
    program: Program,
    inputs: Inputs,
    idempotency: str | None,
    *,
    is_dry: bool,
) -> PipelineRun:
    began = time.monotonic()
    state = state_of(database)
    warnings = [each for each in check(program).warnings if each.code not in ONE_SHOT_WARNINGS]
    _refuse_writing(program)
    transaction = database.transaction(idempotency=idempotency, publish=not is_dry, is_dry=is_dry)
    if transaction.is_repeated:
        if is_dry:
            plan = try_out(database, transaction)
            return PipelineRun(transaction, warnings=warnings, plan=plan)
        published = database.publish()
        return PipelineRun(transaction, transaction.commit_number, published, warnings=warnings)
    program = quarantine.with_same_quarantine(program, database.program)
    has_inputs = any(each.name == "input" for each in program.directives)
    if has_inputs and inputs.bad_rows is BadRowPolicy.QUARANTINE:
        program = quarantine.with_quarantine(program)
    relations = load_program(program).normal.relations
    sources = sources_of(
        program,
        relations,
        base=inputs.facts,
        root=inputs.root,
        bad_rows=inputs.bad_rows,
        fetch=state.frames.read,
        console=state.console,
    )
    outcome = PipelineRun(warnings=warnings)
    is_needed = idempotency is not None
    if program != database.program:
        transaction.set_program(program)
        is_needed = True
    warehouse = warehouse_of(database)
    assert warehouse is not None, "a pipeline needs a warehouse"
    reader = _SourceReader(state, warehouse.catalog, outcome)
    known = warehouse.catalog.source_positions()
    for source in sources:
        if source.is_unchanged(_position(known, source.name)):
            unchanged = SourcePlan(source.name, source.relation.name, SourceReading.UNCHANGED)
            outcome.sources.append(unchanged)
        else:
            transaction.read(reader.read_source(source))
            is_needed = True
    for name in known.keys() - {source.name for source in sources}:
        transaction.read(reader.delete_source(name))
        is_needed = True
    if is_dry:
        outcome.transaction = transaction
        outcome.plan = try_out(database, transaction, outcome.sources)
        outcome.seconds = time.monotonic() - began
        return outcome
    if is_needed:
        transaction.commit()
        outcome.transaction, outcome.published = transaction, transaction.published
    else:
        outcome.published = database.publish()
    outcome.commit = transaction.commit_number or database.commits
    if quarantine.QUARANTINE_DECLARATION in program.declarations:
        outcome.quarantined = state.engine.size(QUARANTINE.name)
    outcome.seconds = time.monotonic() - began
    return outcome


def _refuse_writing(program: Program) -> None:
    """Refuse outputs through Spark: they could not be repeated after a crash."""
    found = [
        Diagnostic(
            "C0990",
            f"`{each.relation}` is to be written through Spark, but a warehouse publishes Delta "
            "tables.",
            each.span,
            f'write `.output {each.relation}`; from Python, `db.relation("{each.relation}").spark()'
            ".write` goes anywhere",
        )
        for each in program.directives
        if each.name == "output" and is_spark_io(each)
    ]
    if found:
        raise InputError(found)


def _position(known: Mapping[str, Position], name: str) -> dict[str, Any] | None:
    found = known.get(name)
    return None if found is None else found[1]


@dataclass(frozen=True, slots=True)
class _SourceReader:
    """Reads sources, relative to the state that a transaction starts from."""

    state: DatabaseState
    catalog: "Catalog"
    outcome: PipelineRun

    def read_source(self, source: "Source") -> Callable[[], DeferredOperations]:
        """Return a function that reads a source, called whenever the transaction is tried."""

        def read() -> DeferredOperations:
            self.state.console.progress(f"reading {source.name}")
            before = _position(self.catalog.source_positions(), source.name)
            part = SOURCE_PREFIX + source.name
            content = self._content(source.relation, part)
            change = source.change_since(before, content)
            self.outcome.warnings += change.warnings
            name = source.relation.name
            counts = change.added.num_rows, change.removed.num_rows
            self._note(SourceReading.READ, source.name, name, counts, len(change.bad_rows))
            operations = [
                Operation(State.REMOVED, name, change.removed, part),
                Operation(State.ADDED, name, change.added, part),
                *quarantine.quarantine_operations(
                    self.state, source.name, change.bad_rows, change.reread_files
                ),
            ]
            return DeferredOperations(operations, {source.name: (name, change.position)})

        return read

    def delete_source(self, name: str) -> Callable[[], DeferredOperations]:
        """Return a function that deletes all rows of a source that is no longer read."""

        def delete() -> DeferredOperations:
            relation, _ = self.catalog.source_positions()[name]
            operations = quarantine.quarantine_operations(self.state, name, (), None)
            declared = self.state.loaded.normal.relations.get(relation)
            if declared is not None:
                part = SOURCE_PREFIX + name
                rows = self._content(declared, part)()
                operations = [Operation(State.REMOVED, relation, rows, part), *operations]
                self._note(SourceReading.GONE, name, relation, (0, rows.num_rows))
            return DeferredOperations(operations, {name: (relation, None)})

        return delete

    def _note(
        self,
        state: SourceReading,
        name: str,
        relation: str,
        counts: tuple[int, int],
        malformed: int = 0,
    ) -> None:
        """Note what was read of a source; in another attempt, again."""
        sources = self.outcome.sources
        sources[:] = [each for each in sources if each.name != name]
        sources.append(SourcePlan(name, relation, state, counts, malformed))

    def _content(self, relation: Relation, part: str) -> "Callable[[], pa.Table]":
        """Return a function that reads all rows of a source so far."""

        def content() -> "pa.Table":
            normal = self.state.loaded.normal
            base = normal.bases.get(relation.name, relation.name)
            at = normal.parts.get(base, {}).get(part)
            return from_python((), relation) if at is None else self.state.engine.read(at)

        return content
