"""Reads what users write: programs (read, check, normalise), their keys, and tuples."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from corollary.active.normal_form import with_active_rules
from corollary.analysis.check import CheckedProgram, check, diagnose
from corollary.core import logic
from corollary.core.functors.conversions import COUNTER
from corollary.core.program import NormalProgram, Program
from corollary.core.user_functors.registration import missing_function, registered_function
from corollary.core.user_functors.user_functor import SIGN
from corollary.data_class import dataclass
from corollary.database.program.names import writable_relation
from corollary.errors import Diagnostic, InputError, Severity
from corollary.frontends.datalog.parser import parse, parse_file
from corollary.rewrite.normalise import normalise
from corollary.source import SourceFile, Span


@dataclass(frozen=True, slots=True)
class ResolvedDependency:
    """Tuples that agree in the determinants agree in the dependents."""

    relation: str
    determinants: tuple[int, ...]
    dependents: tuple[int, ...]
    is_key: bool
    span: Span | None = field(compare=False)


def resolve_dependencies(program: Program, normal: NormalProgram) -> Iterator[ResolvedDependency]:
    """Yield the keys and `.fd`s of a program, with columns by position."""
    for declaration in program.declarations:
        relation = normal.relations.get(declaration.name)
        if declaration.key and relation is not None:
            key = tuple(relation.columns.index(name) for name in declaration.key)
            rest = tuple(at for at in range(relation.arity) if at not in key)
            yield ResolvedDependency(relation.name, key, rest, True, declaration.span)
    for each in program.dependencies:
        relation = normal.relations.get(each.relation)
        if relation is not None:
            key, rest = (
                tuple(relation.columns.index(name) for name in names)
                for names in (each.determinants, each.dependents)
            )
            rest = tuple(at for at in rest if at not in key)  # those agree anyway
            if rest:
                yield ResolvedDependency(relation.name, key, rest, False, each.span)


Fact = tuple[str, tuple[logic.Value, ...]]
"""A relation and one of its tuples."""


WRITING_DIRECTIVES = ("output", "printsize")


@dataclass(frozen=True)
class LoadedProgram:
    """A program in its three forms: as written, checked, normal.

    Attributes:
        goals: the goals that were read for it, by their texts.
    """

    program: Program
    checked: CheckedProgram
    normal: NormalProgram
    goals: dict[object, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    @cached_property
    def dependencies(self) -> Mapping[str, tuple[ResolvedDependency, ...]]:
        """The keys and `.fd`s that are enforced, by the base relation that has the tuples."""
        found: dict[str, list[ResolvedDependency]] = {}
        for each in resolve_dependencies(self.program, self.normal):
            name = self.normal.bases.get(each.relation, each.relation)
            if not self.normal.relations[name].is_derived:
                found.setdefault(name, []).append(each)
        return {name: tuple(every) for name, every in found.items()}

    @cached_property
    def known_dependencies(self) -> frozenset[ResolvedDependency]:
        """All of them, for look-ups."""
        return frozenset(each for every in self.dependencies.values() for each in every)

    @property
    def written_relations(self) -> frozenset[str]:
        """What a one-shot evaluation writes, or says the size of; of bags, their counts."""
        bags = self.normal.bags
        return frozenset(
            bags.get(each.relation, each.relation)
            for each in self.program.directives
            if each.name in WRITING_DIRECTIVES
        )


SQL_EXTENSION = ".sql"


def read_programs(paths: Sequence[Path]) -> Program:
    """Return the program in several files, Datalog and SQL; each sees the relations of the others.

    Raises:
        InputError: with the findings of all files.
    """
    program = Program()
    findings: list[Diagnostic] = []
    sql = [path for path in paths if path.suffix.lower() == SQL_EXTENSION]
    for path in paths:
        if path in sql:
            continue
        try:
            program += parse_file(path)
        except InputError as error:
            findings += error.diagnostics
    if sql:
        from corollary.frontends.sql.statements.definitions import read_sql_files

        try:
            program += read_sql_files(sql, program)
        except InputError as error:
            findings += error.diagnostics
    if findings:
        raise InputError(findings)
    return program


def load_program(program: Program) -> LoadedProgram:
    """Check a program and bring it into normal form.

    Raises:
        InputError: with all findings.
    """
    checked = check(program)
    return LoadedProgram(program, checked, with_active_rules(normalise(checked), checked))


def check_functions(loaded: LoadedProgram) -> None:
    """Check that a Python function is registered for every functor that rules apply.

    Raises:
        InputError: one has none; the message says how to name the code.
    """
    applied = {
        f"{SIGN}{each.name}": each
        for each in loaded.program.functors
        if registered_function(each.name) is None
    }
    for clause in loaded.program.clauses if applied else ():
        for name, declaration in applied.items():
            if logic.applies_functor(clause, (name,)):
                raise missing_function(declaration.name, clause.span)


def diagnose_loading(program: Program) -> tuple[Diagnostic, ...]:
    """Return all errors and warnings of a program, also those of its normal form."""
    findings = diagnose(program)
    if any(each.severity is Severity.ERROR for each in findings):
        return findings
    try:
        load_program(program)
    except InputError as error:
        findings += error.diagnostics
    return findings


def refuse_counters(program: Program) -> None:
    """Refuse a program with `autoinc()` where it is not evaluated as a whole, once.

    Raises:
        InputError: it has one.
    """
    for clause in program.clauses:
        if logic.applies_functor(clause, (COUNTER,)):
            raise InputError.of(
                "C0247",
                "`autoinc()` numbers all rows at once, so that only `corollary run` without a "
                "warehouse has it.",
                clause.span,
                "leave it out: a key of the columns themselves stays the same when rows change",
            )


def read_facts(loaded: LoadedProgram, text: str, place: str) -> list[Fact]:
    """Return the tuples in a text such as `edge("a", "b")`, each with its relation.

    They are checked as facts of the program.

    Args:
        loaded: the program.
        text: one fact or several; the last full stop may be missing.
        place: what messages call the text.

    Raises:
        InputError: the text holds something else, or does not fit the program.
    """
    if not text.strip():
        raise _not_a_tuple("A tuple is expected, but the text is empty.", None)
    ended = text if text.rstrip().endswith(".") else f"{text.rstrip()}."
    given = parse(SourceFile(place, ended))
    is_plain = all(not each.body and not any(h.sign for h in each.heads) for each in given.clauses)
    if not (given.clauses and is_plain) or given != Program(clauses=given.clauses):
        raise _not_a_tuple(f"`{text.strip()}` is not a tuple.", None)
    return [fact for clause in given.clauses for fact in _read_fact(loaded, clause)]


def _read_fact(loaded: LoadedProgram, clause: logic.Clause) -> list[Fact]:
    for head in clause.heads:
        writable_relation(loaded.normal, head.relation, head.span)
        if any(isinstance(each, logic.Functor) for each in head.arguments):
            raise _not_a_tuple("A value of this tuple is computed.", head.span)
    program = loaded.program
    declared = tuple(replace(each, is_equivalence=False) for each in program.declarations)
    alone = load_program(
        Program(
            types=program.types,
            declarations=declared,
            clauses=(clause,),
            functors=program.functors,
            pragmas=program.pragmas,
        )
    )
    copies = {alone.normal.bags.get(head.relation): head.relation for head in clause.heads}
    named = {base: name for name, base in alone.normal.bases.items()}
    return [
        (named.get(name, name), row[:-1] if copies.get(name, name) != name else row)
        for name, rows in alone.normal.facts.items()
        for row in rows
    ]


def _not_a_tuple(message: str, span: Span | None) -> InputError:
    cure = 'write a relation and its values, as in `edge("a", "b")`'
    return InputError([Diagnostic("C0919", message, span, cure)])
