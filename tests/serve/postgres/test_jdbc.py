"""The JDBC driver of PostgreSQL, as DBeaver and other tools use it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from corollary.database.access.principals import AccessRole
from support.serve.pg_endpoint import Endpoint, running_endpoint

JAVA = shutil.which("javac") and shutil.which("java")
DRIVER = Path("/usr/share/java/postgresql.jar")
PROGRAM = Path(__file__).parents[2] / "support/serve/jdbc/DriverCheck.java"
pytestmark = [
    pytest.mark.skipif(JAVA is None, reason="there is no Java compiler here"),
    pytest.mark.skipif(not DRIVER.exists(), reason="libpostgresql-jdbc-java is not installed"),
]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the driver has found out and done."""
    import corollary

    place = tmp_path_factory.mktemp("jdbc") / "wh"
    with corollary.open(place, engine="local") as db:
        db.load(text=".decl edge(x: symbol, y: symbol)")
    with running_endpoint(place, {"alice": AccessRole.ADMIN}) as endpoint:
        return _run(endpoint)


def _run(endpoint: Endpoint) -> list[str]:
    address = f"jdbc:postgresql://127.0.0.1:{endpoint.port}/wh"
    password = endpoint.arguments()["password"]
    run = subprocess.run(
        [str(JAVA), "-cp", str(DRIVER), str(PROGRAM), address, "alice", password],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_metadata(printed: list[str]) -> None:
    reference = "null|public|customer|id|null|public|orders|customer|1|3|3|orders_customer_fkey"
    for line in (
        "tables|null|public|totals|MATERIALIZED VIEW|null|||||",
        "tables|null|public|orders|TABLE|null|||||",
        "tables|null|public|big|VIEW|null|||||",
        "primary|null|public|orders|id|1|orders_pkey",
        f"imported|{reference}|customer_pkey|7",
        f"exported|{reference}|customer_pkey|7",
        f"cross|{reference}|customer_pkey|7",
        "schemas|public|null",
        "catalogs|wh",
        "privileges|null|public|orders|alice|alice|SELECT|YES",
        "limits|6332",
    ):
        assert line in printed
    columns = [line.split("|") for line in printed if line.startswith("columns|")]
    assert [(each[4], each[6], each[11]) for each in columns] == [
        ("id", "int8", "0"),
        ("customer", "int8", "1"),
        ("amount", "numeric", "1"),
        ("ok", "bool", "1"),
        ("f", "float8", "1"),
        ("at", "timestamptz", "1"),
        ("b", "bytea", "1"),
        ("t", "time", "1"),
    ]
    assert not [line for line in printed if line.startswith(("functions|", "procedures|"))]


def test_statements(printed: list[str]) -> None:
    for line in (
        "batch|20",
        "typed|1",
        "nulls|1",
        r"orders|1|1|12.50|t|1.5|2024-05-06 05:08:09+00|\x0001ff|10:11:12",
        "orders|2|null|null|null|null|null|null|01:02:03",
        "found|1",
        "keys|100",
        "upserted|3",
        "fetched|23",
        "state|42P01",
        "after savepoint|1",
        "after rollback|0",
        "isolation|8",
        "snapshot|2",
        "refused|0A000",
        "temporary|n1",
        "temporary|n2",
        "warning|2 rows have gone with `orders`; earlier commits keep them.",
    ):
        assert line in printed
