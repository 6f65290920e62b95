"""Keys of relations: columns that no two of a relation's tuples agree on; what they determine.

| relation | key |
|---|---|
| base | as declared; none if triggers delete from it, as they may repair a violated key |
| aggregate | the columns of its groups |
| window functions | that of its body |
| one rule | columns of the head that determine all others, by the keys of what the rule reads |

Example: `event(id, team, day)` with the key `id`, and `late(d, i) :- event(i, _, d), d > 5.` The
key of `late` is its second column.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from corollary.core import logic
from corollary.core.graph import strongly_connected_components
from corollary.core.logic import (
    Constant,
    Literal,
    Rule,
    Variable,
    range_of,
    variable_names,
    variables_of,
)
from corollary.core.once import once_per_program
from corollary.core.program import NormalProgram

Keys = Mapping[str, Collection[int]]
"""The columns of the keys of relations, by number; without a key, all columns are one."""

Implication = tuple[frozenset[str], frozenset[str]]
"""Variables, and others that have one value once these have."""


@once_per_program
def relation_keys(program: NormalProgram) -> Mapping[str, tuple[int, ...]]:
    """Return the keys of those relations that have one with fewer columns than all."""
    deleted_from = {program.bases.get(each, each) for each in program.active.deleted_from}
    found = {name: key for name, key in program.keys.items() if name not in deleted_from}
    rules = logic.rules_by_head(program.rules)
    windows: dict[str, logic.Windowing] = {}
    for each in program.aggregations:
        if isinstance(each, logic.Windowing):
            windows[each.relation] = each
        else:
            found[each.relation] = each.keys
    graph = {
        name: {literal.relation for rule in made for literal in rule.literals}
        for name, made in rules.items()
    }
    graph |= {name: {each.body} for name, each in windows.items()}
    for name, *others in strongly_connected_components(graph):
        made = rules.get(name, [])
        if name in windows:
            count = program.relations[name].arity - len(windows[name].functions)
            found[name] = found.get(windows[name].body, tuple(range(count)))
        elif not others and name not in found and len(made) == 1:
            key = _key_of_head(made[0], found)
            if key is not None:
                found[name] = key
    return found


def _key_of_head(rule: logic.Rule, keys: Keys) -> tuple[int, ...] | None:
    """Return columns that determine the head of a rule; None if that takes all of them."""
    if rule.is_lenient:
        return None
    slots = rule.head.slots
    positions = {slot.name: at for at, slot in enumerate(slots) if isinstance(slot, logic.Variable)}
    needed, every = dict(positions), logic.variable_names(rule.head)
    implied = implications(rule, keys)
    gained = set[str]().union(*(names for _, names in implied))
    for name in reversed(positions):
        if name in gained and closure(needed.keys() - {name}, implied) >= every:
            del needed[name]
    return tuple(sorted(needed.values())) if len(needed) < len(slots) else None


def has_single_derivations(rule: Rule, keys: Keys | None = None) -> bool:
    """Whether a rule derives no tuple twice: its head determines all that it reads.

    Variables that are not read are computed from those, uniquely unless `range` gives them several
    values.
    """
    if rule.is_lenient:
        return False
    known = closure(variable_names(rule.head), implications(rule, keys or {}))
    several = (found[0].name for each in rule.conditions if (found := range_of(each)) is not None)
    return known.issuperset(several) and all(
        _is_determined(literal, known, (keys or {}).get(literal.relation))
        for literal in rule.literals
        if not literal.negated
    )


def implications(rule: Rule, keys: Keys) -> list[Implication]:
    """Return what the literals of a rule, by their keys, and its equations determine."""
    literals = [each for each in rule.literals if not each.negated]
    read = set[str]().union(*map(variable_names, literals))
    found = []
    for literal in literals:
        key = keys.get(literal.relation)
        slots = literal.slots if key is None else [literal.slots[column] for column in key]
        if all(isinstance(slot, Constant | Variable) for slot in slots):
            needed = frozenset(slot.name for slot in slots if isinstance(slot, Variable))
            found.append((needed, frozenset(variable_names(literal) - needed)))
    for each in rule.conditions:
        if each.operator == "=" and not range_of(each):
            for one, other in ((each.left, each.right), (each.right, each.left)):
                # Equal values of two literals may still differ: 0.0 and -0.0.
                if isinstance(one, Variable) and one.name not in read:
                    needed = frozenset(variable.name for variable in variables_of(other))
                    found.append((needed, frozenset((one.name,))))
    return [(needed, gained) for needed, gained in found if gained]


def closure(names: Iterable[str], implied: Sequence[Implication]) -> set[str]:
    """Return variables, and all others that they determine."""
    known, before = set(names), -1
    while len(known) > before:
        before = len(known)
        for needed, gained in implied:
            if needed <= known:
                known |= gained
    return known


def _is_determined(literal: Literal, known: set[str], key: Collection[int] | None) -> bool:
    """Whether some variables determine the tuple that a literal reads."""
    slots = literal.slots if key is None else [literal.slots[column] for column in key]
    return all(
        isinstance(slot, Constant) or (isinstance(slot, Variable) and slot.name in known)
        for slot in slots
    )
