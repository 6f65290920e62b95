"""Takes away what published tables no longer need.

Files that no version refers to are left behind by a publication that was killed, and by versions
that have been superseded. The former go at once: the caller holds the table's lock, so nobody is
about to refer to them. The latter go after a while, as readers may still be at them.
"""

import shutil
import time
from pathlib import Path

from deltalake.exceptions import DeltaError

from corollary import fault
from corollary.warehouse.delta_entries import LOG, actions_in, entry_path, versions_in
from corollary.warehouse.publishing.table import Target

KEEP_SECONDS = 3600.0


def clean_directory(directory: Path, warehouse: str, keep_seconds: float) -> list[Path]:
    """Remove the files of a table that no reader can want; return them.

    A directory with a dot in its name is what is left of a table that came or went as a whole, and
    `….json#1` what `deltalake` leaves when it is killed. A table that cannot be read is left alone.
    """
    if "." in directory.name:
        shutil.rmtree(directory)
        return [directory]
    since = time.time() - keep_seconds
    try:
        wanted = _wanted(directory, warehouse, since)
    except (DeltaError, OSError, ValueError):
        return []
    removed = [
        *(path for path in directory.glob(f"{warehouse}-*") if path.name not in wanted),
        *(path for path in directory.glob(f"{LOG}/*.json#*") if path.stat().st_mtime < since),
    ]
    for path in sorted(removed):
        fault.hit("during_gc")
        path.unlink()
    return sorted(removed)


def _wanted(directory: Path, warehouse: str, since: float) -> set[str]:
    """Return the files of the newest version, and those that were removed since a time."""
    log = directory / LOG
    versions = versions_in(log)
    if not versions:
        return set()
    names = {Path(uri).name for uri in Target(directory, warehouse, "").open().file_uris()}
    for path in (entry_path(log, version) for version in versions):
        if path.stat().st_mtime >= since:
            names |= {each["remove"]["path"] for each in actions_in(path) if "remove" in each}
    return names
