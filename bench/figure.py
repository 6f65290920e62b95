"""One line of a report that is not about a race of contenders."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report: a value, its bar, and how it came about.

    Attributes:
        bar: what the value may be at most, or where `is_floor` says so, at least.
        differences: what is wrong about the result that was measured.
    """

    name: str
    value: float
    unit: str
    bar: float | None
    about: str
    is_floor: bool = False
    differences: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """`ok` or `missed` where there is a bar, `WRONG` where the result is."""
        if self.differences:
            return "WRONG"
        if self.bar is None:
            return ""
        is_met = self.value >= self.bar if self.is_floor else self.value <= self.bar
        return "ok" if is_met else "missed"

    def __str__(self) -> str:
        judged = self.verdict
        if self.bar is not None:
            judged = f"({'at least' if self.is_floor else 'at most'} {self.bar:g}): {judged}"
        first = f"    {self.name:24} {self.value:10.3f} {self.unit:3} {judged:28} {self.about}"
        return "\n".join([first.rstrip(), *(f"        {each}" for each in self.differences)])


def as_json(figures: Sequence[Figure]) -> list[dict[str, Any]]:
    """Return figures for the JSON of a run."""
    return [asdict(figure) for figure in figures]
