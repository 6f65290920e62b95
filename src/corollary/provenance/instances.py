"""Instances: for a set of tuples, the instances of rules that derive them.

For each rule `p(x, z) :- p(x, y), q(y, z), !r(y), y < z` one pipeline, led by the tuples:

    p•wanted(x, z, id) → q(y, z) → p•rank(x, y, rank) → not r(y) → y < z  ⇒  (id, x, z, y, rank)

Where ranks are valid they are read with the premises. Virtual relations are asked for what the
tuples bind (`maintain/tabling.py`). The result is cut, by vectors, to what can matter: instances
whose premises are too high are dropped, and of the others those with the smallest guesses are
taken, a number for each tuple.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from corollary.analysis.relevance import BOTH_SIGNS
from corollary.core.arrow import to_python
from corollary.core.logic import (
    NO_RULE,
    Condition,
    Constant,
    Literal,
    Rule,
    Slot,
    Value,
    Variable,
    head_arguments,
    variables_of,
)
from corollary.core.pipeline import Reference
from corollary.core.plans import Plan, Step, working_relation
from corollary.core.program import Relation
from corollary.core.recorder import CountingRecorder
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.maintain.draft import Body, Draft
from corollary.maintain.payload import Payload, rank_relation
from corollary.maintain.sip import Goal
from corollary.maintain.update import Update
from corollary.provenance.asked_state import AskedState
from corollary.provenance.instance_rows import (
    Fact,
    Found,
    RuleReader,
    Wanted,
    rank_of,
    select_instances,
)
from corollary.provenance.limits import Allowance
from corollary.provenance.nodes import Row
from corollary.provenance.steps import ProofStep, ProofSteps

BATCH_MIN_TUPLES, BATCH_MAX_INSTANCES = 64, 10_000
"""Tuples are expanded this many at a time, and more as long as they have few instances."""

ID = Variable("id'", NUMBER)
"""The number of a wanted tuple; the quote keeps it apart from the variables of a program."""


@dataclass(frozen=True, slots=True)
class RelationReader:
    """Finds the instances of tuples of one relation.

    Attributes:
        wanted: the relation that holds the tuples.
        rules: of the relation.
        held: receives the numbers of the tuples that are there.
        ranks: receives their ranks; None if there are none.
        relations: all of these, for the engine.
        plan: derives instances.
        membership: derives which tuples are there.
    """

    wanted: str
    rules: tuple[RuleReader, ...]
    held: str
    ranks: str | None
    relations: Mapping[str, Relation]
    plan: Plan
    membership: Plan


class InstanceFinder:
    """Finds instances in one state; its working relations are in the engine until it is closed."""

    def __init__(self, asked: AskedState, steps: ProofSteps) -> None:
        self.asked = asked
        self.steps = steps
        self._readers: dict[str, RelationReader] = {}
        self._declared: set[str] = set()

    def close(self) -> None:
        """Drop what is in the engine."""
        self.asked.engine.drop(self._declared)
        self._declared = set()

    def variables(self, step: int) -> tuple[Variable, ...]:
        """Return the variables of a rule whose instances were found, in their order."""
        relation = self.steps.program.rules[step].head.relation
        return next(each for each in self.reader(relation).rules if each.step == step).variables

    def rank(self, fact: Fact) -> tuple[bool, int | None]:
        """Return whether a tuple is there, and its rank if it has one."""
        reader, engine = self._open(fact[0]), self.asked.engine
        engine.insert(reader.wanted, [(*fact[1], 0)])
        try:
            engine.run(reader.membership, CountingRecorder(), self.asked.limits)
            found = to_python(engine.read(reader.held))
            ranks = to_python(engine.read(reader.ranks)) if reader.ranks else []
        finally:
            engine.clear([reader.wanted])
        return bool(found), rank_of(ranks[0][1]) if ranks else None

    def find(self, wanted: Mapping[int, Wanted], allowance: Allowance) -> dict[int, Found]:
        """Return the instances of some tuples, by their numbers."""
        by_relation: dict[str, list[int]] = {}
        for number, each in wanted.items():
            by_relation.setdefault(each.fact[0], []).append(number)
        found: dict[int, Found] = {}
        for relation, numbers in by_relation.items():
            if self.steps.is_derived(relation):
                some = {number: wanted[number] for number in numbers}
                found |= self._find(relation, some, allowance)
        return found

    def find_in_batches(
        self, wanted: Mapping[int, Wanted], allowance: Allowance
    ) -> Iterator[tuple[int, Found]]:
        """Yield the instances of some tuples, so many at a time that the limits can be kept.

        Raises:
            WorkLimitError: the work is over.
        """
        numbers, size = list(wanted), BATCH_MIN_TUPLES
        while numbers:
            batch, numbers = numbers[:size], numbers[size:]
            allowance.take(len(batch))
            found = self.find({number: wanted[number] for number in batch}, allowance)
            yield from found.items()
            if sum(len(each.instances) for each in found.values()) < BATCH_MAX_INSTANCES:
                size *= 2

    def _find(
        self, relation: str, wanted: Mapping[int, Wanted], allowance: Allowance
    ) -> dict[int, Found]:
        reader, engine = self._open(relation), self.asked.engine
        engine.insert(reader.wanted, [(*each.fact[1], number) for number, each in wanted.items()])
        try:
            allowance.run(engine, reader.plan, self.asked.limits)
            found = [rule for rule in reader.rules if engine.size(rule.target)]
            tables = [engine.read(rule.target) for rule in found]
        finally:
            engine.clear([reader.wanted])
        most = allowance.limits.instances
        selected = dict(select_instances(found, tables, wanted, most))
        allowance.count_instances(sum(len(each.instances) for each in selected.values()))
        return selected

    # --- plans ---------------------------------------------------------------------------------

    def _open(self, relation: str) -> RelationReader:
        """Return the reader of a relation, whose working relations are in the engine."""
        reader = self.reader(relation)
        new = {name: each for name, each in reader.relations.items() if name not in self._declared}
        if new:
            self.asked.engine.declare(new)
            self._declared |= new.keys()
        return reader

    def reader(self, relation: str) -> RelationReader:
        """Return what finds the instances of a relation."""
        if relation not in self._readers:
            self._readers[relation] = self._make_reader(relation)
        return self._readers[relation]

    def _make_reader(self, name: str) -> RelationReader:
        program, data = self.asked.program, self.asked.data
        relation = program.relations[name]
        draft, more = self.draft(), self.draft()
        wanted = working_relation(name, "wanted")
        columns = (*(f"c{at}" for at in range(relation.arity)), "id")
        declared = {wanted: _working(wanted, columns, (*relation.types, NUMBER))}
        draft.types[wanted] = more.types[wanted] = (*relation.types, NUMBER)
        rules: list[RuleReader] = []
        steps: list[Step] = []
        for number in self.steps.by_head.get(name, ()):
            rule = self._rule_reader(number)
            body = self._body(rule, self.steps.steps[number], wanted, draft)
            types = (NUMBER, *rule.types, *(NUMBER for at in rule.ranked if at is not None))
            labels = tuple(f"c{at}" for at in range(len(types)))
            declared[rule.target] = _working(rule.target, labels, types)
            draft.types[rule.target] = types
            steps += draft.derive(rule.target, [body])
            rules.append(rule)
        held, ranks = working_relation(name, "held"), None
        row = more.variables(name)
        lead = Goal(Literal(wanted, (*row, ID)), Reference(wanted))
        there = Goal(Literal(name, row), Reference(name, data))
        declared[held] = _working(held, ("id",), (NUMBER,))
        more.types[held] = (NUMBER,)
        tests = more.derive(held, [Body((ID,), (lead, there), (), NO_RULE, lead)])
        if self._has_ranks(name):
            ranks = working_relation(name, "rank of wanted")
            declared[ranks] = _working(ranks, ("id", "rank"), (NUMBER, NUMBER))
            more.types[ranks] = (NUMBER, NUMBER)
            rank = Variable("rank'", NUMBER)
            beside = rank_relation(more, name)
            read = Goal(Literal(beside, (*row, rank)), Reference(beside, data))
            tests += more.derive(ranks, [Body((ID, rank), (lead, read), (), NO_RULE, lead)])
        plan, membership = draft.finish(steps), more.finish(tests)
        return RelationReader(wanted, tuple(rules), held, ranks, declared, plan, membership)

    def draft(self) -> Draft:
        """Return the draft of a plan that reads the data of the state."""
        program, asked = self.asked.program, self.asked
        # What may have changed is asked for by the rules of OLD, on the data of OLD.
        changed = (
            {name: BOTH_SIGNS for name, each in program.relations.items() if not each.is_derived}
            if asked.data is State.OLD
            else {}
        )
        return Draft(Update(program, program, changed, self._statistics()))

    def _statistics(self) -> Statistics:
        """Return the statistics, those of ranks too: they have one for each tuple."""
        known = self.asked.statistics
        rows, distinct = dict(known.rows), dict(known.distinct)
        for name in self.asked.ranked:
            rank = working_relation(name, Payload.RANK)
            if name in rows:
                rows[rank] = rows[name]
            if name in distinct:
                distinct[rank] = distinct[name]
        return replace(known, rows=rows, distinct=distinct)

    def _has_ranks(self, relation: str) -> bool:
        return relation in self.asked.ranked and bool(self.steps.stratum(relation))

    def _rule_reader(self, number: int) -> RuleReader:
        step = self.steps.steps[number]
        rule = step.rule
        types = _variable_types(step, self.asked.program.relations)
        variables = tuple(Variable(name, type_) for name, type_ in types.items())
        place = {each.name: at for at, each in enumerate(variables, 1)}
        ranked: list[int | None] = []
        least: list[tuple[int, int | None]] = []
        makers: list[tuple[str, Callable[[Row], Row]]] = []
        constants: list[Value] = []
        width = 1 + len(variables)
        width += sum(self._has_ranks(rule.literals[at].relation) for at in step.premises)
        for at in step.premises:
            literal = rule.literals[at]
            name = literal.relation
            places: list[int] = []
            for slot in literal.slots:
                if isinstance(slot, Variable):
                    places.append(place[slot.name])
                else:
                    assert isinstance(slot, Constant)
                    places.append(width + len(constants))
                    constants.append(slot.value)
            makers.append((name, _maker(places)))
            has_rank = self._has_ranks(name)
            count = sum(each is not None for each in ranked)
            ranked.append(1 + len(variables) + count if has_rank else None)
            offset = self.steps.rank_offsets.get(name) if name in self.asked.exact else None
            least.append((self.steps.least_height(name), offset if has_rank else None))
        target = working_relation(rule.head.relation, f"instances {number}")
        members = self.steps.stratum(rule.head.relation)
        return RuleReader(
            number,
            target,
            variables,
            tuple(types.values()),
            tuple(makers),
            tuple(ranked),
            tuple(least),
            step.weights,
            tuple(rule.literals[at].relation in members for at in step.premises),
            tuple(constants),
        )

    def _body(self, reader: RuleReader, step: ProofStep, wanted: str, draft: Draft) -> Body:
        """Return the body of a rule, led by wanted tuples; premises are read with their ranks.

        Of subsumption, an instance whose head is better says that a tuple is at least as good.
        """
        rule, data = step.rule, self.asked.data
        slots, covers = self._covered_head(rule)
        lead = Goal(Literal(wanted, (*slots, ID)), Reference(wanted))
        goals = [lead]
        ranks: list[Variable] = []
        has_rank = dict(zip(step.premises, reader.ranked, strict=True))
        for at, literal in enumerate(rule.literals):
            if has_rank.get(at) is None:
                goals.append(Goal(literal, Reference(literal.relation, data)))
                continue
            ranks.append(Variable(f"rank{at}'", NUMBER))
            name = rank_relation(draft, literal.relation)
            goals.append(Goal(Literal(name, (*literal.slots, ranks[-1])), Reference(name, data)))
        head = (ID, *reader.variables, *ranks)
        conditions = (*rule.conditions, *covers)
        return Body(head, tuple(goals), conditions, rule.origin, lead, is_lenient=rule.is_lenient)

    def _covered_head(self, rule: Rule) -> tuple[tuple[Slot, ...], tuple[Condition, ...]]:
        """Return a head with other variables for its values, and that it covers such a tuple."""
        name, arguments = rule.head.relation, head_arguments(rule)
        order = self.asked.program.subsumption.get(name)
        if order is None or not self._has_ranks(name):
            return arguments, ()
        types = self.asked.program.relations[name].types
        compared = {each.position for each in order.values}
        covered = tuple(
            Variable(f"covered{at}'", types[at]) if at in compared else argument
            for at, argument in enumerate(arguments)
        )
        return covered, order.covers(arguments, covered)


def _working(name: str, columns: tuple[str, ...], types: tuple[Type, ...]) -> Relation:
    return Relation(name, columns, types, is_derived=False, is_declared=False)


def _variable_types(step: ProofStep, relations: Mapping[str, Relation]) -> dict[str, Type]:
    """Return the types of the variables of a rule, in the order of its text."""
    rule = step.rule
    found: dict[str, Type] = {}
    for literal in (*(each for each in rule.literals if not each.negated), rule.head):
        for slot, type_ in zip(literal.slots, relations[literal.relation].types, strict=True):
            if isinstance(slot, Variable):
                known = found.setdefault(slot.name, type_)
                found[slot.name] = known.with_null(known.nullable or type_.nullable)
    for condition in rule.conditions:
        for variable in _computed(condition):
            if variable.name not in found:
                assert variable.type is not None
                found[variable.name] = variable.type.with_null(True)
    return found


def _computed(condition: Condition) -> Iterator[Variable]:
    for side in (condition.left, condition.right):
        yield from variables_of(side)


def _maker(places: Sequence[int]) -> Callable[[Row], Row]:
    """Return the function from a row to the tuple of some of its values."""
    if len(places) == 1:
        (place,) = places
        return lambda row: (row[place],)
    if not places:
        return lambda _: ()
    get: Callable[[Row], Any] = itemgetter(*places)
    return get
