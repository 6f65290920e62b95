"""What `make test-wheel` does in an environment that has the wheel and what it needs, and no more.

The interpreter of that environment runs this file, outside of the repository: `python wheel.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import distributions, requires
from pathlib import Path

EXTRAS = {
    ("serve", "net/warehouse"): 'pip install "corollary[serve]"',
    ("test", "net/network.test.yaml"): "pip install 'corollary[testing]'",
}
"""Commands that need more, and what they say then."""


def corollary(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command that the wheel has installed."""
    program = Path(sys.executable).with_name("corollary")
    command = [str(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, input=given, check=False)


def done(*arguments: str, given: str = "") -> str:
    """Run a command; return what it has printed."""
    found = corollary(*arguments, given=given)
    assert found.returncode == 0, (arguments, found.stderr)
    return found.stdout


def main() -> None:
    """Work with a warehouse, without Spark, a server and what other extras have."""
    names = {each.metadata["Name"].lower() for each in distributions()}
    assert not names & {"pyspark", "uvicorn", "pyyaml", "psycopg", "obstore", "pandas"}, names
    assert any("pyspark" in each for each in requires("corollary") or [])
    os.chdir(tempfile.mkdtemp())
    done("init", "net", "--template", "network")
    os.chdir("net")
    done("run", "--engine", "local", "-q")
    os.chdir("..")
    line = {"op": "insert", "relation": "cable", "row": ["x1", "x2"]}
    changed = done("apply", "net/warehouse", "--changes", "-", given=json.dumps(line))
    assert "commit 2" in changed, changed
    assert done("query", "net/warehouse", 'link("x1", y)').split() == ["y", "x2"]
    assert "sound" in done("verify", "net/warehouse")
    assert "all well" in done("doctor", "net/warehouse")
    assert "cable." in done("show", "net/network.dl", "--as", "lineage")
    for command, cure in EXTRAS.items():
        found = corollary(*command)
        assert found.returncode == 1, command
        assert cure in found.stderr, found.stderr
        assert "Traceback" not in found.stderr
    print(f"the wheel works with {len(names)} packages, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
