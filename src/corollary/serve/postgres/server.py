"""Listens for clients of PostgreSQL."""

import asyncio
import logging
import ssl

from corollary.data_class import dataclass
from corollary.serve.postgres import messages as ms
from corollary.serve.postgres.channel import CountingReader, PgChannel
from corollary.serve.postgres.connection import ConnectionContext, PgConnection, stopping
from corollary.serve.postgres.problems import PgError
from corollary.serve.postgres.shared_state import SharedState
from corollary.serve.service import Service
from corollary.serve.tokens import TokenStore

LOG = logging.getLogger("corollary.serve.postgres")
CONNECTIONS_MAX = 100
STARTUP_SECONDS = 30.0
"""How long a client may take until its password is checked."""


@dataclass(frozen=True, slots=True)
class PgSettings:
    """Where and how to listen.

    Attributes:
        port: 0 for one that is free.
        tls: how to encrypt; None if that is not offered.
        requires_tls: whether connections without TLS are refused.
    """

    host: str = "127.0.0.1"
    port: int = 5432
    tls: ssl.SSLContext | None = None
    requires_tls: bool = False
    connections_max: int = CONNECTIONS_MAX
    startup_seconds: float = STARTUP_SECONDS


class PgServer:
    """Connections of PostgreSQL clients to a service.

    Args:
        service: what answers.
        tokens: who may connect: the user is the name of a token, the password the token.
        settings: where to listen.
    """

    def __init__(self, service: Service, tokens: TokenStore, settings: PgSettings) -> None:
        self._settings = settings
        shared = SharedState(service, tokens)
        self._context = ConnectionContext(shared, settings.tls, settings.requires_tls)
        self._server: asyncio.Server | None = None
        self._running: dict[asyncio.Task[None], PgConnection] = {}
        self._starting: dict[PgChannel, None] = {}

    @property
    def port(self) -> int:
        """The port on which it listens."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def connections(self) -> int:
        """How many connections there are."""
        return len(self._running)

    async def start(self) -> None:
        """Begin to listen.

        Raises:
            OSError: the port is taken.
        """
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: asyncio.StreamReaderProtocol(CountingReader(), self._connected),
            self._settings.host,
            self._settings.port,
        )

    async def close(self, seconds: float = 5.0) -> None:
        """Stop: clients are told (57P01); statements that run may end within some seconds."""
        if self._server is not None:
            self._server.close()
        for task, connection in self._running.items():
            connection.is_stopping = True
            if connection.is_idle:
                task.cancel()
        if self._running:
            await asyncio.wait(list(self._running), timeout=seconds)
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(list(self._running))
        await self._context.shared.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert isinstance(reader, CountingReader)
        task = asyncio.current_task()
        assert task is not None
        channel = PgChannel(reader, writer)
        connection = PgConnection(channel, self._context)
        if len(self._starting) >= self._settings.connections_max:
            # Whoever has taken longest to sign in makes room.
            oldest = next(iter(self._starting))
            del self._starting[oldest]
            oldest.abort()
        self._running[task] = connection
        self._starting[channel] = None
        try:
            await self._converse(connection, channel)
        finally:
            self._starting.pop(channel, None)
            self._context.sessions.pop(connection.process, None)
            await connection.close()
            await channel.close()
            del self._running[task]

    async def _converse(self, connection: PgConnection, channel: PgChannel) -> None:
        try:
            async with asyncio.timeout(self._settings.startup_seconds):
                has_session = await connection.start()
                if len(self._context.sessions) > self._settings.connections_max:
                    raise PgError("53300", "There are too many connections.", is_fatal=True)
            self._starting.pop(channel, None)
            if has_session:
                await connection.serve()
        except PgError as error:
            channel.write(ms.error_response(error))
        except asyncio.CancelledError:
            if not connection.is_stopping:
                raise
            channel.write(ms.error_response(stopping()))
        except (OSError, EOFError, TimeoutError):
            pass  # the client has gone, or does not read
        except Exception:
            LOG.exception("a connection has failed")
            failed = PgError("XX000", "The server has failed at this.", is_fatal=True)
            channel.write(ms.error_response(failed))
