"""Which changes of base relations cause a violation of a constraint.

The search goes from the violating tuple down the rules, until only changes of base relations are
left; a view that is aggregated, or whose changes are not computed, is named itself.
"""

from dataclasses import replace
from typing import Any

from corollary.active.causes import plan_causes
from corollary.core.arrow import to_python
from corollary.core.program import NormalProgram, Relation
from corollary.core.recorder import CountingRecorder
from corollary.core.states import CHANGES, State
from corollary.core.values import format_row
from corollary.database.program.parts import working_copy
from corollary.database.reactions.trigger_causes import TriggerCauses
from corollary.database.state import DatabaseState
from corollary.maintain.update import Update

Row = tuple[Any, ...]
RelationChange = tuple[str, State]

MESSAGE_CHANGES = 3
"""The maximum number of changes that a message names for one tuple."""

MAX_STEPS = 30
"""The maximum number of tuples visited to find them."""


class ViolationCauses:
    """Finds the changes that cause violations, once all views are maintained."""

    def __init__(
        self, state: DatabaseState, update: Update, triggers: TriggerCauses | None = None
    ) -> None:
        self._state = state
        self._triggers = triggers
        self._update = update
        self._program: NormalProgram = update.new
        demand = state.demand(self._program)
        self._known = {
            (name, sign)
            for name, each in self._program.relations.items()
            for sign in CHANGES
            if each.is_stored or sign in demand.signs.get(name, ())
        }
        self._known |= {(name, State.ADDED) for name in demand.goals}

    def find(self, relation: str, row: Row) -> list[str]:
        """Return the changes that cause a tuple of a constraint, as messages show them."""
        seen: set[tuple[RelationChange, Row]] = set()
        found: dict[str, None] = {}
        work: list[tuple[RelationChange, Row]] = [((relation, State.ADDED), row)]
        while work and len(found) < MESSAGE_CHANGES and len(seen) < MAX_STEPS:
            change, tuple_ = work.pop(0)
            if (change, tuple_) in seen:
                continue
            seen.add((change, tuple_))
            below = self._direct_causes(change, tuple_)
            work += below
            name = self._user_name(change[0])
            if not below and name is not None and change[0] not in self._program.active.relations:
                types = self._program.relations[change[0]].types
                sign = "+" if change[1] is State.ADDED else "-"
                text = f"`{sign}{name}{format_row(tuple_, types).replace('`', '')}`"
                cause = self._triggers.describe(name, change[1], tuple_) if self._triggers else ""
                found[f"{text}{cause}"] = None
        return list(found)

    def _user_name(self, name: str) -> str | None:
        """Return the user's name of a relation; None if rewriting has made it."""
        relation = self._program.relations.get(name)
        if relation is not None and relation.is_declared:
            return name
        return next((user for user, base in self._program.bases.items() if base == name), None)

    def _direct_causes(self, change: RelationChange, row: Row) -> list[tuple[RelationChange, Row]]:
        """Return the direct causes of a tuple, a few of each relation."""
        name, _ = change
        relation = self._relation(name)
        if not relation.is_derived:
            return []
        engine, limits = self._state.engine, self._state.limits
        given = working_copy(relation, "given")
        plan, found = plan_causes(self._update, change, given.name, self._known)
        if not found:
            return []
        places = {
            each.target: replace(self._relation(each.relation), name=each.target, is_derived=False)
            for each in found
        }
        declared = {given.name: given} | places
        engine.declare(declared)
        try:
            engine.insert(given.name, [row])
            engine.run(plan, CountingRecorder(), limits)
            return [
                ((each.relation, each.sign), tuple_)
                for each in found
                for tuple_ in list(to_python(engine.read(each.target)))[:MESSAGE_CHANGES]
            ]
        finally:
            engine.drop(declared)

    def _relation(self, name: str) -> Relation:
        return self._program.active.relations.get(name) or self._program.relations[name]
