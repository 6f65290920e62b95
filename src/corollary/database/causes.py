"""Which changes of base relations are behind a tuple that should not be there.

From the tuple one step down at a time, until there are only changes of base relations; a view that
is aggregated, or whose changes nobody has asked for, is named itself.
"""

from dataclasses import replace
from typing import Any

from corollary.active.causes import causes
from corollary.core.arrow import to_python
from corollary.core.program import NormalProgram, Relation
from corollary.core.recorder import Tally
from corollary.core.states import CHANGES, State
from corollary.core.values import row_text
from corollary.database.parts import as_relation
from corollary.database.state import DatabaseState
from corollary.maintain.update import Update

Row = tuple[Any, ...]
Change = tuple[str, State]

MESSAGE_CHANGES = 3
"""How many changes a message names for one tuple."""

MAX_STEPS = 30
"""How many tuples are followed down to find them."""


class Causes:
    """Finds the changes behind tuples, once all views are maintained."""

    def __init__(self, state: DatabaseState, update: Update) -> None:
        self._state = state
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

    def of(self, relation: str, row: Row) -> list[str]:
        """Return the changes behind a tuple of a constraint, as messages show them."""
        seen: set[tuple[Change, Row]] = set()
        found: dict[str, None] = {}
        work: list[tuple[Change, Row]] = [((relation, State.ADDED), row)]
        while work and len(found) < MESSAGE_CHANGES and len(seen) < MAX_STEPS:
            change, tuple_ = work.pop(0)
            if (change, tuple_) in seen:
                continue
            seen.add((change, tuple_))
            below = list(self._below(change, tuple_))
            work += below
            name = self._outer(change[0])
            if not below and name is not None and change[0] not in self._program.active.relations:
                types = self._program.relations[change[0]].types
                sign = "+" if change[1] is State.ADDED else "-"
                found[f"`{sign}{name}{row_text(tuple_, types).replace('`', '')}`"] = None
        return list(found)

    def _outer(self, name: str) -> str | None:
        """Return what the user calls a relation; None if it is one that rewriting made."""
        if self._program.relations.get(name, _NONE).is_declared:
            return name
        return next((user for user, base in self._program.bases.items() if base == name), None)

    def _below(self, change: Change, row: Row) -> list[tuple[Change, Row]]:
        """Return the changes one step behind a tuple, a few of each."""
        name, _ = change
        relation = self._program.active.relations.get(name) or self._program.relations[name]
        if not relation.is_derived:
            return []
        engine, limits = self._state.engine, self._state.limits
        given = as_relation(relation, "given")
        plan, found = causes(self._update, change, given.name, self._known)
        if not found:
            return []
        places = {
            each.place: replace(self._relation(each.relation), name=each.place, is_derived=False)
            for each in found
        }
        declared = {given.name: given} | places
        engine.declare(declared)
        try:
            engine.insert(given.name, [row])
            engine.run(plan, Tally(), limits)
            return [
                ((each.relation, each.sign), tuple_)
                for each in found
                for tuple_ in list(to_python(engine.read(each.place)))[:MESSAGE_CHANGES]
            ]
        finally:
            engine.drop(declared)

    def _relation(self, name: str) -> Relation:
        return self._program.active.relations.get(name) or self._program.relations[name]


_NONE = Relation("", (), (), is_derived=False, is_declared=False)
