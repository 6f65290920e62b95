"""`corollary test`."""

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corollary.cli.options import OutputOptions
from corollary.cli.parameters import family, functors

if TYPE_CHECKING:
    from corollary.testing.coverage import Coverage
    from corollary.testing.run_case import Outcome

REMARKS = {"failed": "failed", "errors": "with an error"}
"""What the closing line says of cases that have not passed."""


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--program",
    "programs",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="The program of cases that name none. May be repeated.",
)
@click.option(
    "--coverage",
    "has_coverage",
    is_flag=True,
    help="Say with which rules, and alternatives of rules, no case has derived anything.",
)
@functors
@family("output", OutputOptions)
def command(
    paths: tuple[Path, ...], programs: tuple[Path, ...], has_coverage: bool, output: OutputOptions
) -> None:
    """Run tests of changes: given rows, when something changes, then rows and differences.

    Cases are in files such as `network.test.yaml`, whose program is `network.dl` or `network.sql`
    beside it unless they name another one; unit tests of dbt are read as well. A PATH is such a
    file, or a directory with all files of such names in it; by default it is this directory. Each
    case has a database of its own in memory. Exit status 1: a case has failed, or is wrong itself.

    \b
      corollary test
      corollary test tests/network.test.yaml
      corollary test models/schema.yml --program shop.sql
    """
    with output.reporting() as console:
        from corollary.testing.case_files import find_files, read_files
        from corollary.testing.coverage import Coverage
        from corollary.testing.run_case import run_case

        start = time.perf_counter()
        cases = read_files(find_files(paths), programs)
        coverage = Coverage() if has_coverage else None
        outcomes = [run_case(case, coverage) for case in cases]
        seconds = time.perf_counter() - start
        output.show(lambda: _as_json(outcomes, seconds, coverage), _lines(outcomes, coverage))
        if not output.is_json:
            console.note(_summary(outcomes, seconds))
        sys.exit(0 if all(each.is_passed for each in outcomes) else 1)


def _counts(outcomes: "Sequence[Outcome]") -> dict[str, int]:
    errors = sum(each.error is not None for each in outcomes)
    passed = sum(each.is_passed for each in outcomes)
    return {"passed": passed, "failed": len(outcomes) - passed - errors, "errors": errors}


def _summary(outcomes: "Sequence[Outcome]", seconds: float) -> str:
    counts = _counts(outcomes)
    wrong = [f", {counts[what]:,} {text}" for what, text in REMARKS.items() if counts[what]]
    return f"{counts['passed']:,} passed{''.join(wrong)} in {seconds:.2f} s"


def _lines(outcomes: "Sequence[Outcome]", coverage: "Coverage | None") -> Iterator[str]:
    for each in outcomes:
        if each.is_passed:
            continue
        span = each.case.span
        kind = "FAILED" if each.error is None else "ERROR"
        yield f"{kind} {span.file.name}:{span.line} {each.case.name}"
        yield from each.lines()
    if coverage is not None:
        yield from coverage.lines()


def _as_json(
    outcomes: "Sequence[Outcome]", seconds: float, coverage: "Coverage | None"
) -> dict[str, Any]:
    found = {
        "cases": [each.as_json() for each in outcomes],
        **_counts(outcomes),
        "seconds": round(seconds, 4),
    }
    return found if coverage is None else found | {"coverage": coverage.as_json()}
