"""What depends on a program only is computed once for a program."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TypeVar

from corollary.core.program import NormalProgram

Conclusion = TypeVar("Conclusion")


def once_per_program(
    function: Callable[[NormalProgram], Conclusion],
) -> Callable[[NormalProgram], Conclusion]:
    """Let a program keep what a function concludes from it; a copy with changes starts anew.

    >>> from corollary.core.program import NormalProgram
    >>> names = once_per_program(lambda program: list(program.relations))
    >>> program = NormalProgram({}, (), (), {})
    >>> names(program) is names(program)
    True
    """

    @wraps(function)
    def conclude(program: NormalProgram) -> Conclusion:
        known = program.conclusions
        if function not in known:
            known[function] = function(program)
        found: Conclusion = known[function]
        return found

    return conclude


@once_per_program
def _positions(program: NormalProgram) -> dict[str, int]:
    return {name: at for at, name in enumerate(program.relations)}


def in_order(program: NormalProgram, names: Iterable[str]) -> list[str]:
    """Return those names that are relations of a program, in its order."""
    positions = _positions(program)
    return sorted({each for each in names if each in positions}, key=positions.__getitem__)


@once_per_program
def stored_relations(program: NormalProgram) -> frozenset[str]:
    """Return the relations of a program that are stored."""
    return frozenset(name for name, each in program.relations.items() if each.is_stored)
