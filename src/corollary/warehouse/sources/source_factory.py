"""The source of an `.input`.

| `.input p(…)`                                   | source                                        |
|-------------------------------------------------|-----------------------------------------------|
| nothing, `filename="p.csv"`, `delimiter=…`      | a file of delimited text, perhaps gzip        |
| `format="jsonl"`, or a name ending in `.jsonl`  | JSON lines, perhaps gzip                      |
| `IO=jsonfile`                                   | one JSON array, perhaps gzip                  |
| `format="parquet"`, or `.parquet`               | a Parquet file                                |
| the name of a folder, or with `*`, `?`, `**`    | all these files together                      |
| `format="delta"`, or a folder with `_delta_log` | a Delta table                                 |
| `IO=sqlite`                                     | a table or view of an SQLite database         |
| `IO=postgresql`                                 | a table or view of PostgreSQL                 |
| `IO=iceberg`                                    | a table of Iceberg                            |
| `IO=spark`                                      | whatever Spark reads                          |
| `IO=kafka`, `IO=events`, `IO=push`              | change events, `analysis.change_streams`      |
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from corollary.analysis import change_streams
from corollary.console import Console, SilentConsole
from corollary.core.engine import TaskPool
from corollary.core.program import Directive, Program, Relation
from corollary.core.spark_io import display_name, is_spark_io
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.warehouse.files.input_files import file_error
from corollary.warehouse.files.places import Place
from corollary.warehouse.formats import dialect
from corollary.warehouse.formats.delta_entries import LOG_DIRECTORY
from corollary.warehouse.sources.events.messages import Carrier, MakeEventFields
from corollary.warehouse.sources.file_listing import SourceLocation
from corollary.warehouse.sources.file_source import FileSource
from corollary.warehouse.sources.quarantine import BadRowPolicy
from corollary.warehouse.sources.source import Source
from corollary.warehouse.sources.source_keys import SourceKey
from corollary.warehouse.sources.source_spec import SourceSpec
from corollary.warehouse.sources.spark_source import Fetch, MapRows, SparkSource


@dataclass(frozen=True, slots=True)
class SourceFactory:
    """Makes the sources of a program.

    Attributes:
        base: the directory that file names are relative to (`-F`).
        root: the directory that files must lie in (`--root`); by default the base.
        bad_rows: what is done about malformed records.
        fetch: reads what is read through Spark.
        map_rows: the same, without bringing rows here.
        console: shows how far the reading of files has come.
        tasks: where large files are read; None to read all of them here.
        fields: makes what finds the fields of change events.
        pushed: what clients have pushed, if that is read.
    """

    base: Place
    root: Place | None = None
    bad_rows: BadRowPolicy = BadRowPolicy.ABORT
    fetch: Fetch | None = None
    map_rows: MapRows | None = None
    console: Console = field(default_factory=SilentConsole)
    tasks: TaskPool | None = None
    fields: MakeEventFields | None = None
    pushed: Carrier | None = None

    def sources(self, program: Program, relations: Mapping[str, Relation]) -> list[Source]:
        """Return the sources of a program, one for each different `.input`, in its order.

        Streams are not sources: they have no state that could be compared.

        Args:
            program: the program, checked.
            relations: the signatures of its relations by name.

        Raises:
            InputError: `C0805`, a name leads outside the root; `C0956`, there is no such source,
                or a relation reads one in two ways.
        """
        keys = {each.name: each.key for each in program.declarations}
        bags = {each.name for each in program.declarations if each.is_bag}
        found: dict[str, Source] = {}
        for directive in dict.fromkeys(program.directives):
            if directive.name != "input" or dialect.is_stream(directive):
                continue
            relation = relations[directive.relation]
            key, has_copies = keys.get(relation.name, ()), relation.name in bags
            source = self.source(directive, relation, key, has_copies=has_copies)
            if source.name in found:
                raise InputError.of(
                    "C0956",
                    f"`{relation.name}` reads `{source.name.partition(' < ')[2]}` in two ways.",
                    directive.span,
                    "take one `.input` out, or let it fill a relation of its own",
                )
            found[source.name] = source
        return list(found.values())

    def source(
        self,
        directive: Directive,
        relation: Relation,
        key: Sequence[str] = (),
        *,
        has_copies: bool = False,
    ) -> Source:
        """Return the source of an `.input`; with copies, equal rows are several ones.

        Raises:
            InputError: `C0805`, a name leads outside the root; `C0956`, there is no such source.
        """
        if dialect.is_from_terminal(directive):
            raise InputError.of(
                "C0956",
                f"`{relation.name}` reads from standard input, which cannot be read again: what "
                "has changed since the last run is unknown.",
                directive.span,
                "read from a file, or hand the changes in with `corollary apply`",
            )
        is_spark, base = is_spark_io(directive), self.base
        if is_spark and not directive.parameter("filename"):
            base = Path()  # a table is in no folder
        name = display_name(directive) if is_spark else dialect.file_name_of(directive)
        place = SourceLocation(self.root or self.base, base, name, directive.span)
        spec = SourceSpec(
            relation,
            directive,
            place,
            SourceKey(tuple(key), directive.parameter("order")),
            self.bad_rows,
            self.console,
            has_copies=has_copies,
            tasks=self.tasks,
        )
        if is_spark:
            assert self.fetch is not None, "the caller has to read through Spark"
            return SparkSource(spec, self.fetch, self.map_rows)
        if change_streams.is_change_stream(directive):
            return self._event_source(spec, key)
        if dialect.channel_of(directive) == dialect.POSTGRESQL:
            from corollary.warehouse.sources.postgresql_source import PostgresqlSource

            return PostgresqlSource(spec)
        if dialect.channel_of(directive) == dialect.ICEBERG:
            from corollary.warehouse.sources.iceberg_source import IcebergSource

            return IcebergSource(spec)
        path = place.resolve(name)
        if dialect.is_sqlite(directive):
            from corollary.warehouse.sources.sqlite_source import SqliteSource

            return SqliteSource(spec)
        is_open = not directive.parameter("format") and dialect.channel_of(directive) == "file"
        is_delta = dialect.format_of(directive, place.name) == "delta"
        try:
            if not is_delta and not (is_open and (path / LOG_DIRECTORY).is_dir()):
                return FileSource(spec)
        except OSError as error:  # an object store does not answer
            raise file_error(place.display_name, "read", error, directive.span) from None
        from corollary.warehouse.sources.delta_source import DeltaSource

        return DeltaSource(spec, path)

    def _event_source(self, spec: SourceSpec, key: Sequence[str]) -> Source:
        """Return the source of an `.input` of change events."""
        from corollary.warehouse.sources.events.event_source import EventSource

        assert self.fields is not None, "streams are read by a warehouse"
        stream = change_streams.change_stream(spec.relation, spec.directive, key)
        return EventSource(spec, stream, self._carrier(spec), self.fields(stream))

    def _carrier(self, spec: SourceSpec) -> Carrier:
        match dialect.channel_of(spec.directive):
            case change_streams.KAFKA:
                from corollary.warehouse.sources.events.kafka_topic import KafkaTopic

                return KafkaTopic(spec)
            case change_streams.PUSH:
                from corollary.warehouse.sources.events.pushed_events import PushedEvents

                return self.pushed or PushedEvents()
            case _:
                from corollary.warehouse.sources.events.event_files import EventFiles

                return EventFiles(spec.location)
