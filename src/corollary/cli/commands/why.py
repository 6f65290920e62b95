"""`corollary why`, `why-not`, `why-added`, `why-removed` and `what-if`."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import click

from corollary.cli.databases import open_to_read
from corollary.cli.options import ChangeOutputOptions, OutputOptions, ReaderOptions, SnapshotOptions
from corollary.cli.output import print_json
from corollary.cli.parameters import COUNT, POSITIVE, choice, family, functors, option, warehouse
from corollary.cli.recording import echo
from corollary.cli.served_command import ServedCommand
from corollary.console import LONG_SECONDS
from corollary.data_class import dataclass

if TYPE_CHECKING:
    from corollary.database.database import Database
    from corollary.database.reading.reader import Reader
    from corollary.provenance.limits import ProofLimits
    from corollary.provenance.proof import Absence, ChangeExplanation, Proof


@dataclass(frozen=True)
class AnswerOptions(OutputOptions):
    """How the answer to a question is printed."""

    format: Annotated[
        str,
        "How answers are printed: as text, as JSON, or as a picture (SVG).",
        choice("text", "json", "svg"),
    ]
    depth: Annotated[
        int | None,
        "The levels of a proof to unfold, in text; all of them by default.",
        option(type=COUNT),
    ]

    def print(self, answer: "Proof | Absence | ChangeExplanation") -> None:
        """Print an answer."""
        match self.format:
            case "json":
                print_json(answer.to_json())
            case "svg":
                echo(answer.to_svg(), nl=False)
            case _:
                echo(answer.to_text(self.depth), nl=False)


@dataclass(frozen=True)
class ProofLimitOptions:
    """How much work a question may take; what is left out because of it is said."""

    limit_nodes: Annotated[
        int,
        "The maximum number of nodes to show.",
        option(type=POSITIVE, default=1_000, show_default=True),
    ]
    limit_expanded: Annotated[
        int,
        "The maximum number of tuples whose instances are looked at.",
        option(type=POSITIVE, default=100_000, show_default=True),
    ]
    limit_work: Annotated[
        int,
        "The maximum number of rows to handle; then the answer is what was found.",
        option(type=POSITIVE, default=2_500_000, show_default=True),
    ]
    limit_seconds: Annotated[
        float,
        "Stop looking after this many seconds, as a last resort.",
        option(type=click.FloatRange(min=0, max=1_000_000.0), default=20.0, show_default=True),
    ]
    limit_dry_runs: Annotated[
        int,
        "The maximum number of sets of changes to try out.",
        option(type=COUNT, default=64, show_default=True),
    ]

    @property
    def limits(self) -> "ProofLimits":
        """The bounds in the form that questions take."""
        from corollary.provenance.limits import ProofLimits

        return ProofLimits(
            nodes=self.limit_nodes,
            expanded=self.limit_expanded,
            work=self.limit_work,
            seconds=self.limit_seconds,
            dry_runs=self.limit_dry_runs,
        )


FAILED = 1
"""The exit status if a tuple does not hold."""

_COMMIT = click.option(
    "--commit",
    type=click.IntRange(min=1),
    help="The commit that did it. Default: the last one that did.",
)
_INSERTIONS = click.option(
    "--insertions",
    type=COUNT,
    default=2,
    metavar="K",
    show_default=True,
    help="Look for sets of at most K base tuples that would make it true; 0 looks for none.",
)


def _explaining(
    name: str, *options: Callable[[Any], Any], read: type[ReaderOptions] = SnapshotOptions
) -> Callable[[Callable[..., None]], click.Command]:
    """Return what makes a command of a function that explains a tuple of a warehouse.

    The function gets the database as the reader sees it, the goal, how it prints, the bounds of the
    work, and further options.

    Args:
        name: that of the command.
        options: those that the other commands do not have.
        read: who reads, and as of which commit.
    """

    def make(explain: Callable[..., None]) -> click.Command:
        @wraps(explain)
        def run(
            warehouse: str,
            goal: str,
            read: ReaderOptions,
            limits: ProofLimitOptions,
            output: AnswerOptions,
            **others: Any,
        ) -> None:
            with (
                output.reporting(LONG_SECONDS) as console,
                open_to_read(warehouse, console) as database,
            ):
                seen = ReaderOptions(read.reader).view(database)
                if isinstance(read, SnapshotOptions):
                    others["at"] = read.at
                explain(seen, goal, output, limits=limits.limits, **others)

        made: Any = run
        for option_ in reversed(
            (
                *(warehouse, click.argument("goal"), *options, family("read", read)),
                *(family("limits", ProofLimitOptions), functors, family("output", AnswerOptions)),
            )
        ):
            made = option_(made)
        return click.command(name, cls=ServedCommand)(made)

    return make


@_explaining("why")
def why(seen: "Database | Reader", goal: str, output: AnswerOptions, **bounds: Any) -> None:
    """Prove a tuple: from which tuples, by which rules, down to the data.

    Prints a proof of least height: each tuple once, with the rule that derives it, and of base
    tuples who has given them: a line of a file, a line of the program, or a write by hand, and in
    which commit. What a rule needs besides (tuples that are not there, conditions, aggregates)
    stands below the tuples. A goal with variables proves its first 10 answers.

    \b
      corollary why warehouse 'link("a", "d")'
      corollary why warehouse 'link("a", y)' --depth 1
      corollary why warehouse 'link("a", "d")' --at 3
      corollary why warehouse 'link("a", "d")' --as alice
      corollary why warehouse 'link("a", "d")' --format svg > proof.svg

    The last line says how high the proof is, and whether there may be a lower one; what was left
    out because of a limit is listed. Exit status 1: the tuple does not hold; what it lacks first
    is printed instead, and `corollary why-not` prints all of it.
    """
    proof = seen.why(goal, **bounds)
    if not proof.holds and proof.answers is None:
        absence: Absence = seen.why_not(goal, **bounds)
        output.print(replace(absence, attempts=absence.attempts[:1]))
    else:
        output.print(proof)
    if not proof.holds:
        raise SystemExit(FAILED)


@_explaining("why-not", _INSERTIONS)
def why_not(seen: "Database | Reader", goal: str, output: AnswerOptions, **bounds: Any) -> None:
    """Say what a tuple lacks: of each rule the nearest attempts, and what fails in them.

    An attempt is a rule with values for its variables. Those are shown in which the fewest
    literals fail: a tuple that is missing, a tuple that is there and may not be (with its proof),
    a condition that is false. Then follow base tuples whose insertion would make it true, two of
    them at most unless --insertions says otherwise; each set is tried out, so keys and
    constraints hold too.

    \b
      corollary why-not warehouse 'link("a", "z")'
      corollary why-not warehouse 'link("a", "z")' --insertions 0
      corollary why-not warehouse 'link("a", "z")' --at 3 --format json
    """
    output.print(seen.why_not(goal, **bounds))


@_explaining("why-added", _COMMIT, read=ReaderOptions)
def why_added(seen: "Database | Reader", goal: str, output: AnswerOptions, **bounds: Any) -> None:
    """Say which changes of a commit have added a tuple.

    Finds changes of base tuples and rules of that commit that are enough to add the tuple, and
    none of which can be left out; then prints what it lacked before, and its proof, in which these
    changes have a sign. A change is necessary if the commit would not have done it without it.

    \b
      corollary why-added warehouse 'link("a", "d")' --commit 7
    """
    output.print(seen.why_added(goal, **bounds))


@_explaining("why-removed", _COMMIT, read=ReaderOptions)
def why_removed(seen: "Database | Reader", goal: str, output: AnswerOptions, **bounds: Any) -> None:
    """Say which changes of a commit have removed a tuple.

    Finds changes of that commit that are enough to remove the tuple, and none of which can be left
    out; then prints its proof before, in which what broke has a sign, and what it lacks since.

    \b
      corollary why-removed warehouse 'link("a", "d")' --commit 8
    """
    output.print(seen.why_removed(goal, **bounds))


@click.command("what-if", cls=ServedCommand)
@warehouse
@click.argument("fact")
@functors
@family("output", ChangeOutputOptions)
def what_if(warehouse: str, fact: str, output: ChangeOutputOptions) -> None:
    """Try out a change: what would go without a base tuple, or come with one that is not there.

    A dry run of its deletion, whoever asserts it (the program, a source, a write by hand), or of
    its insertion if it is not there. Prints what `corollary apply --dry-run` prints, and changes
    nothing. Several tuples have full stops between them. Exit status 3: a key or a constraint
    would be violated.

    \b
      corollary what-if warehouse 'direct_link("a", "c")'
      corollary what-if warehouse 'direct_link("a", "c"). direct_link("d", "a")' --format json
    """
    with output.reporting(LONG_SECONDS) as console, open_to_read(warehouse, console) as database:
        from corollary.cli.report.changes import report_run

        report_run(database.what_if(fact), warehouse, output, console)
