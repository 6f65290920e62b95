"""Which relation reads which: the graph that strata are made of."""

from collections.abc import Mapping
from dataclasses import dataclass

from corollary.analysis.survey import Survey
from corollary.analysis.traverse import Reading
from corollary.core.graph import components


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The dependency graph of a program.

    Attributes:
        reads: for each relation, the relations it reads, with the first atom that does so.
        strict: what is read through an aggregate or negation (true), with the first such atom.
        component: the number of each relation's strongly connected component.
    """

    reads: Mapping[str, Mapping[str, Reading]]
    strict: Mapping[tuple[str, str, bool], Reading]
    component: Mapping[str, int]

    def is_recursive(self, head: str, body: str) -> bool:
        """Whether a relation reads another one that depends on it."""
        return self.component.get(head, -1) == self.component.get(body, -2)


def dependencies(survey: Survey) -> Dependencies:
    """Return the dependency graph; triggers change relations, they do not define them."""
    reads: dict[str, dict[str, Reading]] = {}
    strict: dict[tuple[str, str, bool], Reading] = {}
    for clause, read in zip(survey.clauses, survey.readings, strict=True):
        for head in clause.heads:
            if head.sign:
                continue
            targets = reads.setdefault(head.relation, {})
            for reading in read:
                targets.setdefault(reading.atom.relation, reading)
                if reading.is_negated or reading.is_aggregated:
                    key = (head.relation, reading.atom.relation, reading.is_negated)
                    strict.setdefault(key, reading)
    component = {name: number for number, names in enumerate(components(reads)) for name in names}
    return Dependencies(reads, strict, component)
