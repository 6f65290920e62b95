"""The bytes of one connection: messages in, messages out, with limits of size and time."""

import asyncio
import ssl
import struct
from collections.abc import Callable

from corollary.serve.postgres.messages import protocol_violation
from corollary.serve.postgres.problems import PgError

OPENING_MAX_BYTES = 10_000
"""The maximum length of a message before the password is checked, as in PostgreSQL."""
MESSAGE_MAX_BYTES = 16 << 20
OUTPUT_BYTES = 1 << 16
"""So much output is collected before it is sent."""
WRITE_SECONDS = 60.0
"""A client that reads nothing for this time is cut off."""


class CountingReader(asyncio.StreamReader):
    """A reader that knows how many bytes have arrived, and tells of the end at once."""

    received = 0
    on_end: Callable[[], None] | None = None

    def feed_data(self, data: bytes) -> None:  # type: ignore[override] # it gets bytes
        """Take bytes that have arrived."""
        self.received += len(data)
        super().feed_data(data)

    def feed_eof(self) -> None:
        """Note that the client sends no more."""
        super().feed_eof()
        self._tell_end()

    def set_exception(self, exc: Exception) -> None:
        """Note that the connection has broken."""
        super().set_exception(exc)
        self._tell_end()

    def _tell_end(self) -> None:
        if self.on_end is not None:
            self.on_end()


class PgChannel:
    """Reads and writes the messages of one connection."""

    def __init__(self, reader: CountingReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._consumed = 0
        self._output = bytearray()
        self._pushed: tuple[bytes, bytes] | None = None

    async def _read(self, size: int) -> bytes:
        data = await self._reader.readexactly(size)
        self._consumed += size
        return data

    def when_ended(self, call: Callable[[], None]) -> None:
        """Call a function when the client is gone, even while its message is being answered."""
        self._reader.on_end = call

    async def read_opening(self) -> bytes:
        """Return the first message, which has no kind."""
        return await self._payload(await self._read(4), OPENING_MAX_BYTES)

    async def read(self, max_bytes: int = MESSAGE_MAX_BYTES) -> tuple[bytes, bytes]:
        """Return the kind and the fields of the next message.

        Raises:
            PgError: it is too long.
            IncompleteReadError: the connection has ended.
        """
        if self._pushed is not None:
            found, self._pushed = self._pushed, None
            return found
        header = await self._read(5)
        return header[:1], await self._payload(header[1:], max_bytes)

    async def peek(self) -> bytes:
        """Return the kind of the next message, which stays the next one."""
        if self._pushed is None:
            self._pushed = await self.read()
        return self._pushed[0]

    async def _payload(self, length: bytes, max_bytes: int) -> bytes:
        size = struct.unpack("!I", length)[0] - 4
        if size < 0:
            raise protocol_violation("The length of a message is not valid.")
        if size > max_bytes:
            raise PgError(
                "54000",
                f"A message has more than {max_bytes:,} bytes.",
                "send less at once",
                is_fatal=True,
            )
        return await self._read(size) if size else b""

    async def start_tls(self, context: ssl.SSLContext) -> None:
        """Go on in TLS.

        Raises:
            PgError: the client has sent more before; somebody may have put it there.
        """
        if self._reader.received != self._consumed:
            raise protocol_violation("Bytes were sent between the request for TLS and its answer.")
        await self._writer.start_tls(context)

    def write(self, data: bytes) -> None:
        """Send something, with the next `flush`."""
        self._output += data

    async def write_much(self, data: bytes) -> None:
        """Send something; wait if the client reads slowly.

        Raises:
            TimeoutError: it does not read at all.
        """
        self._output += data
        if len(self._output) >= OUTPUT_BYTES:
            await self.flush()

    def send(self) -> None:
        """Send all that was written, as soon as the client reads it."""
        self._writer.write(bytes(self._output))
        self._output.clear()

    async def flush(self) -> None:
        """Send all that was written.

        Raises:
            TimeoutError: the client does not read.
        """
        if self._output:
            self.send()
            if self._writer.transport.get_write_buffer_size():  # the client reads slowly
                async with asyncio.timeout(WRITE_SECONDS):
                    await self._writer.drain()
            await asyncio.sleep(0)  # others are served in between, which `drain` does not ensure

    def abort(self) -> None:
        """End the connection at once."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """End the connection; what was not sent in a moment is lost."""
        try:
            async with asyncio.timeout(1.0):
                await self.flush()
                self._writer.close()
                await self._writer.wait_closed()
        except (OSError, TimeoutError, ssl.SSLError):
            self.abort()
