"""Columns of texts that are computed with: in Arrow, not as Python objects."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow_buffers import (
    bool_array,
    bool_values,
    fixed_values,
    index_array,
    string_array,
)
from corollary.data_class import dataclass
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Mask

_COMPARISONS = {"=": "equal", "<": "less", "<=": "less_equal"}


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """The values of a symbol for all rows; the empty text where they are null or missing.

    Attributes:
        array: of the type `large_string`, without nulls.
    """

    array: pa.Array

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Texts":
        """Return Python strings.

        >>> Texts.of(["a", "b"])[np.array([False, True])].tolist()
        ['b']
        """
        return cls(string_array(texts))

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: Any) -> Any:
        """Return the text of a row, or the texts of a mask or an array of rows."""
        if isinstance(rows, np.ndarray):
            is_mask = rows.dtype == np.bool_
            return Texts(self.array.filter(bool_array(rows)) if is_mask else self.take(rows).array)
        return self.array[int(rows)].as_py()

    def take(self, rows: Codes) -> "Texts":
        """Return the texts of rows."""
        return Texts(self.array.take(index_array(rows)))

    def tolist(self) -> list[str]:
        """Return Python strings."""
        texts: list[str] = self.array.to_pylist()
        return texts

    def repeat(self, count: int) -> "Texts":
        """Return the only text `count` times."""
        return self.take(np.zeros(count, np.int64))

    def scatter(self, mask: Mask) -> "Texts":
        """Return the texts in the rows of a mask, the empty one in all others."""
        texts = pa.concat_arrays([self.array, string_array([""])])
        rows = np.full(len(mask), len(self), np.int64)
        rows[mask] = np.arange(len(self))
        return Texts(texts.take(index_array(rows)))

    @property
    def is_ascii(self) -> bool:
        """Whether all texts have one byte for each character."""
        ends = self._ends()
        if len(ends) < 2 or ends[0] == ends[-1]:
            return True
        data = np.frombuffer(self.array.buffers()[2], np.uint8)[ends[0] : ends[-1]]
        return int(data.max()) < 0x80

    def byte_lengths(self) -> Codes:
        """Return the number of bytes of each text."""
        return np.diff(self._ends())

    def slice_bytes(self, starts: Codes, sizes: Codes) -> "Texts":
        """Return a part of each text: where it begins in it, and its number of bytes.

        >>> Texts.of(["abc", "de"]).slice_bytes(np.array([1, 0]), np.array([2, 1])).tolist()
        ['bc', 'd']
        """
        ends = np.zeros(len(self) + 1, np.int64)
        np.cumsum(sizes, out=ends[1:])
        # Byte number i of the result, of text t, is byte number i + shift[t] of the data.
        shift = self._ends()[:-1] + starts - ends[:-1]
        data = self.array.buffers()[2]
        taken = np.frombuffer(data if data is not None else b"", np.uint8)[
            np.arange(ends[-1]) + shift.repeat(sizes)
        ]
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(taken)]
        return Texts(pa.Array.from_buffers(pa.large_string(), len(self), buffers))

    def _ends(self) -> Codes:
        """Return where the texts begin in the data, and where the last one ends."""
        array = self.array
        offsets = array.buffers()[1]
        if not len(array) or offsets is None:
            return np.zeros(1, np.int64)
        return np.frombuffer(offsets, np.int64, len(array) + 1, 8 * array.offset)

    def distinct(self) -> tuple["Texts", Codes]:
        """Return the distinct texts, and for each row the number of its text among them.

        >>> one, rows = Texts.of(["b", "a", "b"]).distinct()
        >>> one.tolist(), rows.tolist()
        (['b', 'a'], [0, 1, 0])
        """
        encoded = self.array.dictionary_encode()
        rows = fixed_values(encoded.indices, np.int32).astype(np.int64)
        return Texts(encoded.dictionary), rows

    def ranks(self) -> tuple["Texts", Codes]:
        """Return the distinct texts in ascending order, and for each row the number of its text."""
        texts, rows = self.distinct()
        order = fixed_values(pc.array_sort_indices(texts.array), np.uint64).astype(np.int64)
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return texts.take(order), places[rows]


def compare_texts(operator: str, one: Texts, two: Texts) -> Mask:
    """Return the mask of rows in which `=`, `<` or `<=` is true: by code points, as bytes are."""
    return bool_values(pc.call_function(_COMPARISONS[operator], [one.array, two.array]))


def select_texts(mask: Mask, one: Texts, other: Texts) -> Texts:
    """Return the one text where the mask is set, the other elsewhere."""
    return Texts(pc.if_else(bool_array(mask), one.array, other.array))
