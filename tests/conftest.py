"""Hypothesis profiles, and where warehouses stand.

`dev` explores; `ci` takes the same examples in every run.
"""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from servers import MissingError, Server, postgresql

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("dev")

CATALOGS = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The Spark session of this process."""
    from corollary.engines.spark.session import local

    session = local()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let all tests on Spark run in one process, so that there is one session."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server; without one the tests that need it are skipped."""
    try:
        with postgresql() as found:
            yield found
    except MissingError as error:
        pytest.skip(str(error))


@pytest.fixture(params=CATALOGS)
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """A function that returns the place of a new warehouse, its catalog of each kind in turn."""
    numbers = count(1)
    if request.param == "sqlite":
        return lambda: str(tmp_path / f"warehouse{next(numbers)}")
    server = request.getfixturevalue("server")
    return lambda: str(server.place(tmp_path / f"warehouse{next(numbers)}"))


@pytest.fixture
def place(places: Callable[[], str]) -> str:
    """The place of a new warehouse."""
    return places()
