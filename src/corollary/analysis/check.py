"""All checks of a program, in one tuple; their findings are collected and raised once."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from corollary.analysis.alerts import alerts
from corollary.analysis.confluence import confluence
from corollary.analysis.declarations import declarations
from corollary.analysis.directives import directives
from corollary.analysis.events import events
from corollary.analysis.names import names
from corollary.analysis.safety import safety
from corollary.analysis.stratification import stratification
from corollary.analysis.subtypes import subtypes
from corollary.analysis.survey import Survey, survey
from corollary.analysis.types import Typing, types
from corollary.analysis.unused import unused
from corollary.analysis.values import values
from corollary.core.program import Declaration, Program
from corollary.core.rules import Clause
from corollary.core.types import Type
from corollary.errors import Diagnostic, InputError, Severity

PASSES: tuple[Callable[[Survey], Iterable[Diagnostic]], ...] = (
    declarations,
    names,
    directives,
    events,
    safety,
    stratification,
    subtypes,
    values,
    confluence,
    unused,
)
"""The passes; `types` runs beside them, since its result is more than findings, then `alerts`."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A relation as the rest of the system sees it.

    Attributes:
        declaration: None for an event predicate without a `.decl`.
        is_event: whether it is an event predicate.
        is_derived: whether rules (triggers are none) or an equivalence define it.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[Type, ...]
    declaration: Declaration | None
    is_event: bool
    is_derived: bool


@dataclass(frozen=True, slots=True)
class Checked:
    """A program without errors.

    Attributes:
        program: the program, with types on all variables, constants, functors and aggregates;
            literals are converted to their type. A variable's type is nullable if the variable
            can be null in an instance that holds, its implicit not-null test included.
        signatures: the relations by name.
    """

    program: Program
    signatures: Mapping[str, Signature]
    warnings: tuple[Diagnostic, ...]

    def is_active(self, clause: Clause) -> bool:
        """Whether a clause defines an event predicate or is a trigger."""
        return any(head.sign or self.signatures[head.relation].is_event for head in clause.heads)


def check(program: Program) -> Checked:
    """Return the program with types.

    Raises:
        InputError: with all errors, in the order of the text.
    """
    read, typing, findings = _examine(program)
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        raise InputError(errors)
    return Checked(replace(program, clauses=typing.clauses), _signatures(read, typing), findings)


def diagnose(program: Program) -> tuple[Diagnostic, ...]:
    """Return everything that there is to say of a program, in the order of the text."""
    return _examine(program)[2]


def _examine(program: Program) -> tuple[Survey, Typing, tuple[Diagnostic, ...]]:
    read = survey(program)
    typing = types(read)
    findings = [finding for check_pass in PASSES for finding in check_pass(read)]
    findings += [*alerts(read, typing.columns), *typing.findings, *program.warnings]
    known = [finding for finding in findings if finding.code != "C0308"]
    if any(finding.severity is Severity.ERROR for finding in known):
        findings = known  # what has no type has none because of another error
    return read, typing, _in_order(findings, program)


def _in_order(findings: Iterable[Diagnostic], program: Program) -> tuple[Diagnostic, ...]:
    files = {source.name: number for number, source in enumerate(program.sources)}

    def place(finding: Diagnostic) -> tuple[int, int, int]:
        span = finding.span
        return (files.get(span.file.name, 0), span.line, span.column) if span else (-1, 0, 0)

    return tuple(sorted(findings, key=place))


def _signatures(read: Survey, typing: Typing) -> dict[str, Signature]:
    signatures = {}
    for name, shape in read.shapes.items():
        known = tuple(type_ for type_ in typing.columns[name] if type_ is not None)
        assert len(known) == len(shape.columns), name
        signatures[name] = Signature(
            name,
            shape.columns,
            known,
            shape.declaration,
            name in read.events,
            name in read.derived,
        )
    return signatures
