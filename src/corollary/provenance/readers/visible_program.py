"""The part of a program that a reader may see: rules whose head and whole body are granted.

What a statement of SQL has made for itself counts as granted if the view is, as long as all of its
rules are visible. Nothing is left of places in files, keys, constraints and other rules.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from corollary.analysis.traverse import atom_uses
from corollary.core.logic import Clause, applies_functor
from corollary.core.program import Declaration, Program, owner_of, sql_texts
from corollary.data_class import dataclass

TODAY_FUNCTOR = "today"


@dataclass(frozen=True)
class VisibleProgram:
    """What a reader may see of a program.

    Attributes:
        program: as written.
        granted: the relations that were granted.
    """

    program: Program
    granted: frozenset[str]

    @cached_property
    def relations(self) -> frozenset[str]:
        """The granted relations, and what visible statements have made for themselves."""
        statements = sql_texts(self.program)
        made = {
            each.name
            for each in self.program.declarations
            if each.name not in self.granted and owner_of(each.name, statements) in self.granted
        }
        while True:
            known = self.granted | made
            hidden = {
                head.relation
                for clause in self.program.clauses
                for head in clause.heads
                if head.relation in made and not _is_visible(clause, known)
            }
            if not hidden:
                return frozenset(known)
            made -= hidden

    @cached_property
    def rules(self) -> tuple[Clause, ...]:
        """The visible rules, in their order, without their places."""
        bags = {each.name for each in self.program.declarations if each.is_bag}
        visible = [
            replace(clause, span=None)
            for clause in self.program.clauses
            if clause.body and _is_visible(clause, self.relations)
        ]
        # The copies of a bag add up over its rules: some of them say nothing.
        partial = {
            head.relation
            for clause in self.program.clauses
            if clause.body and not _is_visible(clause, self.relations)
            for head in clause.heads
        }
        counts = {f"{bag}.rows" for bag in bags} & partial
        return tuple(
            clause
            for clause in visible
            if not any(head.relation in counts for head in clause.heads)
        )

    def made(self, relation: str) -> bool:
        """Return whether a statement has made a relation for itself."""
        return relation in self.relations and relation not in self.granted

    def reached_from(self, relations: Iterable[str]) -> tuple[tuple[Clause, ...], list[str]]:
        """Return the rules that may have to do with relations, and all relations in them."""
        found = dict.fromkeys(relations)
        bags = {each.name for each in self.program.declarations if each.is_bag}
        while True:
            every = {f"{name}.rows" for name in found if name in bags} | found.keys()
            rules = tuple(
                clause for clause in self.rules if any(h.relation in every for h in clause.heads)
            )
            more = dict.fromkeys(
                _declared(name, bags)
                for clause in rules
                for name in (
                    *(head.relation for head in clause.heads),
                    *(use.atom.relation for use in atom_uses(clause)),
                )
            )
            if more.keys() <= found.keys():
                return rules, list(found)
            found |= more

    def declarations(self, relations: Iterable[str]) -> tuple[Declaration, ...]:
        """Return the declarations of relations, stored and without keys."""
        wanted = set(relations)
        return tuple(
            replace(each, key=(), storage="", span=None)
            for each in self.program.declarations
            if each.name in wanted
        )


def _declared(relation: str, bags: set[str]) -> str:
    """Return the bag of a relation of counts, or the relation itself."""
    bag = relation.removesuffix(".rows")
    return bag if bag in bags else relation


def _is_visible(clause: Clause, relations: Iterable[str]) -> bool:
    """Return whether the heads and the whole body of a rule are among relations."""
    known = set(relations)
    is_plain = not any(head.sign for head in clause.heads)
    return (
        is_plain
        and not applies_functor(clause, (TODAY_FUNCTOR,))
        and all(head.relation in known for head in clause.heads)
        and all(
            use.atom.relation in known and not use.atom.sign and use.atom.state is None
            for use in atom_uses(clause)
        )
    )
