"""psql as a client: its commands about relations, and what it shows."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.serve.pg_endpoint import Endpoint

PSQL = shutil.which("psql")
pytestmark = pytest.mark.skipif(PSQL is None, reason="there is no psql here")


def psql(endpoint: Endpoint, *commands: str, user: str = "alice") -> str:
    """Return what psql shows, without borders."""
    assert PSQL is not None
    arguments = endpoint.arguments(user)
    environment = {**os.environ, "PGPASSWORD": arguments["password"], "PSQLRC": os.devnull}
    listed = [part for command in commands for part in ("-c", command)]
    address = ["-h", "127.0.0.1", "-p", str(endpoint.port), "-U", user, "-d", "wh"]
    run = subprocess.run(
        [PSQL, "-X", "-A", "-v", "VERBOSITY=verbose", *address, *listed],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return run.stdout + run.stderr


def test_lists(endpoint: Endpoint) -> None:
    shown = psql(endpoint, r"\d", r"\dt", r"\dv", r"\l", r"\dn", r"\du", r"\df", r"\di")
    assert "ERROR" not in shown, shown
    for line in (
        "public|edge|table|alice",
        "public|path|materialized view|alice",
        "public|adult|view|alice",
        "public|person_pkey|index|alice|person",
        "wh|alice|UTF8|C|C||libc|",
    ):
        assert line in shown.splitlines()


def test_description_of_a_relation(endpoint: Endpoint) -> None:
    shown = psql(endpoint, r"\d person", r"\d+ sample", r"\d path", r"\d+ path")
    assert "ERROR" not in shown, shown
    lines = shown.splitlines()
    assert "id|bigint||not null|" in lines
    assert "born|date|||" in lines
    assert any(each.startswith("m|numeric(12,2)|") for each in lines)
    assert any(each.startswith("t|timestamp with time zone|") for each in lines)
    assert '    "person_pkey" PRIMARY KEY, btree (id)' in lines


def test_definitions_of_views(endpoint: Endpoint) -> None:
    made = psql(
        endpoint,
        "CREATE VIEW minors AS SELECT name FROM person WHERE born > '2008-01-01'",
        "CREATE MATERIALIZED VIEW names AS SELECT DISTINCT name FROM person",
        r"\d+ minors",
        "SELECT definition FROM pg_matviews WHERE matviewname = 'names'",
        "SELECT pg_get_viewdef('path'::regclass)",
    )
    views = ("DROP VIEW minors", "DROP MATERIALIZED VIEW names")
    hidden = psql(endpoint, "SELECT count(*) FROM pg_views", user="reader")
    assert "DROP VIEW" in psql(endpoint, *views)
    assert "SELECT `name` AS" not in hidden
    assert "View definition:" in made
    assert "FROM `person` WHERE `born` >" in made
    assert "SELECT DISTINCT `name` FROM `person`;" in made
    assert "-- `path` is defined by the rules of the warehouse" in made


def test_statements_and_errors(endpoint: Endpoint) -> None:
    shown = psql(
        endpoint,
        "INSERT INTO scratch VALUES (11), (12)",
        "SELECT * FROM scratch ORDER BY n",
        "DELETE FROM scratch",
        "INSERT INTO scratch VALUES (-1)",
        "SELECT * FROM path WHERE x = 'a'",
    )
    assert shown.splitlines()[:8] == [
        *("INSERT 0 2", "n", "11", "12", "(2 rows)", "DELETE 2", "x|y", "a|b")
    ]
    assert "ERROR:  23514: The constraint `negative` forbids" in shown


def test_copy_and_variables(endpoint: Endpoint) -> None:
    shown = psql(endpoint, r"\copy path to stdout csv header", r"\set FETCH_COUNT 2")
    assert shown.splitlines() == ["x,y", "a,b", "a,c", "b,c"]


def test_copy_of_a_file(endpoint: Endpoint, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text('id,name,born\n7,"a,b",2001-02-03\n8,,\n')
    shown = psql(
        endpoint,
        rf"\copy person from '{file}' csv header",
        "DELETE FROM person WHERE id > 2 RETURNING *",
    )
    assert "ERROR:  23502: Line 3 of the COPY to `person` has null" in shown
    assert "(0 rows)" in shown
    file.write_text("7\tEve\t2001-02-03\n")
    shown = psql(
        endpoint, rf"\copy person from '{file}'", "DELETE FROM person WHERE id > 2 RETURNING *"
    )
    assert shown.splitlines() == [
        "COPY 1",
        "id|name|born",
        "7|Eve|2001-02-03",
        "(1 row)",
        "DELETE 1",
    ]


def test_script_in_a_transaction(endpoint: Endpoint) -> None:
    shown = psql(endpoint, "BEGIN", "INSERT INTO scratch VALUES (1)", "ROLLBACK", "TABLE scratch")
    assert shown.splitlines() == ["BEGIN", "INSERT 0 1", "ROLLBACK", "n", "(0 rows)"]


def test_reader_finds_only_its_grants(endpoint: Endpoint) -> None:
    shown = psql(endpoint, r"\d", "SELECT * FROM edge", user="reader")
    assert "public|path|materialized view|reader" in shown
    assert "edge|" not in shown
    assert "42501" in shown
