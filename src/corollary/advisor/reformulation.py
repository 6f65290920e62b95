"""The reformulated program: new views are declared, the clauses of queries rewritten."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from corollary.advisor.advice import Advice, NewView
from corollary.advisor.model.candidates import expand
from corollary.analysis.check import CheckedProgram
from corollary.core.logic import Clause, Literal, Variable
from corollary.core.program import Column, Declaration, Program, TypeName
from corollary.core.syntax import is_bare_word
from corollary.core.types import Type


def reformulate(checked: CheckedProgram, program: Program, advice: Advice) -> Program:
    """Return a program in which queries read the advised views.

    Args:
        checked: the program, with types.
        program: the program as written.
        advice: for the program.
    """
    views = advice.views.values()
    changed = {
        name: each.rewritten for name, each in advice.predicates.items() if each.is_applicable
    }
    clauses = [*_clauses(program, changed), *(rule for view in views for rule in view.clauses)]
    declarations = [
        *program.declarations,
        *(each for view in views for each in _declarations(view, checked)),
    ]
    return replace(program, declarations=tuple(declarations), clauses=tuple(clauses))


def _clauses(program: Program, changed: dict[str, tuple[Clause, ...]]) -> Iterator[Clause]:
    """Yield the clauses; rewritten ones replace the first original clause of their head."""
    done: set[str] = set()
    for clause in program.clauses:
        heads = {head.relation for head in clause.heads if not head.sign}
        if not clause.body or not heads & changed.keys():
            yield clause
            continue
        kept = tuple(head for head in clause.heads if head.relation not in changed)
        if kept:
            yield replace(clause, heads=kept)
        for name in heads & changed.keys():
            if name not in done:
                done.add(name)
                yield from changed[name]


def _declarations(view: NewView, checked: CheckedProgram) -> Iterator[Declaration]:
    """Yield the declarations of a view; its columns have the names of its variables.

    A virtual view is `inline`, so that later advice does not store it. The rows of a summary are
    not: they are computed once for all its measures.
    """
    measures = view.node.measures or ()
    groups = view.variables[: len(view.variables) - len(measures)]
    if view.rows is not None:
        columns = _columns(view.rows, view, checked)
        yield Declaration(view.relations[0], columns, storage="virtual")
    columns = _columns(groups, view, checked)
    columns += tuple(
        Column(name, TypeName.of(each.type))
        for name, each in zip(view.variables[len(groups) :], measures, strict=True)
    )
    if view.is_virtual:
        yield Declaration(view.name, columns, storage="virtual", hints=("inline",))
    else:
        yield Declaration(view.name, columns, storage="stored")


def _columns(names: Iterable[str], view: NewView, checked: CheckedProgram) -> tuple[Column, ...]:
    return tuple(
        Column(name if is_bare_word(name) else f"c{at}", _column_type(name, view, checked))
        for at, name in enumerate(names, 1)
    )


def _column_type(name: str, view: NewView, checked: CheckedProgram) -> TypeName:
    """Return the type of a column: a declared subtype, if a column of the variable has one."""
    known = {each.name for each in checked.program.types}
    found: list[tuple[TypeName, Type]] = []
    is_nullable = False
    for leaves in expand(view.node):
        columns = [
            (leaf.relation, at)
            for leaf in leaves
            if isinstance(leaf, Literal)
            for at, slot in enumerate(leaf.slots)
            if isinstance(slot, Variable) and slot.name == name
        ]
        here = [_type_at(relation, at, checked) for relation, at in columns]
        # A variable that occurs twice in a body is tested for null there.
        is_nullable |= len(here) == 1 and here[0][1].nullable
        found += here
    named = next((each for each, _ in found if each.name in known), found[0][0])
    return replace(named, nullable=is_nullable, span=None)


def _type_at(relation: str, at: int, checked: CheckedProgram) -> tuple[TypeName, Type]:
    signature = checked.signatures[relation]
    type_ = signature.types[at]
    if signature.declaration is not None:
        return signature.declaration.columns[at].type, type_
    return TypeName.of(type_), type_
