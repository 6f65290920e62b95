"""What the sessions of all clients share: the service, threads, relations that were read."""

import asyncio
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field

import pyarrow as pa

from corollary.data_class import dataclass
from corollary.database.access.principals import Principal
from corollary.serve.answers import Answer
from corollary.serve.postgres.catalog.process import CatalogProcess, CatalogQuery
from corollary.serve.postgres.followed_queries import FollowedAnswers
from corollary.serve.postgres.notifications import Listener
from corollary.serve.postgres.relations import VisibleRelations
from corollary.serve.processes.lanes import LaneThreads
from corollary.serve.requests import RelationsRequest
from corollary.serve.service import Service
from corollary.serve.tokens import ScramVerifier, TokenStore

RELATIONS_SECONDS = 1.0
"""How long a list of relations is used for the types in statements; their answers are of now."""
PRINCIPALS_MAX = 256
STATEMENT_THREADS = 4
"""How many clients can have a statement read at once."""
STATEMENTS_MAX = 64
"""How many statements one client can have under way until they are read."""
LOGIN_THREADS = 2


@dataclass(slots=True)
class SharedState:
    """What all sessions use.

    Attributes:
        service: what answers.
        tokens: who may connect.
        statements: the threads in which statements are read and translated.
        catalogs: the process in which catalog queries run.
        listeners: the clients that listen to something.
        answers: those of the queries that are followed.
    """

    service: Service
    tokens: TokenStore
    statements: LaneThreads = field(
        default_factory=lambda: LaneThreads("statements", STATEMENT_THREADS, STATEMENTS_MAX)
    )
    catalogs: CatalogProcess = field(default_factory=CatalogProcess)
    listeners: set[Listener] = field(default_factory=set)
    answers: FollowedAnswers = field(init=False)
    _logins: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(LOGIN_THREADS, "logins")
    )
    _relations: "OrderedDict[Principal, tuple[float, VisibleRelations]]" = field(
        default_factory=OrderedDict
    )

    def __post_init__(self) -> None:
        self.answers = FollowedAnswers(self.service)

    async def relations(self, who: Principal) -> VisibleRelations:
        """List the relations that somebody may see.

        Raises:
            ServiceError: the service does not answer.
        """
        relations = VisibleRelations.of_json((await self._list_relations(who)).json)
        before = self._relations.get(who)
        if before is not None and before[1].shape() == relations.shape():
            relations = before[1]  # with the statements that were read for them
        self._relations[who] = (time.monotonic(), relations)
        if len(self._relations) > PRINCIPALS_MAX:
            self._relations.popitem(last=False)
        return relations

    def known_relations(self, who: Principal) -> VisibleRelations | None:
        """Return the relations that somebody may see, if they were listed a moment ago."""
        found = self._relations.get(who)
        is_known = found is not None and time.monotonic() - found[0] < RELATIONS_SECONDS
        return found[1] if found is not None and is_known else None

    def forget_relations(self) -> None:
        """List relations anew: definitions have changed them."""
        self._relations.clear()

    async def run_catalog_query(self, who: Principal, database: str, sql: str) -> pa.Table:
        """Return the rows of a query on the catalog of what somebody may see now.

        Raises:
            PgError: it cannot be run.
            ServiceError: the service does not answer, or somebody has too many queries.
        """
        answer = await self._list_relations(who)
        return await self.catalogs.run(CatalogQuery(sql, who.name, database, answer.body))

    async def scram_of(self, name: str) -> tuple[ScramVerifier, Principal | None]:
        """Return how the password of a user is checked, and who that is."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._logins, self.tokens.scram_of, name)

    async def close(self) -> None:
        """End the threads and the process; nobody uses them any more."""
        self.statements.close()
        self._logins.shutdown(wait=False, cancel_futures=True)
        await self.catalogs.close()

    async def _list_relations(self, who: Principal) -> Answer:
        return await self.service.call(who, RelationsRequest())
