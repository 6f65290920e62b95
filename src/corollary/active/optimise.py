"""The passes that optimise a program with active rules before it is planned.

specialise   copies views that are watched for some constants only
merge_alike  merges event rules that differ in constants only
"""

from collections.abc import Callable, Collection

from corollary.active.merge_alike import merge_alike
from corollary.active.specialise import specialise
from corollary.core.monitoring_optimisations import NO_OPTIMISATIONS, MonitoringOptimisation
from corollary.core.program import NormalProgram

PASSES: tuple[
    tuple[MonitoringOptimisation, Callable[[NormalProgram, Collection[str]], NormalProgram]], ...
]
PASSES = (
    (MonitoringOptimisation.SPECIALISATION, specialise),
    (MonitoringOptimisation.SHARING, lambda program, _: merge_alike(program)),
)


def optimise(
    program: NormalProgram,
    kept: Collection[str] = (),
    without: Collection[MonitoringOptimisation] = NO_OPTIMISATIONS,
) -> NormalProgram:
    """Return the optimised program."""
    for optimisation, rewrite in PASSES:
        if optimisation not in without:
            program = rewrite(program, kept)
    return program
