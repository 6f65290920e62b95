"""Inserts into and deletes from base relations, each by one writer in its own part."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from corollary.core.engine import Engine, Limits, RowLookup, TableHandle
from corollary.core.program import NormalProgram
from corollary.core.recorder import CountingRecorder
from corollary.core.states import State
from corollary.core.values import format_row
from corollary.data_class import dataclass
from corollary.database.changes import KeptTuples
from corollary.database.program.loaded_program import LoadedProgram, ResolvedDependency
from corollary.database.program.parts import (
    MANUAL_PART,
    TEXT_PART,
    add_parts,
    describe_parts,
    find_agreeing,
    find_asserted,
    relations_with_parts,
    working_copy,
)
from corollary.database.writing.bag_operations import BagChanges
from corollary.errors import Diagnostic, InputError
from corollary.maintain.base_plans import plan_intersections, plan_union_of_parts

ENCODED_MAX_ROWS = 2**24
"""The maximum number of rows that an engine gets at once: it needs about 100 bytes for each."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Tuples to insert into a base relation or to delete from it, in one part of it.

    Attributes:
        key: if it is not empty, the rows have these columns, those of this process no others, and
            all tuples with these values are deleted.
        is_strict: whether it is an error if another part asserts a tuple that is to be deleted.
    """

    sign: State
    relation: str
    rows: Any
    part: str = MANUAL_PART
    key: tuple[str, ...] = ()
    is_strict: bool = False


def fact_edits(before: NormalProgram, after: NormalProgram) -> list[Operation]:
    """Return what an edit of the text does to the facts in it."""
    found = []
    for name in dict.fromkeys((*before.facts, *after.facts)):
        old, new = before.facts.get(name, ()), after.facts.get(name, ())
        if old != new:
            removed, added = set(old) - set(new), set(new) - set(old)
            found.append(Operation(State.REMOVED, name, list(removed), TEXT_PART))
            found.append(Operation(State.ADDED, name, list(added), TEXT_PART))
    return found


def written_parts(program: NormalProgram, operations: Iterable[Operation]) -> dict[str, set[str]]:
    """Return which parts insert into which base relation."""
    found: dict[str, set[str]] = {name: {TEXT_PART} for name, rows in program.facts.items() if rows}
    for each in operations:
        if each.sign is State.ADDED and len(each.rows):
            base = program.bases.get(each.relation, each.relation)
            found.setdefault(base, set()).add(each.part)
    for relation, sign in program.active.triggers.values():
        if sign is State.ADDED:
            base = program.bases.get(relation, relation)
            found.setdefault(base, set()).add(MANUAL_PART)
    return found


def with_written_parts(
    loaded: LoadedProgram, operations: Sequence[Operation], also: Iterable[str] = ()
) -> LoadedProgram:
    """Return the program in which every writer that inserts tuples has a part.

    What is written by hand to other relations, `also`, is not known yet.
    """
    written = written_parts(loaded.normal, operations)
    for name in also:
        written.setdefault(loaded.normal.bases.get(name, name), set()).add(MANUAL_PART)
    normal = add_parts(loaded.normal, written)
    return loaded if normal is loaded.normal else replace(loaded, normal=normal)


def drain(operations: list[Operation]) -> Iterator[Operation]:
    """Yield operations, and take them out of the list, so that their rows can be released.

    >>> some = [Operation(State.ADDED, "p", [(1,)]), Operation(State.REMOVED, "q", [])]
    >>> [each.relation for each in drain(some)], some
    (['p', 'q'], [])
    """
    operations.reverse()
    while operations:
        yield operations.pop()


def apply_request(
    engine: Engine,
    program: NormalProgram,
    operations: list[Operation],
    limits: Limits,
    dependencies: Mapping[str, Sequence[ResolvedDependency]],
) -> dict[str, KeptTuples]:
    """Apply what a transaction asks for; first fetch at once what that looks up.

    Args:
        engine: of the relations.
        program: of the relations.
        operations: taken out of the list one by one, unless triggers may want to begin anew.
        limits: of the work.
        dependencies: what is checked of added tuples, by base relation.

    Returns:
        By relation, the tuples that were to be deleted but that another part asserts.

    Raises:
        InputError: `C0928`: there are such tuples of a strict operation.
    """
    engine.prefetch(
        lookup for each in operations for lookup in _lookups(program, each, dependencies)
    )
    strict = {each.relation for each in operations if each.is_strict}
    every = operations if program.active.triggers else drain(operations)
    kept = apply_operations(engine, program, every, limits)
    findings = [
        _asserted_finding(engine, program, name, kept[name], limits)
        for name in sorted(strict & kept.keys())
    ]
    if findings:
        raise InputError(findings)
    return kept


def _asserted_finding(
    engine: Engine, program: NormalProgram, name: str, kept: KeptTuples, limits: Limits
) -> Diagnostic:
    """Return which rows cannot be deleted, since another part asserts them."""
    row = kept.first()
    parts = find_asserted(engine, program, name, [row], limits).keys() - {MANUAL_PART}
    cure = "change it there, and run the program on the warehouse again"
    if parts == {TEXT_PART}:
        cure = "change the fact in the program, and load it again"
    others = len(kept) - 1
    more = f", and so are {others:,} more" if others else ""
    return Diagnostic(
        "C0928",
        f"The row {format_row(row, program.relations[name].types)} of `{name}` is asserted by "
        f"{describe_parts(sorted(parts), ' and ')}, which alone can delete or update it{more}.",
        None,
        f"{cure}; nothing was changed",
    )


def _lookups(
    program: NormalProgram,
    operation: Operation,
    dependencies: Mapping[str, Sequence[ResolvedDependency]],
) -> Iterator[RowLookup]:
    base, rows = program.bases.get(operation.relation, operation.relation), operation.rows
    parts = program.parts.get(base, {})
    target = parts.get(operation.part)
    if not len(rows) or not isinstance(rows, Sequence | pa.Table):
        return
    is_inserted = operation.sign is State.ADDED
    if operation.relation in program.bags:  # the counts of the rows are looked up
        columns = tuple(range(program.relations[operation.relation].arity))
        for name in {base, *parts.values()}:
            yield RowLookup(name, rows, columns, is_inserted)
        return
    if operation.key:
        if target is not None:
            names = program.relations[target].columns
            yield RowLookup(target, rows, tuple(names.index(each) for each in operation.key))
        return
    # What several parts assert is looked up in the relation; what is deleted, in all parts.
    concerned = {name for part, name in parts.items() if part == operation.part or not is_inserted}
    if len(parts) > 1:
        concerned.add(base)
    for name in concerned:
        yield RowLookup(name, rows, is_inserted=is_inserted)
    for each in dependencies.get(base, ()) if is_inserted else ():
        yield RowLookup(base, _project(rows, each.determinants), each.determinants)


def _project(rows: Any, columns: Sequence[int]) -> Any:
    """Return rows with some columns only."""
    if isinstance(rows, Sequence):
        return [tuple(row[at] for at in columns) for row in rows]
    return rows.select(list(columns))


def apply_operations(
    engine: Engine, program: NormalProgram, operations: Iterable[Operation], limits: Limits
) -> dict[str, KeptTuples]:
    """Apply operations to base relations, in the order given.

    Returns:
        By relation, the tuples that were to be deleted but that another part asserts.
    """
    touched: list[str] = []
    manual: dict[str, list[Operation]] = {}
    bags = BagChanges(engine, program, limits)
    for each in operations:
        if not len(each.rows):
            continue
        base = program.bases.get(each.relation, each.relation)
        parts = program.parts.get(base, {})
        target = parts.get(each.part)
        if base in bags.counted:
            bags.add(each.sign, each.relation, each.rows, part=each.part, base=base)
            continue
        if each.key:
            found = _find_by_key(engine, program, target, each, limits)
            each = replace(each, rows=found, key=())
        if each.part == MANUAL_PART and set(parts) - {MANUAL_PART}:
            manual.setdefault(base, []).append(each)
        if target is None:
            continue
        touched.append(base)
        change = engine.insert if each.sign is State.ADDED else engine.delete
        if getattr(each.rows, "is_distributed", False):
            change(target, each.rows)
            del each
            continue
        for rows in _slices(each.rows):
            change(target, rows)
        del each, rows
    # Several parts: the base relation itself is their union.
    several = relations_with_parts(program, touched)
    if several:
        engine.run(plan_union_of_parts(program, several), CountingRecorder(), limits)
    deleted = {
        name: every
        for name, every in manual.items()
        if any(each.sign is State.REMOVED for each in every)
    }
    kept = _still_there(engine, program, deleted, limits) if deleted else {}
    return {
        name: _kept_tuples(program, name, rows) for name, rows in {**kept, **bags.apply()}.items()
    }


def _kept_tuples(program: NormalProgram, name: str, rows: TableHandle) -> KeptTuples:
    parts = program.parts[program.bases.get(name, name)]
    others = tuple(part for part in parts if part != MANUAL_PART)
    return KeptTuples(program.relations[name], others, rows)


def _find_by_key(
    engine: Engine, program: NormalProgram, target: str | None, operation: Operation, limits: Limits
) -> Any:
    """Return the tuples of a part that have the values of an operation in the columns of a key."""
    if target is None:
        return ()
    relation = program.relations[target]
    if getattr(operation.rows, "is_distributed", False):
        from corollary.database.writing.task_changes import find_keys

        assert engine.tasks is not None
        held = engine.handle(target)
        return find_keys(engine.tasks, relation, held, operation.rows, operation.key)
    positions = [relation.columns.index(name) for name in operation.key]
    return pa.concat_tables(
        find_agreeing(engine, program, target, rows, columns=positions, limits=limits)
        for rows in _slices(operation.rows)
    )


def _slices(rows: Any) -> Iterator[Any]:
    """Yield rows in parts that an engine can encode in little memory beside the rows themselves."""
    if not isinstance(rows, Sequence) and hasattr(rows, "slices"):  # a handle
        yield from rows.slices(ENCODED_MAX_ROWS)
        return
    if isinstance(rows, Sequence) or len(rows) <= ENCODED_MAX_ROWS:
        yield rows
        return
    for start in range(0, len(rows), ENCODED_MAX_ROWS):
        yield rows.slice(start, ENCODED_MAX_ROWS)


def _still_there(
    engine: Engine,
    program: NormalProgram,
    manual: Mapping[str, Sequence[Operation]],
    limits: Limits,
) -> dict[str, TableHandle]:
    """Return which tuples that manual writes have finally deleted are still there."""
    deleted, kept = (
        {name: working_copy(program.relations[name], role) for name in manual}
        for role in ("deleted", "kept")
    )
    made = {each.name: each for each in (*deleted.values(), *kept.values())}
    engine.declare(made)
    try:
        for name, operations in manual.items():
            for each in operations:
                if each.sign is State.REMOVED:
                    engine.insert(deleted[name].name, each.rows)
                else:
                    engine.delete(deleted[name].name, each.rows)
        names = ({name: each.name for name, each in roles.items()} for roles in (deleted, kept))
        engine.run(plan_intersections(program, *names), CountingRecorder(), limits)
        found = {name: engine.handle(each.name) for name, each in kept.items()}
    finally:
        engine.drop(made)
    outer = {
        base: name for name, base in program.bases.items() if program.relations[name].is_declared
    }
    return {outer.get(name, name): each for name, each in found.items() if len(each)}
