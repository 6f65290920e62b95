r"""Functors that apply a lambda: its body is computed once, for the elements of all arrays.

A row of the frame of the body is an element. It has the parameters as values of their own, and the
outer variables of the row whose array the element is in:

    transform(a, \x -> \x + k)    a       k        row  x  k  \x + k        result
                                  [1, 2]  10   →    0   1  10   11     →    [11, 12]
                                  []      20        0   2  10   12          []

What is missing in an element is missing in its row, unless another element decides. `reduce` takes
the first elements of all arrays, then the second ones, and so on.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from corollary.core import logic
from corollary.core.arrow_buffers import bool_array
from corollary.core.engine import check_deadline
from corollary.core.functors.lambdas import is_parameter, lambda_name, parameters_of
from corollary.core.records.arrays import Offsets, join_pieces, offsets_of, owners_of, split_pieces
from corollary.core.types import NUMBER
from corollary.data_class import dataclass
from corollary.engines.local.evaluation.functions.arrays import ArrayRows, pieces_of, values_of
from corollary.engines.local.evaluation.value_vector import (
    ValueVector,
    dense_mask,
    take_rows,
    union_masks,
)
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.values import native
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.local.values.texts import Texts

NO_ORDER = "a comparator does not order the elements of an array"
TOO_LONG = "an array has too many elements for a comparator"
SORT_MAX_ELEMENTS = 1 << 12
"""All pairs of different elements of an array are compared."""
PAIRS_MAX = 1 << 22
"""So many pairs are compared at once."""

Faults = Sequence[tuple[Mask, str]]


@dataclass(frozen=True, slots=True)
class LambdaScope:
    """Where a functor with a lambda stands: `evaluate`, and its arguments but the expression."""

    evaluate: Callable[..., ValueVector]
    frame: Mapping[str, Codes]
    count: int
    codes: Dictionary
    missing: Mapping[str, Mask]
    bound: Mapping[str, ValueVector]

    def value(self, term: logic.Term) -> ValueVector:
        """Return the values of an argument."""
        return self.evaluate(
            term, self.frame, self.count, self.codes, self.missing, bound=self.bound
        )

    def apply(
        self, function: logic.Term, rows: Codes, arguments: Sequence[ValueVector]
    ) -> ValueVector:
        """Return what a lambda gives for some arguments, given the row that each belongs to."""
        assert isinstance(function, logic.Functor)
        (body,) = function.arguments
        own = [lambda_name((each,)) for each in parameters_of(function.name)]
        bound = dict(zip(own, arguments, strict=False))
        for part in logic.subterms(body):
            if is_parameter(part) and part.name not in bound and part.name in self.bound:
                bound[part.name] = take_rows(self.bound[part.name], rows)
        names = {each.name for each in logic.variables_of(body)}
        frame = {name: self.frame[name][rows] for name in names}
        missing = {name: self.missing[name][rows] for name in names & self.missing.keys()}
        return self.evaluate(body, frame, len(rows), self.codes, missing, bound=bound)


@dataclass(frozen=True, slots=True)
class Arrays:
    """The arrays of the rows that have all of them.

    Attributes:
        table: these rows.
        rows: their numbers.
        offsets: where each array begins, and where the last one ends.
        elements: the elements of each argument.
        pieces: those of the first argument as they are stored.
    """

    table: ArrayRows
    rows: Codes
    offsets: Offsets
    elements: Sequence[ValueVector]
    pieces: pa.Array

    @property
    def owners(self) -> Codes:
        """The array of each element."""
        return owners_of(self.offsets)

    @property
    def numbers(self) -> ValueVector:
        """The number of each element in its array, from 0."""
        places = np.arange(self.offsets[-1]) - self.offsets[:-1].repeat(np.diff(self.offsets))
        return ValueVector(places, NUMBER)

    def faults(self, faults: Faults) -> Faults:
        """Return the arrays with an element that has no value."""
        return [(self.any(mask), reason) for mask, reason in faults if mask.any()]

    def any(self, mask: Mask) -> Mask:
        """Return the arrays that have an element of a mask."""
        found = np.zeros(len(self.rows), np.bool_)
        found[self.owners[mask]] = True
        return found

    def where(self, mask: Mask) -> Texts:
        """Return the arrays of the elements of a mask."""
        sizes = np.bincount(self.owners[mask], minlength=len(self.rows))
        return Texts(join_pieces(offsets_of(sizes), self.pieces.filter(bool_array(mask))))


def apply_lambda(call: logic.Functor, scope: LambdaScope) -> ValueVector:
    """Return the values of a functor that takes a lambda."""
    kernel, count = _KERNELS[call.name]
    inputs = [scope.value(each) for each in call.arguments[:count]]
    arrays = _unnest(ArrayRows(call.name, inputs), inputs)
    if not len(arrays.rows):
        values = native.filler_values(0, logic.type_of(call))
        return arrays.table.vector(values, logic.type_of(call))
    return kernel(call, scope, arrays)


def _unnest(table: ArrayRows, inputs: Sequence[ValueVector]) -> Arrays:
    """Return the elements of arrays; those of one that has fewer than another one are null."""
    skipped = dense_mask(table.skipped, len(inputs[0].values))
    lists = [split_pieces(each.array) for each in table.columns]
    sizes = np.maximum.reduce([np.diff(offsets) for offsets, _ in lists])
    offsets = offsets_of(sizes)
    owners = owners_of(offsets)
    places = np.arange(offsets[-1]) - offsets[owners]
    elements: list[ValueVector] = []
    for (own, pieces), each in zip(lists, inputs, strict=True):
        assert each.type.element is not None
        values, nulls = values_of(pieces, each.type.element)
        vector = ValueVector(values, each.type.element.with_null(True), nulls)
        if len(lists) > 1:
            vector = _padded(vector, own, owners, places)
        elements.append(vector)
    return Arrays(table, np.flatnonzero(~skipped), offsets, elements, lists[0][1])


def _padded(vector: ValueVector, offsets: Offsets, owners: Codes, places: Codes) -> ValueVector:
    """Return the elements at some places of arrays, null where there is none."""
    absent = places >= np.diff(offsets)[owners]
    values = native.filler_values(len(owners), vector.type)
    nulls = absent
    if len(vector.values):
        found = take_rows(vector, np.where(absent, 0, offsets[owners] + places))
        values, nulls = found.values, absent | dense_mask(found.nulls, len(owners))
    return ValueVector(values, vector.type, nulls)


def _each(call: logic.Functor, scope: LambdaScope, arrays: Arrays) -> ValueVector:
    """Return what the lambda of a functor gives for each element."""
    given = [*arrays.elements, arrays.numbers]
    return scope.apply(call.arguments[-1], arrays.rows[arrays.owners], given)


def _transform(call: logic.Functor, scope: LambdaScope, arrays: Arrays) -> ValueVector:
    made = _each(call, scope, arrays)
    nulls = union_masks(made.nulls, made.fault_mask)
    pieces = pieces_of(made.values, nulls, made.type)
    texts = Texts(join_pieces(arrays.offsets, pieces.array))
    return arrays.table.vector(texts, logic.type_of(call), faults=arrays.faults(made.faults))


def _is_true(vector: ValueVector) -> Mask:
    """Return where there is a value that is true."""
    absent = union_masks(vector.nulls, vector.fault_mask)
    true: Mask = vector.values != 0
    return true if absent is None else true & ~absent


def _filter(call: logic.Functor, scope: LambdaScope, arrays: Arrays) -> ValueVector:
    made = _each(call, scope, arrays)
    texts = arrays.where(_is_true(made))
    return arrays.table.vector(texts, logic.type_of(call), faults=arrays.faults(made.faults))


def _decide(is_any: bool) -> "Kernel":
    """`exists`, which true decides, or `forall`, which false decides."""

    def kernel(call: logic.Functor, scope: LambdaScope, arrays: Arrays) -> ValueVector:
        made = _each(call, scope, arrays)
        absent = dense_mask(union_masks(made.nulls, made.fault_mask), len(made.values))
        decided = arrays.any(~absent & ((made.values != 0) == is_any))
        nulls = ~decided & arrays.any(dense_mask(made.nulls, len(made.values)))
        faults = [(mask & ~decided, reason) for mask, reason in arrays.faults(made.faults)]
        values = (decided == is_any).astype(np.int64)
        return arrays.table.vector(values, logic.type_of(call), nulls, faults=faults)

    return kernel


def _reduce(call: logic.Functor, scope: LambdaScope, arrays: Arrays) -> ValueVector:
    _, start, function = call.arguments
    (elements,), sizes = arrays.elements, np.diff(arrays.offsets)
    value, going = take_rows(scope.value(start), arrays.rows), np.arange(len(sizes))
    ended: list[tuple[Codes, ValueVector]] = []
    place = 0
    while len(going):
        check_deadline()
        done = (sizes[going] == place) | dense_mask(value.fault_mask, len(going))
        if done.any():
            ended.append((going[done], take_rows(value, done)))
            value, going = take_rows(value, ~done), going[~done]
        if len(going):
            element = take_rows(elements, arrays.offsets[going] + place)
            value = scope.apply(function, arrays.rows[going], (value, element))
        place += 1
    places = np.argsort(np.concatenate([rows for rows, _ in ended]))
    vectors = [each for _, each in ended]
    nulls = np.concatenate([dense_mask(each.nulls, len(each.values)) for each in vectors])
    faults: list[tuple[Mask, str]] = []
    for rows, each in ended:
        for mask, reason in each.faults:
            lost = np.zeros(len(sizes), np.bool_)
            lost[rows[mask]] = True
            faults.append((lost, reason))
    values = _concatenated([each.values for each in vectors])[places]
    return arrays.table.vector(values, logic.type_of(call), nulls[places], faults=faults)


def _concatenated(values: Sequence[Any]) -> Any:
    if isinstance(values[0], Texts):
        return Texts(pa.concat_arrays([each.array for each in values]))
    return np.concatenate(values)


def _sort(call: logic.Functor, scope: LambdaScope, arrays: Arrays) -> ValueVector:
    """Order elements by how many others the comparator has before them.

    It is an order, in which several may be equal, if and only if for each two elements it says the
    same as these numbers.
    """
    owners, count = arrays.owners, len(arrays.rows)
    _, ranks = Texts(arrays.pieces).ranks()
    keys = owners * (int(ranks.max(initial=0)) + 1) + ranks
    _, firsts, own, copies = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    offsets = offsets_of(np.bincount(owners[firsts], minlength=count))
    sizes = np.diff(offsets)
    is_long = sizes > SORT_MAX_ELEMENTS
    faults: list[tuple[Mask, str]] = [(is_long, TOO_LONG)] if is_long.any() else []
    before = np.zeros(len(firsts), np.int64)
    pairs = np.where(is_long, 0, sizes**2)
    parts = np.cumsum(pairs) // PAIRS_MAX
    for part in np.unique(parts[pairs > 0]):
        check_deadline()
        chosen = np.flatnonzero((parts == part) & ~is_long)
        one, other = _pairs(offsets[chosen], sizes[chosen])
        is_compared = (one != other) | (copies[one] > 1)
        one, other = one[is_compared], other[is_compared]
        arguments = [take_rows(arrays.elements[0], firsts[each]) for each in (one, other)]
        rows = owners[firsts[one]]
        made = scope.apply(call.arguments[-1], arrays.rows[rows], arguments)
        differ = one != other
        before += np.bincount(other[differ & (made.values < 0)], minlength=len(before))
        is_wrong = differ & (np.sign(made.values) != np.sign(before[one] - before[other]))
        if made.nulls is not None:
            is_wrong |= made.nulls
        for mask, reason in ((is_wrong, NO_ORDER), *made.faults):
            if mask.any():
                lost = np.zeros(count, np.bool_)
                lost[rows[mask]] = True
                faults.append((lost, reason))
    order = np.lexsort((before[own], owners))
    texts = Texts(join_pieces(arrays.offsets, Texts(arrays.pieces).take(order).array))
    return arrays.table.vector(texts, logic.type_of(call), faults=faults)


def _pairs(starts: Codes, sizes: Codes) -> tuple[Codes, Codes]:
    """Return all pairs of numbers from the same of several ranges."""
    one = np.repeat(offsets_of(sizes)[:-1], sizes)
    ones = np.repeat(starts, sizes) + np.arange(len(one)) - one
    per_one = np.repeat(sizes, sizes)
    first = np.repeat(starts, sizes).repeat(per_one)
    others = first + np.arange(len(first)) - offsets_of(per_one)[:-1].repeat(per_one)
    return ones.repeat(per_one), others


Kernel = Callable[[logic.Functor, LambdaScope, Arrays], ValueVector]

_KERNELS: Mapping[str, tuple[Kernel, int]] = {
    "transform": (_transform, 1),
    "filter": (_filter, 1),
    "exists": (_decide(is_any=True), 1),
    "forall": (_decide(is_any=False), 1),
    "reduce": (_reduce, 1),
    "zip_with": (_transform, 2),
    "sort_with": (_sort, 1),
}
"""What computes each of them, and how many of the first arguments are arrays whose elements the
lambda is given."""
