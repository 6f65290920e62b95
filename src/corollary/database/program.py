"""From files to a program that can be run: read, check, normalise."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from corollary.active.normal_form import with_active
from corollary.analysis.check import Checked, check
from corollary.core.program import Declaration, NormalProgram, Program
from corollary.core.rules import (
    Aggregate,
    Atom,
    Clause,
    Constant,
    Functor,
    Literal,
    Variable,
    Wildcard,
)
from corollary.errors import Diagnostic, InputError
from corollary.frontends.datalog.parse import parse_file, parse_goal
from corollary.rewrite.conjunction import unused
from corollary.rewrite.normalise import normalise


@dataclass(frozen=True, slots=True)
class Loaded:
    """A program in its three forms: as written, checked, normal."""

    program: Program
    checked: Checked
    normal: NormalProgram


def read_programs(paths: Sequence[Path]) -> Program:
    """Return the program that several files make together.

    Raises:
        InputError: with the findings of all files.
    """
    program = Program()
    findings: list[Diagnostic] = []
    for path in paths:
        try:
            program += parse_file(path)
        except InputError as error:
            findings += error.diagnostics
    if findings:
        raise InputError(findings)
    return program


def load(program: Program) -> Loaded:
    """Check a program and bring it into normal form.

    Raises:
        InputError: with everything that is wrong with it.
    """
    checked = check(program)
    return Loaded(program, checked, with_active(normalise(checked), checked))


def read_goal(program: Program, text: str) -> Literal:
    """Return a goal such as `link("a", y)` as a typed literal.

    The goal is checked as the body of a rule, so that names, number of arguments and types are
    judged as they are in programs.

    Raises:
        InputError: if the goal does not fit the program.
    """
    goal = parse_goal(text)
    if goal.state is not None:
        raise InputError.of(
            "C0903",
            f"A goal asks for the present, so `@{goal.state}` has no meaning in it.",
            goal.span,
            f"leave out `@{goal.state}`",
        )
    if any(isinstance(argument, Functor | Aggregate) for argument in goal.arguments):
        raise InputError.of(
            "C0901",
            "A goal's arguments are values, variables or `_`.",
            goal.span,
            "compute the value first, or write a rule and ask for its head",
        )
    taken = {goal.relation, *(each.name for each in program.declarations)}
    asked = unused("corollary.goal", taken)
    asking = Program(
        declarations=(Declaration(asked, ()),), clauses=(Clause((Atom(asked, ()),), (goal,)),)
    )
    checked = check(program + asking)
    if checked.signatures[goal.relation].is_event:
        raise InputError.of(
            "C0902",
            f"`{goal.relation}` is an event predicate: it holds only while a transaction runs.",
            goal.span,
            "ask for a base or derived relation",
        )
    (typed,) = (item for item in checked.program.clauses[-1].body if isinstance(item, Atom))
    slots = (each for each in typed.arguments if isinstance(each, Variable | Constant | Wildcard))
    return Literal(goal.relation, tuple(slots))
