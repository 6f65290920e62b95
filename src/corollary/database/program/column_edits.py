"""Edits the program in force for altered columns of a base relation.

| where the relation occurs | an added column | a dropped column |
|---|---|---|
| its declaration | becomes the last one | is removed; it may be in no key or `.fd` |
| a literal of a body | is `_` | must be `_` |
| a fact | has the value that old tuples get | is removed |
| the head of a trigger | has that value in `+p`; is not possible in `-p` | is removed |

Rules refer to columns by position, so a new name changes declarations, keys and messages only.
"""

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from corollary.analysis.bags import rows_name
from corollary.analysis.traverse import atom_uses
from corollary.core.alerts import PLACEHOLDER, TEMPLATES
from corollary.core.logic import Atom, Clause, Term, Wildcard
from corollary.core.printer import print_clause, print_value
from corollary.core.program import (
    SQL_DIRECTIVE,
    Column,
    Declaration,
    Directive,
    FunctionalDependency,
    Program,
    Reaction,
)
from corollary.database.program import column_mapping
from corollary.errors import Diagnostic, InputError
from corollary.frontends.datalog.parser import parse_clause

_Node = TypeVar("_Node")


def edit_declaration(declaration: Declaration, asked: column_mapping.Alteration) -> Declaration:
    """Return a declaration with the columns altered.

    Raises:
        InputError: `C0962`, a column does not exist, or exists already.
    """
    added = asked.columns_to_add()
    names = [column.name for column in declaration.columns]
    for name in (*asked.rename, *asked.drop):
        if name not in names:
            listed = ", ".join(f"`{each}`" for each in names) or "none"
            raise column_mapping.alter_error(
                f"`{declaration.name}` has no column `{name}`.", f"its columns are {listed}"
            )
    for name in asked.rename.keys() & set(asked.drop):
        raise column_mapping.alter_error(
            f"`{name}` cannot be renamed and dropped.", "do one of them"
        )
    kept = tuple(
        replace(column, name=asked.rename.get(column.name, column.name))
        for column in declaration.columns
        if column.name not in asked.drop
    )
    columns: tuple[Column, ...] = (*kept, *added)
    after = [column.name for column in columns]
    for name in dict.fromkeys(after):
        if after.count(name) > 1:
            raise column_mapping.alter_error(
                f"`{declaration.name}` would have two columns `{name}`.", "rename one"
            )
    if columns == declaration.columns:
        raise column_mapping.alter_error(
            "Nothing is to be altered.", "give --add, --rename, --drop or --program"
        )
    key = tuple(asked.rename.get(name, name) for name in declaration.key if name not in asked.drop)
    return replace(declaration, columns=columns, key=key)


def edit_program(
    program: Program,
    declaration: Declaration,
    asked: column_mapping.Alteration,
    how: column_mapping.ColumnMapping,
) -> Program:
    """Return the program with a new declaration of a relation, and everything else adapted.

    Raises:
        InputError: `C0965`, something in it uses a dropped column, or needs a value.
    """
    return _Edit(declaration, asked, how).program(program)


class _Edit:
    """One edit; all obstacles are collected and raised once."""

    def __init__(
        self,
        declaration: Declaration,
        asked: column_mapping.Alteration,
        how: column_mapping.ColumnMapping,
    ) -> None:
        self._declaration = declaration
        self._asked = asked
        self._name = asked.relation
        self._counts = rows_name(asked.relation) if declaration.is_bag else None
        self._how = how
        self._dropped = [how.before.columns.index(name) for name in asked.drop]
        self._findings: list[Diagnostic] = []

    def program(self, program: Program) -> Program:
        """Return the edited program."""
        made = replace(
            program,
            declarations=tuple(map(self._declared, program.declarations)),
            dependencies=tuple(map(self._dependency, program.dependencies)),
            clauses=tuple(map(self._clause, program.clauses)),
            directives=tuple(map(self._directive, self._current(program))),
            reactions=tuple(map(self._reaction, program.reactions)),
        )
        if self._findings:
            raise InputError(self._findings)
        return made

    def _refuse(self, text: str) -> None:
        cure = "give the new program with --program, or remove this first"
        self._findings.append(Diagnostic("C0965", text, None, cure))

    def _declared(self, each: Declaration) -> Declaration:
        if each.name != self._name:
            return each
        for name in self._asked.drop:
            if name in each.key:
                self._refuse(f"`{name}` is in the key of `{self._name}`.")
        return self._declaration

    def _dependency(self, each: FunctionalDependency) -> FunctionalDependency:
        if each.relation != self._name:
            return each
        for name in self._asked.drop:
            if name in (*each.determinants, *each.dependents):
                self._refuse(f"`{name}` is in an `.fd` of `{self._name}`.")
        return replace(
            each,
            determinants=self._renamed(each.determinants),
            dependents=self._renamed(each.dependents),
        )

    def _renamed(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(self._asked.rename.get(name, name) for name in names)

    def _current(self, program: Program) -> Iterable[Directive]:
        """Return the directives, but the SQL of what names the columns of the relation.

        Such views are defined by their rules from now on.
        """
        readers = {
            head.relation
            for clause in program.clauses
            if any(use.atom.relation in (self._name, self._counts) for use in atom_uses(clause))
            for head in clause.heads
        }
        stale = {self._name, *readers, *(name.partition(".")[0] for name in readers)}
        return (
            each
            for each in program.directives
            if each.name != SQL_DIRECTIVE or each.relation not in stale
        )

    def _directive(self, each: Directive) -> Directive:
        if each.relation != self._name:
            return each
        if each.parameter("columns") and (self._asked.drop or self._asked.add):
            self._refuse(f"`.{each.name} {self._name}` says where in the file columns are.")
        if each.parameter("order") in self._asked.drop:
            self._refuse(f"`.{each.name} {self._name}` orders rows by a dropped column.")
        parameters = (
            (name, self._asked.rename.get(value, value) if name == "order" else value)
            for name, value in each.parameters
        )
        return replace(each, parameters=tuple(parameters))

    def _reaction(self, each: Reaction) -> Reaction:
        if each.relation not in (self._name, self._counts):
            return each

        def renamed(found: Any) -> str:
            name = found[1]
            if name in self._asked.drop:
                self._refuse(f"The message of `.{each.name} {self._name}` shows `{name}`.")
            new = self._asked.rename.get(name)
            return found[0] if new is None else f"{{{new}}}"

        parameters = (
            (name, PLACEHOLDER.sub(renamed, value) if name in TEMPLATES else value)
            for name, value in each.parameters
        )
        message = PLACEHOLDER.sub(renamed, each.message)
        return replace(each, message=message, parameters=tuple(parameters))

    # --- clauses -------------------------------------------------------------------------------

    def _clause(self, clause: Clause) -> Clause:
        def in_body(atom: Atom) -> Atom:
            return self._body_atom(atom, clause)

        inner = (_edit_atoms(head, in_body, is_inner=True) for head in clause.heads)
        heads = tuple(self._head(head, clause) for head in inner)
        return replace(clause, heads=heads, body=_edit_atoms(clause.body, in_body))

    def _body_atom(self, atom: Atom, clause: Clause) -> Atom:
        if atom.relation not in (self._name, self._counts):
            return atom
        for at in self._dropped:
            if not isinstance(atom.arguments[at], Wildcard):
                column = self._how.before.columns[at]
                self._refuse(f"The rule `{print_clause(clause)}` uses `{column}`.")
        return self._with_arguments(atom, lambda _: Wildcard())

    def _head(self, atom: Atom, clause: Clause) -> Atom:
        if atom.relation not in (self._name, self._counts):
            return atom
        if atom.sign == "-" and any(
            isinstance(each, column_mapping.FillValue) for each in self._how.sources
        ):
            self._refuse(f"The rule `{print_clause(clause)}` does not say what it deletes.")
        return self._with_arguments(atom, self._constant)

    def _with_arguments(self, atom: Atom, made: Callable[[int], Term]) -> Atom:
        """Return an atom with an argument for each column; `made` makes the new ones."""
        arguments = tuple(
            atom.arguments[each] if isinstance(each, int) else made(at)
            for at, each in enumerate(self._how.sources)
        )
        counts = atom.arguments[self._how.before.arity :]  # of a bag
        return replace(atom, arguments=(*arguments, *counts))

    def _constant(self, at: int) -> Term:
        filled, type_ = self._how.sources[at], self._how.after.types[at]
        assert isinstance(filled, column_mapping.FillValue)
        return parse_clause(f"r({print_value(filled.value, type_)})").heads[0].arguments[0]


def _edit_atoms(node: _Node, edit: Callable[[Atom], Atom], *, is_inner: bool = False) -> _Node:
    """Return a node of a clause with every atom edited, also those in aggregates.

    If `is_inner`, the node itself is not edited if it is an atom.
    """
    if isinstance(node, tuple):
        return tuple(_edit_atoms(each, edit) for each in node)  # type: ignore[return-value]
    if not is_dataclass(node) or isinstance(node, type):
        return node
    parts = {each.name: getattr(node, each.name) for each in fields(node) if each.compare}
    made = replace(node, **{name: _edit_atoms(part, edit) for name, part in parts.items()})
    if isinstance(made, Atom) and not is_inner:
        return edit(made)  # type: ignore[return-value]
    return made
