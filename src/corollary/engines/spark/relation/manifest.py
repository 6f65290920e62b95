"""The files of partitioned relations as part of an index: named in it, and neither read nor copied.

A file of the partition `base` is called `base~file` there; that of a change, `change~`. The
*manifest* says what they are, by difference, so that an index costs what has changed:

    manifest-ID~       all relations, as they were once; the indexes since name the same file
    partitions.json    the name of that file, and by relation the partitions that are others now
"""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from corollary.core.engine import PARTITION_SEPARATOR, FileOrigin, IndexPlaces
from corollary.core.program import Relation
from corollary.engines.spark.relation import shared_files
from corollary.engines.spark.relation.files import PartitionedFiles
from corollary.engines.spark.relation.open_partition import new_name
from corollary.errors import WarehouseError

MANIFEST = "partitions.json"
"""The file of an index that describes partitioned relations."""

REWRITE_DIVISOR = 4
"""When one of this many partitions is another, all relations are described anew."""


class Manifest:
    """What the last index says of partitioned relations.

    Attributes:
        base: the file below the root that describes all of them, None if there is none.
    """

    def __init__(self) -> None:
        self.base: str | None = None
        self._checksum = ""
        self._described: dict[str, PartitionedFiles] = {}
        """The relations that the base describes."""
        self._names: dict[str, tuple[str, ...]] = {}
        """The files of each directory; a single file has none."""

    def save(
        self, relations: Sequence[PartitionedFiles]
    ) -> Iterator[tuple[str, bytes | Path | FileOrigin]]:
        """Yield the files of relations by the names that they have in an index.

        Those that several relations share, since one is a copy of another, are yielded once.
        """
        if not relations:
            return
        root, names = relations[0].root, set[str]().union(*(each.files for each in relations))
        place, new = shared_files.place_of(root), _file_names(root, names - self._names.keys())
        known = self._names | new
        self._names = {name: known[name] for name in sorted(names)}
        for name, files in self._names.items():
            for file in files:
                yield f"{name}{PARTITION_SEPARATOR}{file}", place / name / file
            if not files:
                yield f"{name}{PARTITION_SEPARATOR}", place / name
        described = self._differences(relations)
        if described is None:
            self.base = new_name("manifest")
            self._described = {each.relation.name: each for each in relations}
            every = {name: each.to_json() for name, each in self._described.items()}
            data = json.dumps(every).encode()
            shared_files.write_file(root, self.base, data)
            self._checksum = sha256(data).hexdigest()
            described = {each.relation.name: [()] * len(each.sets) for each in relations}
        yield f"{self.base}{PARTITION_SEPARATOR}", place / str(self.base)
        found = {"base": self.base, "checksum": self._checksum, "relations": described}
        yield MANIFEST, json.dumps(found).encode()

    def _differences(self, relations: Iterable[PartitionedFiles]) -> dict[str, Any] | None:
        """Return how relations differ from the base, None if they should be described anew."""
        found: dict[str, Any] = {}
        count = changed = 0
        for files in relations:
            known = self._described.get(files.relation.name)
            difference = None if known is None else files.difference(known)
            if difference is None:
                return None
            found[files.relation.name] = difference
            changed += sum(map(len, difference))
            count += sum(len(each.partitions) for each in files.sets)
        return found if self.base and changed * REWRITE_DIVISOR <= count else None

    def restore(
        self,
        root: str,
        relations: Mapping[str, Relation],
        files: Mapping[str, pa.Buffer],
        paths: IndexPlaces,
    ) -> dict[str, PartitionedFiles]:
        """Return the files of relations that an index describes, each with a second name in a root.

        Those that are not in a directory are noted there, and fetched when they are opened.
        Relations that are not declared, or with other types, are left out.

        Raises:
            WarehouseError: the description cannot be read, or is damaged.
        """
        if MANIFEST not in files:
            return {}
        described: dict[str, Any] = json.loads(files[MANIFEST].to_pybytes())
        base = str(described.get("base"))
        place = paths.get(f"{base}{PARTITION_SEPARATOR}")
        if place is None:  # it is gone, or the index was written in another way
            return {}
        data, found = _read(place), {}
        self.base, self._checksum = base, described["checksum"]
        if sha256(data).hexdigest() != self._checksum:
            raise WarehouseError.damaged(place)
        every = json.loads(data)
        for name, difference in described["relations"].items():
            relation = relations.get(name)
            known = relation and PartitionedFiles.from_json(root, relation, every[name])
            if known:
                self._described[name] = known
                found[name] = known.with_difference(difference)
        _link_files(root, {base}.union(*(each.files for each in found.values())), paths)
        return found


def _file_names(root: str, names: set[str]) -> dict[str, tuple[str, ...]]:
    """Return by name the files of a directory; none if it is a file."""
    found: dict[str, list[str]] = {
        name: [*(shared_files.origins_of(root, name) or ())] for name in names
    }
    if shared_files.is_in_store(root):
        place = shared_files.place_of(root)
        for path, _ in place.entries() if names else ():
            name, _, file = path.relative_to(place).partition("/")
            if name in found:
                found[name].append(file)
    else:
        for name, files in found.items():
            if not files and (path := Path(root, name)).is_dir():
                files += [each.name for each in path.iterdir()]
    return {name: tuple(sorted(filter(None, files))) for name, files in found.items()}


def _read(place: Path | FileOrigin) -> bytes:
    try:
        return place.read_bytes() if isinstance(place, Path) else bytes(place.read_buffer())
    except OSError as error:
        raise WarehouseError.cannot_read(place, error) from None


def _link_files(root: str, wanted: set[str], paths: IndexPlaces) -> None:
    """Give files of an index a second name in a root; note where those are that are not here."""
    origins: dict[str, dict[str, FileOrigin]] = {}
    directory = shared_files.local_directory(root)
    for name, path in paths.items():
        owner, _, file = name.partition(PARTITION_SEPARATOR)
        if owner not in wanted:
            continue
        if not isinstance(path, Path):
            origins.setdefault(owner, {})[file] = path
            continue
        target = directory / owner / file if file else directory / owner
        target.parent.mkdir(exist_ok=True)
        _link(path, target)
    shared_files.note_origins(root, origins)


def _link(source: Path, target: Path) -> None:
    """Give a file a second name, which it keeps when the first is removed."""
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copyfile(source, target)
