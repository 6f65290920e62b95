"""A plan under construction: working relations, procedures, and the tables that goals ask."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from corollary.analysis.orders import orders
from corollary.core.origin import NO_RULE, Origin
from corollary.core.pipeline import Absent, Pipeline, Probe, Reference
from corollary.core.plan import (
    MAIN,
    WORKING,
    Derive,
    Plan,
    Reduce,
    Role,
    Step,
    event_of,
    pipelines_of,
    working,
)
from corollary.core.program import Relation
from corollary.core.rules import Condition, Literal
from corollary.core.states import State
from corollary.core.terms import Constant, Variable
from corollary.core.types import Type
from corollary.maintain.sip import Goal, sip
from corollary.maintain.solve import procedures
from corollary.maintain.tabling import Tables, call_of, called, certain, split
from corollary.maintain.update import Update


@dataclass(frozen=True, slots=True)
class Body:
    """A body whose literals are not ordered yet, and its head.

    Attributes:
        lead: the literal that is probed first.
        is_judged: whether a missing value in it is an error (it is, where the body is as in NEW).
    """

    head: tuple[Variable | Constant, ...]
    goals: tuple[Goal, ...]
    conditions: tuple[Condition, ...]
    origin: Origin
    lead: Goal | None = None
    is_judged: bool = False
    is_lenient: bool = False
    is_bag: bool = False


@dataclass(slots=True)
class Draft:
    """The parts of a maintenance plan so far.

    Attributes:
        finished: stored relations whose NEW state is complete, so that it can be looked up.
        is_traced: whether the plan tells the rows of the papers' tables.
    """

    update: Update
    is_traced: bool = False
    procedures: dict[str, tuple[Step, ...]] = field(default_factory=dict)
    locals: dict[str, tuple[str, ...]] = field(default_factory=dict)
    types: dict[str, tuple[Type, ...]] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    tables: Tables = field(init=False)

    def __post_init__(self) -> None:
        update = self.update
        for relations in (
            update.past.relations,
            update.new.relations,
            update.new.active.relations,
        ):
            self.types |= {name: each.types for name, each in relations.items()}
        self.tables = Tables(
            {State.OLD: update.past, State.NEW: update.new},
            update.statistics,
            self.types,
            self._looks_up,
            lambda name: name not in update.candidates and name in update.new.relations,
        )

    def _looks_up(self, source: Reference) -> bool:
        """Whether a relation can be read in a state without asking for its tuples."""
        name, update = source.relation, self.update
        if WORKING in name or source.state in (State.ADDED, State.REMOVED):
            return True
        program = update.past if source.state is State.OLD else update.new
        relation = program.relations.get(name)
        if relation is None or not relation.is_derived:
            return True
        if relation.is_virtual:
            return False
        is_old = source.state is State.OLD or name not in update.candidates
        return is_old or name in self.finished

    # --- relations -----------------------------------------------------------------------------

    def relation(self, name: str) -> Relation:
        """Return a relation of the program, or an event predicate."""
        new = self.update.new
        return new.relations.get(name) or new.active.relations[name]

    def make(self, relation: str, role: str, *more: Type) -> str:
        """Return a working relation with the columns of a relation, and perhaps more."""
        name = working(relation, role)
        self.types[name] = (*self.relation(relation).types, *more)
        return name

    def changes(self, relation: str, sign: State) -> Reference:
        """Return where the additions or removals of a relation are."""
        if self.update.is_virtual(relation):
            return Reference(self.make(relation, sign))
        return Reference(relation, sign)

    def event(self, name: str) -> Reference | None:
        """Return where a literal of an active rule reads a change or an event predicate."""
        active = self.update.new.active
        if name in active.relations:
            self.types[event_of(name)] = active.relations[name].types
            return Reference(event_of(name))
        relation, state = active.marked.get(name, ("", State.NEW))
        is_change = state in (State.ADDED, State.REMOVED)
        return self.changes(relation, state) if is_change else None

    def source(self, name: str, state: State) -> Reference:
        """Return where a literal is read that may stand in an active rule."""
        read = self.update.new.active.marked.get(name, (name, state))
        return self.event(name) or Reference(*read)

    def variables(self, relation: str, *more: Variable) -> tuple[Variable, ...]:
        """Return distinct variables for the columns of a relation, and perhaps more."""
        types = self.types[relation]
        return (*(Variable(f"_{at}", type_) for at, type_ in enumerate(types)), *more)

    # --- steps ---------------------------------------------------------------------------------

    def derive(
        self,
        target: str,
        bodies: Iterable[Body],
        *,
        without: Sequence[Reference] = (),
        reduce: Reduce | None = None,
        role: Role | None = None,
        about: str = "",
    ) -> list[Step]:
        """Return the steps that derive a relation from bodies, asking for what must be asked."""
        steps: list[Step] = []
        pipelines = tuple(self._pipeline(body, steps) for body in bodies)
        return [*steps, Derive(target, pipelines, tuple(without), reduce, role, about)]

    def copy(
        self,
        target: str,
        *sources: Reference,
        without: Sequence[Reference] = (),
        role: Role | None = None,
        about: str = "",
    ) -> Derive:
        """Return the step that makes a relation the union of others, cut to its columns."""
        pipelines = tuple(self._copied(target, source) for source in sources)
        return Derive(target, pipelines, tuple(without), None, role, about)

    def common(
        self,
        target: str,
        source: Reference,
        other: Reference,
        *,
        role: Role | None = None,
        about: str = "",
    ) -> Derive:
        """Return the step that makes a relation the tuples that two others share."""
        copied = self._copied(target, source)
        every = tuple(range(len(self.types[target])))
        test = Probe(other, copied.head, every)
        return Derive(
            target, (replace(copied, stages=(*copied.stages, test)),), (), None, role, about
        )

    def _copied(self, target: str, source: Reference) -> Pipeline:
        variables = self.variables(source.relation)
        probe = Probe(source, variables, ())
        return Pipeline((probe,), variables[: len(self.types[target])], NO_RULE)

    def _active(self, body: Body) -> Body:
        """Return a body in which marked literals are read where they say; an event leads it."""
        active = self.update.new.active
        lead, goals = body.lead, list[Goal]()
        for goal in body.goals:
            name = goal.source.relation
            if name not in active.relations and name not in active.marked:
                goals.append(goal)
                continue
            source = self.source(name, goal.source.state)
            goals.append(Goal(replace(goal.literal, relation=source.relation), source))
            is_event = self.event(name) is not None and not goal.literal.negated
            if goal is body.lead or (lead is None and is_event):
                lead = goals[-1]
        return replace(body, goals=tuple(goals), lead=lead)

    def _pipeline(self, body: Body, steps: list[Step]) -> Pipeline:
        if self.update.new.active.rules:
            body = self._active(body)
        ordered = self._ordered(body, body.head, body.goals, body.conditions)
        if all(
            self._looks_up(stage.source)
            for stage in ordered.stages
            if isinstance(stage, Probe | Absent)
        ):
            return ordered

        def ask(stage: Probe | Absent, items: list[Goal | Condition]) -> Reference:
            asked, arguments = call_of(stage, self.tables)
            goals, conditions = split(certain(items, arguments))
            lead = next((goal for goal in goals if _is_same(goal, body.lead)), None)
            prefix = replace(body, lead=lead, is_judged=False, is_bag=False, is_lenient=False)
            steps.extend(
                self.tables.ask(asked, [self._ordered(prefix, arguments, goals, conditions)])
            )
            return Reference(asked.answers)

        goals, conditions = split(called(ordered.stages, self._looks_up, ask))
        lead = next((goal for goal in goals if _is_same(goal, body.lead)), None)
        return self._ordered(replace(body, lead=lead), body.head, goals, conditions)

    def _ordered(
        self,
        body: Body,
        head: tuple[Variable | Constant, ...],
        goals: Sequence[Goal],
        conditions: Sequence[Condition],
    ) -> Pipeline:
        made = sip(
            head,
            goals,
            conditions,
            body.origin,
            self.update.statistics,
            lead=body.lead,
            is_lenient=body.is_lenient,
        )
        judge = made.judge if body.is_judged or body.is_lenient else ()
        return replace(made, judge=judge, is_bag=body.is_bag)

    def plan(self, main: Sequence[Step]) -> Plan:
        """Return the finished plan."""
        every = {MAIN: tuple(main), **self.procedures, **procedures(self.tables)}
        made = Plan(every, self.types, {}, MAIN, self.locals)
        return replace(made, orders=orders(pipelines_of(made)))


def _is_same(goal: Goal, lead: Goal | None) -> bool:
    return (
        lead is not None
        and goal.source == lead.source
        and goal.literal.slots == lead.literal.slots
        and not goal.literal.negated
    )


def literal_of(relation: str, slots: Sequence[Variable | Constant], negated: bool = False) -> Goal:
    """Return a literal over a working relation."""
    return Goal(Literal(relation, tuple(slots), negated), Reference(relation))
