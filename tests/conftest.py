"""Hypothesis profiles, where warehouses stand, and the one session of Spark.

`dev` explores; `ci` takes the same examples in every run.
"""

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadGroupScheduling

from support.paths import TESTS
from support.postgresql_server import MissingError, Server, postgresql

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("dev")

# Processes that tests start, workers of Spark among them, find the same modules as this one.
os.environ["PYTHONPATH"] = os.pathsep.join(
    str(Path(each).resolve())
    for each in (TESTS, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
)

CATALOGS = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The Spark session of this process."""
    from corollary.engines.spark.session import local

    session = local()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


class Scheduling(LoadGroupScheduling):
    """Lets one worker run all tests on Spark, so that there is one session.

    By the name of the file: xdist 3.8 writes groups into `_nodeid`, which pytest 9.2 does not read
    (pytest-dev/pytest-xdist#1386), so that marks are of no effect.
    """

    def _split_scope(self, nodeid: str) -> str:
        return (
            "spark" if "tests/spark/" in nodeid.partition("::")[0] else super()._split_scope(nodeid)
        )


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    """Group tests where `--dist loadgroup` asks for it."""
    return Scheduling(config, log) if config.getvalue("dist") == "loadgroup" else None


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
