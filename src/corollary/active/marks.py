"""Marked literals become plain literals of relations with the mark in their name.

`+p(x)`, `-p(x)` and `p@old(x)` read relations `+p`, `-p` and `p@old`; `p@new(x)` is `p(x)`. The
heads of triggers, `+p(x) :- …` and `-p(x) :- …`, define relations `insert p` and `delete p`. So all
other passes see plain literals only. No relation of a user has these names.
"""

from dataclasses import field, replace

from corollary.analysis import traverse
from corollary.core import logic
from corollary.core.program import MarkedRelation, marked_name
from corollary.core.states import SIGNS, State
from corollary.data_class import dataclass


@dataclass(slots=True)
class MarkRenamer:
    """Renames marked literals, and records the relation and state of each new name.

    Attributes:
        read: the names of marked literals in bodies.
        triggers: the names of the heads of triggers.
    """

    read: dict[str, MarkedRelation] = field(default_factory=dict)
    triggers: dict[str, MarkedRelation] = field(default_factory=dict)

    def rename_marks(self, clause: logic.Clause) -> logic.Clause:
        """Return the clause with names instead of marks."""
        heads = []
        for head in clause.heads:
            arguments = (traverse.map_term(each, _same, self._rename) for each in head.arguments)
            atom = replace(head, arguments=tuple(arguments))
            heads.append(self._trigger(atom) if head.sign else atom)
        body = traverse.map_body(clause.body, _same, self._rename)
        return replace(clause, heads=tuple(heads), body=body)

    def _trigger(self, head: logic.Atom) -> logic.Atom:
        sign = SIGNS[head.sign]
        name = f"{'insert' if sign is State.ADDED else 'delete'} {head.relation}"
        self.triggers[name] = head.relation, sign
        return replace(head, relation=name, sign="")

    def _rename(self, atom: logic.Atom) -> logic.Atom:
        state = SIGNS.get(atom.sign) or atom.state or State.NEW
        name = marked_name(atom.relation, state)
        if state is not State.NEW:
            self.read[name] = atom.relation, state
        return replace(atom, relation=name, sign="", state=None)


def _same(term: logic.Term) -> logic.Term:
    return term
