"""The statements that a program keeps: who made which rules, and edits by further statements.

A program keeps each statement in a directive, `.sql v(text="CREATE VIEW v AS …")`. What a statement
makes has its name, or begins with its name and a point. Tables stay as they are declared; views,
assertions, alerts and triggers are compiled again after every edit that takes something away or
replaces it, because a view that is read may have other columns, or copies of rows, then. Statements
that only add something are compiled with the views that they read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from sqlglot import exp

from corollary.analysis import replicas
from corollary.core.logic import Atom, Clause
from corollary.core.program import Program, owner_of, sql_texts
from corollary.core.table_options import PROPERTIES
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.frontends.sql.parse import offsets_of, without_places
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.alter_table import altered_table, follow_references
from corollary.frontends.sql.statements.definitions import (
    PlacedDefinition,
    compile_definitions,
    free_table_nodes,
    free_tables,
)
from corollary.frontends.sql.statements.parser import parse_statements
from corollary.frontends.sql.statements.table_text import print_table, quoted
from corollary.frontends.sql.statements.tokens import SqlName
from corollary.source import SourceFile

_KINDS = {
    nodes.DroppedKind.TABLE: nodes.CreateTable,
    nodes.DroppedKind.VIEW: nodes.CreateView,
    nodes.DroppedKind.ASSERTION: nodes.CreateAssertion,
    nodes.DroppedKind.ALERT: nodes.CreateAlert,
    nodes.DroppedKind.TRIGGER: nodes.CreateTrigger,
    nodes.DroppedKind.FUNCTION: nodes.CreateFunction,
}


def kept_definitions(program: Program) -> list[PlacedDefinition]:
    """Return the statements that a program keeps, parsed."""
    return _parse_kept(sql_texts(program))


def _parse_kept(texts: Mapping[str, str]) -> list[PlacedDefinition]:
    found: list[PlacedDefinition] = []
    for name, text in texts.items():
        file = SourceFile.of_statement(name, text)
        found += [
            PlacedDefinition(statement, file)
            for statement in parse_statements(file)
            if isinstance(statement, nodes.Definition)
        ]
    return found


def column_defaults(program: Program, relation: str) -> Mapping[str, exp.Expr]:
    """Return the defaults of a table, by the names of its columns in small letters."""
    text = sql_texts(program).get(relation, "")
    return _defaults_of(text) if "DEFAULT" in text.upper() else {}


@lru_cache(maxsize=64)
def _defaults_of(text: str) -> Mapping[str, exp.Expr]:
    (definition,) = _parse_kept({"": text})
    table, found = definition.statement, {}
    for column in table.columns if isinstance(table, nodes.CreateTable) else ():
        if column.default is not None and column.default.value is not None:
            found[column.name.text.lower()] = without_places(column.default.value)
    return found


def without_owned(program: Program, names: Iterable[str]) -> Program:
    """Return a program without what the statements of some names have made."""
    gone, owners = frozenset(names), sql_texts(program)

    def stays(relation: str) -> bool:
        return owner_of(relation, owners) not in gone

    def clause_stays(clause: Clause) -> bool:
        match clause:
            case Clause(heads=(Atom(sign="+" | "-"),), body=(Atom(relation=cause), *_)):
                return stays(cause)  # the rule of a trigger reads what the trigger owns
            case _:
                return all(stays(head.relation) for head in clause.heads if not head.sign)

    return replace(
        program,
        declarations=tuple(each for each in program.declarations if stays(each.name)),
        dependencies=tuple(each for each in program.dependencies if stays(each.relation)),
        clauses=tuple(each for each in program.clauses if clause_stays(each)),
        directives=tuple(each for each in program.directives if stays(each.relation)),
        reactions=tuple(each for each in program.reactions if stays(each.relation)),
    )


def altered_view(program: Program, alteration: nodes.AlterView) -> PlacedDefinition:
    """Return the statement of a view with another query, materialized if it is.

    Raises:
        InputError: there is no such view.
    """
    name = alteration.name.text
    for each in kept_definitions(program):
        view = each.statement
        if isinstance(view, nodes.CreateView) and view.name.text.lower() == name.lower():
            kind = "MATERIALIZED VIEW" if view.is_materialized else "VIEW"
            given, names = dict(view.parameters), {**PROPERTIES, **replicas.PROPERTIES}
            listed = ", ".join(f"'{k}' = '{given[v]}'" for k, v in names.items() if v in given)
            options = f"TBLPROPERTIES ({listed}) " if listed else ""
            text = f"CREATE OR REPLACE {kind} `{view.name.text}` {options}{alteration.query}"
            (found,) = _parse_kept({view.name.text: text})
            return found
    message = f"There is no view `{name}` that SQL made."
    raise InputError.of("C1372", message, alteration.name.span, "create it with `CREATE VIEW`")


@dataclass(frozen=True, slots=True)
class AlteredStatements:
    """The statements of a program after an ALTER TABLE.

    Attributes:
        rest: the program without what statements have made.
    """

    alter: nodes.AlterTable
    before: nodes.CreateTable
    after: nodes.CreateTable
    definitions: tuple[PlacedDefinition, ...]
    rest: Program

    @classmethod
    def of(cls, program: Program, alter: nodes.AlterTable) -> "AlteredStatements":
        """Return the statements of a program after an ALTER TABLE.

        Raises:
            InputError: it does not fit the table, or there is none.
        """
        kept = kept_definitions(program)
        before = _kept_table(program, kept, alter.name)
        after = altered_table(before, alter)
        names = {each.name.lower() for each in kept}
        names |= {each.name.lower() for each in program.declarations}
        if alter.new_name is not None and alter.new_name.text.lower() in names:
            text = f"There is a `{alter.new_name.text}` already; case does not matter."
            raise InputError.of("C1371", text, alter.new_name.span, "give it another name")
        definitions: list[PlacedDefinition] = []
        for each in kept:
            made = each.statement
            if isinstance(made, nodes.CreateTable):
                table = follow_references(after if made is before else made, alter)
                if table != made:
                    [each] = _parse_kept({table.name.text: print_table(table)})
            elif alter.new_name is not None:
                [each] = _parse_kept({each.name: _with_renamed(each, alter)})
            definitions.append(each)
        found = next(each for each in definitions if each.name == after.name.text)
        assert isinstance(found.statement, nodes.CreateTable)
        rest = without_owned(program, (each.name for each in kept))
        return cls(alter, before, found.statement, tuple(definitions), rest)

    def compile(self, rest: Program) -> Program:
        """Return the program with the rest, which follows the table.

        Raises:
            InputError: a statement cannot follow.
        """
        try:
            return rest + compile_definitions(self.definitions, rest)
        except InputError as error:
            stuck = [
                (each.name, problem.message)
                for each in self.definitions
                for problem in error.diagnostics
                if problem.span is not None and problem.span.file == each.file
                if each.statement is not self.after
            ]
            if not stuck:
                raise
            names = list(dict.fromkeys(f"`{name}`" for name, _ in stuck))
            raise InputError.of(
                "C1381",
                f"{' and '.join(names)} cannot follow this change of `{self.before.name.text}`: "
                f"{stuck[0][1]}",
                self.alter.span,
                f"drop {' and '.join(names)} first, and create it again afterwards, as it is to be",
            ) from None


def _kept_table(
    program: Program, kept: Iterable[PlacedDefinition], name: SqlName
) -> nodes.CreateTable:
    key = name.text.lower()
    for each in kept:
        if each.name.lower() == key and isinstance(each.statement, nodes.CreateTable):
            return each.statement
    is_view = any(each.name.lower() == key for each in kept)
    is_declared = any(each.name.lower() == key for each in program.declarations)
    cure = "create it with `CREATE TABLE`"
    if is_view:
        cure = "a view gets another query by `ALTER VIEW v AS …`"
    elif is_declared:
        cure = f"it is declared in Datalog: change it with `corollary alter W {name.text} …`"
    raise InputError.of("C1372", f"There is no table `{name.text}` that SQL made.", name.span, cure)


def _with_renamed(each: PlacedDefinition, alter: nodes.AlterTable) -> str:
    """Return the text of a statement that reads a table by its new name, as `new AS old`."""
    statement, text = each.statement, each.statement.text
    trees = [getattr(statement, name, None) for name in ("query", "condition")]
    found = [
        node
        for tree in trees
        if isinstance(tree, exp.Expr)
        for node in free_table_nodes(tree)
        if not node.args.get("db") and node.name.lower() == alter.name.text.lower()
    ]
    places = {offsets_of(node.this): node for node in found}
    for place, node in sorted(places.items(), reverse=True, key=lambda each: each[0] or (0, 0)):
        if place is not None and alter.new_name is not None:
            alias = "" if node.alias else f" AS {each.file.text[slice(*place)]}"
            text = text[: place[0]] + quoted(alter.new_name) + alias + text[place[1] :]
    return text


def edit_program(program: Program, edits: Sequence[PlacedDefinition | nodes.Drop]) -> Program:
    """Return a program after further statements; the same one if they change nothing.

    Raises:
        InputError: a statement does not fit the program.
    """
    added = _added_definitions(program, edits)
    if added is not None:
        return _with_added(program, added)
    every = {each.name.lower(): each for each in kept_definitions(program)}
    tables = {key for key, each in every.items() if isinstance(each.statement, nodes.CreateTable)}
    rest = without_owned(program, (every[key].name for key in every if key not in tables))
    kept = {key: each for key, each in every.items() if key not in tables}
    new: list[PlacedDefinition] = []
    is_changed = False
    for edit in edits:
        if isinstance(edit, nodes.Drop):
            is_changed = is_changed or edit.name.text.lower() in every
            rest = _drop(edit, rest, every, kept, new)
            continue
        key = edit.name.lower()
        before = every.get(key)
        if before is not None and _is_same(before, edit):
            continue
        if nodes.replaces(edit.statement) and key in kept:
            del kept[key]
        every.setdefault(key, edit)
        new.append(edit)
        is_changed = True
    if not is_changed:
        return program
    return rest + compile_definitions((*kept.values(), *new), rest)


def recompile(program: Program) -> Program:
    """Return a program whose statements are compiled as this version does, tables, too."""
    kept = kept_definitions(program)
    rest = without_owned(program, (each.name for each in kept))
    return rest + compile_definitions(kept, rest) if kept else program


def _added_definitions(
    program: Program, edits: Iterable[PlacedDefinition | nodes.Drop]
) -> list[PlacedDefinition] | None:
    """Return the edits if they only define something whose name no kept statement has."""
    known = {name.lower() for name in sql_texts(program)}
    added = [
        each
        for each in edits
        if isinstance(each, PlacedDefinition)
        and not isinstance(each.statement, nodes.CreateTrigger)
        and each.name.lower() not in known
    ]
    return added if added and len(added) == len([*edits]) else None


def _with_added(program: Program, added: Sequence[PlacedDefinition]) -> Program:
    """Return a program with further statements.

    The views that they read are compiled with them: their declarations do not say all about them.
    """
    texts = {name.lower(): (name, text) for name, text in sql_texts(program).items()}
    needed: dict[str, PlacedDefinition] = {}
    waiting = {name for each in added for name in _tables_of(each.statement)}
    while waiting:
        found = dict(texts[name] for name in waiting if name in texts and name not in needed)
        parsed = [
            each for each in _parse_kept(found) if isinstance(each.statement, nodes.CreateView)
        ]
        needed |= {each.name.lower(): each for each in parsed}
        waiting = {name for each in parsed for name in _tables_of(each.statement)} - {*needed}
    rest = without_owned(program, (each.name for each in needed.values()))
    return rest + compile_definitions((*needed.values(), *added), rest)


def _is_same(before: PlacedDefinition, edit: PlacedDefinition) -> bool:
    """Whether a statement says what is there already, or yields to it."""
    if nodes.yields(edit.statement):
        return True
    return before.statement.text.split() == edit.statement.text.split()


def _drop(
    drop: nodes.Drop,
    rest: Program,
    every: dict[str, PlacedDefinition],
    kept: dict[str, PlacedDefinition],
    new: list[PlacedDefinition],
) -> Program:
    """Take a statement out of those that count; return the other relations without it."""
    key = drop.name.text.lower()
    found = every.get(key)
    if found is None:
        if drop.if_exists:
            return rest
        declared = any(each.name.lower() == key for each in rest.declarations)
        raise InputError.of(
            "C1372",
            f"There is no {drop.kind} `{drop.name.text}` that SQL made.",
            drop.name.span,
            "it is declared in Datalog: edit the program"
            if declared
            else "write `IF EXISTS` if that is no error",
        )
    kind = _dropped_kind(found)
    if kind is not drop.kind:
        raise InputError.of(
            "C1372",
            f"`{found.name}` is not a {drop.kind}.",
            drop.name.span,
            f"write `DROP {kind.upper()} {found.name}`",
        )
    readers = [
        other
        for other in ({**every} | {each.name.lower(): each for each in new}).values()
        if other.name.lower() != key and key in _tables_of(other.statement)
    ]
    if readers and not drop.cascades:
        words = {True: "refers to it", False: "reads it"}
        listed = " and ".join(
            f"`{each.name}` {words[isinstance(each.statement, nodes.CreateTable)]}"
            for each in readers
        )
        raise InputError.of(
            "C1372",
            f"`{found.name}` cannot be dropped: {listed}.",
            drop.name.span,
            f"drop {' and '.join(f'`{each.name}`' for each in readers)} first, or write `CASCADE`: "
            "views that read it are dropped, too, and tables lose their foreign keys",
        )
    for other in readers:
        if isinstance(other.statement, nodes.CreateTable):
            [free] = _parse_kept(
                {other.name: print_table(_without_reference(other.statement, key))}
            )
            rest = without_owned(rest, [other.name])
            every[other.name.lower()] = free
            new[:] = [each for each in new if each.name != other.name] + [free]
            continue
        name = SqlName(other.name, drop.name.span)
        dependent = replace(drop, kind=_dropped_kind(other), name=name, if_exists=True)
        rest = _drop(dependent, rest, every, kept, new)
    kept.pop(key, None)
    every.pop(key, None)
    new[:] = [each for each in new if each.name.lower() != key]
    return without_owned(rest, [found.name])


def _without_reference(table: nodes.CreateTable, key: str) -> nodes.CreateTable:
    """Return a table without its foreign keys to another one."""
    stays = [
        each
        for each in table.constraints
        if not isinstance(each, nodes.ForeignKey) or each.table.text.lower() != key
    ]
    return replace(table, constraints=tuple(stays))


def _dropped_kind(found: PlacedDefinition) -> nodes.DroppedKind:
    """Return what a DROP calls a statement's relation."""
    return next(kind for kind, made in _KINDS.items() if isinstance(found.statement, made))


def _tables_of(statement: nodes.Definition) -> set[str]:
    """Return the relations that a statement reads, in small letters."""
    match statement:
        case nodes.CreateView(query=query) | nodes.CreateAlert(query=query):
            return {*free_tables(query), *_calls(query)}
        case nodes.CreateAssertion(condition=condition):
            return {*free_tables(condition), *_calls(condition)}
        case nodes.CreateFunction(body=body):
            return _calls(body)
        case nodes.CreateTrigger(table=table, action=action):
            return {table.text.lower(), action.table.text.lower()}
        case nodes.CreateTable(constraints=constraints):
            return {
                each.table.text.lower()
                for each in constraints
                if isinstance(each, nodes.ForeignKey)
            }


def _calls(tree: exp.Expr) -> set[str]:
    """Return the functions that a query calls and that may be of statements, in small letters."""
    return {each.name.lower() for each in tree.find_all(exp.Anonymous)}
