"""Signs of life: who writes for long says so, lest `gc` give it up for dead and take its files."""

import time
from collections.abc import Callable

from corollary.warehouse import schema
from corollary.warehouse.catalog import Catalog

BEAT_SECONDS = 60.0
"""Signs are not shown more often than this."""


def heartbeat(catalog: Catalog, intent: str) -> Callable[[], None]:
    """Return what shows a sign of life of an intent; to be called after each file, say.

    An intent that is gone stays gone: its writer finds out when it wants to commit.
    """
    table = schema.intents
    shown = time.monotonic()

    def beat() -> None:
        nonlocal shown
        if time.monotonic() - shown >= BEAT_SECONDS:
            with catalog.writing() as connection:
                connection.execute(
                    table.update().where(table.c.id == intent).values(heartbeat=time.time())
                )
            shown = time.monotonic()

    return beat
