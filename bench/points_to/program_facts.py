"""The facts of a made-up program: classes in layers, of which each calls methods of the next ones.

A class has eight methods. A method allocates three objects of the two classes below its own, moves,
stores and loads them, and calls a method of each, so that what is known of it depends on contexts.
"""

import random

CLASS_METHODS = 8
LAYERS = 10
"""Classes of one part of the program; the last two of them allocate objects of their own class."""

Facts = dict[str, list[tuple[str | int, ...]]]


def method_facts(number: int, source: random.Random) -> Facts:
    """Return what is known of one method, by relation."""
    owner, place = divmod(number, CLASS_METHODS)
    name = f"m{number}"
    this, result = f"{name}/this", f"{name}/r"
    below = [owner + 1, owner + 2] if owner % LAYERS < LAYERS - 2 else [owner]
    known = [f"{name}/a0", f"{name}/a1"]
    found: Facts = {
        "Lookup": [(f"C{owner}", f"s{place}", name)],
        "ThisVar": [(name, this)],
        "FormalArg": [(name, at, each) for at, each in enumerate(known)],
        "FormalReturn": [(name, result)],
    }

    def note(relation: str, *row: str | int) -> None:
        found.setdefault(relation, []).append(row)

    for at in range(3):
        note("Alloc", f"{name}/v{at}", f"{name}/h{at}", name)
        note("HeapType", f"{name}/h{at}", f"C{source.choice(below)}")
        known.append(f"{name}/v{at}")
    for at in range(5):
        note("Move", f"{name}/w{at}", source.choice(known))
        known.append(f"{name}/w{at}")
    for at in range(2):
        note("Store", this, f"f{owner}.{place}.{at}", source.choice(known))
    for at in range(3):
        note("Load", f"{name}/l{at}", this, f"f{owner}.{source.randrange(CLASS_METHODS)}.{at % 2}")
        known.append(f"{name}/l{at}")
    note("Move", result, source.choice(known))
    for at in range(3):
        called = f"{name}/i{at}"
        note("VirtualCall", f"{name}/v{at}", f"s{source.randrange(CLASS_METHODS)}", called)
        for position in range(2):
            note("ActualArg", called, position, source.choice(known[2:8]))
        note("ActualReturn", called, f"{name}/c{at}")
    return found


def program_facts(methods: int, seed: int = 1) -> tuple[Facts, list[Facts]]:
    """Return the facts of a whole program, and those of each of its methods."""
    source = random.Random(seed)
    each_method = [method_facts(number, source) for number in range(methods)]
    every: Facts = {
        "Entry": [(f"m{number}",) for number in range(0, methods, CLASS_METHODS * LAYERS)]
    }
    for facts in each_method:
        for relation, rows in facts.items():
            every.setdefault(relation, []).extend(rows)
    return every, each_method
