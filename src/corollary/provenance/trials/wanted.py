"""Tuples that are asked about, as a relation of the engine that leads pipelines."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from corollary.core.logic import NO_RULE, Literal, Variable
from corollary.core.pipeline import Reference
from corollary.core.plans import working_relation
from corollary.core.program import Relation
from corollary.core.recorder import CountingRecorder
from corollary.core.types import NUMBER
from corollary.maintain.draft import Body, Draft
from corollary.maintain.sip import Goal
from corollary.maintain.update import Update
from corollary.provenance.asked_state import AskedState
from corollary.provenance.nodes import Row

NUMBER_VARIABLE = Variable("•number", NUMBER)
"""The number of a wanted tuple."""


@contextmanager
def wanted_relation(asked: AskedState, relation: str, rows: Sequence[Row]) -> Iterator[Relation]:
    """Let the engine have numbered tuples of a relation, until the end."""
    shape = asked.program.relations[relation]
    name = working_relation(relation, "wanted")
    columns = ("•number", *shape.columns)
    wanted = Relation(name, columns, (NUMBER, *shape.types), is_derived=False, is_declared=False)
    asked.engine.declare({name: wanted})
    try:
        asked.engine.insert(name, [(number, *row) for number, row in enumerate(rows)])
        yield wanted
    finally:
        asked.engine.drop([name])


def new_draft(asked: AskedState) -> Draft:
    """Return a draft in which the relations of a state can be read."""
    return Draft(Update(asked.program, asked.program, {}, asked.statistics))


def tuples_there(asked: AskedState, relation: str, rows: Sequence[Row]) -> list[bool]:
    """Return for each tuple whether a relation, stored or virtual, has it.

    Args:
        asked: the state.
        relation: the relation, in the normal program.
        rows: the tuples.
    """
    if not rows:
        return []
    found = Relation(
        working_relation(relation, "there"),
        ("number",),
        (NUMBER,),
        is_derived=False,
        is_declared=False,
    )
    engine = asked.engine
    with wanted_relation(asked, relation, rows) as wanted:
        engine.declare({found.name: found})
        try:
            draft = new_draft(asked)
            draft.types |= {wanted.name: wanted.types, found.name: found.types}
            types = wanted.types[1:]
            row = tuple(Variable(f"_{at}", type_) for at, type_ in enumerate(types))
            lead = Goal(Literal(wanted.name, (NUMBER_VARIABLE, *row)), Reference(wanted.name))
            goal = Goal(Literal(relation, row), Reference(relation, asked.data))
            body = Body((NUMBER_VARIABLE,), (lead, goal), (), NO_RULE, lead)
            plan = draft.finish(draft.derive(found.name, [body]))
            engine.run(plan, CountingRecorder(), asked.limits)
            numbers = set(engine.read(found.name).column(0).to_pylist())
        finally:
            engine.drop([found.name])
    return [number in numbers for number in range(len(rows))]
