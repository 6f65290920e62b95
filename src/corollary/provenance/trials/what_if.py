"""What would happen without a base tuple, or with one that is not there: a dry run."""

from corollary.core.states import State
from corollary.database.database import Database, state_of
from corollary.database.intake.dry_run import try_out
from corollary.database.intake.operations import Operation
from corollary.database.intake.pipeline import PipelineRun
from corollary.database.pending_commit import DeferredOperations
from corollary.database.program.loaded_program import Fact, read_facts
from corollary.database.program.parts import MANUAL_PART
from corollary.database.state import DatabaseState
from corollary.provenance.asked_state import asked_state
from corollary.provenance.trials.wanted import tuples_there


def what_if(database: Database, fact: str) -> PipelineRun:
    """Return what a dry run finds if a base tuple is deleted, or inserted if it is not there.

    A tuple is deleted whoever asserts it: the program text, sources and manual writes. Of a
    relation with copies, one copy is deleted.

    Args:
        database: nothing in it is changed.
        fact: a base tuple, such as `cable("a", "b")`; or several, with full stops between them.

    Raises:
        InputError: it is not a tuple of a base relation.
    """
    state = state_of(database)
    with state.lock:
        database.refresh()
        facts = read_facts(state.loaded, fact, "the tuple")
        operations = [each for one in facts for each in _operations(state, one)]
        transaction = database.transaction(is_dry=True)
        transaction.read(lambda: DeferredOperations(operations, {}))
        return PipelineRun(transaction, plan=try_out(database, transaction))


def _operations(state: DatabaseState, fact: Fact) -> list[Operation]:
    """Return the deletion of a tuple from all parts that may have it; or its insertion."""
    relation, row = fact
    normal = state.loaded.normal
    base = normal.bases.get(relation, relation)
    place = relation if base in normal.bags.values() else base
    (is_there,) = tuples_there(asked_state(state), place, [row])
    if not is_there:
        return [Operation(State.ADDED, relation, [row])]
    parts = normal.parts.get(base, {MANUAL_PART: base})
    return [Operation(State.REMOVED, relation, [row], part) for part in parts]
