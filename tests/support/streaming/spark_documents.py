"""Documents whose updates arrive as files that Spark streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import corollary
from corollary.documents.spark import ARRIVALS, watch

VIEWS = {"shipped": "/r[pay/*$o][ship/*$o]", "any": "/r/alarm"}
TEMPLATE = "r[!pay !ship]"


def arrive(folder: Path, name: str, *rows: tuple[Any, ...]) -> None:
    folder.mkdir(exist_ok=True)
    keys = ("doc", "fn", "seq", "xml", "eos", "op", "old", "at")
    lines = (json.dumps(dict(zip(keys, row, strict=False))) for row in rows)
    (folder / name).write_text("\n".join(lines), "utf-8")


def follow(
    spark: Any, folder: Path, place: Path, placement: str | None = None, **options: Any
) -> dict[str, set[tuple[Any, ...]]]:
    """Read all that has come; return what the warehouse holds then."""
    frame = spark.readStream.schema(ARRIVALS).option("maxFilesPerTrigger", 1).json(str(folder))
    engine: dict[str, Any] = {"engine": "local"}
    if placement is not None:
        engine = {"spark": spark, "placement": placement}
    with corollary.open(place, **engine) as database:
        trigger = {"availableNow": True}
        options = {"views": VIEWS, "template": TEMPLATE, **options}
        query = watch(database, frame, trigger=trigger, **options)
        query.awaitTermination()
        return {
            name: set(database.relation(f"document_{name}").rows())
            for name in ("answer", "value", "since", "closed", "refused")
        }
