"""Every functor in a tree exists, takes these arguments, and has the type that the tree says."""

import pytest

from corollary.core.functors.catalog import FUNCTORS, result_type
from corollary.core.functors.lambdas import SIGN
from corollary.core.types import Kind
from corollary.frontends.sql.binder.functions.table import INTERNAL, REFUSED, function_names
from corollary.frontends.sql.query_tree import ConstantValue, FunctionCall
from support.paths import REPOSITORY
from support.query_text import bind_text, expression_text, nodes_of

FILES = sorted((REPOSITORY / "tests" / "cases" / "sql_trees").glob("*.sql"))
QUERIES = [query for file in FILES for query in file.read_text("utf-8").strip().split("\n\n")]
OUTSIDE = {"today", "grouping", "field", "array_field", "arrays_zip", "from_json"}
"""No functor of the table, one that the lowering replaces, those that name fields or a type."""


def calls_of(query: str) -> list[FunctionCall]:
    tree = bind_text(query, {"k": 5})
    return [node for node in nodes_of(tree) if isinstance(node, FunctionCall)]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query[:40])
def test_calls_fit_the_signatures(query: str) -> None:
    for call in calls_of(query):
        if call.functor in OUTSIDE or call.functor.startswith(SIGN):
            continue
        signature = FUNCTORS[call.functor]
        said = expression_text(call)
        assert signature.accepts(len(call.arguments)), said
        for position, argument in enumerate(call.arguments):
            assert argument.type.logical_kind in signature.kinds(position), said
        digits = 0
        if signature.scale_at is not None or call.functor == "fit":
            last = call.arguments[-1]
            assert isinstance(last, ConstantValue)
            assert isinstance(last.value, int)
            digits = last.value
        alike = [call.arguments[at].type for at in signature.alike(len(call.arguments))]
        has_one_type = signature.result is None and not signature.is_like_first
        if has_one_type and call.functor not in ("+", "-", "fit"):
            assert len({type_.domain for type_ in alike}) <= 1, said
        found = result_type(call.functor, [each.type for each in call.arguments], digits)
        assert found.domain == call.type.domain, said
        assert call.type.nullable or not found.nullable, said


def test_the_cases_use_every_function() -> None:
    """What is not in a case is not shown to have a functor."""
    text = " ".join(QUERIES).lower()
    missing = [name for name in function_names() if name not in INTERNAL and f"{name}" not in text]
    assert missing == []


def test_no_function_is_both_known_and_refused() -> None:
    assert not set(function_names()) & set(REFUSED)


def test_comparisons_are_of_one_type() -> None:
    for query in QUERIES:
        for call in calls_of(query):
            if call.functor in ("eq", "ne", "lt", "le", "gt", "ge", "same"):
                left, right = (argument.type for argument in call.arguments)
                assert left.domain == right.domain, expression_text(call)
                assert Kind.BOOL is call.type.kind
