"""Finds the relations that users name: to read, to watch, to write to, to publish."""

from collections.abc import Iterable, Sequence

from corollary.analysis.phrases import suggest_name
from corollary.analysis.replicas import is_replica
from corollary.analysis.today import TODAY_RELATION
from corollary.core.program import Directive, NormalProgram, Relation
from corollary.errors import InputError
from corollary.source import Span

MESSAGE_MAX_NAMES = 12
"""The maximum number of names in a message."""


def list_names(names: Sequence[str]) -> str:
    """Return names for a message, the first ones if there are many."""
    listed = ", ".join(f"`{each}`" for each in names[:MESSAGE_MAX_NAMES])
    more = len(names) - MESSAGE_MAX_NAMES
    return f"{listed} and {more} more" if more > 0 else listed


def readable_relation(program: NormalProgram, name: str, span: Span | None = None) -> Relation:
    """Return a declared relation.

    Raises:
        InputError: there is no such relation.
    """
    relation = program.relations.get(name)
    if relation is None or not relation.is_declared:
        known = [each for each, it in program.relations.items() if it.is_declared]
        listed = f"the relations are {list_names(known)}"
        every = listed if known else "load a program that declares it"
        near = suggest_name(name, known)
        raise InputError.of("C0916", f"There is no relation `{name}`.", span, near or every)
    return relation


def writable_relation(program: NormalProgram, name: str, span: Span | None = None) -> Relation:
    """Return a relation that tuples can be written to.

    Raises:
        InputError: there is no such relation, or it has rules and no base part.
    """
    relation = readable_relation(program, name, span)
    if name == TODAY_RELATION:
        raise InputError.of(
            "C0909",
            f"`{name}` has the one day that `today()` gives, and cannot be written to.",
            span,
            "set the day with `--today 2026-11-16`, or with `db.set_today(date)`",
        )
    if program.relations[program.bases.get(name, name)].is_derived:
        raise InputError.of(
            "C0915",
            f"`{name}` is derived by rules, so tuples cannot be added to it or removed from it.",
            span,
            f"change the relations it is derived from, or declare `.input {name}` to give it "
            "tuples of its own",
        )
    return relation


def published_relations(program: NormalProgram, directives: Iterable[Directive]) -> list[Relation]:
    """Return the relations whose tables a warehouse publishes: stored ones with an `.output`."""
    names = dict.fromkeys(
        each.relation for each in directives if each.name == "output" and not is_replica(each)
    )
    return [program.relations[name] for name in names if is_followed(program, name)]


def is_followed(program: NormalProgram, name: str) -> bool:
    """Return whether there is a relation of this name whose tuples outputs can have."""
    return name in program.relations and program.relations[program.bags.get(name, name)].is_stored


def published_names(program: NormalProgram, directives: Iterable[Directive]) -> set[str]:
    """Return the names of these relations."""
    return {each.name for each in published_relations(program, directives)}


def relations_of_counts(program: NormalProgram) -> dict[str, Relation]:
    """Return for each bag the relation of its counts."""
    return {bag: program.relations[rows] for bag, rows in program.bags.items()}
