"""What rewriting made for virtual relations only is virtual too.

An aggregate's body, its keys, the projection under a negation: none of them is stored if every
relation that reads it is stored nowhere.
"""

from dataclasses import replace

from corollary.core.program import NormalProgram


def virtual(program: NormalProgram) -> NormalProgram:
    """Return the program with all made-up relations virtual that only virtual ones read."""
    readers: dict[str, set[str]] = {}
    for rule in program.rules:
        for literal in rule.literals:
            readers.setdefault(literal.relation, set()).add(rule.head.relation)
    for aggregation in program.aggregations:
        readers.setdefault(aggregation.body, set()).add(aggregation.relation)
    relations = dict(program.relations)
    has_changed = True
    while has_changed:
        has_changed = False
        for name, relation in relations.items():
            above = readers.get(name, set()) - {name}
            is_open = relation.is_derived and not (relation.is_declared or relation.is_virtual)
            if is_open and above and all(relations[each].is_virtual for each in above):
                relations[name] = replace(relation, is_virtual=True)
                has_changed = True
    return replace(program, relations=relations)
