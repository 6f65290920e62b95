"""Where alerts go: the parameters of `.alert`, and the relation that alerts become tuples of."""

from collections.abc import Iterator, Mapping

from corollary.analysis.survey import Survey
from corollary.analysis.wording import alternatives, places, suggestion
from corollary.core.alerts import PLACES, SinkKind
from corollary.core.program import Reaction
from corollary.core.types import NUMBER, SYMBOL, Type
from corollary.core.web_address import web_address
from corollary.errors import Diagnostic

Columns = Mapping[str, tuple[Type | None, ...]]

FACTS = {"id": SYMBOL, "event": SYMBOL, "row": SYMBOL, "message": SYMBOL, "commit": NUMBER}
"""What can be told of an alert besides the columns of its event."""
_EXAMPLES = {
    SinkKind.JSONLINES: '`filename="alerts.jsonl"`',
    SinkKind.RELATION: "`relation=alarm`",
    SinkKind.WEBHOOK: '`url="https://hooks.example/team"`',
}


def alerts(survey: Survey, columns: Columns) -> Iterator[Diagnostic]:
    """Yield what is wrong with the sinks of alerts.

    Args:
        survey: the program.
        columns: the types of the relations' columns.
    """
    for reaction in survey.program.reactions:
        if reaction.name != "alert":
            for name, _ in reaction.parameters:
                yield _unknown(reaction, name, ())
            continue
        channel = reaction.parameter("IO", SinkKind.CONSOLE)
        if channel not in set(SinkKind):
            wanted = alternatives(f"`{kind}`" for kind in SinkKind)
            yield _bad(reaction, f"`IO={channel}` is no value for `IO`", wanted)
            continue
        kind = SinkKind(channel)
        place = PLACES.get(kind, "")
        known = ("IO", place) if place else ("IO",)
        unknown = [name for name, _ in reaction.parameters if name not in known]
        for name in unknown:
            yield _unknown(reaction, name, known)
        value = reaction.parameter(place)
        if place and not value:
            if unknown:
                continue  # perhaps it was meant
            yield _bad(reaction, f"`IO={kind}` needs `{place}`", _EXAMPLES[kind])
        elif kind is SinkKind.WEBHOOK and web_address(value) is None:
            yield _bad(reaction, "The `url` is none that an alert can be posted to", _WEBHOOK)
        elif kind is SinkKind.RELATION:
            yield from _relation(survey, columns, reaction, value)


_WEBHOOK = "`https://host/path`, without user, fragment and dots between slashes"


def _unknown(reaction: Reaction, name: str, known: tuple[str, ...]) -> Diagnostic:
    of_other = next((kind for kind, place in PLACES.items() if place == name and known), None)
    listed = f"its parameters are {alternatives(f'`{each}`' for each in known)}" if known else ""
    if of_other is not None:
        listed = f"it goes with `IO={of_other}`"
    return Diagnostic(
        "C0205",
        f"`.{reaction.name}` has no parameter `{name}`{' here' if known else ''}.",
        reaction.span,
        suggestion(name, known) or listed or "it takes none",
    )


def _bad(reaction: Reaction, what: str, wanted: str) -> Diagnostic:
    return Diagnostic("C0206", f"{what}.", reaction.span, f"write {wanted}")


def _relation(
    survey: Survey, columns: Columns, reaction: Reaction, name: str
) -> Iterator[Diagnostic]:
    """Yield why alerts cannot become tuples of a relation."""
    target = survey.shapes.get(name)
    if target is None or name in survey.derived or name in survey.events:
        what = "there is none" if target is None else "rules define it"
        near = suggestion(name, survey.shapes.keys() - survey.derived - survey.events - {name})
        yield Diagnostic(
            "C1000",
            f"Alerts cannot be inserted into `{name}`: {what}.",
            reaction.span,
            near or "declare a base relation for them",
        )
        return
    event = survey.shapes.get(reaction.relation)
    if event is None:
        return
    told: dict[str, Type | None] = {
        **FACTS,
        **dict(zip(event.columns, columns.get(event.name, event.types), strict=False)),
    }
    for column, type_ in zip(target.columns, columns.get(name, target.types), strict=False):
        found = told.get(column)
        if column not in told:
            listed = alternatives(f"`{each}`" for each in told)
            yield Diagnostic(
                "C1001",
                f"An alert of `{event.name}` has nothing for the column `{column}` of `{name}`.",
                reaction.span,
                suggestion(column, told) or f"name each column {listed}",
                places((target.span, "declared here")),
            )
        elif found is not None and type_ is not None and not _fits(found, type_):
            yield Diagnostic(
                "C1002",
                f"The column `{column}` of `{name}` is a `{type_}`, but an alert of "
                f"`{event.name}` has a `{found}` for it.",
                reaction.span,
                f"declare it as `{column}: {found}`",
                places((target.span, "declared here")),
            )


def _fits(found: Type, wanted: Type) -> bool:
    is_wide = wanted.precision >= found.precision
    return found.domain == wanted.domain and is_wide and (wanted.nullable or not found.nullable)
