"""Which functions are useful in a document with a type.

f is useful iff there are a completion K and an answer that is not sure, such that the answer is in
q(K), but not in q(K without what f has brought). Of a tree its outline counts (`certain`); here two
of them: with what f brings, and without.

    pairs(n) = best { (full, rest) } over the completions of the subtree of n

A pair is better than another one if it has more in `full`, or less in `rest`. Both grow with those
of the children, so only the best ones need to be kept. f is useful iff a pair of the root matches
the query in `full` and not in `rest`. Trees of f have nothing in `rest`, those of others the same
in both; so of these all outlines count, not only the least. A query node needs one match: so beside
what a type requires, no more trees are tried than the query has nodes.

With the type `r[(a | b), c?]`, the document `r[!f !g]` and the query `/r/c`, `f` is useful: it may
bring the `c`, while `g` brings an `a`. With `/r[a or b]` nothing is: that is sure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from corollary.documents.answers.certain import Certainty, Outline, OutlineSearch
from corollary.documents.answers.completed_answers import CANDIDATES_MAX, CompletedAnswers
from corollary.documents.answers.question import Question
from corollary.documents.answers.search_limits import SearchLimits
from corollary.documents.answers.unknown import (
    EncodedRow,
    decode_label,
    encode_label,
    is_unknown,
    range_of,
)
from corollary.documents.answers.usefulness import Usefulness
from corollary.documents.trees.forest import NodeKind
from corollary.documents.types.completions import Completions
from corollary.documents.types.content_fit import Types
from corollary.documents.types.function_types import ANY, ANYTHING, Production
from corollary.documents.types.node_types import Supplier
from corollary.engines.budget import WorkBudget, WorkLimitError

NOTHING = Outline()
Pair = tuple[Outline, Outline]
"""The outline of a tree, or of what is below a node, with and without what a function brings."""


def useful_in_completions(
    question: Question, completed: CompletedAnswers, bound: frozenset[str], limits: SearchLimits
) -> Usefulness:
    """Return the functions that are useful, or not proved useless within the limits."""
    assert question.document_type is not None
    proved, budget = set[str](), limits.budget()
    try:
        completions = question.document_type.completions(question.nodes, budget)
        reason = _undecided_reason(question, completed, completions, budget)
        answers = [] if reason else _answers(completed)
        if len(answers) > CANDIDATES_MAX:
            reason = "too many answers may come"
        for answer in () if reason else answers:
            patterns = Certainty(question, completions, budget).patterns(answer)
            search = _DifferenceSearch(completions, patterns, budget)
            proved |= {name for name in bound - proved if search.is_useful(name)}
            if proved == bound:
                break
    except (WorkLimitError, RecursionError) as error:
        reason = f"the search for completions ended after {error}"
    except UndecidedError:
        reason = "trees of several types at once are not compared"
    if reason:
        return Usefulness(bound, bound - proved, reason, budget.used)
    return Usefulness(frozenset(proved), work=budget.used)


class UndecidedError(Exception):
    """Trees would have to be of several types at once, which are not simply combined."""


def _undecided_reason(
    question: Question, completed: CompletedAnswers, completions: Completions, budget: WorkBudget
) -> str:
    """Return why usefulness is not decided; empty if it is."""
    if not completed.is_exact:
        return completed.reason
    if completions.grammar.constraints:
        return "with constraints completions are not compared"
    certainty = Certainty(question, completions, budget)
    if not certainty.is_decidable:
        return "with joins that are not returned, and comparisons, completions are not compared"
    if certainty.is_relaxed:
        return "completions with functions of several calls are not compared"
    if any(node.kind is not None for node in question.shape.nodes()):
        return "with tests of kinds completions are not compared"
    return ""


def _answers(completed: CompletedAnswers) -> list[EncodedRow]:
    """Return the answers to look at: of unknown labels all that are known, and a stranger each."""
    longest = max((len(str(decode_label(each))) for each in completed.labels), default=0)
    found: dict[EncodedRow, None] = {}
    for row in sorted(completed.possible - completed.sure):
        options = []
        for at, symbol in enumerate(row):
            allowed = range_of(symbol) if is_unknown(symbol) else frozenset({symbol})
            stranger = encode_label(" " * (longest + 1) + str(at))
            options.append([stranger, *completed.labels] if allowed is None else sorted(allowed))
        for each in product(*options):
            if each not in completed.sure:
                found[each] = None
            if len(found) > CANDIDATES_MAX:
                return [*found]
    return [*found]


class _DifferenceSearch(OutlineSearch):
    """Looks for completions in which patterns match, but not without what a function brings."""

    def is_useful(self, function: str) -> bool:
        """Whether there is such a completion.

        Raises:
            UndecidedError: trees would have to be of several types at once.
        """
        whole = self._completions
        tables: dict[int, dict[str, list[Pair]]] = {}
        for number in whole.open_nodes:
            tables[number] = self._pairs(number, tables, function)
        root = tables.get(whole.tree.root, {}).get(whole.grammar.start, ())
        return any(full.here & self._roots and not rest.here & self._roots for full, rest in root)

    # --- trees of types --------------------------------------------------------------------------

    def _grow(self, types: Types) -> Iterator[Outline]:
        sat = self._completions.sat
        for chosen in product(*(sat.productions(each) for each in sorted(types))):
            several = chosen or (ANYTHING,)
            # A production that only says labels restricts those of another one.
            plain = [each for each in several if each.below != ANYTHING.below or each.groups]
            if len(plain) > 1:
                raise UndecidedError
            production = plain[0] if plain else several[0]
            for below in self._unions(production):
                for label, kind in self._roots_of(several, is_least=False):
                    if kind is NodeKind.ELEMENT or below == NOTHING:
                        yield self._outline(label, kind, [below])

    def _unions(self, production: Production) -> set[Outline]:
        """Return what the children of a tree can match together."""
        found = {NOTHING}
        for child in production.below:
            options = self._of_child(child.type)
            first = {_union(one, other) for one in found for other in options}
            self._budget.spend(1 + len(first))
            found = first if child.is_required else found | first
            if not child.is_single:
                found = self._closure(found, [options])
        for group in production.groups:
            found = self._closure(found, [self._of_child(each) for each in group])
        return found

    def _of_child(self, type_: str) -> frozenset[Outline]:
        key = frozenset({type_}) - {ANY}
        return self._trees.setdefault(key, frozenset())

    def _closure(self, found: set[Outline], options: Sequence[frozenset[Outline]]) -> set[Outline]:
        """Return what is matched if one of each option is added any number of times."""
        together = {NOTHING}
        for each in options:
            together = {_union(one, other) for one in together for other in each}
        fresh = found
        while fresh:
            self._budget.spend(1 + len(fresh) * len(together))
            fresh = {_union(one, other) for one in fresh for other in together} - found
            found = found | fresh
        return found

    # --- nodes of the document -------------------------------------------------------------------

    def _pairs(
        self, number: int, tables: Mapping[int, Mapping[str, list[Pair]]], function: str
    ) -> dict[str, list[Pair]]:
        """Return the types that an open node can have, with the best pairs for each."""
        tree = self._completions.tree
        label, kind = tree.labels[number], tree.kinds[number]
        fixed = NOTHING
        for child in tree.children[number]:
            if child in self._closed:
                fixed = _union(fixed, _lift(self._closed[child]))
        found: dict[str, list[Pair]] = {}
        for name, production, children, below in self._choices(number, tables):
            for family in self._families(number, production, children, is_least=False):
                brought = [self._brought_pairs(each, function) for each in family]
                for full, rest in self._join(fixed, [*below, *brought]):
                    pair = self._outline(label, kind, [full]), self._outline(label, kind, [rest])
                    found.setdefault(name, []).append(pair)
        return {name: _best(pairs) for name, pairs in found.items()}

    def _brought_pairs(self, tree: tuple[Supplier, str], function: str) -> list[Pair]:
        """Return the pairs of the trees of a type that a function brings."""
        supplier, type_ = tree
        outlines = self._outlines(frozenset({type_, supplier.type}))
        if supplier.name == function:
            return _best([(each, NOTHING) for each in outlines])
        return [(each, each) for each in outlines]

    def _join(self, fixed: Outline, parts: Sequence[Sequence[Pair]]) -> list[Pair]:
        """Return the best pairs of what is below a node: one of each part together."""
        found: list[Pair] = [(fixed, fixed)]
        for pairs in parts:
            self._budget.spend(1 + len(found) * len(pairs))
            found = _best(
                [
                    (_union(one[0], _lift(other[0])), _union(one[1], _lift(other[1])))
                    for one in found
                    for other in pairs
                ]
            )
        return found


def _lift(outline: Outline) -> Outline:
    """Return what a tree gives to the node above it: matches at a child, and anywhere below."""
    return Outline(outline.here, outline.here | outline.below)


def _union(one: Outline, other: Outline) -> Outline:
    return Outline(one.here | other.here, one.below | other.below)


def _best(pairs: Iterable[Pair]) -> list[Pair]:
    """Return the pairs than which no other one has as much in `full`, and as little in `rest`."""
    distinct = list(dict.fromkeys(pairs))
    return [
        (full, rest)
        for full, rest in distinct
        if not any(
            (more, less) != (full, rest) and full.is_within(more) and less.is_within(rest)
            for more, less in distinct
        )
    ]
