"""What writers do to base relations, each in its own part."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from corollary.core.engine import Engine, Kept, Limits
from corollary.core.program import NormalProgram, Relation
from corollary.core.recorder import Tally
from corollary.core.states import State
from corollary.database.parts import MANUAL, TEXT, as_relation, divided, with_parts
from corollary.database.program import Loaded
from corollary.maintain.parts import shared, union


@dataclass(frozen=True, slots=True)
class Operation:
    """Tuples to add to a base relation, or to take out of it, and who says so."""

    sign: State
    relation: str
    rows: Any
    part: str = MANUAL


def edited_facts(before: NormalProgram, after: NormalProgram) -> list[Operation]:
    """Return what an edit of the text does to the facts in it."""
    found = []
    for name in dict.fromkeys((*before.facts, *after.facts)):
        old, new = before.facts.get(name, ()), after.facts.get(name, ())
        if old != new:
            gone, come = set(old) - set(new), set(new) - set(old)
            found.append(Operation(State.REMOVED, name, list(gone), TEXT))
            found.append(Operation(State.ADDED, name, list(come), TEXT))
    return found


def writers(program: NormalProgram, operations: Iterable[Operation]) -> dict[str, set[str]]:
    """Return who adds tuples to which base relation."""
    found: dict[str, set[str]] = {name: {TEXT} for name, rows in program.facts.items() if rows}
    for each in operations:
        if each.sign is State.ADDED and len(each.rows):
            base = program.bases.get(each.relation, each.relation)
            found.setdefault(base, set()).add(each.part)
    for relation, sign in program.active.triggers.values():
        if sign is State.ADDED:
            base = program.bases.get(relation, relation)
            found.setdefault(base, set()).add(MANUAL)
    return found


def with_writers(loaded: Loaded, operations: Sequence[Operation]) -> Loaded:
    """Return the program in which everybody who adds tuples has a part."""
    normal = with_parts(loaded.normal, writers(loaded.normal, operations))
    return loaded if normal is loaded.normal else replace(loaded, normal=normal)


def apply(
    engine: Engine, program: NormalProgram, operations: Sequence[Operation], limits: Limits
) -> dict[str, Kept]:
    """Open the changes of base relations, in the order given.

    Returns for each relation the tuples that were to be deleted and are there all the same, since
    another part asserts them.
    """
    touched: list[str] = []
    manual: dict[str, list[Operation]] = {}
    for each in operations:
        base = program.bases.get(each.relation, each.relation)
        parts = program.parts.get(base, {})
        if each.part == MANUAL and set(parts) - {MANUAL}:
            manual.setdefault(base, []).append(each)
        target = parts.get(each.part)
        if target is None:
            continue
        touched.append(base)
        if each.sign is State.ADDED:
            engine.insert(target, each.rows)
        else:
            engine.delete(target, each.rows)
    several = divided(program, touched)
    if several:
        engine.run(union(program, several), Tally(), limits)
    deleted = {
        name: every
        for name, every in manual.items()
        if any(each.sign is State.REMOVED for each in every)
    }
    return _still_there(engine, program, deleted, limits) if deleted else {}


def _still_there(
    engine: Engine,
    program: NormalProgram,
    manual: Mapping[str, Sequence[Operation]],
    limits: Limits,
) -> dict[str, Kept]:
    """Return which tuples that manual writes have deleted in the end are still there."""
    asked: dict[str, Relation] = {}
    kept: dict[str, Relation] = {}
    for name in manual:
        asked[name] = as_relation(program.relations[name], "asked")
        kept[name] = as_relation(program.relations[name], "kept")
    made = {each.name: each for each in (*asked.values(), *kept.values())}
    engine.declare(made)
    try:
        for name, operations in manual.items():
            for each in operations:
                if each.sign is State.REMOVED:
                    engine.insert(asked[name].name, each.rows)
                else:
                    engine.delete(asked[name].name, each.rows)
        names = ({name: each.name for name, each in made.items()} for made in (asked, kept))
        engine.run(shared(program, *names), Tally(), limits)
        found = {name: engine.keep(each.name) for name, each in kept.items()}
    finally:
        engine.drop(made)
    outer = {
        base: name for name, base in program.bases.items() if program.relations[name].is_declared
    }
    return {outer.get(name, name): each for name, each in found.items() if len(each)}
