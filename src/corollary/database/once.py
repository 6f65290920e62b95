"""One-shot evaluation: read the inputs, evaluate, write the outputs (Soufflé's conventions)."""

import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from corollary.console import Console, SilentConsole
from corollary.core.arrow import from_python
from corollary.core.engine import Engine, Limits
from corollary.core.program import Directive, Program, Relation
from corollary.core.recorder import Recorder
from corollary.core.rules import Literal, Variable
from corollary.core.through_spark import called, is_through_spark
from corollary.database.counters import Progress
from corollary.database.engines import LOCAL, Frames, made
from corollary.database.program import Loaded, load, read_goal
from corollary.errors import Diagnostic, InputError
from corollary.maintain import seminaive, solve
from corollary.maintain.placing import place
from corollary.warehouse import delimited
from corollary.warehouse.dialect import channel_of, file_name_of, is_stream
from corollary.warehouse.outputs import Output, refuse_clashes, write_all
from corollary.warehouse.paths import resolve

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Places:
    """Where facts are read from, where outputs go, and the directory that neither may leave."""

    facts: Path = Path()
    outputs: Path = Path()
    root: Path | None = None

    def input_path(self, directive: Directive) -> Path:
        """Return the file that an `.input` names."""
        return self._resolve(self.facts, directive)

    def output_path(self, directive: Directive) -> Path:
        """Return the file that an `.output` names."""
        return self._resolve(self.outputs, directive)

    def spark_path(self, directive: Directive) -> Path | None:
        """Return the file or folder that an `.output` through Spark names, if it names one.

        Raises:
            InputError: it is outside the root, or other files are in it.
        """
        name = directive.parameter("filename")
        if not name:
            return None
        root, span = self.root or self.outputs, directive.span
        path = resolve(root, name, base=self.outputs, span=span, may_be_directory=True)
        for directory in (root, self.outputs, self.facts):
            if directory.resolve().is_relative_to(path):
                message = f"`{name}` is a directory that other files are in: Spark would remove it"
                raise InputError.of("C0805", message, span, "name a folder of its own")
        return path

    def _resolve(self, base: Path, directive: Directive) -> Path:
        root = self.root or base
        return resolve(root, file_name_of(directive), base=base, span=directive.span)


@dataclass(frozen=True, slots=True)
class Written:
    """A relation that was written to a file."""

    relation: str
    path: Path
    tuples: int


@dataclass(slots=True)
class Outcome:
    """What a one-shot run did.

    Attributes:
        written: the files, in the order of the program.
        sizes: the sizes asked for with `.printsize`.
        printed: the relations that go to standard output, with their rows.
        warnings: about the program.
    """

    written: list[Written] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    printed: "list[tuple[Directive, Relation, pa.Table]]" = field(default_factory=list)
    warnings: tuple[Diagnostic, ...] = ()
    seconds: float = 0.0


def run(
    program: Program,
    places: Places,
    limits: Limits | None = None,
    console: Console | None = None,
    engine: str | Engine = LOCAL,
    *,
    frames: Frames | None = None,
) -> Outcome:
    """Evaluate a program once and write its outputs; nothing is written if anything fails.

    An engine that is passed must be empty, and is closed at the end. `IO=spark` reads and writes
    through the session of `frames`, or a local one.

    Raises:
        InputError: the program or a facts file is not acceptable, or a rule instance has no value.
        LimitError: a limit was hit.
    """
    console = console or SilentConsole()
    began = time.monotonic()
    loaded = load(program)
    targets = destinations(loaded, places)
    frames = frames or Frames()
    with closing(made(engine) if isinstance(engine, str) else engine) as used:
        fill(loaded, places, console, used, frames)
        evaluate(loaded, used, Progress(console), replace(limits or Limits(), since=began))
        console.done()
        outcome = write(loaded, used, places, targets, frames)
    outcome.seconds = time.monotonic() - began
    return outcome


def query(
    program: Program,
    text: str,
    places: Places,
    limits: Limits | None = None,
    console: Console | None = None,
) -> "tuple[Relation, pa.Table]":
    """Return the relation of a goal's answers (a column per variable) and its rows."""
    console = console or SilentConsole()
    began = time.monotonic()
    loaded = load(program)
    goal = read_goal(program, text)
    engine = fill(loaded, places, console)
    answers = answer_relation(goal)
    engine.declare({answers.name: answers})
    plan = solve.solve(loaded.normal, goal, engine.statistics())
    engine.run(plan, Progress(console), replace(limits or Limits(), since=began))
    console.done()
    return answers, engine.read(answers.name)


def answer_relation(goal: Literal) -> Relation:
    """Return the relation of a goal's answers: one column per variable."""
    variables = {slot.name: slot.type for slot in goal.slots if isinstance(slot, Variable)}
    types = tuple(type_ for type_ in variables.values() if type_ is not None)
    return Relation(solve.GOAL, tuple(variables), types, is_derived=True, is_declared=False)


def fill(
    loaded: Loaded,
    places: Places,
    console: Console,
    engine: Engine | None = None,
    frames: Frames | None = None,
) -> Engine:
    """Return an engine with the facts and the inputs; the local one if none is given."""
    engine = engine or made(LOCAL)
    normal = loaded.normal
    engine.declare(normal.relations)
    for name, rows in normal.facts.items():
        engine.insert(name, rows)
    for name, table in inputs(loaded, places, console, frames or Frames()):
        engine.insert(normal.bases.get(name, name), table)
    return engine


def inputs(
    loaded: Loaded, places: Places, console: Console, frames: Frames
) -> "Iterator[tuple[str, pa.Table]]":
    """Yield the relations that have an `.input`, with the rows read for each."""
    normal = loaded.normal
    has_read = False
    for directive in loaded.program.directives:
        if directive.name == "input":
            is_spark = is_through_spark(directive)
            name = called(directive) if is_spark else file_name_of(directive)
            console.progress(f"reading {name}")
            relation = normal.relations[directive.relation]
            if is_stream(directive):
                raise InputError.of(
                    "C0982",
                    f"`{relation.name}` reads a stream, which needs a warehouse.",
                    directive.span,
                    "let `corollary watch PROGRAM --warehouse DIR` read it, or read files instead",
                )
            if channel_of(directive) == "stdin":
                if has_read or sys.stdin is None:
                    raise InputError.of(
                        "C0804",
                        f"`{relation.name}` reads from standard input, where nothing is left.",
                        directive.span,
                        "let one relation only read from there, and the others from files",
                    )
                has_read = True
                table = delimited.read_stream(sys.stdin.buffer, relation, directive)
            elif is_spark:
                table = _read_through_spark(loaded, directive, places, frames)
            else:
                path = places.input_path(directive)
                table = delimited.read(path, relation, directive, name=str(places.facts / name))
            yield relation.name, table


def _read_through_spark(
    loaded: Loaded, directive: Directive, places: Places, frames: Frames
) -> "pa.Table":
    from corollary.warehouse.sources.choose import source_of

    relation = loaded.normal.relations[directive.relation]
    keys = {each.name: each.key for each in loaded.program.declarations}
    key = keys.get(relation.name, ())
    source = source_of(
        directive, relation, base=places.facts, root=places.root, key=key, fetch=frames.read
    )
    return source.difference(None, from_python((), relation)).added


def evaluate(loaded: Loaded, engine: Engine, recorder: Recorder, limits: Limits) -> None:
    """Evaluate every derived relation."""
    placed = place(engine, loaded.normal, loaded.normal)
    plan = seminaive.evaluate(placed.after, engine.statistics(), placed.places)
    engine.run(plan, recorder, limits)


def destinations(loaded: Loaded, places: Places) -> dict[Directive, Path | None]:
    """Return the file of every `.output`, before anything is evaluated; None for a table of Spark.

    Raises:
        InputError: a file is outside the root, or two outputs share one.
    """
    targets = {
        directive: places.spark_path(directive)
        if is_through_spark(directive)
        else places.output_path(directive)
        for directive in loaded.program.directives
        if directive.name == "output"
        and directive.relation in loaded.normal.relations
        and channel_of(directive) != "stdout"
    }
    refuse_clashes((each, path) for each, path in targets.items() if path is not None)
    return targets


def write(
    loaded: Loaded,
    engine: Engine,
    places: Places,
    targets: dict[Directive, Path | None],
    frames: Frames,
) -> Outcome:
    """Write the outputs: those through Spark one after the other, then all files or none."""
    outcome = Outcome(warnings=loaded.checked.warnings)
    files: list[Output] = []
    for directive in dict.fromkeys(loaded.program.directives):
        relation = loaded.normal.relations.get(directive.relation)
        if relation is None:
            continue
        size = engine.size(relation.name)
        if directive.name == "printsize":
            outcome.sizes[relation.name] = size
        elif directive in targets:
            table, path = engine.read(relation.name), targets[directive]
            if is_through_spark(directive):
                frames.write(table, relation, directive, path)
                shown = (Path() if path is None else places.outputs) / called(directive)
            else:
                assert path is not None
                files.append(Output(table, path, relation, directive))
                shown = places.outputs / file_name_of(directive)
            outcome.written.append(Written(relation.name, shown, size))
        elif directive.name == "output":
            outcome.printed.append((directive, relation, engine.read(relation.name)))
    write_all(files)
    return outcome
