"""The base changes of a transaction that may have added or removed a tuple, set at a time.

From the tuple down the rules: the changes of literals that directly caused tuples of one level
(`active/causes.py`) are the tuples of the next, until only changes of base relations are left.
"""

from collections.abc import Iterator
from dataclasses import replace

from corollary.active.causes import plan_causes
from corollary.core.arrow import to_python
from corollary.core.program import Relation
from corollary.core.states import CHANGES, State
from corollary.data_class import dataclass
from corollary.database.program.parts import working_copy
from corollary.database.state import DatabaseState
from corollary.maintain.update import Update
from corollary.provenance.limits import Allowance
from corollary.provenance.nodes import BaseChange, Row
from corollary.provenance.trials import user_names

ChangedTuples = dict[tuple[str, State], set[Row]]
"""Tuples that were added or removed, by relation and sign."""


@dataclass(frozen=True, slots=True)
class CausingChanges:
    """The changes of base tuples that a change may have come from.

    Attributes:
        is_complete: whether every way down was followed to base relations.
    """

    changes: tuple[BaseChange, ...]
    is_complete: bool


def causing_changes(
    state: DatabaseState,
    update: Update,
    change: tuple[str, State],
    row: Row,
    allowance: Allowance,
) -> CausingChanges:
    """Return the base changes behind a change of one tuple, in a transaction that is open.

    Args:
        state: the database.
        update: the transaction, whose views are maintained.
        change: the relation and sign of the tuple.
        row: the tuple.
        allowance: what is left of the limits.
    """
    search = _CauseSearch(state, update, allowance)
    return search.run(change, row)


class _CauseSearch:
    def __init__(self, state: DatabaseState, update: Update, allowance: Allowance) -> None:
        self._state = state
        self._update = update
        self._allowance = allowance
        self._relations = {**update.old.relations, **update.new.relations}
        demand = state.demand(update.new)
        self._known = {
            (name, sign)
            for name, each in update.new.relations.items()
            for sign in CHANGES
            if each.is_stored or sign in demand.signs.get(name, ())
        }

    def run(self, change: tuple[str, State], row: Row) -> CausingChanges:
        """Follow the causes of a tuple to base relations."""
        seen: ChangedTuples = {}
        work: ChangedTuples = {change: {row}}
        is_complete = True
        while work:
            below: ChangedTuples = {}
            for key, rows in work.items():
                seen.setdefault(key, set()).update(rows)
                if self._relations[key[0]].is_derived:
                    self._allowance.expanded += len(rows)
                    found = self._direct(key, rows)
                    is_complete &= found is not None and self._allowance.tuples > 0
                    for other, tuples in (found or {}).items():
                        below.setdefault(other, set()).update(tuples)
            if self._allowance.tuples <= 0 or self._allowance.is_over:
                is_complete = False
                break
            work = {key: new for key, rows in below.items() if (new := rows - seen.get(key, set()))}
        return CausingChanges(tuple(sorted(self._base(seen), key=repr)), is_complete)

    def _base(self, seen: ChangedTuples) -> Iterator[BaseChange]:
        program = self._update.new
        users, counts = user_names(program), {rows: bag for bag, rows in program.bags.items()}
        for (name, sign), rows in seen.items():
            relation = self._relations[name]
            if not relation.is_derived:
                op = "+" if sign is State.ADDED else "-"
                end = -1 if name in counts else None  # a copy of a row, without its count
                for row in rows:
                    yield BaseChange(op, users.get(name, name), row[:end], relation.types[:end])

    def _direct(self, change: tuple[str, State], rows: set[Row]) -> ChangedTuples | None:
        """Return the direct causes of tuples; None if those of a relation cannot be read."""
        update, engine = self._update, self._state.engine
        relation = self._relations[change[0]]
        given = working_copy(relation, "given")
        plan, found = plan_causes(update, change, given.name, self._known)
        declared: dict[str, Relation] = {given.name: given}
        for each in found:
            shape = self._relations[each.relation]
            declared[each.target] = replace(
                shape, name=each.target, is_derived=False, is_declared=False
            )
        is_readable = all(name in {each.relation for each in found} for name in self._below(change))
        engine.declare(declared)
        try:
            engine.insert(given.name, sorted(rows, key=repr))
            self._allowance.run(engine, plan, self._state.limits)
            direct: ChangedTuples = {}
            for each in found:
                tuples = set(to_python(engine.read(each.target)))
                if tuples:
                    direct.setdefault((each.relation, each.sign), set()).update(tuples)
        finally:
            engine.drop(declared)
        return direct if is_readable or direct else None

    def _below(self, change: tuple[str, State]) -> Iterator[str]:
        """Yield the relations that the rules of a relation read and that may have changed."""
        for name in self._update.dependencies.get(change[0], ()):
            if self._update.candidates.get(name):
                yield name
