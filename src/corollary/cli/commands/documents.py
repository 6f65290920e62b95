"""`corollary documents`: `match`, `watch` and `xquery`."""

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corollary.cli.databases import open_warehouse
from corollary.cli.options import FormatOptions, OutputOptions
from corollary.cli.output import print_warnings
from corollary.cli.parameters import Pair, action, family, pair
from corollary.cli.report.tables import align
from corollary.console import counted

if TYPE_CHECKING:
    from corollary.documents.answers.unknown import Answer
    from corollary.documents.document import ActiveDocument
    from corollary.documents.timeline import OpenAnswer
    from corollary.documents.view import View

IS_NAME = re.compile(r"[^\W\d][\w.\-]*")
FUNCTION = pair("is not F=…", is_valid=lambda _: True)
TYPE_SIGNS = frozenset('[]()|?*+!="')
"""What a type has, and a list of labels has not."""
TYPE_FILES = (".dtd", ".type")


@click.command()
@action("--doc", "[NAME=]FILE|TREE", "The document, or a file with it. Several have names.")
@click.option(
    "--collection",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder of documents, which are named as its files.",
)
@click.option("--query", required=True, help="A tree pattern, such as '/r[a]/b$x'.")
@action("--update", "F=FILE|TREE", "What a function brings. May be repeated, in order.", FUNCTION)
@action("--retract", "F=FILE|TREE", "What a function takes back, after --update.", FUNCTION)
@click.option(
    "--updates",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A file of updates, JSON lines (fn, xml, eos, at), which come after --update.",
)
@click.option("--now", metavar="TIME", help="The time at which the query is asked, after updates.")
@action("--end", "F", "A function that brings nothing more after all updates.")
@action("--once", "F", "A function that answers at most once, with one tree.")
@action("--type", "F=A,B|TYPE", "What a function brings: labels of roots, or a type.", FUNCTION)
@click.option(
    "--document-type",
    metavar="FILE|TYPE",
    help="What the document has to be in the end, such as 'r[a, (b | c)*]'; or a DTD.",
)
@click.option("--huge", is_flag=True, help="Read XML larger and deeper than is safe by default.")
@click.option(
    "--limit-seconds",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=100.0,
    show_default=True,
    help="The time of a search, a last resort; beyond it there is a bound.",
)
@click.option(
    "--limit-nodes",
    metavar="N",
    type=click.IntRange(min=1),
    default=2_000_000,
    show_default=True,
    help="The nodes and combinations that a search looks at; beyond them there is a bound.",
)
@click.option("--useful", is_flag=True, help="Report which functions can still change an answer.")
@click.option("--gc", is_flag=True, help="Drop what no answer needs, and close useless functions.")
@click.option(
    "--waiting",
    is_flag=True,
    help="List open answers: what they wait for, since when; and whom to ask first.",
)
@click.option("--timeline", is_flag=True, help="Report the state of the view after each update.")
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a plot of the state over time, as SVG.",
)
@click.option(
    "--unknown", is_flag=True, help="List possible answers of which nothing is known, too."
)
@click.option(
    "--explain", is_flag=True, help="Explain why answers are sure, or what they wait for."
)
@family("output", OutputOptions)
def match(
    doc: tuple[str, ...],
    collection: Path | None,
    query: str,
    update: tuple[Pair, ...],
    retract: tuple[Pair, ...],
    updates: Path | None,
    now: str | None,
    end: tuple[str, ...],
    once: tuple[str, ...],
    type: tuple[Pair, ...],
    document_type: str | None,
    huge: bool,
    limit_seconds: float,
    limit_nodes: int,
    useful: bool,
    gc: bool,
    waiting: bool,
    timeline: bool,
    plot: Path | None,
    unknown: bool,
    explain: bool,
    output: OutputOptions,
) -> None:
    """Match a query against a document, after some updates.

    The value is 1 if there is an answer, 0.5 if there may be one, 0 if there never will be. Answers
    are sure or possible; `?` is a label that is not known yet. Files are XML, JSON or terms.
    `key $x` at the end of a query names variables that no two answers share; `a arrived $t` is the
    time at which a node came, and `now` the time at which the query is asked. With
    --document-type, sure is what holds in every completion of the document that is of its type,
    possible what holds in some.

    \b
      corollary documents match --doc 'r[a !f]' --query '/r[a][b$x]' --useful
      corollary documents match --doc 'r[a !f]' --query '/r[a][b$x]' --update 'f=b' --end f
      corollary documents match --doc 'r[!f]' --query '/r[a][b]' --once f --format json
      corollary documents match --doc shop.xml --query '…' --updates day.jsonl --waiting
      corollary documents match --doc 'r[!f]' --query '/r[a][b]' --document-type 'r[a | b]'

    A query over several documents begins each path with `doc("name")`, or with `collection()` for
    any of them, and joins paths with `and`. Functions are then named with their document: `a:f`.

    \b
      corollary documents match --doc 'a=r[x !f]' --doc 'b=s[x]' \\
          --query 'doc("a")/r/*$x and doc("b")/s/*$x' --update 'a:f=y' --useful
      corollary documents match --collection shops --query 'collection()$d//order[late]'
    """
    with output.reporting() as console:
        from corollary.documents.active_collection import ActiveCollection
        from corollary.documents.answers.search_limits import SearchLimits
        from corollary.documents.input_files import read_updates
        from corollary.documents.timeline import START, ViewTimeline
        from corollary.documents.trees.xml import ReadOptions

        given = [(name, place_of(text)) for name, text in update]
        options = {
            "once": once,
            "types": types_of(type),
            "document_type": None if document_type is None else place_of(document_type),
            "reading": ReadOptions(is_huge=huge),
            "limits": SearchLimits(limit_nodes, limit_seconds),
        }
        document = _opened(doc, collection, query, options)
        is_joint = isinstance(document, ActiveCollection)
        rows = [] if updates is None else read_updates(updates, is_joint=is_joint)
        view = document.view(query)
        print_warnings(view.maintained.warnings, console)
        followed = ViewTimeline(view)
        document.apply(given)
        document.apply((), (), [(name, place_of(text)) for name, text in retract])
        document.apply((), () if rows else end)
        followed.note(START, "the document")
        has_times = view.maintained.shape.has_times
        for at, row in enumerate(rows, 1):
            ends = [row.function] if row.is_end else []
            last = end if at == len(rows) else ()
            brought = [] if row.data is None else [(row.function, row.data)]
            taken = [] if row.old is None else [(row.function, row.old)]
            document.apply(brought, [*ends, *last], taken, at=row.at if has_times else None)
            what = f"!{row.function}{' has ended' if row.is_end else ''}"
            followed.note(row.at, what if row.function else "time has passed")
        if now is not None:
            document.advance(now)
            followed.note(now, "time has passed")
        result = _result(document, view, useful=useful, gc=gc)
        if isinstance(document, ActiveCollection):
            result["documents"] = sorted(document.documents)
        if waiting:
            result["waiting"] = [_open(each) for each in followed.open_answers()]
            result["ask"] = [asdict(each) for each in followed.awaited()]
        if timeline:
            result["timeline"] = [asdict(each) for each in followed.steps]
        if plot is not None:
            plot.write_text(followed.to_svg(), "utf-8")
            result["plot"] = str(plot)
        if explain:
            answers = sorted((*view.sure, *view.possible()), key=str)
            result["explanations"] = [str(view.explain(each)) for each in answers]
        output.show(lambda: result, _lines(result, is_all=unknown))


def _opened(
    doc: tuple[str, ...], folder: Path | None, query: str, options: dict[str, Any]
) -> "ActiveDocument":
    """Return the document that a query is asked of, or the documents that it names, as one."""
    from corollary.documents.active_collection import ActiveCollection, read_collection
    from corollary.documents.document import ActiveDocument
    from corollary.documents.queries.parse import parse_query

    if not parse_query(query).is_joint and folder is None and len(doc) == 1:
        return ActiveDocument.read(place_of(doc[0]), **options)
    if not doc and folder is None:
        raise click.UsageError("Give a document with --doc, or a folder of them with --collection.")
    documents: dict[str, str | Path] = {}
    for text in doc:
        name, sign, place = text.partition("=")
        if not sign or not IS_NAME.fullmatch(name) or name in documents:
            raise click.UsageError(
                f"'{text}' is not one of several documents: each is NAME=FILE|TREE, "
                "with a name of its own."
            )
        documents[name] = place_of(place)
    files = {} if folder is None else read_collection(folder)
    return ActiveCollection({**files, **documents}, **options)


def _result(document: "ActiveDocument", view: "View", *, useful: bool, gc: bool) -> dict[str, Any]:
    """Return the answers of a view; garbage is collected after everything else."""
    possible = sorted(view.possible(), key=_listed)
    result: dict[str, Any] = {
        "value": view.value,
        "sure": sorted(map(_listed, view.sure)),
        "possible": [_listed(each) for each in possible],
        "minimal": sorted(map(_listed, view.minimal)),
        "unknown": [_unknown(each) for each in possible],
        "exact": view.is_exact,
    }
    if view.work is not None:
        result["work"] = view.work.to_json()
    if not view.is_exact:
        result["bound"] = view.bound_reason
    found = view.usefulness() if useful or gc else None
    needed = frozenset[str]() if found is None else found.functions
    if useful and found is not None:
        result["useful"] = sorted(needed)
        result["useful_exact"] = found.is_exact
        if found.work is not None:
            result["useful_work"] = found.work.to_json()
        if not found.is_exact:
            result["unproved"] = sorted(found.unproved)
            result["useful_bound"] = found.reason
    if gc:
        idle = document.live - needed
        closed = document.gc([view]).closed
        document.close(idle)
        result["closed"] = sorted(idle.union(closed))
        result["kept_nodes"] = len(document.nodes)
    return result


def _open(found: "OpenAnswer") -> dict[str, Any]:
    ways = [sorted(each) for each in found.waits_for]
    return {"answer": _listed(found.answer), "waits_for": ways, "since": found.since}


def _lines(result: dict[str, Any], *, is_all: bool) -> Iterator[str]:
    rows = [["value", str(result["value"])]]
    idle = [
        at
        for at, (row, places) in enumerate(zip(result["possible"], result["unknown"], strict=True))
        if row and len(places) == len(row) and not is_all
    ]
    for name in ("sure", "possible", "minimal"):
        shown = [
            each for at, each in enumerate(result[name]) if name != "possible" or at not in idle
        ]
        answers = " ".join(f"({', '.join(each)})" for each in shown)
        if name == "possible" and idle:
            answers = f"{answers} and any other".strip() if answers else "any"
        rows.append([name, answers or "–"])
    if not result["exact"]:
        rows.append(["exact", f"no, possible is an upper bound: {result['bound']}"])
    rows += [
        [name, " ".join(f"!{each}" for each in result[name]) or "–"]
        for name in ("useful", "closed")
        if name in result
    ]
    if "unproved" in result:
        names = " ".join(f"!{each}" for each in result["unproved"])
        rows.append(["unproved", f"{names}: {result['useful_bound']}"])
    if "kept_nodes" in result:
        rows.append(["kept nodes", f"{result['kept_nodes']:,}"])
    yield from align(rows)
    if result.get("waiting"):
        yield ""
        yield from align(
            [
                ["waits for", "since", "answer"],
                *(
                    [_ways(each["waits_for"]), each["since"], f"({', '.join(each['answer'])})"]
                    for each in result["waiting"]
                ),
            ]
        )
    if result.get("ask"):
        yield ""
        yield from align(
            [
                ["ask", "alone", "answers", "since"],
                *(
                    [
                        f"!{each['function']}",
                        str(each["alone"]),
                        str(each["answers"]),
                        each["since"],
                    ]
                    for each in result["ask"]
                ),
            ]
        )
    if result.get("timeline"):
        yield ""
        yield from align(
            [
                ["at", "update", "value", "sure", "possible"],
                *([str(cell) for cell in each.values()] for each in result["timeline"]),
            ]
        )
    yield from result.get("explanations", ())


def _ways(several: list[list[str]]) -> str:
    return " or ".join(" and ".join(f"!{name}" for name in each) or "time" for each in several)


def _listed(answer: "Answer") -> list[str]:
    return [str(label) for label in answer]


def _unknown(answer: "Answer") -> list[int]:
    """Return the positions of an answer that are not known, as opposed to a label `?`."""
    return [at for at, label in enumerate(answer) if not isinstance(label, str)]


def place_of(text: str) -> str | Path:
    """Return the path of a file, if there is one of that name."""
    try:
        return Path(text) if Path(text).is_file() else text
    except (OSError, ValueError):  # too long for a name, or with a NUL
        return text


def types_of(pairs: tuple[Pair, ...]) -> dict[str, list[str] | str | Path]:
    """Return what functions bring, by name: labels, or the text of a type, or a file with it."""
    return {
        name: place_of(text)
        if TYPE_SIGNS & {*text} or text.endswith(TYPE_FILES)
        else text.split(",")
        for name, text in pairs
    }


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
def watch(
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
        from corollary.database.options import IN_PROCESS
        from corollary.documents.input_files import read_views
        from corollary.documents.spark import ARRIVALS, wait, watch
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

        with open_warehouse(warehouse, console, IN_PROCESS, create=True) as database:
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


# --- documents -----------------------------------------------------------------------------------


@click.group()
def command() -> None:
    """Tree patterns over documents that streams still write into.

    A document is a tree in XML, JSON or as a term such as 'r[a !f]'; `!f` (in XML <?call f?>) is a
    function, beside which a stream inserts further trees. A query such as '/r[a]/b$x' is true,
    false for ever, or not true yet; its answers are sure, or possible. `key $x` names
    variables that no two answers share: what could only give such an answer is dropped.

    \b
      corollary documents match --doc 'r[a !f]' --query '/r[a][b$x]'
      corollary documents match --doc orders.xml --query '//order[paid]/id/*$o' --update f=new.xml
      corollary documents match --doc 'r[a[1] b[7 !f]]' --query '/r[a/*$x][b/*$y] key $x' --gc
      corollary documents xquery --query '/r[a][.//b]'
    """


@click.command()
@click.option("--query", required=True, help="A query without answers and joins.")
@family("output", FormatOptions)
def xquery(query: str, output: FormatOptions) -> None:
    """Print an XQuery that computes the value of a query over the XML of a document.

    Its result is 1, 0.5 or 0; its external variable $ended names functions that have ended. It
    needs no Corollary to run: any processor of XQuery 3.1 will do.

    \b
      corollary documents xquery --query '/r[a][.//b]' > value.xq
    """
    with output.reporting():
        from corollary.documents.queries.xquery import xquery_of

        text = xquery_of(query)
        output.show(lambda: {"xquery": text}, [text.removesuffix("\n")])


command.add_command(match, "match")
command.add_command(watch, "watch")
command.add_command(xquery, "xquery")
