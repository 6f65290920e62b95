"""Active rules: event predicates, triggers, alerts and constraints.

A body with a delta literal, a state designator or an event predicate makes its head an event
predicate. It starts empty in every transaction, so all its rules must be such, and nothing that
lasts may come from it.
"""

from collections.abc import Iterator

from corollary.analysis.survey import Survey, is_active
from corollary.analysis.wording import places, suggestion
from corollary.core.alerts import PLACEHOLDER
from corollary.core.program import Reaction
from corollary.core.rules import Atom
from corollary.errors import Diagnostic
from corollary.source import Span


def events(survey: Survey) -> Iterator[Diagnostic]:
    """Yield what is wrong with active rules."""
    for number, clause in enumerate(survey.clauses):
        yield from _deltas(survey, number)
        for head in clause.heads:
            if head.state is not None:
                yield Diagnostic(
                    "C0608",
                    f"A head cannot say `@{head.state}`.",
                    head.span,
                    f"rules define the present `{head.relation}`; "
                    f"a trigger changes it: `+{head.relation}(…)`",
                )
            if head.sign:
                yield from _trigger(survey, number, head)
    for name in survey.definitions:
        if name in survey.events:
            yield from _mixed(survey, name)
            yield from _lasting(survey, name)
    for reaction in survey.program.reactions:
        yield from _placeholders(survey, reaction)


def _deltas(survey: Survey, number: int) -> Iterator[Diagnostic]:
    for reading in survey.readings[number]:
        atom = reading.atom
        if atom.sign and reading.is_negated:
            yield Diagnostic(
                "C0607",
                f"The change `{atom.sign}{atom.relation}` cannot be negated.",
                atom.span,
                "define an event predicate by it, and negate that",
            )
        if (atom.sign or atom.state) and atom.relation in survey.events:
            mark = f"{atom.sign}{atom.relation}" if atom.sign else f"{atom.relation}@{atom.state}"
            yield Diagnostic(
                "C0603",
                f"`{mark}` makes no sense, since `{atom.relation}` is an event predicate.",
                atom.span,
                f"it starts empty in every transaction: write `{atom.relation}`",
                places((_first_active(survey, atom.relation), "an event predicate by this rule")),
            )


def _first_active(survey: Survey, name: str) -> Span | None:
    for number in survey.definitions.get(name, ()):
        if is_active(survey.readings[number], survey.events):
            return survey.clauses[number].span
    return None


def _mixed(survey: Survey, name: str) -> Iterator[Diagnostic]:
    for number in survey.definitions[name]:
        if not is_active(survey.readings[number], survey.events):
            clause = survey.clauses[number]
            yield Diagnostic(
                "C0601",
                f"`{name}` is an event predicate, but this "
                f"{'rule' if clause.body else 'fact'} has no event.",
                clause.span,
                "give the rules with events, and what reads them, a name of their own",
                places((_first_active(survey, name), "an event predicate by this rule")),
            )


def _lasting(survey: Survey, name: str) -> Iterator[Diagnostic]:
    declaration = survey.shapes[name].declaration if name in survey.shapes else None
    uses: list[tuple[str, Span | None]] = []
    if declaration is not None:
        if declaration.storage:
            uses.append((f"declared `{declaration.storage}`", declaration.span))
        if declaration.is_equivalence:
            uses.append(("an `eqrel`", declaration.span))
    uses += [
        (f"used in `.{directive.name}`", directive.span)
        for directive in survey.program.directives
        if directive.relation == name
    ]
    for use, span in uses:
        yield Diagnostic(
            "C0602",
            f"Event predicate `{name}` cannot be {use}.",
            span,
            f'it is empty between transactions; watch it with `.alert {name} "…"`',
            places((_first_active(survey, name), "an event predicate by this rule")),
        )


def _trigger(survey: Survey, number: int, head: Atom) -> Iterator[Diagnostic]:
    clause = survey.clauses[number]
    if not is_active(survey.readings[number], survey.events):
        yield Diagnostic(
            "C0604",
            f"The trigger of `{head.sign}{head.relation}` has no event in its body.",
            clause.span,
            "say which change sets it off, as in `+p(x)`",
        )
    if head.relation in survey.derived:
        what = "an event predicate" if head.relation in survey.events else "a derived relation"
        rules = survey.definitions.get(head.relation, ())
        rule = next((survey.clauses[n] for n in rules if survey.clauses[n].body), None)
        yield Diagnostic(
            "C0605",
            f"A trigger changes base relations only, but `{head.relation}` is {what}.",
            head.span,
            "change the base relations that it is derived from",
            places((rule.span if rule else None, "derived by this rule")),
        )


def _placeholders(survey: Survey, reaction: Reaction) -> Iterator[Diagnostic]:
    shape = survey.shapes.get(reaction.relation)
    if shape is None:
        return
    for found in PLACEHOLDER.finditer(reaction.message):
        name = found.group(1)
        if name is not None and name not in shape.columns:
            columns = ", ".join(f"`{{{column}}}`" for column in shape.columns) or "none"
            yield Diagnostic(
                "C0606",
                f"`{{{name}}}` is no column of `{reaction.relation}`.",
                reaction.span,
                suggestion(name, shape.columns) or f"its columns: {columns}",
                places((shape.span, "declared here" if shape.declaration else "first rule")),
            )
