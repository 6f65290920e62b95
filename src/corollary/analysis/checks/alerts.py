"""Sinks of alerts: the parameters of `.alert`, and the relation that alerts are inserted into."""

from collections.abc import Iterator, Mapping

from corollary.analysis.bags import bags_of, rows_name
from corollary.analysis.phrases import invalid_parameter, one_of, related_spans, suggest_name
from corollary.analysis.resolution import ResolvedProgram
from corollary.core.alerts import (
    LOCATION_PARAMETERS,
    SECRET,
    SETTINGS,
    SinkKind,
    parse_recipients,
    parse_webhook_url,
)
from corollary.core.program import Reaction
from corollary.core.types import NUMBER, SYMBOL, Type
from corollary.errors import Diagnostic

Columns = Mapping[str, tuple[Type | None, ...]]

COMMON_COLUMNS = {"id": SYMBOL, "event": SYMBOL, "row": SYMBOL, "message": SYMBOL, "commit": NUMBER}
"""The columns that every alert has, besides those of its event."""
_EXAMPLES = {
    SinkKind.JSONLINES: '`filename="alerts.jsonl"`',
    SinkKind.RELATION: "`relation=alarm`",
    SinkKind.WEBHOOK: '`url="https://hooks.example/team"`',
    SinkKind.EMAIL: '`to="ops@mail.example"`',
}
FORMATS = ("json", "slack", "teams")
_WEBHOOK_EXAMPLE = "`https://host/path`, without user, fragment and dots between slashes"


def alerts(resolved: ResolvedProgram, columns: Columns) -> Iterator[Diagnostic]:
    """Yield what is wrong with the sinks of alerts."""
    for reaction in resolved.program.reactions:
        if reaction.name != "alert":
            for name, _ in reaction.parameters:
                yield _unknown(reaction, name, ())
            continue
        channel = reaction.parameter("IO", SinkKind.CONSOLE)
        if channel not in set(SinkKind):
            expected = one_of(f"`{kind}`" for kind in SinkKind)
            yield invalid_parameter(reaction, f"`IO={channel}` is not a value for `IO`", expected)
            continue
        kind = SinkKind(channel)
        location = LOCATION_PARAMETERS.get(kind, "")
        known = ("IO", location, *SETTINGS.get(kind, ())) if location else ("IO",)
        unknown = [name for name, _ in reaction.parameters if name not in known]
        for name in unknown:
            yield _unknown(reaction, name, known)
        value = reaction.parameter(location)
        if location and not value:
            if unknown:
                continue  # perhaps a misspelling of the one that is missing
            yield invalid_parameter(reaction, f"`IO={kind}` needs `{location}`", _EXAMPLES[kind])
        elif kind is SinkKind.WEBHOOK:
            yield from _webhook(reaction, value)
        elif kind is SinkKind.EMAIL and parse_recipients(value) is None:
            yield invalid_parameter(
                reaction, "An alert cannot be mailed `to` this", "`ops@mail.example`, with commas"
            )
        elif kind is SinkKind.RELATION:
            yield from _relation_sink(resolved, columns, reaction, value)


def _webhook(reaction: Reaction, url: str) -> Iterator[Diagnostic]:
    """Yield what is wrong with a URL, and with what is posted to it."""
    is_secret = url.startswith("$") and SECRET.fullmatch(url[1:])
    if not is_secret and parse_webhook_url(url) is None:
        yield invalid_parameter(
            reaction, "An alert cannot be posted to this `url`", _WEBHOOK_EXAMPLE
        )
    format_ = reaction.parameter("format", FORMATS[0])
    if format_ not in FORMATS:
        expected = one_of(f"`{each}`" for each in FORMATS)
        yield invalid_parameter(reaction, f"`format={format_}` is not a format", expected)
    secret = reaction.parameter("secret")
    if secret and not SECRET.fullmatch(secret):
        yield invalid_parameter(
            reaction,
            "A `secret` is the name of a variable of the environment",
            "one like `COROLLARY_SECRET_OPS`",
        )


def _unknown(reaction: Reaction, name: str, known: tuple[str, ...]) -> Diagnostic:
    of_other = next(
        (
            kind
            for kind, location in LOCATION_PARAMETERS.items()
            if known and name in (location, *SETTINGS.get(kind, ()))
        ),
        None,
    )
    listed = f"its parameters are {one_of(f'`{each}`' for each in known)}" if known else ""
    if of_other is not None:
        listed = f"it goes with `IO={of_other}`"
    return Diagnostic(
        "C0205",
        f"`.{reaction.name}` has no parameter `{name}`{' here' if known else ''}.",
        reaction.span,
        suggest_name(name, known) or listed or "it takes none",
    )


def _relation_sink(
    resolved: ResolvedProgram, columns: Columns, reaction: Reaction, name: str
) -> Iterator[Diagnostic]:
    """Yield why alerts cannot be inserted into a relation."""
    target = resolved.schemas.get(name)
    is_bag = name in bags_of(resolved.program)
    is_derived = (rows_name(name) if is_bag else name) in resolved.derived
    if target is None or is_derived or name in resolved.events:
        what = "there is none" if target is None else "rules define it"
        near = suggest_name(
            name, resolved.schemas.keys() - resolved.derived - resolved.events - {name}
        )
        yield Diagnostic(
            "C1000",
            f"Alerts cannot be inserted into `{name}`: {what}.",
            reaction.span,
            near or "declare a base relation for them",
        )
        return
    event = resolved.schemas.get(reaction.relation)
    if event is None:
        return
    available: dict[str, Type | None] = {
        **COMMON_COLUMNS,
        **dict(zip(event.columns, columns.get(event.name, event.types), strict=False)),
    }
    for column, type_ in zip(target.columns, columns.get(name, target.types), strict=False):
        found = available.get(column)
        if column not in available:
            listed = one_of(f"`{each}`" for each in available)
            yield Diagnostic(
                "C1001",
                f"An alert of `{event.name}` has nothing for the column `{column}` of `{name}`.",
                reaction.span,
                suggest_name(column, available) or f"name each column {listed}",
                related_spans((target.span, "declared here")),
            )
        elif found is not None and type_ is not None and not _fits(found, type_):
            yield Diagnostic(
                "C1002",
                f"The column `{column}` of `{name}` is a `{type_}`, but an alert of "
                f"`{event.name}` has a `{found}` for it.",
                reaction.span,
                f"declare it as `{column}: {found}`",
                related_spans((target.span, "declared here")),
            )


def _fits(found: Type, expected: Type) -> bool:
    is_wide = expected.precision >= found.precision
    return found.domain == expected.domain and is_wide and (expected.nullable or not found.nullable)
