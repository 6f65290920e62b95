"""One-shot evaluation: read the inputs, evaluate, write the outputs (Soufflé's conventions)."""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import field, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from corollary.analysis.replicas import is_replica
from corollary.analysis.today import TODAY_RELATION, today_relation
from corollary.console import Console, Phase
from corollary.core.engine import Engine, Limits, TableHandle, within_seconds
from corollary.core.graph import reachable
from corollary.core.plans import Plan
from corollary.core.program import Directive, NormalProgram, Program, Relation, relations_read
from corollary.core.spark_io import display_name, is_spark_io
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.database.counters import ProgressRecorder
from corollary.database.engines import create_engine
from corollary.database.program.goals import ResolvedGoal
from corollary.database.program.loaded_program import LoadedProgram, load_program, refuse_counters
from corollary.database.program.parts import MANUAL_PART, add_parts
from corollary.database.reactions.keys import check_keys
from corollary.database.reading.read_access import ReadAccess
from corollary.database.state import DatabaseState
from corollary.database.writing.day import unset_day
from corollary.database.writing.inputs import FileLocations, read_inputs
from corollary.database.writing.operations import Operation, apply_operations
from corollary.errors import Diagnostic, InputError
from corollary.maintain.algorithms import seminaive
from corollary.maintain.goal_evaluation import solve
from corollary.maintain.placing import place_strata
from corollary.warehouse.copies import CopiesHandle
from corollary.warehouse.formats import delimited
from corollary.warehouse.formats.dialect import file_name_of, is_printed, is_size, is_sqlite
from corollary.warehouse.formats.file_extensions import writer_of
from corollary.warehouse.formats.output_files import OutputFile, check_distinct_paths, write_outputs
from corollary.warehouse.formats.sqlite_tables import SqliteOutput, table_name_of, writing_tables

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.database.reading.answer import SqlAnswer
    from corollary.database.warehouse_store import WarehouseStore


@dataclass(frozen=True, slots=True)
class WrittenOutput:
    """A relation that was written to a file."""

    relation: str
    path: Path
    tuples: int


@dataclass(slots=True)
class EvaluationResult:
    """What a one-shot run did.

    Attributes:
        written: the files, in the order of the program.
        sizes: the sizes asked for with `.printsize`.
        printed: the relations that go to standard output, with their rows.
        warnings: about the program.
    """

    written: list[WrittenOutput] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    printed: "list[tuple[Directive, Relation, pa.Table]]" = field(default_factory=list)
    warnings: tuple[Diagnostic, ...] = ()
    seconds: float = 0.0


def run_once(
    state: DatabaseState, program: Program, places: FileLocations, *, today: date | None = None
) -> EvaluationResult:
    """Evaluate a program once and write its outputs; nothing is written if anything fails.

    Args:
        state: of an empty database in memory, which is closed at the end.
        program: as written.
        places: where its files are.
        today: what `today()` gives.

    Raises:
        InputError: the program or a facts file is not acceptable, or a rule instance has no value.
        LimitError: a limit was hit.
    """
    began = time.monotonic()
    with closing(state), within_seconds(state.limits):
        loaded = state.loaded = load_program(program)
        targets = output_paths(loaded, places)
        load_facts(state, places, today)
        number_rows(loaded.normal, state.engine, lambda name: evaluate_views(state, (name,)))
        evaluate_views(state, loaded.written_relations)
        state.console.enter(Phase.STORE)
        outcome = write_results(state, places, targets)
    state.console.enter(Phase.OTHER)
    outcome.seconds = time.monotonic() - began
    return outcome


class QueriedProgram(ReadAccess):
    """A database in memory of a program: facts are read when the first question is understood.

    No view is stored: each question derives what it needs, by a plan of its own.
    """

    def __init__(
        self,
        program: Program,
        places: FileLocations,
        limits: Limits | None = None,
        console: Console | None = None,
        *,
        today: date | None = None,
    ) -> None:
        super().__init__(DatabaseState(create_engine(), limits=limits, console=console))
        self._program, self._places, self._today = program, places, today
        self._has_facts = False

    def refresh(self) -> None:
        """Load the program, with the first question."""
        state = self._state
        if state.program is self._program:
            return
        loaded = load_program(self._program)
        refuse_counters(self._program)
        if self._today is not None:
            relations = {**loaded.normal.relations, TODAY_RELATION: today_relation()}
            loaded = replace(loaded, normal=replace(loaded.normal, relations=relations))
        state.loaded = loaded

    def _load_facts(self) -> None:
        if not self._has_facts:
            load_facts(self._state, self._places, self._today)
            self._has_facts = True

    def _is_computed(self, relation: Relation) -> bool:
        return relation.is_derived

    def _size(self, _: str) -> int | None:
        return None

    def _handle(self, name: str) -> TableHandle:
        self._load_facts()
        return super()._handle(name)

    def _recall_goal(self, _: str) -> "tuple[Relation, pa.Table] | None":
        return None

    def _recall(self, *_: object) -> "SqlAnswer | None":
        return None

    def _solve(self, asked: ResolvedGoal) -> tuple[Relation, TableHandle]:
        self._load_facts()
        return super()._solve(asked)

    def _plan(self, asked: ResolvedGoal) -> Plan:
        return solve(asked.program, asked.literal, self._state.engine.statistics())

    @property
    def _history(self) -> "WarehouseStore":
        raise InputError.of(
            "C1376", "A program has no history.", None, "ask a warehouse, or leave out `AS OF`"
        )


def load_facts(state: DatabaseState, places: FileLocations, today: date | None) -> None:
    """Give an empty engine the facts of the program, its inputs and the day.

    Raises:
        InputError: a facts file is not acceptable, or the program needs a day.
        ConstraintError: two tuples of a base relation have the same key.
    """
    loaded, engine = state.loaded, state.engine
    bases = (name for name, each in loaded.normal.relations.items() if not each.is_derived)
    normal = add_parts(loaded.normal, dict.fromkeys(bases, (MANUAL_PART,)))
    engine.declare(normal.relations)
    state.console.enter(Phase.READ)

    def operations() -> Iterator[Operation]:
        if TODAY_RELATION in normal.relations:
            if today is None:
                raise unset_day()
            yield Operation(State.ADDED, TODAY_RELATION, [(today,)])
        for name, rows in normal.facts.items():
            yield Operation(State.ADDED, name, rows)
        for name, table in read_inputs(loaded, places, state.console, state.frames):
            yield Operation(State.ADDED, name, table)

    apply_operations(engine, normal, operations(), state.limits)
    check_keys(engine, None, loaded, Limits())


def number_rows(program: NormalProgram, engine: Engine, evaluate: Callable[[str], None]) -> None:
    """Fill the relations of rows that `autoinc()` numbers, one after another.

    A number depends on all rows, so that one that comes would move others: only a program that is
    evaluated once has them. Rules are numbered in the order of the text, but after those they
    read; rows in the order of their values.

    Args:
        program: in normal form.
        engine: gets the rows.
        evaluate: evaluates a relation, from all that is numbered so far.
    """
    following = 0
    for numbered in _in_order(program):
        rows = program.counters[numbered]
        evaluate(rows)
        table = engine.read(rows)
        width = program.relations[numbered].arity - program.relations[rows].arity
        made = _numbered(table, program.relations[numbered].columns, width, following)
        engine.insert(program.bases.get(numbered, numbered), made)
        following += width * made.num_rows


def _numbered(table: "pa.Table", names: tuple[str, ...], width: int, first: int) -> "pa.Table":
    import numpy as np
    import pyarrow as pa

    from corollary.core.arrow import sort_by_columns

    if not table.num_columns:
        return pa.table({name: [first + at] for at, name in enumerate(names[:width])}).slice(
            0, table.num_rows
        )
    ordered = sort_by_columns(table, table.column_names)
    for at in range(width):
        numbers = first + at + width * np.arange(table.num_rows, dtype=np.int64)
        ordered = ordered.append_column(names[len(table.column_names) + at], pa.array(numbers))
    return ordered


def _in_order(program: NormalProgram) -> Iterator[str]:
    """Yield the relations of numbered rows, each after those that its rows depend on."""
    reads = relations_read(program.rules, program.aggregations)
    needs = {
        numbered: reachable([rows], lambda name: reads.get(name, ())).keys()
        & program.counters.keys()
        for numbered, rows in program.counters.items()
    }
    waiting = list(needs)
    while waiting:
        # The check `counters` refuses rules that depend on their own numbers.
        ready = next(each for each in waiting if not needs[each] & {*waiting})
        waiting.remove(ready)
        yield ready


def evaluate_views(state: DatabaseState, asked: Collection[str] | None = None) -> None:
    """Evaluate every derived relation; those that nobody asks for need not be stored."""
    engine, normal = state.engine, state.loaded.normal
    state.console.enter(Phase.PLAN)
    placed = place_strata(engine, normal, normal)
    plan = seminaive.plan_program(placed.after, engine.statistics(), placed.places, asked)
    state.console.enter(Phase.EVALUATE)
    engine.run(plan, ProgressRecorder(state.console), state.limits)


def output_paths(loaded: LoadedProgram, places: FileLocations) -> dict[Directive, Path | None]:
    """Return the file of every `.output`, before anything is evaluated; None for a table of Spark.

    Raises:
        InputError: a file is outside the root, or two outputs share one; `C0998`, an output needs
            a warehouse.
    """
    refused = [_needs_warehouse(each) for each in loaded.program.directives if is_replica(each)]
    if refused:
        raise InputError(refused)
    targets = {
        directive: places.spark_path(directive)
        if is_spark_io(directive)
        else places.output_path(directive)
        for directive in loaded.program.directives
        if directive.name == "output"
        and directive.relation in loaded.normal.relations
        and not is_printed(directive)
        and not is_size(directive)
    }
    for directive, path in targets.items():
        if path is not None and not is_spark_io(directive) and not is_sqlite(directive):
            writer_of(directive)  # raises if a parameter is not for its format
    check_distinct_paths(
        (each, path / table_name_of(each) if is_sqlite(each) else path)
        for each, path in targets.items()
        if path is not None
    )
    return targets


def _needs_warehouse(directive: Directive) -> Diagnostic:
    return Diagnostic(
        "C0998",
        f"`{directive.relation}` is to be kept in step by commits, and this run makes none.",
        directive.span,
        "run with `--warehouse W`; or write `.output` without `IO`, for a file",
    )


def write_results(
    state: DatabaseState, places: FileLocations, targets: dict[Directive, Path | None]
) -> EvaluationResult:
    """Write the outputs: those through Spark one after the other, then all others or none."""
    loaded, engine = state.loaded, state.engine
    outcome = EvaluationResult(warnings=loaded.checked.warnings)
    files: list[OutputFile] = []
    databases: list[SqliteOutput] = []
    ambiguous: list[Diagnostic] = []
    for directive in dict.fromkeys(loaded.program.directives):
        relation = loaded.normal.relations.get(directive.relation)
        if relation is None:
            continue
        rows = loaded.normal.bags.get(relation.name)
        handle = engine.handle(relation.name) if rows is None else CopiesHandle(engine.handle(rows))
        size = len(handle)
        if is_size(directive):
            outcome.sizes[relation.name] = size
        elif directive in targets:
            path = targets[directive]
            if is_spark_io(directive):
                state.frames.write(handle, relation, directive, path)
                shown = (Path() if path is None else places.outputs) / display_name(directive)
            else:
                assert path is not None
                table = handle.table()
                if is_sqlite(directive):
                    databases.append(SqliteOutput(table, path, relation, directive))
                else:
                    writer = writer_of(directive)
                    if writer is delimited.write:
                        writer = partial(delimited.write, warnings=ambiguous)
                    files.append(OutputFile(table, path, relation, directive, writer))
                shown = places.outputs / file_name_of(directive)
            outcome.written.append(WrittenOutput(relation.name, shown, size))
        elif directive.name == "output":
            outcome.printed.append((directive, relation, handle.table()))
    with writing_tables(databases):
        write_outputs(files)
    outcome.warnings += tuple(ambiguous)
    return outcome
