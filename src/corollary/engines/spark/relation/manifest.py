"""The files of partitioned relations as part of an index: named in it, and neither read nor copied.

A file of the partition `base` is called `base~file` there; that of a change, `change~`. One more
file, the manifest, says what they are.
"""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from corollary.core.engine import PARTITION_SEPARATOR, FileOrigin, IndexPlaces
from corollary.core.program import Relation
from corollary.engines.spark.relation.fetched_files import note_origins, origins_of
from corollary.engines.spark.relation.files import PartitionedFiles

MANIFEST = "partitions.json"
"""The file of an index that describes partitioned relations."""


def save_files(relations: Iterable[PartitionedFiles]) -> Iterator[tuple[str, bytes | Path]]:
    """Yield the files of relations by the names that they have in an index.

    Those that several relations share, since one is a copy of another, are yielded once.
    """
    described = {}
    known: set[str] = set()
    for files in relations:
        names, known = sorted(files.files - known), known | files.files
        for name in names:
            path = Path(files.root) / name
            if (origins := origins_of(files.root, name)) is not None:
                for file in sorted(origins):
                    yield f"{name}{PARTITION_SEPARATOR}{file}", path / file
            elif path.is_dir():
                for each in sorted(path.iterdir()):
                    yield f"{name}{PARTITION_SEPARATOR}{each.name}", each
            else:
                yield f"{name}{PARTITION_SEPARATOR}", path
        described[files.relation.name] = files.to_json()
    if described:
        yield MANIFEST, json.dumps(described).encode()


def restore_files(
    root: Path,
    relations: Mapping[str, Relation],
    files: Mapping[str, pa.Buffer],
    paths: IndexPlaces,
) -> dict[str, PartitionedFiles]:
    """Return the files of relations that an index describes, each with a second name in a root.

    Those that are not in a directory are noted there, and fetched when they are opened. Relations
    that are not declared, or with other types, are left out.
    """
    if MANIFEST not in files:
        return {}
    described: dict[str, Any] = json.loads(files[MANIFEST].to_pybytes())
    found = {}
    for name, each in described.items():
        relation = relations.get(name)
        restored = relation and PartitionedFiles.from_json(str(root), relation, each)
        if restored:
            found[name] = restored
    wanted = {name for each in found.values() for name in each.files}
    origins: dict[str, dict[str, FileOrigin]] = {}
    for name, path in paths.items():
        owner, _, file = name.partition(PARTITION_SEPARATOR)
        if owner not in wanted:
            continue
        if not isinstance(path, Path):
            origins.setdefault(owner, {})[file] = path
            continue
        target = root / owner / file if file else root / owner
        target.parent.mkdir(exist_ok=True)
        _link(path, target)
    for owner, each in origins.items():
        note_origins(root, owner, each)
    return found


def _link(source: Path, target: Path) -> None:
    """Give a file a second name, which it keeps when the first is removed."""
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copyfile(source, target)
