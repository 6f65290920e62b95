"""`corollary documents watch`."""

from pathlib import Path
from typing import Any

import click

from corollary.cli.commands.documents.match import FUNCTION, IS_NAME, place_of, types_of
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
    help="A folder into which JSON lines come: doc, fn, seq, xml, eos, op, old, at.",
)
@action("--answers-once", "F", "A function that answers at most once, with one tree.")
@action("--type", "F=A,B|TYPE", "What a function brings: labels of roots, or a type.", FUNCTION)
@click.option(
    "--document-type",
    metavar="FILE|TYPE",
    help="What documents have to be in the end; rows that do not fit are refused.",
)
@click.option(
    "--retractions",
    is_flag=True,
    help="Rows may retract and replace trees (op, old): nothing is collected then.",
)
@action("--template", "[NAME=]FILE|TREE", "What every document, or the one of a name, is at first.")
@click.option(
    "--clock",
    is_flag=True,
    help="Time passes by the clock, so that answers leave windows; otherwise rows say it (at).",
)
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
    document_type: str | None,
    retractions: bool,
    template: tuple[str, ...],
    clock: bool,
    interval: float,
    files: int | None,
    once: bool,
    output: OutputOptions,
) -> None:
    """Keep the answers of views on many documents up to date, with Structured Streaming.

    Rows say what a function of a document brings: (doc, fn, seq, xml, eos); eos ends the function,
    op `retract` takes the trees of xml back, `replace` those of old, which xml is brought for;
    a row without fn brings the document itself, or only the time that it is, in at. State is kept
    for each document; a row that comes twice, by its seq, counts once. The warehouse has the
    relations document_answer, document_label, document_value, document_waits, document_since,
    document_closed and document_refused, beside those of its program. Start it again, also after a
    crash, and it goes on.

    Views over several documents begin with doc("name") or collection(). Documents whose names are
    the same before the last `/` are one collection: `north/orders` and `north/stock`.

    \b
      corollary documents watch --warehouse wh --views views.txt --template 'r[!pay !ship]'
      corollary documents watch --warehouse wh --views recent.txt --template 'r[!pay]' --clock
      corollary documents watch --warehouse wh --views joint.txt \
          --template 'orders=shop[!web]' --template 'stock=store[!carrier]'
    """
    with output.reporting() as console:
        from corollary.documents.spark import ARRIVALS, wait, watch
        from corollary.documents.views_file import read_views
        from corollary.engines.spark.session import local_session

        queries = read_views(views)
        start = _templates(template)
        source.mkdir(parents=True, exist_ok=True)
        reader = local_session().readStream.schema(ARRIVALS)
        reader = reader if files is None else reader.option("maxFilesPerTrigger", files)
        trigger: dict[str, Any] = (
            {"availableNow": True} if once else {"processingTime": f"{interval} seconds"}
        )

        def report(number: int, events: int) -> None:
            document = {"batch": number, "events": events}
            if clock and not events:  # there are many: only time has passed
                return
            output.show(lambda: document, [f"batch {number}: {counted(events, 'event')}"])

        with open_warehouse(warehouse, console, create=True, engine="local") as database:
            query = watch(
                database,
                reader.json(str(source.absolute())),
                queries,
                template=start,
                once=answers_once,
                types=types_of(type),
                document_type=None if document_type is None else place_of(document_type),
                retractions=retractions,
                clock=clock,
                trigger=trigger,
                on_batch=report,
            )
            try:
                wait(query)
            except KeyboardInterrupt:
                console.done()
                click.echo("stopped")


def _templates(given: tuple[str, ...]) -> str | dict[str, str] | None:
    """Return what documents are at first: a text, or texts by name if there are names."""
    found: dict[str, str] = {}
    for each in given:
        name, sign, place = each.partition("=")
        is_named = bool(sign and IS_NAME.fullmatch(name))
        text = place_of(place if is_named else each)
        found[name if is_named else ""] = text if isinstance(text, str) else text.read_text("utf-8")
    if len(found) < len(given) or (len(found) > 1 and "" in found):
        raise click.UsageError("Give one --template, or several with a name each: NAME=FILE|TREE.")
    return found.get("", found or None)
