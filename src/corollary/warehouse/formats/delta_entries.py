"""The entries of a Delta log as files: one per version, a JSON object (an *action*) on each line.

`deltalake` takes an empty or truncated entry for a version without changes, so code that has to
trust a log reads the entries itself.
"""

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.places import Place

LOG_DIRECTORY = "_delta_log"
"""The folder that makes another folder a Delta table."""
_ENTRY = re.compile(r"[0-9]{20}\.json")


def entry_path(log: Place, version: int) -> Place:
    """Return the file of a version."""
    return log / f"{version:020d}.json"


def list_versions(log: Place) -> list[int]:
    """Return the versions that have an entry, in order."""
    try:
        if isinstance(log, ObjectPath):
            names = [each.name for each in log.iterdir()]
            return sorted(int(each[:20]) for each in names if _ENTRY.fullmatch(each))
        with os.scandir(log) as entries:  # a log may have thousands: pathlib would be slow
            return sorted(int(each.name[:20]) for each in entries if _ENTRY.fullmatch(each.name))
    except OSError:
        return []


def read_actions(path: Place) -> list[Mapping[str, Any]]:
    """Return the actions of an entry.

    Raises:
        ValueError: it is empty or truncated.
    """
    lines = path.read_bytes().splitlines()
    actions = [json.loads(line) for line in lines if line.strip()]
    if not actions or not all(isinstance(each, dict) for each in actions):
        raise ValueError("no actions")
    return actions
