"""A short run of what `make fuzz` does with the description of the interface."""

from __future__ import annotations

import pytest

from support.serve.http_fuzz import fuzzed_server, send_requests


@pytest.mark.slow
def test_answers_are_as_described() -> None:
    with fuzzed_server() as server:
        found = send_requests(server, 6, 0)
    assert found["200"] > 20
    assert found["400"] > 20
    assert found["requests"] > 100
