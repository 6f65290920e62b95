"""What a batch of its streams does to a document.

A batch has rows (function, seq, data, eos, op, old, at). Its data is inserted, its functions end,
then the changes are read once. A row that comes again, by its number, is skipped; a row for a
function that is not called yet waits until it is. If views ask for times, rows come in the order of
theirs, and one that is earlier than the time that it is in the document is refused.

Rows that retract or replace trees are applied one by one in the order of their numbers, if
documents are watched for that: then nothing is collected, since anything may be retracted. Rows of
documents with a type are, too, so that a row that does not fit is refused alone, and those of
several documents that are one collection. A batch results in *events*:

| event     | means                                                         |
|-----------|---------------------------------------------------------------|
| `sure`    | a view has a further answer                                   |
| `retracted` | an answer is no longer sure: trees were retracted, or it has left a window |
| `value`   | the truth of a view is another one                            |
| `waits`   | a view waits for a function, and since when: its data may change the answers |
| `settled` | it does not wait for the function any more                    |
| `close`   | nobody needs what a function of the document would bring      |
| `refused` | a row is malformed, or came after the end of its function     |

The receiver of events stores the answers. So when a document has grown enough, what no future
answer needs is dropped, and memory is bounded by what is still open.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import uuid4

from corollary.data_class import dataclass
from corollary.documents.active_collection import ActiveCollection
from corollary.documents.arrival_times import read_time
from corollary.documents.collection import Collection, WriteBatch
from corollary.documents.document import ActiveDocument
from corollary.documents.queries.comparisons import number_of
from corollary.documents.queries.parse import parse_query
from corollary.documents.saved_document import DocumentEvent, SavedDocument, StreamRow, note_seen
from corollary.documents.trees.forest import Forest, ForestNode, NodeKind
from corollary.documents.trees.reader import read_forest, read_terms, write_terms
from corollary.documents.trees.xml import ReadOptions
from corollary.documents.types.check_update import check_document, check_single_answer, check_type
from corollary.documents.types.function_types import FunctionState, Grammar
from corollary.documents.types.read_type import GivenType
from corollary.documents.view import View
from corollary.errors import InputError

MAX_OPEN_DOCUMENTS = 64
"""Documents that a process has open; others are opened again from their saved state."""
MAX_NUMBERED_NODES = 250_000
"""Nodes that are numbered in one collection; then a new one is made."""
MIN_NUMBERED_RATIO = 4
"""The least ratio of numbered nodes to open ones before that, so that large documents stay open."""
GC_MIN_GROWTH_NODES = 200
"""Garbage is collected when a document has this many nodes more than it needed last."""
_NO_NUMBER = "The row has no number."


class StreamProcessor:
    """Applies the rows of streams to the documents of one process, in one collection.

    Args:
        views: queries by name; if they are over several documents, each key is a collection.
        template: what every document is in the beginning, unless a row brings it; by name, if there
            are several.
        once: the functions that answer at most once.
        types: what the trees of a function look like.
        document_type: what documents have to be in the end; then nothing is collected.
        is_retractable: whether rows may retract trees; then nothing is collected.
        is_clocked: whether time passes by the clock, and not only by the times of rows.
    """

    def __init__(
        self,
        views: Mapping[str, str],
        template: str | Mapping[str, str] | None = None,
        once: Sequence[str] = (),
        types: Mapping[str, GivenType] | None = None,
        *,
        document_type: Grammar | str | Path | None = None,
        is_retractable: bool = False,
        is_clocked: bool = False,
    ) -> None:
        self._views = dict(views)
        queries = [parse_query(each) for each in self._views.values()]
        self._is_joint = any(each.is_joint for each in queries)
        self._named = frozenset(name for each in queries for name in each.documents)
        has_any = any(each.has_any_document for each in queries)
        self._is_retractable, self._is_clocked = is_retractable, is_clocked
        # A document that comes later may need what is there of others.
        self._is_collected = not (is_retractable or document_type is not None or has_any)
        self._is_in_order = self._is_joint or document_type is not None
        templates = {"": template} if isinstance(template, str) else dict(template or {})
        self._templates = {name: _as_terms(text) for name, text in templates.items()}
        self._options: dict[str, Any] = {"once": tuple(once), "types": dict(types or {})}
        self._options |= {"document_type": document_type, "unknown": "create", "late": "ignore"}
        self._once = frozenset(once)
        if document_type is not None and "" in self._templates:
            ActiveDocument.from_terms(self._templates[""], **self._options)  # it is of its type
        self._open: OrderedDict[str, _OpenDocument] = OrderedDict()  # least recently used first
        self._reset_collection()

    def _reset_collection(self) -> None:
        """Start with an empty collection: an engine keeps every label that it has ever seen."""
        self._open.clear()
        self._collection = Collection()
        for query in self._views.values():
            self._collection.maintain(query)

    def process_rows(
        self, key: str, saved: SavedDocument, rows: Iterable[StreamRow], now: str = ""
    ) -> list[DocumentEvent]:
        """Apply rows to a document and update its state; return the events.

        Args:
            key: the name of the document.
            saved: its state.
            rows: what has come.
            now: the time of the batch; what rows without a time came at, if time passes by it.
        """
        open_nodes = sum(len(each.document.nodes) for each in self._open.values())
        limit = max(MAX_NUMBERED_NODES, MIN_NUMBERED_RATIO * open_nodes)
        if next(self._collection.node_numbers) > limit:
            self._reset_collection()
        events: list[DocumentEvent] = []
        fresh = [StreamRow(*each) for each in saved.waiting]
        saved.waiting = []
        for each in sorted(rows, key=_place_of):
            if each.seq < 0:
                events.append(DocumentEvent("refused", each.function, _NO_NUMBER, seq=each.seq))
            elif note_seen(saved.seen.setdefault(each.function, []), each.seq):
                fresh.append(each)
        opened = self._open_document(key, saved, fresh, events, now)
        if opened is None:
            saved.waiting = [list(each) for each in fresh]
            return events
        document, views = opened.document, opened.views
        before = {
            name: view.sure if name in saved.values else frozenset() for name, view in views.items()
        }
        self._apply(document, fresh, saved, events, now)
        for name, view in views.items():
            events += _view_events(name, view, before[name], saved, self._is_retractable)
        events += self._collect_garbage(opened, saved)
        since = now if document.nodes.time == document.nodes.start else document.nodes.time
        for name, view in views.items():
            events += _wait_events(name, view, saved, since)
        opened.stamp = saved.stamp = uuid4().hex
        self._save(document, saved)
        self._open[key] = opened
        return events

    def next_turn(self, key: str) -> float | None:
        """Return the next time at which answers of a document may change though nothing comes."""
        opened = self._open.get(key)
        is_open = opened is not None and any(each.is_open for each in opened.views.values())
        return opened.document.times.next_turn if opened is not None and is_open else None

    def _save(self, document: ActiveDocument, saved: SavedDocument) -> None:
        nodes = document.nodes
        saved.document = document.terms()
        if isinstance(document, ActiveCollection):
            saved.names = sorted({*saved.names, *document.documents})
        saved.origins = nodes.origin_positions() if self._is_retractable else []
        saved.start, saved.time = nodes.start, nodes.time
        saved.arrivals = nodes.arrival_positions() if self._collection.has_times else {}
        saved.states = {
            name: str(each.state) for name, each in document.functions.items() if not each.is_live
        }

    # --- opening ---------------------------------------------------------------------------------

    def _open_document(
        self,
        key: str,
        saved: SavedDocument,
        fresh: list[StreamRow],
        events: list[DocumentEvent],
        now: str,
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
        is_new = saved.document is None
        if saved.document is None:
            saved.start = now if self._is_clocked else saved.start
            initial = self._initial_documents(fresh, saved, events)
            if initial is None:
                return None
            try:
                document = self._made(initial, saved)
            except InputError as error:
                events.append(DocumentEvent("refused", text=_messages(error)))
                return None
        else:
            document = self._made(_with_names(read_terms(saved.document), saved.names), saved)
        if not is_new:
            document.nodes.restore_origins(saved.origins)
            document.times.restore(saved.arrivals, saved.time)
            document.apply((), [name for name in saved.states if name in document.functions])
            for name, state in saved.states.items():
                if name in document.functions:
                    document.functions[name].state = FunctionState(state)
        views = {name: document.view(query) for name, query in self._views.items()}
        return _OpenDocument(saved.stamp, document, views)

    def _made(
        self, documents: Mapping[str, Forest] | Forest, saved: SavedDocument
    ) -> ActiveDocument:
        options = {**self._options, "collection": self._collection, "at": saved.start}
        if self._is_joint:
            return ActiveCollection(documents, **options)
        return ActiveDocument(
            documents[""] if isinstance(documents, Mapping) else documents, **options
        )

    def _initial_documents(
        self, fresh: list[StreamRow], saved: SavedDocument, events: list[DocumentEvent]
    ) -> dict[str, Forest] | None:
        """Return the documents that rows bring, by name; otherwise the templates.

        None if one of them that is needed has not come; then rows that bring others wait for it.
        """
        found: dict[str, Forest] = {}
        for each in [each for each in fresh if each.is_document]:
            name = each.function.rstrip(":")
            if name in found:
                continue
            try:
                found[name] = read_terms(_as_terms(each.data or ""))
                saved.start = each.at or saved.start
            except InputError as error:
                fresh.remove(each)
                events.append(DocumentEvent("refused", text=_messages(error), seq=each.seq))
        found = {**{name: read_terms(text) for name, text in self._templates.items()}, **found}
        needed = self._named if self._is_joint else {""}
        if not found or not needed <= found.keys():
            return None
        fresh[:] = [each for each in fresh if not each.is_document]
        return found

    # --- rows ------------------------------------------------------------------------------------

    def _apply(
        self,
        document: ActiveDocument,
        fresh: list[StreamRow],
        saved: SavedDocument,
        events: list[DocumentEvent],
        now: str,
    ) -> None:
        """Apply rows, those of one time together; what cannot be done yet waits."""
        is_timed, nodes = self._collection.has_times, document.nodes
        latest = max((each.at for each in fresh if each.at), key=_time_of, default=None)
        groups: list[tuple[str | None, list[StreamRow]]] = [(latest, fresh)]
        if is_timed:
            ordered = sorted(fresh, key=lambda row: _time_of(row.at or ""))
            groups = [(at, [*each]) for at, each in groupby(ordered, lambda row: row.at)]
        for at, several in groups:
            try:
                _ = at is None or read_time(at, nodes)
            except InputError as error:
                if is_timed:
                    events += [_refusal(each, error) for each in several]
                    continue
                at = None  # nobody asks what time it is
            rows = [StreamRow(*each) for each in saved.waiting] + several
            if self._is_in_order or any(each.operation != "add" for each in rows):
                document.apply(at=at)
                self._apply_in_order(document, rows, saved, events)
            else:
                updates, ends = self._select(document, rows, saved, events)
                document.apply(updates, ends, at=at)
        if self._is_clocked and now and _time_of(now) > nodes.clock:
            document.advance(now)

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
                        events.append(_refusal(each, error))
                if each.is_end:
                    ends.append(each.function)
        saved.waiting = [list(each._replace(at=None)) for each in waiting]
        return updates, ends

    def _apply_in_order(
        self,
        document: ActiveDocument,
        fresh: list[StreamRow],
        saved: SavedDocument,
        events: list[DocumentEvent],
    ) -> None:
        """Apply rows one by one; those of functions that are not called yet wait, in order."""
        waiting = [each for each in fresh if each.function and not each.is_mere_time]
        while True:
            held: set[str] = set()
            left = []
            for each in waiting:
                is_known = each.is_document or each.function in document.functions
                if each.function in held or not is_known:
                    held.add(each.function)
                    left.append(each)
                    continue
                try:
                    self._apply_row(document, each)
                except InputError as error:
                    events.append(_refusal(each, error))
            if len(left) == len(waiting):
                break
            waiting = left
        saved.waiting = [list(each._replace(at=None)) for each in waiting]

    def _apply_row(self, document: ActiveDocument, row: StreamRow) -> None:
        """Apply one row.

        Raises:
            InputError: the function may not do that.
        """
        if row.is_document and isinstance(document, ActiveCollection):
            document.add_document(row.function.rstrip(":"), read_terms(_as_terms(row.data or "")))
            return
        taken, brought = row.taken_and_brought()
        if taken is not None and not self._is_retractable:
            message = "Rows retract only from documents that are watched with `--retractions`."
            raise InputError.of("C1254", message)
        if brought is not None:
            _check_live(document, row.function)
        document.apply(
            [] if brought is None else [(row.function, brought)],
            [row.function] if row.is_end else [],
            [] if taken is None else [(row.function, taken)],
        )

    def _update(
        self, document: ActiveDocument, arrival: StreamRow, updates: list[tuple[str, Forest]]
    ) -> set[str]:
        """Add an update, if the function may bring it; return the functions that it calls.

        Raises:
            InputError: it may not.
        """
        name = arrival.function
        _check_live(document, name)
        function = document.functions.get(name)
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
        if not self._is_collected:
            return []
        is_large = len(document.nodes) >= saved.needed + max(GC_MIN_GROWTH_NODES, saved.needed)
        if not is_large and any(view.is_open for view in opened.views.values()):
            return []
        if isinstance(document, ActiveCollection):
            saved.names = sorted({*saved.names, *document.documents})
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


def _place_of(row: StreamRow) -> tuple[float, int, str]:
    return _time_of(row.at or ""), row.seq, row.function


def _time_of(text: str) -> float:
    """Return a time in seconds; what has none comes before everything else."""
    found = number_of(text)
    return float("-inf") if found is None else found


def _with_names(forest: Forest, names: Iterable[str]) -> Forest:
    """Return the tree of several documents; those that were collected have a node again."""
    there = {each.label for each in forest if each.parent == 0}
    missing = (ForestNode(0, name) for name in names if name not in there)
    return [*forest, *missing] if names else forest


def _check_live(document: ActiveDocument, name: str) -> None:
    function = document.functions.get(name)
    if function is not None and function.state is FunctionState.ENDED:
        raise InputError.of("C1231", f"Data came for the function `{name}`, which has ended.")


def _view_events(
    name: str, view: View, before: frozenset[Any], saved: SavedDocument, is_retractable: bool
) -> list[DocumentEvent]:
    """Return what has changed in a view since the last batch."""
    events = [
        DocumentEvent("sure", name, json.dumps(each, ensure_ascii=False))
        for each in sorted(view.sure - before)
    ]
    is_falling = is_retractable or view.maintained.shape.is_windowed
    gone = sorted(before - view.sure) if is_falling else []
    events += [
        DocumentEvent("retracted", name, json.dumps(each, ensure_ascii=False)) for each in gone
    ]
    last = saved.values.get(name, -1.0)
    is_final = last == 1 and not is_falling  # its answers may be collected since
    value = 1.0 if is_final else view.value
    if value != last:
        events.append(DocumentEvent("value", name, value=value, before=last))
        saved.values[name] = value
    return events


def _wait_events(name: str, view: View, saved: SavedDocument, since: str) -> list[DocumentEvent]:
    """Return which functions a view waits for, and those it does not wait for any more."""
    known = saved.waits.get(name, {})
    now = view.useful(exact=False) if view.is_open else frozenset()
    saved.waits[name] = {function: known.get(function, since) for function in sorted(now)}
    return [
        *(
            DocumentEvent("settled", name, function, since=known[function])
            for function in sorted(known.keys() - now)
        ),
        *(
            DocumentEvent("waits", name, function, since=since)
            for function in sorted(now - known.keys())
        ),
    ]


def _as_terms(text: str) -> str:
    forest = read_forest(text, ReadOptions(), is_document=True)
    check_document(forest)
    return write_terms(forest)


def _refusal(row: StreamRow, error: InputError) -> DocumentEvent:
    return DocumentEvent("refused", row.function, _messages(error), seq=row.seq)


def _messages(error: InputError) -> str:
    return " ".join(each.message for each in error.diagnostics)
