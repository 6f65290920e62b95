"""Frames between the processes of a server, over a Unix socket.

A frame is two lengths, a JSON document and a body of bytes: JSON that is passed on as it is, or
Arrow's stream format. Nothing is ever unpickled.
"""

import asyncio
import json
import select
import socket
import struct
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pyarrow as pa

from corollary.core.arrow import nullary_table
from corollary.database.access.principals import AccessRole, Principal
from corollary.serve.answers import Answer, ServiceError
from corollary.serve.handlers.failures import service_error
from corollary.serve.requests import Request, parse_request, request_as_json, request_kind
from corollary.serve.requests import request_kinds as list_kinds

LENGTHS = struct.Struct("<IQ")
JOINED_MAX_BYTES = 1 << 16
"""Longer bodies are sent as they are, after what is before them."""
Frame = tuple[dict[str, Any], bytes]
_KINDS: dict[str, type[Request]] = {}


def encode_frame(document: Mapping[str, Any], body: bytes | memoryview = b"") -> bytes:
    """Return a frame."""
    return b"".join((_head(document, len(body)), body))


def _head(document: Mapping[str, Any], size: int) -> bytes:
    """Return what is before the body of a frame."""
    text = json.dumps(document, separators=(",", ":")).encode()
    return LENGTHS.pack(len(text), size) + text


class Channel:
    """One end of a socket, in a process that does one thing after the other."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._held = bytearray()
        self._received = bytearray()

    def send(self, document: Mapping[str, Any], body: bytes | memoryview = b"") -> None:
        """Send a frame, after those that are held."""
        self.hold(document, body)
        self._flush()

    def hold(self, document: Mapping[str, Any], body: bytes | memoryview = b"") -> None:
        """Send a frame together with the next one: a call of the system costs more than a frame."""
        self._held += _head(document, len(body))
        if len(body) <= JOINED_MAX_BYTES:
            self._held += body
            return
        self._flush()
        self._socket.sendall(body)

    def _flush(self) -> None:
        held, self._held = self._held, bytearray()
        if held:
            self._socket.sendall(held)

    def has_frame(self, seconds: float = 0.0) -> bool:
        """Return whether something comes within some seconds; the end counts, too."""
        return bool(self._received or self._poll.poll(seconds * 1000))

    def receive(self) -> Frame | None:
        """Return the next frame; None at the end."""
        if not self._fill(LENGTHS.size):
            return None
        length, size = LENGTHS.unpack_from(self._received)
        start, end = LENGTHS.size + length, LENGTHS.size + length + size
        if not self._fill(end):
            return None
        document, body = self._received[LENGTHS.size : start], bytes(self._received[start:end])
        del self._received[:end]
        return json.loads(document), body

    def _fill(self, size: int) -> bool:
        """Receive until there are `size` bytes; return whether there are."""
        while len(self._received) < size:
            found = self._socket.recv(max(JOINED_MAX_BYTES, size - len(self._received)))
            if not found:
                return False
            self._received += found
        return True


async def read_frame(stream: asyncio.StreamReader) -> Frame | None:
    """Return the next frame of a stream; None at its end."""
    try:
        length, size = LENGTHS.unpack(await stream.readexactly(LENGTHS.size))
        content = await stream.readexactly(length + size)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return json.loads(content[:length]), content[length:]


# --- requests and answers -----------------------------------------------------------------------


def request_document(number: int, who: Principal, request: Request) -> dict[str, Any]:
    """Return a request as a part of a frame."""
    return {
        "id": number,
        "who": [who.name, str(who.role)],
        "kind": request_kind(type(request)),
        "fields": request_as_json(request),
    }


def parse_request_document(document: Mapping[str, Any]) -> tuple[int, Principal, Request]:
    """Return the request of a part of a frame."""
    name, role = document["who"]
    kind = document["kind"]
    if kind not in _KINDS:  # classes are listed once all modules that have some are imported
        _KINDS.update(list_kinds())
    request = parse_request(_KINDS[kind], document["fields"])
    return document["id"], Principal(name, AccessRole(role)), request


def read_requests(
    channel: Channel, documents: list[dict[str, Any]]
) -> list[tuple[int, Principal, Request]]:
    """Return the requests of a frame; one that cannot be read is answered with an error."""
    found = []
    for each in documents:
        try:
            found.append(parse_request_document(each))
        except Exception as error:  # noqa: BLE001 - no request may end the process
            channel.send(error_frame(each["id"], service_error(error)))
    return found


def answer_frame(number: int, answer: Answer) -> tuple[dict[str, Any], bytes | memoryview]:
    """Return an answer as a frame."""
    document: dict[str, Any] = {
        "type": "answer",
        "id": number,
        "commit": answer.commit,
        "media": answer.media_type,
    }
    if answer.table is None:
        return document, answer.body
    table = answer.table
    document |= {"types": answer.types, "rows": table.num_rows}
    if not table.num_columns:
        return document, b""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return document, memoryview(sink.getvalue())


def parse_answer(document: Mapping[str, Any], body: bytes) -> Answer:
    """Return the answer of a frame."""
    commit, media = document["commit"], document["media"]
    if "types" not in document:
        return Answer(commit, body, media_type=media)
    table = pa.ipc.open_stream(body).read_all() if body else nullary_table(document["rows"])
    return Answer(commit, table=table, types=tuple(document["types"]), media_type=media)


def error_frame(number: int, error: ServiceError) -> dict[str, Any]:
    """Return an error as a frame."""
    said = {each.name: getattr(error, each.name) for each in fields(error)}
    return {"type": "error", "id": number, **said}


def parse_error(document: Mapping[str, Any]) -> ServiceError:
    """Return the error of a frame."""
    said = {each.name: document[each.name] for each in fields(ServiceError)}
    return ServiceError(**said | {"diagnostics": tuple(said["diagnostics"])})


def found_frame(
    number: int, found: Answer | ServiceError
) -> tuple[dict[str, Any], bytes | memoryview]:
    """Return an answer or an error as a frame."""
    if isinstance(found, ServiceError):
        return error_frame(number, found), b""
    return answer_frame(number, found)
