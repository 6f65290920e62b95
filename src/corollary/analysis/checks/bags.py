"""Relations with copies: no key, no rules for the set of their rows, no names that are taken."""

from collections.abc import Iterator, Mapping

from corollary.analysis.bags import bags_of, projection, rows_name
from corollary.analysis.phrases import related_spans
from corollary.analysis.resolution import ResolvedProgram
from corollary.core.logic import Atom, Constant, Functor
from corollary.core.program import Declaration, Program
from corollary.errors import Diagnostic
from corollary.source import Span


def bags(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield what is wrong with relations that have copies."""
    program = resolved.program
    found = bags_of(program)
    if not found:
        return
    declared = {each.name: each for each in program.declarations}
    for bag in found.values():
        yield from _declaration(bag, declared[rows_name(bag.name)])
    yield from _clauses(program, found)
    rows = {rows_name(name): name for name in found}
    for directive in program.directives:
        if directive.name == "input" and directive.relation in rows:
            bag_name = rows[directive.relation]
            yield Diagnostic(
                "C0225",
                f"`{directive.relation}` holds the counts of the bag `{bag_name}`, and cannot be "
                "read from a file.",
                directive.span,
                f"read the rows themselves, as often as they occur: `.input {bag_name}`",
            )


def _declaration(bag: Declaration, rows: Declaration) -> Iterator[Diagnostic]:
    for is_wrong, why, cure in (
        (bag.key, "has a key, so it has no copies", "leave out `bag`, or `key(…)`"),
        (bag.is_equivalence, "is an equivalence, which is a set", "leave out `bag`, or `eqrel`"),
        (not bag.columns, "has no columns", "give it one, or leave out `bag`"),
    ):
        if is_wrong:
            yield Diagnostic("C0221", f"`{bag.name}` cannot be a `bag`: it {why}.", bag.span, cure)
    if rows.span != bag.span:
        yield Diagnostic(
            "C0222",
            f"The bag `{bag.name}` needs the name `{rows.name}`, which is declared already.",
            rows.span,
            f"remove this declaration: `bag` makes `{rows.name}` with the column of counts; or "
            "rename one of the relations",
            related_spans((bag.span, "the bag")),
        )


def _clauses(program: Program, bags: Mapping[str, Declaration]) -> Iterator[Diagnostic]:
    rows = {rows_name(name): name for name in bags}
    ruled: dict[str, Span | None] = {}
    filled = {
        each.relation: each.span
        for each in program.directives
        if each.name == "input" and each.relation in bags
    }
    for clause in program.clauses:
        for head in clause.heads:
            if head.sign:
                continue
            if head.relation in bags and clause.body:
                bag = bags[head.relation]
                if clause != projection(bag):
                    yield _rule_of_set(bag, head)
            elif head.relation in rows and clause.body:
                ruled.setdefault(rows[head.relation], head.span)
            elif head.relation in rows:
                filled.setdefault(rows[head.relation], head.span)
                yield from _fact(rows[head.relation], head)
    for name in ruled.keys() & filled.keys():
        yield Diagnostic(
            "C0224",
            f"The bag `{name}` has rules, and tuples of its own: their copies would not add up.",
            filled[name],
            f"give the tuples a bag of their own, and let the rules of `{rows_name(name)}` add its "
            "counts",
            related_spans((ruled[name], "a rule")),
        )


def _fact(bag: str, head: Atom) -> Iterator[Diagnostic]:
    computed = next((each for each in head.arguments if not isinstance(each, Constant)), None)
    if isinstance(computed, Functor):
        yield Diagnostic(
            "C0225",
            f"A fact of the bag `{bag}` has a computed value.",
            computed.span or head.span,
            "write the value itself: copies of equal facts add up",
        )
    elif computed is None and not _is_count(head.arguments[-1]):
        yield Diagnostic(
            "C0225",
            f"A fact of `{head.relation}` ends in a number of copies, which is 1 or more.",
            head.span,
            f"write a positive number, or `{bag}(…).` once for each copy",
        )


def _rule_of_set(bag: Declaration, head: Atom) -> Diagnostic:
    columns = ", ".join(column.name for column in bag.columns)
    return Diagnostic(
        "C0223",
        f"`{bag.name}` is a bag, so its rules have to say how many copies there are.",
        head.span,
        f"write the head `{rows_name(bag.name)}({columns}, n)`, with the number of copies as `n`; "
        "or leave out `bag`",
        related_spans((bag.span, "declared here")),
    )


def _is_count(term: object) -> bool:
    return isinstance(term, Constant) and type(term.value) is int and term.value >= 1
