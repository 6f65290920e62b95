"""Active rules in normal form: event predicates, triggers, alerts and constraints.

Marked literals get names (`marks`), then the clauses go through the passes of all others
(`lower`). What those make for them is one of two kinds:

| what rewriting made reads | it becomes |
|---|---|
| relations of the program, all in NEW or all in OLD | a virtual relation of the program |
| a change, an event predicate, or both states | evaluated with the event predicates |

A virtual relation is asked for with the bindings that the change gives, so that
`n = count : { part(x, _) }` beside `+order(x)` counts for the orders that came, and no others.
"""

from collections.abc import Mapping
from dataclasses import replace

from corollary.active.marks import Marks
from corollary.analysis.check import Checked, check
from corollary.core.program import Active, NormalProgram, Program, Relation, mark_of
from corollary.core.rules import Aggregation, Literal, Rule
from corollary.core.states import State
from corollary.rewrite.lower import Lowered, lower


def passive(program: Program) -> Program:
    """Return a program without its active rules: what it derives, and nothing that reacts."""
    checked = check(program)
    kept = tuple(each for each in program.clauses if not checked.is_active(each))
    derived = [each for each in program.declarations if not checked.signatures[each.name].is_event]
    return replace(program, clauses=kept, declarations=tuple(derived), reactions=())


def with_active(program: NormalProgram, checked: Checked) -> NormalProgram:
    """Return a program with the active rules of its text."""
    clauses = [clause for clause in checked.program.clauses if checked.is_active(clause)]
    reactions = checked.program.reactions
    if not clauses and not reactions:
        return program
    marks = Marks()
    plain = [marks.marks(clause) for clause in clauses]
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
    lowered = lower(plain, known, known)
    split = _Split(program, events.keys() | marks.triggers, marks.read, lowered)
    return split.program(Active(marked=marks.read, triggers=marks.triggers, reactions=reactions))


def with_queries(before: NormalProgram, after: NormalProgram) -> NormalProgram:
    """Return the program before, in which the queries of new active rules can be asked too.

    What they read and the program before does not have was empty then.
    """
    asked = [name for name, state in after.active.marked.values() if state is State.OLD]
    wanted = [name for name in asked if _is_query(name, before, after)]
    relations = dict(before.relations)
    rules, aggregations = list(before.rules), list(before.aggregations)
    while wanted:
        name = wanted.pop()
        if name in relations:
            continue
        relation = relations[name] = after.relations[name]
        if relation.is_declared or not relation.is_virtual:
            relations[name] = replace(relation, is_derived=False)
            continue
        defined = [rule for rule in after.rules if rule.head.relation == name]
        counted = [each for each in after.aggregations if each.relation == name]
        rules += defined
        aggregations += counted
        wanted += [each.relation for rule in defined for each in rule.literals]
        wanted += [each.body for each in counted]
    if len(relations) == len(before.relations):
        return before
    return replace(
        before, relations=relations, rules=tuple(rules), aggregations=tuple(aggregations)
    )


def _is_query(name: str, before: NormalProgram, after: NormalProgram) -> bool:
    relation = after.relations[name]
    return name not in before.relations and relation.is_virtual and not relation.is_declared


class _Split:
    """Tells apart what rewriting made: queries on the program, and parts of event predicates."""

    def __init__(
        self,
        program: NormalProgram,
        heads: set[str],
        marked: Mapping[str, tuple[str, State]],
        lowered: Lowered,
    ) -> None:
        self._program = program
        self._marked = marked
        self._lowered = lowered
        known = program.relations.keys() | marked.keys() | heads
        self._made = [name for name in lowered.relations if name not in known]
        self._reads: dict[str, set[str]] = {name: set() for name in (*self._made, *heads)}
        for rule in lowered.rules:
            self._reads[rule.head.relation] |= {each.relation for each in rule.literals}
        for aggregation in lowered.aggregations:
            self._reads[aggregation.relation].add(aggregation.body)
        self._heads = heads
        self._states = self._found()

    def _found(self) -> dict[str, State]:
        """Return what is a query, with the state it asks about: it reads nothing of another."""
        states: dict[str, State] = {}
        has_changed = True
        while has_changed:
            has_changed = False
            for name in self._made:
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

    def program(self, active: Active) -> NormalProgram:
        """Return the program with the queries, and the rest as its active part."""
        lowered, program, states = self._lowered, self._program, self._states
        queries = {
            name: replace(lowered.relations[name], is_virtual=True)
            for name in self._made
            if name in states
        }
        marked = dict(active.marked)
        marked |= {
            mark_of(name, State.OLD): (name, State.OLD)
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
                aggregations=tuple(map(self._aggregated, aggregations)),
                marked=marked,
                queries=frozenset(queries),
            ),
        )

    def _unmarked(self, name: str) -> str:
        return self._marked[name][0] if name in self._marked else name

    def _query(self, rule: Rule) -> Rule:
        """Return the rule of a query: which state it asks about is for its reader to say."""
        literals = (replace(each, relation=self._unmarked(each.relation)) for each in rule.literals)
        return replace(rule, literals=tuple(literals))

    def _event(self, rule: Rule) -> Rule:
        return replace(rule, literals=tuple(map(self._asked, rule.literals)))

    def _asked(self, literal: Literal) -> Literal:
        state = self._states.get(literal.relation, State.NEW)
        return replace(literal, relation=mark_of(literal.relation, state))

    def _aggregated(self, aggregation: Aggregation) -> Aggregation:
        state = self._states.get(aggregation.body, State.NEW)
        return replace(aggregation, body=mark_of(aggregation.body, state))
