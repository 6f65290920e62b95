"""What the sessions of all clients share: the service, relations and catalogs that were read."""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from corollary.database.access.principals import Principal
from corollary.serve.postgres.catalog.database import CatalogDatabase
from corollary.serve.postgres.relations import VisibleRelations
from corollary.serve.requests import RelationsRequest
from corollary.serve.service import Service

RELATIONS_SECONDS = 1.0
"""How long a list of relations is used for the types in statements; their answers are of now."""
CATALOGS_MAX = 8
"""How many catalogs are kept."""
PRINCIPALS_MAX = 256

CatalogKey = tuple[str, str, tuple[object, ...]]


@dataclass(slots=True)
class SharedState:
    """What all sessions use."""

    service: Service
    _relations: "OrderedDict[Principal, tuple[float, VisibleRelations]]" = field(
        default_factory=OrderedDict
    )
    _catalogs: "OrderedDict[CatalogKey, CatalogDatabase]" = field(default_factory=OrderedDict)

    async def relations(self, who: Principal, *, is_fresh: bool = False) -> VisibleRelations:
        """Return the relations that somebody may see, as they are or were a moment ago.

        Raises:
            ServiceError: the service does not answer.
        """
        found = self._relations.get(who)
        now = time.monotonic()
        if found is not None and not is_fresh and now - found[0] < RELATIONS_SECONDS:
            return found[1]
        answer = await self.service.call(who, RelationsRequest())
        relations = VisibleRelations.of_json(answer.json)
        self._relations[who] = (now, relations)
        if len(self._relations) > PRINCIPALS_MAX:
            self._relations.popitem(last=False)
        return relations

    async def catalog(self, who: Principal, database: str) -> CatalogDatabase:
        """Return the catalog of what somebody may see now.

        Raises:
            ServiceError: the service does not answer.
        """
        relations = await self.relations(who, is_fresh=True)
        key = (who.name, database, relations.shape())
        found = self._catalogs.get(key)
        if found is None:
            found = await asyncio.to_thread(CatalogDatabase.create, relations, database, who.name)
            self._catalogs[key] = found
            if len(self._catalogs) > CATALOGS_MAX:
                self._catalogs.popitem(last=False)
        self._catalogs.move_to_end(key)
        return found
