"""Views with copies (`UNION ALL`) are views: for status, the page, SQL clients, the advisor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.advisor.consultation import consult
from corollary.cli.shell.shell import relation_lines
from corollary.core.arrow import to_python
from corollary.database.access.principals import AccessRole
from corollary.database.upkeep.status import status
from corollary.serve.http.application import application
from corollary.serve.http.settings import ServerSettings
from corollary.serve.postgres.catalog.database import CatalogDatabase
from corollary.serve.postgres.relations import VisibleRelations
from corollary.serve.processes.local_service import LocalService
from corollary.serve.tokens import TokenStore
from corollary.warehouse.warehouse_catalog import WarehouseCatalog
from corollary.web.routes import routes
from support.serve.asgi_client import AsgiClient, LoopThread

PROGRAM = """
CREATE TABLE t (k INT PRIMARY KEY, a INT);
CREATE TABLE u (a INT, b INT);
CREATE VIEW plain AS SELECT DISTINCT a FROM u;
CREATE MATERIALIZED VIEW both AS SELECT a FROM u UNION ALL SELECT a FROM t;
CREATE VIEW some AS SELECT a FROM both WHERE a > 1 AND a NOT IN (SELECT k FROM t);
CREATE VIEW tops AS SELECT k FROM t WHERE k NOT IN (SELECT a FROM t WHERE a IS NOT NULL);
"""
KINDS = {"t": "base", "u": "base", "plain": "virtual", "both": "derived"} | dict.fromkeys(
    ("some", "tops"), "virtual"
)
COPIES = {"u", "both", "some"}
TUPLES = {"t": 2, "u": 1, "plain": None, "both": 2, "some": None, "tops": None}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bags") / "w"
    with corollary.open(path, engine="local") as db:
        db.sql(PROGRAM)
        db.sql("INSERT INTO t VALUES (1, 2), (2, 5)")
        db.sql("INSERT INTO u VALUES (2, 3), (2, 3)")
    return path


@pytest.fixture(scope="module")
def client(place: Path) -> Iterator[AsgiClient]:
    loop = LoopThread()
    service = loop.run(LocalService.open(lambda: corollary.open(place, engine="local")))
    with closing(WarehouseCatalog.open(place, create=False)) as catalog:
        tokens = TokenStore(catalog.catalog)
        secret = tokens.add("carol", AccessRole.ADMIN)
        app = application(
            service, ServerSettings(warehouse_name="wh"), tokens, routes(service, "wh")
        )
        yield AsgiClient(app, loop, {"Authorization": f"Bearer {secret}"})
        loop.run(service.close())
        loop.close()


def relations(client: AsgiClient) -> dict[str, Any]:
    return {each["name"]: each for each in client.get("/v1/relations").json()["relations"]}


def test_relations(client: AsgiClient) -> None:
    found = relations(client)
    assert {name: each["kind"] for name, each in found.items()} == KINDS
    assert {name: each["tuples"] for name, each in found.items()} == TUPLES
    assert {name for name, each in found.items() if each["copies"]} == COPIES


def test_the_graph_has_their_arrows(client: AsgiClient) -> None:
    graph = client.get("/v1/graph").json()
    edges = {(each["from"], each["to"], each["kind"]) for each in graph["edges"]}
    assert edges == {
        ("u", "plain", "positive"),
        ("u", "both", "positive"),
        ("t", "both", "positive"),
        ("both", "some", "positive"),
        ("t", "some", "negative"),
        ("t", "tops", "negative"),
        ("t", "tops", "positive"),
    }
    floors = {each["name"]: each["floor"] for each in graph["nodes"]}
    assert floors == {"t": 0, "u": 0, "plain": 1, "both": 1, "some": 2, "tops": 1}


def test_status_log_and_shell(place: Path) -> None:
    with closing(WarehouseCatalog.open(place, create=False)) as catalog:
        found = {each.name: (str(each.kind), each.tuples) for each in status(catalog).relations}
    assert found == {name: (kind, TUPLES[name]) for name, kind in KINDS.items()}
    with corollary.open(place, engine="local") as db:
        assert [set(each.changes) for each in db.log(2)] == [{"u", "both"}, {"t", "both"}]
        shown = {line.split()[0]: line for line in relation_lines(db)}
        assert set(shown) == {"relation", *KINDS}
        assert "stored view, copies" in shown["both"]
        assert repr(db.relation("both")) == "<relation both(a: number?), derived, copies, 2 tuples>"
        assert len(db.relation("both")) == 4


def test_clients_of_postgresql_see_views(client: AsgiClient) -> None:
    visible = VisibleRelations.of_json({"relations": list(relations(client).values())})
    catalog = CatalogDatabase.create(visible, "wh", "carol")
    kinds = dict(to_python(catalog.run("SELECT relname, relkind FROM pg_class")))
    assert {name: kinds[name] for name in KINDS} == {
        name: {"base": "r", "derived": "m", "virtual": "v"}[kind] for name, kind in KINDS.items()
    }


def neighbours(page: str) -> str:
    text = page.partition('class="neighbours grey">')[2].partition("</p>")[0]
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def test_the_page_shows_rules_plan_and_neighbours(client: AsgiClient) -> None:
    page = client.get("/relations/both", params={"show": "rules"}).text
    assert "derived, stored, with copies" in page
    assert "2 tuples" in page
    assert "SELECT a FROM u UNION ALL SELECT a FROM t" in page
    assert neighbours(page) == "reads t , u ; read by some"
    assert neighbours(client.get("/relations/some").text) == "reads both , !t"
    assert neighbours(client.get("/relations/t").text) == "read by both , some , tops"
    assert "procedure both" in client.get("/relations/both", params={"show": "plan"}).text
    assert "derived, virtual, with copies" in client.get("/relations").text


def test_the_advisor_reads_them(place: Path) -> None:
    with corollary.open(place, engine="local") as db:
        found = consult(db, ["plain"])
    assert found.advice is not None
