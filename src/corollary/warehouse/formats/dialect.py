r"""The syntax of a facts file, by the parameters of its `.input` or `.output` directive.

| parameter   | meaning                                               | default                   |
|-------------|-------------------------------------------------------|---------------------------|
| `IO`        | `file`, `stdin` (input only), `stdout` (output only)  | `file`                    |
| `filename`  | relative to the directory of facts or of output       | `p.facts`, `p.csv[.gz]`   |
| `delimiter` | one character or several; `\t` is a tab               | tab; comma with `rfc4180` |
| `rfc4180`   | `"…"` around a field, `""` for a quote inside         | `false`                   |
| `headers`   | the first line names the columns                      | `false`                   |
| `columns`   | `0:2:1`: column i of the relation is at that position | all, in order             |
| `compress`  | gzip; detected on input                               | `false`                   |
| `attributeNames` | the header that an output gets                   | the names of the columns  |
| `intermediate` | nothing; Soufflé's own                             |                           |
| `name`      | the name of the file without its ending               | that of the relation      |

Without `delimiter`, a file whose `filename` ends in `.csv` has commas and `rfc4180`. An `.output`
without `filename` writes tabs into `p.csv`, as Soufflé does; so a `.csv` whose first line is split
by tabs and not by commas is read with tabs. An `.input` also has:

| parameter     | meaning                                                           | default  |
|---------------|-------------------------------------------------------------------|----------|
| `format`      | `csv` (the above), `jsonl`, `parquet`, `delta`; `IO=jsonlines`,   | by the   |
|               | `IO=parquet` and `IO=delta` are the same                          | name     |
| `order`       | the column by which, of rows with one key, the last is taken      | none     |
| `new_columns` | `ignore` or `refuse` columns that are added to the file later     | `ignore` |
| `max_bad`     | how many of its records may be malformed: `10%`, `7` or `off`     | `50%`    |
| `max_deletes` | how many rows of the relation it may delete at once               | `50%`    |

With `IO=stream` the name is that of a folder to which files are added, and there are also:

| parameter   | meaning                                                   | default              |
|-------------|-----------------------------------------------------------|----------------------|
| `op`        | the column after all others that says insert or delete    | all rows are inserts |
| `max_files` | the maximum number of files in a batch                    | all that exist       |

With `IO=jsonfile` the file, by default `p.json`, is one JSON array, as is what `IO=json` reads from
standard input or prints: see `formats.json_documents`. `IO=stdoutprintsize` prints the number of
tuples.

With `IO=sqlite` the file is a database (`filename`, or `dbname` as older programs have it; by
default `p.sqlite`), and `name` its table or view, by default that of the relation: see
`formats.sqlite_tables`.

With `IO=postgresql` it is the `table` of a `connection`, with `IO=iceberg` that of a `catalog`; by
default of the relation's name.

With `IO=spark` Spark reads the file; `core.through_spark` has the parameters.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

from corollary.analysis.change_streams import KAFKA, PUSH, is_change_stream
from corollary.core.program import Directive, Relation
from corollary.core.table_options import DURATIONS, FLAGS
from corollary.data_class import dataclass
from corollary.errors import Diagnostic, InputError

PARAMETERS = (
    *("IO", "filename", "delimiter", "rfc4180", "headers", "columns", "compress"),
    *("attributeNames", "intermediate", "name"),
)
TEXT_PARAMETERS = ("delimiter", "rfc4180", "headers", "columns", "attributeNames")
INPUT_PARAMETERS = ("format", "order", "new_columns", "max_bad", "max_deletes")
STREAM_PARAMETERS = ("op", "max_files")
STREAM = "stream"
SQLITE = "sqlite"
POSTGRESQL = "postgresql"
ICEBERG = "iceberg"
JSON = "json"
JSON_FILE = "jsonfile"
FORMAT_BY_IO = {
    "jsonlines": "jsonl",
    "parquet": "parquet",
    "delta": "delta",
    SQLITE: SQLITE,
    POSTGRESQL: POSTGRESQL,
    ICEBERG: ICEBERG,
    JSON: JSON,
    JSON_FILE: JSON,
}
"""The formats of files by the value of `IO`."""
DELIMITED_BY_SUFFIX = {".csv": (("delimiter", ","), ("rfc4180", "true")), ".tsv": (), ".facts": ()}
"""The parameters of delimited text by the ending of a name, where a directive gives none."""
GZIP_SUFFIX = ".gz"
FORMAT_BY_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The syntax of one file.

    Attributes:
        positions: for each column of the relation, its position in the file, from 0.
        is_quoted: whether fields may be in quotes (`rfc4180`).
        has_other_columns: whether the file may have more fields than those.
        line_max_bytes: the maximum bytes of a line; records with a longer one are malformed.
        may_begin_with_row: whether a header may look like a row.
        brackets: what the records of the relation are in, if the delimiter could be inside of them.
        may_have_tabs: whether only the name says that there are commas, so that the first line may
            say otherwise.
    """

    positions: tuple[int, ...]
    delimiter: str = "\t"
    is_quoted: bool = False
    has_header: bool = False
    has_other_columns: bool = False
    line_max_bytes: int | None = None
    may_begin_with_row: bool = False
    may_have_tabs: bool = False
    brackets: tuple[tuple[str, str], ...] = ()

    def of_first_line(self, head: bytes) -> "Dialect":
        r"""Return the syntax of a file that begins with some bytes.

        >>> commas = Dialect((0, 1), ",", is_quoted=True, may_have_tabs=True)
        >>> commas.of_first_line(b"a\tb, c, d\n").delimiter
        '\t'
        >>> commas.of_first_line(b"a\t2,b\n").delimiter
        ','
        """
        first = head.partition(b"\n")[0]
        if not self.may_have_tabs or first.startswith(b'"') or b',"' in first:
            return self
        width = max(self.positions, default=-1) + 1
        is_wider = self.has_header or self.has_other_columns
        by_commas, by_tabs = (
            first.count(each) >= width - 1 if is_wider else first.count(each) == width - 1
            for each in (b",", b"\t")
        )
        if by_commas or not by_tabs:
            return self
        return replace(self, delimiter="\t", is_quoted=False, may_have_tabs=False)


def dialect_of(relation: Relation, directive: Directive, name: str = "") -> Dialect:
    """Return the syntax that a directive describes.

    Args:
        relation: the relation of the rows.
        directive: the `.input` or `.output`.
        name: of the file that is read, if it is one of several; by default that of the directive.

    Raises:
        InputError: `C0806`; all parameters that are unknown or have a wrong value.
    """
    findings: list[Diagnostic] = []

    def reject(message: str, note: str | None = None) -> None:
        findings.append(Diagnostic("C0806", message, directive.span, note))

    def flag(name: str, default: str = "false") -> bool:
        value = directive.parameter(name, default)
        if value not in {"true", "false"}:
            reject(f"`{name}` is `true` or `false`, not `{value}`")
        return value == "true"

    more = (*FLAGS, *DURATIONS) if directive.name == "output" else INPUT_PARAMETERS
    parameters = PARAMETERS + more
    for each, _ in directive.parameters:
        if each not in parameters:
            known = ", ".join(f"`{known}`" for known in parameters)
            reject(f"`.{directive.name}` has no parameter `{each}`", f"there are {known}")
    channels = ("file", "stdout" if directive.name == "output" else "stdin")
    if (channel := channel_of(directive)) not in channels:
        reject(f"`IO` is `{channels[0]}` or `{channels[1]}` here, not `{channel}`")
    if (format_ := directive.parameter("format", "csv")) != "csv":
        reject(f"`format` is `csv` here, not `{format_}`")
    ending = suffix_of(name or file_name_of(directive))
    is_named = directive.name == "input" or directive.parameter("filename") != ""
    has_ending = is_named and channel == "file" and not directive.parameter("delimiter")
    by_ending = dict(DELIMITED_BY_SUFFIX.get(ending, ())) if has_ending else {}
    is_quoted = flag("rfc4180", by_ending.get("rfc4180", "false"))
    default = by_ending.get("delimiter", "," if is_quoted else "\t")
    delimiter = directive.parameter("delimiter", default).replace("\\t", "\t")
    if not delimiter or re.search(r"[\n\r\0\ufeff\ud800-\udfff]", delimiter):
        reject("`delimiter` must not be empty or hold a line break")
    if is_quoted and '"' in delimiter:
        reject('`delimiter` must not hold a `"` where `rfc4180` is true')
    flag("compress")  # only checked here; `input_files` and `output_files` use it
    flag("intermediate")
    has_columns = "columns" in dict(directive.parameters)
    dialect = Dialect(
        positions=_positions(relation, directive, reject) if has_columns else _all_of(relation),
        delimiter=delimiter,
        is_quoted=is_quoted,
        has_header=flag("headers"),
        has_other_columns=has_columns,
        may_begin_with_row=directive.parameter("max_bad") == "off",
        may_have_tabs=bool(by_ending) and not directive.parameter("rfc4180"),
        brackets=_brackets(relation) if "," in delimiter and not is_quoted else (),
    )
    if findings:
        raise InputError(findings)
    return dialect


def channel_of(directive: Directive) -> str:
    """Return where the data comes from or goes to: `file`, `stdin` or `stdout`."""
    return directive.parameter("IO", "file")


def is_json(directive: Directive) -> bool:
    """Return whether a directive reads or writes one JSON array."""
    return channel_of(directive) in (JSON, JSON_FILE)


def is_from_terminal(directive: Directive) -> bool:
    """Return whether an `.input` reads from standard input."""
    return channel_of(directive) in ("stdin", JSON)


def is_printed(directive: Directive) -> bool:
    """Return whether an `.output` goes to standard output."""
    return channel_of(directive) in ("stdout", JSON)


def is_size(directive: Directive) -> bool:
    """Return whether a directive asks for the number of tuples."""
    return directive.name == "printsize" or channel_of(directive) == "stdoutprintsize"


def printed_directive(directive: Directive) -> Directive:
    """Return an `.output` that prints its relation, with a header, as `-D -` asks for.

    >>> printed_directive(Directive("output", "p", (("filename", "p.txt"),))).parameters
    (('IO', 'stdout'), ('headers', 'true'))
    """
    if directive.name != "output" or is_size(directive):
        return directive
    kept = [pair for pair in directive.parameters if pair[0] in (*TEXT_PARAMETERS, "name")]
    given = {"IO": "stdout", **dict(kept), "headers": "true"}
    return replace(directive, parameters=tuple(given.items()))


def is_sqlite(directive: Directive) -> bool:
    """Return whether a directive reads or writes a table of an SQLite database."""
    return channel_of(directive) == SQLITE


def is_stream(directive: Directive) -> bool:
    """Return whether a directive reads files as they are added to a folder."""
    return directive.name == "input" and channel_of(directive) == STREAM


def per_file_directive(directive: Directive) -> Directive:
    """Return the directive that reads each file of a stream by itself."""
    rest = [pair for pair in directive.parameters if pair[0] not in ("IO", *STREAM_PARAMETERS)]
    return replace(directive, parameters=tuple(rest))


def format_of(directive: Directive, name: str) -> str:
    """Return the format that a directive gives for a file, or else the one of its name.

    >>> (
    ...     format_of(Directive("input", "p"), "p.facts"),
    ...     format_of(Directive("input", "p"), "p.jsonl.gz"),
    ... )
    ('csv', 'jsonl')
    """
    if is_json(directive):  # where `format` says what rows are
        return JSON
    explicit = directive.parameter("format") or FORMAT_BY_IO.get(channel_of(directive))
    return explicit or FORMAT_BY_SUFFIX.get(suffix_of(name), "csv")


def suffix_of(name: str) -> str:
    """Return the ending of a name that says the format of the file, perhaps before `.gz`."""
    return PurePath(name.removesuffix(GZIP_SUFFIX)).suffix


def file_name_of(directive: Directive) -> str:
    """Return the name of the file that a directive reads or writes.

    >>> file_name_of(Directive("input", "edge")), file_name_of(Directive("output", "edge"))
    ('edge.facts', 'edge.csv')
    """
    if is_change_stream(directive):
        channel = channel_of(directive)
        if channel == KAFKA:
            return f"{KAFKA} {directive.parameter('topic')}"
        return PUSH if channel == PUSH else directive.parameter("filename", directive.relation)
    if (channel := channel_of(directive)) in (POSTGRESQL, ICEBERG):
        table = directive.parameter("table", directive.relation)
        where = directive.parameter("catalog" if channel == ICEBERG else "connection")
        return f"{channel} {where} {table}"
    if is_sqlite(directive):
        named = directive.parameter("name", directive.relation)
        default = directive.parameter("dbname", f"{named}.sqlite")
        return directive.parameter("filename", default)
    suffix = ".csv.gz" if directive.parameter("compress") == "true" else ".csv"
    if directive.name != "output":
        suffix = ".facts"
    if is_json(directive):
        suffix = ".json"
    named = directive.parameter("name", directive.relation)
    return directive.parameter("filename", named + suffix)


def _brackets(relation: Relation) -> tuple[tuple[str, str], ...]:
    """Return the pairs of brackets that the records of a relation are in."""
    records = [type_.record for type_ in relation.types if type_.record is not None]
    found = {("(", ")") if record.is_algebraic else ("[", "]") for record in records}
    return tuple(sorted(found))


def _all_of(relation: Relation) -> tuple[int, ...]:
    return tuple(range(relation.arity))


def _positions(
    relation: Relation, directive: Directive, reject: Callable[[str, str | None], None]
) -> tuple[int, ...]:
    text = directive.parameter("columns")
    parts = text.split(":") if text else []
    positions = tuple(int(part) for part in parts if re.fullmatch("[0-9]{1,5}", part))
    if not len(parts) == len(positions) == len(set(positions)) == relation.arity:
        reject(
            f"`columns` names {relation.arity} different positions, "
            f"one for each column of `{relation.name}`, not `{text}`",
            'the first position is 0, as in columns="0:2:1"',
        )
        return _all_of(relation)
    if directive.name == "output" and set(positions) != set(range(relation.arity)):
        reject(f"`columns` of an `.output` orders the columns, and `{text}` leaves gaps", None)
    return positions
