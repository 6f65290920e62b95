"""An array that grows at its end."""

from typing import Any

import numpy as np
import numpy.typing as npt


class Growing:
    """An array that grows at its end, its capacity doubling."""

    __slots__ = ("_array", "count")

    def __init__(self, dtype: Any, count: int = 0) -> None:
        self._array: npt.NDArray[Any] = np.empty(count + count // 8 + 16, dtype)
        self.count = count

    @property
    def array(self) -> npt.NDArray[Any]:
        """What it holds, perhaps with room behind."""
        return self._array

    def extend(self, values: Any) -> None:
        """Add values at the end."""
        count = self.count + len(values)
        if count > len(self._array):
            larger = np.empty(2 * count, self._array.dtype)
            larger[: self.count] = self._array[: self.count]
            self._array = larger
        self._array[self.count : count] = values
        self.count = count
