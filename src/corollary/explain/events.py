"""Active rules, printed: what is watched, and what it sets off."""

from collections.abc import Iterator
from typing import Any

from corollary.core.program import Active, NormalProgram
from corollary.core.states import State

SIGNS = {State.ADDED: "+", State.REMOVED: "-"}


def print_events(program: NormalProgram) -> list[str]:
    """Return the lines that name event predicates, triggers, alerts and constraints."""
    active = program.active
    lines = [
        f"event {name}: reads {', '.join(_read(active, name)) or 'nothing'}"
        f"{_reactions(active, name)}"
        for name, each in active.relations.items()
        if each.is_declared and name not in active.merged
    ]
    for merged in dict.fromkeys(active.merged.values()):
        names = [name for name, each in active.merged.items() if each == merged]
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
        reads = ", ".join(_read(active, merged))
        lines.append(f"events {shown}: alike, evaluated as one, read {reads}")
    lines += [
        f"trigger {SIGNS[sign]}{relation}: reads {', '.join(_read(active, name))}"
        for name, (relation, sign) in active.triggers.items()
    ]
    watched = [each for each in active.reactions if each.relation in program.relations]
    lines += [f"{each.name} on +{each.relation}" for each in watched]
    return lines


def events_as_json(program: NormalProgram) -> dict[str, Any]:
    """Return the event predicates and triggers, with what they read and set off."""
    active = program.active
    return {
        "events": [
            {
                "event": name,
                "reads": _read(active, active.merged.get(name, name)),
                "reactions": [each.name for each in active.reactions if each.relation == name],
            }
            for name, each in active.relations.items()
            if each.is_declared
        ],
        "triggers": [
            {"head": f"{SIGNS[sign]}{relation}", "reads": _read(active, name)}
            for name, (relation, sign) in active.triggers.items()
        ],
    }


def _read(active: Active, name: str) -> list[str]:
    """Return the changes, states and event predicates that a relation is derived from."""
    return sorted(dict.fromkeys(_all_read(active, name)))


def _all_read(active: Active, name: str) -> Iterator[str]:
    below = [
        each.relation
        for rule in active.rules
        if rule.head.relation == name
        for each in rule.literals
    ]
    below += [each.body for each in active.aggregations if each.relation == name]
    for each in below:
        made = active.relations.get(each)
        if made is not None and not made.is_declared and each != name:
            yield from _all_read(active, each)
        elif not each.startswith("constants "):
            yield each


def _reactions(active: Active, name: str) -> str:
    found = dict.fromkeys(each.name for each in active.reactions if each.relation == name)
    return f"; {', '.join(found)}" if found else ""
