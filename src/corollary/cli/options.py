"""Families of options that commands share: a command gets each as a frozen dataclass."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from corollary.cli.output import print_json, report_errors, warn_of_unknown_variables
from corollary.cli.parameters import (
    COUNT,
    DIRECTORY,
    FLAG,
    Pair,
    byte_count,
    choice,
    day,
    given_functors,
    matching,
    option,
    pair,
    place,
    point_in_history,
    row_bound,
)
from corollary.cli.recording import current_recording, echo, open_console
from corollary.console import TerminalConsole
from corollary.data_class import dataclass

if TYPE_CHECKING:
    from corollary.core.engine import Limits
    from corollary.core.program import NormalProgram, RowBound
    from corollary.database.database import Database
    from corollary.database.intake.source_guards import SourceGuards
    from corollary.database.options import DatabaseOptions
    from corollary.database.program.loaded_program import LoadedProgram
    from corollary.database.reading.reader import Reader
    from corollary.warehouse.files.places import Place
    from corollary.warehouse.warehouse_catalog import WarehouseCatalog

ALGORITHMS = ("auto", "recompute", "dred", "pf", "epf", "counting", "ranked")

# --- what is printed --------------------------------------------------------------------------


@dataclass(frozen=True)
class FormatOptions:
    """Whether a command prints text or JSON."""

    format: Annotated[str, "How results and errors are printed.", choice("text", "json")]

    @property
    def is_json(self) -> bool:
        """Whether results and errors are JSON documents."""
        return self.format == "json"

    @contextmanager
    def reporting(self, closing_min_seconds: float = math.inf) -> Iterator[TerminalConsole]:
        """Give a console for notes; errors become messages and exit codes.

        Args:
            closing_min_seconds: work that takes less ends without the line of its seconds, unless
                it is asked for with `-v`; a command that only shows something has none.
        """
        console = self._console()
        warn_of_unknown_variables(console)
        with report_errors(console, is_json=self.is_json):
            _load_functors()
            try:
                yield console
            except SystemExit:  # a command has come to its end, with a status
                console.finish(closing_min_seconds)
                raise
            console.finish(closing_min_seconds)

    def show(self, document: Callable[[], Any], lines: Iterable[str]) -> None:
        """Print a result as a JSON document, or as lines of text; the other one is not computed."""
        if self.is_json:
            print_json(document())
        else:
            for line in lines:
                echo(line)

    def _console(self) -> TerminalConsole:
        return open_console()


@dataclass(frozen=True)
class OutputOptions(FormatOptions):
    """Whether a command prints text or JSON, and whether it prints notes."""

    quiet: Annotated[bool, "Print results and errors only.", option("-q", "--quiet", is_flag=True)]

    def _console(self) -> TerminalConsole:
        return open_console(self.quiet)


@dataclass(frozen=True)
class WorkOutputOptions(OutputOptions):
    """How a command prints results, and what it says while it works."""

    verbose: Annotated[
        bool,
        "Print a line for each phase of the work: rows, bytes and seconds.",
        option("-v", "--verbose", is_flag=True),
    ]

    def _console(self) -> TerminalConsole:
        return open_console(self.quiet, is_verbose=self.verbose)


def _load_functors() -> None:
    """Run the code of functors; a server does it when it starts, and not for its clients."""
    given = given_functors()
    if given and current_recording() is None:
        from corollary.core.user_functors.loading import load_functors

        load_functors(given)


Allow = Annotated[
    tuple[str, ...],
    "Accept this warning: it is neither printed nor counted. May be repeated.",
    option(
        metavar="CODE",
        multiple=True,
        type=matching(r"C\d{4}", "is not the code of a warning; write C0706"),
    ),
]


@dataclass(frozen=True)
class CheckOutputOptions(OutputOptions):
    """How a command prints what it finds in a program."""

    allow: Allow

    @property
    def allowed(self) -> frozenset[str]:
        """The codes of warnings that the user accepts."""
        return frozenset(self.allow)


@dataclass(frozen=True)
class ChangeOutputOptions(WorkOutputOptions):
    """How a command prints what it has changed."""

    allow: Allow

    max_rows: Annotated[
        int,
        "List at most this many tuples of a relation in JSON; the counts stay exact.",
        option(type=COUNT, default=1000, show_default=True),
    ]

    def _console(self) -> TerminalConsole:
        return open_console(self.quiet, is_verbose=self.verbose, allowed=frozenset(self.allow))


# --- what is read -----------------------------------------------------------------------------


Today = Annotated[
    date | None,
    "The day that `today()` gives in the program; a warehouse keeps it until it is set again.",
    option(metavar="DATE", type=day),
]


@dataclass(frozen=True)
class RootOption:
    """The directory that a program may not leave."""

    root: Annotated[
        "Place | None",
        "Directory or objects that .input and .output may not leave. Default: the one of -F or -D.",
        option(type=place, metavar="DIRECTORY"),
    ]


@dataclass(frozen=True)
class FileOptions(RootOption):
    """Where the facts files of a program are."""

    facts: Annotated[
        "Place",
        "Directory of the facts files (.input), or objects (s3://…). Default: here.",
        option("-F", "--facts", type=place, metavar="DIRECTORY", default=Path()),
    ]
    today: Today


@dataclass(frozen=True)
class SourceOptions:
    """What is accepted of the sources of a warehouse."""

    max_bad: Annotated[
        "RowBound",
        "Refuse a source if more of its records are malformed: a share, a number, or off.",
        option(metavar="BOUND", type=row_bound, default="50%", show_default=True),
    ]
    max_deletes: Annotated[
        "RowBound",
        "Refuse a source that deletes more of a relation: a share (of 1,000 rows or more), a "
        "number, or off.",
        option(metavar="BOUND", type=row_bound, default="50%", show_default=True),
    ]

    @property
    def guards(self) -> "SourceGuards":
        """The bounds in the form that the pipeline takes."""
        from corollary.database.intake.source_guards import SourceGuards

        return SourceGuards(self.max_bad, self.max_deletes)


@dataclass(frozen=True)
class ReaderOptions:
    """Who reads a warehouse."""

    reader: Annotated[
        str | None,
        "As this reader sees it: only what was granted to it.",
        option("--as", metavar="READER", allow_from_autoenv=False),
    ]

    def view(self, database: "Database") -> "Database | Reader":
        """Return a database as the reader sees it, if there is one."""
        return database if self.reader is None else database.reader(self.reader)

    def granted(self, warehouse: "WarehouseCatalog") -> frozenset[str] | None:
        """Return what the reader may see; None if there is no reader, so that all is seen."""
        from corollary.database.access.grants import check_reader_name
        from corollary.warehouse.catalog.grants import StoredGrants

        if self.reader is None:
            return None
        return StoredGrants(warehouse.catalog).granted_to(check_reader_name(self.reader))


@dataclass(frozen=True)
class SnapshotOptions(ReaderOptions):
    """Who reads a warehouse, and as of which commit."""

    at: Annotated[
        Any,
        "As it was after this commit, at this time (2026-11-15T08:00:00Z) or at the end of this "
        "day (2026-11-15, UTC).",
        option(metavar="COMMIT|TIME|DATE", type=point_in_history),
    ]

    def view(self, database: "Database") -> "Database | Reader":
        """Return a database as the reader sees it, as of the commit."""
        seen = super().view(database)
        return seen if self.at is None else seen.at(self.at)


# --- how it is computed -----------------------------------------------------------------------

Placement = Annotated[
    str,
    "Where Spark computes: here, or in tasks with all relations in partitions. By size: auto.",
    choice("auto", "partitions", "driver"),
]
DriverMemory = Annotated[
    str | None,
    "Memory for relations on the driver, such as 500M or 2G; larger ones are partitioned."
    " Default: a quarter of the machine's.",
    option(metavar="SIZE", envvar="COROLLARY_DRIVER_MEMORY"),
]
Bulk = Annotated[
    str,
    "Let DuckDB compute what reads whole relations: large ones, all where it is exact, or none.",
    option(
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        envvar="COROLLARY_BULK",
    ),
]
Without = Annotated[
    tuple[str, ...],
    "Monitor without it, to see what it is worth: relevance, polarity, sip, sharing, "
    "specialisation or minimising. May be repeated.",
    option(metavar="OPTIMISATION", multiple=True),
]


@dataclass(frozen=True)
class LimitOptions:
    """Bounds on an evaluation."""

    limit_rounds: Annotated[
        int | None,
        "Stop a recursion after this many rounds, 10,000,000 by default.",
        option(type=COUNT),
    ]
    limit_tuples: Annotated[
        int | None, "Stop at this many tuples in all relations together.", option(type=COUNT)
    ]
    limit_seconds: Annotated[
        float | None,
        "Stop after this many seconds.",
        option(type=click.FloatRange(min=0, max=1000000000.0)),
    ]
    limit_memory: Annotated[
        float | None,
        "Stop at this much memory, such as 500M or 2G.",
        option(
            metavar="SIZE", type=byte_count(1024, "is not an amount of memory; write 500M or 2G")
        ),
    ]

    @property
    def limits(self) -> "Limits":
        """The bounds in the form that engines take."""
        from corollary.core.engine import Limits

        memory = None if self.limit_memory is None else int(self.limit_memory)
        return Limits(self.limit_rounds, self.limit_tuples, self.limit_seconds, memory)


@dataclass(frozen=True)
class AlgorithmOptions:
    """What maintains derived relations."""

    algorithm: Annotated[str, "What maintains the derived relations.", choice(*ALGORITHMS)]
    relations: Annotated[
        tuple[Pair, ...],
        "What maintains one of them, instead. May be repeated.",
        option(
            "--relation",
            metavar="NAME=ALGORITHM",
            multiple=True,
            type=pair(
                "is not a relation and an algorithm; write link=epf, with one of "
                + ", ".join(ALGORITHMS),
                ALGORITHMS.__contains__,
            ),
        ),
    ]

    @property
    def algorithms(self) -> Mapping[str, str]:
        """The algorithm of each relation that is named; the one of all others under ''."""
        return {"": self.algorithm, **dict(self.relations)}

    def check(self, program: "NormalProgram") -> None:
        """Check that the relations that are named exist, and are derived.

        Raises:
            InputError: one does not exist, or is a base relation.
        """
        from corollary.database.program.names import readable_relation
        from corollary.errors import InputError

        for name in self._named():
            if not readable_relation(program, name).is_derived:
                raise InputError.of(
                    "C0917",
                    f"`{name}` is a base relation, so nothing maintains it.",
                    None,
                    "name a relation that has rules",
                )

    def _named(self) -> Iterable[str]:
        return dict(self.relations)


@dataclass(frozen=True)
class PropagationOptions(AlgorithmOptions):
    """What maintains derived relations, and which virtual ones are watched."""

    watch: Annotated[
        tuple[str, ...],
        "Ask for the changes of this virtual relation only. Default: of those that the program "
        "writes (.output, .printsize), or of all that are declared if it writes nothing.",
        option(metavar="RELATION", multiple=True),
    ]

    def watched(self, loaded: "LoadedProgram") -> Iterable[str]:
        """Return the relations to watch: those named, or else virtual ones that are asked for.

        These are what the program writes; if it writes nothing, all that are declared. Bodies of
        aggregates that are read through their rule are not among them.

        If there are active rules, they determine what is watched.
        """
        program, written = loaded.normal, loaded.written_relations
        if program.active.reactions or program.active.triggers:
            return self.watch
        return self.watch or [
            name
            for name, each in program.relations.items()
            if each.is_declared and each.is_derived and each.is_virtual and not each.is_inlined
            if not written or program.bags.get(name, name) in written
        ]

    def _named(self) -> Iterable[str]:
        return (*super()._named(), *self.watch)


@dataclass(frozen=True)
class EngineOption:
    """What computes."""

    engine: Annotated[
        str,
        "What computes: `spark` starts a local session once there is work for it, `local` never.",
        choice("spark", "local"),
    ]


@dataclass(frozen=True)
class EngineOptions(EngineOption):
    """What computes, and where."""

    placement: Placement
    driver_memory: DriverMemory
    bulk: Bulk

    @property
    def options(self) -> "DatabaseOptions":
        """The options of the database."""
        from corollary.database.options import DatabaseOptions

        return DatabaseOptions(self.engine, self.placement, self.driver_memory, self.bulk)


@dataclass(frozen=True)
class MaintenanceOptions(EngineOptions, AlgorithmOptions, LimitOptions):
    """How a warehouse is kept up to date: engine, algorithms, limits, constraints, alerts."""

    strict: Annotated[bool, "Fail rather than recompute a relation in full.", FLAG]
    existing: Annotated[
        str,
        "What to do about tuples that violate a new constraint and were there before it.",
        choice("report", "refuse", "accept"),
    ]
    without: Without
    allow_webhook: Annotated[
        tuple[str, ...],
        "Let alerts be posted to URLs that begin with this one, or mailed: `mailto:@mail.example`. "
        "May be repeated.",
        option(metavar="URL", multiple=True, envvar="COROLLARY_ALLOW_WEBHOOKS"),
    ]
    alerts: Annotated[
        Path | None,
        "Directory that files of alerts may not leave. Default: `alerts` in the warehouse.",
        option(type=DIRECTORY),
    ]

    publish: Annotated[
        str | None,
        "When the tables of outputs are brought forward: with every commit, at most once a second "
        "and at the end, or not at all. Default: at the end.",
        option(type=click.Choice(["commit", "1s", "manual"])),
    ]

    @property
    def options(self) -> "DatabaseOptions":
        """The options of the database."""
        return replace(
            super().options,
            algorithm=self.algorithms,
            strict=self.strict,
            limits=self.limits,
            existing=self.existing,
            without=self.without,
            webhooks=self.allow_webhook,
            alerts=None if self.alerts is None else str(self.alerts.absolute()),
            publish=self.publish,
        )
