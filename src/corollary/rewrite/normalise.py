"""From a checked program to its normal form: the passes, in order."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace

from corollary.analysis.bags import bags_of, rows_name
from corollary.analysis.check import CheckedProgram, RelationSignature
from corollary.core.engine import check_deadline
from corollary.core.logic import Clause
from corollary.core.program import (
    ROUNDS,
    SUBSUMPTION_PRAGMA,
    Arithmetic,
    Declaration,
    NormalProgram,
    Relation,
    arithmetic_of,
    owner_of,
    pragma_value,
    refresh_policies,
    sql_texts,
)
from corollary.rewrite.bags import bags
from corollary.rewrite.bases import bases
from corollary.rewrite.choices import choices
from corollary.rewrite.clauses.aggregates import aggregates
from corollary.rewrite.clauses.counters import counters
from corollary.rewrite.clauses.disjunctions import disjunctions
from corollary.rewrite.clauses.expressions import expressions
from corollary.rewrite.clauses.groups import groups
from corollary.rewrite.clauses.implied import implied
from corollary.rewrite.clauses.negations import negations
from corollary.rewrite.clauses.nulls import nulls
from corollary.rewrite.clauses.records import records
from corollary.rewrite.clauses.windows import windows
from corollary.rewrite.clauses.words import words
from corollary.rewrite.equivalences import equivalences
from corollary.rewrite.fields import fields
from corollary.rewrite.inlined import inlined
from corollary.rewrite.subsumption import subsumption
from corollary.rewrite.top_rows import top_rows
from corollary.rewrite.translation_unit import TranslationUnit
from corollary.rewrite.virtual import virtual

RewritePass = Callable[[TranslationUnit], None]

CLAUSE_PASSES: tuple[RewritePass, ...] = (
    disjunctions,  # one conjunction per head and alternative
    windows,  # rules with window functions become relations of their own kind
    counters,  # rows that `autoinc()` numbers become relations
    records,  # patterns become field accesses
    words,  # results are 32-bit words, if the program asks for them
    aggregates,  # become relations of their own
    expressions,  # move out of atoms: conjunctions become rules
    groups,  # aggregates of the same groups are one relation
    negations,  # negated literals are fully bound
    nulls,  # nullable join variables are tested
    implied,  # what an aggregate implies is not asked again
)
PASSES: tuple[RewritePass, ...] = (
    *CLAUSE_PASSES,
    equivalences,  # an eqrel is the closure of its seed
    subsumption,  # dominated tuples go, or have an order
    bags,  # what is written to a bag is counted
    fields,  # that join records with other literals become columns
    choices,  # a relation that only chooses among facts has them in a base part
    bases,  # a relation with facts and rules gets a base part
    top_rows,  # windows of which only the first rows are read have no others
    virtual,  # what passes made for virtual relations only is virtual too
    inlined,  # the bodies of aggregates are not stored
)


def normalise(checked: CheckedProgram, before: NormalProgram | None = None) -> NormalProgram:
    """Return the normal form of a checked program; active rules are left out.

    Args:
        checked: the program.
        before: the program in force until now, whose tuples need a place (see `bases`).
    """
    program = checked.program
    unit = TranslationUnit(
        [clause for clause in program.clauses if not checked.is_active(clause)],
        _declared(checked),
        checked.signatures,
        program.declarations,
        frozenset(each.relation for each in program.directives if each.name == "input"),
        before,
        arithmetic_of(program) is Arithmetic.WORDS,
        pragma_value(program, SUBSUMPTION_PRAGMA) == ROUNDS,
    )
    for rewrite_pass in PASSES:
        check_deadline()
        rewrite_pass(unit)
    facts = {name: tuple(rows) for name, rows in unit.facts.items()}
    return NormalProgram(
        unit.relations,
        tuple(unit.rules),
        tuple(unit.aggregations),
        facts,
        unit.bases,
        bags=unit.bags,
        arithmetic=arithmetic_of(program),
        counters=unit.counters,
        subsumption=unit.subsumption,
        keys=unit.keys,
        policies=refresh_policies(program),
        statements=frozenset(sql_texts(program)),
    )


def normalise_added(
    checked: CheckedProgram, names: Container[str], before: NormalProgram
) -> NormalProgram | None:
    """Return a program in normal form with relations and rules that are added to it.

    Args:
        checked: the rules, which nothing else reads, and the declarations of all relations.
        names: the relations that are added.
        before: the program.

    Returns:
        None if the rules need more than relations and rules.
    """
    if any(each.domains for each in before.relations.values()):
        return None
    declared = {name: each for name, each in _declared(checked).items() if name in names}
    unit = TranslationUnit(
        checked.program.clauses,
        {**before.relations, **declared},
        checked.signatures,
        tuple(each for each in checked.program.declarations if not each.is_equivalence),
        has_words=before.arithmetic is Arithmetic.WORDS,
    )
    for rewrite_pass in PASSES:
        check_deadline()
        if rewrite_pass is inlined:  # the body of a new aggregate may be an old relation
            unit.rules = [*before.rules, *unit.rules]
            unit.relations |= before.relations
        rewrite_pass(unit)
    if unit.facts or unit.counters or unit.subsumption:
        return None
    return replace(
        before,
        relations=unit.relations,
        rules=tuple(unit.rules),
        aggregations=(*before.aggregations, *unit.aggregations),
        bases={**before.bases, **unit.bases},
        bags={**before.bags, **unit.bags},
    )


def lower_clauses(
    clauses: Sequence[Clause],
    relations: Mapping[str, Relation],
    reserved: Container[str],
    arithmetic: Arithmetic,
) -> TranslationUnit:
    """Return the rules that clauses become, by the passes that look at one clause at a time.

    Args:
        clauses: of a checked program.
        relations: those that the clauses name.
        reserved: further names that no relation of a pass may get.
        arithmetic: how their numbers are computed.
    """
    has_words = arithmetic is Arithmetic.WORDS
    unit = TranslationUnit(clauses, dict(relations), reserved, has_words=has_words)
    for rewrite_pass in CLAUSE_PASSES:
        rewrite_pass(unit)
    return unit


def _declared(checked: CheckedProgram) -> dict[str, Relation]:
    limits = {
        directive.relation: int(directive.parameter("n", "0"))
        for directive in checked.program.directives
        if directive.name == "limitsize"
    }
    owners = sql_texts(checked.program)
    shown = owners.keys() | {rows_name(name) for name in bags_of(checked.program)}
    return {
        name: Relation(
            name,
            signature.columns,
            signature.types,
            is_derived=signature.is_derived,
            is_virtual=_is_virtual(signature.declaration),
            # What a statement of SQL needs beside its view is not the user's.
            is_declared=name in shown or owner_of(name, owners) is None,
            limit=limits.get(name),
            domains=_domains(signature),
        )
        for name, signature in checked.signatures.items()
        if not signature.is_event
    }


def _domains(signature: RelationSignature) -> tuple[tuple[int, ...], ...]:
    """Return the columns of the choice domains of a relation."""
    declaration = signature.declaration
    return tuple(
        tuple(signature.columns.index(column) for column in domain)
        for domain in (() if declaration is None else declaration.domains)
    )


def _is_virtual(declaration: Declaration | None) -> bool:
    """Whether a relation is never stored; of a bag, its counts are."""
    return declaration is not None and (declaration.is_bag or declaration.storage == "virtual")
