"""What functions may bring to a document with a type, if that does not depend on each other.

In a completion each open node has a type. If only one type is left for each, every function brings
what fits beside its own call, whatever the others do: the completions are all combinations. So a
function can be taken by itself:

| the type leaves room for                 | the function is taken for                           |
|------------------------------------------|-----------------------------------------------------|
| one tree, of one of some types           | one that answers once, with a choice of these types |
| any number of trees of each of its types | a stream with a choice of these types               |
| anything                                 | what it is                                          |

The document `r[x[!f] y[!g]]` with the type `r[x[zero | one], y[zero | one]]` is the reduction of
Theorem 4: `f` and `g` answer once, with a `zero` or a `one`.
"""

from collections import Counter
from itertools import combinations_with_replacement
from typing import NamedTuple

from corollary.documents.types.completions import Completions
from corollary.documents.types.content_fit import Supply, Types, has_fit
from corollary.documents.types.function_types import ANY, Grammar
from corollary.documents.types.node_types import Supplier


class CallResult(NamedTuple):
    """What a function may bring in all completions.

    Attributes:
        types: the types of its trees.
        is_single: whether it brings one tree at most.
        is_optional: whether it may bring none.
    """

    types: Types
    is_single: bool
    is_optional: bool

    def least(self, at: int) -> "CallResult":
        """Return one of the least results: nothing, or trees of one of the types, by a number."""
        types = [] if self.is_optional else [sorted(self.types)[at % len(self.types)]]
        return CallResult(frozenset(types), self.is_single, self.is_optional)

    def grammar(self, function: str, whole: Grammar) -> Grammar:
        """Return the type of its trees."""
        start = f"results of !{function}"
        chosen = tuple(each for type_ in sorted(self.types) for each in whole.productions(type_))
        return Grammar(start, {**whole.rules, start: chosen})


def independent_results(whole: Completions) -> dict[str, CallResult] | None:
    """Return what each live function may bring; None if it may depend on what others bring.

    Raises:
        WorkLimitError: it takes more than the budget.
    """
    rules = whole.grammar.rules
    if any(each.calls for name in rules for each in whole.grammar.productions(name)):
        return None
    found: dict[str, CallResult] = {}
    for number in whole.open_nodes:
        if len(whole.open_types(number)) != 1:
            return None
        called = whole.children(number)[2]
        for supplier in called:
            result = _result_at(whole, number, supplier) if len(called) == 1 else None
            # A function brings the same trees to all its calls.
            if result is None or found.setdefault(supplier.name, result) != result:
                return None
    return found


def _result_at(whole: Completions, number: int, supplier: Supplier) -> CallResult | None:
    """Return what a function may bring to the one call of a node."""
    (type_,) = whole.open_types(number)
    children, open_, _ = whole.children(number)
    for child in open_:
        children[whole.open_types(child)] += 1
    productions = [each for name, each in whole.open_candidates(number) if name == type_]
    brought = [whole.brought_types(supplier, each) for each in productions]
    fits = list(zip(productions, brought, strict=True))

    def is_room(trees: tuple[str, ...], *, is_all: bool) -> bool:
        content = children + Counter(frozenset({each}) for each in trees)
        return any(
            types.issuperset(trees)
            and has_fit(each, content, () if is_all else [Supply(types)], whole.budget)
            for each, types in fits
        )

    every = frozenset[str]().union(*brought)
    pairs = combinations_with_replacement(sorted(every), 2)
    if supplier.is_once or not any(is_room(pair, is_all=False) for pair in pairs):
        types = frozenset(each for each in every if is_room((each,), is_all=True))
        result = CallResult(types, True, is_room((), is_all=True))
    else:
        (production, *others) = productions
        types = frozenset(each for each in every if is_room((each,), is_all=False))
        endless = {each.type for each in production.children if not each.is_single}
        if others or production.groups or not types <= endless:
            return None
        result = CallResult(types, False, is_room((), is_all=True))
    # A tree of two types at once is not one of a choice of types. Of a stream that has to bring
    # trees of several types, one of them would not be enough.
    is_plain = result.types <= {ANY} or supplier.type == ANY
    has_any = types or result.is_optional
    has_least = result.is_single or result.is_optional or len(types) == 1
    return result if is_plain and has_any and has_least else None
