"""A query on one document, with its results: what usefulness, garbage and explanations need."""

from collections.abc import Mapping

from corollary.data_class import dataclass
from corollary.documents.answers.matching import call_results
from corollary.documents.answers.unknown import NO_ROWS, Answer, Tuples, decode_row
from corollary.documents.collection import MaintainedQuery
from corollary.documents.queries.shape import Node, QueryShape
from corollary.documents.trees.document_tree import DocumentTree
from corollary.documents.types.completions import DocumentType
from corollary.documents.types.function_types import Function
from corollary.documents.types.satisfiability import can_bring


@dataclass(frozen=True, slots=True)
class Question:
    """A query on a document.

    Attributes:
        nodes: the document.
        functions: those of the document, by name.
        maintained: the query, its rules and their results.
        document_type: what the whole document has to be in the end; None if nothing is known.
    """

    nodes: DocumentTree
    functions: Mapping[str, Function]
    maintained: MaintainedQuery
    document_type: DocumentType | None = None

    @property
    def shape(self) -> QueryShape:
        """The query in the form that is compiled to rules, as it is asked by the clock."""
        return self.maintained.shape.at(self.nodes.clock)

    @property
    def sure_rows(self) -> set[tuple[str, ...]]:
        """The sure answers, encoded as in relations."""
        return self.maintained.sure.get(self.nodes.root, set())

    @property
    def possible_rows(self) -> set[tuple[str, ...]]:
        """The possible answers, sure ones included, if every function is a stream: a bound."""
        return self.maintained.possible.get(self.nodes.root, set())

    @property
    def sure(self) -> frozenset[Answer]:
        """The sure answers."""
        return frozenset(map(decode_row, self.sure_rows))

    @property
    def candidates(self) -> frozenset[str]:
        """The live functions that are not proved useless by the rules."""
        numbers = self.maintained.candidates
        return frozenset(
            name for name, each in self.functions.items() if each.number in numbers and each.is_live
        )

    def stream_results(self, node: Node, name: str) -> Tuples:
        """Return what a function can bring for a query node, taken as a stream."""
        function = self.functions[name]
        is_open = function.is_live and can_bring(function.expanded_type, node)
        return call_results(node) if is_open else NO_ROWS
