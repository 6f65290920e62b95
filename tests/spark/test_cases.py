"""The cases of `tests/cases` on Spark: the same files, the same messages.

A selection runs in `make test`, some of it with every result in files; the others are `long`.
"""

from __future__ import annotations

import io
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cases.test_evaluation import FAILING, WORKING, feed, name_of
from corollary.cli.main import group
from corollary.core.engine import Limits
from corollary.database.once import Places, run
from corollary.database.program import read_programs
from corollary.engines.spark.engine import SparkEngine
from corollary.warehouse.delimited import print_rows

pytestmark = pytest.mark.spark

QUICK = {
    "aggregates/all_five",
    "arithmetic/integers",
    "decimals/arithmetic",
    "negation/wildcard",
    "nullary/flags",
    "nulls/join",
    "recursion/non_linear",
    "strings/match_contains",
    "types/wide",
}
FILES = {"strings/escapes"}
"""With no result on the driver."""

DEEP = {"recursion/chain_1000_generated"}
"""A thousand rounds of files take a quarter of an hour, and show nothing that 300 do not."""

SHALLOW = [folder for folder in WORKING if name_of(folder) not in DEEP]

AMPLE = Limits(rounds=10_000, tuples=1_000_000, seconds=1200)
"""A round takes some tenths of a second here."""

REFUSED = {"runtime_errors/error_with_witness", "runtime_errors/bad_pattern"}


def selected(folders: list[Path], quick: set[str]) -> list[Any]:
    """All folders; those that are not in the selection are `long`."""
    return [
        pytest.param(folder, marks=() if name_of(folder) in quick else pytest.mark.long)
        for folder in folders
    ]


def check(folder: Path, directory: Path, engine: SparkEngine) -> None:
    """Evaluate a case and compare what it writes and prints."""
    program = read_programs([folder / "program.dl"])
    outcome = run(program, Places(folder / "facts", directory), AMPLE, engine=engine)
    printed = io.BytesIO()
    for directive, relation, table in outcome.printed:
        print_rows(table, printed, relation, directive)
    said = "".join(f"{name}\t{size}\n" for name, size in outcome.sizes.items()).encode()
    written = {file.name: file.read_bytes() for file in directory.iterdir()}
    expected = {file.name: file.read_bytes() for file in (folder / "expected").iterdir()}
    assert printed.getvalue() + said == expected.pop("stdout.txt", b"")
    assert written == expected


@pytest.mark.parametrize("folder", selected(WORKING, QUICK), ids=name_of)
def test_evaluation_writes_what_is_expected(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    feed(folder, monkeypatch)
    engine = SparkEngine(spark)
    check(folder, tmp_path, engine)
    engine.close()


@pytest.mark.parametrize("folder", selected(SHALLOW, FILES), ids=name_of)
def test_evaluation_in_files_writes_what_is_expected(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    feed(folder, monkeypatch)
    engine = SparkEngine(spark, small=0)
    check(folder, tmp_path, engine)
    engine.close()


@pytest.mark.parametrize("folder", selected(FAILING, REFUSED), ids=name_of)
def test_failing_runs_say_why_and_write_nothing(folder: Path, tmp_path: Path, spark: Any) -> None:
    status, *fragments = (folder / "expected" / "error.txt").read_text("utf-8").splitlines()
    command = folder / "command.txt"
    options = shlex.split(command.read_text("utf-8")) if command.exists() else []
    paths = [str(folder / "program.dl"), "-F", str(folder / "facts"), "-D", str(tmp_path)]
    result = CliRunner().invoke(group, ["run", *paths, "--engine", "spark", *options])
    assert f"exit {result.exit_code}" == status, result.output
    for fragment in fragments:
        assert fragment in result.stderr
    assert not result.stdout
    assert not list(tmp_path.iterdir())


def test_the_selections_are_there() -> None:
    names = {name_of(folder) for folder in (*WORKING, *FAILING)}
    assert names >= QUICK | FILES | DEEP | REFUSED
