"""Opens the service of a warehouse: in several processes, or in this one."""

from dataclasses import replace

from corollary.database.opening import open_with
from corollary.database.options import IN_PROCESS, DatabaseOptions
from corollary.database.publishing import PublishTime
from corollary.engines.local.bulk.connection import bound_memory
from corollary.serve.processes.front import FrontService
from corollary.serve.processes.local_service import LocalService
from corollary.serve.processes.process_service import ProcessService
from corollary.serve.service import ServiceLimits


async def open_service(
    place: str,
    options: DatabaseOptions = IN_PROCESS,
    *,
    readers: int | None = None,
    limits: ServiceLimits | None = None,
) -> FrontService:
    """Open a warehouse, and return what answers requests on it.

    Args:
        place: the warehouse, which has to exist.
        options: of the database, for the process that commits.
        readers: the number of reading processes; 0 lets this process do everything. One less than
            the machine has processors if it is not given, but at least two.
        limits: the bounds on requests.

    Raises:
        ServiceError, CorollaryError: it cannot be opened.
    """
    if readers == 0:
        bound_memory((limits or ServiceLimits()).memory)
        chosen = replace(options, publish=PublishTime.MANUAL)
        when = PublishTime.of(options.publish or PublishTime.SECOND)
        return await LocalService.open(lambda: open_with(place, chosen, create=False), limits, when)
    return await ProcessService.open(place, options, readers=readers, limits=limits)
