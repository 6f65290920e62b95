"""The entries of a Delta log as files: one per version, a JSON object (an *action*) on each line.

`deltalake` takes an empty or truncated entry for a version without changes, so code that has to
trust a log reads the entries itself.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LOG_DIRECTORY = "_delta_log"
"""The folder that makes another folder a Delta table."""
_ENTRY = re.compile(r"[0-9]{20}\.json")


def entry_path(log: Path, version: int) -> Path:
    """Return the file of a version."""
    return log / f"{version:020d}.json"


def list_versions(log: Path) -> list[int]:
    """Return the versions that have an entry, in order."""
    try:
        with os.scandir(log) as entries:  # a log may have thousands: pathlib would be slow
            return sorted(int(each.name[:20]) for each in entries if _ENTRY.fullmatch(each.name))
    except OSError:
        return []


def read_actions(path: Path) -> list[Mapping[str, Any]]:
    """Return the actions of an entry.

    Raises:
        ValueError: it is empty or truncated.
    """
    lines = path.read_bytes().splitlines()
    actions = [json.loads(line) for line in lines if line.strip()]
    if not actions or not all(isinstance(each, dict) for each in actions):
        raise ValueError("no actions")
    return actions
