"""A relation as it is when asked, in the form that is asked for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corollary.core.arrow import schema_of, to_python
from corollary.core.program import Relation
from corollary.database.frames import Frames

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class RelationView:
    """A relation, as it is whenever it is read."""

    name: str
    _columns: Callable[[str], Relation]
    _read: "Callable[[str], pa.Table]"
    _frames: Frames

    @property
    def shape(self) -> Relation:
        """The columns, and their types."""
        return self._columns(self.name)

    def arrow(self) -> "pa.Table":
        """Return the tuples as an Arrow table."""
        return self._read(self.name)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the tuples as Python values."""
        return list(to_python(self.arrow()))

    def pandas(self) -> Any:
        """Return the tuples as a pandas frame."""
        return self.arrow().to_pandas()

    def spark(self, view: str | None = None) -> Any:
        """Return the tuples as a frame of the Spark session that was passed, or of a local one.

        Args:
            view: the name of a temp view of the session that shows them, too, as they are now.
        """
        return self._frames.frame(self.arrow(), schema_of(self.shape), view)

    def __len__(self) -> int:
        return int(self.arrow().num_rows)
