"""Marked literals become plain literals of relations with the mark in their name.

`+p(x)`, `-p(x)` and `p@old(x)` read relations `+p`, `-p` and `p@old`; `p@new(x)` is `p(x)`. The
heads of triggers, `+p(x) :- …` and `-p(x) :- …`, define relations `insert p` and `delete p`. So all
other passes see plain literals only. No relation of a user has these names.
"""

from dataclasses import dataclass, field, replace
from typing import assert_never

from corollary.core import logic
from corollary.core.program import MarkedRelation, marked_name
from corollary.core.states import SIGNS, State


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
            atom = replace(head, arguments=self._terms(head.arguments))
            heads.append(self._trigger(atom) if head.sign else atom)
        return replace(clause, heads=tuple(heads), body=self._items(clause.body))

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

    def _items(self, items: tuple[logic.BodyItem, ...]) -> tuple[logic.BodyItem, ...]:
        return tuple(map(self._item, items))

    def _item(self, item: logic.BodyItem) -> logic.BodyItem:
        match item:
            case logic.Atom():
                return self._rename(replace(item, arguments=self._terms(item.arguments)))
            case logic.Negation(atom=atom):
                marked = replace(atom, arguments=self._terms(atom.arguments))
                return replace(item, atom=self._rename(marked))
            case logic.Comparison(left=left, right=right):
                return replace(item, left=self._term(left), right=self._term(right))
            case logic.Disjunction(alternatives=alternatives):
                return replace(item, alternatives=tuple(map(self._items, alternatives)))
            case logic.Truth():
                return item
            case _:
                assert_never(item)

    def _terms(self, terms: tuple[logic.Term, ...]) -> tuple[logic.Term, ...]:
        return tuple(map(self._term, terms))

    def _term(self, term: logic.Term) -> logic.Term:
        return logic.fold_term(term, self._renamed)

    def _renamed(self, term: logic.Term, arguments: tuple[logic.Term, ...]) -> logic.Term:
        match term:
            case logic.AggregateTerm(target=target, body=body):
                goal = None if target is None else self._term(target)
                return replace(term, target=goal, body=self._items(body))
            case logic.Functor():
                return replace(term, arguments=arguments)
            case logic.Variable() | logic.Constant() | logic.Wildcard():
                return term
            case _:
                assert_never(term)
