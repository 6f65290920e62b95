"""Cures that are applied: what a note says to do is done, and the command or the call succeeds.

Cures of programs are tried in `tests/cases/test_cures.py`, the others are in `tests/support/cures`.
A new code gets its cure there, or a line with the reason in `untried_cures.txt`;
`COROLLARY_ACCEPT=1` writes its codes anew.
"""

import os
import shlex
import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.errors import CorollaryError, InputError
from support.command_line import OK, cli, put
from support.cures import FILES, WAREHOUSE, Cure, calls, commands, documents, intake, upkeep
from support.diagnostic_codes import codes_in

EVERY_FILE = {**FILES, **intake.FILES, **upkeep.FILES, **documents.FILES}
CURES = [*commands.CURES, *intake.CURES, *upkeep.CURES, *documents.CURES]


def run(command: str) -> tuple[int, str]:
    result = cli(*shlex.split(command))
    return result.exit_code, result.stdout + result.stderr


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with all files, and the warehouse that most commands are about."""
    folder = tmp_path_factory.mktemp("template")
    with chdir(folder):
        for name, text in EVERY_FILE.items():
            put(name, text)
        for command in WAREHOUSE:
            status, said = run(command)
            assert status == OK, said
    return folder


@pytest.mark.parametrize("cure", CURES, ids=lambda cure: f"{cure.code}-{cure.note[:16]}")
def test_cures(cure: Cure, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    needs_warehouse = " wh" in f"{cure.command} {cure.helps}"
    without = None if needs_warehouse else shutil.ignore_patterns("wh")
    shutil.copytree(template, tmp_path, ignore=without, dirs_exist_ok=True)
    for command in cure.before:
        status, said = run(command)
        assert status == OK, said
    status, said = run(cure.command)
    assert (status == OK) is cure.is_warning, said
    assert f"[{cure.code}]" in said
    note = "\n".join(line for line in said.splitlines() if line.startswith("  = "))
    assert cure.note in note, said
    for name, text in cure.mended.items():
        if text is None:
            Path(name).unlink()
        else:
            put(name, text)
    for command in (cure.helps or cure.command).split(" && "):
        status, said = run(command)
        assert status == OK, said
        assert cure.code not in said


@pytest.mark.parametrize("call", calls.CALLS, ids=lambda call: f"{call.code}-{call.note[:16]}")
def test_cures_in_python(call: calls.Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put("p.dl", calls.PROGRAM)
    with corollary.open("w", engine="local") as db:
        db.load(text=calls.PROGRAM)
        with db.transaction() as tx:
            tx.insert("e", [(1, 2)])
        names: dict[str, Any] = {"db": db, "tx": tx, "corollary": corollary}
        with pytest.raises(CorollaryError) as raised:
            exec(call.wrong, names)
        assert isinstance(raised.value, InputError)
        (found,) = raised.value.diagnostics
        assert found.code == call.code
        assert call.note in (found.note or "")
        exec(call.right, names)


UNTRIED = Path(__file__).with_name("untried_cures.txt")
"""The codes of data, databases, warehouses, alerts, advice and documents whose cures are not tried
here, each with the reason."""


def test_codes_whose_cures_are_not_tried() -> None:
    tried = {each.code for each in (*CURES, *calls.CALLS)}
    left = codes_in(".") - codes_in("frontends", "analysis") - tried
    lines = [line.partition(" ") for line in UNTRIED.read_text("utf-8").splitlines()]
    reasons = {code: reason for code, _, reason in lines}
    if os.environ.get("COROLLARY_ACCEPT"):
        every = [f"{code} {reasons.get(code, '')}".strip() for code in sorted(left)]
        UNTRIED.write_text("\n".join(every) + "\n", "utf-8")
    assert left == set(reasons)
    assert [code for code, reason in reasons.items() if not reason] == []
