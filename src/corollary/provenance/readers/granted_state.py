"""A database in memory that has what a reader may see: granted tuples, and visible rules.

A tuple that visible rules do not prove is a leaf: it is given, and nothing is said of what is under
it. Which tuples these are follows from the granted relations alone:

| leaves      | are the tuples                                                              |
|-------------|-----------------------------------------------------------------------------|
| unsupported | without an instance of a visible rule in the granted relations              |
| circular    | of a stratum that visible rules do not derive: they only need each other    |

So two databases that are equal in what was granted have equal leaves, and give equal answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from corollary.analysis.strata import strata
from corollary.core.logic import Clause
from corollary.core.program import Directive, Program
from corollary.data_class import dataclass
from corollary.database.access.reader import Reader
from corollary.database.database import Database, state_of
from corollary.database.opening import open_database
from corollary.provenance.readers.visible_program import VisibleProgram
from corollary.rewrite.translation_unit import unused_name
from corollary.warehouse.set_difference import minus

if TYPE_CHECKING:
    import pyarrow as pa

    Tables = Mapping[str, pa.Table]


@dataclass(frozen=True, slots=True)
class GrantedState:
    """A database of what a reader may see.

    Attributes:
        database: it.
        numbers: the number of each of its rules among all rules that the reader may see.
    """

    database: Database
    numbers: Mapping[int, int]


@contextmanager
def granted_state(reader: Reader, relations: Sequence[str]) -> "Iterator[GrantedState]":
    """Give a database in memory with what a reader may see of relations, and of those below them.

    Args:
        reader: the reader.
        relations: that a question names; they were granted.
    """
    visible = VisibleProgram(state_of(reader).program, reader.granted)
    rules, needed = visible.reached_from(relations)
    tables = {name: reader.relation(name).arrow() for name in needed if not visible.made(name)}
    numbers = {number: visible.rules.index(rule) + 1 for number, rule in enumerate(rules, 1)}
    declared = Program(
        types=visible.program.types,
        declarations=visible.declarations(needed),
        functors=visible.program.functors,
    )
    derived = {_owner(head.relation, tables) for rule in rules for head in rule.heads}
    given = {name: table for name, table in tables.items() if name not in derived}
    bags = {each.name for each in declared.declarations if each.is_bag}
    open_ = {name: tables[name] for name in sorted(derived & tables.keys() - bags)}
    leaves = _unsupported(declared, rules, tables, open_)
    statements = tuple(
        each
        for each in visible.program.directives
        if each.name == "sql" and each.relation in derived
    )
    program = replace(
        declared,
        clauses=rules,
        directives=(*statements, *(Directive("input", name) for name in open_)),
    )
    with open_database(None, engine="local") as database:
        _fill(database, program, {**given, **leaves})
        for layer in strata(state_of(database).loaded.normal):
            circular = {
                name: minus(open_[name], database.relation(name).arrow())
                for name in layer.relations
                if name in open_
            }
            _insert(database, circular)
        yield GrantedState(database, numbers)


def _unsupported(
    declared: Program, rules: Sequence[Clause], tables: "Tables", derived: "Tables"
) -> "Tables":
    """Return the tuples of derived relations that have no instance of a visible rule."""
    names = {each.name for each in declared.declarations}
    steps = {name: unused_name(f"{name}.step", names) for name in derived}
    made = tuple(
        replace(each, name=steps[each.name]) for each in declared.declarations if each.name in steps
    )
    clauses = tuple(
        replace(
            rule,
            heads=tuple(
                replace(head, relation=steps[head.relation])
                for head in rule.heads
                if head.relation in steps
            ),
        )
        for rule in rules
        if any(head.relation in steps for head in rule.heads)
    )
    others = tuple(rule for rule in rules if not any(head.relation in steps for head in rule.heads))
    program = replace(
        declared, declarations=(*declared.declarations, *made), clauses=(*clauses, *others)
    )
    others_derived = {_owner(head.relation, tables) for rule in others for head in rule.heads}
    with open_database(None, engine="local") as database:
        given = {name: each for name, each in tables.items() if name not in others_derived}
        _fill(database, program, given)
        return {
            name: minus(
                table, database.relation(steps[name]).arrow().rename_columns(table.column_names)
            )
            for name, table in derived.items()
        }


def _fill(database: Database, program: Program, tables: "Tables") -> None:
    """Put a program into force, and insert tuples."""
    with database.transaction() as transaction:
        transaction.set_program(program)
    _insert(database, tables)


def _insert(database: Database, tables: "Tables") -> None:
    filled = {name: table for name, table in tables.items() if table.num_rows}
    if filled:
        with database.transaction() as transaction:
            for name, table in filled.items():
                transaction.insert(name, table)


def _owner(relation: str, tables: "Tables") -> str:
    """Return the bag of a relation of counts, or the relation itself."""
    bag = relation.removesuffix(".rows")
    return bag if bag != relation and bag in tables else relation
