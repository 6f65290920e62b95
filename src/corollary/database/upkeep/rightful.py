"""What relations should hold: what is made of others, made from what is not.

| relation | is made of |
|---|---|
| the part of the program text | the facts in the text |
| a base relation with several parts | the union of its parts |
| a derived relation | base relations, by the rules |
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from corollary.console import Console
from corollary.core.program import NormalProgram, Relation
from corollary.database.parts import TEXT
from corollary.database.upkeep.recompute import recompute

if TYPE_CHECKING:
    import pyarrow as pa


def is_made(program: NormalProgram, name: str) -> bool:
    """Whether a relation is made of others; the program may lack its rules."""
    relation = program.relations[name]
    texts = (held.get(TEXT) for held in program.parts.values())
    return relation.is_derived or len(program.parts.get(name, ())) > 1 or name in texts


def rightful(
    program: NormalProgram, state: "Mapping[str, pa.Table]", console: Console
) -> "dict[str, pa.Table] | None":
    """Return what all relations that are made of others should hold.

    Args:
        program: the program, with its rules.
        state: what the other relations hold.
        console: where progress is shown.

    Returns:
        None if it cannot be told, since a relation that they are made of is not known.
    """
    from corollary.core.arrow import from_python

    bases: dict[str, pa.Table] = {}
    for name, relation in program.relations.items():
        if relation.is_derived or is_made(program, name):
            continue
        if name not in state:
            return None
        bases[name] = state[name]
    made: dict[str, pa.Table] = {}
    for base, held in program.parts.items():
        for part, at in held.items():
            if part == TEXT:
                made[at] = from_python(program.facts.get(base, ()), program.relations[at])
        if len(held) > 1:
            every = [made[at] if at in made else bases[at] for at in held.values()]
            made[base] = _union(every, program.relations[base])
    engine = recompute(program, {**bases, **made}, console)
    for name, relation in program.relations.items():
        if relation.is_derived and not relation.is_virtual:
            made[name] = engine.read(name)
    return made


def _union(tables: "list[pa.Table]", relation: Relation) -> "pa.Table":
    import pyarrow as pa

    from corollary.core.arrow import nullary_table, schema_of
    from corollary.warehouse.set_difference import distinct

    if not relation.arity:
        return nullary_table(int(any(each.num_rows for each in tables)))
    schema = schema_of(relation)
    return distinct(pa.concat_tables([each.cast(schema) for each in tables]))
