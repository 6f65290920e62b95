"""Clients that ask for too much, and a bystander who has to be answered meanwhile."""

from __future__ import annotations

import http.client
import json
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

GIVE_UP_SECONDS = 120.0
MESSAGE_MAX_BYTES = 16 << 20
"""The size of a request that a server accepts by default."""
PROGRAM = """
.decl edge(x: number, y: number)
.decl name(s: symbol)
name("ab"). name("cd").
.decl far(x: number, y: number) virtual
far(x, y) :- edge(x, y).
far(x, z) :- far(x, y), edge(y, z).
"""
"""What the warehouse has that bad clients ask; `edge` should have some thousand tuples."""


# --- what they ask ------------------------------------------------------------------------------


def _listed(text: str, separator: str, count: int) -> str:
    return separator.join([text] * count)


def _filled(start: str, text: str, end: str) -> str:
    """Return a text as long as a message may be."""
    room = MESSAGE_MAX_BYTES - len(start) - len(end) - 2_000
    return start + text * (room // len(text)) + end


GROWING = (
    "WITH RECURSIVE t(s, n) AS (SELECT 'abcdefgh', 1 UNION ALL SELECT s || s, n + 1 FROM t "
    "WHERE n < 60) SELECT max(length(s)) FROM t"
)
PRODUCT = f"SELECT count(*) FROM {', '.join(f'edge e{at}' for at in range(5))}"

SQL_TEXTS: dict[str, Callable[[], str]] = {
    "in": lambda: f"SELECT x FROM edge WHERE x IN ({', '.join(map(str, range(100_000)))})",
    "in of a message": lambda: _filled("SELECT x FROM edge WHERE x IN (", "1,", "1)"),
    "values": lambda: f"SELECT max(a) FROM (VALUES {_listed('(1, 2)', ',', 50_000)}) t(a, b)",
    "union": lambda: _listed("SELECT x FROM edge", " UNION ALL ", 3_000),
    "long union": lambda: _listed("SELECT 1", " UNION ALL ", 100_000),
    "sum": lambda: f"SELECT {_listed('x', '+', 100_000)} FROM edge",
    "brackets": lambda: f"SELECT {'(' * 1_000_000}1{')' * 1_000_000}",
    "columns": lambda: f"SELECT {_listed('x + 1', ', ', 50_000)} FROM edge",
    "product": lambda: PRODUCT,
    "growing text": lambda: GROWING,
    "quotes": lambda: _filled("SELECT ", "'a' ", ""),
}
"""Questions in SQL; HTTP and the PostgreSQL port have to bear all of them."""

GOALS: dict[str, Callable[[], str]] = {
    "alternatives": lambda: _listed("edge(1, y)", " ; ", 20_000),
    "words": lambda: _filled("edge(x, y), x = 1", ", x != 1", ""),
    "closure": lambda: "far(x, y)",
}

CHANGES: dict[str, Callable[[], bytes]] = {
    "rows": lambda: _filled("", '{"op": "insert", "relation": "edge", "row": [1]}\n', "").encode(),
    "list of rows": lambda: _filled('{"changes": [[]', ",[]", "]}").encode(),
    "brackets": lambda: b"[" * MESSAGE_MAX_BYTES,
}


@dataclass(frozen=True)
class BadRequest:
    """What a bad client sends to a server."""

    path: str
    body: Callable[[], bytes]
    copies: int = 1


def _as_json(field: str, text: Callable[[], str]) -> Callable[[], bytes]:
    return lambda: json.dumps({field: text()}).encode()


def _parameters() -> bytes:
    fields = {f"p{at}": "x" * 100 for at in range(120_000)}
    return json.dumps({"sql": "SELECT 1", "parameters": fields}).encode()


HTTP_REQUESTS: dict[str, BadRequest] = {
    **{
        f"sql: {name}": BadRequest("/v1/sql", _as_json("sql", text))
        for name, text in SQL_TEXTS.items()
    },
    **{
        f"goal: {name}": BadRequest("/v1/query", _as_json("goal", text))
        for name, text in GOALS.items()
    },
    **{f"apply: {name}": BadRequest("/v1/apply", body) for name, body in CHANGES.items()},
    "sql: parameters": BadRequest("/v1/sql", _parameters),
    "sql: values": BadRequest("/v1/sql", lambda: _filled('{"sql": [0', ",0", "]}").encode()),
    "check: facts": BadRequest("/v1/check", _as_json("program", lambda: _filled("", "p(1). ", ""))),
    "products at once": BadRequest("/v1/sql", _as_json("sql", SQL_TEXTS["product"]), 4),
}


# --- over the PostgreSQL port --------------------------------------------------------------------


def message(kind: bytes, body: bytes = b"") -> bytes:
    """Return a message of PostgreSQL's protocol."""
    return kind + struct.pack("!I", len(body) + 4) + body


POSTGRES_STATEMENTS = {
    "values": f"SELECT x FROM path WHERE x IN ({'1,' * 100_000} 1)",
    "values in the catalog": f"SELECT 1 WHERE 1 IN ({'1,' * 49_000} 1)",
    "rows": f"INSERT INTO path VALUES {'(1, 2),' * 19_000} (1, 2)",
    "arrays in arrays": f"SELECT {'ARRAY[' * 40}1{']' * 40}",
    "parentheses": f"SELECT {'(' * 500_000}",
    "indices": f"SELECT x{'[1]' * 20_000} FROM path",
    "comments": f"SELECT {'/*' * 500_000}",
    "spaces": f"FETCH{' ' * 1_000_000})",
    "a name": f"RELEASE {'a' * 1_000_000}!",
    "16 million bytes": f"SELECT '{'a' * 16_000_000}'",
    "a long series": "SELECT count(*) FROM generate_series(1, 100000000000)",
    "a long text": "SELECT length(repeat('x', 2000000000))",
    "many rows": "SELECT * FROM generate_series(1, 100000000000)",
}
"""Statements of a client of PostgreSQL; none of them is longer than a message may be."""

_LIST = b"{" + b"1," * 7_000_000 + b"1}"
POSTGRES_MESSAGES = {
    **{name: message(b"Q", text.encode() + b"\0") for name, text in POSTGRES_STATEMENTS.items()},
    "a list of 14 million bytes": b"".join(
        (
            message(b"P", b"\0SELECT x FROM path WHERE x = ANY($1)\0\0\0"),
            message(b"B", b"\0\0\0\0\0\1" + struct.pack("!I", len(_LIST)) + _LIST + b"\0\0"),
            message(b"S"),
        )
    ),
    "a million messages": message(b"C", b"S\0") * 1_000_000,
    "a million answers": message(b"S") * 1_000_000,
}
"""The same, and what else may come over a connection."""


# --- who asks -----------------------------------------------------------------------------------


def send(url: str, token: str, path: str, body: bytes | None = None) -> int:
    """Send a request, and read its answer; return the status, 0 if there is none."""
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url + path, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=GIVE_UP_SECONDS) as found:
            found.read()
            return int(found.status)
    except urllib.error.HTTPError as error:
        error.read()
        return error.code
    except (OSError, http.client.HTTPException):  # the server has ended the connection
        return 0


def run_bad_client(url: str, token: str, bad: BadRequest) -> list[int]:
    """Send a bad request, as often at once as it says; return the statuses."""
    body = bad.body()
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(send(url, token, bad.path, body)))
        for _ in range(bad.copies)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return found


def slowest_answer(
    url: str, token: str, work: Callable[[], Any], goal: str = "edge(1, y)"
) -> Mapping[str, float]:
    """Let something bad be done; return the longest times of others' requests meanwhile.

    They ask whether the server lives, and look something up. Both have to be answered.
    """
    thread = threading.Thread(target=work)
    slowest = {"/healthz": 0.0, "/v1/query": 0.0}
    body = json.dumps({"goal": goal}).encode()
    thread.start()
    while True:
        is_over = not thread.is_alive()
        for path, content in (("/healthz", None), ("/v1/query", body)):
            began = time.monotonic()
            status = send(url, token, path, content)
            assert status == 200, (path, status)
            slowest[path] = max(slowest[path], time.monotonic() - began)
        if is_over:
            return slowest
        time.sleep(0.01)
