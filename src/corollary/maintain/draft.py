"""A plan under construction: working relations, procedures, and tables of calls and answers."""

from collections.abc import Iterable, Sequence
from dataclasses import field, replace

from corollary.analysis.orders import orders
from corollary.core import plans
from corollary.core.logic import NO_RULE, Condition, Constant, Literal, Origin, Slot, Variable
from corollary.core.pipeline import AntiProbe, Pipeline, Probe, Reference
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.maintain import tabling
from corollary.maintain.sip import Goal, sip
from corollary.maintain.solve import solve_procedures
from corollary.maintain.update import Update


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a rule whose literals are not ordered yet, and its head.

    Attributes:
        lead: the literal that is probed first.
        is_judged: whether an expression without a value is an error (it is in NEW, and only there).
        is_lenient: whether it is never an error, and rows that no test refutes are kept.
        is_bag: whether every derivation counts, not every tuple.
        order: the positive literals in the order in which they are probed, as a `.plan` asks for
            it; empty where the planner decides.
        is_deferred: whether a later step decides about expressions without a value.
    """

    head: tuple[Variable | Constant, ...]
    goals: tuple[Goal, ...]
    conditions: tuple[Condition, ...]
    origin: Origin
    lead: Goal | None = None
    is_judged: bool = False
    is_lenient: bool = False
    is_bag: bool = False
    order: tuple[Goal, ...] = ()
    is_deferred: bool = False

    @classmethod
    def led(
        cls, head: Sequence[Variable | Constant], *goals: Goal, conditions: Sequence[Condition] = ()
    ) -> "Body":
        """Return a body that belongs to no rule; its first literal leads."""
        return cls(tuple(head), goals, tuple(conditions), NO_RULE, goals[0])


@dataclass(slots=True)
class Draft:
    """A maintenance plan under construction.

    Attributes:
        locals: the working relations of each procedure that live as long as one call.
        readable: stored relations whose NEW state may be read.
        shared_bodies: inlined bodies of aggregates whose assignments are derived once for several.
        is_traced: whether the plan records the rows of the papers' tables.
    """

    update: Update
    is_traced: bool = False
    procedures: dict[str, tuple[plans.Step, ...]] = field(default_factory=dict)
    locals: dict[str, tuple[str, ...]] = field(default_factory=dict)
    types: dict[str, tuple[Type, ...]] = field(default_factory=dict)
    readable: set[str] = field(default_factory=set)
    shared_bodies: set[str] = field(default_factory=set)
    tables: tabling.CallTables = field(init=False)

    def __post_init__(self) -> None:
        update = self.update
        for relations in (
            update.queried_old.relations,
            update.new.relations,
            update.new.active.relations,
        ):
            self.types |= {name: each.types for name, each in relations.items()}
        self.tables = tabling.CallTables(
            {State.OLD: update.queried_old, State.NEW: update.new},
            update.statistics,
            self.types,
            self._is_available,
            lambda name: name not in update.candidates and name in update.new.relations,
        )

    def _is_available(self, source: Reference) -> bool:
        """Whether a relation can be read in a state, without calls for its tuples."""
        name, update = source.relation, self.update
        if plans.WORKING_SEPARATOR in name or source.state in (State.ADDED, State.REMOVED):
            return True
        program = update.queried_old if source.state is State.OLD else update.new
        relation = program.relations.get(name)
        if relation is None or not relation.is_derived:
            return True
        if relation.is_virtual:
            return False
        is_old = source.state is State.OLD or name not in update.candidates
        return is_old or name in self.readable

    # --- relations -----------------------------------------------------------------------------

    def relation(self, name: str) -> Relation:
        """Return a relation of the program, or an event predicate."""
        new = self.update.new
        return new.relations.get(name) or new.active.relations[name]

    def working_relation(self, relation: str, role: str, *more: Type) -> str:
        """Return a working relation with the columns of a relation and those of `more` types."""
        name = plans.working_relation(relation, role)
        self.types[name] = (*self.relation(relation).types, *more)
        return name

    def changes_of(self, relation: str, sign: State) -> Reference:
        """Return where the additions or removals of a relation are read."""
        if self.update.is_virtual(relation):
            return Reference(self.working_relation(relation, sign))
        return Reference(relation, sign)

    def event_source(self, name: str) -> Reference | None:
        """Return where an active rule reads a change or an event predicate, if `name` is one."""
        active = self.update.new.active
        if name in active.relations:
            self.types[plans.event_relation(name)] = active.relations[name].types
            return Reference(plans.event_relation(name))
        relation, state = active.marked.get(name, ("", State.NEW))
        is_change = state in (State.ADDED, State.REMOVED)
        return self.changes_of(relation, state) if is_change else None

    def source_of(self, name: str, state: State) -> Reference:
        """Return where a literal is read, in an active rule or in another."""
        read = self.update.new.active.marked.get(name, (name, state))
        return self.event_source(name) or Reference(*read)

    def variables(self, relation: str, *more: Variable) -> tuple[Variable, ...]:
        """Return distinct variables for the columns of a relation, followed by `more`."""
        types = self.types[relation]
        return (*(Variable(f"_{at}", type_) for at, type_ in enumerate(types)), *more)

    # --- steps ---------------------------------------------------------------------------------

    def derive(
        self,
        target: str,
        bodies: Iterable[Body],
        *,
        without: Sequence[Reference] = (),
        reduce: plans.Reduce | None = None,
        role: plans.Role | None = None,
        about: str = "",
    ) -> list[plans.Step]:
        """Return the steps that derive a relation, with the calls that its bodies need."""
        steps: list[plans.Step] = []
        pipelines = tuple(self._pipeline(body, steps) for body in bodies)
        return [*steps, plans.Derive(target, pipelines, tuple(without), reduce, role, about)]

    def copy(
        self,
        target: str,
        *sources: Reference,
        without: Sequence[Reference] = (),
        role: plans.Role | None = None,
        about: str = "",
    ) -> plans.Derive:
        """Return the step that makes a relation the union of others, projected to its columns."""
        pipelines = tuple(self._scan(target, source) for source in sources)
        return plans.Derive(target, pipelines, tuple(without), None, role, about)

    def intersect(
        self,
        target: str,
        source: Reference,
        other: Reference,
        *,
        role: plans.Role | None = None,
        about: str = "",
    ) -> plans.Derive:
        """Return the step that makes a relation the intersection of two others."""
        scan = self._scan(target, source)
        test = Probe(other, scan.head, tuple(range(len(self.types[target]))))
        pipeline = replace(scan, stages=(*scan.stages, test))
        return plans.Derive(target, (pipeline,), (), None, role, about)

    def _scan(self, target: str, source: Reference) -> Pipeline:
        variables = self.variables(source.relation)
        probe = Probe(source, variables, ())
        return Pipeline((probe,), variables[: len(self.types[target])], NO_RULE)

    def _resolve_active(self, body: Body) -> Body:
        """Return a body with the marked literals of active rules resolved; an event leads it."""
        active = self.update.new.active
        lead, goals = body.lead, list[Goal]()
        for goal in body.goals:
            name = goal.source.relation
            if name not in active.relations and name not in active.marked:
                goals.append(goal)
                continue
            source = self.source_of(name, goal.source.state)
            goals.append(Goal(replace(goal.literal, relation=source.relation), source))
            is_event = self.event_source(name) is not None and not goal.literal.negated
            if goal is body.lead or (lead is None and is_event):
                lead = goals[-1]
        return replace(body, goals=tuple(goals), lead=lead)

    def _pipeline(self, body: Body, steps: list[plans.Step]) -> Pipeline:
        if self.update.new.active.rules:
            body = self._resolve_active(body)
        # The order decides which arguments of a literal are bound, and so which calls it makes.
        ordered = self._ordered(body, body.head, body.goals, body.conditions)
        if all(
            self._is_available(stage.source)
            for stage in ordered.stages
            if isinstance(stage, Probe | AntiProbe)
        ):
            return ordered

        def ask(stage: Probe | AntiProbe, items: list[Goal | Condition]) -> Reference:
            node, arguments = tabling.callee_and_arguments(stage, self.tables)
            goals, conditions = tabling.split_body(
                tabling.drop_fallible_conditions(items, arguments)
            )
            lead = next((goal for goal in goals if _is_lead(goal, body.lead)), None)
            # A call may be too general; only the whole body can say what is an error.
            prefix = replace(
                body,
                lead=lead,
                order=(),
                is_judged=False,
                is_bag=False,
                is_lenient=False,
                is_deferred=False,
            )
            steps.extend(
                self.tables.call(node, [self._ordered(prefix, arguments, goals, conditions)])
            )
            return Reference(node.answers)

        goals, conditions = tabling.split_body(
            tabling.resolve_calls(ordered.stages, self._is_available, ask)
        )
        lead = next((goal for goal in goals if _is_lead(goal, body.lead)), None)
        return self._ordered(replace(body, lead=lead, order=()), body.head, goals, conditions)

    def _ordered(
        self,
        body: Body,
        head: tuple[Variable | Constant, ...],
        goals: Sequence[Goal],
        conditions: Sequence[Condition],
    ) -> Pipeline:
        pipeline = sip(
            head,
            goals,
            conditions,
            body.origin,
            self.update.statistics,
            lead=body.lead,
            order=body.order,
            is_lenient=body.is_lenient,
            is_asked=lambda source: not self._is_available(source),
        )
        judge = pipeline.judge if body.is_judged or body.is_lenient else ()
        return replace(pipeline, judge=judge, is_bag=body.is_bag, is_deferred=body.is_deferred)

    def finish(self, main: Sequence[plans.Step]) -> plans.Plan:
        """Return the finished plan; `main` is its main procedure."""
        every = {plans.MAIN: tuple(main), **self.procedures, **solve_procedures(self.tables)}
        plan = plans.Plan(every, self.types, {}, plans.MAIN, self.locals)
        return replace(plan, orders=orders(plans.pipelines_of(plan)))


def _is_lead(goal: Goal, lead: Goal | None) -> bool:
    return (
        lead is not None
        and goal.source == lead.source
        and goal.literal.slots == lead.literal.slots
        and not goal.literal.negated
    )


def working_goal(relation: str, slots: Sequence[Slot], negated: bool = False) -> Goal:
    """Return the goal of a literal over a relation in NEW, a working one most often."""
    return Goal(Literal(relation, tuple(slots), negated), Reference(relation))
