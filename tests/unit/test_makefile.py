"""The Makefile installs nothing into an environment that is named."""

import subprocess
from pathlib import Path

from support.paths import TESTS


def commands(*words: str) -> list[str]:
    """Return the commands that `make` would run."""
    command = ["make", "--no-print-directory", "-n", *words]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_an_environment_that_is_named_is_used_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    place = f"VENV={tmp_path}"
    assert commands("fuzz", place) == [f"{tmp_path}/bin/python tests/fuzz.py "]
    assert commands("soak", place) == [f"{tmp_path}/bin/python tests/soak.py "]
    assert not any("install" in each for each in commands("crash", "test", "lint", place))
    made = commands("fuzz", f"VENV={tmp_path / 'new'}")
    assert any("pip install" in each for each in made)  # there is none: it is made
