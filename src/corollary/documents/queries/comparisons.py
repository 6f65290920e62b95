"""Comparisons of joined values: linear, over the numbers and times that labels spell.

A comparison is Σ c·x + k ⋛ 0, where x is the number of a class of variables. A label that spells
neither a number nor a time has none, and no comparison with it holds. With unknown labels a
comparison is three-valued: it may hold if some numbers make all comparisons of the query true at
once. By Fourier and Motzkin the unknowns are eliminated: what is left are comparisons between the
known ones, which hold iff there are such numbers.

    eliminate x from  x - a > 0,  b - x ≥ 0         ⟹   b - a > 0

The numbers of labels are dense, so that is exact; `≠` is split into `<` and `>` beforehand. Labels
that have to differ as they are spelled can always do so if one is unknown: a number has many
spellings.

Arrivals are times as well. Of one that is yet to come it is known that it is not before the clock,
and not after the time at which the query is asked; that may be any later time:

    t unknown, now unknown:   clock ≤ t ≤ now       what holds is asked with now = clock

| label                          | its number                                |
|--------------------------------|-------------------------------------------|
| `7`, `-2.50`, `1e3`            | as it is spelled                          |
| `2026-05-01`, `2026-05-01T12Z` | seconds since 1970, UTC unless it says so |
"""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from itertools import product

from corollary.core.logic import MIRRORED_OPERATORS
from corollary.data_class import dataclass

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_TIME = re.compile(r"\d{4}-\d\d-\d\d")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|min|h|d)")
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
NOW = "now()"
"""The time at which a query is asked, among the variables of a comparison."""
CLOCK = "clock()"
"""The time that it is in a document: no later arrival is known."""
MAX_COMPARED_CLASSES = 6
"""Classes that the comparisons of a query may have: each of them makes twice as many rules."""
MAX_UNEQUAL = 4
"""Numbers that may have to be unequal: each of them makes twice as many rules."""
TESTS = {
    "<": lambda value: value < 0,
    "<=": lambda value: value <= 0,
    "=": lambda value: value == 0,
    "!=": lambda value: value != 0,
}


def number_of(label: str) -> float | None:
    """Return the number, or the time in seconds, that a label spells.

    >>> number_of("2.50"), number_of("1970-01-02T00:00Z"), number_of("two")
    (2.5, 86400.0, None)
    """
    if _NUMBER.fullmatch(label):
        value = float(label) + 0.0  # one zero, not two
        return value if math.isfinite(value) else None
    if not _TIME.match(label):
        return None
    try:
        found = datetime.fromisoformat(label)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def literal_number(text: str) -> float | None:
    """Return the number of a literal of a query: a number, or a duration in seconds.

    >>> literal_number("3600"), literal_number("1.5h"), literal_number("x")
    (3600.0, 5400.0, None)
    """
    duration = _DURATION.fullmatch(text)
    if duration is None:
        return number_of(text)
    return float(duration[1]) * _SECONDS[duration[2]]


@dataclass(frozen=True, slots=True)
class NumberComparison:
    """Σ c·x + k ⋛ 0.

    Attributes:
        terms: variables or classes, with their coefficients, none of which is 0.
        constant: k.
        operator: `<`, `<=`, `=` or `!=`.
    """

    terms: tuple[tuple[str, Fraction], ...]
    constant: Fraction
    operator: str

    @classmethod
    def of(
        cls, terms: Mapping[str, Fraction], constant: Fraction, operator: str
    ) -> "NumberComparison":
        """Return a comparison with 0; `>` and `>=` are turned around."""
        if operator in (">", ">="):
            return cls.of(
                {name: -each for name, each in terms.items()}, -constant, operator.replace(">", "<")
            )
        kept = tuple(sorted((name, each) for name, each in terms.items() if each))
        return cls(kept, constant, operator)

    def rename(self, names: Mapping[str, str]) -> "NumberComparison":
        """Return the comparison between classes; several variables may have the same one."""
        sums: dict[str, Fraction] = {}
        for name, each in self.terms:
            sums[names[name]] = sums.get(names[name], Fraction(0)) + each
        return NumberComparison.of(sums, self.constant, self.operator)

    def substitute(self, values: Mapping[str, float]) -> "NumberComparison":
        """Return what is left when some numbers are known."""
        known = [Fraction(values[name]) * each for name, each in self.terms if name in values]
        left = tuple((name, each) for name, each in self.terms if name not in values)
        return NumberComparison(left, self.constant + sum(known), self.operator)

    @property
    def holds(self) -> bool:
        """Whether a comparison without variables is true."""
        return bool(TESTS[self.operator](self.constant))

    def by_clock(self, arrivals: Collection[str]) -> "tuple[ClockTest, str | None] | None":
        """Return what the clock decides of one class, if that is all that is compared.

        Args:
            arrivals: the classes that are times at which nodes came.
        """
        factors = dict(self.terms)
        clock = factors.pop(CLOCK, None)
        if clock is None or len(factors) > 1:
            return None
        name = next(iter(factors), None)
        # Divided by the factor of the class, so that its number stands alone on the left.
        factor = factors[name] if name is not None else Fraction(1)
        operator = MIRRORED_OPERATORS[self.operator] if factor < 0 else self.operator
        pool = NumberPool.NOTHING
        if name is not None:
            pool = NumberPool.ARRIVALS if name in arrivals else NumberPool.LABELS
        return ClockTest(-clock / factor, -self.constant / factor, operator, pool), name


class NumberPool(StrEnum):
    """The numbers of a document that a class ranges over; nothing if no class is compared."""

    ARRIVALS = "arrivals"
    LABELS = "labels"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class ClockTest:
    """x ⋛ a·t + b: what the clock t decides of a number x; 0 ⋛ a·t + b if none is compared.

    As time passes, only numbers between two values of a·t + b turn from true to false, or back.

    >>> test = ClockTest(Fraction(1), Fraction(-600), ">=", NumberPool.ARRIVALS)
    >>> test.holding([0.0, 100.0, 400.0], 700.0), test.turning([0.0, 100.0, 400.0], 700.0, 1000.0)
    ([100.0, 400.0], [100.0, 400.0])

    Attributes:
        factor, constant: a and b.
        operator: `<`, `<=`, `=`, `!=`, `>` or `>=`.
        pool: which numbers x are.
    """

    factor: Fraction
    constant: Fraction
    operator: str
    pool: NumberPool

    @property
    def name(self) -> str:
        """What relations call it."""
        return f"{self.pool} {self.operator} {self.factor} t + {self.constant}"

    def bound(self, clock: float) -> Fraction:
        """Return a·t + b."""
        return self.factor * Fraction(clock) + self.constant

    def holding(self, numbers: Sequence[float], clock: float) -> list[float]:
        """Return the numbers, of ascending ones, for which it holds at a time."""
        bound = self.bound(clock)
        below, above = bisect_left(numbers, bound), bisect_right(numbers, bound)
        match self.operator:
            case "<":
                return [*numbers[:below]]
            case "<=":
                return [*numbers[:above]]
            case "=":
                return [*numbers[below:above]]
            case "!=":
                return [*numbers[:below], *numbers[above:]]
            case ">":
                return [*numbers[above:]]
            case _:
                return [*numbers[below:]]

    def turning(self, numbers: Sequence[float], before: float, after: float) -> list[float]:
        """Return the numbers, of ascending ones, that time can turn: no others change."""
        low, high = sorted((self.bound(before), self.bound(after)))
        return [*numbers[bisect_left(numbers, low) : bisect_right(numbers, high)]]

    def next_turn(self, numbers: Sequence[float], clock: float) -> float | None:
        """Return the time at which the next of ascending numbers turns; None if none does."""
        bound = self.bound(clock)
        if self.factor > 0:
            at = bisect_left(numbers, bound)
            found = numbers[at] if at < len(numbers) else None
        else:
            at = bisect_right(numbers, bound)
            found = numbers[at - 1] if at else None
        return None if found is None else float((Fraction(found) - self.constant) / self.factor)


@dataclass(frozen=True, slots=True)
class LabelDifference:
    """Two labels that have to differ as they are spelled: classes, or a class and a label.

    Attributes:
        left: a variable or class.
        right: another one, or the label itself.
        is_label: whether the right side is a label.
    """

    left: str
    right: str
    is_label: bool = False

    def rename(self, names: Mapping[str, str]) -> "LabelDifference":
        """Return the difference between classes."""
        right = self.right if self.is_label else names[self.right]
        return LabelDifference(names[self.left], right, self.is_label)

    @property
    def classes(self) -> tuple[str, ...]:
        """The variables or classes in it."""
        return (self.left,) if self.is_label else (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Conditions:
    """All comparisons of a query, or of one of its alternatives.

    Attributes:
        numbers: those of numbers and times.
        differences: labels that have to differ.
        arrivals: the variables or classes that are times at which nodes came.
        clock: the time that it is; None for all times, as in rules.
    """

    numbers: tuple[NumberComparison, ...] = ()
    differences: tuple[LabelDifference, ...] = ()
    arrivals: tuple[str, ...] = ()
    clock: float | None = None

    def __bool__(self) -> bool:
        return bool(self.numbers or self.differences)

    @property
    def numeric(self) -> tuple[str, ...]:
        """The classes that have to be numbers."""
        found = {name for each in self.numbers for name, _ in each.terms}
        return tuple(sorted(found - {NOW, CLOCK}))

    @property
    def is_windowed(self) -> bool:
        """Whether they depend on the time at which the query is asked."""
        return any(name == NOW for each in self.numbers for name, _ in each.terms)

    def at(self, clock: float) -> "Conditions":
        """Return the conditions at a time."""
        return replace(self, clock=clock)

    @property
    def sure_numbers(self) -> tuple[NumberComparison, ...]:
        """The comparisons that have to hold for an answer to be sure: asked by the clock."""
        names = {name: name for name in (*self.numeric, CLOCK)}
        return tuple(each.rename({**names, NOW: CLOCK}) for each in self.numbers)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that matter."""
        spelled = {name for each in self.differences for name in each.classes}
        return tuple(sorted(spelled.union(self.numeric)))

    def pin(self, names: Mapping[str, str], labels: Mapping[str, str]) -> "Conditions | None":
        """Return the conditions of an alternative; None if they are false there.

        Args:
            names: the class of each variable.
            labels: of classes that have one in the query.
        """
        values = {name: number_of(label) for name, label in labels.items()}
        numbers = []
        for written in self.numbers:
            each = written.rename({**names, NOW: NOW})
            if any(values.get(name, 0.0) is None for name, _ in each.terms):
                return None
            each = each.substitute({name: one for name, one in values.items() if one is not None})
            if each.terms:
                numbers.append(each)
            elif not each.holds:
                return None
        differences = []
        for difference in self.differences:
            one = difference.rename(names)
            left = labels.get(one.left)
            right = one.right if one.is_label else labels.get(one.right)
            if left is not None and right is not None:
                if left == right:
                    return None
            elif not one.is_label and one.left == one.right:
                return None
            elif left is not None:
                differences.append(LabelDifference(one.right, left, is_label=True))
            else:
                differences.append(
                    one if right is None else LabelDifference(one.left, right, is_label=True)
                )
        return replace(self, numbers=tuple(numbers), differences=tuple(differences))

    def cases(self, unknown: Iterable[str]) -> Iterator[list[NumberComparison]]:
        """Yield the comparisons of known numbers of which those of one case have to hold.

        Args:
            unknown: the classes whose labels are unknown; there are such numbers iff a case holds.
        """
        unknown = list(unknown)
        numbers = self._with_times(unknown)
        yield from _cases(numbers, [*unknown, NOW] if self.is_windowed else unknown)

    def clock_tests(self) -> set[ClockTest]:
        """Return what rules ask the clock, so that it is known for each number beforehand."""
        found = [*self.sure_numbers]
        for unknown in product((False, True), repeat=len(self.classes)):
            names = [name for name, is_open in zip(self.classes, unknown, strict=True) if is_open]
            found += [each for case in self.cases(names) for each in case]
        tests = (each.by_clock(self.arrivals) for each in found)
        return {each[0] for each in tests if each is not None}

    def _with_times(self, unknown: Iterable[str]) -> list[NumberComparison]:
        """Return the comparisons, with what is known of times that are not: see above."""
        found = [*self.numbers]
        coming = [name for name in unknown if name in self.arrivals]
        found += [_not_after(CLOCK, name) for name in coming]
        if self.is_windowed:
            found += [_not_after(name, NOW) for name in (CLOCK, *coming)]
        return found

    def may_hold(self, labels: Mapping[str, str | None]) -> bool:
        """Whether there are labels for unknown ones with which all comparisons hold.

        Args:
            labels: of classes; None for one that is unknown.
        """
        values: dict[str, float] = {} if self.clock is None else {CLOCK: self.clock}
        for name in self.numeric:
            label = labels[name]
            if label is not None:
                value = number_of(label)
                if value is None:
                    return False
                values[name] = value
        for each in self.differences:
            one, other = labels[each.left], each.right if each.is_label else labels[each.right]
            if one is not None and one == other:
                return False
        numbers = self._with_times(name for name in self.numeric if name not in values)
        known = [each.substitute(values) for each in numbers]
        left = [each for each in known if each.terms]
        unknown = {name for each in left for name, _ in each.terms}
        return all(each.terms or each.holds for each in known) and any(
            True for _ in _cases(left, sorted(unknown))
        )

    def must_hold(self, labels: Mapping[str, str]) -> bool:
        """Whether all comparisons hold by the clock, for labels that are known."""
        values = {name: number_of(labels[name]) for name in self.numeric}
        known = {name: each for name, each in values.items() if each is not None}
        is_spelled = all(
            labels[each.left] != (each.right if each.is_label else labels[each.right])
            for each in self.differences
        )
        at = {} if self.clock is None else {CLOCK: self.clock}
        return (
            is_spelled
            and len(known) == len(values)
            and all(each.substitute({**known, **at}).holds for each in self.sure_numbers)
        )


def _not_after(one: str, other: str) -> NumberComparison:
    return NumberComparison.of({one: Fraction(1), other: Fraction(-1)}, Fraction(0), "<=")


def _cases(
    numbers: Iterable[NumberComparison], unknown: Iterable[str]
) -> Iterator[list[NumberComparison]]:
    """Yield for each case the comparisons that are left without some numbers."""
    several = list(numbers)
    unequal = [each for each in several if each.operator == "!="]
    others = [each for each in several if each.operator != "!="]
    for signs in product((1, -1), repeat=len(unequal)):
        chosen = [
            NumberComparison.of(
                {name: sign * one for name, one in each.terms}, sign * each.constant, "<"
            )
            for sign, each in zip(signs, unequal, strict=True)
        ]
        left = eliminate([*others, *chosen], unknown)
        if all(each.terms or each.holds for each in left):
            yield [each for each in left if each.terms]


def eliminate(
    comparisons: list[NumberComparison], unknown: Iterable[str]
) -> list[NumberComparison]:
    """Return comparisons without some numbers, which hold iff there are such numbers.

    >>> x, a, b = (
    ...     lambda **terms: NumberComparison.of(
    ...         {n: Fraction(c) for n, c in terms.items()}, Fraction(0), "<"
    ...     ),
    ...     "a",
    ...     "b",
    ... )
    >>> eliminate([x(a=1, x=-1), x(x=1, b=-1)], ["x"]) == [x(a=1, b=-1)]
    True

    Args:
        comparisons: with `<`, `<=` and `=`.
        unknown: the names of the numbers.
    """
    for name in unknown:
        with_it = [(each, dict(each.terms).get(name)) for each in comparisons]
        kept = [each for each, factor in with_it if factor is None]
        equal = next(
            ((each, factor) for each, factor in with_it if factor and each.operator == "="), None
        )
        if equal is not None:
            others = [(each, factor) for each, factor in with_it if factor and each != equal[0]]
            comparisons = kept + [
                _sum(each, equal[0], -factor / (equal[1] or 1), each.operator)
                for each, factor in others
            ]
            continue
        below = [(each, factor) for each, factor in with_it if factor and factor < 0]
        above = [(each, factor) for each, factor in with_it if factor and factor > 0]
        comparisons = list(
            dict.fromkeys(
                kept
                + [
                    _sum(upper, lower, -factor / less, _joint(upper, lower))
                    for upper, factor in above
                    for lower, less in below
                ]
            )
        )
    return comparisons


def _joint(one: NumberComparison, other: NumberComparison) -> str:
    return "<" if "<" in (one.operator, other.operator) else "<="


def _sum(
    one: NumberComparison, other: NumberComparison, factor: Fraction, operator: str
) -> NumberComparison:
    """Return the comparison of one side plus a multiple of another."""
    terms = dict(one.terms)
    for name, each in other.terms:
        terms[name] = terms.get(name, Fraction(0)) + factor * each
    return NumberComparison.of(terms, one.constant + factor * other.constant, operator)
