"""The query log: which goals a warehouse answers, and how often.

A goal is stored in its normal form, `link^bf`: the relation, and which arguments are bound. The
values themselves are not stored. The table is created when the first queries are recorded, so that
a warehouse that is only written to has none.
"""

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

from corollary.core.logic import Constant, Literal
from corollary.data_class import dataclass
from corollary.errors import ConflictError, CorollaryError
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.connections import DuplicateRowError

TABLE = "corollary_queries"
CREATE = f"""
    CREATE TABLE IF NOT EXISTS {TABLE} (
        form VARCHAR(500) NOT NULL,
        asked BIGINT NOT NULL,
        first FLOAT NOT NULL,
        last FLOAT NOT NULL,
        PRIMARY KEY (form))"""

PERIOD_MIN_SECONDS = 3600.0
"""The shortest period that a rate is computed over; a few queries in a row are not a rate."""

QUERY_LOG_SECONDS = 60.0
"""The time between two writes of the counted goals to the catalog."""


@dataclass(frozen=True, slots=True)
class QueryCount:
    """How often a goal was asked: `view^bf`, and times in seconds since 1970."""

    form: str
    count: int
    first: float
    last: float

    @property
    def per_hour(self) -> float:
        """How often it is asked in an hour, by what has been recorded so far."""
        return 3600.0 * self.count / max(PERIOD_MIN_SECONDS, self.last - self.first)


def record_queries(catalog: Catalog, counts: Mapping[str, int]) -> None:
    """Add to the counts of some forms.

    Raises:
        WarehouseError: the catalog cannot be written.
        ConflictError: another process has just recorded the same form for the first time.
    """
    now = time.time()
    try:
        with catalog.write_transaction() as connection:
            connection.execute(CREATE)
            for form, count in counts.items():
                if not connection.execute(
                    "UPDATE corollary_queries SET asked = asked + ?, last = ? WHERE form = ?",
                    count,
                    now,
                    form,
                ):
                    row = {"form": form, "asked": count, "first": now, "last": now}
                    connection.insert(TABLE, [row])
    except DuplicateRowError as error:
        raise ConflictError("another process notes queries at the same time") from error


def logged_queries(catalog: Catalog) -> list[QueryCount]:
    """Return the goals that were asked, the most frequent first."""
    with catalog.read_transaction() as connection:
        if TABLE not in connection.tables():
            return []
        rows = connection.rows("SELECT * FROM corollary_queries ORDER BY asked DESC")
    return [QueryCount(row.form, int(row.asked), row.first, row.last) for row in rows]


class QueryLog:
    """Counts goals by their binding pattern; an error in it never makes a query fail."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._counts: Counter[str] = Counter()
        self._noted = time.monotonic()

    def count(self, goal: Literal) -> None:
        """Count a goal."""
        self._counts[_binding_pattern(goal)] += 1
        if time.monotonic() - self._noted > QUERY_LOG_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the counts to the catalog; if that fails, they are lost."""
        counts, self._counts = self._counts, Counter()
        self._noted = time.monotonic()
        if counts:
            with suppress(CorollaryError):
                record_queries(self._catalog, counts)


def _binding_pattern(goal: Literal) -> str:
    """Return the binding pattern of a goal: its relation, and which arguments are bound.

    >>> from corollary.core.logic import Variable
    >>> _binding_pattern(Literal("link", (Constant("a"), Variable("y"))))
    'link^bf'
    """
    bound = "".join("b" if isinstance(slot, Constant) else "f" for slot in goal.slots)
    return f"{goal.relation}^{bound}"
