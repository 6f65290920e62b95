"""`corollary documents match`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corollary.cli import options
from corollary.cli.tables import aligned
from corollary.console import TerminalConsole

if TYPE_CHECKING:
    from corollary.documents.document import ActiveDocument
    from corollary.documents.unknown import Answer
    from corollary.documents.view import View


@click.command()
@click.option("--doc", metavar="FILE|TREE", required=True, help="The document, or a file with it.")
@click.option("--query", required=True, help="A tree pattern, such as '/r[a]/b$x'.")
@options.update("--update", "F=FILE|TREE", "What a function brings. May be repeated, in order.")
@options.update("--end", "F", "A function that brings nothing any more, behind all updates.")
@options.update("--once", "F", "A function that answers at most once, with one tree.")
@options.update("--type", "F=A,B", "The labels that the trees of a function begin with.")
@click.option("--useful", is_flag=True, help="Tell which functions can still change an answer.")
@click.option("--gc", is_flag=True, help="Drop what no answer needs, and close useless functions.")
@click.option("--explain", is_flag=True, help="Tell why answers are sure, or what they wait for.")
@options.format_
@options.quiet
def command(
    doc: str,
    query: str,
    update: tuple[str, ...],
    end: tuple[str, ...],
    once: tuple[str, ...],
    type: tuple[str, ...],
    useful: bool,
    gc: bool,
    explain: bool,
    format: str,
    quiet: bool,
) -> None:
    """Match a query against a document, after some updates.

    The value is 1 if there is an answer, 0.5 if there may be one, 0 if there never will be. Answers
    are sure or possible; `?` is a label that is not known yet. Files are XML, JSON or terms. Behind
    `key $x`, at the end of a query, stand variables that no two answers have alike.

    \b
      corollary documents match --doc 'r[a !f]' --query '/r[a][b$x]' --useful
      corollary documents match --doc 'r[a !f]' --query '/r[a][b$x]' --update 'f=b' --end f
      corollary documents match --doc 'r[!f]' --query '/r[a][b]' --once f --format json
    """
    console = TerminalConsole(quiet)
    with options.reported(format, console):
        from corollary.documents.document import ActiveDocument

        updates = [(name, _place(text)) for name, text in map(_named("--update"), update)]
        document = ActiveDocument.read(_place(doc), once=once, types=types_of(type))
        view = document.view(query)
        options.print_warnings(view.maintained.warnings, console)
        document.apply(updates, end)
        found = _found(document, view, useful=useful, gc=gc)
        if explain:
            answers = sorted((*view.sure, *view.possible()), key=str)
            found["explanations"] = [str(view.explain(each)) for each in answers]
        if not view.is_exact:
            console.note("possible answers are an upper bound: too many functions answer once")
        if format == "json":
            options.print_json(found)
        else:
            _print(found)


def _found(document: "ActiveDocument", view: "View", *, useful: bool, gc: bool) -> dict[str, Any]:
    """Return what is told about a view; garbage is collected behind the rest."""
    possible = sorted(view.possible(), key=_listed)
    found: dict[str, Any] = {
        "value": view.value,
        "sure": sorted(map(_listed, view.sure)),
        "possible": [_listed(each) for each in possible],
        "minimal": sorted(map(_listed, view.minimal)),
        "unknown": [_unknown(each) for each in possible],
    }
    needed = view.useful() if useful or gc else frozenset()
    if useful:
        found["useful"] = sorted(needed)
    if gc:
        idle = document.live - needed
        closed = document.gc([view]).closed
        document.close(idle)
        found["closed"] = sorted(idle.union(closed))
        found["kept_nodes"] = len(document.nodes)
    return found


def _print(found: dict[str, Any]) -> None:
    rows = [["value", str(found["value"])]]
    for name in ("sure", "possible", "minimal"):
        answers = " ".join(f"({', '.join(each)})" for each in found[name])
        rows.append([name, answers or "–"])
    rows += [
        [name, " ".join(f"!{each}" for each in found[name]) or "–"]
        for name in ("useful", "closed")
        if name in found
    ]
    if "kept_nodes" in found:
        rows.append(["kept nodes", f"{found['kept_nodes']:,}"])
    for line in (*aligned(rows), *found.get("explanations", ())):
        click.echo(line)


def _listed(answer: "Answer") -> list[str]:
    return [str(label) for label in answer]


def _unknown(answer: "Answer") -> list[int]:
    """Return the places of an answer that are not known, so that a label `?` is told apart."""
    return [at for at, label in enumerate(answer) if not isinstance(label, str)]


def _place(text: str) -> str | Path:
    """Return the path of a file, if there is one of that name."""
    try:
        return Path(text) if Path(text).is_file() else text
    except (OSError, ValueError):  # too long for a name, or with a NUL
        return text


def types_of(options: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the labels that functions bring, by name, as `--type F=A,B` says."""
    return {name: labels.split(",") for name, labels in map(_named("--type"), options)}


def _named(option: str) -> Callable[[str], tuple[str, str]]:
    def split(text: str) -> tuple[str, str]:
        name, sign, value = text.partition("=")
        if not name or not sign:
            raise click.BadParameter(f"'{text}' is not F=…", param_hint=f"'{option}'")
        return name, value

    return split
