"""Choice domains: a valid choice after every change, the same whatever has come and gone."""

import pytest

import corollary
from support.generators.choices import PROGRAMS, judge_choices


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_random_transactions(number: int) -> None:
    assert judge_choices(number, 8)["steps"]


def test_the_choice_depends_on_the_data_alone() -> None:
    text = PROGRAMS[0][0]
    histories = ([[(1, 2), (1, 3)], [(2, 2)]], [[(2, 2)], [(1, 3)], [(1, 2)]])
    found = []
    for history in histories:
        db = corollary.open(None)
        db.load(text=text)
        for edges in history:
            with db.transaction() as tx:
                tx.insert("edge", edges)
        found.append(sorted(db.relation("pair").rows()))
    assert found[0] == found[1] == [(1, 2), (2, 1)]


OFFERS = """
.decl offer(item: number, price: number)
.decl best(item: number, price: number){domain}
best(i, p) :- offer(i, p).
"""


def test_only_keys_that_lose_their_choice_are_derived() -> None:
    db = corollary.open(None, engine="local")
    db.load(text=OFFERS.format(domain=" choice-domain item"))
    with db.transaction() as tx:
        tx.insert("offer", [(item, price) for item in range(20) for price in range(200)])
    reads = {}
    for price in (199, 0):
        with db.transaction() as tx:
            tx.delete("offer", [(7, price)])
        assert tx.stats["best"].algorithm == "choices"
        reads[price] = tx.stats["best"].counts.get("base_probes", 0)
        assert tx.changes["best"].counts == ((0, 0) if price else (1, 1))
    assert reads[199] == 0
    assert reads[0] <= 200


def test_another_domain_is_another_choice() -> None:
    rows = [(1, 5), (2, 4), (1, 7), (3, 5)]
    db = corollary.open(None, engine="local")
    db.load(text=OFFERS.format(domain=""))
    with db.transaction() as tx:
        tx.insert("offer", rows)
    for domain, left in ((" choice-domain item", (1, 7)), (" choice-domain price", (3, 5))):
        db.load(text=OFFERS.format(domain=domain))
        assert sorted(db.relation("best").rows()) == sorted({*rows} - {left})
    facts = "".join(f"best({one}, {other}). " for one, other in rows)
    text = f".decl best(item: number, price: number){{domain}} {facts}"
    db = corollary.open(None, engine="local")
    db.load(text=text.format(domain=""))
    db.load(text=text.format(domain=" choice-domain item"))
    assert sorted(db.relation("best").rows()) == [(1, 5), (2, 4), (3, 5)]
