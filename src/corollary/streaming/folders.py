"""A folder into which files come: `.input p(IO=stream, filename="arrivals", …)`.

Spark finds the files, each of them once, and hands over their bytes; they are read as those of any
other source, so dialects, line numbers and malformed records are the same. The events of a batch
have an order: files by the time of their last write, then by name; in a file line by line.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corollary.core.arrow import nullary_table, schema_of
from corollary.core.program import Directive, Program, Relation
from corollary.errors import Diagnostic, InputError
from corollary.streaming.events import Events, with_op
from corollary.warehouse.dialect import as_files, file_name_of, format_of, is_stream
from corollary.warehouse.files import checksum_of
from corollary.warehouse.sources.drift import Expected
from corollary.warehouse.sources.file_source import read_whole
from corollary.warehouse.sources.listing import Place
from corollary.warehouse.sources.quarantine import bad_rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "path string, modificationTime timestamp, length long, content binary"
"""What Spark's `binaryFile` has."""
_GLOB = re.compile(r"([\\*?\[\]{},])")
_WILD = re.compile(r"[*?[]")


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
        """The column of the operation; None if all are inserts."""
        return self.directive.parameter("op") or None

    def read(
        self, frame: Any, relation: Relation, source: str, batch: str
    ) -> tuple[Events, list[list[Diagnostic]]]:
        """Return what a batch says, and the findings about records that do not fit."""
        del batch  # a record is found by its file
        shape, directive = with_op(relation, self.op), as_files(self.directive)
        has_names = directive.parameter("headers") == "true" and not directive.parameter("columns")
        expected = Expected(shape, directive, shape.columns if has_names else ())
        tables, bad, every = [], [], []
        files = frame.select("path", "modificationTime", "content").toArrow().to_pylist()
        for file in sorted(files, key=lambda each: (each["modificationTime"], each["path"])):
            path = Path(file["path"].removeprefix("file:"))
            name = str(path.relative_to(self.folder))
            format_ = format_of(directive, path.name)
            reading = read_whole(file["content"], str(path), format_, expected)
            tables.append(reading.table)
            bad += bad_rows_of(relation.name, source, name, reading.malformed)
            every += reading.malformed
        if not shape.columns:
            return Events(nullary_table(min(1, sum(map(len, tables)))), tuple(bad)), every
        rows = pa.concat_tables([schema_of(shape).empty_table(), *tables])
        return Events(rows, tuple(bad)), every


@dataclass(frozen=True, slots=True)
class Folder:
    """An `.input` that is a stream.

    Attributes:
        relation: the relation that it changes.
        reader: reads its batches.
        pattern: what the names of its files match.
    """

    relation: str
    reader: FolderReader
    pattern: str

    @property
    def source(self) -> str:
        """What the stream is called, the same in every run, and unlike all others."""
        return f"{self.relation} < {file_name_of(self.reader.directive)}"

    @property
    def checkpoint(self) -> str:
        """The name of the directory in which Spark notes how far it is."""
        return f"{self.relation}-{checksum_of(self.source.encode())[:8]}"

    def frame(self, session: "SparkSession") -> "DataFrame":
        """Return the files as a streaming frame."""
        reader = session.readStream.format("binaryFile").schema(SCHEMA)
        reader = reader.option("recursiveFileLookup", "true").option("pathGlobFilter", self.pattern)
        most = self.reader.directive.parameter("max_files")
        if most:
            reader = reader.option("maxFilesPerTrigger", most)
        return reader.load(_GLOB.sub(r"\\\1", self.reader.folder))


def folders_of(
    program: Program, relations: Mapping[str, Relation], base: Path, root: Path | None
) -> list[Folder]:
    """Return the streams of a program, one for each different `.input` that is one.

    Args:
        program: the program, checked.
        relations: the shapes of its relations by name.
        base: the directory that names are relative to (`-F`).
        root: the directory that files must lie in (`--root`); the base where nothing is said.

    Raises:
        InputError: `C0805`, a name is out of reach; `C0984`, it is no folder, or is read twice.
    """
    found: dict[str, Folder] = {}
    for directive in dict.fromkeys(program.directives):
        if not is_stream(directive):
            continue
        folder, pattern = _folder(directive, base, root)
        reader = FolderReader(directive, str(folder))
        each = Folder(relations[directive.relation].name, reader, pattern)
        if each.source in found:
            raise InputError.of(
                "C0984",
                f"`{each.relation}` reads `{file_name_of(directive)}` in two ways.",
                directive.span,
                "take one `.input` out, or let it fill a relation of its own",
            )
        found[each.source] = each
    return list(found.values())


def _folder(directive: Directive, base: Path, root: Path | None) -> tuple[Path, str]:
    """Return the folder of a stream, and the pattern of the names in it."""
    name = file_name_of(directive)
    place = Place(root or base, base, name, directive.span)
    path, pattern = place.resolve(name), "*"
    if not path.exists() and _WILD.search(Path(name).name):
        path, pattern = place.resolve(str(Path(name).parent)), Path(name).name
    if not path.is_dir():
        raise InputError.of(
            "C0984",
            f"`{place.shown}` is no folder that files can come into.",
            directive.span,
            'name a folder, perhaps with a pattern for files: `filename="arrivals/*.csv"`',
        )
    return path, pattern
