"""A commit that is kept: the state before it, and its changes of base tuples and rules, one by one.

Parts of the changes can be done again on the state before, without triggers and constraints: what
triggers did is among the changes.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from corollary.core.arrow import from_python, sort_rows, to_python
from corollary.core.logic import Clause
from corollary.core.monitoring_optimisations import MonitoringOptimisation
from corollary.core.plans import WORKING_SEPARATOR
from corollary.core.printer import print_clause
from corollary.core.program import Directive, MarkedRelation, NormalProgram, Program
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.database.engines import create_engine
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.state import DatabaseState
from corollary.database.warehouse_store import WarehouseStore
from corollary.provenance.nodes import BaseChange
from corollary.provenance.query_state import QueryState, query_state
from corollary.provenance.trials import insertable_relations, user_names
from corollary.warehouse.copies import difference, minus

Edit = Callable[[Program], Program]

EXPLAINED_WITHOUT = frozenset(
    (MonitoringOptimisation.SPECIALISATION, MonitoringOptimisation.SHARING)
)
"""Optimisations that replace the user's views and events by others."""


@dataclass(frozen=True, slots=True)
class RecordedCommit:
    """A commit, and the state before it.

    Attributes:
        number: of the commit.
        before: the state before it, in memory; its triggers and constraints are switched off.
        after: the program that it has put into force.
        tables: the changes of base tuples, by sign and by the user's name of the relation.
        clauses: the rules that were added or removed, by their change, in which the text of a rule
            stands for the relation.
        was: the program before, with its triggers and constraints.
    """

    number: int
    before: DatabaseState
    after: LoadedProgram
    tables: Mapping[tuple[str, str], pa.Table]
    clauses: Mapping[BaseChange, Clause]
    was: LoadedProgram

    @property
    def triggers(self) -> Mapping[str, MarkedRelation]:
        """The triggers of the state before, with the base relation and sign of each."""
        return self.was.normal.active.triggers

    def asked_before(self) -> QueryState:
        """Return the state before the commit, as questions see it."""
        return replace(query_state(self.before), written=self.was.program)

    def asked_after(self, asked: QueryState) -> QueryState:
        """Return a state that changes of the commit have made, with its rules and number."""
        after = self.after.program
        gone = tuple(clause for each, clause in self.clauses.items() if each.op == "-")
        written = replace(after, clauses=(*after.clauses, *gone))
        return replace(asked, written=written, commit=self.number)

    def count(self, relations: Collection[str]) -> int:
        """Return how many base tuples of some relations it changes."""
        return sum(len(each) for (_, name), each in self.tables.items() if name in relations)

    def members(self, relations: Collection[str]) -> list[BaseChange]:
        """Return its changes of base tuples of some relations, one by one, in order."""
        found = []
        for (op, name), table in sorted(self.tables.items(), key=lambda each: each[0]):
            if name in relations:
                types = self.types_of(name)
                found += [BaseChange(op, name, row, types) for row in to_python(sort_rows(table))]
        return found

    def types_of(self, relation: str) -> tuple[Type, ...]:
        """Return the types of a relation that it changes."""
        return self.after.normal.relations[relation].types

    def operations(self, without: BaseChange | None = None) -> Iterator[tuple[str, str, pa.Table]]:
        """Yield all changes of base tuples, as sign, relation and rows, perhaps without one."""
        for (op, name), table in self.tables.items():
            rows = table
            if without is not None and (without.op, without.relation) == (op, name):
                shape = replace(self.after.normal.relations[name], types=without.types)
                if name in self.after.normal.bags:  # one copy of it
                    copies = to_python(table)
                    copies.remove(without.row)
                    rows = from_python(copies, shape)
                else:
                    rows = minus(table, from_python([without.row], shape))
            yield op, name, rows

    def edit(self, chosen: Collection[BaseChange]) -> Edit | None:
        """Return the edit of the program that some changes make; None if they need none."""
        before, after = passive(self.before.program), passive(self.after.program)
        rules = {each: self.clauses[each] for each in chosen if each in self.clauses}
        inputs = self._inputs()
        if declarations_of(before) == declarations_of(after) and not rules and not inputs:
            return None
        gone = {print_clause(clause) for each, clause in rules.items() if each.op == "-"}
        clauses = [each for each in before.clauses if print_clause(each) not in gone]
        clauses += [clause for each, clause in rules.items() if each.op == "+"]
        declared = {each.name for each in after.declarations}
        kept = tuple(each for each in before.declarations if each.name not in declared)
        program = replace(
            after,
            declarations=(*after.declarations, *kept),
            clauses=tuple(clauses),
            directives=(*after.directives, *inputs),
        )
        return lambda _: program

    def _inputs(self) -> tuple[Directive, ...]:
        """Return directives that let relations with rules have the facts that the text got."""
        with_rules = {
            head.relation for each in self.after.program.clauses if each.body for head in each.heads
        }
        writable = set(insertable_relations(self.before.loaded.normal).values())
        added = {name for op, name in self.tables if op == "+"}
        return tuple(Directive("input", name) for name in sorted(added & with_rules - writable))


def recorded_commit(store: WarehouseStore, number: int, now: DatabaseState) -> RecordedCommit:
    """Return a commit of a warehouse, and the state before it.

    Args:
        store: of the warehouse.
        number: of the commit.
        now: the present state, whose limits count.

    Raises:
        WarehouseError: the commit or the one before is not kept.
    """
    commit = store.warehouse.commit_at(number)
    assert commit is not None
    before = DatabaseState(
        create_engine(),
        limits=now.limits,
        console=now.console,
        frames=now.frames,
        without=EXPLAINED_WITHOUT,
    )
    before.is_trial = True
    if number > 1:
        WarehouseStore(store.warehouse).restore(before, number - 1)
    after = store.program_at(commit)
    was = before.loaded
    _switch_off(before)
    tables = dict(_changes_of_tuples(store, number, before, after.normal))
    clauses = dict(_changes_of_rules(passive(was.program), passive(after.program)))
    return RecordedCommit(number, before, after, tables, clauses, was)


def passive(program: Program) -> Program:
    """Return a program without triggers, alerts and constraints."""
    clauses = tuple(each for each in program.clauses if not any(head.sign for head in each.heads))
    return replace(program, clauses=clauses, reactions=())


def declarations_of(program: Program) -> Program:
    """Return a program without its clauses."""
    return replace(program, clauses=(), sources=(), warnings=())


def _switch_off(state: DatabaseState) -> None:
    loaded = state.loaded
    normal = replace(loaded.normal, active=replace(loaded.normal.active, triggers={}, reactions=()))
    state.loaded = replace(loaded, program=passive(loaded.program), normal=normal)
    state.planner.drop_plans(normal)
    state.declare_event_relations()


def _changes_of_tuples(
    store: WarehouseStore, number: int, before: DatabaseState, after: NormalProgram
) -> Iterator[tuple[tuple[str, str], pa.Table]]:
    """Yield the changes of base relations, and of copies in bags."""
    users = user_names(after)
    counts = set(after.bags.values())
    for _, stored in store.warehouse.catalog.changes(number - 1, number):
        name = stored.relation
        relation = after.relations.get(name)
        is_base = relation is not None and not relation.is_derived
        if relation is None or not is_base or WORKING_SEPARATOR in name or name in counts:
            continue
        delta = store.warehouse.read_change(stored)
        added, removed = delta.added, delta.removed
        known = before.loaded.normal.relations.get(name)
        if delta.is_full and known is not None and known.types == relation.types:
            added, removed = difference(before.engine.read(name), added)
        for op, table in (("-", removed), ("+", added)):
            if len(table):
                yield (op, users.get(name, name)), table
    changes = store.changes_at(number) if counts else {}
    for bag, rows_relation in after.bags.items():
        if bag in changes and not after.relations[rows_relation].is_derived:
            for op, table in (("-", changes[bag].removed), ("+", changes[bag].added)):
                if len(table):
                    yield (op, bag), table


def _changes_of_rules(before: Program, after: Program) -> Iterator[tuple[BaseChange, Clause]]:
    was, now = (
        {print_clause(each): each for each in program.clauses if each.body}
        for program in (before, after)
    )
    for op, rules, others in (("-", was, now), ("+", now, was)):
        for text, clause in rules.items():
            if text not in others:
                yield BaseChange(op, text, (), ()), clause
