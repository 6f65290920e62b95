"""The query log: which goals a warehouse answers, and how often.

A goal is stored in its normal form, `link^bf`: the relation, and which arguments are bound. The
values themselves are not stored. The table is created when the first queries are recorded, so that
a warehouse that is only written to has none.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from corollary.errors import ConflictError
from corollary.warehouse.catalog.catalog import Catalog

metadata = sa.MetaData()

queries = sa.Table(
    "corollary_queries",
    metadata,
    sa.Column("form", sa.String(500), primary_key=True),
    sa.Column("asked", sa.BigInteger, nullable=False),
    sa.Column("first", sa.Float, nullable=False),
    sa.Column("last", sa.Float, nullable=False),
)

PERIOD_MIN_SECONDS = 3600.0
"""The shortest period that a rate is computed over; a few queries in a row are not a rate."""


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
            metadata.create_all(connection)
            for form, count in counts.items():
                same = queries.c.form == form
                changed = {"asked": queries.c.asked + count, "last": now}
                if not connection.execute(queries.update().where(same).values(changed)).rowcount:
                    connection.execute(
                        queries.insert().values(form=form, asked=count, first=now, last=now)
                    )
    except IntegrityError as error:
        raise ConflictError("another process notes queries at the same time") from error


def logged_queries(catalog: Catalog) -> list[QueryCount]:
    """Return the goals that were asked, the most frequent first."""
    with catalog.read_transaction() as connection:
        if not sa.inspect(connection).has_table(queries.name):
            return []
        rows = connection.execute(sa.select(queries).order_by(queries.c.asked.desc()))
        return [QueryCount(row.form, int(row.asked), row.first, row.last) for row in rows]
