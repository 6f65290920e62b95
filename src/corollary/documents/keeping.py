"""What is kept of a document between two batches of its streams, and what a batch does to it.

A batch has rows (function, seq, data, eos). All its data is inserted, then its functions end, then
the changes are read once. A row that comes again, by its number, is left out; a row for a function
that is not called yet waits until it is. What goes out are *events*:

| event     | means                                                         |
|-----------|---------------------------------------------------------------|
| `sure`    | a view has a further answer; it comes once, and stays         |
| `value`   | the truth of a view is another one                            |
| `close`   | nobody needs what a function of the document would bring      |
| `refused` | a row is malformed, or came behind the end of its function    |

Answers are the receiver's once they have gone out. So when a document has grown enough, what no
future answer needs is dropped, and memory is bounded by what is still open.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

from corollary.documents.collection import Collection
from corollary.documents.document import ActiveDocument
from corollary.documents.fitting import demand_single, demand_tree, demand_type
from corollary.documents.forest import Forest, Kind
from corollary.documents.function import State
from corollary.documents.reading import Reading, read_forest
from corollary.documents.storage import Batch
from corollary.documents.terms import read_terms, write_terms
from corollary.documents.view import View
from corollary.errors import InputError

MOST_OPEN = 64
"""Documents that a process has open; others are opened again from what is kept."""
MOST_NODES = 250_000
"""Nodes that come and go in one collection; then another one is begun."""
MOST_TIMES = 4
"""Large documents have more: so many times the nodes that are open come before that."""
MOST_GAPS = 1000
"""Gaps between the numbers of a function's rows that are remembered; the lowest are forgotten."""
GROWTH = 200
"""Garbage is collected when a document has so many more nodes than it needed last."""


NO_NUMBER = "The row has no number."


class Arrival(NamedTuple):
    """A row of a stream: what a function brings, or (without a name) the document itself.

    Its number `seq` is at least 0; less stands for a row that has none.
    """

    function: str
    seq: int
    data: str | None
    is_end: bool


class Event(NamedTuple):
    """Something to tell about a document."""

    op: str
    view: str = ""
    text: str = ""
    value: float = 0.0
    before: float = 0.0
    seq: int = 0


@dataclass(slots=True)
class Kept:
    """What is kept of a document.

    Attributes:
        stamp: names this state; a document that is open is used if it has the same one.
        document: in term syntax; None while it has not come.
        states: of functions that are not live.
        seen: for each function the numbers of rows that have come, as stretches.
        waiting: rows for functions that are not called yet.
        values: the truth of each view as it was told.
        needed: how many nodes the last collection of garbage has left.
    """

    stamp: str = ""
    document: str | None = None
    states: dict[str, str] = field(default_factory=dict)
    seen: dict[str, list[list[int]]] = field(default_factory=dict)
    waiting: list[list[Any]] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)
    needed: int = 0

    def text(self) -> str:
        """Return it as JSON."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def of(cls, text: str | None) -> "Kept":
        """Return what a text says that is kept; the beginning if there is none."""
        return cls() if text is None else cls(**json.loads(text))


def note_seen(stretches: list[list[int]], seq: int) -> bool:
    """Take note of the number of a row; return whether it is new.

    >>> stretches = [[1, 3]]
    >>> note_seen(stretches, 5), note_seen(stretches, 4), note_seen(stretches, 2), stretches
    (True, True, False, [[1, 5]])
    """
    if any(low <= seq <= high for low, high in stretches):
        return False
    stretches.append([seq, seq])
    stretches.sort()
    merged = [stretches[0]]
    for low, high in stretches[1:]:
        if low <= merged[-1][1] + 1:
            merged[-1][1] = high
        else:
            merged.append([low, high])
    if len(merged) > MOST_GAPS:  # what has not come by now, is not waited for
        merged[:2] = [[merged[0][0], merged[1][1]]]
    stretches[:] = merged
    return True


class Keeper:
    """Documents of one process in one collection, and what their streams do to them.

    Args:
        views: queries by name.
        template: what every document is in the beginning, unless a row brings it.
        once: the functions that answer at most once.
        types: the labels that the trees of a function begin with.
    """

    def __init__(
        self,
        views: Mapping[str, str],
        template: str | None = None,
        once: Sequence[str] = (),
        types: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._views = dict(views)
        self._template = None if template is None else _as_terms(template)
        self._once, self._types = tuple(once), dict(types or {})
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._begin()

    def _begin(self) -> None:
        """Begin with an empty collection: an engine keeps every label that it has ever seen."""
        self._open.clear()
        self._collection = Collection()
        for query in self._views.values():
            self._collection.maintain(query)

    def take(self, key: str, kept: Kept, arrivals: Iterable[Arrival]) -> list[Event]:
        """Let rows come to a document; what is kept of it changes, what is to be told returns."""
        held = sum(len(each.document.nodes) for each in self._open.values())
        if next(self._collection.nodes) > max(MOST_NODES, MOST_TIMES * held):
            self._begin()
        events: list[Event] = []
        fresh = [Arrival(*each) for each in kept.waiting]
        kept.waiting = []
        for each in sorted(arrivals, key=lambda each: (each.seq, each.function)):
            if each.seq < 0:
                events.append(Event("refused", each.function, NO_NUMBER, seq=each.seq))
            elif note_seen(kept.seen.setdefault(each.function, []), each.seq):
                fresh.append(each)
        opened = self._opened(key, kept, fresh, events)
        if opened is None:
            kept.waiting = [list(each) for each in fresh]
            return events
        document, views = opened.document, opened.views
        batch = Batch()
        updates, ends = self._sorted(document, fresh, kept, events)
        document.prepare(updates, ends, batch)
        before = {
            name: view.sure if name in kept.values else frozenset() for name, view in views.items()
        }
        document.note(self._collection.write(batch))
        for name, view in views.items():
            events += _told(name, view, before[name], kept)
        events += self._collected(opened, kept)
        opened.stamp = kept.stamp = uuid4().hex
        kept.document = document.terms()
        kept.states = {
            name: str(each.state)
            for name, each in document.functions.items()
            if each.state is not State.LIVE
        }
        self._open[key] = opened
        return events

    # --- opening ---------------------------------------------------------------------------------

    def _opened(
        self, key: str, kept: Kept, fresh: list[Arrival], events: list[Event]
    ) -> "_Open | None":
        """Return the document of a key, open; None if it has not come yet."""
        found = self._open.pop(key, None)
        if found is not None and found.stamp == kept.stamp:
            return found
        batch = Batch()
        if found is not None:
            found.document.discard(batch)
        while len(self._open) >= MOST_OPEN:
            self._open.popitem(last=False)[1].document.discard(batch)
        self._collection.write(batch)
        text = kept.document if kept.document is not None else self._brought(fresh, events)
        if text is None:
            return None
        document = ActiveDocument(
            read_terms(text),
            once=self._once,
            types=self._types,
            collection=self._collection,
            unknown="create",
            late="ignore",
        )
        document.apply((), [name for name in kept.states if name in document.functions])
        for name, state in kept.states.items():
            if name in document.functions:
                document.functions[name].state = State(state)
        views = {name: document.view(query) for name, query in self._views.items()}
        return _Open(kept.stamp, document, views)

    def _brought(self, fresh: list[Arrival], events: list[Event]) -> str | None:
        """Return the document that a row brings; otherwise the template."""
        for each in [each for each in fresh if not each.function]:
            fresh.remove(each)
            try:
                return _as_terms(each.data or "")
            except InputError as error:
                events.append(Event("refused", text=_said(error), seq=each.seq))
        return self._template

    # --- what rows do ----------------------------------------------------------------------------

    def _sorted(
        self, document: ActiveDocument, fresh: list[Arrival], kept: Kept, events: list[Event]
    ) -> tuple[list[tuple[str, Forest]], list[str]]:
        """Return the updates and ends that can be made now; the others wait, or are refused."""
        known = set(document.functions)
        updates: list[tuple[str, Forest]] = []
        ends: list[str] = []
        waiting = [each for each in fresh if each.function]  # the document is there already
        while ready := [each for each in waiting if each.function in known]:
            waiting = [each for each in waiting if each.function not in known]
            for each in ready:
                if each.data is not None:
                    try:
                        known |= self._update(document, each, updates)
                    except InputError as error:
                        said = Event("refused", each.function, _said(error), seq=each.seq)
                        events.append(said)
                if each.is_end:
                    ends.append(each.function)
        kept.waiting = [list(each) for each in waiting]
        return updates, ends

    def _update(
        self, document: ActiveDocument, arrival: Arrival, updates: list[tuple[str, Forest]]
    ) -> set[str]:
        """Add an update, if the function may bring it; return the functions that it calls.

        Raises:
            InputError: it may not.
        """
        name = arrival.function
        function = document.functions.get(name)
        if function is not None and function.state is State.ENDED:
            raise InputError.of("C1231", f"Data came for the function `{name}`, which has ended.")
        forest = read_forest(arrival.data or "", Reading(), f"row {arrival.seq}")
        if function is not None:
            demand_type(name, function.type, forest)
        if name in self._once:
            demand_single(name, forest, [each for each, _ in updates])
        updates.append((name, forest))
        return {row.label for row in forest if row.kind is Kind.FUNCTION}

    def _collected(self, opened: "_Open", kept: Kept) -> list[Event]:
        """Collect garbage, if it is worth it; return the functions that are closed."""
        document = opened.document
        is_large = len(document.nodes) >= kept.needed + max(GROWTH, kept.needed)
        if not is_large and any(map(_is_open, opened.views.values())):
            return []
        batch = Batch()
        collected = document.sweep(batch, is_reported=True)
        document.note(self._collection.write(batch))
        kept.needed = collected.kept
        return [Event("close", text=name) for name in collected.closed]


@dataclass(slots=True)
class _Open:
    """A document that is open, with its views and the stamp of the state that it is in."""

    stamp: str
    document: ActiveDocument
    views: dict[str, View]


def _is_open(view: View) -> bool:
    """Whether a view may still have something to tell."""
    return view.value == 0.5 or (view.value == 1 and not view.maintained.shape.is_boolean)


def _told(name: str, view: View, before: frozenset[Any], kept: Kept) -> list[Event]:
    """Return what a view has to tell since the last time."""
    answers = [each for each in view.sure - before if each]
    events = [Event("sure", name, json.dumps(each, ensure_ascii=False)) for each in sorted(answers)]
    last = kept.values.get(name, -1.0)
    value = 1.0 if last == 1 else view.value
    if value != last:
        events.append(Event("value", name, value=value, before=last))
        kept.values[name] = value
    return events


def _as_terms(text: str) -> str:
    forest = read_forest(text, Reading(), is_document=True)
    demand_tree(forest)
    return write_terms(forest)


def _said(error: InputError) -> str:
    return " ".join(each.message for each in error.diagnostics)
