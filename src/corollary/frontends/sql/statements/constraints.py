"""Constraints of tables as rules: a relation of violations, and `.abort` on it."""

from collections.abc import Iterable, Sequence
from dataclasses import field

from corollary.analysis.bags import rows_name
from corollary.analysis.phrases import one_of, suggest_name
from corollary.core import logic
from corollary.core.program import Column, Declaration, Program, Reaction, TypeName
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.frontends.sql.binder.session import type_name as sql_type
from corollary.frontends.sql.catalog import SqlCatalog, TableDefinition
from corollary.frontends.sql.query_tree import QueryColumn
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.tables import TableLayout, find_column
from corollary.source import Span

COPIES = "copies"
"""The variable for the number of copies of a row."""


@dataclass(slots=True)
class ConstraintRules:
    """The rules of a table's constraints, while they are made."""

    layout: TableLayout
    declarations: list[Declaration] = field(default_factory=list)
    clauses: list[logic.Clause] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)

    @property
    def table(self) -> str:
        """The name of the table."""
        return self.layout.declaration.name

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the table."""
        return self.layout.declaration.columns

    def row(self, positions: Sequence[int] | None = None) -> logic.Atom:
        """Return a literal of the table with variables for some columns, `_` for the others."""
        arguments = tuple(
            logic.Variable(column.name)
            if positions is None or at in positions
            else logic.Wildcard()
            for at, column in enumerate(self.columns)
        )
        return logic.Atom(self.table, arguments)

    def forbid(
        self,
        kind: str,
        positions: Sequence[int],
        body: tuple[logic.BodyItem, ...],
        message: str,
        span: Span | None,
    ) -> None:
        """Add a relation of violations with some columns of the table, and an `.abort` on it."""
        name = self.unused_name(kind)
        columns = tuple(self.columns[at] for at in positions)
        self.declarations.append(Declaration(name, columns, storage="virtual", span=span))
        head = logic.Atom(name, tuple(logic.Variable(column.name) for column in columns))
        self.clauses.append(logic.Clause((head,), body, span, is_null_safe=True))
        self.reactions.append(Reaction("abort", name, message, span=span))

    def unused_name(self, kind: str) -> str:
        """Return a name for a relation of violations."""
        taken = {each.name for each in self.declarations}
        number = 1
        while f"{self.table}.{kind}{number}" in taken:
            number += 1
        return f"{self.table}.{kind}{number}"

    def program(self) -> Program:
        """Return all that was made."""
        return Program(
            declarations=tuple(self.declarations),
            clauses=tuple(self.clauses),
            reactions=tuple(self.reactions),
        )


def constraint_rules(layout: TableLayout, catalog: SqlCatalog) -> Program:
    """Return the rules of a table's constraints, except those of CHECK.

    Raises:
        InputError: a foreign key does not fit the table that it names.
    """
    rules = ConstraintRules(layout)
    _ranges(rules)
    for unique, span in layout.uniques.items():
        _unique(rules, unique, span)
    if layout.declaration.is_bag and layout.statement.duplicates is nodes.Duplicates.REFUSE:
        _no_copies(rules)
    for constraint in layout.statement.constraints:
        if isinstance(constraint, nodes.ForeignKey) and constraint.is_enforced:
            _foreign_key(rules, constraint, catalog)
    return rules.program()


def quote_message(text: str) -> str:
    """Return a text as a part of a message, in which braces stand for themselves."""
    return text.replace("{", "{{").replace("}", "}}")


def show_columns(columns: Sequence[Column]) -> str:
    """Return columns with placeholders for their values, for a message."""
    return ", ".join(
        f"{quote_message(column.name)} = {{{column.name}}}"
        if not set(column.name) & set("{}")
        else quote_message(column.name)
        for column in columns
    )


def _ranges(rules: ConstraintRules) -> None:
    """Add the bounds of integers and of the lengths of texts."""
    for at, column in enumerate(rules.layout.statement.columns):
        variable = logic.Variable(column.name.text)
        row = rules.row([at])
        type_ = column.type
        if type_.type.is_number and type_.bits < 64:
            least, greatest = -(1 << (type_.bits - 1)), (1 << (type_.bits - 1)) - 1
            outside: logic.BodyItem = logic.Disjunction(
                (
                    (logic.Comparison("<", variable, logic.Constant(least)),),
                    (logic.Comparison(">", variable, logic.Constant(greatest)),),
                )
            )
        elif type_.length is not None:
            length = logic.Functor("strlen", (variable,))
            outside = logic.Comparison(">", length, logic.Constant(type_.length))
        else:
            continue
        shown = show_columns([rules.columns[at]])
        message = f"{shown} does not fit {type_.written} in {quote_message(rules.table)}"
        rules.forbid("range", [at], (row, outside), message, column.name.span)


def _unique(rules: ConstraintRules, unique: tuple[int, ...], span: Span) -> None:
    """Add: no two rows, or copies of a row, agree in columns that are not null."""
    copies = logic.Variable(unused_variable(COPIES, rules.columns))
    total = logic.Variable(unused_variable("number", rules.columns))
    row = rules.row(unique)
    if rules.layout.declaration.is_bag:
        counted = logic.Atom(rows_name(rules.table), (*row.arguments, copies))
        number = logic.AggregateTerm("sum", copies, (counted,))
    else:
        number = logic.AggregateTerm("count", None, (row,))
    body = (
        row,
        *_not_null(rules, unique),
        logic.Comparison("=", total, number),
        logic.Comparison(">", total, logic.Constant(1)),
    )
    shown = show_columns([rules.columns[at] for at in unique])
    message = f"two rows of {quote_message(rules.table)} have {shown}"
    rules.forbid("unique", unique, body, message, span)


def _not_null(rules: ConstraintRules, positions: Sequence[int]) -> list[logic.BodyItem]:
    """Return the tests that columns are not null, where they may be."""
    return [
        logic.Comparison("=", logic.Variable(column.name), logic.Variable(column.name))
        for column in (rules.columns[at] for at in positions)
        if column.type.nullable
    ]


def _no_copies(rules: ConstraintRules) -> None:
    copies = logic.Variable(unused_variable(COPIES, rules.columns))
    every = range(len(rules.columns))
    counted = logic.Atom(rows_name(rules.table), (*rules.row().arguments, copies))
    body = (counted, logic.Comparison(">", copies, logic.Constant(1)))
    message = f"{quote_message(rules.table)} has a row twice: {show_columns(rules.columns)}"
    rules.forbid("duplicate", every, body, message, rules.layout.statement.span)


def unused_variable(name: str, columns: Iterable[Column | QueryColumn]) -> str:
    """Return a name for a variable that is not that of a column."""
    taken = {column.name for column in columns}
    while name in taken:
        name += "_"
    return name


# --- foreign keys ------------------------------------------------------------------------------


def find_table(catalog: SqlCatalog, name: str, span: Span | None) -> TableDefinition:
    """Return a relation that a statement names.

    Raises:
        InputError: there is none, or two differ in case only.
    """
    found = catalog.find(name)
    exact = [each for each in found if each.relation == name]
    if len(found) == 1 or len(exact) == 1:
        return (exact or list(found))[0]
    if found:
        both = " and ".join(f"`{each.relation}`" for each in found)
        raise InputError.of(
            "C1368", f"`{name}` can be {both}, which differ in case only.", span,
            "spell it as it is declared",
        )  # fmt: skip
    names = [each for each in catalog.names() if "." not in each]
    cure = suggest_name(name, names)
    if cure is None:
        listed = [f"`{each}`" for each in names[:12]]
        cure = f"there are {one_of(listed)}" if listed else "create it first"
    raise InputError.of("C1368", f"There is no relation `{name}`.", span, cure)


def _foreign_key(rules: ConstraintRules, key: nodes.ForeignKey, catalog: SqlCatalog) -> None:
    """Add: what is not null in the columns is in the other table; and what a delete does."""
    parent = find_table(catalog, key.table.text, key.table.span)
    own = rules.layout.positions(key.columns)
    names = [column.name for column in parent.columns]
    if key.targets:
        targets = tuple(find_column(parent.relation, names, each) for each in key.targets)
    else:
        targets = tuple(sorted(parent.keys[0])) if len(parent.keys) == 1 else ()
    if len(targets) != len(own):
        raise InputError.of(
            "C1369",
            f"The columns of this foreign key are {len(own)}, and it refers to {len(targets)}."
            if targets
            else f"`{parent.relation}` has no primary key to refer to.",
            key.span,
            f"name the columns of `{parent.relation}` after it, as many as before",
        )
    for at, target in zip(own, targets, strict=True):
        mine = rules.layout.statement.columns[at].type.type
        other = parent.columns[target].type
        if mine.domain != other.domain:
            raise InputError.of(
                "C1369",
                f"`{rules.columns[at].name}` is {sql_type(mine)}, and cannot refer to "
                f"`{parent.columns[target].name}` of `{parent.relation}`, which is "
                f"{sql_type(other)}.",
                key.span,
                "give both columns the same type",
            )
    at_target = {
        target: logic.Variable(rules.columns[at].name)
        for at, target in zip(own, targets, strict=True)
    }
    referred = logic.Atom(
        parent.relation,
        tuple(at_target.get(at, logic.Wildcard()) for at in range(len(parent.columns))),
    )
    body = (rules.row(own), *_not_null(rules, own), logic.Negation(referred))
    shown = show_columns([rules.columns[at] for at in own])
    message = (
        f"{quote_message(rules.table)} refers to {quote_message(parent.relation)} by {shown}, "
        "which is not there"
    )
    rules.forbid("foreign", own, body, message, key.span)
    if key.on_delete is not nodes.DeleteAction.REFUSE:
        _on_delete(rules, key, own, referred)


def _on_delete(
    rules: ConstraintRules, key: nodes.ForeignKey, own: tuple[int, ...], referred: logic.Atom
) -> None:
    """Add the triggers of CASCADE and SET NULL; of a table with copies, all are deleted."""
    is_bag, is_null = rules.layout.declaration.is_bag, key.on_delete is nodes.DeleteAction.SET_NULL
    if is_bag and is_null:
        raise InputError.of(
            "C1369",
            f"`{rules.table}` has no key, so its rows cannot be set to null.",
            key.span,
            "give it a `PRIMARY KEY`, or write `ON DELETE CASCADE`",
        )
    copies = logic.Variable(unused_variable(COPIES, rules.columns))
    row: tuple[logic.Term, ...] = (*rules.row().arguments, *([copies] if is_bag else ()))
    columns = rules.columns
    if is_bag:
        columns = (*columns, Column(copies.name, TypeName("number")))
    table = rows_name(rules.table) if is_bag else rules.table
    cascade = rules.unused_name("cascade")
    rules.declarations.append(Declaration(cascade, columns, span=key.span))
    deleted = logic.Atom(referred.relation, referred.arguments, sign="-")
    follows = logic.Atom(cascade, row)
    body = (deleted, logic.Atom(table, row), logic.Negation(referred))
    rules.clauses.append(logic.Clause((follows,), body, key.span, is_null_safe=True))
    heads = [logic.Atom(table, row, sign="-")]
    if is_null:
        for at in own:
            if not rules.columns[at].type.nullable:
                raise InputError.of(
                    "C1369",
                    f"`{rules.columns[at].name}` is NOT NULL, so it cannot be set to null.",
                    key.span,
                    "write `ON DELETE CASCADE`, or leave out `NOT NULL`",
                )
        arguments = tuple(
            logic.Constant(None) if at in own else each for at, each in enumerate(row)
        )
        heads.append(logic.Atom(rules.table, arguments, sign="+"))
    for head in heads:
        rules.clauses.append(logic.Clause((head,), (follows,), key.span, is_null_safe=True))
