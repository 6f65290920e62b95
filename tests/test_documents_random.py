"""Random documents, queries and updates: the package agrees with the oracle.

`make fuzz` goes on with other seeds, and with more of them.
"""

import pytest

from document_instances import Round


@pytest.mark.parametrize("seed", range(12))
def test_rounds_agree(seed: int) -> None:
    found = Round(seed, 12).run()
    assert found["instances"] == 3 * 12
    assert found["futures"] == 2 * 12
