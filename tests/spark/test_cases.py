"""The cases of `tests/cases` on Spark: the same files, the same messages.

Facts are in partitions, and steps are queries. A selection always runs, and a
sample of the others.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from corollary.cli.main import group
from support.cases.evaluation import FAILING, WORKING, feed, name_of
from support.cases.spark_evaluation import QUICK, QueryEngine, check
from support.selection import sampled

DEEP = {"recursion/chain_1000_generated"}
"""A thousand rounds of queries take a quarter of an hour, and show nothing that 300 do not."""

SHALLOW = [folder for folder in WORKING if name_of(folder) not in DEEP]

REFUSED = {"runtime_errors/error_with_witness", "runtime_errors/bad_pattern"}


def selected(folders: list[Path], quick: set[str]) -> list[Any]:
    """All folders; of those that are not in the selection, a sample runs."""
    return sampled(folders, 200, [folder for folder in folders if name_of(folder) in quick])


@pytest.mark.parametrize("folder", selected(SHALLOW, QUICK), ids=name_of)
def test_evaluation_writes_what_is_expected(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    feed(folder, monkeypatch)
    engine = QueryEngine(spark)
    check(folder, tmp_path, engine)
    engine.close()


@pytest.mark.parametrize("folder", selected(FAILING, REFUSED), ids=name_of)
def test_failing_runs_say_why_and_write_nothing(folder: Path, tmp_path: Path) -> None:
    """What is small is evaluated without a session, also by the engine of Spark."""
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
    assert names >= QUICK | DEEP | REFUSED
