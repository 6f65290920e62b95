"""Reading the files that `.input` directives name, and where files of a program are."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from corollary.analysis.change_streams import is_change_stream
from corollary.console import Console
from corollary.core.arrow import empty_table
from corollary.core.program import Directive, Relation
from corollary.core.spark_io import display_name, is_spark_io
from corollary.data_class import dataclass
from corollary.database.engines import SparkFrames
from corollary.database.program.loaded_program import LoadedProgram
from corollary.errors import InputError, render
from corollary.warehouse.files.paths import resolve
from corollary.warehouse.files.places import Place
from corollary.warehouse.formats import delimited, dialect
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
        name = dialect.file_name_of(directive)
        return SourceLocation(self.root or self.facts, self.facts, name, directive.span)

    def output_path(self, directive: Directive) -> Path:
        """Return the file that an `.output` names."""
        name, span = dialect.file_name_of(directive), directive.span
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
            name = display_name(directive) if is_spark else dialect.file_name_of(directive)
            progress = console.progress(f"reading {name}")
            relation = normal.relations[directive.relation]
            if dialect.is_stream(directive) or is_change_stream(directive):
                raise InputError.of(
                    "C0982",
                    f"`{relation.name}` reads a stream, which needs a warehouse.",
                    directive.span,
                    "let `corollary watch PROGRAM --warehouse DIR` read it, or read files instead",
                )
            if dialect.is_from_terminal(directive):
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
    if not dialect.is_json(directive):
        return delimited.read_stream(sys.stdin.buffer, relation, directive)
    from corollary.warehouse.sources.file_formats import parse_file
    from corollary.warehouse.sources.schema_drift import ExpectedColumns

    expected = ExpectedColumns(relation, directive)
    records = parse_file(sys.stdin.buffer.read(), "<stdin>", dialect.JSON, expected)
    if records.malformed:
        raise InputError(delimited.first_findings(records.malformed, "<stdin>"))
    return records.table


def _is_delimited(directive: Directive, places: FileLocations) -> bool:
    """Return whether an `.input` names one file of delimited text, and no object."""
    if dialect.format_of(directive, dialect.file_name_of(directive)) != "csv":
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
    from corollary.warehouse.sources.source import TableRows
    from corollary.warehouse.sources.source_factory import SourceFactory

    factory = SourceFactory(places.facts, places.root, fetch=frames.read, console=console)
    source = factory.source(directive, relation, key)
    change = source.change_since(None, TableRows(empty_table(relation)))
    for warning in change.warnings:
        console.note(render(warning))
    return change.added
