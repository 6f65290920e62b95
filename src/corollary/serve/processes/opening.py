"""Opens the service of a warehouse: in several processes, or in this one."""

from collections.abc import Mapping
from typing import Any

from corollary.database.opening import open_database
from corollary.database.publishing import PublishTime
from corollary.engines.local.bulk.connection import bound_memory
from corollary.serve.processes.front import FrontService
from corollary.serve.processes.local_service import LocalService
from corollary.serve.processes.process_service import ProcessService
from corollary.serve.service import ServiceLimits


async def open_service(
    place: str,
    options: Mapping[str, Any] | None = None,
    *,
    readers: int | None = None,
    limits: ServiceLimits | None = None,
) -> FrontService:
    """Open a warehouse, and return what answers requests on it.

    Args:
        place: the warehouse, which has to exist.
        options: those of `open_database`, for the process that commits; they travel as JSON.
        readers: the number of reading processes; 0 lets this process do everything. One less than
            the machine has processors if it is not given, but at least two.
        limits: the bounds on requests.

    Raises:
        ServiceError, CorollaryError: it cannot be opened.
    """
    if readers == 0:
        bound_memory((limits or ServiceLimits()).memory)
        chosen = {"engine": "local", **(options or {}), "publish": PublishTime.MANUAL}
        when = PublishTime.of((options or {}).get("publish") or PublishTime.SECOND)
        return await LocalService.open(
            lambda: open_database(place, create=False, **chosen), limits, when
        )
    return await ProcessService.open(place, options, readers=readers, limits=limits)
