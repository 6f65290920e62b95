"""Random documents, queries and updates: the package agrees with the oracle.

`make fuzz` goes on with other seeds, and with more of them.
"""

from collections import Counter

import pytest

from support.document_completions import CompletionRound, ConstraintRound
from support.generators.document_rounds import Round
from support.selection import examples, sampled


@pytest.mark.smoke
@pytest.mark.parametrize("seed", sampled(range(12), 4))
def test_rounds_agree(seed: int) -> None:
    found = Round(seed, 12).run()
    assert found["instances"] == 3 * 12
    assert found["futures"] == 2 * 12


@pytest.mark.slow
def test_rounds_with_active_types_agree() -> None:
    found = Counter[str]()
    rounds = examples(2, 12)
    for seed in range(rounds):
        found.update(Round(seed, 8, is_active=True).run())
    assert found["exact with active types"] > 8 * rounds


@pytest.mark.smoke
def test_rounds_with_document_types_agree() -> None:
    found = Counter[str]()
    for seed in range(examples(4, 24)):
        found.update(CompletionRound(seed, 6).run())
    assert found["typed instances exact"] > 10
    assert found["useful exact in typed documents"] > 10


@pytest.mark.slow
def test_rounds_with_constraints_agree() -> None:
    found = Counter[str]()
    for seed in range(examples(6, 40)):
        found.update(ConstraintRound(seed, 6).run())
    assert found["typed instances exact"] > 10
    assert found["typed documents refused"]
