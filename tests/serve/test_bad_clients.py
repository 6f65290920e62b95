"""Whatever one client does, the server lives, and others are answered at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import corollary
from corollary.database.access.principals import AccessRole
from corollary.serve.tokens import TokenStore
from corollary.warehouse.warehouse_catalog import WarehouseCatalog
from support.bad_clients import HTTP_REQUESTS, PROGRAM, run_bad_client, slowest_answer
from support.selection import sampled
from support.serve.server_process import ServerProcess, server_process

pytestmark = pytest.mark.integration

PATIENCE_SECONDS = 30.0
"""Less than a second on a machine that does nothing else; the bad client may take minutes."""
LIMITS = ("--readers", "2", "--limit-seconds", "2", "--limit-memory", "300M")


class Clients:
    """A server, with the tokens of a bad client and of somebody else."""

    def __init__(self, server: ServerProcess, place: Path) -> None:
        self.server = server
        catalog = WarehouseCatalog.open(place, create=False)
        tokens = TokenStore(catalog.catalog)
        self.bad = tokens.add("bad", AccessRole.WRITE)
        self.good = tokens.add("good", AccessRole.READ)
        catalog.close()


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    place = tmp_path_factory.mktemp("bad") / "wh"
    with corollary.open(place, engine="local") as database:
        database.load(text=PROGRAM)
        database.grant("good", "edge")
        with database.transaction() as transaction:
            transaction.insert("edge", [(at, (at * 7 + 1) % 3_000) for at in range(3_000)])
    with server_process(place, *LIMITS) as server:
        made = Clients(server, place)
        slowest_answer(server.url, made.good, lambda: None)  # it is warm now
        yield made


@pytest.mark.parametrize("name", sampled(HTTP_REQUESTS, 6))
def test_others_are_answered(clients: Clients, name: str) -> None:
    url = clients.server.url
    statuses: list[int] = []

    def misbehave() -> None:
        statuses.extend(run_bad_client(url, clients.bad, HTTP_REQUESTS[name]))

    slowest = slowest_answer(url, clients.good, misbehave)
    assert max(slowest.values()) < PATIENCE_SECONDS, slowest
    assert set(statuses) <= {200, 400, 413, 422, 503}, clients.server.log
    assert "Traceback" not in clients.server.log, clients.server.log
