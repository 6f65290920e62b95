"""A relation as it is when asked, in the form that is asked for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from corollary.core.arrow import schema_of, to_python
from corollary.core.program import Relation
from corollary.database.frames import Frames

if TYPE_CHECKING:
    import pyarrow as pa


class Source(Protocol):
    """What relations are read from."""

    @property
    def frames(self) -> Frames:
        """Frames of the session that the user works in."""

    def shape(self, name: str) -> Relation:
        """Return the columns of a relation, and their types."""

    def read(self, name: str) -> "pa.Table":
        """Return the tuples of a relation."""


@dataclass(frozen=True, slots=True)
class RelationView:
    """A stored relation, or a base relation, as it is when asked."""

    _source: Source
    name: str

    @property
    def shape(self) -> Relation:
        """The columns, and their types."""
        return self._source.shape(self.name)

    def arrow(self) -> "pa.Table":
        """Return the tuples as an Arrow table."""
        return self._source.read(self.name)

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
        return self._source.frames.frame(self.arrow(), schema_of(self.shape), view)

    def __len__(self) -> int:
        return int(self.arrow().num_rows)
