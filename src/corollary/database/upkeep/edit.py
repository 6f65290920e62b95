"""The program in force, edited for other columns of a base relation.

| where the relation stands | an added column | a dropped column |
|---|---|---|
| its declaration | becomes the last one | goes; it may be in no key or `.fd` |
| a literal of a body | is `_` | must be `_` |
| a fact | has the value that old tuples get | goes |
| the head of a trigger | has that value in `+p`; not to be said in `-p` | goes |

Rules name columns by their place, so a new name changes declarations, keys and messages only.
"""

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from corollary.core.alerts import PLACEHOLDER
from corollary.core.printer import print_clause, print_value
from corollary.core.program import Column, Declaration, Dependency, Directive, Program, Reaction
from corollary.core.rules import Atom, Clause, Term, Wildcard
from corollary.database.upkeep.reshape import Alteration, Filled, Reshape, refused
from corollary.errors import Diagnostic, InputError
from corollary.frontends.datalog.parse import parse_goal

Node = TypeVar("Node")


def edited_declaration(declaration: Declaration, asked: Alteration) -> Declaration:
    """Return a declaration with other columns.

    Raises:
        InputError: `C0962`, a column is not there, or there already.
    """
    added = asked.columns_to_add()
    names = [column.name for column in declaration.columns]
    for name in (*asked.rename, *asked.drop):
        if name not in names:
            listed = ", ".join(f"`{each}`" for each in names) or "none"
            raise refused(
                f"`{declaration.name}` has no column `{name}`.", f"its columns are {listed}"
            )
    for name in asked.rename.keys() & set(asked.drop):
        raise refused(f"`{name}` cannot be renamed and dropped.", "do one of them")
    kept = tuple(
        replace(column, name=asked.rename.get(column.name, column.name))
        for column in declaration.columns
        if column.name not in asked.drop
    )
    columns: tuple[Column, ...] = (*kept, *added)
    after = [column.name for column in columns]
    for name in dict.fromkeys(after):
        if after.count(name) > 1:
            raise refused(f"`{declaration.name}` would have two columns `{name}`.", "rename one")
    if columns == declaration.columns:
        raise refused("Nothing is asked for.", "give --add, --rename, --drop or --program")
    key = tuple(asked.rename.get(name, name) for name in declaration.key if name not in asked.drop)
    return replace(declaration, columns=columns, key=key)


def edited(program: Program, declaration: Declaration, asked: Alteration, how: Reshape) -> Program:
    """Return the program with another declaration of a relation, and all that goes with it.

    Raises:
        InputError: `C0965`, something in it uses a column that is dropped, or needs a value.
    """
    return _Edit(declaration, asked, how).program(program)


class _Edit:
    """One edit; what is in its way is collected and raised once."""

    def __init__(self, declaration: Declaration, asked: Alteration, how: Reshape) -> None:
        self._declaration = declaration
        self._asked = asked
        self._name = asked.relation
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
            directives=tuple(map(self._directive, program.directives)),
            reactions=tuple(map(self._reaction, program.reactions)),
        )
        if self._findings:
            raise InputError(self._findings)
        return made

    def _in_the_way(self, text: str) -> None:
        cure = "give the new program with --program, or remove this first"
        self._findings.append(Diagnostic("C0965", text, None, cure))

    def _declared(self, each: Declaration) -> Declaration:
        if each.name != self._name:
            return each
        for name in self._asked.drop:
            if name in each.key:
                self._in_the_way(f"`{name}` is in the key of `{self._name}`.")
        return self._declaration

    def _dependency(self, each: Dependency) -> Dependency:
        if each.relation != self._name:
            return each
        for name in self._asked.drop:
            if name in (*each.determinants, *each.dependents):
                self._in_the_way(f"`{name}` is in an `.fd` of `{self._name}`.")
        return replace(
            each,
            determinants=self._named(each.determinants),
            dependents=self._named(each.dependents),
        )

    def _named(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(self._asked.rename.get(name, name) for name in names)

    def _directive(self, each: Directive) -> Directive:
        if each.relation != self._name:
            return each
        if each.parameter("columns") and (self._asked.drop or self._asked.add):
            self._in_the_way(f"`.{each.name} {self._name}` says where in the file columns are.")
        if each.parameter("order") in self._asked.drop:
            self._in_the_way(f"`.{each.name} {self._name}` orders rows by a dropped column.")
        parameters = (
            (name, self._asked.rename.get(value, value) if name == "order" else value)
            for name, value in each.parameters
        )
        return replace(each, parameters=tuple(parameters))

    def _reaction(self, each: Reaction) -> Reaction:
        if each.relation != self._name:
            return each

        def renamed(found: Any) -> str:
            name = found[1]
            if name in self._asked.drop:
                self._in_the_way(f"The message of `.{each.name} {self._name}` shows `{name}`.")
            new = self._asked.rename.get(name)
            return found[0] if new is None else f"{{{new}}}"

        return replace(each, message=PLACEHOLDER.sub(renamed, each.message))

    # --- clauses -------------------------------------------------------------------------------

    def _clause(self, clause: Clause) -> Clause:
        def in_body(atom: Atom) -> Atom:
            return self._body_atom(atom, clause)

        inner = (replaced(head, in_body, is_inner=True) for head in clause.heads)
        heads = tuple(self._head(head, clause) for head in inner)
        return replace(clause, heads=heads, body=replaced(clause.body, in_body))

    def _body_atom(self, atom: Atom, clause: Clause) -> Atom:
        if atom.relation != self._name:
            return atom
        for at in self._dropped:
            if not isinstance(atom.arguments[at], Wildcard):
                column = self._how.before.columns[at]
                self._in_the_way(f"The rule `{print_clause(clause)}` uses `{column}`.")
        return self._fitted(atom, lambda _: Wildcard())

    def _head(self, atom: Atom, clause: Clause) -> Atom:
        if atom.relation != self._name:
            return atom
        if atom.sign == "-" and any(isinstance(each, Filled) for each in self._how.sources):
            self._in_the_way(f"The rule `{print_clause(clause)}` does not say what it deletes.")
        return self._fitted(atom, self._constant)

    def _fitted(self, atom: Atom, made: Callable[[int], Term]) -> Atom:
        """Return an atom with an argument for each column, new ones as they are made."""
        arguments = tuple(
            atom.arguments[each] if isinstance(each, int) else made(at)
            for at, each in enumerate(self._how.sources)
        )
        return replace(atom, arguments=arguments)

    def _constant(self, at: int) -> Term:
        filled, type_ = self._how.sources[at], self._how.after.types[at]
        assert isinstance(filled, Filled)
        return parse_goal(f"r({print_value(filled.value, type_)})").arguments[0]


def replaced(node: Node, edit: Callable[[Atom], Atom], *, is_inner: bool = False) -> Node:
    """Return a part of a clause in which every atom is edited, those of aggregates too.

    Args:
        node: the part.
        edit: returns the atom that takes the place of one.
        is_inner: whether the part itself stays if it is an atom.
    """
    if isinstance(node, tuple):
        return tuple(replaced(each, edit) for each in node)  # type: ignore[return-value]
    if not is_dataclass(node) or isinstance(node, type):
        return node
    parts = {each.name: getattr(node, each.name) for each in fields(node) if each.compare}
    made = replace(node, **{name: replaced(part, edit) for name, part in parts.items()})
    if isinstance(made, Atom) and not is_inner:
        return edit(made)  # type: ignore[return-value]
    return made
