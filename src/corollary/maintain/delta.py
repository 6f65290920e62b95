"""Delta pipelines: how a change of one literal reaches the head of a rule.

For a rule `h :- L1, …, Lk` and a position i

| pipeline | Li is read as | the other literals in | gives |
|---|---|---|---|
| add_i | ADDED if Li is positive, REMOVED if negated | NEW | potential additions to h |
| rem_i | REMOVED if Li is positive, ADDED if negated | OLD | potential removals from h |
| exact_i | both, with their signs | before i NEW, after i OLD | signed derivation counts |

The change binds the variables of Li, which is not probed again. Selections on Li (constants,
repeated variables, comparisons over its variables alone) are applied to the change first: the
tuples that they drop are irrelevant updates, for which nothing is looked up.

Example: `tc(x,z) :- tc(x,y), edge(y,z)`, edge(b,d) removed: rem_2 reads edge@removed(y,z), then
tc@old(x,y) with y bound.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from corollary.analysis.relevance import flip_signs
from corollary.analysis.strata import Stratum
from corollary.core import logic
from corollary.core.pipeline import Reference
from corollary.core.plans import WORKING_SEPARATOR, Role, Step
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.maintain.draft import Body, Draft
from corollary.maintain.sip import Goal, has_fault

LiteralReader = Callable[[int, logic.Literal], Goal]
"""Returns where the literal at a position is read."""


@dataclass(frozen=True, slots=True)
class ChangedLiteral:
    """A literal of a rule whose relation changes.

    Attributes:
        sign: whether heads are added or removed by it.
        source: the tuples that are added to or removed from the literal's relation.
    """

    rule: logic.Rule
    position: int
    sign: State
    source: Reference

    @property
    def literal(self) -> logic.Literal:
        """The literal, read as a positive one."""
        return replace(self.rule.literals[self.position], negated=False)

    @property
    def lead(self) -> Goal:
        """The literal as the first probe of a pipeline."""
        return Goal(self.literal, self.source)


def recursive_positions(rule: logic.Rule, members: Container[str]) -> tuple[int, ...]:
    """Return the positions of the positive literals that belong to the rule's own stratum."""
    return tuple(
        position
        for position, literal in enumerate(rule.literals)
        if literal.relation in members and not literal.negated
    )


def unchanged_rules(draft: Draft, members: Iterable[str]) -> tuple[logic.Rule, ...]:
    """Return the rules of some relations that are in OLD and in NEW."""
    rules = draft.update.unchanged_by_head
    return tuple(rule for name in members for rule in rules.get(name, ()))


def changes_below(stratum: Stratum, draft: Draft) -> tuple[Reference, ...]:
    """Return the changes of the relations that a stratum reads from lower strata."""
    return tuple(
        draft.changes_of(name, sign)
        for name in draft.update.read_below(stratum)
        for sign in sorted(draft.update.signs_of(name))
    )


def changed_literals(
    draft: Draft, rules: Iterable[logic.Rule], members: Container[str], sign: State
) -> Iterator[ChangedLiteral]:
    """Yield the literals below a stratum whose changes may add or remove heads."""
    for rule in rules:
        for position, literal in enumerate(rule.literals):
            if literal.relation in members:
                continue
            below = draft.update.signs_of(literal.relation)
            if sign in (flip_signs(below) if literal.negated else below):
                (update,) = flip_signs({sign}) if literal.negated else {sign}
                yield ChangedLiteral(
                    rule, position, sign, draft.changes_of(literal.relation, update)
                )


def apply_selections(draft: Draft, changed: ChangedLiteral) -> tuple[list[Step], ChangedLiteral]:
    """Apply the selections on a changed literal to its change, if there are any."""
    rule, literal = changed.rule, changed.literal
    names = logic.variable_names(literal)
    conditions = tuple(
        each
        for each in rule.conditions
        if logic.variable_names(each)
        and logic.variable_names(each) <= names
        and not has_fault(each)
    )
    variables = [slot.name for slot in literal.slots if isinstance(slot, logic.Variable)]
    has_constant = any(isinstance(slot, logic.Constant) for slot in literal.slots)
    if not (conditions or has_constant or len(set(variables)) < len(variables)):
        return [], changed
    number = draft.update.rule_numbers.get(rule, 0)
    source = changed.source
    name = WORKING_SEPARATOR.join((source.relation, source.state, f"{number}.{changed.position}"))
    draft.types[name] = draft.types[literal.relation]
    slots = without_wildcards(literal, draft)
    lead = Goal(logic.Literal(literal.relation, slots), changed.source)
    body = Body(slots, (lead,), conditions, rule.origin, lead)
    steps = draft.derive(name, [body], role=Role.RELEVANT, about=rule.head.relation)
    return steps, replace(changed, source=Reference(name))


def without_wildcards(
    literal: logic.Literal, draft: Draft, prefix: str = "_"
) -> tuple[logic.Variable | logic.Constant, ...]:
    """Return the slots of a literal, with variables instead of wildcards."""
    types = draft.types[literal.relation]
    return tuple(  # the quote keeps them apart from those of rewriting
        logic.Variable(f"{prefix}{at}'", types[at]) if isinstance(slot, logic.Wildcard) else slot
        for at, slot in enumerate(literal.slots)
    )


def make_body(
    rule: logic.Rule,
    read: LiteralReader,
    *,
    lead: Goal | None = None,
    position: int | None = None,
    goals: Sequence[Goal] = (),
    conditions: Sequence[logic.Condition] = (),
    head: tuple[logic.Variable | logic.Constant, ...] | None = None,
    is_judged: bool = False,
    is_bag: bool = False,
) -> Body:
    """Return the body of a rule, with the state that each literal is read in.

    Args:
        rule: the rule.
        read: returns where a literal is read.
        lead: the first probe; it replaces the literal at `position`, if that is given.
        position: the position of the literal that `lead` replaces.
        goals: additional literals.
        conditions: additional conditions.
        head: the tuple to derive, if not the rule's head.
        is_judged: whether an expression without a value is an error.
        is_bag: whether every derivation counts, not every tuple.
    """
    others = [read(at, each) for at, each in enumerate(rule.literals) if at != position]
    leads = [] if lead is None else [lead]
    return Body(
        logic.head_arguments(rule) if head is None else head,
        (*leads, *others, *goals),
        (*rule.conditions, *conditions),
        rule.origin,
        lead,
        is_judged,
        rule.is_lenient,
        is_bag,
    )


def with_plan(rule: logic.Rule, body: Body, version: int, position: int | None = None) -> Body:
    """Return a body whose literals have the order that a `.plan` asks for, if one applies.

    Args:
        rule: the rule.
        body: its body, with a goal for each literal.
        version: the number of the plan.
        position: the position of the literal that is the body's lead.
    """
    wanted = dict(rule.origin.plan).get(version, ())
    places = [at for at in range(len(rule.literals)) if at != position]
    if position is not None:
        places.insert(0, position)
    by_place = dict(zip(places, body.goals, strict=False))
    positive = [by_place[at] for at, each in enumerate(rule.literals) if not each.negated]
    if sorted(wanted) != list(range(1, len(positive) + 1)):
        return body
    return replace(body, order=tuple(positive[number - 1] for number in wanted))


def read_in_state(state: State) -> LiteralReader:
    """Return the reader of every literal in one state."""
    return lambda _, literal: Goal(literal, Reference(literal.relation, state))


def propagation_body(
    rule: logic.Rule, position: int | None, lead: Goal | None, sign: State
) -> Body:
    """Return add_i or rem_i, or the whole body in NEW or OLD of an added or removed rule."""
    is_added = sign is State.ADDED
    read = read_in_state(State.NEW if is_added else State.OLD)
    return make_body(rule, read, lead=lead, position=position, is_judged=is_added)


def seed_bodies(
    draft: Draft,
    rules: Iterable[logic.Rule],
    members: Sequence[str],
    sign: State,
    make: Callable[[logic.Rule, int | None, Goal | None], Body] | None = None,
) -> tuple[list[Step], dict[str, list[Body]]]:
    """Return the bodies that start a propagation into each relation of a stratum.

    They are led by the changes below, or are the whole bodies of rules that were added or removed.

    Args:
        draft: the plan under construction.
        rules: the rules that are in OLD and in NEW.
        members: the relations of the stratum.
        sign: whether additions or removals are propagated.
        make: makes the body of a rule led by a changed literal at a position, or of a rule that
            was itself added or removed; by default add_i or rem_i.
    """
    make = partial(propagation_body, sign=sign) if make is None else make
    steps: list[Step] = []
    bodies: dict[str, list[Body]] = {name: [] for name in members}
    for changed in changed_literals(draft, rules, bodies, sign):
        selection, chosen = apply_selections(draft, changed)
        steps += selection
        bodies[changed.rule.head.relation].append(make(chosen.rule, chosen.position, chosen.lead))
    update = draft.update
    for rule in update.added_rules if sign is State.ADDED else update.removed_rules:
        if rule.head.relation in bodies:
            bodies[rule.head.relation].append(make(rule, None, None))
    return steps, bodies
