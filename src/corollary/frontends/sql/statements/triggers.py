"""CREATE TRIGGER as rules: event predicates for the rows before and after, and what they cause.

| SQL | rules |
|---|---|
| `REFERENCING NEW TABLE n` of `AFTER INSERT ON t` | `trigger.new(X) := +t(X).` |
| `OLD TABLE o` of `AFTER DELETE` | `trigger.old(X) := -t(X).` |
| both, of `AFTER UPDATE`, K the key | `trigger.new(K, X) := +t(K, X), -t(K, _).`, and mirrored |
| that it was an INSERT, a DELETE … | `trigger.fired() := +t(_).` |
| `INSERT INTO u SELECT …` | `trigger(…) := the query.` `+u(…) := trigger(…), trigger.fired().` |
| `DELETE FROM u WHERE c` | `trigger(…) := u(…), c.` `-u(…) := trigger(…), trigger.fired().` |
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from corollary.analysis.bags import rows_name
from corollary.analysis.traverse import atom_uses
from corollary.core import logic
from corollary.core.program import Column, Declaration, Program, TypeName
from corollary.errors import InputError
from corollary.frontends.sql.binder.bind import Finish, bind_query
from corollary.frontends.sql.binder.widening import finished
from corollary.frontends.sql.catalog import SqlCatalog, TableDefinition
from corollary.frontends.sql.lowering.queries import LoweredView, lower_view
from corollary.frontends.sql.query_tree import QueryColumn
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.constraints import COPIES, find_table, unused_variable
from corollary.frontends.sql.statements.writes import rows_to_delete, rows_to_insert
from corollary.source import SourceFile, Span


def compile_trigger(
    statement: nodes.CreateTrigger, catalog: SqlCatalog, file: SourceFile
) -> Program:
    """Return the rules of a trigger.

    Raises:
        InputError: it does not fit the tables that it names.
    """
    table = find_table(catalog, statement.table.text, statement.table.span)
    seen = catalog.copy()
    names: dict[str, str] = {}
    made = _transition_tables(statement, table, seen, names)
    target = find_table(catalog, statement.action.table.text, statement.action.table.span)
    name = statement.name.text
    query, finish = _action_query(statement, target, names)
    bound = bind_query(query, seen, file, finish=finish)
    lowered = lower_view(name, bound, is_materialized=False)
    _refuse_nulls(statement, target, lowered.columns)
    events = _events(made, lowered.clauses)
    declarations, clauses = _as_events(name, lowered)
    return made + Program(
        declarations=tuple(
            replace(each, storage="") if each.name in events or each.is_bag else each
            for each in declarations
        ),
        clauses=(*clauses, *_effects(statement, table, target, lowered)),
        warnings=tuple(lowered.warnings),
    )


def _as_events(
    name: str, lowered: LoweredView
) -> tuple[tuple[Declaration, ...], tuple[logic.Clause, ...]]:
    """Return the declarations and rules of a trigger's rows; copies are not stored, but counted."""
    if not lowered.is_bag:
        return lowered.declarations, lowered.clauses
    columns = tuple(Column(each.name, TypeName.of(each.type)) for each in lowered.columns)
    counted = Declaration(
        rows_name(name), (*columns, Column(unused_variable(COPIES, columns), TypeName("number")))
    )
    others = (each for each in lowered.declarations if each.name != name)
    row = tuple(logic.Variable(each.name) for each in columns)
    projection = logic.Clause(
        (logic.Atom(name, row),),
        (logic.Atom(rows_name(name), (*row, logic.Wildcard())),),
        is_null_safe=True,
    )
    return (*others, counted, Declaration(name, columns)), (*lowered.clauses, projection)


def _transition_tables(
    statement: nodes.CreateTrigger,
    table: TableDefinition,
    catalog: SqlCatalog,
    names: dict[str, str],
) -> Program:
    """Return the rules of the rows before and after; add both to the catalog and their names."""
    is_update = statement.event is nodes.TriggerEvent.UPDATE
    wanted = {"old": (statement.old, "-"), "new": (statement.new, "+")}
    if statement.event is nodes.TriggerEvent.INSERT and statement.old is not None:
        raise _misfit("After an INSERT there are no rows before.", statement.old.span, "NEW")
    if statement.event is nodes.TriggerEvent.DELETE and statement.new is not None:
        raise _misfit("After a DELETE there are no rows after.", statement.new.span, "OLD")
    if table.is_bag:
        raise InputError.of(
            "C1373",
            f"`{table.relation}` has no key, and triggers react to rows of tables that have one.",
            statement.table.span,
            "give it a `PRIMARY KEY`",
        )
    key = table.keys[0] if table.keys else frozenset()
    if is_update and not key:
        raise InputError.of(
            "C1373",
            f"`{table.relation}` has no key, so it is not known which row was updated.",
            statement.table.span,
            "give it a `PRIMARY KEY`, or write a trigger AFTER INSERT and one AFTER DELETE",
        )
    made = Program()
    for suffix, (name, sign) in wanted.items():
        if name is None:
            continue
        relation = f"{statement.name.text}.{suffix}"
        columns = tuple(Column(each.name, TypeName.of(each.type)) for each in table.columns)
        row = tuple(logic.Variable(each.name) for each in table.columns)
        body: tuple[logic.BodyItem, ...] = (logic.Atom(table.relation, row, sign=sign),)
        if is_update:
            other = tuple(each if at in key else logic.Wildcard() for at, each in enumerate(row))
            body += (logic.Atom(table.relation, other, sign="+" if sign == "-" else "-"),)
        rule = logic.Clause((logic.Atom(relation, row),), body, statement.span, is_null_safe=True)
        made += Program(
            declarations=(Declaration(relation, columns, span=name.span),), clauses=(rule,)
        )
        catalog.add(replace(table, relation=relation))
        names[name.text.lower()] = relation
    return made


def _with_relations(query: exp.Expr, names: dict[str, str]) -> exp.Expr:
    """Return a query that reads the event predicates in place of the transition tables."""

    def renamed(node: exp.Expr) -> exp.Expr:
        name = node.name.lower() if isinstance(node, exp.Table) else ""
        if name not in names or node.args.get("db"):
            return node
        alias = node.args.get("alias") or exp.TableAlias(this=node.this.copy())
        found = exp.Table(this=exp.to_identifier(names[name], quoted=True), alias=alias)
        found.meta.update(node.meta)
        return found

    return query.transform(renamed)


def _misfit(message: str, span: Span, word: str) -> InputError:
    return InputError.of("C1373", message, span, f"write `REFERENCING {word} TABLE`")


def _action_query(
    statement: nodes.CreateTrigger,
    target: TableDefinition,
    names: dict[str, str],
) -> tuple[exp.Expr, Finish]:
    """Return the query for the rows, with all columns, that are inserted or deleted."""
    action = statement.action
    if isinstance(action, nodes.Insert):
        rows = _with_relations(_when(statement, action.query), names)
        return rows, rows_to_insert(action, target)
    return _with_relations(_when(statement, rows_to_delete(action, target)), names), finished


def _when(statement: nodes.CreateTrigger, rows: exp.Expr) -> exp.Expr:
    """Return the rows of a query, if the condition of a trigger holds."""
    if statement.condition is None:
        return rows
    alias = exp.TableAlias(this=exp.to_identifier("given"))
    every = exp.select("*").from_(exp.Subquery(this=rows, alias=alias))
    return every.where(exp.paren(statement.condition))


def _events(made: Program, clauses: tuple[logic.Clause, ...]) -> set[str]:
    """Return the relations that depend on the rows before and after."""
    events = {each.name for each in made.declarations}
    size = 0
    while size != len(events):
        size = len(events)
        for clause in clauses:
            if any(use.atom.relation in events for use in atom_uses(clause)):
                events |= {head.relation for head in clause.heads}
    return events


def _refuse_nulls(
    statement: nodes.CreateTrigger, target: TableDefinition, given: Sequence[QueryColumn]
) -> None:
    """Refuse values that may be null for columns that are not."""
    for column, value in zip(target.columns, given, strict=True):
        if value.type.nullable and not column.type.nullable:
            raise InputError.of(
                "C1374",
                f"`{column.name}` of `{target.relation}` is NOT NULL, and the trigger may give it "
                "null.",
                statement.action.span,
                "leave such rows out, with `WHERE … IS NOT NULL`, or write `COALESCE(…, 0)`",
            )


def _effects(
    statement: nodes.CreateTrigger,
    table: TableDefinition,
    target: TableDefinition,
    lowered: LoweredView,
) -> tuple[logic.Clause, ...]:
    """Return the rules that change a table if what the trigger reacts to has happened.

    Of a table with copies, an INSERT adds as many as there are, and a DELETE removes all.
    """
    name, is_insert = statement.name.text, isinstance(statement.action, nodes.Insert)
    row = tuple(logic.Variable(each.name) for each in lowered.columns)
    copies = logic.Variable(unused_variable(COPIES, lowered.columns))
    cause, effect = logic.Atom(name, row), target.relation
    body: tuple[logic.BodyItem, ...] = (cause,)
    head = row
    if target.is_bag and not is_insert:
        head, effect = (*row, copies), rows_name(effect)
        body = (cause, logic.Atom(effect, head))
    elif target.is_bag and lowered.is_bag:
        head, effect = (*row, copies), rows_name(effect)
        body = (logic.Atom(rows_name(name), head),)
    fired = logic.Atom(f"{name}.fired", ())
    changed = tuple(
        logic.Clause((fired,), items, statement.span, is_null_safe=True)
        for items in _happened(statement, table)
    )
    atom = logic.Atom(effect, head, sign="+" if is_insert else "-")
    return (*changed, logic.Clause((atom,), (*body, fired), statement.span, is_null_safe=True))


def _happened(
    statement: nodes.CreateTrigger, table: TableDefinition
) -> tuple[tuple[logic.BodyItem, ...], ...]:
    """Return the bodies that hold if what a trigger reacts to has happened."""
    some = tuple(logic.Wildcard() for _ in table.columns)
    gone, came = (logic.Atom(table.relation, some, sign=sign) for sign in "-+")
    match statement.event:
        case nodes.TriggerEvent.INSERT:
            return ((came,),)
        case nodes.TriggerEvent.DELETE:
            return ((gone,),)
        case nodes.TriggerEvent.UPDATE:
            key = {at: logic.Variable(table.columns[at].name) for at in table.keys[0]}
            same = tuple(key.get(at, logic.Wildcard()) for at in range(len(some)))
            both = tuple(logic.Atom(table.relation, same, sign=sign) for sign in "-+")
            return (both,)
