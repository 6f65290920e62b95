"""The versions of a partitioned stratum: bases that tasks have written, and a log of changes since.

The driver makes a version when it commits, and only then: until then nothing references the files
that the tasks of a job have written. Files that no version needs any more are removed, unless a
handle may still read them.
"""

import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from weakref import WeakKeyDictionary

import pyarrow as pa

from corollary.data_class import dataclass
from corollary.engines.spark.remote import RelationDeltas
from corollary.engines.spark.strata.messages import (
    PartitionBase,
    PartitionLogEntry,
    write_pickle,
)

LOG_MAX_ENTRIES = 64
"""The next job writes new bases when the log has so many entries…"""

LOG_MAX_TUPLES = 1 << 17
"""…or more tuples than this and than one in `LOG_DIVISOR` of all that there are."""

LOG_DIVISOR = 4


def write_base(root: Path, prefix: str, files: Mapping[str, pa.Buffer]) -> Path:
    """Write the files of an index whose names begin with a prefix to a new directory."""
    directory = root / f"{prefix}restored"
    directory.mkdir()
    for name, data in files.items():
        if name.startswith(prefix):
            (directory / name.removeprefix(prefix)).write_bytes(data)
    return directory


@dataclass(slots=True)
class VersionLog:
    """The files of all versions that are still needed.

    Attributes:
        root: a directory that the driver and all tasks see.
        bases: of each partition.
        version: the last one.
        entries: since the oldest base.
    """

    root: Path
    bases: list[PartitionBase]
    version: int = 0
    entries: list[PartitionLogEntry] = field(default_factory=list)
    _tuples: int = 0
    _in_use: "WeakKeyDictionary[object, set[str]]" = field(default_factory=WeakKeyDictionary)

    def append(self, changes: RelationDeltas, own: Mapping[int, str] | None = None) -> None:
        """Make a version; `own` are the files of changes of partitioned relations."""
        self.version += 1
        common = write_pickle(dict(changes), self.root) if changes else None
        self.entries.append(PartitionLogEntry(self.version, common, own or {}))
        for each in changes.values():
            self._tuples += each.added.num_rows
            self._tuples += 0 if each.removed is None else each.removed.num_rows

    def is_long(self, total: int) -> bool:
        """Whether new bases should be written for relations with `total` tuples."""
        most = max(LOG_MAX_TUPLES, total // LOG_DIVISOR)
        is_full = len(self.entries) >= LOG_MAX_ENTRIES or self._tuples > most
        return is_full and self.version > 0

    def rebase(self, directories: Mapping[int, str | None]) -> None:
        """Let partitions start from new bases of the last version."""
        replaced = {self.bases[partition].directory for partition in directories}
        for partition, directory in directories.items():
            self.bases[partition] = PartitionBase(self.version, directory)
        # An entry is needed as long as the base of any partition is older.
        if all(each.version == self.version for each in self.bases):
            for entry in self.entries:
                self.discard(entry.files)
            self.entries.clear()
            self._tuples = 0
        self.discard(replaced)

    def use(self, handle: object, files: set[str]) -> None:
        """Keep files as long as a handle is alive."""
        self._in_use[handle] = files

    def discard(self, paths: Iterable[object]) -> None:
        """Remove those of the files and directories that no handle uses; others are no paths."""
        used = set[str]().union(*self._in_use.values())
        for each in {each for each in paths if isinstance(each, str)} - used:
            path = Path(each)
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def sweep(self, job: str, referenced: Collection[str]) -> None:
        """Remove what the tasks of a job have written, except what their replies reference.

        A task that was lost, or ran twice, may have left more.
        """
        written = {str(each) for each in self.root.glob(f"*-{job}-*")}
        self.discard(written.difference(referenced))
