"""Hypothesis profiles, the selection of tests, where warehouses are, the one session of Spark.

`dev` explores; `ci` takes the same examples in every run. `make test` and `make test-integration`
run a sample of each matrix (see `support.selection`), `--all` everything, `--shard 2/8` the second
of eight parts of it.
"""

import gc
import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from xdist.scheduler import LoadGroupScheduling

import support.functors  # noqa: F401 - registers the functors that cases apply
from corollary import console
from corollary.cli.main import GARBAGE_MIN_OBJECTS
from corollary.core.engine import BULK_VARIABLE
from corollary.warehouse.catalog.connections import _Sqlite
from support.figures import FIGURES
from support.paths import TESTS
from support.postgresql_server import MissingError, Server, postgresql
from support.processes.object_store_server import ObjectStoreServer
from support.processes.object_store_server import object_store_server as start_object_store
from support.selection import SEED, WHOLE, examples, is_in_shard, seed_of_run, selection

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("dev", PATIENT)
settings.load_profile("dev")

# Processes that tests start, workers of Spark among them, find the same modules as this one.
PATHS = [str(TESTS), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(each).resolve()) for each in PATHS)

INTEGRATION = (
    "tests/crash/",
    "tests/docs/",
    "tests/serve/postgres/",
    "tests/spark/",
    "tests/unit/test_bench",
    "tests/web/",
)
"""Folders of integration tests; elsewhere, a module or a test has the mark itself."""
SERVER = pytest.mark.matrix(5, group="postgresql")
OBJECTS = pytest.mark.matrix(8, group="objects")
CATALOGS = (
    "sqlite",
    pytest.param("postgresql", marks=[pytest.mark.integration, SERVER]),
    pytest.param("postgresql+s3", marks=[pytest.mark.integration, OBJECTS]),
)
FIGURE = "figure"
"""The name of the properties of a report that have what a test has counted."""
SECONDS = "seconds"
"""The name of the property that has the processor time of a test and of its processes."""
REMEMBERED = ("spark.ui.retainedJobs", "spark.ui.retainedStages")
"""How many jobs and stages Spark remembers: a thousand, if nobody says more."""
GROUPS = ("spark", "postgresql", "tests/web/")
"""Tests with one of these in their id run in one process: that of the session, server, browser."""


# Commands tell the seconds of long work; on a busy machine, short work may be long.
console.LONG_SECONDS = console.LOG_SECONDS = float("inf")


# -------------------------------------------------------------------------------------- selection


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose tests."""
    group = parser.getgroup("corollary")
    group.addoption("--all", action="store_true", help="run the whole matrix and the long tests")
    group.addoption("--shard", metavar="K/N", help="run the K-th of N parts of the tests")
    group.addoption("--seed", type=int, help="choose the sample by this number; 1 unless told")
    group.addoption(
        "--record-seconds",
        type=Path,
        metavar="FILE",
        help="write the processor time of each test, smoke tests left out, as JSON",
    )
    group.addoption(
        "--bulk",
        choices=("auto", "always", "never"),
        default="auto",
        help="which steps DuckDB computes, where a test does not say it",
    )


@pytest.hookimpl(tryfirst=True)  # before Hypothesis loads a profile
def pytest_configure(config: pytest.Config) -> None:
    """Tell this process, and those of xdist, what is chosen."""
    if config.option.seed is not None:
        os.environ[SEED] = str(config.option.seed)
    os.environ[SEED] = str(seed_of_run())
    if config.option.all:
        os.environ[WHOLE] = "1"
    number = examples(25, 100)
    settings.register_profile("ci", PATIENT, max_examples=number, derandomize=True, print_blob=True)
    if config.option.bulk != "auto":
        os.environ[BULK_VARIABLE] = config.option.bulk
    if config.getoption("--hypothesis-profile") == "ci":
        # Examples are made of constants in modules, too: those that tests before it have loaded.
        pytest.MonkeyPatch().setattr(providers, "_get_local_constants", providers.Constants)
    # Whoever starts a session first, a test, a command or an engine, says it for the process.
    remembered = " ".join(f"--conf {name}=1000000" for name in REMEMBERED)
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"{remembered} pyspark-shell")
    # Nobody pulls the plug here; crash tests count calls of processes, which do not see this.
    pytest.MonkeyPatch().setattr(os, "fsync", lambda _: None)
    unforced = (*_Sqlite.SETTINGS, "synchronous = OFF")
    pytest.MonkeyPatch().setattr(_Sqlite, "SETTINGS", unforced)
    # A shell starts jobs in the background with the signal ignored, and processes pass that on.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header(config: pytest.Config) -> str:
    """Say what is chosen, and how the choice is repeated."""
    shard = f", shard {config.option.shard}" if config.option.shard else ""
    return f"{_selection()}{shard}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Put what a test has counted, and taken, into its report, which other processes hand over."""
    FIGURES.clear()
    began = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        item.user_properties += [(FIGURE, each) for each in FIGURES.items()]
        item.user_properties.append((SECONDS, sum(os.times()[:4]) - began))


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int) -> None:
    """Say what was counted; and again what is chosen, below failures. Record the seconds."""
    figures: Counter[str] = Counter()
    seconds: dict[str, float] = {}
    for report in (each for found in terminalreporter.stats.values() for each in found):
        if getattr(report, "when", None) == "call":
            for name, value in report.user_properties:
                if name == FIGURE:
                    figures.update({value[0]: value[1]})
                elif name == SECONDS and "smoke" not in report.keywords:
                    seconds[report.nodeid] = round(value, 3)
    if (record := terminalreporter.config.option.record_seconds) is not None:
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps(seconds, indent=0), encoding="utf-8")
    if figures:
        told = ", ".join(f"{number:,} {name}" for name, number in sorted(figures.items()))
        is_well = exitstatus == pytest.ExitCode.OK
        terminalreporter.write_line(
            f"{told}: {'nothing lost, nothing done twice' if is_well else 'FAILED'}"
        )
    if exitstatus == pytest.ExitCode.TESTS_FAILED:
        terminalreporter.write_line(_selection())


def _selection() -> str:
    if os.environ.get(WHOLE):
        return "the whole matrix (--all)"
    return f"a sample of the matrix (--seed {os.environ[SEED]}); --all runs everything"


def pytest_collection() -> None:
    """Leave garbage alone while tests are collected: that makes many objects and no garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Do not look for garbage among the tests themselves, which takes a fifth of all time."""
    gc.freeze()
    gc.set_threshold(GARBAGE_MIN_OBJECTS)
    gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark integration tests, and those with a session of Spark; leave out what is not chosen.

    A test that is named by its id is run.
    """
    for item in items:
        if item.nodeid.startswith(INTEGRATION):
            item.add_marker("integration")
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
    is_whole = config.option.all or any("::" in each for each in config.args)
    selected = {*items} if is_whole else selection(items, seed_of_run())
    chosen = [
        item
        for item in items
        if item in selected and (not config.option.shard or is_in_shard(item, config.option.shard))
    ]
    if len(chosen) < len(items):
        config.hook.pytest_deselected(items=list({*items} - {*chosen}))
        items[:] = chosen


class Scheduling(LoadGroupScheduling):
    """Lets one worker run all tests on Spark, one all tests with a server, and one those of a file.

    By the ids of tests: xdist 3.8 writes groups into `_nodeid`, which pytest 9.2 does not read
    (pytest-dev/pytest-xdist#1386), so that marks are of no effect.
    """

    def _split_scope(self, nodeid: str) -> str:
        return next((each for each in GROUPS if each in nodeid), nodeid.partition("::")[0])

    def _assign_work_unit(self, node: Any) -> None:
        """Hand groups out first: a session or a server that is started last keeps one worker."""
        for group in reversed(GROUPS):
            if group in self.workqueue:
                self.workqueue.move_to_end(group, last=False)
        super()._assign_work_unit(node)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Forget a test that is done: xdist counts all that it knows of after every test."""
        nodeid = self.registered_collections[node][item_index]
        work, scope = self.assigned_work[node], self._split_scope(nodeid)
        del work[scope][nodeid]
        if not work[scope]:
            del work[scope]
        self._reschedule(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    """Group tests where `--dist loadgroup` asks for it."""
    return Scheduling(config, log) if config.getvalue("dist") == "loadgroup" else None


# --------------------------------------------------------------------------------------- fixtures


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The Spark session of this process, which remembers all of its jobs and stages."""
    from corollary.engines.spark.session import local_session

    session = local_session()
    said = session.sparkContext.getConf()
    assert all(said.contains(name) for name in REMEMBERED), "started with other settings"
    session.sparkContext.setLogLevel("OFF")
    session.conf.set("spark.sql.timeType.enabled", "true")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server; without one the tests that need it are skipped."""
    try:
        with postgresql() as found:
            yield found
    except MissingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def object_store_server() -> Iterator[ObjectStoreServer]:
    """An object store."""
    with start_object_store() as found:
        yield found


@pytest.fixture(params=CATALOGS)
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """A function that returns the place of a new warehouse, its catalog of each kind in turn."""
    numbers = count(1)
    if request.param == "sqlite":
        return lambda: str(tmp_path / f"warehouse{next(numbers)}")
    server = request.getfixturevalue("server")
    if request.param == "postgresql+s3":
        store = request.getfixturevalue("object_store_server")
        return lambda: str(server.place(store.place()))
    return lambda: str(server.place(tmp_path / f"warehouse{next(numbers)}"))


@pytest.fixture
def place(places: Callable[[], str]) -> str:
    """The place of a new warehouse."""
    return places()
