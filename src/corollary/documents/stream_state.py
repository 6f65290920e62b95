"""The state of a document between two batches of its streams, and what a batch does to it.

A batch has rows (function, seq, data, eos, op, old). Its data is inserted, its functions end, then
the changes are read once. A row that comes again, by its number, is skipped; a row for a function
that is not called yet waits until it is. Rows that retract or replace trees are applied in the
order of their numbers, if documents are watched for that: then nothing is collected, since anything
may be retracted. A batch results in *events*:

| event     | means                                                         |
|-----------|---------------------------------------------------------------|
| `sure`    | a view has a further answer; it comes once, and stays         |
| `retracted` | an answer is sure no more, since trees were retracted       |
| `value`   | the truth of a view is another one                            |
| `waits`   | a view waits for a function: its data may change the answers  |
| `settled` | it does not wait for the function any more                    |
| `close`   | nobody needs what a function of the document would bring      |
| `refused` | a row is malformed, or came after the end of its function     |

The receiver of events stores the answers. So when a document has grown enough, what no future
answer needs is dropped, and memory is bounded by what is still open.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

from corollary.documents.collection import Collection
from corollary.documents.document import ActiveDocument
from corollary.documents.storage import WriteBatch
from corollary.documents.trees.forest import Forest, NodeKind
from corollary.documents.trees.reader import read_forest
from corollary.documents.trees.terms import read_terms, write_terms
from corollary.documents.trees.xml import ReadOptions
from corollary.documents.types.check_update import check_document, check_single_answer, check_type
from corollary.documents.types.function_types import FunctionState
from corollary.documents.view import View
from corollary.errors import InputError

MAX_OPEN_DOCUMENTS = 64
"""Documents that a process has open; others are opened again from their saved state."""
MAX_NUMBERED_NODES = 250_000
"""Nodes that are numbered in one collection; then a new one is made."""
MIN_NUMBERED_RATIO = 4
"""The least ratio of numbered nodes to open ones before that, so that large documents stay open."""
MAX_SEQ_RANGES = 1000
"""Ranges of the numbers of a function's rows that are remembered; the lowest are merged."""
GC_MIN_GROWTH_NODES = 200
"""Garbage is collected when a document has this many nodes more than it needed last."""
_NO_NUMBER = "The row has no number."


class StreamRow(NamedTuple):
    """A row of a stream: what a function brings, or (without a name) the document itself.

    Its number `seq` is at least 0; a negative one stands for a row without a number.
    """

    function: str
    seq: int
    data: str | None
    is_end: bool
    op: str | None = None
    old: str | None = None

    @property
    def operation(self) -> str:
        """What is done; if the row does not say it, what its data says."""
        inferred = "add" if self.old is None else "retract" if self.data is None else "replace"
        return self.op or inferred


class DocumentEvent(NamedTuple):
    """A change of a document's answers, or a row that is refused: see the table above."""

    op: str
    view: str = ""
    text: str = ""
    value: float = 0.0
    before: float = 0.0
    seq: int = 0


@dataclass(slots=True)
class SavedDocument:
    """The state of a document between two batches.

    Attributes:
        stamp: identifies this state; a document that is open is used if it has the same one.
        document: in term syntax; None before it has come.
        states: of functions that are not live.
        seen: for each function the numbers of rows that have come, as ranges.
        waiting: rows for functions that are not called yet.
        values: the truth of each view as it was last reported.
        waits: the functions that each view waits for, as they were last reported.
        needed: how many nodes the last collection of garbage has left.
        origins: places of trees in the document, and of the calls that they were brought beside.
    """

    stamp: str = ""
    document: str | None = None
    states: dict[str, str] = field(default_factory=dict)
    seen: dict[str, list[list[int]]] = field(default_factory=dict)
    waiting: list[list[Any]] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)
    waits: dict[str, list[str]] = field(default_factory=dict)
    needed: int = 0
    origins: list[list[int]] = field(default_factory=list)

    def to_json(self) -> str:
        """Return it as JSON."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def from_json(cls, text: str | None) -> "SavedDocument":
        """Return the state of a JSON text; the initial one if there is none."""
        return cls() if text is None else cls(**json.loads(text))


def note_seen(ranges: list[list[int]], seq: int) -> bool:
    """Note the number of a row; return whether it is new.

    >>> ranges = [[1, 3]]
    >>> note_seen(ranges, 5), note_seen(ranges, 4), note_seen(ranges, 2), ranges
    (True, True, False, [[1, 5]])
    """
    if any(low <= seq <= high for low, high in ranges):
        return False
    ranges.append([seq, seq])
    ranges.sort()
    merged = [ranges[0]]
    for low, high in ranges[1:]:
        if low <= merged[-1][1] + 1:
            merged[-1][1] = high
        else:
            merged.append([low, high])
    if len(merged) > MAX_SEQ_RANGES:  # rows in the lowest gap count as seen from now on
        merged[:2] = [[merged[0][0], merged[1][1]]]
    ranges[:] = merged
    return True


class StreamProcessor:
    """Applies the rows of streams to the documents of one process, in one collection.

    Args:
        views: queries by name.
        template: what every document is in the beginning, unless a row brings it.
        once: the functions that answer at most once.
        types: the labels that the trees of a function begin with.
        is_retractable: whether rows may retract trees; then nothing is collected.
    """

    def __init__(
        self,
        views: Mapping[str, str],
        template: str | None = None,
        once: Sequence[str] = (),
        types: Mapping[str, Sequence[str]] | None = None,
        *,
        is_retractable: bool = False,
    ) -> None:
        self._views = dict(views)
        self._is_retractable = is_retractable
        self._template = None if template is None else _as_terms(template)
        self._once, self._types = tuple(once), dict(types or {})
        self._open: OrderedDict[str, _OpenDocument] = OrderedDict()  # least recently used first
        self._reset_collection()

    def _reset_collection(self) -> None:
        """Start with an empty collection: an engine keeps every label that it has ever seen."""
        self._open.clear()
        self._collection = Collection()
        for query in self._views.values():
            self._collection.maintain(query)

    def process_rows(
        self, key: str, saved: SavedDocument, rows: Iterable[StreamRow]
    ) -> list[DocumentEvent]:
        """Apply rows to a document and update its state; return the events."""
        open_nodes = sum(len(each.document.nodes) for each in self._open.values())
        limit = max(MAX_NUMBERED_NODES, MIN_NUMBERED_RATIO * open_nodes)
        if next(self._collection.node_numbers) > limit:
            self._reset_collection()
        events: list[DocumentEvent] = []
        fresh = [StreamRow(*each) for each in saved.waiting]
        saved.waiting = []
        for each in sorted(rows, key=lambda each: (each.seq, each.function)):
            if each.seq < 0:
                events.append(DocumentEvent("refused", each.function, _NO_NUMBER, seq=each.seq))
            elif note_seen(saved.seen.setdefault(each.function, []), each.seq):
                fresh.append(each)
        opened = self._open_document(key, saved, fresh, events)
        if opened is None:
            saved.waiting = [list(each) for each in fresh]
            return events
        document, views = opened.document, opened.views
        before = {
            name: view.sure if name in saved.values else frozenset() for name, view in views.items()
        }
        if any(each.operation != "add" for each in fresh):
            self._apply_in_order(document, fresh, saved, events)
        else:
            batch = WriteBatch()
            updates, ends = self._select(document, fresh, saved, events)
            document.stage_updates(updates, ends, batch)
            document.note_written(self._collection.write(batch))
        for name, view in views.items():
            events += _view_events(name, view, before[name], saved, self._is_retractable)
        events += self._collect_garbage(opened, saved)
        for name, view in views.items():
            events += _wait_events(name, view, saved)
        opened.stamp = saved.stamp = uuid4().hex
        saved.document = document.terms()
        saved.origins = document.nodes.origin_places() if self._is_retractable else []
        saved.states = {
            name: str(each.state) for name, each in document.functions.items() if not each.is_live
        }
        self._open[key] = opened
        return events

    # --- opening ---------------------------------------------------------------------------------

    def _open_document(
        self, key: str, saved: SavedDocument, fresh: list[StreamRow], events: list[DocumentEvent]
    ) -> "_OpenDocument | None":
        """Return the document of a key, open; None if it has not come yet."""
        found = self._open.pop(key, None)
        if found is not None and found.stamp == saved.stamp:
            return found
        batch = WriteBatch()
        if found is not None:
            found.document.stage_removal(batch)
        while len(self._open) >= MAX_OPEN_DOCUMENTS:
            self._open.popitem(last=False)[1].document.stage_removal(batch)
        self._collection.write(batch)
        text = (
            saved.document if saved.document is not None else self._initial_document(fresh, events)
        )
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
        document.nodes.restore_origins(saved.origins)
        document.apply((), [name for name in saved.states if name in document.functions])
        for name, state in saved.states.items():
            if name in document.functions:
                document.functions[name].state = FunctionState(state)
        views = {name: document.view(query) for name, query in self._views.items()}
        return _OpenDocument(saved.stamp, document, views)

    def _initial_document(self, fresh: list[StreamRow], events: list[DocumentEvent]) -> str | None:
        """Return the document that a row brings; otherwise the template."""
        for each in [each for each in fresh if not each.function]:
            fresh.remove(each)
            try:
                return _as_terms(each.data or "")
            except InputError as error:
                events.append(DocumentEvent("refused", text=_messages(error), seq=each.seq))
        return self._template

    # --- rows ------------------------------------------------------------------------------------

    def _select(
        self,
        document: ActiveDocument,
        fresh: list[StreamRow],
        saved: SavedDocument,
        events: list[DocumentEvent],
    ) -> tuple[list[tuple[str, Forest]], list[str]]:
        """Return the updates and ends that can be made now; the others wait, or are refused."""
        known = set(document.functions)
        updates: list[tuple[str, Forest]] = []
        ends: list[str] = []
        waiting = [each for each in fresh if each.function]  # the document is there already
        # What one row brings may call the function that another one waits for.
        while ready := [each for each in waiting if each.function in known]:
            waiting = [each for each in waiting if each.function not in known]
            for each in ready:
                if each.data is not None:
                    try:
                        known |= self._update(document, each, updates)
                    except InputError as error:
                        message = _messages(error)
                        events.append(
                            DocumentEvent("refused", each.function, message, seq=each.seq)
                        )
                if each.is_end:
                    ends.append(each.function)
        saved.waiting = [list(each) for each in waiting]
        return updates, ends

    def _apply_in_order(
        self,
        document: ActiveDocument,
        fresh: list[StreamRow],
        saved: SavedDocument,
        events: list[DocumentEvent],
    ) -> None:
        """Apply rows one by one; those of functions that are not called yet wait, in order."""
        waiting = [each for each in fresh if each.function]
        while True:
            held: set[str] = set()
            left = []
            for each in waiting:
                if each.function in held or each.function not in document.functions:
                    held.add(each.function)
                    left.append(each)
                    continue
                try:
                    self._apply_row(document, each)
                except InputError as error:
                    message = _messages(error)
                    events.append(DocumentEvent("refused", each.function, message, seq=each.seq))
            if len(left) == len(waiting):
                break
            waiting = left
        saved.waiting = [list(each) for each in waiting]

    def _apply_row(self, document: ActiveDocument, row: StreamRow) -> None:
        """Apply one row.

        Raises:
            InputError: the function may not do that.
        """
        taken, brought = _taken_and_brought(row)
        if taken is not None and not self._is_retractable:
            message = "Rows retract only from documents that are watched with `--retractions`."
            raise InputError.of("C1254", message)
        updates: list[tuple[str, Forest]] = []
        if brought is not None:
            self._update(document, row._replace(data=brought), updates)
        ends = [row.function] if row.is_end else []
        document.apply(updates, ends, [] if taken is None else [(row.function, taken)])

    def _update(
        self, document: ActiveDocument, arrival: StreamRow, updates: list[tuple[str, Forest]]
    ) -> set[str]:
        """Add an update, if the function may bring it; return the functions that it calls.

        Raises:
            InputError: it may not.
        """
        name = arrival.function
        function = document.functions.get(name)
        if function is not None and function.state is FunctionState.ENDED:
            raise InputError.of("C1231", f"Data came for the function `{name}`, which has ended.")
        forest = read_forest(arrival.data or "", ReadOptions(), f"row {arrival.seq}")
        if function is not None:
            check_type(name, function.type, forest)
        if name in self._once:
            check_single_answer(name, forest, [each for each, _ in updates])
        updates.append((name, forest))
        return {row.label for row in forest if row.kind is NodeKind.FUNCTION}

    def _collect_garbage(
        self, opened: "_OpenDocument", saved: SavedDocument
    ) -> list[DocumentEvent]:
        """Collect garbage, if it is worth it; return the functions that are closed."""
        document = opened.document
        if self._is_retractable:
            return []
        is_large = len(document.nodes) >= saved.needed + max(GC_MIN_GROWTH_NODES, saved.needed)
        if not is_large and any(view.is_open for view in opened.views.values()):
            return []
        batch = WriteBatch()
        collected = document.stage_garbage_collection(batch, is_reported=True)
        document.note_written(self._collection.write(batch))
        saved.needed = collected.kept
        return [DocumentEvent("close", text=name) for name in collected.closed]


@dataclass(slots=True)
class _OpenDocument:
    """A document that is open, with its views and the stamp of the state that it is in."""

    stamp: str
    document: ActiveDocument
    views: dict[str, View]


def _taken_and_brought(row: StreamRow) -> tuple[str | None, str | None]:
    """Return what a row retracts, and what it brings.

    Raises:
        InputError: it has no such operation, or not what that needs.
    """
    match row.operation:
        case "add" if row.old is None:
            return None, row.data
        case "retract" if (row.old is None) != (row.data is None):
            return row.data if row.old is None else row.old, None
        case "replace" if row.old is not None and row.data is not None:
            return row.old, row.data
    message = f"The row is not an operation: op `{row.op}` with these trees. "
    message += "There are add (xml), retract (xml or old) and replace (old, xml)."
    raise InputError.of("C1254", message)


def _view_events(
    name: str, view: View, before: frozenset[Any], saved: SavedDocument, is_retractable: bool
) -> list[DocumentEvent]:
    """Return what has changed in a view since the last batch."""
    answers = [each for each in view.sure - before if each]
    events = [
        DocumentEvent("sure", name, json.dumps(each, ensure_ascii=False))
        for each in sorted(answers)
    ]
    gone = sorted(each for each in before - view.sure if each) if is_retractable else []
    events += [
        DocumentEvent("retracted", name, json.dumps(each, ensure_ascii=False)) for each in gone
    ]
    last = saved.values.get(name, -1.0)
    is_final = last == 1 and not is_retractable  # its answers may be collected since
    value = 1.0 if is_final else view.value
    if value != last:
        events.append(DocumentEvent("value", name, value=value, before=last))
        saved.values[name] = value
    return events


def _wait_events(name: str, view: View, saved: SavedDocument) -> list[DocumentEvent]:
    """Return which functions a view waits for, and those it does not wait for any more."""
    known = {*saved.waits.get(name, ())}
    now = view.useful(exact=False) if view.is_open else frozenset()
    saved.waits[name] = sorted(now)
    return [
        *(DocumentEvent("settled", name, function) for function in sorted(known - now)),
        *(DocumentEvent("waits", name, function) for function in sorted(now - known)),
    ]


def _as_terms(text: str) -> str:
    forest = read_forest(text, ReadOptions(), is_document=True)
    check_document(forest)
    return write_terms(forest)


def _messages(error: InputError) -> str:
    return " ".join(each.message for each in error.diagnostics)
