"""`corollary documents watch`."""

from pathlib import Path
from typing import Any

import click

from corollary.cli.commands.documents.match import FUNCTION, types_of
from corollary.cli.databases import open_warehouse
from corollary.cli.options import OutputOptions
from corollary.cli.parameters import Pair, action, family
from corollary.cli.report.tables import counted


@click.command()
@click.option("--warehouse", metavar="DIR|URL", required=True, help="Where the answers are kept.")
@click.option(
    "--views",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    required=True,
    help="A file with a query in each line, perhaps after a name: `late: /r[…]`.",
)
@click.option(
    "--source",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("arrivals"),
    show_default=True,
    help="A folder into which JSON lines come: doc, fn, seq, xml, eos, op, old.",
)
@action("--answers-once", "F", "A function that answers at most once, with one tree.")
@action("--type", "F=A,B", "The labels that the trees of a function begin with.", FUNCTION)
@click.option(
    "--retractions",
    is_flag=True,
    help="Rows may retract and replace trees (op, old): nothing is collected then.",
)
@click.option("--template", metavar="FILE|TREE", help="What every document is in the beginning.")
@click.option(
    "--interval",
    metavar="SECONDS",
    type=click.FloatRange(min=0, max=1e6),
    default=2.0,
    show_default=True,
    help="The time between batches.",
)
@click.option(
    "--files",
    metavar="N",
    type=click.IntRange(min=1),
    help="The maximum number of files in a batch.",
)
@click.option("--once", is_flag=True, help="End when all that is there now has been read.")
@family("output", OutputOptions)
def command(
    warehouse: str,
    views: Path,
    source: Path,
    answers_once: tuple[str, ...],
    type: tuple[Pair, ...],
    retractions: bool,
    template: str | None,
    interval: float,
    files: int | None,
    once: bool,
    output: OutputOptions,
) -> None:
    """Keep the answers of views on many documents up to date, with Structured Streaming.

    Rows say what a function of a document brings: (doc, fn, seq, xml, eos); eos ends the function,
    op `retract` takes the trees of xml back, `replace` those of old, which xml is brought for;
    a row without fn brings the document itself. State is kept for each document; a row that comes
    twice, by its seq, counts once. The warehouse has the relations document_answer, document_label,
    document_value, document_waits, document_closed and document_refused, beside those of its
    program. Start it again, also after a crash, and it goes on.

    \b
      corollary documents watch --warehouse wh --views views.txt --template 'r[!pay !ship]'
    """
    with output.reporting() as console:
        from corollary.documents.spark import ARRIVALS, wait, watch
        from corollary.documents.views_file import read_views
        from corollary.engines.spark.session import local_session

        queries = read_views(views)
        start = None if template is None else _text_of(template)
        source.mkdir(parents=True, exist_ok=True)
        reader = local_session().readStream.schema(ARRIVALS)
        reader = reader if files is None else reader.option("maxFilesPerTrigger", files)
        trigger: dict[str, Any] = (
            {"availableNow": True} if once else {"processingTime": f"{interval} seconds"}
        )

        def report(number: int, events: int) -> None:
            document = {"batch": number, "events": events}
            output.show(lambda: document, [f"batch {number}: {counted(events, 'event')}"])

        with open_warehouse(warehouse, console, create=True, engine="local") as database:
            query = watch(
                database,
                reader.json(str(source.absolute())),
                queries,
                template=start,
                once=answers_once,
                types=types_of(type),
                retractions=retractions,
                trigger=trigger,
                on_batch=report,
            )
            try:
                wait(query)
            except KeyboardInterrupt:
                console.done()
                click.echo("stopped")


def _text_of(place: str) -> str:
    return Path(place).read_text("utf-8") if Path(place).is_file() else place
