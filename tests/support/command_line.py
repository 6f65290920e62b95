"""The command line under test: called in this process or in one of its own, and what it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from corollary.cli.main import group

COMMAND = (sys.executable, "-m", "support.processes.corollary_command")
OK, INPUT, USAGE, CONSTRAINT, CONFLICT, LIMIT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


def put(name: str, content: str | bytes) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def cli(*arguments: str, stdin: str = "", **options: Any) -> Result:
    return CliRunner().invoke(group, arguments, input=stdin, **options)


def real(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def tree(directory: str) -> dict[str, bytes | None]:
    """Everything below a directory: the content of files, None for directories."""
    below = sorted(Path(directory).rglob("*"))
    return {str(path): path.read_bytes() if path.is_file() else None for path in below}


def of_json(result: Result) -> Any:
    (line,) = result.stdout.splitlines()
    return json.loads(line)
