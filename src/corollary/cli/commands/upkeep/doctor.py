"""`corollary doctor`."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from corollary.cli.databases import open_catalog
from corollary.cli.options import FormatOptions
from corollary.cli.parameters import family, warehouse
from corollary.console import counted

if TYPE_CHECKING:
    from corollary.serve.doctor import HealthReport


@click.command()
@warehouse
@family("output", FormatOptions)
def command(warehouse: str, output: FormatOptions) -> None:
    """Say what is not as it should be, why that matters, and what fixes it.

    Looks at versions, the catalog and its file system, space, clocks, history, files that are left
    over, dead writers, published tables and sources that lag, alerts that wait, the quarantine,
    views that are dear, the server, and tokens that end. Reads no data: `corollary verify` does.
    Exits with 1 if there is more than a note.

    \b
      corollary doctor warehouse
      corollary doctor warehouse --format json
    """
    with output.reporting(), open_catalog(warehouse, in_any_format=True) as opened:
        from corollary.serve.doctor import examine

        report = examine(warehouse, opened)
        output.show(report.as_json, _lines(report))
        sys.exit(0 if report.is_healthy else 1)


def _lines(report: "HealthReport") -> Iterator[str]:
    for each in report.findings:
        yield f"{each.urgency}: {each.what}"
        yield f"  {each.why}"
        yield f"  $ {each.cure}"
    found = counted(len(report.findings), "finding") if report.findings else "all well"
    yield f"{found}; {counted(len(report.checks), 'check')}: {', '.join(report.checks)}"
    yield ", ".join(f"{name} {version}" for name, version in report.versions.items())
