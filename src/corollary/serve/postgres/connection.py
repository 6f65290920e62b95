"""One connection: startup, password, then message after message.

After an error in the extended protocol, messages are skipped until Sync. Writes outside of a
transaction are committed at Sync: if nothing else is before it, at once, so that the answer to the
statement itself says whether it was.
"""

import asyncio
import secrets
import ssl
import time
from collections.abc import Iterator
from dataclasses import field
from functools import partial

import pyarrow as pa

from corollary.data_class import dataclass
from corollary.database.access.principals import Principal
from corollary.serve.postgres import messages as ms
from corollary.serve.postgres import statements as st
from corollary.serve.postgres.channel import OPENING_MAX_BYTES, PgChannel
from corollary.serve.postgres.copy_in import CopyReader
from corollary.serve.postgres.parameters import ParameterValue, decode_parameters
from corollary.serve.postgres.prepared import PreparedStatement, StatementResult, describe_table
from corollary.serve.postgres.problems import PgError
from corollary.serve.postgres.rows import copy_binary, copy_lines, data_rows
from corollary.serve.postgres.scram import MECHANISM, ScramExchange
from corollary.serve.postgres.session import STATEMENTS_MAX, PgSession
from corollary.serve.postgres.settings import REPORTED_SETTINGS, SessionSettings
from corollary.serve.postgres.shared_state import SharedState
from corollary.serve.postgres.subscription import Subscription
from corollary.serve.postgres.transaction_block import BlockStatus

MESSAGES_AT_ONCE = 8
"""The number of messages of a client that are answered before others are served."""
TOKEN_CHECK_SECONDS = 1.0
"""A token that was revoked ends its connections at their next message after this time."""


@dataclass(slots=True)
class Portal:
    """A prepared statement with values: it can be executed, in several goes."""

    prepared: PreparedStatement
    values: list[ParameterValue]
    formats: tuple[int, ...]
    result: StatementResult | None = None
    position: int = 0


@dataclass(slots=True)
class ConnectionContext:
    """What a connection gets from its server."""

    shared: SharedState
    tls: ssl.SSLContext | None
    requires_tls: bool
    sessions: dict[int, "PgConnection"] = field(default_factory=dict)


class PgConnection:
    """The conversation with one client."""

    def __init__(self, channel: PgChannel, context: ConnectionContext) -> None:
        self._channel = channel
        self._context = context
        self._portals: dict[str, Portal] = {}
        self._session: PgSession | None = None
        self._reported: tuple[str | None, ...] = ()
        self._token_checked = 0.0
        self._is_skipping = False
        self._handled = 0
        self.secret = secrets.token_bytes(4)
        self.process = 0
        self.is_idle = False
        self.is_stopping = False

    @property
    def session(self) -> PgSession:
        """The session, once the password was right."""
        assert self._session is not None
        return self._session

    async def close(self) -> None:
        """End what goes on for the client."""
        if self._session is not None:
            await self._session.close()

    # --- startup -------------------------------------------------------------------------------

    async def start(self) -> bool:
        """Begin: TLS, password, settings. Return whether there is a session now.

        Raises:
            PgError: the client is refused.
        """
        opening = ms.read_opening(await self._channel.read_opening())
        is_encrypted = False
        while isinstance(opening, ms.EncryptionRequest):
            tls = self._context.tls
            is_wanted = opening is ms.EncryptionRequest.SSL and not is_encrypted
            if is_wanted and tls is not None:
                self._channel.write(b"S")
                await self._channel.flush()
                await self._channel.start_tls(tls)
                is_encrypted = True
            else:
                self._channel.write(b"N")
                await self._channel.flush()
            opening = ms.read_opening(await self._channel.read_opening())
        if isinstance(opening, ms.CancelRequest):
            self._cancel_other(opening)
            return False
        if self._context.requires_tls and not is_encrypted:
            raise PgError(
                "28000", "Connections need TLS here.", "use sslmode=require", is_fatal=True
            )
        await self._open_session(opening)
        return True

    def _cancel_other(self, request: ms.CancelRequest) -> None:
        other = self._context.sessions.get(request.process)
        if other is not None and secrets.compare_digest(other.secret, request.secret):
            other.session.running.cancel()

    async def _open_session(self, opening: ms.Startup) -> None:
        parameters = dict(opening.parameters)
        user = parameters.pop("user", "")
        if not user:
            raise PgError("28000", "The startup message names no user.", is_fatal=True)
        if parameters.pop("replication", "false").lower() not in ("false", "off", "no", "0"):
            raise PgError("0A000", "Replication is not supported.", is_fatal=True)
        unknown = [name for name in parameters if name.startswith("_pq_.")]
        if opening.minor > ms.PROTOCOL_MINOR or unknown:
            self._channel.write(ms.negotiate_version(unknown))
        who = await self._authenticate(user)
        database = parameters.pop("database", "") or user
        settings = SessionSettings(user)
        for name, value in (_options(parameters.pop("options", "")) | parameters).items():
            settings.set_initial(name, value)
        while not self.process or self.process in self._context.sessions:
            self.process = secrets.randbelow(1 << 31)
        self._session = PgSession(self._context.shared, who, database, self.process, settings)
        self._context.sessions[self.process] = self
        self._channel.when_ended(self._session.running.leave)
        self._session.listener.wake = self._wake
        self._channel.write(ms.AUTHENTICATION_OK)
        self._report_settings()
        self._channel.write(ms.backend_key(self.process, self.secret))
        await self._ready()

    async def _authenticate(self, user: str) -> Principal:
        """Check the password, which is a token, by SCRAM-SHA-256.

        Raises:
            PgError: it is wrong, or there is no such user; nothing tells one from the other.
        """
        mechanisms = ms.text_field(MECHANISM) + b"\0"
        self._channel.write(ms.authentication(ms.AUTHENTICATION_SASL, mechanisms))
        fields = ms.FieldReader(await self._password_message())
        if fields.string() != MECHANISM:
            raise ms.protocol_violation("This SASL mechanism was not offered.")
        verifier, who = await self._context.shared.scram_of(user)
        exchange = ScramExchange(verifier)
        first = exchange.first(fields.sized() or b"")
        self._channel.write(ms.authentication(ms.AUTHENTICATION_SASL_CONTINUE, first))
        final = exchange.final(await self._password_message())
        if final is None or who is None:
            raise PgError(
                "28P01",
                f"The password of the user `{user}` is wrong.",
                "the user is the name of a token, and the password the token itself",
                is_fatal=True,
            )
        self._channel.write(ms.authentication(ms.AUTHENTICATION_SASL_FINAL, final))
        self._token_checked = time.monotonic()
        return who

    async def _password_message(self) -> bytes:
        await self._channel.flush()
        kind, payload = await self._channel.read(OPENING_MAX_BYTES)
        if kind != b"p":
            raise ms.protocol_violation("A password is expected.")
        return payload

    async def _check_token(self) -> None:
        """End the connection if its token was revoked or has expired."""
        if time.monotonic() - self._token_checked < TOKEN_CHECK_SECONDS:
            return
        name = self.session.who.name
        _, who = await self._context.shared.scram_of(name)
        if who != self.session.who:
            raise PgError("57P01", f"The token of `{name}` has ended.", is_fatal=True)
        self._token_checked = time.monotonic()

    # --- message after message -----------------------------------------------------------------

    async def serve(self) -> None:
        """Answer messages until the client leaves.

        Raises:
            PgError: a fatal one, which ends the connection.
            IncompleteReadError: the client has gone.
        """
        while not self.is_stopping:
            self.is_idle = True
            kind, payload = await self._channel.read()
            self.is_idle = False
            self._handled += 1
            if self._handled % MESSAGES_AT_ONCE == 0:
                await asyncio.sleep(0)  # others are served between messages that have come at once
            if kind == b"X":
                return
            if self._is_skipping and kind not in (b"S", b"Q"):
                continue
            self.session.running.begin()
            try:
                await self._check_token()
                read = partial(ms.read_message, kind, payload)
                await self._handle(await self.session.running.compute(read, len(payload)))
            except PgError as error:
                await self._fail(error, is_simple=kind == b"Q")
        raise stopping()

    async def _fail(self, error: PgError, *, is_simple: bool) -> None:
        if error.is_fatal:
            raise error
        self.session.block.fail()
        self._channel.write(ms.error_response(error))
        if is_simple:
            await self._ready()
        else:
            self._is_skipping = True

    async def _handle(self, message: ms.FrontendMessage | None) -> None:
        match message:
            case ms.SimpleQuery():
                await self._simple_query(message)
            case ms.Parse():
                await self._parse(message)
            case ms.Bind():
                await self._bind(message)
            case ms.Describe():
                await self._describe(message)
            case ms.Execute():
                await self._execute(message)
            case ms.Close(kind, name):
                if kind == b"S":
                    self.session.prepared.pop(name, None)
                elif self._portals.pop(name, None) is None:
                    self.session.cursors.pop(name, None)
                self._channel.write(ms.CLOSE_COMPLETE)
            case ms.Signal.SYNC:
                await self._sync()
            case ms.Signal.FLUSH:
                await self._channel.flush()
            case _:
                pass

    async def _sync(self) -> None:
        self._is_skipping = False
        try:
            if not self.session.block.is_open:
                await self.session.commit_pending()
        except PgError as error:
            self._channel.write(ms.error_response(error))
        await self._ready()

    async def _ready(self) -> None:
        if not self.session.block.is_open:
            self._portals.clear()
        self._report_settings()
        for each in self.session.notices:
            self._channel.write(ms.notice_response(each))
        self.session.notices.clear()
        self._write_notifications()
        self._channel.write(ms.ready_for_query(self.session.block.status.encode()))
        await self._channel.flush()

    def _write_notifications(self) -> None:
        """Tell the client what waits for it, between its transactions."""
        listener = self.session.listener
        if listener.waiting and not self.session.block.is_open:
            self._channel.write(b"".join(listener.waiting))
            listener.waiting.clear()

    def _wake(self) -> None:
        """Send what the client listens to, if nothing is being answered."""
        if self.is_idle and not self.session.block.is_open:
            self._write_notifications()
            self._channel.send()

    def _report_settings(self) -> None:
        """Send ParameterStatus for changed settings."""
        values = tuple(map(self.session.settings.get, REPORTED_SETTINGS))
        if values == self._reported:
            return
        before = self._reported or (None,) * len(values)
        for spelled, value, known in zip(REPORTED_SETTINGS.values(), values, before, strict=True):
            if value != known:
                self._channel.write(ms.parameter_status(spelled, value or ""))
        self._reported = values

    # --- the simple protocol -------------------------------------------------------------------

    async def _simple_query(self, message: ms.SimpleQuery) -> None:
        """Run the statements of a text; writes that follow one another are one transaction."""
        self._is_skipping = False
        text = message.text
        if await self._run_shape(text):
            await self._ready()
            return
        read = await self.session.running.compute(partial(st.read_statements, text), len(text))
        if not read:
            self._channel.write(ms.EMPTY_QUERY)
        for at, statement in enumerate(read):
            if at:
                self.session.running.begin()
            has_write_next = at + 1 < len(read) and isinstance(read[at + 1], st.WriteStatement)
            prepared = await self.session.read(statement)
            if prepared.types:
                raise PgError("42P02", "There is no parameter $1.")
            result = await self.session.run(prepared, (), commits=not has_write_next)
            if result.table is not None and result.copy is None:
                self._channel.write(ms.row_description(describe_table(result.table), ()))
            portal = Portal(prepared, [], (), result)
            await self._send_rows(portal, 0)
        await self._ready()

    async def _run_shape(self, text: str) -> bool:
        """Run a statement whose constants are parameters; return whether it was one.

        A question that fails is run as it is written, so that its message speaks of that.
        """
        found = await self.session.prepare_shape(text)
        if found is None or self.session.block.status is BlockStatus.FAILED:
            return False
        prepared, constants = found
        try:
            result = await self.session.run(prepared, constants, commits=True)
        except PgError as error:
            if error.is_transient or isinstance(prepared.statement, st.WriteStatement):
                raise
            return False
        if result.table is not None:
            self._channel.write(ms.row_description(describe_table(result.table), ()))
        await self._send_rows(Portal(prepared, [], (), result), 0)
        return True

    # --- the extended protocol -----------------------------------------------------------------

    async def _parse(self, message: ms.Parse) -> None:
        session = self.session
        if message.name and message.name in session.prepared:
            raise PgError("42P05", f"There is a prepared statement `{message.name}` already.")
        if len(session.prepared) >= STATEMENTS_MAX:
            raise PgError("53400", f"There are {STATEMENTS_MAX:,} prepared statements already.")
        session.prepared[message.name] = await session.prepare(message.text, message.types)
        self._channel.write(ms.PARSE_COMPLETE)

    async def _bind(self, message: ms.Bind) -> None:
        prepared = self.session.prepared.get(message.statement)
        if prepared is None:
            raise PgError("26000", f"There is no prepared statement `{message.statement}`.")
        if message.portal and message.portal in self._portals:
            raise PgError("42P03", f"There is a portal `{message.portal}` already.")
        types, values = prepared.types, message.values
        if len(values) != len(types):
            raise PgError("08P01", f"{len(values)} values are bound to {len(types)} parameters.")
        if len(message.formats) > 1 and len(message.formats) != len(values):
            raise PgError("08P01", "There are other numbers of formats than of values.")
        oids = [each.oid for each in types]
        decode = partial(decode_parameters, values, oids, message.formats)
        decoded = await self.session.running.compute(
            decode, sum(len(each or b"") for each in values)
        )
        self._portals[message.portal] = Portal(prepared, decoded, message.result_formats)
        self._channel.write(ms.BIND_COMPLETE)

    def _portal(self, name: str) -> Portal:
        found = self._portals.get(name)
        if found is None:
            raise PgError("34000", f"There is no portal `{name}`.")
        return found

    async def _describe(self, message: ms.Describe) -> None:
        if message.kind == b"S":
            prepared = self.session.prepared.get(message.name)
            if prepared is None:
                raise PgError("26000", f"There is no prepared statement `{message.name}`.")
            fields = await self.session.describe(prepared)
            types = [each.oid for each in prepared.types]
            self._channel.write(ms.parameter_description(types))
            self._channel.write(ms.NO_DATA if fields is None else ms.row_description(fields, ()))
            return
        cursor = self.session.cursors.get(message.name)
        if cursor is not None and message.name not in self._portals:
            self._channel.write(ms.row_description(describe_table(cursor.table), ()))
            return
        portal = self._portal(message.name)
        if isinstance(portal.prepared.statement, st.SelectStatement | st.SubscribeStatement):
            # The values are known: the answer itself says which columns it has.
            await self._run_portal(portal)
            assert portal.result is not None
            assert portal.result.table is not None
            fields = describe_table(portal.result.table)
        else:
            fields = await self.session.describe(portal.prepared)
        if fields is None:
            self._channel.write(ms.NO_DATA)
            return
        _check_formats(portal.formats, len(fields))
        self._channel.write(ms.row_description(fields, portal.formats))

    async def _run_portal(self, portal: Portal) -> None:
        if portal.result is None:
            is_write = isinstance(portal.prepared.statement, st.WriteStatement)
            commits = is_write and await self._channel.peek() == b"S"
            portal.result = await self.session.run(portal.prepared, portal.values, commits=commits)

    async def _execute(self, message: ms.Execute) -> None:
        portal = self._portal(message.portal)
        await self._run_portal(portal)
        await self._send_rows(portal, message.limit)

    # --- rows ----------------------------------------------------------------------------------

    async def _send_rows(self, portal: Portal, limit: int) -> None:
        """Send rows of a portal, at most `limit` of them unless that is 0, and how it ended."""
        result = portal.result
        assert result is not None
        if isinstance(portal.prepared.statement, st.EmptyStatement):
            self._channel.write(ms.EMPTY_QUERY)
            return
        if result.reader is not None:
            try:
                await self._receive_copy(result.reader)
            except BaseException:
                result.reader.file.close()
                raise
            result = portal.result = await self.session.finish_copy(result.reader)
        if result.stream is not None:
            await self._send_stream(portal, result, result.stream)
        if result.table is None:
            self._channel.write(ms.command_complete(result.tag))
            return
        if result.copy is not None:
            await self._send_copy(result, result.copy)
            return
        left = result.table.num_rows - portal.position
        count = min(left, limit) if limit else left
        zone = self.session.settings.zone
        _check_formats(portal.formats, result.table.num_columns)
        for chunk in data_rows(result.table, portal.position, count, portal.formats, zone):
            await self._channel.write_much(chunk)
        portal.position += count
        if limit and count == limit:
            self._channel.write(ms.PORTAL_SUSPENDED)
            return
        tag = result.tag if result.tag == "SHOW" else f"{result.tag} {count}"
        self._channel.write(ms.command_complete(tag))

    async def _send_stream(
        self, portal: Portal, result: StatementResult, stream: Subscription
    ) -> None:
        """Send rows as they come, until somebody ends it."""
        table, form, zone = result.table, result.copy, self.session.settings.zone
        assert table is not None
        if form is not None:
            self._channel.write(ms.copy_out(table.num_columns, 0))
        has_header = form is not None and form.has_header
        try:
            while True:
                if form is None:
                    chunks = data_rows(table, 0, table.num_rows, portal.formats, zone)
                else:
                    chunks = copy_form(table, zone, form, has_header=has_header)
                    has_header = False
                for chunk in chunks:
                    await self._channel.write_much(chunk)
                await self._channel.flush()
                self.is_idle = True  # the server may stop
                table = await self.session.next_changes(stream)
                assert table is not None
                self.is_idle = False
                await self._check_token()
        finally:
            self.is_idle = False
            await self.session.streams.end(stream)

    async def _receive_copy(self, reader: CopyReader) -> None:
        """Take the lines of COPY FROM.

        Raises:
            PgError: the client breaks off, or a line is no row.
        """
        self._channel.write(ms.copy_in(reader.relation.arity))
        await self._channel.flush()
        while True:
            kind, payload = await self._channel.read()
            match kind:
                case b"d":
                    if reader.feed(payload):
                        await self.session.running.compute(reader.convert)
                case b"c":
                    await self.session.running.compute(partial(reader.convert, is_last=True))
                    return
                case b"f":
                    reason = ms.FieldReader(payload).string()
                    raise PgError("57014", f"The client has ended the COPY: {reason}")
                case b"S" | b"H":
                    pass
                case _:
                    raise ms.protocol_violation("A message of COPY is expected.")

    async def _send_copy(self, result: StatementResult, form: st.CopyStatement) -> None:
        table, zone = result.table, self.session.settings.zone
        assert table is not None
        is_binary = form.format == "binary"
        describe_table(table)
        self._channel.write(ms.copy_out(table.num_columns, int(is_binary)))
        if is_binary:
            chunks = copy_binary(table, zone)
        else:
            chunks = copy_form(table, zone, form, has_header=form.has_header)
        for chunk in chunks:
            await self._channel.write_much(chunk)
        self._channel.write(ms.COPY_DONE + ms.command_complete(f"COPY {table.num_rows}"))


def copy_form(
    table: pa.Table, zone: str, form: st.CopyStatement, *, has_header: bool
) -> Iterator[bytes]:
    """Yield rows as COPY wants them."""
    return copy_lines(
        table,
        zone,
        delimiter=form.delimiter,
        null=form.null,
        quote=form.quote if form.format == "csv" else None,
        has_header=has_header,
    )


def stopping() -> PgError:
    """Return the error of connections that end because the server does."""
    return PgError("57P01", "The server stops.", "connect again when it runs", is_fatal=True)


def _check_formats(formats: tuple[int, ...], columns: int) -> None:
    if len(formats) > 1 and len(formats) != columns:
        raise PgError("08P01", f"There are {len(formats)} formats for {columns} columns.")


def _options(text: str) -> "dict[str, str]":
    """Return the settings of `-c name=value` in the startup message.

    >>> _options("-c geqo=off --timezone=UTC")
    {'geqo': 'off', 'timezone': 'UTC'}
    """
    found = {}
    for part in text.replace("-c ", "--").split():
        name, _, value = part.removeprefix("-c").removeprefix("--").partition("=")
        found[name] = value
    return found
