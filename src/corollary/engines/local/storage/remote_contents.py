"""Tuples of a table that are outside of this process."""

from collections.abc import Sequence
from typing import Any, Protocol

from corollary.core.states import State
from corollary.engines.local.storage.arrangement import Arrangement, Order
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Words
from corollary.engines.local.storage.rows import Tuples
from corollary.engines.local.storage.runs import PendingProbe


class RemoteContents(Protocol):
    """What a table has outside of this process, and how that changes.

    It gives the arrangements of the table runs of those tuples. As long as it holds none, the table
    is an ordinary one. Tuples that are given to it may be outside of this process, too.
    """

    @property
    def is_held(self) -> bool:
        """Whether there are committed or added tuples outside."""

    def is_remote(self, state: State) -> bool:
        """Whether tuples of a state are outside."""

    def make_room(self) -> None:
        """Widen the layout if the codes of values that have passed need it.

        A code that does not fit would seem to be absent.
        """

    # --- reading -------------------------------------------------------------------------------

    def order_for(self, order: Order, bound: tuple[int, ...]) -> Order:
        """Return an order with the bound columns first that is better to probe, or the same."""

    def arrange(self, order: Order) -> Arrangement:
        """Return the tuples in an order that there is not yet; some are held."""

    def unfetched(self, order: Order, keys: list[Codes], state: State) -> list[PendingProbe] | None:
        """Return what a probe by keys has to fetch; None if it is not known, or is everything."""

    def unfetched_words(self, words: Words, state: State) -> list[PendingProbe]:
        """Return what a lookup of tuples, packed in the current layout, has to fetch."""

    def unfetched_codes(self, columns: Sequence[Codes], state: State) -> list[PendingProbe]:
        """Return what a lookup of tuples, of any codes, has to fetch."""

    def is_key(self, length: int, state: State) -> bool:
        """Return whether it is known that no two tuples agree in the first columns."""

    def distinct_values(self) -> tuple[int, ...]:
        """Estimate the distinct values of the columns in NEW."""

    def contents(self) -> Any:
        """Return all tuples of NEW as another table takes them."""

    # --- writing -------------------------------------------------------------------------------

    def change(self, sign: State, tuples: Tuples) -> Words:
        """Add tuples to NEW, or remove them; return those that the table has to."""

    def replace(self, tuples: Tuples) -> bool:
        """Make NEW equal to some tuples; return whether it has been done."""

    def extend(self, tuples: Tuples) -> None:
        """Commit, then add tuples that are not in NEW; ADDED is these and nothing else."""

    def assign(self, tuples: Tuples) -> bool:
        """Have no tuples, or some of those outside, as ADDED; return whether it has been done."""

    def drop_change(self) -> None:
        """Have no open change outside: the table gets one."""

    def commit(self) -> None:
        """Make NEW the OLD; some tuples are held."""

    def end_rollback(self) -> None:
        """Forget what the change that was discarded has fetched and written."""
