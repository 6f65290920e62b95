"""Options of the commands that say why: how answers are printed, and how much work they take."""

from typing import TYPE_CHECKING, Annotated

import click

from corollary.cli.options import OutputOptions
from corollary.cli.output import print_json
from corollary.cli.parameters import COUNT, POSITIVE, choice, option
from corollary.cli.recording import echo
from corollary.data_class import dataclass

if TYPE_CHECKING:
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
        "Unfold so many levels of a proof, in text; all of them by default.",
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
        int, "Show at most so many nodes.", option(type=POSITIVE, default=1_000, show_default=True)
    ]
    limit_expanded: Annotated[
        int,
        "Look at the instances of at most so many tuples.",
        option(type=POSITIVE, default=100_000, show_default=True),
    ]
    limit_work: Annotated[
        int,
        "Handle at most so many rows on the way, then answer with what was found.",
        option(type=POSITIVE, default=2_500_000, show_default=True),
    ]
    limit_seconds: Annotated[
        float,
        "Stop looking after this many seconds, as a last resort.",
        option(type=click.FloatRange(min=0, max=1_000_000.0), default=20.0, show_default=True),
    ]
    limit_dry_runs: Annotated[
        int,
        "Try out at most so many sets of changes.",
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
