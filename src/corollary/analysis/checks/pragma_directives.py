"""`.pragma`: what is known, what is not, and what 32-bit arithmetic excludes."""

from collections.abc import Iterator

from corollary.analysis.phrases import one_of
from corollary.analysis.resolution import ResolvedProgram
from corollary.core.program import (
    ARITHMETIC_PRAGMA,
    ROUNDS,
    SUBSUMPTION_PRAGMA,
    Arithmetic,
    Pragma,
    arithmetic_of,
    sql_texts,
)
from corollary.errors import Diagnostic, Severity

_HINTS = frozenset(
    {
        *("legacy", "magic-transform", "magic-transform-exclude", "inline-exclude", "RamSIPS"),
        *("disable-transformers", "enable-magic", "jobs", "profile", "profile-frequency"),
        *("emit-statistics", "index-stats", "verbose", "swig", "no-warn", "warn", "wno", "show"),
        *("compile", "generate", "parse-errors", "live-profile", "engine", "provenance"),
    }
)
"""Options of Soufflé that do not change what a program means."""


def pragma_directives(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield the pragmas that are not known, and what does not go with 32-bit arithmetic."""
    program = resolved.program
    for pragma in program.pragmas:
        if pragma.name == ARITHMETIC_PRAGMA:
            if pragma.value not in list(Arithmetic):
                expected = one_of(f'`"{each}"`' for each in Arithmetic)
                message = f"There is no arithmetic `{pragma.value}`."
                yield Diagnostic("C0245", message, pragma.span, f"write {expected}")
        elif pragma.name == SUBSUMPTION_PRAGMA:
            if pragma.value != ROUNDS:
                message = f"There is no subsumption `{pragma.value}`."
                yield Diagnostic("C0245", message, pragma.span, f'write `"{ROUNDS}"`')
        elif pragma.name not in _HINTS:
            yield Diagnostic(
                "C0708",
                f"The pragma `{pragma.name}` is not known; it changes nothing.",
                pragma.span,
                f'leave it out; known is `.pragma "{ARITHMETIC_PRAGMA}" "{Arithmetic.WORDS}"`',
                severity=Severity.WARNING,
            )
    if arithmetic_of(program) is Arithmetic.WORDS:
        pragma = [each for each in program.pragmas if each.name == ARITHMETIC_PRAGMA][-1]
        yield from _excluded(resolved, pragma)


def _excluded(resolved: ResolvedProgram, pragma: Pragma) -> Iterator[Diagnostic]:
    bags = [each for each in resolved.program.declarations if each.is_bag]
    named = [f"`bag`, as `{bags[0].name}` has it"] if bags else []
    named += [f"SQL, as in `{name}`" for name in list(sql_texts(resolved.program))[:1]]
    for what in named:
        yield Diagnostic(
            "C0246",
            f"Arithmetic in 32 bits does not go with {what}.",
            pragma.span,
            "leave the pragma out: numbers of 64 bits hold what fits into 32",
        )
