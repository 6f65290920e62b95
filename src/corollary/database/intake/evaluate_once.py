"""One-shot evaluation: read the inputs, evaluate, write the outputs (Soufflé's conventions)."""

import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import field, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from corollary.analysis.today import TODAY_RELATION, today_relation
from corollary.console import Console, Phase
from corollary.core.arrow import empty_table
from corollary.core.engine import Limits, within_seconds
from corollary.core.plans import Plan
from corollary.core.program import Directive, Program, Relation
from corollary.core.spark_io import display_name, is_spark_io
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.database.access.read_access import ReadAccess
from corollary.database.counters import ProgressRecorder
from corollary.database.engines import SparkFrames, create_engine
from corollary.database.intake.day import unset_day
from corollary.database.intake.operations import Operation, apply_operations
from corollary.database.intake.row_numbers import number_rows
from corollary.database.program.goals import AskedGoal
from corollary.database.program.loaded_program import (
    LoadedProgram,
    load_program,
    refuse_counters,
)
from corollary.database.program.parts import MANUAL_PART, add_parts
from corollary.database.reactions.keys import check_keys
from corollary.database.state import DatabaseState
from corollary.errors import Diagnostic, InputError, render
from corollary.maintain.algorithms import seminaive
from corollary.maintain.goal_evaluation import solve
from corollary.maintain.placing import place_strata
from corollary.warehouse.copies import CopiesHandle
from corollary.warehouse.files.paths import resolve
from corollary.warehouse.files.places import Place
from corollary.warehouse.formats import delimited
from corollary.warehouse.formats.dialect import (
    JSON,
    file_name_of,
    format_of,
    is_from_terminal,
    is_json,
    is_printed,
    is_size,
    is_sqlite,
    is_stream,
)
from corollary.warehouse.formats.file_extensions import writer_of
from corollary.warehouse.formats.output_files import OutputFile, check_distinct_paths, write_outputs
from corollary.warehouse.formats.sqlite_tables import SqliteOutput, table_name_of, writing_tables
from corollary.warehouse.sources.file_listing import SourceLocation, is_single_file

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.database.warehouse_store import WarehouseStore


@dataclass(frozen=True, slots=True)
class FileLocations:
    """Where facts are read from, where outputs go, and the directory that neither may leave."""

    facts: Place = Path()
    outputs: Path = Path()
    root: Place | None = None

    def input_location(self, directive: Directive) -> SourceLocation:
        """Return where the files are that an `.input` names."""
        name = file_name_of(directive)
        return SourceLocation(self.root or self.facts, self.facts, name, directive.span)

    def output_path(self, directive: Directive) -> Path:
        """Return the file that an `.output` names."""
        name, span = file_name_of(directive), directive.span
        return resolve(self._output_root, name, base=self.outputs, span=span)

    @property
    def _output_root(self) -> Path:
        """The directory that outputs may not leave; they are no objects."""
        return self.root if isinstance(self.root, Path) else self.outputs

    def spark_path(self, directive: Directive) -> Path | None:
        """Return the file or folder that an `.output` through Spark names, if it names one.

        Raises:
            InputError: it is outside the root, or other files are in it.
        """
        name = directive.parameter("filename")
        if not name:
            return None
        root, span = self._output_root, directive.span
        path = resolve(root, name, base=self.outputs, span=span, may_be_directory=True)
        for directory in (root, self.outputs, self.facts):
            if isinstance(directory, Path) and directory.resolve().is_relative_to(path):
                message = f"`{name}` is a directory that other files are in: Spark would remove it"
                raise InputError.of("C0805", message, span, "name a folder of its own")
        return path


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


class AskedProgram(ReadAccess):
    """A database in memory of a program: facts are read with the first question about them.

    No view is stored: each question derives what it needs.
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

    def _solve(self, asked: AskedGoal) -> "tuple[Relation, pa.Table]":
        if not self._has_facts:
            load_facts(self._state, self._places, self._today)
            self._has_facts = True
        return super()._solve(asked)

    def _plan(self, asked: AskedGoal) -> Plan:
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


def read_inputs(
    loaded: LoadedProgram, places: FileLocations, console: Console, frames: SparkFrames
) -> "Iterator[tuple[str, pa.Table]]":
    """Yield the relations that have an `.input`, with the rows read for each."""
    normal = loaded.normal
    keys = {each.name: each.key for each in loaded.program.declarations}
    has_read = False
    for directive in loaded.program.directives:
        if directive.name == "input":
            is_spark = is_spark_io(directive)
            name = display_name(directive) if is_spark else file_name_of(directive)
            progress = console.progress(f"reading {name}")
            relation = normal.relations[directive.relation]
            if is_stream(directive):
                raise InputError.of(
                    "C0982",
                    f"`{relation.name}` reads a stream, which needs a warehouse.",
                    directive.span,
                    "let `corollary watch PROGRAM --warehouse DIR` read it, or read files instead",
                )
            if is_from_terminal(directive):
                if has_read or sys.stdin is None:
                    raise InputError.of(
                        "C0804",
                        f"`{relation.name}` reads from standard input, where nothing is left.",
                        directive.span,
                        "let one relation only read from there, and the others from files",
                    )
                has_read = True
                table = _read_terminal(relation, directive)
            elif is_spark or keys.get(relation.name) or not _is_delimited(directive, places):
                key = keys.get(relation.name, ())
                table = _read_source(relation, directive, places, frames, console, key=key)
            else:
                place = places.input_location(directive)
                path, shown = place.resolve_file(), place.display_name
                table = delimited.read(path, relation, directive, name=shown, progress=progress)
            yield relation.name, table


def _read_terminal(relation: Relation, directive: Directive) -> "pa.Table":
    """Return the rows that come from standard input."""
    if not is_json(directive):
        return delimited.read_stream(sys.stdin.buffer, relation, directive)
    from corollary.warehouse.sources.file_source import parse_file
    from corollary.warehouse.sources.schema_drift import ExpectedColumns

    expected = ExpectedColumns(relation, directive)
    records = parse_file(sys.stdin.buffer.read(), "<stdin>", JSON, expected)
    if records.malformed:
        raise InputError(delimited.first_findings(records.malformed, "<stdin>"))
    return records.table


def _is_delimited(directive: Directive, places: FileLocations) -> bool:
    """Return whether an `.input` names one file of delimited text, and no object."""
    if format_of(directive, file_name_of(directive)) != "csv":
        return False
    place = places.input_location(directive)
    return isinstance(place.resolve(place.name), Path) and is_single_file(place)


def _read_source(
    relation: Relation,
    directive: Directive,
    places: FileLocations,
    frames: SparkFrames,
    console: Console,
    *,
    key: Sequence[str],
) -> "pa.Table":
    """Return the rows of a source in any format, or through Spark, with each key once."""
    from corollary.warehouse.sources.earlier_rows import TableRows
    from corollary.warehouse.sources.source_factory import source_of

    source = source_of(
        directive,
        relation,
        base=places.facts,
        root=places.root,
        key=key,
        fetch=frames.read,
        console=console,
    )
    change = source.change_since(None, TableRows(empty_table(relation)))
    for warning in change.warnings:
        console.note(render(warning))
    return change.added


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
        InputError: a file is outside the root, or two outputs share one.
    """
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
            table, path = handle.table(), targets[directive]
            if is_spark_io(directive):
                state.frames.write(table, relation, directive, path)
                shown = (Path() if path is None else places.outputs) / display_name(directive)
            else:
                assert path is not None
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
