"""How large relations are thought to be when a goal is asked.

A relation that is looked up has its size. One that is computed along the way is thought to be as
large as the largest relation that it is computed from: what is small comes before it in a join and
passes its values on, and its own rules are probed as they are written.
"""

from collections.abc import Callable

from corollary.core.program import NormalProgram


def sizes_to_ask(program: NormalProgram, size: Callable[[str], int]) -> dict[str, int]:
    """Return the sizes of all relations, those of virtual ones by what is below them.

    Args:
        program: the program.
        size: the number of tuples of a relation that is looked up.
    """
    users: dict[str, set[str]] = {}
    for rule in program.rules:
        for literal in rule.literals:
            users.setdefault(literal.relation, set()).add(rule.head.relation)
    for each in program.aggregations:
        users.setdefault(each.body, set()).add(each.relation)
    sizes = {
        name: size(name)
        for name, relation in program.relations.items()
        if not (relation.is_derived and relation.is_virtual)
    }
    for name in sorted(sizes, key=lambda each: -sizes[each]):
        open_ = [name]
        while open_:
            for user in users.get(open_.pop(), set()) - sizes.keys():
                sizes[user] = sizes[name]
                open_.append(user)
    return sizes
