"""Answers for readers: made of what was granted to them, and of nothing else.

A database in memory has what a reader may see: granted tuples, and rules whose head and whole body
are granted. What a statement of SQL has made for itself counts as granted if the view is, as long
as all of its rules are visible. Nothing is left of files, keys, constraints and other rules.

A tuple that visible rules do not prove is a leaf: it is given there, and `sealed` in the answer.
The reader does not learn whether it was given in truth, or derived by rules that it may not see.
Which tuples these are follows from the granted relations alone:

| leaves      | are the tuples                                                              |
|-------------|-----------------------------------------------------------------------------|
| unsupported | without an instance of a visible rule in the granted relations              |
| circular    | of a stratum that visible rules do not derive: they only need each other    |

So two databases that are equal in what was granted have equal leaves, and give equal answers.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from corollary.analysis.strata import strata
from corollary.analysis.traverse import atom_uses
from corollary.core.logic import Clause, applies_functor
from corollary.core.program import Declaration, Directive, Program, owner_of, sql_texts
from corollary.data_class import dataclass
from corollary.database.database import Database, state_of, store_of
from corollary.database.opening import open_database
from corollary.database.program.goals import goal_relations
from corollary.database.reading.reader import Reader
from corollary.provenance.absences.why_not import why_not, with_attempts
from corollary.provenance.limits import ProofLimits
from corollary.provenance.nodes import Attempt, ProofKind, ProofNode, ProofRule
from corollary.provenance.proof import Absence, Proof
from corollary.provenance.query_state import query_state
from corollary.provenance.why import why
from corollary.rewrite.translation_unit import unused_name
from corollary.warehouse.copies import minus

TODAY_FUNCTOR = "today"


@dataclass(frozen=True)
class VisibleProgram:
    """What a reader may see of a program.

    Attributes:
        program: as written.
        granted: the relations that were granted.
    """

    program: Program
    granted: frozenset[str]

    @cached_property
    def relations(self) -> frozenset[str]:
        """The granted relations, and what visible statements have made for themselves."""
        statements = sql_texts(self.program)
        made = {
            each.name
            for each in self.program.declarations
            if each.name not in self.granted and owner_of(each.name, statements) in self.granted
        }
        while True:
            known = self.granted | made
            hidden = {
                head.relation
                for clause in self.program.clauses
                for head in clause.heads
                if head.relation in made and not _is_visible(clause, known)
            }
            if not hidden:
                return frozenset(known)
            made -= hidden

    @cached_property
    def rules(self) -> tuple[Clause, ...]:
        """The visible rules, in their order, without their places."""
        visible = [
            replace(clause, span=None)
            for clause in self.program.clauses
            if clause.body and _is_visible(clause, self.relations)
        ]
        # The copies of a bag add up over its rules: some of them say nothing.
        partial = {
            head.relation
            for clause in self.program.clauses
            if clause.body and not _is_visible(clause, self.relations)
            for head in clause.heads
        }
        counts = {f"{bag}.rows" for bag in self.bags} & partial
        return tuple(
            clause
            for clause in visible
            if not any(head.relation in counts for head in clause.heads)
        )

    @cached_property
    def bags(self) -> frozenset[str]:
        """The relations whose rows have copies."""
        return frozenset(each.name for each in self.program.declarations if each.is_bag)

    def made(self, relation: str) -> bool:
        """Return whether a statement has made a relation for itself."""
        return relation in self.relations and relation not in self.granted

    def reached_from(self, relations: Iterable[str]) -> tuple[tuple[Clause, ...], list[str]]:
        """Return the rules that may have to do with relations, and all relations in them."""
        found, bags = dict.fromkeys(relations), self.bags
        while True:
            every = {f"{name}.rows" for name in found if name in bags} | found.keys()
            rules = tuple(
                clause for clause in self.rules if any(h.relation in every for h in clause.heads)
            )
            more = dict.fromkeys(
                _owner(name, bags)
                for clause in rules
                for name in (
                    *(head.relation for head in clause.heads),
                    *(use.atom.relation for use in atom_uses(clause)),
                )
            )
            if more.keys() <= found.keys():
                return rules, list(found)
            found |= more

    def declarations(self, relations: Iterable[str]) -> tuple[Declaration, ...]:
        """Return the declarations of relations, stored and without keys."""
        wanted = set(relations)
        return tuple(
            replace(each, key=(), storage="", span=None)
            for each in self.program.declarations
            if each.name in wanted
        )


def _is_visible(clause: Clause, relations: Iterable[str]) -> bool:
    """Return whether the heads and the whole body of a rule are among relations."""
    known = set(relations)
    is_plain = not any(head.sign for head in clause.heads)
    return (
        is_plain
        and not applies_functor(clause, (TODAY_FUNCTOR,))
        and all(head.relation in known for head in clause.heads)
        and all(
            use.atom.relation in known and not use.atom.sign and use.atom.state is None
            for use in atom_uses(clause)
        )
    )


# --- a database of it ----------------------------------------------------------------------------


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
def granted_state(reader: Reader, relations: Sequence[str]) -> Iterator[GrantedState]:
    """Give a database in memory with what a reader may see of relations, and of all below."""
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
    leaves = _unsupported_tuples(declared, rules, tables, open_)
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


def _unsupported_tuples(
    declared: Program, rules: Sequence[Clause], tables: Tables, derived: Tables
) -> Tables:
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


def _fill(database: Database, program: Program, tables: Tables) -> None:
    """Put a program into force, and insert tuples."""
    with database.transaction() as transaction:
        transaction.set_program(program)
    _insert(database, tables)


def _insert(database: Database, tables: Tables) -> None:
    filled = {name: table for name, table in tables.items() if table.num_rows}
    if filled:
        with database.transaction() as transaction:
            for name, table in filled.items():
                transaction.insert(name, table)


def _owner(relation: str, bags: Container[str]) -> str:
    """Return the bag of a relation of counts, or the relation itself."""
    bag = relation.removesuffix(".rows")
    return bag if bag in bags else relation


# --- answers -------------------------------------------------------------------------------------


def reader_why(reader: Reader, goal: str, *, at: Any, limits: ProofLimits) -> Proof:
    """Return why a tuple holds, as far as a reader may see it."""
    seen = reader if at is None else reader.at(at)
    with granted_state(seen, _granted_relations(seen, goal)) as granted:
        state = state_of(granted.database)
        proof = why(state, goal, limits)
        if proof.holds:
            proof = with_attempts(query_state(state), proof, limits)
        return _seal_proof(proof, granted, seen.commits)


def reader_why_not(
    reader: Reader, goal: str, *, at: Any, insertions: int | None, limits: ProofLimits
) -> Absence:
    """Return why a tuple does not hold, as far as a reader may see it."""
    seen = reader if at is None else reader.at(at)
    with granted_state(seen, _granted_relations(seen, goal)) as granted:
        database = granted.database
        found = why_not(
            state_of(database), store_of(database), goal, insertions=insertions or 0, limits=limits
        )
    made = found.insertions
    return replace(
        found,
        commit=seen.commits,
        attempts=tuple(_renumber(each, granted) for each in found.attempts),
        # There may be others, in relations that the reader may not see.
        insertions=None if made is None else replace(made, complete=False),
        nodes=tuple(_seal_node(each, granted) for each in found.nodes),
        rules=_rules(found.rules.values(), granted),
    )


def _granted_relations(reader: Reader, goal: str) -> list[str]:
    """Return the relations of a goal.

    Raises:
        AccessError: one was not granted to the reader.
        InputError: one does not exist.
    """
    found = list(goal_relations(goal))
    for name in found:
        reader.relation(name)
    return found


def _seal_proof(proof: Proof, granted: GrantedState, commit: int) -> Proof:
    return replace(
        proof,
        commit=commit,
        nodes=tuple(_seal_node(each, granted) for each in proof.nodes),
        rules=_rules(proof.rules.values(), granted),
        others=tuple(_seal_proof(each, granted, commit) for each in proof.others),
    )


def _seal_node(node: ProofNode, granted: GrantedState) -> ProofNode:
    """Return a node with the reader's numbers of rules; what is given is sealed."""
    kind = ProofKind.SEALED if node.kind is ProofKind.BASE else node.kind
    rule = None if node.rule is None else granted.numbers[node.rule]
    attempts = tuple(_renumber(each, granted) for each in node.attempts)
    return replace(node, kind=kind, rule=rule, attempts=attempts, sources=())


def _renumber(attempt: Attempt, granted: GrantedState) -> Attempt:
    return replace(attempt, rule=granted.numbers[attempt.rule])


def _rules(rules: Any, granted: GrantedState) -> dict[int, ProofRule]:
    """Return rules by the reader's numbers, without their places."""
    return {
        granted.numbers[each.number]: ProofRule(granted.numbers[each.number], each.text)
        for each in rules
    }
