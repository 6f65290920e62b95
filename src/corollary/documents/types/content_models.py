"""Content models of unordered trees: sequences and choices become counts.

A content model is written as in a DTD, but children have no order here, so a model only says how
many children of each type there are. `(a, b)` and `(b, a)` are the same; a sequence adds up what
its parts allow. Each model is brought into a normal form: a union of *counts*,

    { n : l_t ≤ n_t ≤ u_t for each type t } + any number of each group,

where a group is a multiset of types. The laws are those of commutative regular expressions:

| model            | counts                                                    |
|------------------|-----------------------------------------------------------|
| `a, b`           | l and u of both added                                     |
| `a | b`          | those of `a`, and those of `b`: an exclusive choice       |
| `a?`             | l = 0 if that was at most 1; otherwise nothing as well    |
| `(e | f)*`       | `e*, f*`                                                  |
| `(a, b)*`        | the group {a, b}                                          |
| `(a, b?)*`       | the groups {a} and {a, b}: no more `b` than `a`           |
| `(a, b*)*`       | nothing, or `a+, b*`                                      |

Every union is a production of its own. There may be exponentially many, so there is a limit.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
from typing import assert_never

from corollary.data_class import dataclass
from corollary.documents.types.function_types import Child

ALTERNATIVES_MAX = 512
"""The maximum number of exclusive choices in one content model."""


@dataclass(frozen=True, slots=True)
class TypeReference:
    """A child of a type."""

    type: str


@dataclass(frozen=True, slots=True)
class ContentSequence:
    """All parts; without any, nothing."""

    parts: tuple["ContentModel", ...] = ()


@dataclass(frozen=True, slots=True)
class ContentChoice:
    """One of the parts."""

    parts: tuple["ContentModel", ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """A part that is required or not, and comes at most once or any number of times."""

    part: "ContentModel"
    is_required: bool
    is_single: bool


ContentModel = TypeReference | ContentSequence | ContentChoice | Repetition


class ContentLimitError(Exception):
    """A content model has too many exclusive choices."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many children of each type there may be.

    Attributes:
        bounds: for each type the least and the greatest number, None if there is none.
        groups: types that come together, any number of times.
    """

    bounds: tuple[tuple[str, int, int | None], ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()

    @property
    def children(self) -> tuple[Child, ...]:
        """The same as children of a production."""
        found: list[Child] = []
        for type_, least, most in self.bounds:
            if most is None:
                found += [Child(type_, True, True)] * (least - 1)
                found.append(Child(type_, is_required=least > 0))
            else:
                found += [Child(type_, True, True)] * least
                found += [Child(type_, False, True)] * (most - least)
        return tuple(found)


def counts_of(model: ContentModel) -> list[Counts]:
    """Return the normal form of a content model.

    >>> both = ContentSequence((TypeReference("a"), TypeReference("b")))
    >>> counts_of(Repetition(both, is_required=False, is_single=False))
    [Counts(bounds=(), groups=(('a', 'b'),))]

    Raises:
        ContentLimitError: it has too many alternatives.
    """
    match model:
        case TypeReference(type=type_):
            return [Counts(((type_, 1, 1),))]
        case ContentSequence(parts=parts):
            found = [Counts()]
            for part in parts:
                found = _add_counts(found, counts_of(part))
            return found
        case ContentChoice(parts=parts):
            return _distinct(each for part in parts for each in counts_of(part))
        case Repetition(part=part, is_required=is_required, is_single=is_single):
            inner = counts_of(part)
            if is_single:
                return inner if is_required else _optional(inner)
            return _add_counts(inner, _star(inner)) if is_required else _star(inner)
        case _:
            assert_never(model)


def _distinct(counts: Iterable[Counts]) -> list[Counts]:
    found = list(dict.fromkeys(counts))
    if len(found) > ALTERNATIVES_MAX:
        raise ContentLimitError
    return found


def _add_counts(left: Sequence[Counts], right: Sequence[Counts]) -> list[Counts]:
    """Return the counts of a sequence of two models."""
    if len(left) * len(right) > ALTERNATIVES_MAX**2:
        raise ContentLimitError
    return _distinct(_sum(one, other) for one, other in product(left, right))


def _sum(left: Counts, right: Counts) -> Counts:
    bounds = {type_: (least, most) for type_, least, most in left.bounds}
    for type_, least, most in right.bounds:
        before = bounds.get(type_, (0, 0))
        is_open = most is None or before[1] is None
        bounds[type_] = before[0] + least, None if is_open else (before[1] or 0) + (most or 0)
    listed = tuple(sorted((type_, *each) for type_, each in bounds.items()))
    return Counts(listed, tuple(sorted({*left.groups, *right.groups})))


def _optional(counts: Sequence[Counts]) -> list[Counts]:
    found, has_nothing = [], False
    for each in counts:
        is_short = len(each.bounds) == 1 and not each.groups and each.bounds[0][1] <= 1
        if is_short:
            (type_, _, most) = each.bounds[0]
            each = Counts(((type_, 0, most),))
        has_nothing = has_nothing or all(least == 0 for _, least, _ in each.bounds)
        found.append(each)
    return _distinct(found if has_nothing else [*found, Counts()])


def _star(counts: Sequence[Counts]) -> list[Counts]:
    """Return the counts of any number of trees sequences: (e | f)* is e*, f*."""
    found = [Counts()]
    for each in counts:
        found = _add_counts(found, _star_of_one(each))
    return found


def _star_of_one(counts: Counts) -> list[Counts]:
    is_alone = len(counts.bounds) == 1 and not counts.groups and counts.bounds[0][1] == 1
    if is_alone or all(least == 0 for _, least, _ in counts.bounds):
        return [Counts(tuple((type_, 0, None) for type_, _, _ in counts.bounds), counts.groups)]
    # b P*, for each base b: (b P*)* is nothing, or b b* P*; without P it is b*.
    unbounded = [type_ for type_, _, most in counts.bounds if most is None]
    rest = Counts(tuple((type_, 0, None) for type_ in unbounded), counts.groups)
    ranges = [
        range(least, (least if most is None else most) + 1) for _, least, most in counts.bounds
    ]
    found = [Counts()]
    for base in product(*ranges):
        several = Counter(
            {type_: number for (type_, _, _), number in zip(counts.bounds, base, strict=True)}
        )
        once = Counts(tuple((type_, n, n) for type_, n in sorted(several.items()) if n))
        repeated = _repeat_group(tuple(sorted(several.elements())))
        if rest == Counts():
            found = _add_counts(found, [repeated])
        else:
            found = _add_counts(found, [Counts(), _sum(_sum(once, repeated), rest)])
    return found


def _repeat_group(group: tuple[str, ...]) -> Counts:
    """Return the counts of a group that comes any number of times."""
    return Counts(((group[0], 0, None),)) if len(group) == 1 else Counts((), (group,))
