"""The format of a file by the extension of its name, where no directive gives it.

| name                            | format                                             |
|---------------------------------|----------------------------------------------------|
| `edges.csv`                     | commas, `"…"` around texts (`rfc4180`)             |
| `edges.tsv`, `edges.facts`      | tabs, as in Soufflé                                |
| `edges.jsonl`, `edges.ndjson`   | JSON lines                                         |
| `edges.parquet`                 | Parquet                                            |
| a folder with `_delta_log`      | a Delta table; for input only                      |

Text may be compressed: `edges.csv.gz`.
"""

from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from corollary.core.arrow import sort_rows
from corollary.core.program import Directive, Relation
from corollary.errors import InputError
from corollary.warehouse.files.durable_files import HOLDS_COLUMN
from corollary.warehouse.formats import delimited, delimited_lines, json_documents
from corollary.warehouse.formats.delta_entries import LOG_DIRECTORY
from corollary.warehouse.formats.dialect import (
    DELIMITED_BY_SUFFIX,
    FORMAT_BY_SUFFIX,
    GZIP_SUFFIX,
    TEXT_PARAMETERS,
    file_name_of,
    format_of,
    suffix_of,
)
from corollary.warehouse.formats.json_documents import JsonForm
from corollary.warehouse.formats.output_files import OutputFile, Writer


def input_of(relation: Relation, file: str, *, has_headers: bool = False) -> Directive:
    """Return the `.input` that would read a file, or a Delta table, for a relation.

    >>> from corollary.core.types import NUMBER
    >>> edge = Relation("edge", ("x",), (NUMBER,), is_derived=False)
    >>> input_of(edge, "new/edges.csv").parameter("filename")
    'new/edges.csv'

    Raises:
        InputError: `C0972`, the name does not tell.
    """
    if (Path(file) / LOG_DIRECTORY).is_dir():
        return Directive("input", relation.name, (("filename", file), ("format", "delta")))
    return Directive("input", relation.name, _parameters(file, has_headers))


def output_of(
    table: pa.Table, relation: Relation, file: str, *, has_headers: bool = False
) -> OutputFile:
    """Return an output file for the rows of a relation.

    Raises:
        InputError: `C0972`, the name does not tell the format.
    """
    parameters = _parameters(file, has_headers)
    if file.endswith(GZIP_SUFFIX):
        parameters = (*parameters, ("compress", "true"))
    directive = Directive("output", relation.name, parameters)
    return OutputFile(table, Path(file), relation, directive, writer_of(directive))


def writer_of(directive: Directive) -> Writer:
    """Return what writes the file of an `.output`, by the ending of its name.

    Raises:
        InputError: `C0806`, a parameter is for delimited text.
    """
    format_ = format_of(directive, file_name_of(directive))
    text_only = [*TEXT_PARAMETERS, *(["compress"] if format_ == "parquet" else [])]
    given = [name for name, _ in directive.parameters if name in text_only]
    if given and format_ != "csv":
        raise InputError.of(
            "C0806",
            f"`{given[0]}` does not apply to `{file_name_of(directive)}`, whose name says "
            f"`{format_}`",
            directive.span,
            "leave it out, or let the name end in `.csv`, `.tsv` or `.txt`",
        )
    return _WRITERS[format_]


def is_delimited(file: str) -> bool:
    """Return whether a file is delimited text, whose first line may name the columns."""
    return suffix_of(file) in DELIMITED_BY_SUFFIX


def _parameters(file: str, has_headers: bool) -> tuple[tuple[str, str], ...]:
    suffix = suffix_of(file)
    named = ("filename", file)
    if suffix in DELIMITED_BY_SUFFIX:
        headers = (("headers", "true"),) if has_headers else ()
        return (named, *headers)
    if suffix not in FORMAT_BY_SUFFIX or (suffix == ".parquet" and file.endswith(GZIP_SUFFIX)):
        *most, last = (*DELIMITED_BY_SUFFIX, *FORMAT_BY_SUFFIX)
        raise InputError.of(
            "C0972",
            f"The name of `{file}` does not tell its format.",
            None,
            f"let it end in {', '.join(most)} or {last}; all but the last also with {GZIP_SUFFIX}",
        )
    return (named,)


def _write_json_lines(table: pa.Table, stream: BinaryIO, relation: Relation, _: Directive) -> None:
    """Write each row as an object on a line, by column names."""
    if relation.types:
        rows = json_documents.row_texts(sort_rows(table), relation, JsonForm(relation.columns))
        stream.write(delimited_lines.join_fields([rows], ""))
    else:
        stream.write(b"{}\n" * table.num_rows)


def _write_parquet(table: pa.Table, stream: BinaryIO, relation: Relation, _: Directive) -> None:
    """Write the rows; a relation without columns gets a column that is true."""
    whole = (
        sort_rows(table) if relation.arity else pa.table({HOLDS_COLUMN: [True] * table.num_rows})
    )
    pq.write_table(whole, stream, compression="zstd")


_WRITERS = {
    "csv": delimited.write,
    "json": json_documents.write,
    "jsonl": _write_json_lines,
    "parquet": _write_parquet,
}
