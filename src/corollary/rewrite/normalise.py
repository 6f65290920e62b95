"""From a checked program to its normal form: the passes, in order.

lower          plain rules, one clause at a time
equivalences   the three rules of an eqrel
bases          a relation with facts and rules gets a base part
virtual        what rewriting made for virtual relations only is virtual too
"""

from dataclasses import replace

from corollary.analysis.check import Checked
from corollary.core.origin import Origin
from corollary.core.program import NormalProgram, Relation
from corollary.core.rules import Literal, Rule
from corollary.core.terms import Variable
from corollary.rewrite.conjunction import unused
from corollary.rewrite.equivalences import equivalences
from corollary.rewrite.lower import lower
from corollary.rewrite.virtual import virtual


def normalise(checked: Checked, before: NormalProgram | None = None) -> NormalProgram:
    """Return the normal form of a checked program; active rules are left out.

    Args:
        checked: the program.
        before: the program in force until now: what its relations hold must find a place. A
            relation that had base tuples and gets rules keeps them in a base part, and one that
            loses its rules stays derived, with a base part.
    """
    clauses = [clause for clause in checked.program.clauses if not checked.is_active(clause)]
    lowered = lower(clauses, _declared(checked), checked.signatures)
    relations, rules, facts = lowered.relations, list(lowered.rules), dict(lowered.facts)
    seeds: dict[str, str] = {}
    for declaration in checked.program.declarations:
        if declaration.is_equivalence:
            name, types = declaration.name, relations[declaration.name].types
            seed = seeds[name] = unused(f"{name}.seed", relations)
            relations[seed] = replace(relations[name], name=seed, is_declared=False)
            rules = [_moved(rule, name, seed) for rule in rules]
            rules += equivalences(declaration, seed, types)
            if name in facts:
                facts[seed] = facts.pop(name)
    inputs = {each.relation for each in checked.program.directives if each.name == "input"}
    filled = {*facts, *(seeds.get(name, name) for name in inputs)}
    made = NormalProgram(
        relations,
        tuple(rules),
        lowered.aggregations,
        facts,
        seeds,
    )
    return virtual(_with_bases(made, filled, before))


def _moved(rule: Rule, name: str, to: str) -> Rule:
    """Return the rule with its head in another relation, if it is in the one named."""
    if rule.head.relation != name:
        return rule
    head = replace(rule.head, relation=to)
    return replace(rule, head=head, origin=rule.origin.by("equivalences"))


def _declared(checked: Checked) -> dict[str, Relation]:
    limits = {
        directive.relation: int(directive.parameter("n", "0"))
        for directive in checked.program.directives
        if directive.name == "limitsize"
    }
    return {
        name: Relation(
            name,
            signature.columns,
            signature.types,
            is_derived=signature.is_derived,
            is_virtual=bool(signature.declaration and signature.declaration.storage == "virtual"),
            limit=limits.get(name),
        )
        for name, signature in checked.signatures.items()
        if not signature.is_event
    }


def _with_bases(
    program: NormalProgram, filled: set[str], before: NormalProgram | None
) -> NormalProgram:
    """Give every relation that has both rules and base tuples a base part of its own.

    Args:
        program: with the seeds of equivalences as the bases so far.
        filled: the relations that have facts or an input.
        before: the program until now.
    """
    derived = {rule.head.relation for rule in program.rules} | {
        each.relation for each in program.aggregations
    }
    relations: dict[str, Relation] = {}
    rules, facts, bases = list(program.rules), dict(program.facts), dict(program.bases)
    for name, relation in program.relations.items():
        was = before.relations.get(name) if before else None
        has_base = name in filled or (before is not None and name in before.bases)
        if was is not None:
            has_base |= was.is_derived != (name in derived)
        is_derived = name in derived or (was is not None and was.is_derived)
        relations[name] = replace(relation, is_derived=is_derived)
        if is_derived and has_base and name not in program.bases:
            base = bases[name] = unused(f"{name}.base", program.relations)
            relations[base] = Relation(
                base, relation.columns, relation.types, is_derived=False, is_declared=False
            )
            if name in facts:
                facts[base] = facts.pop(name)
            slots = tuple(
                Variable(column, type_)
                for column, type_ in zip(relation.columns, relation.types, strict=True)
            )
            origin = Origin(f"the facts of {name}", None, ("bases",))
            rules.append(Rule(Literal(name, slots), (Literal(base, slots),), (), origin))
    bases |= {name: bases.get(seed, seed) for name, seed in program.bases.items()}
    return NormalProgram(relations, tuple(rules), program.aggregations, facts, bases)
