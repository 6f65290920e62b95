"""Programs as generators write them: twice the size takes about twice the work, and limits hold."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corollary.core.engine import Limits
from corollary.errors import LimitError
from support.command_line import OK, real
from support.maintained_database import insert, opened


def long_body(size: int) -> str:
    """A rule of so many literals."""
    chain = ", ".join(f"e(x{at}, x{at + 1})" for at in range(size))
    return f".decl e(x: number, y: number)\n.decl p(x: number)\np(x0) :- {chain}."


def mutual(size: int) -> str:
    """So many relations, each of which reads the one before."""
    lines = [".decl e(x: number, y: number)", "r0(x) :- e(x, _)."]
    for at in range(size):
        lines += [f".decl r{at}(x: number)", f"r{(at + 1) % size}(x) :- r{at}(x)."]
    return "\n".join(lines)


def strata(size: int) -> str:
    """So many relations, one above the other."""
    lines = [".decl e(x: number, y: number)", ".decl r0(x: number)", "r0(x) :- e(x, _)."]
    for at in range(1, size):
        lines += [f".decl r{at}(x: number)", f"r{at}(x) :- r{at - 1}(x)."]
    return "\n".join(lines)


def many_rules(size: int) -> str:
    """A relation of so many rules."""
    rules = [f"p(x) :- e(x, y), y != {at}." for at in range(size)]
    return "\n".join([".decl e(x: number, y: number)", ".decl p(x: number)", *rules])


def count_calls(text: str) -> int:
    """Return how many functions are called for a program, an insertion and a second one."""
    calls = 0

    def count(_: Any, event: str, __: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        with opened(text, limits=Limits()) as db:
            insert(db, "e", [(1, 1)])
            insert(db, "e", [(1, 2)])
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.slow
@pytest.mark.matrix(3)
@pytest.mark.parametrize(
    ("make", "size"), [(long_body, 150), (mutual, 50), (strata, 50), (many_rules, 50)]
)
def test_the_work_grows_with_the_program(make: Callable[[int], str], size: int) -> None:
    """Of long bodies, those are meant that are too long to be planned for each literal."""
    one, two = count_calls(make(size)), count_calls(make(2 * size))
    assert two < 2.4 * one


def test_planning_counts_against_the_limit_of_seconds() -> None:
    with pytest.raises(LimitError, match=r"limit of 0.01 seconds, before the evaluation") as caught:
        opened(many_rules(300), limits=Limits(seconds=0.01))
    assert "--limit-seconds" in str(caught.value)


@pytest.mark.slow
def test_advice_counts_against_the_limit_of_seconds(tmp_path: Path) -> None:
    chain = ", ".join(f"e(x{at}, x{at + 1})" for at in range(200))
    program = tmp_path / "program.dl"
    text = (
        f".decl e(x: number, y: number)\n.decl p(x: number, y: number)\np(x0, x200) :- {chain}.\n"
    )
    program.write_text(text)
    done = real("advise", str(program), "--limit-seconds", "1")
    assert done.returncode == OK, done.stderr
    assert "the search ended at its limit" in done.stdout
