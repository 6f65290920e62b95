"""The optimisations of the paper on active rules (Harrison and Dietrich 1993, section 5)."""

from collections.abc import Iterable
from enum import StrEnum

from corollary.errors import InputError


class MonitoringOptimisation(StrEnum):
    """An optimisation of monitoring; each can be switched off, to measure its effect."""

    RELEVANCE = "relevance"
    """Compute only the changes that a stored view, an event or a constraint needs (5.1)."""
    POLARITY = "polarity"
    """Of these, compute only additions or only removals if the others are not needed (5.1)."""
    SIP = "sip"
    """Probe literals in the order in which bindings help most, for each adornment (5.2)."""
    SHARING = "sharing"
    """Memoise answers for all rules; merge rules that differ in constants only (5.3)."""
    SPECIALISATION = "specialisation"
    """Copy views that are watched for some constants only (5.4)."""
    MINIMISING = "minimising"
    """Do not filter again what was filtered before (5.5)."""


NO_OPTIMISATIONS: frozenset[MonitoringOptimisation] = frozenset()


def parse_optimisations(names: Iterable[str]) -> frozenset[MonitoringOptimisation]:
    """Return optimisations by their names.

    >>> sorted(parse_optimisations(["sip", "polarity"]))
    [<MonitoringOptimisation.POLARITY: 'polarity'>, <MonitoringOptimisation.SIP: 'sip'>]

    Raises:
        InputError: there is no optimisation of a name.
    """
    listed = list(names)
    for name in listed:
        if name not in set(MonitoringOptimisation):
            raise InputError.of(
                "C1053",
                f"There is no optimisation `{name}`.",
                None,
                f"those that can be left out are {', '.join(MonitoringOptimisation)}",
            )
    return frozenset(map(MonitoringOptimisation, listed))
