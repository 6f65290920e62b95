"""Connections that clients cannot hold for nothing: limits on heads, and on readers that stall.

uvicorn has no such limits: a client that sends half a request, or reads no byte of its answer,
would keep its connection and what is buffered for it for ever. A head is all of a request that is
no body: the first line, headers, also extensions of chunks and trailers after the body.
"""

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from corollary.serve.http.settings import ServerSettings

NO_LINGER = struct.pack("ii", 1, 0)
PIECE_BYTES = 1 << 14
"""So many bytes are parsed at once: one of several parts of a request counts as a whole."""
TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class GuardedProtocol(HttpToolsProtocol):
    """A connection of HTTP/1.1; `bound_to` makes the class for the settings of a server."""

    limits: ClassVar[ServerSettings]

    @classmethod
    def bound_to(cls, settings: ServerSettings) -> type["GuardedProtocol"]:
        """Return the class of the connections of a server."""
        return type("BoundProtocol", (cls,), {"limits": settings})

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._head_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._is_in_message = False
        self._is_in_head = False
        self._stall_timer: asyncio.TimerHandle | None = None
        self._unsent_bytes = 0

    # --- heads of requests ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the head of a request."""
        super().connection_made(transport)
        self._begin_head()

    def data_received(self, data: bytes) -> None:
        """Read some bytes; a head that gets too long ends the connection."""
        if self._head_timer is None and self._is_answered():
            self._begin_head()
        for start in range(0, len(data), PIECE_BYTES):
            if self.transport.is_closing():
                return
            piece = data[start : start + PIECE_BYTES]
            was_in_message = self._is_in_message
            super().data_received(piece)
            if was_in_message or self._is_in_message:
                self._head_bytes += len(piece)
            if self._is_in_message and self._head_bytes > self.limits.head_max_bytes:
                self._refuse_head()

    def on_message_begin(self) -> None:
        """Begin to read a request."""
        self._head_bytes, self._is_in_message, self._is_in_head = 0, True, True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a header; trailers, which come after the body, are left out."""
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer a request."""
        self._is_in_head = False
        self._end_head()
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if max(size, self._head_bytes) > self.limits.head_max_bytes:
            self._refuse_head()
            raise ConnectionAbortedError  # the parser stops
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass a part of the body on."""
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for the next request."""
        self._is_in_message = False
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, unless it was refused already."""
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def _refuse_head(self) -> None:
        """Refuse a request that is too long, and end the connection."""
        self._end_head()
        if self._is_answered():
            self.transport.write(TOO_LARGE)
            self.transport.close()
        else:  # the answer to an earlier request is on its way
            self.transport.abort()

    def _is_answered(self) -> bool:
        """Whether no request waits for its answer."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _begin_head(self) -> None:
        seconds = self.limits.head_seconds
        self._head_timer = self.loop.call_later(seconds, self.transport.abort)

    def _end_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    # --- answers that nobody reads -------------------------------------------------------------

    def pause_writing(self) -> None:
        """Wait until the client has read more."""
        super().pause_writing()
        self._watch_unsent()

    def resume_writing(self) -> None:
        """Go on writing."""
        super().resume_writing()
        self._end_watch()

    def on_response_complete(self) -> None:
        """Wait for the next request; and until the client has read this answer."""
        super().on_response_complete()
        if self._stall_timer is None and self.transport.get_write_buffer_size():
            self._watch_unsent()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, once all was read."""
        if self._stall_timer is None:
            super().timeout_keep_alive_handler()
        else:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._end_head()
        self._end_watch()
        super().connection_lost(exc)

    def _watch_unsent(self) -> None:
        self._unsent_bytes = self.transport.get_write_buffer_size()
        seconds = self.limits.stall_seconds
        self._stall_timer = self.loop.call_later(seconds, self._check_unsent)

    def _check_unsent(self) -> None:
        """End the connection if the client has read nothing since the last time."""
        self._stall_timer = None
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0:
            return
        if unsent >= self._unsent_bytes:
            self._reset()
        else:
            self._watch_unsent()

    def _reset(self) -> None:
        """End the connection, and let the system forget what it still has to send."""
        own = self.transport.get_extra_info("socket")
        if own is not None:
            # That of uvloop takes no options, but a copy of it does.
            with suppress(OSError), socket.fromfd(own.fileno(), own.family, own.type) as copy:
                copy.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self.transport.abort()

    def _end_watch(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
