"""What one client waits for: its answer, for how long, and who can cancel it."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from corollary.database.access.principals import Principal
from corollary.serve.answers import ServiceError
from corollary.serve.postgres.problems import PgError, pg_error
from corollary.serve.postgres.settings import SessionSettings
from corollary.serve.postgres.shared_state import SharedState

Result = TypeVar("Result")

INLINE_BYTES = 1 << 13
"""Less than this is decoded at once; a thread would take longer."""


class RunningStatement:
    """The statement of a client that is being answered.

    Args:
        shared: runs what needs the processor.
        who: the client.
        settings: say how long a statement may take.
    """

    def __init__(self, shared: SharedState, who: Principal, settings: SessionSettings) -> None:
        self._shared, self._who, self._settings = shared, who, settings
        self._running: asyncio.Future[Any] | None = None
        self._is_cancelled = self._is_reading = self._has_left = False
        self._arrived = time.monotonic()

    def begin(self) -> None:
        """Count the time that a statement takes from now on, the arrival of its message."""
        self._arrived = time.monotonic()

    async def compute(self, call: Callable[[], Result], size: int | None = None) -> Result:
        """Return what a function returns that only needs the processor.

        Args:
            call: the function.
            size: of its data; if it is not given, or large, the function runs in a thread, so that
                others are served meanwhile.

        Raises:
            PgError: it fails, is nested too deeply, or takes too long.
        """
        if size is not None and size <= INLINE_BYTES:
            return call()
        try:
            return await self.ask(self._shared.statements.run(self._who.name, call))
        except RecursionError:
            raise PgError("54001", "The statement is nested too deeply.", "split it") from None

    async def ask(
        self,
        awaited: Coroutine[Any, Any, Result],
        *,
        is_read: bool = False,
        is_endless: bool = False,
    ) -> Result:
        """Wait for an answer, which the client can cancel; if it is a read, by leaving.

        Args:
            awaited: the answer.
            is_read: whether it changes nothing.
            is_endless: whether it may take longer than `statement_timeout`.

        Raises:
            PgError: there is none.
        """
        task = asyncio.ensure_future(awaited)
        self._running, self._is_reading = task, is_read
        limit = None if is_endless else self._settings.timeout_seconds
        if is_read and self._has_left:
            self.cancel()
        try:
            if limit is None:
                return await task
            return await asyncio.wait_for(task, limit - (time.monotonic() - self._arrived))
        except TimeoutError:
            raise PgError("57014", "The statement took longer than statement_timeout.") from None
        except asyncio.CancelledError:
            if self._is_cancelled:
                raise PgError("57014", "The statement was cancelled, as was asked for.") from None
            raise
        except ServiceError as error:
            raise pg_error(error) from None
        finally:
            self._running = None
            self._is_cancelled = self._is_reading = False

    def cancel(self) -> None:
        """Cancel the question that is being answered, if one is."""
        if self._running is not None and not self._running.done():
            self._is_cancelled = True
            self._running.cancel()

    def leave(self) -> None:
        """Note that the client is gone: nobody waits for the answer to a question any more."""
        self._has_left = True
        if self._is_reading:
            self.cancel()
