"""`ActiveDocument`: a document that streams still write into, and the views on it."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from corollary.documents.answers.garbage import Collected, collect
from corollary.documents.answers.question import Question
from corollary.documents.answers.search_limits import SearchLimits
from corollary.documents.arrival_times import DocumentTimes, Time, read_time
from corollary.documents.collection import Collection, WriteBatch, facts_of, numbers_of
from corollary.documents.errors import StreamClosedError, UnknownFunctionError
from corollary.documents.queries.parse import parse_query, several_documents
from corollary.documents.queries.pattern import DocumentQuery
from corollary.documents.trees.document_tree import DocumentTree, StoredNode
from corollary.documents.trees.forest import Forest, NodeKind
from corollary.documents.trees.reader import read_forest, write_terms
from corollary.documents.trees.xml import ReadOptions
from corollary.documents.types import check_update
from corollary.documents.types.check_conformance import (
    Conformance,
    check_collectable,
    read_document_type,
)
from corollary.documents.types.function_types import Function, FunctionState, Grammar, expand_calls
from corollary.documents.types.read_type import GivenType, function_type
from corollary.documents.view import View
from corollary.errors import InputError

Data = str | bytes | Path | Forest
"""What a function brings: a forest in XML, JSON or term syntax, a path to a file, or rows."""


class ActiveDocument:
    """A document with function nodes, beside which streams insert trees.

    >>> doc = ActiveDocument.from_terms("r[a !f]")
    >>> view = doc.view("/r[a][b$x]")
    >>> view.value, view.possible()
    (0.5, frozenset({('b',)}))
    >>> doc.add("f", "b")
    >>> view.value, view.sure
    (1, frozenset({('b',)}))

    Args:
        forest: the document, one tree.
        once: the functions that answer at most once, with one tree.
        types: what the trees of a function look like: labels of their roots, or a type.
        document_type: what the whole document has to be in the end: a type, or a file with one.
        collection: where it is stored; in one of its own if it is not given.
        unknown: what data for an unknown function leads to: `error`, `ignore`, or `create` (the
            function is known from then on, and its data goes nowhere).
        late: what data for a function that has ended leads to: `error` or `ignore`.
        reading: how XML is read.
        limits: what a search for an exact answer may take; beyond them there are bounds.
        at: the time that it is in the beginning, a number of seconds or a time.

    Raises:
        ActiveDocumentError: it is not a document, or not of its type.
    """

    def __init__(
        self,
        forest: Forest,
        *,
        once: Iterable[str] = (),
        types: Mapping[str, GivenType] | None = None,
        document_type: Grammar | str | Path | None = None,
        collection: Collection | None = None,
        unknown: str = "error",
        late: str = "error",
        reading: ReadOptions | None = None,
        limits: SearchLimits | None = None,
        at: Time = 0,
    ) -> None:
        check_update.check_document(forest)
        self.collection = collection or Collection()
        self.reading = reading or ReadOptions()
        self.limits = limits or SearchLimits()
        self.functions: dict[str, Function] = {}
        self._unknown, self._late = unknown, late
        self._once = frozenset(once)
        self._types = {name: function_type(name, type_) for name, type_ in (types or {}).items()}
        self._ended: set[str] = set()
        self._ignored: set[str] = set()  # what only ignored data has called
        functions = (self._once, self._types, self._ended)
        self.document_type = read_document_type(document_type, forest, *functions)
        self._is_collected = False
        self._views: list[View] = []
        batch = WriteBatch()
        self.nodes = DocumentTree(forest, self.collection.node_numbers, str(at), read_time(at))
        self._conformance: Conformance | None = None
        if self.document_type is not None:
            self._conformance = Conformance(self.document_type, self.nodes, self.limits)
        self.times = DocumentTimes(self.nodes, self.collection)
        self._add_nodes(self.nodes.initial, batch)
        self.times.follow_views(batch)
        for name in self._once | set(self._types):
            self._function(name, batch)
        self.collection.write(batch)

    @classmethod
    def from_terms(cls, text: str, **options: Any) -> Self:
        """Return the document of a term such as `r[a !f]`."""
        return cls(read_forest(text, ReadOptions("terms")), **options)

    @classmethod
    def from_xml(cls, text: str | bytes, **options: Any) -> Self:
        """Return the document of an XML text; `<?call f?>` is a function node."""
        reading = options.pop("reading", ReadOptions("xml"))
        return cls(read_forest(text, reading, is_document=True), reading=reading, **options)

    @classmethod
    def from_json(cls, text: str, **options: Any) -> Self:
        """Return the document of a JSON text, below a root that is labelled `json`."""
        return cls(read_forest(text, ReadOptions("json"), is_document=True), **options)

    @classmethod
    def read(cls, source: str | Path, **options: Any) -> Self:
        """Return the document of a file, by its extension, or of a text that is not a path."""
        reading = options.pop("reading", ReadOptions())
        return cls(read_forest(source, reading, is_document=True), reading=reading, **options)

    # --- updates ---------------------------------------------------------------------------------

    def add(self, function: str, data: Data, at: Time | None = None) -> None:
        """Insert a copy of every tree of some data beside every call of a function.

        Args:
            function: its name.
            data: what it brings.
            at: when it came; now if it is not given.

        Raises:
            UnknownFunctionError: the document has no such function.
            StreamClosedError: the function has ended.
            ActiveDocumentError: the data is malformed, or not what the function may bring.
        """
        self.apply([(function, data)], at=at)

    def advance(self, at: Time) -> None:
        """Let time pass: it is a later time from now on.

        Raises:
            ActiveDocumentError: it is earlier than the time that it was, or not a time.
        """
        self.apply(at=at)

    def end(self, function: str) -> None:
        """Note that a function brings nothing any more."""
        self.apply((), [function])

    def retract(self, function: str, data: Data) -> None:
        """Take back what a function brought: the last update with these trees, wherever it came.

        What came into the trees since goes with them. A function that has ended may retract, too.

        Raises:
            UnknownFunctionError: the document has no such function.
            ActiveDocumentError: the function has not brought these trees, or garbage has been
                collected since the beginning.
        """
        self.apply(retractions=[(function, data)])

    def replace(self, function: str, old: Data, new: Data) -> None:
        """Retract what a function brought, and let it bring something else, in one transaction."""
        self.apply([(function, new)], retractions=[(function, old)])

    def apply(
        self,
        updates: Iterable[tuple[str, Data]] = (),
        ends: Iterable[str] = (),
        retractions: Iterable[tuple[str, Data]] = (),
        at: Time | None = None,
    ) -> None:
        """Retract trees, make several updates, then let functions end, in one transaction.

        Args:
            updates: functions and what they bring.
            ends: functions that bring nothing more.
            retractions: functions and what they take back.
            at: the time that it is then; as before if it is not given.
        """
        batch = WriteBatch()
        clock = self.nodes.clock if at is None else read_time(at, self.nodes)
        retracted = self._check_retractions(retractions)
        checked = self._check_updates(updates, ends)
        if self._conformance is not None:
            self._conformance.check_updates(retracted, checked)
        self._remove_nodes(self.nodes.prune(retracted), batch)
        if at is not None:
            self.times.advance(str(at), clock, batch)
        self._stage_checked(checked, batch)
        self.note_written(self.collection.write(batch))

    def stage_updates(
        self, updates: Iterable[tuple[str, Data]], ends: Iterable[str], batch: WriteBatch
    ) -> None:
        """Put updates and ends into a batch; nothing is done if one of them is wrong."""
        checked = self._check_updates(updates, ends)
        if self._conformance is not None:
            self._conformance.check_updates((), checked)
        self._stage_checked(checked, batch)

    def _check_updates(
        self, updates: Iterable[tuple[str, Data]], ends: Iterable[str]
    ) -> tuple[list[tuple[str, Forest]], list[str]]:
        """Return the updates that are made, and the functions that end, if none is wrong."""
        accepted: list[tuple[str, Forest]] = []
        coming: set[str] = set()  # the functions that earlier updates of the batch call
        answered: list[str] = []
        for name, data in updates:
            forest = self._read_update(name, data, coming)
            if forest is None and name in self._once:
                answered.append(name)
            if forest is not None:
                if name in self._once:
                    check_update.check_single_answer(name, forest, [each for each, _ in accepted])
                accepted.append((name, forest))
                coming |= {row.label for row in forest if row.kind is NodeKind.FUNCTION}
        ended = [name for name in ends if name in coming or self._is_known(name)]
        return accepted, answered + ended

    def _stage_checked(
        self, checked: tuple[list[tuple[str, Forest]], list[str]], batch: WriteBatch
    ) -> None:
        accepted, ended = checked
        for name, forest in accepted:
            self._add_nodes(self.nodes.insert(name, forest, self.collection.node_numbers), batch)
            function = self._function(name, batch)
            if function.is_once:
                self._end(function, batch)
        for name in ended:
            self._end(self._function(name, batch), batch)

    def _check_retractions(self, retractions: Iterable[tuple[str, Data]]) -> set[int]:
        """Return the roots of the trees that are retracted, if all of them can be."""
        found: set[int] = set()
        for name, data in retractions:
            if not self._is_known(name) and name in self._ignored:
                continue
            roots = self.nodes.brought(name, self._read(name, data), found)
            found |= check_update.check_retraction(name, roots, is_collected=self._is_collected)
        return found

    def note_written(self, touched: Mapping[int, object]) -> None:
        """Note that a batch with changes of this document was written.

        Args:
            touched: by the roots of documents, those whose answers have changed.
        """
        # What is refined by types depends on more than the answers of the rules.
        is_refined = bool(self._once or self._types or self.document_type)
        for view in self._views:
            view.invalidate()
        for view in self._views if is_refined or self.nodes.root in touched else ():
            view.notify_listeners()

    # --- questions -------------------------------------------------------------------------------

    def view(self, query: str) -> View:
        """Return a view on the document, maintained from now on.

        Raises:
            QuerySyntaxError: it is not a query.
        """
        self._check_query(parse_query(query))
        maintained = self.collection.maintain(query)
        batch = WriteBatch()
        if self.times.follow_views(batch):
            self.note_written(self.collection.write(batch))
        question = Question(self.nodes, self.functions, maintained, self.document_type)
        view = View(question, self.limits)
        self._views.append(view)
        return view

    def gc(self, views: Iterable[View] | None = None) -> Collected:
        """Drop what no view needs, whatever comes; close the functions that nobody waits for.

        Args:
            views: the only ones that matter from now on; all of the document if not given.
        """
        batch = WriteBatch()
        collected = self.stage_garbage_collection(batch, views)
        self.note_written(self.collection.write(batch))
        return collected

    def stage_garbage_collection(
        self, batch: WriteBatch, views: Iterable[View] | None = None, *, is_reported: bool = False
    ) -> Collected:
        """Put into a batch what a collection of garbage does, as `gc` does it at once.

        Args:
            batch: where it goes.
            views: the only ones that matter from now on; all of the document if not given.
            is_reported: whether answers are known elsewhere, so that only yes or no is kept here.

        Raises:
            ActiveDocumentError: the document has a type.
        """
        check_collectable(self.document_type)
        chosen = list(self._views if views is None else views)
        needed = {self.nodes.root}
        for view in chosen:
            if view.is_open:
                needed |= collect(view.question, self.collection.storage)
        for view in chosen:
            shape = view.maintained.shape
            if not shape.is_windowed and (not is_reported or shape.is_boolean):
                batch.add(*self._reported_rows(view))
        kept = self.nodes.ancestors(needed)
        dropped = self._drop_nodes(kept, batch)
        closed = []
        for function in self.functions.values():
            if function.is_live and not self.nodes.calls.get(function.name):
                self._shut(function, batch, FunctionState.CLOSED)
                closed.append(function.name)
        self._is_collected = self._is_collected or bool(dropped or closed)
        return Collected(len(kept), dropped, tuple(sorted(closed)))

    def close(self, functions: Iterable[str]) -> None:
        """Close functions that are useless; what they bring is ignored from now on.

        Raises:
            ActiveDocumentError: the document has a type.
        """
        check_collectable(self.document_type)
        batch = WriteBatch()
        for name in functions:
            if self._is_known(name) and self.functions[name].is_live:
                self._shut(self.functions[name], batch, FunctionState.CLOSED)
                self._is_collected = True
        self.note_written(self.collection.write(batch))

    def stage_removal(self, batch: WriteBatch) -> None:
        """Put into a batch what takes the document out of its collection."""
        self.times.forget(batch)
        self._drop_nodes(set(), batch)
        for function in self.functions.values():
            self._shut(function, batch, FunctionState.ENDED)
        for view in self._views:
            batch.remove(*self._reported_rows(view))

    @property
    def live(self) -> frozenset[str]:
        """The names of the functions that may still bring something."""
        return frozenset(name for name, each in self.functions.items() if each.is_live)

    def terms(self) -> str:
        """Return the document as it is now, in term syntax."""
        return write_terms(self.nodes.forest())

    # --- inside ----------------------------------------------------------------------------------

    def _check_query(self, query: DocumentQuery) -> None:
        """Check that a query is about one document.

        Raises:
            QuerySyntaxError: it is over several.
        """
        if query.is_joint:
            note = "begin at the root, `/r[a]`, or open the documents by name, as one collection"
            raise several_documents(query, note)

    def _add_nodes(self, nodes: list[StoredNode], batch: WriteBatch) -> None:
        """Put new nodes into a batch; functions that they call are known from now on."""
        for each in nodes:
            if each.kind is NodeKind.FUNCTION:
                self._function(each.label, batch)
        facts = facts_of(nodes, self._numbers(), has_times=self.times.is_stored)
        for relation, rows in facts.items():
            batch.add(relation, rows)
        if self.collection.has_numbers:
            batch.add("num", numbers_of(each.label for each in nodes))
        self.times.add_nodes(nodes, batch)
        if self._conformance is not None and nodes is not self.nodes.initial:
            self._conformance.note_added(nodes)

    def _drop_nodes(self, kept: set[int], batch: WriteBatch) -> int:
        """Put all nodes but some into a batch, as removed; return how many."""
        dropped = self.nodes.retain(kept)
        self._remove_nodes(dropped, batch)
        return len(dropped)

    def _remove_nodes(self, nodes: list[StoredNode], batch: WriteBatch) -> None:
        """Put nodes that are gone into a batch."""
        facts = facts_of(nodes, self._numbers(), has_times=self.times.is_stored)
        for relation, rows in facts.items():
            batch.remove(relation, rows)
        self.times.remove_nodes(nodes, batch)
        if self._conformance is not None:
            self._conformance.note_removed(nodes)

    def _reported_rows(self, view: View) -> tuple[str, list[tuple[Any, ...]]]:
        """Return the relation of a view's answers that stay, and its sure answers as rows of it."""
        rows = [(self.nodes.root, *each) for each in view.question.sure_rows]
        return f"{view.maintained.name}_reported", rows

    def _numbers(self) -> dict[str, int]:
        return {name: each.number for name, each in self.functions.items()}

    def _function(self, name: str, batch: WriteBatch) -> Function:
        function = self.functions.get(name)
        if function is None:
            number = next(self.collection.function_numbers)
            function = Function(name, number, name in self._once, self._types.get(name))
            self._set_types(function)
            self.functions[name] = function
            self._open(function, batch)
        elif function.state is FunctionState.CLOSED:  # a call has come back: it is a stream again
            self._open(function, batch)
        return function

    def _open(self, function: Function, batch: WriteBatch) -> None:
        function.state = FunctionState.LIVE
        batch.add("live", [self._row(function, batch)])

    def _shut(self, function: Function, batch: WriteBatch, state: FunctionState) -> None:
        if function.is_live:
            batch.remove("live", [self._row(function, batch)])
        function.state = state

    def _row(self, function: Function, batch: WriteBatch) -> tuple[int, int]:
        return function.number, self.collection.type_number(function.expanded_type, batch)

    def _set_types(self, function: Function) -> None:
        """Find out what a function brings in the end, given which functions have ended."""
        name, types = function.name, self._types
        function.expanded_type = expand_calls(name, types, self._ended)
        function.least_type = expand_calls(name, types, self._ended | self._once)

    def _end(self, function: Function, batch: WriteBatch) -> None:
        """Let a function end; trees that call it get nothing from it any more."""
        self._shut(function, batch, FunctionState.ENDED)
        self._ended.add(function.name)
        for each in self.functions.values():
            if each.is_active:
                before = self._row(each, batch)
                self._set_types(each)
                if each.is_live:
                    batch.remove("live", [before])
                    batch.add("live", [self._row(each, batch)])

    def _is_known(self, name: str) -> bool:
        if name in self.functions:
            return True
        if self._unknown == "error" and name not in self._ignored:
            raise UnknownFunctionError.of_function(name, self.functions)
        if self._unknown == "create":
            batch = WriteBatch()
            self._function(name, batch)
            self.collection.write(batch)
            return True
        return False

    def _accepts(self, name: str, coming: set[str]) -> bool:
        """Whether data for a function is inserted; a call that is coming opens it again."""
        function = self.functions[name]
        if function.state is FunctionState.ENDED:
            if self._late == "ignore":
                return False
            raise StreamClosedError.of_function(name)
        return function.is_live or name in coming

    def _read_update(self, name: str, data: Data, coming: set[str]) -> Forest | None:
        """Return the trees that a function brings, if it may; None if they are ignored."""
        if name not in self.functions and name in coming:
            return self._read(name, data)
        if not self._is_known(name) or not self._accepts(name, coming):
            self._ignore(name, data)
            return None
        forest = self._read(name, data)
        check_update.check_type(name, self.functions[name].type, forest)
        return forest

    def _ignore(self, name: str, data: Data) -> None:
        """Note what ignored data calls: what comes for that is ignored, too."""
        with suppress(InputError):
            forest = self._read(name, data)
            self._ignored |= {row.label for row in forest if row.kind is NodeKind.FUNCTION}

    def _read(self, name: str, data: Data) -> Forest:
        if isinstance(data, str | bytes | Path):
            return read_forest(data, self.reading, f"update of {name}")
        return data
