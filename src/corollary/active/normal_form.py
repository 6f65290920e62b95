"""Active rules in normal form: event predicates, triggers, alerts and constraints.

Marked literals become plain literals of relations with the mark in their name: `+p(x)`, `-p(x)` and
`p@old(x)` read relations `+p`, `-p` and `p@old`; `p@new(x)` is `p(x)`. The heads of triggers,
`+p(x) :- …` and `-p(x) :- …`, define relations `insert p` and `delete p`. No relation of a user has
these names. Then the clauses go through the same passes as all others (`lower_clauses`). The
auxiliary relations that these passes make are of two kinds:

| an auxiliary relation that reads | becomes |
|---|---|
| relations of the program, all in NEW or all in OLD | a query: a virtual relation of the program |
| a change, an event predicate, or both states | a relation evaluated with the event predicates |

A query is solved for the bindings of the change, so that `n = count : { part(x, _) }` beside
`+order(x)` counts for the added orders only.
"""

from collections.abc import Mapping
from dataclasses import field, replace

from corollary.analysis import traverse
from corollary.analysis.check import CheckedProgram, check
from corollary.core import logic
from corollary.core.logic import AnyAggregation, Literal, Origin, Rule
from corollary.core.printer import print_clause
from corollary.core.program import (
    ActiveRules,
    MarkedRelation,
    NormalProgram,
    Program,
    Relation,
    marked_name,
    relations_read,
)
from corollary.core.states import SIGNS, State
from corollary.data_class import dataclass
from corollary.rewrite.normalise import lower_clauses
from corollary.rewrite.translation_unit import TranslationUnit


def without_active_rules(program: Program) -> Program:
    """Return a program without its event predicates, triggers and reactions."""
    checked = check(program)
    kept = tuple(each for each in program.clauses if not checked.is_active(each))
    derived = [each for each in program.declarations if not checked.signatures[each.name].is_event]
    return replace(program, clauses=kept, declarations=tuple(derived), reactions=())


def with_active_rules(program: NormalProgram, checked: CheckedProgram) -> NormalProgram:
    """Return a program with the active rules of its text."""
    clauses = [clause for clause in checked.program.clauses if checked.is_active(clause)]
    reactions = checked.program.reactions
    if not clauses and not reactions:
        return program
    marks = MarkRenamer()
    plain = [marks.rename_marks(clause) for clause in clauses]
    events = {
        name: Relation(name, each.columns, each.types, is_derived=True, is_virtual=True)
        for name, each in checked.signatures.items()
        if each.is_event
    }
    known = {**program.relations, **events}
    for name, (relation, _) in (marks.read | marks.triggers).items():
        known[name] = replace(
            program.relations[relation], name=name, is_derived=True, is_declared=False
        )
    lowered = lower_clauses(plain, known, known, program.arithmetic)
    texts = zip(map(print_clause, plain), map(print_clause, clauses), strict=True)
    _quote_marks(lowered, dict(texts))
    split = _Split(program, events.keys() | marks.triggers, marks.read, lowered)
    return split.program(
        ActiveRules(marked=marks.read, triggers=marks.triggers, reactions=reactions)
    )


def _quote_marks(lowered: TranslationUnit, written: Mapping[str, str]) -> None:
    """Let rules quote the clauses that they come from with the marks that users have written."""

    def quote(origin: Origin) -> Origin:
        return replace(origin, text=written.get(origin.text, origin.text))

    lowered.rules = [replace(each, origin=quote(each.origin)) for each in lowered.rules]
    lowered.aggregations = [
        replace(each, origin=quote(each.origin)) for each in lowered.aggregations
    ]


def with_old_queries(before: NormalProgram, after: NormalProgram) -> NormalProgram:
    """Return the old program with the queries of new active rules on the OLD state.

    Relations that only the new program has are empty in it.
    """
    old = [name for name, state in after.active.marked.values() if state is State.OLD]
    work = [name for name in old if _is_query(name, before, after)]
    relations = dict(before.relations)
    rules, aggregations = list(before.rules), list(before.aggregations)
    while work:
        name = work.pop()
        if name in relations:
            continue
        relation = relations[name] = after.relations[name]
        if relation.is_declared or not relation.is_virtual:
            relations[name] = replace(relation, is_derived=False)
            continue
        own_rules = [rule for rule in after.rules if rule.head.relation == name]
        own_aggregations = [each for each in after.aggregations if each.relation == name]
        rules += own_rules
        aggregations += own_aggregations
        work += [each.relation for rule in own_rules for each in rule.literals]
        work += [each.body for each in own_aggregations]
    if len(relations) == len(before.relations):
        return before
    return replace(
        before, relations=relations, rules=tuple(rules), aggregations=tuple(aggregations)
    )


def _is_query(name: str, before: NormalProgram, after: NormalProgram) -> bool:
    relation = after.relations[name]
    return name not in before.relations and relation.is_virtual and not relation.is_declared


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


class _Split:
    """Separates the auxiliary relations: queries on the program, and parts of event predicates."""

    def __init__(
        self,
        program: NormalProgram,
        heads: set[str],
        marked: Mapping[str, tuple[str, State]],
        lowered: TranslationUnit,
    ) -> None:
        self._program = program
        self._marked = marked
        self._lowered = lowered
        known = program.relations.keys() | marked.keys() | heads
        self._auxiliary = [name for name in lowered.relations if name not in known]
        self._reads = relations_read(
            lowered.rules, lowered.aggregations, (*self._auxiliary, *heads)
        )
        self._states = self._query_states()

    def _query_states(self) -> dict[str, State]:
        """Return the auxiliary relations that are queries, each with the one state it reads."""
        states: dict[str, State] = {}
        has_changed = True
        while has_changed:
            has_changed = False
            for name in self._auxiliary:
                if name in states:
                    continue
                read = {self._state(each, states) for each in self._reads[name]}
                if None not in read and len(read) <= 1:
                    states[name] = next((each for each in read if each is not None), State.NEW)
                    has_changed = True
        return states

    def _state(self, name: str, states: Mapping[str, State]) -> State | None:
        if name in states:
            return states[name]
        if name in self._marked:
            state = self._marked[name][1]
            return state if state is State.OLD else None
        return State.NEW if name in self._program.relations else None

    def program(self, active: ActiveRules) -> NormalProgram:
        """Return the program with the queries, and the rest as its active part."""
        lowered, program, states = self._lowered, self._program, self._states
        queries = {
            name: replace(lowered.relations[name], is_virtual=True)
            for name in self._auxiliary
            if name in states
        }
        marked = dict(active.marked)
        marked |= {
            marked_name(name, State.OLD): (name, State.OLD)
            for name, state in states.items()
            if state is State.OLD
        }
        rules = [rule for rule in lowered.rules if rule.head.relation not in states]
        aggregations = [each for each in lowered.aggregations if each.relation not in states]
        return replace(
            program,
            relations={**program.relations, **queries},
            rules=(
                *program.rules,
                *(self._query(rule) for rule in lowered.rules if rule.head.relation in states),
            ),
            aggregations=(
                *program.aggregations,
                *(
                    replace(each, body=self._unmarked(each.body))
                    for each in lowered.aggregations
                    if each.relation in states
                ),
            ),
            active=replace(
                active,
                relations={
                    name: lowered.relations[name]
                    for name in lowered.relations
                    if name in self._reads and name not in states
                },
                rules=tuple(map(self._event, rules)),
                aggregations=tuple(map(self._mark_body, aggregations)),
                marked=marked,
                queries=frozenset(queries),
            ),
        )

    def _unmarked(self, name: str) -> str:
        return self._marked[name][0] if name in self._marked else name

    def _query(self, rule: Rule) -> Rule:
        """Return the rule of a query without marks: the literal that reads it has the state."""
        literals = (replace(each, relation=self._unmarked(each.relation)) for each in rule.literals)
        return replace(rule, literals=tuple(literals))

    def _event(self, rule: Rule) -> Rule:
        return replace(rule, literals=tuple(map(self._mark, rule.literals)))

    def _mark(self, literal: Literal) -> Literal:
        state = self._states.get(literal.relation, State.NEW)
        return replace(literal, relation=marked_name(literal.relation, state))

    def _mark_body(self, aggregation: AnyAggregation) -> AnyAggregation:
        state = self._states.get(aggregation.body, State.NEW)
        return replace(aggregation, body=marked_name(aggregation.body, state))
