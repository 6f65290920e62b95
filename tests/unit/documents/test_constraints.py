"""Keys and inclusions of documents: what they rule out, what they make sure, what they refuse."""

from __future__ import annotations

import pytest

from corollary.documents.answers.search_limits import SearchLimits
from corollary.documents.document import ActiveDocument
from corollary.documents.errors import ActiveDocumentError
from corollary.documents.types.read_type import read_type
from corollary.errors import InputError

SHOP = """\
shop[customer*, order*]
customer = customer[id[text()]]
order = order[number[text()], buyer[text()]?, paid?]
key shop/order (number)
shop/order/buyer in shop/customer/id
"""
ORDER = 'order[number["7"]]'


def asked(tree: str, query: str, type_: str = SHOP, **options: object) -> tuple[object, ...]:
    view = ActiveDocument.from_terms(tree, document_type=type_, **options).view(query)
    assert view.is_exact, view.bound_reason
    return view.value, set(view.sure)


def refused(tree: str, type_: str = SHOP, **options: object) -> str:
    with pytest.raises(ActiveDocumentError) as error:
        ActiveDocument.from_terms(tree, document_type=type_, **options)
    return str(error.value)


# --------------------------------------------------------------------------------------------- keys


def test_what_would_violate_a_key_is_not_possible() -> None:
    paid = '/shop/order[number/"7"][paid]'
    assert asked(f"shop[{ORDER} !f]", paid, SHOP.partition("key")[0]) == (0.5, set())
    assert asked(f"shop[{ORDER} !f]", paid) == (0, set())
    assert asked('shop[order[number["8"]] !f]', paid) == (0.5, set())
    # The order that is there may still be paid, where something comes into it.
    assert asked('shop[order[number["7"] !g] !f]', paid) == (0.5, set())


@pytest.mark.slow
def test_a_key_of_two_paths_needs_both() -> None:
    type_ = "r[a[x, y]*] key r/a (x, y)"
    tree = 'r[a[x["1"] y["2"]] !f]'
    assert asked(tree, '/r/a[x/"1"][y/"2"]', type_) == (1, {()})
    assert asked(tree, '/r/a[x/"1"][y/"3"]', type_) == (0.5, set())
    # One value of each in common is enough, also where a node was there before.
    assert asked(tree, '/r/a[x/"1"][y[z]]/y/"2"', type_) == (0, set())
    assert asked('r[a[x["1"] y["2"]] a[x["1"] !f]]', '/r/a/y["2"][z]', type_) == (0, set())
    assert asked('r[a[x["1"] y["2"]] a[x["0"] !f]]', '/r/a/y["2"][z]', type_) == (0.5, set())


def test_a_function_of_two_calls_brings_no_key_twice() -> None:
    type_ = "r[s*] s = s[k*] key r/s/k (.)"
    assert asked("r[s[!f] s[!g]]", "/r/s/k/*", type_) == (0.5, set())
    assert asked("r[s[!f] s[!f]]", "/r/s/k/*", type_) == (0, set())
    assert asked("r[s[!f] s[!f]]", "/r/s/k", type_) == (0.5, set())


def test_a_document_that_violates_a_key_names_both_places() -> None:
    said = refused(f'shop[{ORDER} order[number["8"]] {ORDER}]')
    assert "C1248" in said
    assert "`key shop/order (number)`: `shop/order[1]` and `shop/order[3]` agree" in said
    document = ActiveDocument.from_terms(f"shop[{ORDER} !f]", document_type=SHOP)
    with pytest.raises(ActiveDocumentError, match=r"C1248.*After the update of `f`"):
        document.add("f", ORDER)
    assert document.terms() == 'shop[order[number["7"]] !f]'
    document.add("f", 'order[number["8"]]')
    with pytest.raises(ActiveDocumentError, match=r"order.1.` and `shop/order.3.` agree"):
        document.add("f", ORDER)


# --------------------------------------------------------------------------------------- inclusions


def test_what_an_inclusion_requires_is_sure() -> None:
    tree = 'shop[order[number["7"] buyer["ann"]] !f]'
    assert asked(tree, "/shop/customer/id/*$c") == (1, {("ann",)})
    assert asked(tree, '/shop/customer/id/"bob"') == (0.5, set())
    assert asked(tree, "/shop/customer", SHOP.partition("key")[0]) == (0.5, set())


def test_a_value_that_nobody_can_bring_is_not_possible() -> None:
    tree, types = 'shop[customer[id["ann"]] !f]', {"f": ["order"]}
    assert asked(tree, '/shop/order/buyer/"ann"', types=types) == (0.5, set())
    assert asked(tree, '/shop/order/buyer/"bob"', types=types) == (0, set())
    assert asked(tree, '/shop/order/buyer/"bob"') == (0.5, set())
    assert asked("shop[!f]", "/shop/order/buyer/*", types=types) == (0, set())


def test_a_document_whose_values_nobody_can_bring_is_refused() -> None:
    tree = 'shop[order[number["7"] buyer["ann"]] !f]'
    said = refused(tree, types={"f": ["order"]})
    assert "C1249" in said
    assert "`shop/order/buyer in shop/customer/id` lacks `ann`" in said
    document = ActiveDocument.from_terms(tree, document_type=SHOP)
    with pytest.raises(ActiveDocumentError, match="C1249"):
        document.end("f")
    document.add("f", 'customer[id["ann"]]')
    document.end("f")


def test_inclusions_lead_to_inclusions_and_keys() -> None:
    type_ = "r[a*, b*, c*] r/a in r/b r/b in r/c key r/c (.)"
    assert asked('r[a["1"] !f]', '/r/c/"1"', type_) == (1, {()})
    assert asked('r[a["1"] !f]', '/r[b/"1"][c/"1"]', type_) == (1, {()})
    both = "r[s*, t*] s = s[a*, c*] t = t[a*, c*] r/s/a in r/s/c key r/s/c (.)"
    # A `c` of `f` would come twice.
    assert asked("r[s[!f] s[!f]]", '/r/s/a/"1"', both) == (0, set())
    assert asked("r[s[!f] s[!f !g]]", '/r/s/a/"1"', both) == (0.5, set())


# ------------------------------------------------------------------------------------- what is said


def test_what_is_not_found_out_is_said() -> None:
    # Three nodes, two values for them: the chase does not count, so no witness is found.
    type_ = "r[s?] s = s[a, a, a] a = a[x[] | y[]] key r/s/a (.)"
    view = ActiveDocument.from_terms("r[!f]", document_type=type_).view("/r/s")
    assert (view.value, view.is_exact) == (0.5, False)
    assert "whether constraints allow all possible answers" in view.bound_reason
    limits = SearchLimits(nodes=40)
    tree = " ".join(f'order[number["{at}"]]' for at in range(30))
    large = ActiveDocument.from_terms(f"shop[{tree} !f]", document_type=SHOP, limits=limits)
    view = large.view('/shop/order[number/"7"][paid]')
    assert (view.value, view.is_exact) == (0.5, False)
    assert "ended after" in view.bound_reason


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("r[a*] key r/a", "does not say of what"),
        ("r[a*] key r/a (b", "`)` is expected"),
        ("r[a*] key r//a (b)", "where a path is expected"),
        ("r[a*] r/a in .", "where a path is expected"),
        ("r[a*] r/a in r/b S = s", "is not expected here"),
    ],
)
def test_malformed_constraints_are_refused(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        read_type(text)
    assert "C1240" in str(error.value)
    assert said in str(error.value)


def test_constraints_are_for_documents() -> None:
    with pytest.raises(ActiveDocumentError, match="C1247"):
        ActiveDocument.from_terms("r[!f]", types={"f": "a[b*] key a/b (.)"})
