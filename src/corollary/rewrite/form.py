"""The form in which a program with active rules is planned for while it is in force.

specialise   views that are watched for some constants are copied for them
alike        event rules that differ in constants only become one
"""

from collections.abc import Callable, Collection

from corollary.core.optimisations import NONE, Optimisation
from corollary.core.program import NormalProgram
from corollary.rewrite.alike import alike
from corollary.rewrite.specialise import specialise

PASSES: tuple[tuple[Optimisation, Callable[[NormalProgram, Collection[str]], NormalProgram]], ...]
PASSES = (
    (Optimisation.SPECIALISATION, specialise),
    (Optimisation.SHARING, lambda program, _: alike(program)),
)


def form(
    program: NormalProgram,
    kept: Collection[str] = (),
    without: Collection[Optimisation] = NONE,
) -> NormalProgram:
    """Return the form of a program.

    Args:
        program: the program.
        kept: relations whose changes are asked for as they are.
        without: what to leave out.
    """
    for optimisation, rewrite in PASSES:
        if optimisation not in without:
            program = rewrite(program, kept)
    return program
