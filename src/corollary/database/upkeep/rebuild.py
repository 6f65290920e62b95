"""The base tuples of a database, writer by writer; and a database rebuilt from them in memory."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from corollary.analysis.today import TODAY_RELATION
from corollary.console import Console
from corollary.core.arrow import to_python
from corollary.core.engine import Limits
from corollary.core.program import NormalProgram, Program
from corollary.core.states import State
from corollary.database.access.principals import OWNER
from corollary.database.commit import TransactionRequest
from corollary.database.memory_store import MemoryStore
from corollary.database.pending_commit import DeferredOperations
from corollary.database.program.loaded_program import load_program
from corollary.database.program.parts import TEXT_PART
from corollary.database.reactions.reactions import ExistingViolations
from corollary.database.state import DatabaseState
from corollary.database.transaction import Transaction
from corollary.database.writing.day import read_day
from corollary.database.writing.operations import Operation
from corollary.engines.local.engine import LocalEngine
from corollary.maintain.payload import payload_relations_of


def written_relations(state: DatabaseState) -> Iterator[str]:
    """Yield the relations that have tuples of other parts than the program text."""
    for name, parts in state.held_parts().items():
        if set(parts) - {TEXT_PART}:
            yield name


def base_tuples(state: DatabaseState) -> Iterator[Operation]:
    """Yield the tuples of all parts but the program text; of a bag, the relation of its counts."""
    normal = state.loaded.normal
    for name in written_relations(state):
        if name in normal.bags:  # its counts are written, too
            continue
        base = normal.bases.get(name, name)
        for part, at in normal.parts.get(base, {}).items():
            if part != TEXT_PART:
                yield Operation(State.ADDED, name, state.engine.read(at), part)


def rebuild(
    program: Program,
    tuples: Iterable[Operation],
    *,
    existing: ExistingViolations,
    limits: Limits | None = None,
    console: Console | None = None,
) -> DatabaseState:
    """Return a state in memory with a program and base tuples, and all that is derived from them.

    The tuples were there before: they set off no trigger.

    Args:
        program: the program.
        tuples: of each part of each base relation, in its columns.
        existing: what is done if they violate constraints.
        limits: bounds on the work.
        console: where progress is shown.

    Raises:
        ConstraintError: a key is violated, or, if that is refused, a constraint.
    """
    operations = list(tuples)
    alone = load_program(program).normal
    written = {each.relation for each in operations}
    written |= {bag for bag, counts in alone.bags.items() if counts in written}
    empty = {
        name: alone.relations[name]
        if name in alone.bases
        else replace(alone.relations[name], is_derived=False)
        for name in sorted(written)
    }
    bags = {bag: counts for bag, counts in alone.bags.items() if bag in empty and counts in empty}
    bare = NormalProgram(empty, (), (), {}, bags=bags)
    engine = LocalEngine()
    engine.declare({**empty, **payload_relations_of(bare)})
    state = DatabaseState(engine, limits=limits, console=console)
    state.restore(engine, replace(state.loaded, normal=bare), 0, frozenset(), frozenset())
    days = [to_python(each.rows) for each in operations if each.relation == TODAY_RELATION]
    state.day = read_day(days[0][0][0]) if days else None
    request = TransactionRequest(OWNER, existing=existing, is_restored=True)
    transaction = Transaction(state, MemoryStore(), request)
    transaction.set_program(program)
    transaction.read(lambda: DeferredOperations(operations, {}))
    transaction.commit()
    return state
