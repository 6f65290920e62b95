"""A folder in which files arrive: `.input p(IO=stream, filename="arrivals", …)`.

Spark finds each file once and passes its bytes; they are read as those of any other source, so
dialects, line numbers and malformed records are the same. The events of a batch are ordered: files
by their modification time, then by name; inside a file, line by line.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corollary.core.program import Directive, Program, Relation
from corollary.data_class import dataclass
from corollary.database.writing.events import Events, with_operation, with_signs
from corollary.errors import InputError
from corollary.warehouse.files.durable_files import checksum_of
from corollary.warehouse.files.places import Place
from corollary.warehouse.formats import dialect
from corollary.warehouse.sources.file_formats import parse_file
from corollary.warehouse.sources.file_listing import SourceLocation
from corollary.warehouse.sources.quarantine import to_bad_rows
from corollary.warehouse.sources.schema_drift import ExpectedColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BINARY_FILE_SCHEMA = "path string, modificationTime timestamp, length long, content binary"
"""The columns of Spark's format `binaryFile`."""
_GLOB_CHARACTERS = re.compile(r"([\\*?\[\]{},])")
_WILDCARDS = re.compile(r"[*?[]")


@dataclass(frozen=True, slots=True)
class FolderReader:
    """Reads the files of a micro-batch.

    Attributes:
        directive: the `.input`.
        folder: where its files are.
    """

    directive: Directive
    folder: str

    @property
    def op(self) -> str | None:
        """The column of the operation; None if all rows are inserts."""
        return self.directive.parameter("op") or None

    def select(self, frame: Any) -> Any:
        """Return what is read of a micro-batch."""
        return frame.select("path", "modificationTime", "content")

    def read(self, table: pa.Table, relation: Relation, source: str, batch: str) -> list[Events]:
        """Return the events of some files of a batch, file by file.

        Raises:
            InputError: a file cannot be read, or has other columns.
        """
        shape, directive = (
            with_operation(relation, self.op),
            dialect.per_file_directive(self.directive),
        )
        has_names = directive.parameter("headers") == "true" and not directive.parameter("columns")
        expected = ExpectedColumns(shape, directive, shape.columns if has_names else ())
        found = []
        for file in table.to_pylist():
            path = Path(file["path"].removeprefix("file:"))
            name = str(path.relative_to(self.folder))
            format_ = dialect.format_of(directive, path.name)
            reading = parse_file(file["content"], str(path), format_, expected)
            bad = to_bad_rows(relation.name, source, name, reading.malformed)
            rows, unknown = with_signs(reading.table, relation, self.op, source, batch)
            bad = pa.concat_tables([bad, unknown])
            place = file["modificationTime"], file["path"]
            found.append(Events(rows, bad, tuple(reading.malformed), place))
        return found


@dataclass(frozen=True, slots=True)
class Folder:
    """An `.input` that is a stream.

    Attributes:
        relation: the relation that it changes.
        reader: reads its batches.
        pattern: for the names of its files.
    """

    relation: str
    reader: FolderReader
    pattern: str

    @property
    def source(self) -> str:
        """The name of the stream: unique, and the same in every run."""
        return f"{self.relation} < {dialect.file_name_of(self.reader.directive)}"

    @property
    def checkpoint(self) -> str:
        """The name of its checkpoint directory."""
        return f"{self.relation}-{checksum_of(self.source.encode())[:8]}"

    def frame(self, session: "SparkSession") -> "DataFrame":
        """Return the files as a streaming frame."""
        reader = session.readStream.format("binaryFile").schema(BINARY_FILE_SCHEMA)
        reader = reader.option("recursiveFileLookup", "true").option("pathGlobFilter", self.pattern)
        max_files = self.reader.directive.parameter("max_files")
        if max_files:
            reader = reader.option("maxFilesPerTrigger", max_files)
        return reader.load(_GLOB_CHARACTERS.sub(r"\\\1", self.reader.folder))


def find_folders(
    program: Program, relations: Mapping[str, Relation], base: Place, root: Place | None
) -> list[Folder]:
    """Return the streams of a program, one for each different `.input` that is one.

    Args:
        program: the program, checked.
        relations: the shapes of its relations by name.
        base: the directory that names are relative to (`-F`).
        root: the directory that files must lie in (`--root`); by default the base.

    Raises:
        InputError: `C0805`, a name lies outside; `C0984`, it is not a folder, or is read twice.
    """
    found: dict[str, Folder] = {}
    for directive in dict.fromkeys(program.directives):
        if not dialect.is_stream(directive):
            continue
        folder, pattern = _folder(directive, base, root)
        reader = FolderReader(directive, str(folder))
        each = Folder(relations[directive.relation].name, reader, pattern)
        if each.source in found:
            raise InputError.of(
                "C0984",
                f"`{each.relation}` reads `{dialect.file_name_of(directive)}` in two ways.",
                directive.span,
                "take one `.input` out, or let it fill a relation of its own",
            )
        found[each.source] = each
    return list(found.values())


def _folder(directive: Directive, base: Place, root: Place | None) -> tuple[Path, str]:
    """Return the folder of a stream, and the pattern for the names in it."""
    name = dialect.file_name_of(directive)
    place = SourceLocation(root or base, base, name, directive.span)
    path, pattern = place.resolve(name), "*"
    if not path.exists() and _WILDCARDS.search(Path(name).name):
        path, pattern = place.resolve(str(Path(name).parent)), Path(name).name
    if not isinstance(path, Path) or not path.is_dir():
        raise InputError.of(
            "C0984",
            f"`{place.display_name}` is not a folder in which files can arrive.",
            directive.span,
            'name a folder, perhaps with a pattern for files: `filename="arrivals/*.csv"`',
        )
    return path, pattern
