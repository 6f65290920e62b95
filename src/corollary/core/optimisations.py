"""The optimisations of the paper on active rules (Harrison and Dietrich 1993, section 5)."""

from collections.abc import Iterable
from enum import StrEnum

from corollary.errors import InputError


class Optimisation(StrEnum):
    """What makes monitoring cheap; each can be left out, to see what it is worth."""

    RELEVANCE = "relevance"
    """Only changes are computed that somebody asks for (5.1)."""
    POLARITY = "polarity"
    """Of them, only additions or removals if that is all that is asked for (5.1)."""
    SIP = "sip"
    """Literals are probed in the order in which bindings help most, for each adornment (5.2)."""
    SHARING = "sharing"
    """What one rule has asked is answered for all; rules that are alike are one (5.3)."""
    SPECIALISATION = "specialisation"
    """Views that are watched for some constants are copied for them (5.4)."""
    MINIMISING = "minimising"
    """What was found before is not filtered again (5.5)."""


NONE: frozenset[Optimisation] = frozenset()


def optimisations(names: Iterable[str]) -> frozenset[Optimisation]:
    """Return optimisations by their names.

    >>> sorted(optimisations(["sip", "polarity"]))
    [<Optimisation.POLARITY: 'polarity'>, <Optimisation.SIP: 'sip'>]

    Raises:
        InputError: there is none of a name.
    """
    found = set()
    for name in names:
        if name not in set(Optimisation):
            raise InputError.of(
                "C1053",
                f"There is no optimisation `{name}`.",
                None,
                f"those that can be left out are {', '.join(Optimisation)}",
            )
        found.add(Optimisation(name))
    return frozenset(found)
