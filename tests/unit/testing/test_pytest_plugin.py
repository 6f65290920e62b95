"""The plugin of pytest, in sessions of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.command_line import put
from support.paths import REPOSITORY

PLUGIN = "corollary.testing.pytest_plugin"
NETWORK = """
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
CASES = """
cases:
  - {name: a path, given: {edge: [[a, b]]}, then: {rows: {path: [[a, b]]}}}
  - {name: no path, given: {edge: [[a, b]]}, then: {rows: {path: [[b, a]]}}}
  - {name: misspelt, given: {egde: [[a, b]]}, then: {}}
"""


def session(*arguments: str) -> tuple[int, str]:
    options = ("-q", "-p", "no:cacheprovider", "-p", PLUGIN, "-o", "addopts=")
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    # Where the package is installed, its entry point would register the plugin a second time.
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=alone)
    return found.returncode, found.stdout


def test_the_entry_point() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"corollary": PLUGIN}


def test_it_is_quick_to_import() -> None:
    heavy = "{'numpy', 'pyarrow', 'yaml'}"
    code = f"import sys, {PLUGIN}; print([*({heavy} & {{*sys.modules}})])"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.slow
def test_cases_are_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put("paths.dl", NETWORK)
    put("paths.test.yaml", CASES)
    put("other.yaml", "cases: []")
    put("wrong.test.yml", "case: []")
    status, said = session("--continue-on-collection-errors")
    assert status == 1
    assert '  rows of path:\n    missing     path("b", "a")\n' in said
    assert "error[C0916]: There is no relation `egde`." in said
    assert "  = did you mean `edge`?" in said
    assert "error[C1801]: A file of cases has no `case`." in said
    assert "Traceback" not in said
    assert "2 failed, 1 passed, 1 error in " in said
    status, said = session("paths.test.yaml::a path")
    assert (status, "1 passed" in said) == (0, True), said
