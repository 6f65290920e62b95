"""The session of Spark that the user works in: read from, written to, given frames."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corollary.core.program import Directive, Relation

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames of a session; Spark is loaded and started when there is something to do.

    Attributes:
        spark: the session that was passed; None for the local one.
    """

    spark: Any = None

    def read(
        self, directive: Directive, paths: Sequence[Path], wanted: Sequence[str]
    ) -> "tuple[tuple[str, ...], pa.Table]":
        """Return the names of all columns of what an `.input` names, and those that are wanted.

        Raises:
            InputError: Spark cannot read it, or is missing.
        """
        from corollary.engines.spark.frames import read

        return read(self.spark, directive, paths, wanted)

    def write(
        self, table: "pa.Table", relation: Relation, directive: Directive, path: Path | None
    ) -> None:
        """Write the rows of a relation to what an `.output` names.

        Raises:
            InputError: Spark cannot write it, or is missing.
        """
        from corollary.engines.spark.frames import write

        write(self.spark, table, relation, directive, path)

    def frame(self, table: "pa.Table", schema: "pa.Schema", view: str | None = None) -> Any:
        """Return rows as a frame of the session, and show it as a temp view if asked.

        Raises:
            InputError: the name is none for a view, or Spark is missing.
        """
        from corollary.engines.spark.frames import frame_of

        return frame_of(self.spark, table, schema, view)
