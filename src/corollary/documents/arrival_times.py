"""Times of arrival: as updates give them, and as they are stored for views that ask for them.

Rules ask of a number whether it is on one side of a·t + b, for t the clock. That is looked up in
`timely`, which has the numbers of a document for which it is so. Numbers are kept in order: as time
passes, only those between two values of a·t + b are touched, however large the document is.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping

from corollary.documents.answers.unknown import encode_label
from corollary.documents.collection import Collection, WriteBatch, numbers_of
from corollary.documents.errors import ActiveDocumentError
from corollary.documents.queries.comparisons import ClockTest, NumberPool, number_of
from corollary.documents.trees.document_tree import DocumentTree, StoredNode

Time = str | float
"""A number of seconds, or a time such as `2026-05-01T12:00`, in UTC unless it says otherwise."""
SORTED_MIN_NUMBERS = 1000
"""From this number of new numbers on, they are sorted in at once."""


def read_time(at: Time, nodes: DocumentTree | None = None) -> float:
    """Return a time in seconds.

    Args:
        at: a number, or a time.
        nodes: a document in which it must not be earlier than it is.

    Raises:
        ActiveDocumentError: it is not a time, or it is too early.
    """
    clock = number_of(str(at))
    if clock is None:
        note = "write a number of seconds, or a time such as `2026-05-01T12:00`"
        raise ActiveDocumentError.of("C1258", f"`{at}` is not a time.", None, note)
    if nodes is not None and clock < nodes.clock:
        message = f"It is {nodes.time} already, but something is to arrive at {at}."
        note = "times of arrival do not go back: bring what came earlier first"
        raise ActiveDocumentError.of("C1258", message, None, note)
    return clock


class DocumentTimes:
    """What is stored of the times of a document, as far as views ask for it.

    Attributes:
        is_stored: whether it is stored when nodes came.
    """

    def __init__(self, nodes: DocumentTree, collection: Collection) -> None:
        self._nodes = nodes
        self._collection = collection
        self.is_stored = False
        self._tests: set[ClockTest] = set()
        self._pools = {each: _OrderedNumbers() for each in NumberPool}
        self._pools[NumberPool.NOTHING].add([0.0])

    def follow_views(self, batch: WriteBatch) -> bool:
        """Store what views ask for and is not stored yet; return whether there is anything."""
        nodes, fresh = self._nodes, self._collection.clock_tests - self._tests
        is_first = self._collection.has_times and not self.is_stored
        if is_first:
            self.is_stored = True
            batch.add("clock", [(nodes.root, nodes.clock)])
            arrivals = {each: nodes.arrival_of(each) for each in nodes.labels}
            batch.add("arrived", ((each, encode_label(at)) for each, at in arrivals.items()))
            batch.add("num", numbers_of(arrivals.values()))
        if fresh:
            known = {each.pool for each in self._tests}
            self._tests |= fresh
            for pool in {each.pool for each in fresh} - known - {NumberPool.NOTHING}:
                self._pools[pool].add(self._numbers(pool, map(nodes.stored_node, nodes.labels)))
            for test in fresh:
                numbers = test.holding(self._pools[test.pool].ordered, nodes.clock)
                batch.add("timely", self._rows(test, numbers))
        return is_first or bool(fresh)

    def add_nodes(self, added: Iterable[StoredNode], batch: WriteBatch) -> None:
        """Put into a batch what is known of times, after nodes have come."""
        if self.is_stored:
            batch.add("num", numbers_of([self._nodes.time]))
        added = list(added) if self._tests else []
        for pool in {each.pool for each in self._tests} - {NumberPool.NOTHING}:
            numbers = self._pools[pool].add(self._numbers(pool, added))
            for test in self._tests:
                if test.pool is pool:
                    holding = test.holding(numbers, self._nodes.clock)
                    batch.add("timely", self._rows(test, holding))

    def remove_nodes(self, removed: Iterable[StoredNode], batch: WriteBatch) -> None:
        """Put into a batch what is known of times, after nodes have gone."""
        removed = list(removed) if self._tests else []
        for pool in {each.pool for each in self._tests} - {NumberPool.NOTHING}:
            numbers = self._pools[pool].remove(self._numbers(pool, removed))
            for test in self._tests:
                if test.pool is pool:
                    batch.remove("timely", self._rows(test, numbers))

    def advance(self, time: str, clock: float, batch: WriteBatch) -> None:
        """Put into a batch that it is a later time: only what that turns is touched."""
        nodes = self._nodes
        for test in self._tests:
            numbers = test.turning(self._pools[test.pool].ordered, nodes.clock, clock)
            before, after = test.holding(numbers, nodes.clock), test.holding(numbers, clock)
            batch.remove("timely", self._rows(test, sorted({*before} - {*after})))
            batch.add("timely", self._rows(test, sorted({*after} - {*before})))
        if self.is_stored:
            batch.remove("clock", [(nodes.root, nodes.clock)])
            batch.add("clock", [(nodes.root, clock)])
        nodes.time, nodes.clock = time, clock

    def restore(self, arrivals: Mapping[str, Iterable[int]], time: str) -> None:
        """Note when nodes, by position, of a document just read came, and what time it is."""
        nodes, batch = self._nodes, WriteBatch()
        numbers = [each.number for each in nodes.initial]
        restored = {
            numbers[position]: at for at, positions in arrivals.items() for position in positions
        }
        before = [nodes.stored_node(each) for each in restored]
        self.remove_nodes(before, batch)
        nodes.arrivals.update(restored)
        after = [nodes.stored_node(each) for each in restored]
        self.add_nodes(after, batch)
        if self.is_stored:
            batch.remove("arrived", ((each.number, encode_label(each.arrival)) for each in before))
            batch.add("arrived", ((each.number, encode_label(each.arrival)) for each in after))
            batch.add("num", numbers_of(restored.values()))
        self.advance(time, read_time(time), batch)
        self._collection.write(batch)

    def forget(self, batch: WriteBatch) -> None:
        """Put into a batch that nothing is stored any more."""
        if self.is_stored:
            batch.remove("clock", [(self._nodes.root, self._nodes.clock)])
        for test in self._tests:
            batch.remove("timely", self._rows(test, self._pools[test.pool].ordered))
        self._tests = set()

    @property
    def next_turn(self) -> float | None:
        """The next time at which answers may change though nothing comes; None if there is none."""
        clock = self._nodes.clock
        turns = (test.next_turn(self._pools[test.pool].ordered, clock) for test in self._tests)
        return min((each for each in turns if each is not None), default=None)

    def _rows(self, test: ClockTest, numbers: Iterable[float]) -> list[tuple[int, str, float]]:
        return [(self._nodes.root, test.name, each) for each in numbers]

    @staticmethod
    def _numbers(pool: NumberPool, nodes: Iterable[StoredNode]) -> Iterator[float]:
        is_arrival = pool is NumberPool.ARRIVALS
        known: dict[str, float | None] = {}
        for each in nodes:
            text = each.arrival if is_arrival else each.label
            if text not in known:
                known[text] = number_of(text)
            value = known[text]
            if value is not None:
                yield value


class _OrderedNumbers:
    """Numbers in ascending order, and how many nodes have each of them."""

    def __init__(self) -> None:
        self.ordered: list[float] = []
        self._counts: dict[float, int] = {}

    def add(self, numbers: Iterable[float]) -> list[float]:
        """Note numbers of nodes; return those that are new, in order."""
        fresh = []
        for each in numbers:
            if each not in self._counts:
                fresh.append(each)
            self._counts[each] = self._counts.get(each, 0) + 1
        fresh.sort()
        if len(fresh) >= SORTED_MIN_NUMBERS:
            self.ordered = sorted([*self.ordered, *fresh])
        else:
            for each in fresh:
                insort(self.ordered, each)
        return fresh

    def remove(self, numbers: Iterable[float]) -> list[float]:
        """Note that nodes are gone; return the numbers that no node has any more."""
        gone = []
        for each in numbers:
            self._counts[each] -= 1
            if not self._counts[each]:
                del self._counts[each]
                gone.append(each)
        if len(gone) >= SORTED_MIN_NUMBERS:
            self.ordered = [each for each in self.ordered if each in self._counts]
        else:
            for each in gone:
                del self.ordered[bisect_left(self.ordered, each)]
        return gone
