"""Derived relations made from the base relations alone, whatever was stored of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from corollary.console import Console
from corollary.core.engine import Limits
from corollary.core.program import NormalProgram
from corollary.database.progress import Progress
from corollary.engines.local.engine import LocalEngine
from corollary.maintain import seminaive

if TYPE_CHECKING:
    import pyarrow as pa


def recompute(
    program: NormalProgram, bases: "Mapping[str, pa.Table]", console: Console
) -> LocalEngine:
    """Return an engine with every stored relation of a program, and what these are made of.

    Args:
        program: the program.
        bases: the tuples of its base relations, by name.
        console: where progress is shown.
    """
    asked = needed(program)
    engine = LocalEngine()
    engine.declare(asked.relations)
    for name, relation in asked.relations.items():
        if not relation.is_derived and name in bases:
            engine.insert(name, bases[name])
    engine.commit()
    engine.run(seminaive.evaluate(asked, engine.statistics()), Progress(console), Limits())
    return engine


def needed(program: NormalProgram) -> NormalProgram:
    """Return the part of a program that makes its stored relations."""
    reads: dict[str, set[str]] = {name: set() for name in program.relations}
    for rule in program.rules:
        reads[rule.head.relation] |= {literal.relation for literal in rule.literals}
    for each in program.aggregations:
        reads[each.relation].add(each.body)
    wanted = {name for name, relation in program.relations.items() if relation.is_stored}
    open_ = list(wanted)
    while open_:
        fresh = reads[open_.pop()] - wanted
        wanted |= fresh
        open_ += fresh
    return replace(
        program,
        relations={name: each for name, each in program.relations.items() if name in wanted},
        rules=tuple(rule for rule in program.rules if rule.head.relation in wanted),
        aggregations=tuple(each for each in program.aggregations if each.relation in wanted),
    )
