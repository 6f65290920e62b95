"""Services in tests: a warehouse with a small program, and calls that tests wait for."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import corollary
from corollary.database.access.principals import OWNER, AccessRole, Principal
from corollary.serve.answers import Answer, ServiceError
from corollary.serve.processes.local_service import LocalService
from corollary.serve.requests import ApplyRequest, Request
from corollary.serve.service import ServiceLimits

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl reached(x: symbol, n: number) virtual
reached(x, n) :- edge(x, _), n = count : { path(x, _) }.
.decl stock(item: symbol, amount: number) key(item)
short(item) :- +stock(item, amount), amount < 0.
.abort short "no stock of {item}"
"""
READER = Principal("alice", AccessRole.READ)
WRITER = Principal("bob", AccessRole.WRITE)
Result = TypeVar("Result")


def make_warehouse(place: Path, program: str = PROGRAM) -> Path:
    """Make a warehouse with a program, of which `alice` may see paths."""
    with corollary.open(place, engine="local") as database:
        database.load(text=program)
        database.grant("alice", "path")
    return place


def line(op: str, relation: str, *row: Any) -> str:
    """Return a line of changes."""
    return json.dumps({"op": op, "relation": relation, "row": row})


def insert(relation: str, *row: Any, **options: Any) -> ApplyRequest:
    """Return a request that inserts a tuple."""
    return ApplyRequest(line("insert", relation, *row), **options)


def delete(relation: str, *row: Any, **options: Any) -> ApplyRequest:
    """Return a request that deletes a tuple."""
    return ApplyRequest(line("delete", relation, *row), **options)


def run_local(
    place: Path | None,
    test: Callable[[LocalService], Awaitable[Result]],
    limits: ServiceLimits | None = None,
    program: str | None = None,
) -> Result:
    """Run a test on a service in this process, and stop that afterwards."""

    def open_database() -> Any:
        database = corollary.open(place, engine="local")
        if program is not None:
            database.load(text=program)
        return database

    async def run() -> Result:
        service = await LocalService.open(open_database, limits)
        try:
            return await test(service)
        finally:
            await service.close()

    return asyncio.run(run())


async def ask_all(
    service: Any, requests: list[Request], who: Principal = OWNER
) -> list[Answer | ServiceError]:
    """Send requests at once; return answers and errors in their order."""
    calls = (service.call(who, each) for each in requests)
    found = await asyncio.gather(*calls, return_exceptions=True)
    for each in found:
        if not isinstance(each, Answer | ServiceError):
            raise each
    return list(found)  # type: ignore[arg-type]
