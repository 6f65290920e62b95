"""The example of `integrations/dbt-corollary`: a second build is a change, not a rebuild.

dbt is in an environment of its own, which `make test-dbt` makes; without it, these are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import psycopg
import pytest

import corollary
from corollary.database.access.principals import AccessRole
from support.paths import REPOSITORY
from support.serve.pg_endpoint import Endpoint, running_endpoint

DBT = REPOSITORY / "build" / "dbt" / "bin" / "dbt"
ADAPTER = REPOSITORY / "integrations" / "dbt-corollary"
START = """
import sys
import dbt.adapters, dbt.include
dbt.adapters.__path__.append(sys.argv[1] + "/dbt/adapters")
dbt.include.__path__.append(sys.argv[1] + "/dbt/include")
from dbt.cli.main import cli
cli(sys.argv[2:])
"""
"""Runs dbt with the adapter as it is in the repository."""

pytestmark = pytest.mark.skipif(not DBT.exists(), reason="`make test-dbt` installs dbt")


@dataclass
class DbtProject:
    """The example, against a server."""

    place: Path
    endpoint: Endpoint

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run dbt; return the exit status and what it says."""
        environment = {
            **os.environ,
            "COROLLARY_PG_PORT": str(self.endpoint.port),
            "COROLLARY_USER": "alice",
            "COROLLARY_TOKEN": self.endpoint.tokens["alice"],
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            "NO_COLOR": "1",
        }
        environment.pop("PYTHONPATH", None)
        command = [str(DBT.with_name("python")), "-c", START, str(ADAPTER / "src")]
        done = subprocess.run(
            [*command, "--no-use-colors", *arguments],
            cwd=self.place,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def build(self, *arguments: str) -> None:
        status, said = self.run("build", *arguments)
        assert status == 0, said
        assert "PASS=17 WARN=0 ERROR=0" in said

    def write(self, name: str, old: str, new: str) -> None:
        path = self.place / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def rows(self, query: str) -> list[Any]:
        with psycopg.connect(**self.endpoint.arguments(), autocommit=True) as connection:
            return connection.execute(query).fetchall()

    def commits(self) -> int:
        with corollary.open(self.place.parent / "wh", engine="local") as db:
            return db.commits

    def changes(self, since: int) -> dict[str, tuple[int, int]]:
        """Return how many rows relations have gained and lost after a commit."""
        found: dict[str, tuple[int, int]] = {}
        with corollary.open(self.place.parent / "wh", engine="local") as db:
            for name in ("raw_orders", "orders", "customers", "last_report"):
                feeds = [each.arrow() for each in db.feed(name, since=since)]
                signs = [each for feed in feeds for each in feed["_change_type"].to_pylist()]
                if signs:
                    found[name] = signs.count("insert"), signs.count("delete")
        return found


@pytest.fixture
def project(tmp_path: Path) -> Iterator[DbtProject]:
    shutil.copytree(ADAPTER / "example", tmp_path / "example")
    place = tmp_path / "wh"
    with corollary.open(place, engine="local") as db:
        db.load(text=".decl day(number: number)")
    with running_endpoint(place, {"alice": AccessRole.ADMIN}) as endpoint:
        yield DbtProject(tmp_path / "example", endpoint)


def test_a_second_build_is_a_change(project: DbtProject) -> None:
    project.build()
    assert project.rows("SELECT status, amount FROM last_report ORDER BY status") == [
        ("completed", 21),
        ("placed", 20),
        ("returned", 10),
        ("shipped", 25),
    ]
    built = project.commits()

    project.build()  # nothing has changed
    assert project.commits() == built

    project.write("seeds/raw_orders.csv", "2026-01-05,placed", "2026-01-06,shipped")
    project.build()
    assert project.changes(built) == {
        "raw_orders": (1, 1),
        "orders": (1, 1),
        "customers": (1, 1),
        "last_report": (1, 2),
    }
    assert project.commits() == built + 2  # the seed, the table

    project.write(
        "models/customers.sql", "c.last_name,\n    min", "c.last_name || '!' as ends, min"
    )
    status, said = project.run("run")
    assert status != 0
    assert "missing in contract" in said
    project.write("models/schema.yml", "last_name, data_type: text", "ends, data_type: text")
    project.build()
    assert project.rows("SELECT ends FROM customers WHERE customer_id = 2") == [("M.!",)]

    status, said = project.run("docs", "generate")
    assert status == 0, said
    catalog = json.loads((project.place / "target" / "catalog.json").read_text())
    kinds = {
        each["metadata"]["name"]: each["metadata"]["type"] for each in catalog["nodes"].values()
    }
    assert kinds["orders"] == "MATERIALIZED VIEW"
    assert kinds["stg_orders"] == "VIEW"
    assert kinds["last_report"] == kinds["raw_orders"] == "BASE TABLE"


def test_a_snapshot_keeps_the_versions_of_rows(project: DbtProject) -> None:
    snapshots = """snapshots:
  - name: by_status
    relation: ref('raw_orders')
    config: {unique_key: id, strategy: check, check_cols: [status], hard_deletes: invalidate}
  - name: by_date
    relation: ref('raw_orders')
    config: {unique_key: [id], strategy: timestamp, updated_at: order_date}
"""
    (project.place / "snapshots").mkdir()
    (project.place / "snapshots" / "orders.yml").write_text(snapshots)
    only = ("--select", "raw_orders", "by_status", "by_date")
    assert project.run("build", *only)[0] == 0
    built = project.commits()
    assert project.run("build", *only)[0] == 0
    assert project.commits() == built  # nothing has changed

    project.write("seeds/raw_orders.csv", "2,3,2026-01-02,completed", "2,3,2026-01-09,returned")
    project.write("seeds/raw_orders.csv", "5,3,2026-01-05,placed", "6,1,2026-02-01,placed")
    assert project.run("build", *only)[0] == 0
    assert project.commits() == built + 3  # the seed, each snapshot
    changed = "WHERE id IN (2, 5, 6) ORDER BY id, dbt_valid_from"
    ended = "dbt_valid_to IS NOT NULL"
    assert project.rows(f"SELECT id, status, {ended} FROM by_status {changed}") == [
        (2, "completed", True),
        (2, "returned", False),
        (5, "placed", True),
        (6, "placed", False),
    ]
    times = "dbt_valid_from, CAST(dbt_valid_to AS DATE)"
    assert project.rows(f"SELECT id, {times} FROM by_date {changed}") == [
        (2, date(2026, 1, 2), date(2026, 1, 9)),
        (2, date(2026, 1, 9), None),
        (5, date(2026, 1, 5), None),  # rows that are gone are ignored
        (6, date(2026, 2, 1), None),
    ]
    project.write("snapshots/orders.yml", "invalidate", "new_record")
    status, said = project.run("snapshot")
    assert status != 0
    assert "hard_deletes: invalidate" in said


def test_what_cannot_be_is_said(project: DbtProject) -> None:
    project.build()
    built = project.commits()
    project.write("seeds/raw_customers.csv", "2,Shawn", "two,Shawn")
    assert project.run("seed")[0] != 0
    assert project.commits() == built  # all or nothing
    project.write("seeds/raw_customers.csv", "two,Shawn", "2,Shawn")

    inc = project.place / "models" / "inc.sql"
    inc.write_text("{{ config(materialized='incremental') }}\nselect 1 as x\n")
    status, said = project.run("run", "--select", "inc")
    assert status != 0
    assert "materialized='materialized_view'" in said
    inc.unlink()

    project.write("models/schema.yml", "coupon_amount: 5", "coupon_amount: 6")
    status, said = project.run("test", "--select", "test_type:unit")
    assert status != 0
    assert "coupon_amount" in said
    project.write("models/schema.yml", "coupon_amount: 6", "coupon_amount: 5")

    # A column that a model below reads: another text is refused, and all are made anew.
    project.write("models/orders.sql", "o.order_date,", "o.order_date as placed_on,")
    project.write("models/customers.sql", "o.order_date", "o.placed_on")
    status, said = project.run("run")
    assert status != 0
    project.build("--full-refresh")
