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

from corollary.analysis.today import TODAY_RELATION
from corollary.console import Console, Phase, SilentConsole
from corollary.core.arrow import empty_table
from corollary.core.engine import Engine, Limits, within_seconds
from corollary.core.program import Directive, Program, Relation
from corollary.core.spark_io import display_name, is_spark_io
from corollary.data_class import dataclass
from corollary.database.counters import ProgressRecorder
from corollary.database.engines import SparkFrames, create_engine
from corollary.database.intake.bag_operations import counted_table
from corollary.database.intake.day import unset_day
from corollary.database.intake.row_numbers import number_rows
from corollary.database.program.goals import read_goal
from corollary.database.program.loaded_program import (
    LoadedProgram,
    load_program,
    refuse_counters,
)
from corollary.database.reactions.keys import check_keys
from corollary.errors import Diagnostic, InputError, render
from corollary.maintain.algorithms import seminaive
from corollary.maintain.goal_evaluation import solve
from corollary.maintain.placing import place_strata
from corollary.warehouse.copies import CopiesHandle, sum_counts
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
    program: Program,
    places: FileLocations,
    limits: Limits | None = None,
    console: Console | None = None,
    engine: Engine | None = None,
    *,
    frames: SparkFrames | None = None,
    today: date | None = None,
) -> EvaluationResult:
    """Evaluate a program once and write its outputs; nothing is written if anything fails.

    An engine that is passed must be empty, and is closed at the end. `IO=spark` reads and writes
    through the session of `frames`, or a local one. `today` is what `today()` gives.

    Raises:
        InputError: the program or a facts file is not acceptable, or a rule instance has no value.
        LimitError: a limit was hit.
    """
    console = console or SilentConsole()
    began = time.monotonic()
    frames = frames or SparkFrames()
    with (
        closing(engine or create_engine()) as used,
        within_seconds(limits),
    ):
        loaded = load_program(program)
        targets = output_paths(loaded, places)
        fill_engine(loaded, places, console, used, frames, today=today)
        asked = loaded.written_relations

        def evaluate(relation: str) -> None:
            evaluate_views(loaded, used, console, limits or Limits(), asked=(relation,))

        number_rows(loaded.normal, used, evaluate)
        evaluate_views(loaded, used, console, limits or Limits(), asked=asked)
        console.enter(Phase.STORE)
        outcome = write_results(loaded, used, places, targets, frames)
    console.enter(Phase.OTHER)
    outcome.seconds = time.monotonic() - began
    return outcome


def query_once(
    program: Program,
    text: str,
    places: FileLocations,
    limits: Limits | None = None,
    console: Console | None = None,
    *,
    today: date | None = None,
) -> "tuple[Relation, pa.Table]":
    """Return the relation of a goal's answers (a column per variable) and its rows."""
    console = console or SilentConsole()
    with within_seconds(limits):
        loaded = load_program(program)
        refuse_counters(program)
        goal = read_goal(loaded, text)
        engine = fill_engine(replace(loaded, normal=goal.program), places, console, today=today)
        answers = goal.answers
        engine.declare({answers.name: answers})
        console.enter(Phase.EVALUATE)
        plan = solve(goal.program, goal.literal, engine.statistics())
        engine.run(plan, ProgressRecorder(console), limits or Limits())
    console.enter(Phase.OTHER)
    return answers, engine.read(answers.name)


def fill_engine(
    loaded: LoadedProgram,
    places: FileLocations,
    console: Console,
    engine: Engine | None = None,
    frames: SparkFrames | None = None,
    *,
    today: date | None = None,
) -> Engine:
    """Return an engine with the facts, the inputs and the day; the local one if none is given.

    Raises:
        InputError: a facts file is not acceptable, or the program needs a day.
        ConstraintError: two tuples of a base relation have the same key.
    """
    engine = engine or create_engine()
    normal = loaded.normal
    engine.declare(normal.relations)
    console.enter(Phase.READ)
    if TODAY_RELATION in normal.relations:
        if today is None:
            raise unset_day()
        engine.insert(TODAY_RELATION, [(today,)])
    counted: dict[str, list[pa.Table]] = {normal.bases[bag]: [] for bag in normal.bags}
    for name, rows in normal.facts.items():
        if name in counted:
            counted[name].append(counted_table(normal, name, rows))
        else:
            engine.insert(name, rows)
    for name, table in read_inputs(loaded, places, console, frames or SparkFrames()):
        base = normal.bases.get(name, name)
        if base in counted:
            counted[base].append(counted_table(normal, name, table))
        else:
            engine.insert(base, table)
    for name, tables in counted.items():
        if tables:
            engine.insert(name, sum_counts(tables, normal.relations[name]))
    check_keys(engine, None, loaded, Limits())
    return engine


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


def evaluate_views(
    loaded: LoadedProgram,
    engine: Engine,
    console: Console,
    limits: Limits,
    *,
    asked: Collection[str] | None = None,
) -> None:
    """Evaluate every derived relation; those that nobody asks for need not be stored."""
    console.enter(Phase.PLAN)
    placed = place_strata(engine, loaded.normal, loaded.normal)
    plan = seminaive.plan_program(placed.after, engine.statistics(), placed.places, asked)
    console.enter(Phase.EVALUATE)
    engine.run(plan, ProgressRecorder(console), limits)


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
    loaded: LoadedProgram,
    engine: Engine,
    places: FileLocations,
    targets: dict[Directive, Path | None],
    frames: SparkFrames,
) -> EvaluationResult:
    """Write the outputs: those through Spark one after the other, then all others or none."""
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
                frames.write(table, relation, directive, path)
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
