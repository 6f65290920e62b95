"""Keys of relations: columns that no two of a relation's tuples agree on.

| relation | key |
|---|---|
| base | as declared; none if triggers delete from it, as they may repair a violated key |
| aggregate | the columns of its groups |
| window functions | that of its body |
| one rule | columns of the head that determine all others, by the keys of what the rule reads |

Example: `event(id, team, day)` with the key `id`, and `late(d, i) :- event(i, _, d), d > 5.` The
key of `late` is its second column.
"""

from collections.abc import Mapping

from corollary.core import logic
from corollary.core.graph import strongly_connected_components
from corollary.core.once import once_per_program
from corollary.core.program import NormalProgram


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


def _key_of_head(rule: logic.Rule, keys: logic.Keys) -> tuple[int, ...] | None:
    """Return columns that determine the head of a rule; None if that takes all of them."""
    if rule.is_lenient:
        return None
    slots = rule.head.slots
    positions = {slot.name: at for at, slot in enumerate(slots) if isinstance(slot, logic.Variable)}
    needed, every = dict(positions), logic.variable_names(rule.head)
    implied = logic.implications(rule, keys)
    gained = set[str]().union(*(names for _, names in implied))
    for name in reversed(positions):
        if name in gained and logic.closure(needed.keys() - {name}, implied) >= every:
            del needed[name]
    return tuple(sorted(needed.values())) if len(needed) < len(slots) else None
