"""All checks of a program, in one tuple; their findings are collected and raised once."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from corollary.analysis.bags import with_bags
from corollary.analysis.checks.alerts import alerts
from corollary.analysis.checks.bags import bags
from corollary.analysis.checks.choices import choices
from corollary.analysis.checks.confluence import confluence
from corollary.analysis.checks.counters import counters
from corollary.analysis.checks.declarations import declarations
from corollary.analysis.checks.directives import directives
from corollary.analysis.checks.events import events
from corollary.analysis.checks.functors import functors
from corollary.analysis.checks.groups import groups
from corollary.analysis.checks.lambdas import lambdas
from corollary.analysis.checks.names import names
from corollary.analysis.checks.pragma_directives import pragma_directives
from corollary.analysis.checks.query_plans import query_plans
from corollary.analysis.checks.safety import safety
from corollary.analysis.checks.stratification import stratification
from corollary.analysis.checks.subtypes import subtypes
from corollary.analysis.checks.unused import unused
from corollary.analysis.checks.value_invention import mark_endless, value_invention
from corollary.analysis.checks.windows import windows
from corollary.analysis.pragmas import unknown_pragmas, without_allowed
from corollary.analysis.resolution import ResolvedProgram, resolve_program
from corollary.analysis.subsumption import with_subsumption
from corollary.analysis.today import with_today
from corollary.analysis.types.infer import TypedProgram, infer_types
from corollary.analysis.witnesses import with_witnesses
from corollary.core.engine import check_deadline
from corollary.core.logic import Clause
from corollary.core.program import Declaration, NormalProgram, Program
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.errors import Diagnostic, InputError, Severity, sort_by_position

PASSES: tuple[Callable[[ResolvedProgram], Iterable[Diagnostic]], ...] = (
    declarations,
    bags,
    names,
    lambdas,
    functors,
    directives,
    pragma_directives,
    query_plans,
    counters,
    windows,
    events,
    safety,
    stratification,
    groups,
    choices,
    subtypes,
    value_invention,
    confluence,
    unused,
)
"""The passes; `infer_types` runs before them, since its result is more than findings, and `alerts`
after them, since it needs the types."""


@dataclass(frozen=True, slots=True)
class RelationSignature:
    """A relation as the rest of the system sees it.

    Attributes:
        declaration: None for an event predicate without a `.decl`.
        is_event: whether it is an event predicate.
        is_derived: whether rules (not triggers) or an equivalence define it.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[Type, ...]
    declaration: Declaration | None
    is_event: bool
    is_derived: bool


@dataclass(frozen=True, slots=True)
class CheckedProgram:
    """A program without errors.

    Attributes:
        program: the program, with types on all variables, constants, functors and aggregates;
            literals are converted to their type. A variable's type is nullable if the variable
            can be null in an instance that holds, its implicit not-null test included.
        signatures: the relations by name.
    """

    program: Program
    signatures: Mapping[str, RelationSignature]
    warnings: tuple[Diagnostic, ...]

    def is_active(self, clause: Clause) -> bool:
        """Whether a clause defines an event predicate or is a trigger."""
        return any(head.sign or self.signatures[head.relation].is_event for head in clause.heads)


def check(program: Program, before: NormalProgram | None = None) -> CheckedProgram:
    """Return the program with types, witnesses bound, and what bags and the like stand for.

    Args:
        program: as written.
        before: the program in force until now, if there is one.

    Raises:
        InputError: with all errors, in the order of the text.
    """
    program = with_subsumption(with_witnesses(with_bags(with_today(program, before))))
    resolved, typed, findings = _examine(program)
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        raise InputError(errors)
    clauses = mark_endless(resolved, typed.clauses)
    return CheckedProgram(replace(program, clauses=clauses), _signatures(resolved, typed), findings)


def diagnose(program: Program) -> tuple[Diagnostic, ...]:
    """Return all errors and warnings of a program, in the order of the text."""
    return _examine(with_subsumption(with_witnesses(with_bags(with_today(program)))))[2]


def _examine(program: Program) -> tuple[ResolvedProgram, TypedProgram, tuple[Diagnostic, ...]]:
    resolved = resolve_program(program)
    typed = infer_types(resolved)
    findings: list[Diagnostic] = []
    for check_pass in PASSES:
        check_deadline()
        findings += check_pass(resolved)
    findings += [*alerts(resolved, typed.columns), *typed.findings, *program.warnings]
    known = [finding for finding in findings if finding.code != "C0308"]
    if any(finding.severity is Severity.ERROR for finding in known):
        findings = known  # a term without a type is a consequence of the other errors
    findings = [_in_sql_words(finding, program) for finding in findings]
    findings += [found for source in program.sources for found in unknown_pragmas(source)]
    return resolved, typed, tuple(sort_by_position(without_allowed(findings), program.sources))


def _in_sql_words(finding: Diagnostic, program: Program) -> Diagnostic:
    """Return a finding about rules that SQL has become as one about the statement."""
    about = finding.code[:3]
    if about >= "C07" or finding.severity is Severity.WARNING:
        return finding  # not about the rule language itself
    if finding.span is not None:
        code = "C1366" if about in ("C02", "C06") else "C1363"
        return replace(finding, code=code) if finding.span.is_sql else finding
    spans = [clause.span for clause in program.clauses if clause.span is not None]
    if not spans or not all(span.is_sql for span in spans):
        return finding
    return Diagnostic(
        "C1363",
        "Corollary does not have what this statement needs.",
        spans[-1],
        "write it in another way, and report it: this is a defect of Corollary",
    )


def _signatures(resolved: ResolvedProgram, typed: TypedProgram) -> dict[str, RelationSignature]:
    signatures = {}
    for name, schema in resolved.schemas.items():
        known = tuple(type_ for type_ in typed.columns[name] if type_ is not None)
        assert len(known) == len(schema.columns), name
        signatures[name] = RelationSignature(
            name,
            schema.columns,
            known,
            schema.declaration,
            name in resolved.events,
            name in resolved.derived,
        )
    return signatures
