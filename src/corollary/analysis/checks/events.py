"""Active rules: event predicates, triggers, alerts and constraints.

A body with a delta literal, `@old` or an event predicate makes its head an event predicate; `@new`
alone does not. An event predicate starts empty in every transaction, so all its rules must have
such a body, and it cannot be stored, published or read from a file.
"""

from collections.abc import Iterator

from corollary.analysis.phrases import related_spans, suggest_name
from corollary.analysis.resolution import ResolvedProgram, is_active
from corollary.core.alerts import COMMON_PLACEHOLDERS, PLACEHOLDER, TEMPLATES
from corollary.core.logic import Atom
from corollary.core.program import Reaction
from corollary.errors import Diagnostic
from corollary.source import Span


def events(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield what is wrong with active rules."""
    for number, clause in enumerate(resolved.clauses):
        yield from _deltas(resolved, number)
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
                yield from _trigger(resolved, number, head)
    for name in resolved.definitions:
        if name in resolved.events:
            yield from _without_event(resolved, name)
            yield from _stored(resolved, name)
    for reaction in resolved.program.reactions:
        yield from _placeholders(resolved, reaction)


def _deltas(resolved: ResolvedProgram, number: int) -> Iterator[Diagnostic]:
    for use in resolved.uses[number]:
        atom = use.atom
        if atom.sign and use.is_negated:
            yield Diagnostic(
                "C0607",
                f"The change `{atom.sign}{atom.relation}` cannot be negated.",
                atom.span,
                "define an event predicate by it, and negate that",
            )
        if (atom.sign or atom.state) and atom.relation in resolved.events:
            mark = f"{atom.sign}{atom.relation}" if atom.sign else f"{atom.relation}@{atom.state}"
            yield Diagnostic(
                "C0603",
                f"`{mark}` makes no sense, since `{atom.relation}` is an event predicate.",
                atom.span,
                f"it starts empty in every transaction: write `{atom.relation}`",
                related_spans(
                    (_first_active(resolved, atom.relation), "an event predicate by this rule")
                ),
            )


def _first_active(resolved: ResolvedProgram, name: str) -> Span | None:
    for number in resolved.definitions.get(name, ()):
        if is_active(resolved.uses[number], resolved.events):
            return resolved.clauses[number].span
    return None


def _without_event(resolved: ResolvedProgram, name: str) -> Iterator[Diagnostic]:
    for number in resolved.definitions[name]:
        if not is_active(resolved.uses[number], resolved.events):
            clause = resolved.clauses[number]
            yield Diagnostic(
                "C0601",
                f"`{name}` is an event predicate, but this "
                f"{'rule' if clause.body else 'fact'} has no event.",
                clause.span,
                "give the rules with events, and what reads them, a name of their own",
                related_spans((_first_active(resolved, name), "an event predicate by this rule")),
            )


def _stored(resolved: ResolvedProgram, name: str) -> Iterator[Diagnostic]:
    declaration = resolved.schemas[name].declaration if name in resolved.schemas else None
    uses: list[tuple[str, Span | None]] = []
    if declaration is not None:
        if declaration.storage:
            uses.append((f"declared `{declaration.storage}`", declaration.span))
        if declaration.is_equivalence:
            uses.append(("an `eqrel`", declaration.span))
    uses += [
        (f"used in `.{directive.name}`", directive.span)
        for directive in resolved.program.directives
        if directive.relation == name and directive.name != "sql"
    ]
    for use, span in uses:
        yield Diagnostic(
            "C0602",
            f"Event predicate `{name}` cannot be {use}.",
            span,
            f'it is empty between transactions; watch it with `.alert {name} "…"`',
            related_spans((_first_active(resolved, name), "an event predicate by this rule")),
        )


def _trigger(resolved: ResolvedProgram, number: int, head: Atom) -> Iterator[Diagnostic]:
    clause = resolved.clauses[number]
    if not is_active(resolved.uses[number], resolved.events):
        yield Diagnostic(
            "C0604",
            f"The trigger of `{head.sign}{head.relation}` has no event in its body.",
            clause.span,
            "say which change sets it off, as in `+p(x)`",
        )
    if head.relation in resolved.derived:
        what = "an event predicate" if head.relation in resolved.events else "a derived relation"
        rules = resolved.definitions.get(head.relation, ())
        rule = next((resolved.clauses[n] for n in rules if resolved.clauses[n].body), None)
        yield Diagnostic(
            "C0605",
            f"A trigger changes base relations only, but `{head.relation}` is {what}.",
            head.span,
            "change the base relations that it is derived from",
            related_spans((rule.span if rule else None, "derived by this rule")),
        )


def _placeholders(resolved: ResolvedProgram, reaction: Reaction) -> Iterator[Diagnostic]:
    schema = resolved.schemas.get(reaction.relation)
    if schema is None:
        return
    named = [found[1] for found in PLACEHOLDER.finditer(reaction.message)]
    for parameter, template in reaction.parameters:
        if parameter in TEMPLATES:
            found = (each[1] for each in PLACEHOLDER.finditer(template))
            named += [each for each in found if each not in COMMON_PLACEHOLDERS]
    for name in named:
        if name is not None and name not in schema.columns:
            columns = ", ".join(f"`{{{column}}}`" for column in schema.columns) or "none"
            yield Diagnostic(
                "C0606",
                f"`{{{name}}}` is not a column of `{reaction.relation}`.",
                reaction.span,
                suggest_name(name, schema.columns) or f"its columns: {columns}",
                related_spans(
                    (schema.span, "declared here" if schema.declaration else "first rule")
                ),
            )
