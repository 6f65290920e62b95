"""The messages of PostgreSQL's wire protocol, version 3: read from clients, written to them.

A message is a byte that says its kind, its length (which counts itself) and its fields. The first
one of a connection has no kind. Names are those of PostgreSQL's documentation.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from corollary.data_class import dataclass
from corollary.serve.postgres.problems import PgError

PROTOCOL_MAJOR = 3
PROTOCOL_MINOR = 0
SSL_REQUEST = (1234, 5679)
GSSENC_REQUEST = (1234, 5680)
CANCEL_REQUEST = (1234, 5678)

TEXT_FORMAT, BINARY_FORMAT = 0, 1


def protocol_violation(message: str) -> PgError:
    """Return the error of a message that is not as the protocol says; the connection ends."""
    return PgError("08P01", message, is_fatal=True)


# --- what clients send --------------------------------------------------------------------------


class FieldReader:
    r"""The fields of one message, read one after the other.

    >>> FieldReader(b"ab\0" + bytes([0, 7])).string()
    'ab'
    """

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._at = 0

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._payload):
            raise protocol_violation("A message ends before its fields.")
        found = self._payload[self._at : end]
        self._at = end
        return found

    def int16(self) -> int:
        """Read an integer of two bytes."""
        return int(struct.unpack("!h", self._take(2))[0])

    def count(self) -> int:
        """Read how many fields follow."""
        return int(struct.unpack("!H", self._take(2))[0])

    def int32(self) -> int:
        """Read an integer of four bytes."""
        return int(struct.unpack("!i", self._take(4))[0])

    def oid(self) -> int:
        """Read the number of a type."""
        return int(struct.unpack("!I", self._take(4))[0])

    def byte(self) -> bytes:
        """Read one byte."""
        return self._take(1)

    def sized(self) -> bytes | None:
        """Read bytes with their number before them; None if that is -1."""
        size = self.int32()
        return None if size == -1 else self._take(size)

    def rest(self) -> bytes:
        """Read all that is left."""
        return self._take(len(self._payload) - self._at)

    def string(self) -> str:
        """Read a text, which ends with a zero byte."""
        end = self._payload.find(b"\0", self._at)
        if end < 0:
            raise protocol_violation("A text of a message has no end.")
        found = self._payload[self._at : end]
        self._at = end + 1
        return decode_text(found)

    def end(self) -> None:
        """Check that nothing is left."""
        if self._at != len(self._payload):
            raise protocol_violation("A message has more than its fields.")


def decode_text(data: bytes) -> str:
    """Return a text of a client.

    Raises:
        PgError: it is not UTF-8.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise PgError("22021", "A text is not valid UTF-8.") from None


@dataclass(frozen=True, slots=True)
class Startup:
    """StartupMessage."""

    minor: int
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """CancelRequest, on a connection of its own."""

    process: int
    secret: bytes


class EncryptionRequest(StrEnum):
    """Encryption, which has to be agreed on before anything else."""

    SSL = "ssl"
    GSS = "gss"


Opening = Startup | CancelRequest | EncryptionRequest


def read_opening(payload: bytes) -> Opening:
    """Return what the first message of a connection asks for.

    Raises:
        PgError: it is something else.
    """
    fields = FieldReader(payload)
    version = (fields.count(), fields.count())
    if version == SSL_REQUEST:
        return EncryptionRequest.SSL
    if version == GSSENC_REQUEST:
        return EncryptionRequest.GSS
    if version == CANCEL_REQUEST:
        return CancelRequest(fields.int32(), fields.rest())
    if version[0] != PROTOCOL_MAJOR:
        raise PgError(
            "0A000",
            f"Version {version[0]}.{version[1]} of the protocol is not supported.",
            "use a client that speaks version 3",
            is_fatal=True,
        )
    parameters: dict[str, str] = {}
    while name := fields.string():
        parameters[name] = fields.string()
    fields.end()
    return Startup(version[1], parameters)


@dataclass(frozen=True, slots=True)
class Parse:
    """Parse: a statement to prepare, with the types of its first parameters (0: not said)."""

    name: str
    text: str
    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind: values for a prepared statement, and the formats that its rows are wanted in."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Describe:
    """Describe a statement (S) or a portal (P)."""

    kind: bytes
    name: str


@dataclass(frozen=True, slots=True)
class Execute:
    """Execute a portal; `limit` 0 is all its rows."""

    portal: str
    limit: int


@dataclass(frozen=True, slots=True)
class Close:
    """Close a statement (S) or a portal (P)."""

    kind: bytes
    name: str


@dataclass(frozen=True, slots=True)
class SimpleQuery:
    """Query: statements as text."""

    text: str


class Signal(StrEnum):
    """A message without fields.

    Sync is the end of what belongs together; after Flush, all that is known is wanted now.
    """

    SYNC = "S"
    FLUSH = "H"


FrontendMessage = Parse | Bind | Describe | Execute | Close | SimpleQuery | Signal


def read_message(kind: bytes, payload: bytes) -> FrontendMessage | None:
    """Return a message of a client; None for one of COPY FROM outside of it, which is ignored.

    Raises:
        PgError: there is no such message, or its fields are wrong.
    """
    fields = FieldReader(payload)
    found: FrontendMessage
    match kind:
        case b"P":
            name, text = fields.string(), fields.string()
            found = Parse(name, text, tuple(fields.oid() for _ in range(fields.count())))
        case b"B":
            portal, statement = fields.string(), fields.string()
            formats = _formats(fields)
            values = tuple(fields.sized() for _ in range(fields.count()))
            found = Bind(portal, statement, formats, values, _formats(fields))
        case b"D" | b"C":
            what, name = fields.byte(), fields.string()
            if what not in (b"S", b"P"):
                raise protocol_violation("Only statements and portals are described and closed.")
            found = Describe(what, name) if kind == b"D" else Close(what, name)
        case b"E":
            found = Execute(fields.string(), max(0, fields.int32()))
        case b"Q":
            found = SimpleQuery(fields.string())
        case b"S" | b"H":
            found = Signal(kind.decode())
        case b"d" | b"c" | b"f":
            return None
        case b"F":
            raise PgError("0A000", "Calls of functions by number are not supported.")
        case _:
            raise protocol_violation("There is no message of this kind.")
    fields.end()
    return found


def _formats(fields: FieldReader) -> tuple[int, ...]:
    found = tuple(fields.int16() for _ in range(fields.count()))
    if any(each not in (TEXT_FORMAT, BINARY_FORMAT) for each in found):
        raise PgError("22023", "Formats are 0, for text, and 1, for binary.")
    return found


def format_of(formats: Sequence[int], at: int) -> int:
    """Return the format of one value: none is given, one for all, or one for each.

    >>> format_of((), 3), format_of((1,), 3), format_of((0, 1), 1)
    (0, 1, 1)
    """
    if not formats:
        return TEXT_FORMAT
    return formats[0] if len(formats) == 1 else formats[at]


# --- what is sent to clients --------------------------------------------------------------------


def message(kind: bytes, payload: bytes = b"") -> bytes:
    """Return a message with its kind and length."""
    return kind + struct.pack("!I", len(payload) + 4) + payload


def text_field(text: str) -> bytes:
    """Return a text with its zero byte; zero bytes inside, which cannot be sent, are left out."""
    return text.encode("utf-8", "replace").replace(b"\0", b"") + b"\0"


PARSE_COMPLETE = message(b"1")
BIND_COMPLETE = message(b"2")
CLOSE_COMPLETE = message(b"3")
NO_DATA = message(b"n")
PORTAL_SUSPENDED = message(b"s")
EMPTY_QUERY = message(b"I")
COPY_DONE = message(b"c")
AUTHENTICATION_OK = message(b"R", struct.pack("!I", 0))
AUTHENTICATION_SASL = 10
AUTHENTICATION_SASL_CONTINUE = 11
AUTHENTICATION_SASL_FINAL = 12


def authentication(step: int, data: bytes) -> bytes:
    """Return a step of SASL."""
    return message(b"R", struct.pack("!I", step) + data)


def parameter_status(name: str, value: str) -> bytes:
    """Return the value of a setting that clients want to know of."""
    return message(b"S", text_field(name) + text_field(value))


def backend_key(process: int, secret: bytes) -> bytes:
    """Return what a client needs to cancel."""
    return message(b"K", struct.pack("!i", process) + secret)


def negotiate_version(unknown: Sequence[str]) -> bytes:
    """Return which version is spoken instead of a newer one, and which options are not known."""
    names = b"".join(map(text_field, unknown))
    return message(b"v", struct.pack("!II", PROTOCOL_MINOR, len(unknown)) + names)


def ready_for_query(status: bytes) -> bytes:
    """Return that the next statement may come: idle (I), in a transaction (T), a failed one (E)."""
    return message(b"Z", status)


def notification(process: int, channel: str, payload: str) -> bytes:
    """Return what a process tells who listens to a channel."""
    return message(b"A", struct.pack("!i", process) + text_field(channel) + text_field(payload))


def command_complete(tag: str) -> bytes:
    """Return that a statement has ended."""
    return message(b"C", text_field(tag))


def parameter_description(types: Sequence[int]) -> bytes:
    """Return the types of parameters."""
    return message(b"t", struct.pack(f"!H{len(types)}I", len(types), *types))


def copy_out(columns: int, format_: int) -> bytes:
    """Return that rows follow in COPY's form."""
    return message(b"H", struct.pack(f"!bH{columns}H", format_, columns, *[format_] * columns))


def copy_in(columns: int) -> bytes:
    """Return that rows are awaited in COPY's form."""
    return message(b"G", struct.pack(f"!bH{columns}H", 0, columns, *[0] * columns))


@dataclass(frozen=True, slots=True)
class FieldDescription:
    """A column of a RowDescription."""

    name: str
    type: int
    size: int
    modifier: int = -1


def row_description(fields: Iterable[FieldDescription], formats: Sequence[int]) -> bytes:
    """Return the columns that rows have."""
    listed = list(fields)
    parts = [struct.pack("!H", len(listed))]
    for at, each in enumerate(listed):
        format_ = format_of(formats, at)
        numbers = struct.pack("!IhIhih", 0, 0, each.type, each.size, each.modifier, format_)
        parts += [text_field(each.name), numbers]
    return message(b"T", b"".join(parts))


def error_response(error: PgError) -> bytes:
    """Return an error."""
    severity = "FATAL" if error.is_fatal else "ERROR"
    return message(b"E", _notice_fields(severity, error.sqlstate, error.message, error.hint))


def notice_response(text: str) -> bytes:
    """Return a notice, which clients show beside what they have asked for."""
    return message(b"N", _notice_fields("NOTICE", "00000", text, None))


def _notice_fields(severity: str, sqlstate: str, text: str, hint: str | None) -> bytes:
    fields = {"S": severity, "V": severity, "C": sqlstate, "M": text}
    if hint:
        fields["H"] = hint
    return b"".join(key.encode() + text_field(value) for key, value in fields.items()) + b"\0"
