"""The base relations of a program, as users write to them."""

from corollary.analysis.today import TODAY_RELATION
from corollary.core.program import NormalProgram


def user_names(program: NormalProgram) -> dict[str, str]:
    """Return the users' names of relations that hold base tuples for derived ones."""
    users = {base: name for name, base in program.bases.items()}
    return {base: users.get(name, name) for base, name in users.items()}


def insertable_relations(program: NormalProgram) -> dict[str, str]:
    """Return the base relations that tuples can be inserted into, with the users' names."""
    users = user_names(program)
    return {
        name: users.get(name, name)
        for name, relation in program.relations.items()
        if not relation.is_derived
        and name != TODAY_RELATION
        and name not in program.constants
        and name not in program.bags.values()
        and (relation.is_declared or name in users)
    }
