"""Sinks: after its commit, what a run has for a sink is one more file in the folder of the sink.

The rows are in the warehouse until the next run, and the file has the number of the commit in its
name, so that a process that is killed in between loses nothing and writes nothing twice.
"""

from collections.abc import Iterable
from pathlib import Path

from corollary.database.database import Database
from corollary.errors import InputError
from corollary.pipelines.graph import Dataset, DatasetKind
from corollary.warehouse.formats.file_extensions import output_of
from corollary.warehouse.formats.output_files import write_outputs

FORMATS = {"parquet": "parquet", "json": "jsonl", "csv": "csv"}
"""The formats of sinks, and how the names of their files end."""


def check_sink(sink: Dataset) -> None:
    """Refuse a sink that cannot be written.

    Raises:
        InputError: `C1727`.
    """
    if sink.format in FORMATS and sink.options.get("path"):
        return
    raise InputError.of(
        "C1727",
        f"The sink `{sink.name}` has the format `{sink.format}`"
        + ("" if sink.options.get("path") else ", and no path")
        + ".",
        sink.span,
        f"a sink is a folder of files: `path` says where, and the format is {', '.join(FORMATS)}",
    )


def write_sinks(database: Database, datasets: Iterable[Dataset], root: Path) -> None:
    """Write the rows of sinks that are not written yet."""
    for sink in datasets:
        if sink.kind is not DatasetKind.SINK or not len(database.relation(sink.name)):
            continue
        number = _last_change(database, sink.name)
        folder = root / sink.options["path"].removeprefix("file:")
        path = folder / f"part-{number:08}.{FORMATS[sink.format or '']}"
        if path.exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        view = database.relation(sink.name)
        write_outputs([output_of(view.arrow(), view.shape, str(path), has_headers=True)])


def _last_change(database: Database, name: str) -> int:
    return next((each.number for each in database.log() if name in each.changes), 0)
