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
