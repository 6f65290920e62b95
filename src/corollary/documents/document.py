"""`ActiveDocument`: a document that streams still write into, and the views on it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from corollary.documents.active_types import whole_type
from corollary.documents.collect import Collected, collect
from corollary.documents.collection import Collection
from corollary.documents.errors import StreamClosedError, UnknownFunctionError
from corollary.documents.fitting import demand_single, demand_tree, demand_type
from corollary.documents.forest import Forest, Kind
from corollary.documents.function import Function, State
from corollary.documents.nodes import Nodes, Placed
from corollary.documents.reading import Reading, read_forest
from corollary.documents.storage import Batch, facts_of
from corollary.documents.terms import write_terms
from corollary.documents.types import FunctionType, Labels
from corollary.documents.view import View
from corollary.errors import Diagnostic


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
        types: what the trees of a function look like: labels of their roots, or a grammar.
        collection: where it is kept; by itself if it is not given.
        unknown: what is done about data for a function that is not there: `error`, `ignore`, or
            `create` (the function is known from then on, and its data goes nowhere).
        late: what is done about data for a function that has ended: `error` or `ignore`.
        reading: how XML is read.

    Raises:
        ActiveDocumentError: it is no document.
    """

    def __init__(
        self,
        forest: Forest,
        *,
        once: Iterable[str] = (),
        types: Mapping[str, FunctionType | Iterable[str]] | None = None,
        collection: Collection | None = None,
        unknown: str = "error",
        late: str = "error",
        reading: Reading | None = None,
    ) -> None:
        demand_tree(forest)
        self.collection = collection or Collection()
        self.reading = reading or Reading()
        self.functions: dict[str, Function] = {}
        self.version = 0
        self._unknown, self._late = unknown, late
        self._once = frozenset(once)
        self._types = {
            name: type_ if isinstance(type_, FunctionType) else Labels(frozenset(type_))
            for name, type_ in (types or {}).items()
        }
        self._ended: set[str] = set()
        self._views: list[View] = []
        batch = Batch()
        self.nodes = Nodes(forest, self.collection.nodes)
        self._store(self.nodes.placed, batch)
        for name in self._once | set(self._types):
            self._function(name, batch)
        self.collection.write(batch)

    @classmethod
    def from_terms(cls, text: str, **options: Any) -> Self:
        """Return the document that a term such as `r[a !f]` says."""
        return cls(read_forest(text, Reading("terms")), **options)

    @classmethod
    def from_xml(cls, text: str | bytes, **options: Any) -> Self:
        """Return the document of an XML text; `<?call f?>` is a function node."""
        reading = options.pop("reading", Reading("xml"))
        return cls(read_forest(text, reading, is_document=True), reading=reading, **options)

    @classmethod
    def from_json(cls, text: str, **options: Any) -> Self:
        """Return the document of a JSON text, below a root that is labelled `json`."""
        return cls(read_forest(text, Reading("json"), is_document=True), **options)

    @classmethod
    def read(cls, place: str | Path, **options: Any) -> Self:
        """Return the document of a file, by its extension, or of a text that is no file."""
        reading = options.pop("reading", Reading())
        return cls(read_forest(place, reading, is_document=True), reading=reading, **options)

    # --- what happens to it ----------------------------------------------------------------------

    def add(self, function: str, data: "str | bytes | Path | Forest") -> None:
        """Insert a copy of every tree of some data beside every call of a function.

        Args:
            function: its name.
            data: a forest in XML, JSON or term syntax, a path to a file, or rows.

        Raises:
            UnknownFunctionError: the document has no such function.
            StreamClosedError: the function has ended.
            ActiveDocumentError: the data is malformed, or not what the function may bring.
        """
        self.apply([(function, data)])

    def end(self, function: str) -> None:
        """Take note that a function brings nothing any more."""
        self.apply((), [function])

    def apply(
        self,
        updates: "Iterable[tuple[str, str | bytes | Path | Forest]]" = (),
        ends: Iterable[str] = (),
    ) -> None:
        """Make several updates, and let functions end behind them, in one transaction."""
        batch = Batch()
        self.prepare(updates, ends, batch)
        self.note(self.collection.write(batch))

    def prepare(
        self,
        updates: "Iterable[tuple[str, str | bytes | Path | Forest]]",
        ends: Iterable[str],
        batch: Batch,
    ) -> None:
        """Put updates and ends into a batch; nothing is done if one of them is wrong."""
        asked: list[tuple[str, Forest]] = []
        coming: set[str] = set()
        answered: list[str] = []
        for name, data in updates:
            forest = self._checked(name, data, coming)
            if forest is None and name in self._once:
                answered.append(name)
            if forest is not None:
                if name in self._once:
                    demand_single(name, forest, [each for each, _ in asked])
                asked.append((name, forest))
                coming |= {row.label for row in forest if row.kind is Kind.FUNCTION}
        ended = [name for name in ends if name in coming or self._is_known(name)]
        for name, forest in asked:
            self._store(self.nodes.add(name, forest, self.collection.nodes), batch)
            function = self._function(name, batch)
            if function.is_once:
                self._end(function, batch)
        for name in answered + ended:
            self._end(self._function(name, batch), batch)

    def note(self, touched: Mapping[int, object]) -> None:
        """Take note that a batch with changes of this document was written."""
        self.version += 1
        if self.nodes.root in touched or self._once or self._types:
            for view in self._views:
                view.tell()

    # --- questions -------------------------------------------------------------------------------

    def view(self, query: str) -> View:
        """Return a view on the document, maintained from now on.

        Raises:
            QuerySyntaxError: the query is none.
        """
        view = View(self, self.collection.maintain(query))
        self._views.append(view)
        return view

    def gc(self, views: Iterable[View] | None = None) -> Collected:
        """Drop what no view needs, whatever comes; close the functions that nobody waits for.

        Args:
            views: the only ones that matter from now on; all of the document if not given.
        """
        batch = Batch()
        collected = self.sweep(batch, views)
        self.note(self.collection.write(batch))
        return collected

    def sweep(
        self, batch: Batch, views: Iterable[View] | None = None, *, is_reported: bool = False
    ) -> Collected:
        """Put into a batch what a collection of garbage does, as `gc` does it at once.

        Args:
            batch: where it goes.
            views: the only ones that matter from now on; all of the document if not given.
            is_reported: whether answers are known elsewhere, so that only yes or no is kept here.
        """
        asked = list(self._views if views is None else views)
        kept = collect(self, asked)
        for view in asked:
            if is_reported and not view.maintained.shape.is_boolean:
                continue
            answers = view.maintained.sure.get(self.nodes.root, ())
            reported = [(self.nodes.root, *each) for each in answers]
            batch.add(f"{view.maintained.name}_reported", reported)
        gone = self.nodes.keep(kept)
        for relation, rows in facts_of(gone, self._numbers()).items():
            batch.remove(relation, rows)
        closed = []
        for function in self.functions.values():
            if function.state is State.LIVE and not self.nodes.calls.get(function.name):
                self._shut(function, batch, State.CLOSED)
                closed.append(function.name)
        return Collected(len(kept), len(gone), tuple(sorted(closed)))

    def close(self, functions: Iterable[str]) -> None:
        """Leave out functions that are useless; what they bring is ignored from now on."""
        batch = Batch()
        for name in functions:
            if self._is_known(name) and self.functions[name].state is State.LIVE:
                self._shut(self.functions[name], batch, State.CLOSED)
        self.note(self.collection.write(batch))

    def discard(self, batch: Batch) -> None:
        """Put into a batch what takes the document out of its collection."""
        gone = self.nodes.keep(set())
        for relation, rows in facts_of(gone, self._numbers()).items():
            batch.remove(relation, rows)
        for function in self.functions.values():
            self._shut(function, batch, State.ENDED)
        for view in self._views:
            answers = view.maintained.sure.get(self.nodes.root, ())
            reported = [(self.nodes.root, *each) for each in answers]
            batch.remove(f"{view.maintained.name}_reported", reported)

    @property
    def live(self) -> frozenset[str]:
        """The names of the functions that may still bring something."""
        return frozenset(name for name, each in self.functions.items() if each.state is State.LIVE)

    def least_type(self, name: str) -> FunctionType | None:
        """Return the type of a function if those that answer once bring nothing to its trees."""
        return whole_type(name, self._types, self._ended | self._once)

    def terms(self) -> str:
        """Return the document as it is now, in term syntax."""
        return write_terms(self.nodes.forest())

    # --- inside ----------------------------------------------------------------------------------

    def _store(self, placed: Iterable[Placed], batch: Batch) -> None:
        """Put new nodes into a batch; functions that they call are known from now on."""
        placed = list(placed)
        for each in placed:
            if each.kind is Kind.FUNCTION:
                self._function(each.label, batch)
        for relation, rows in facts_of(placed, self._numbers()).items():
            batch.add(relation, rows)

    def _numbers(self) -> dict[str, int]:
        return {name: each.number for name, each in self.functions.items()}

    def _function(self, name: str, batch: Batch) -> Function:
        function = self.functions.get(name)
        if function is None:
            type_ = self._types.get(name)
            number = next(self.collection.functions)
            whole = whole_type(name, self._types, self._ended)
            function = Function(name, number, name in self._once, type_, whole)
            self.functions[name] = function
            self._open(function, batch)
        elif function.state is State.CLOSED:  # a call has come back: it is a stream again
            self._open(function, batch)
        return function

    def _open(self, function: Function, batch: Batch) -> None:
        function.state = State.LIVE
        batch.add("live", [self._row(function, batch)])

    def _shut(self, function: Function, batch: Batch, state: State) -> None:
        if function.state is State.LIVE:
            batch.remove("live", [self._row(function, batch)])
        function.state = state

    def _row(self, function: Function, batch: Batch) -> tuple[int, int]:
        return function.number, self.collection.kind_of(function.whole, batch)

    def _end(self, function: Function, batch: Batch) -> None:
        """Let a function end; trees that call it are known to get nothing from it any more."""
        self._shut(function, batch, State.ENDED)
        self._ended.add(function.name)
        for each in self.functions.values():
            if each.is_active:
                before = self._row(each, batch)
                each.whole = whole_type(each.name, self._types, self._ended)
                if each.state is State.LIVE:
                    batch.remove("live", [before])
                    batch.add("live", [self._row(each, batch)])

    def _is_known(self, name: str) -> bool:
        if name in self.functions:
            return True
        if self._unknown == "error":
            known = ", ".join(f"`{each}`" for each in sorted(self.functions)) or "none"
            message = f"The document has no function `{name}`."
            raise UnknownFunctionError([Diagnostic("C1230", message, None, f"it has {known}")])
        if self._unknown == "create":
            batch = Batch()
            self._function(name, batch)
            self.collection.write(batch)
            return True
        return False

    def _accepts(self, name: str, coming: set[str]) -> bool:
        """Whether data for a function is inserted; a call that is coming opens it again."""
        function = self.functions[name]
        if function.state is State.ENDED:
            if self._late == "ignore":
                return False
            message = f"Data came for the function `{name}`, which has ended."
            note = "send nothing after the end, or open the document with `late='ignore'`"
            raise StreamClosedError([Diagnostic("C1231", message, None, note)])
        return function.state is State.LIVE or name in coming

    def _checked(
        self, name: str, data: "str | bytes | Path | Forest", coming: set[str]
    ) -> Forest | None:
        """Return the trees that a function is to bring, if it may; None if it is to be ignored.

        Args:
            name: the function.
            data: what it brings.
            coming: the functions that earlier updates of the batch call.
        """
        if name not in self.functions and name in coming:
            return self._read(name, data)
        if not self._is_known(name) or not self._accepts(name, coming):
            return None
        forest = self._read(name, data)
        demand_type(name, self.functions[name].type, forest)
        return forest

    def _read(self, name: str, data: "str | bytes | Path | Forest") -> Forest:
        if isinstance(data, str | bytes | Path):
            return read_forest(data, self.reading, f"update of {name}")
        return data
