"""Who asserts the tuples of base relations: the program text, each source, and manual writes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from corollary.core.arrow import to_python
from corollary.core.engine import Engine, Limits
from corollary.core.logic import Value
from corollary.core.plans import working_relation
from corollary.core.program import NormalProgram, Relation
from corollary.core.recorder import CountingRecorder
from corollary.core.states import CHANGES, State
from corollary.core.values import comparable_row
from corollary.maintain.base_plans import plan_key_lookup

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[Value, ...]

TEXT_PART, MANUAL_PART = "text", "manual"
SOURCE_PREFIX = "source "
"""Begins the name of a source's part; the name of the source follows."""


def carry_over_parts(normal: NormalProgram, before: NormalProgram) -> NormalProgram:
    """Return a program with the parts that the one before it had.

    If a base relation has rules now, its parts become those of its base part.
    """
    parts: dict[str, Mapping[str, str]] = {}
    relations = dict(normal.relations)
    for name, by_part in before.parts.items():
        base = normal.bases.get(name, name)
        if base in normal.relations:
            parts[base] = {part: base if at == name else at for part, at in by_part.items()}
            for at in parts[base].values():
                if at != base:
                    relations[at] = replace(normal.relations[base], name=at, is_declared=False)
    return replace(normal, relations=relations, parts=parts) if parts else normal


def add_parts(normal: NormalProgram, writers: Mapping[str, Iterable[str]]) -> NormalProgram:
    """Return the program in which each writer of a base relation has a part of it.

    The only part of a relation is the relation itself; with a second one, each part becomes a
    working relation of its own.
    """
    known_parts = normal.parts
    new = [name for name in writers if not known_parts.get(name, {}).keys() >= set(writers[name])]
    if not new:
        return normal
    parts, relations = dict(known_parts), dict(normal.relations)
    for name in new:
        known = parts.get(name, {})
        every = tuple(dict.fromkeys((*known, *sorted(writers[name]))))
        own = {part: at for part, at in known.items() if at != name}
        parts[name] = {
            part: name if len(every) == 1 else own.get(part, working_relation(name, part))
            for part in every
        }
        for at in parts[name].values():
            if at != name:
                relations[at] = replace(normal.relations[name], name=at, is_declared=False)
    return replace(normal, relations=relations, parts=parts)


def split_parts(before: NormalProgram, after: NormalProgram) -> dict[str, str]:
    """Return the new parts that take over the tuples of a base relation that was its only part."""
    found: dict[str, str] = {}
    for name, by_part in before.parts.items():
        base = after.bases.get(name, name)
        for part, at in by_part.items():
            now = after.parts.get(base, {}).get(part)
            if at == name and now is not None and now != base:
                found[now] = name
    return found


def relations_with_parts(normal: NormalProgram, names: Iterable[str]) -> list[str]:
    """Return which base relations have several parts."""
    return [name for name in dict.fromkeys(names) if len(normal.parts.get(name, ())) > 1]


def describe_parts(parts: Iterable[str], conjunction: str = " or ") -> str:
    """Return who asserts something, in words.

    >>> describe_parts([TEXT_PART, "source edge < edge.csv"])
    'the program text or the source `edge.csv`'
    """
    words = {TEXT_PART: "the program text", MANUAL_PART: "a manual write"}
    return conjunction.join(
        words.get(part) or f"the source `{part.partition(' < ')[2]}`" for part in parts
    )


def working_copy(relation: Relation, role: str) -> Relation:
    """Return a working relation of the shape of another."""
    name = working_relation(relation.name, role)
    return replace(relation, name=name, is_declared=False, is_derived=False)


def find_agreeing(
    engine: Engine,
    normal: NormalProgram,
    at: str,
    rows: "Sequence[Row] | pa.Table",
    *,
    columns: Sequence[int],
    limits: Limits,
) -> "pa.Table":
    """Return the tuples of a part that have the values of one of some rows, each once."""
    relation = normal.relations[at]
    if columns:
        import pyarrow as pa

        there = engine.lookup(at, tuple(columns), rows, range(relation.arity))
        if there is not None:
            return pa.table(there, list(relation.columns))
    keys, found = (working_copy(relation, role) for role in ("keys", "found"))
    names, types = relation.columns, relation.types
    keys = replace(
        keys,
        columns=tuple(names[each] for each in columns),
        types=tuple(types[each] for each in columns),
    )
    engine.declare({each.name: each for each in (keys, found)})
    try:
        engine.insert(keys.name, rows)
        engine.run(
            plan_key_lookup(normal, at, keys, columns, found.name), CountingRecorder(), limits
        )
        return engine.read(found.name)
    finally:
        engine.drop([keys.name, found.name])


def find_asserted(
    engine: Engine, normal: NormalProgram, name: str, rows: Sequence[Row], limits: Limits
) -> dict[str, list[Row]]:
    """Return for each part of a base relation which of some tuples it has.

    The tuples of a bag have no counts; parts that have none of them are left out.
    """
    counts = normal.bags.get(name, name)
    found: dict[str, list[Row]] = {}
    for part, at in normal.parts.get(normal.bases.get(counts, counts), {}).items():
        if not engine.size(at):
            continue
        arity = len(rows[0])
        there: set[tuple[tuple[str, str], ...]] = {()}
        if arity:
            agreeing = find_agreeing(engine, normal, at, rows, columns=range(arity), limits=limits)
            there = {comparable_row(row[:arity]) for row in to_python(agreeing)}
        held = [row for row in rows if comparable_row(row) in there]
        if held:
            found[part] = held
    return found


def copied_base(
    engine: Engine, program: NormalProgram, name: str, created: Collection[str]
) -> str | None:
    """Return the base relation that held just the tuples of one of its parts before a commit.

    That of the only writer so far has become the part of that writer; None for other relations,
    and for those of a base relation that the commit has created.
    """
    if any(engine.size(name, sign) for sign in CHANGES):
        return None
    for base, parts in program.parts.items():
        if name != base and name in parts.values() and base not in created:
            is_all = engine.size(name) == engine.size(base, State.OLD)
            return base if is_all else None
    return None
