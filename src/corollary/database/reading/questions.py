"""Questions in SQL, in the form that is answered: a goal of a hidden relation."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from corollary.analysis.bags import rows_name
from corollary.analysis.check import check
from corollary.analysis.today import TODAY_RELATION, today_relation
from corollary.analysis.traverse import atom_uses
from corollary.core import logic
from corollary.core.program import Arithmetic, Declaration, Program, Relation
from corollary.core.types import Type
from corollary.database.program.goals import ResolvedGoal
from corollary.database.program.loaded_program import LoadedProgram
from corollary.rewrite.normalise import lower_clauses
from corollary.rewrite.translation_unit import unused_name

if TYPE_CHECKING:
    from corollary.frontends.sql.statements.questions import CompiledQuestion

HIDDEN_RELATION = "question"


def hidden_name(loaded: LoadedProgram) -> str:
    """Return a name for the relation of an answer, which no relation of the program has."""
    taken = {each.partition(".")[0] for each in loaded.normal.relations}
    return unused_name(HIDDEN_RELATION, taken, loaded.checked.signatures)


def read_question(loaded: LoadedProgram, question: "CompiledQuestion") -> ResolvedGoal:
    """Return the goal that asks for all rows of a question.

    Raises:
        InputError: the question does not fit the program.
    """
    # The rules of the program are checked; those of the question need their declarations only.
    given = loaded.program
    checked = check(
        Program(
            types=given.types,
            declarations=(*_used(loaded, question.rules), *question.rules.declarations),
            clauses=question.rules.clauses,
        )
    )
    own = {each.name for each in question.rules.declarations}
    own |= {rows_name(each.name) for each in question.rules.declarations if each.is_bag}
    clauses = [
        clause
        for clause in checked.program.clauses
        if all(head.relation in own for head in clause.heads)
    ]
    relations = dict(loaded.normal.relations)
    if TODAY_RELATION in checked.signatures:
        relations.setdefault(TODAY_RELATION, today_relation())
    for name in own:
        signature = checked.signatures[name]
        relations[name] = Relation(
            name,
            signature.columns,
            signature.types,
            is_derived=name not in question.rows,
            is_virtual=name not in question.rows,
            is_declared=False,
        )
    lowered = lower_clauses(clauses, relations, (), Arithmetic.EXACT)
    made = {
        name: replace(relation, is_virtual=name not in question.rows, is_declared=False)
        for name, relation in lowered.relations.items()
        if name not in loaded.normal.relations and name != TODAY_RELATION
    }
    program = replace(
        loaded.normal,
        relations={**relations, **made},
        rules=(*loaded.normal.rules, *lowered.rules),
        aggregations=(*loaded.normal.aggregations, *lowered.aggregations),
        statements=loaded.normal.statements | {question.relation},
    )
    asked = made[rows_name(question.relation) if question.is_bag else question.relation]
    slots = tuple(logic.Variable(f"v{at}", each) for at, each in enumerate(asked.types))
    return ResolvedGoal(logic.Literal(asked.name, slots), program, False, question.rows)


def _used(loaded: LoadedProgram, rules: Program) -> tuple[Declaration, ...]:
    """Return the declarations of the program's relations that some rules read."""
    read = {use.atom.relation for clause in rules.clauses for use in atom_uses(clause)}
    return tuple(
        each
        for each in loaded.program.declarations
        if each.name in read or rows_name(each.name) in read
    )


def answer_shape(types: Sequence[Type], question: "CompiledQuestion") -> Relation:
    """Return the user's columns of an answer, with their types."""
    names = tuple(column.name for column in question.columns[: question.width])
    return Relation(
        question.relation, names, tuple(types[: len(names)]), is_derived=True, is_declared=False
    )
