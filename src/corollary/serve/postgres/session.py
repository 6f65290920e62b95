"""One client's statements: prepared ones, portals, cursors, and the transaction that is open."""

from collections.abc import Sequence
from dataclasses import field, replace
from functools import partial

import pyarrow as pa
from sqlglot import exp

from corollary.data_class import dataclass
from corollary.database.access.principals import AccessRole, Principal
from corollary.database.sql.writes import digest_rows
from corollary.frontends.sql.statements.shapes import (
    SHAPE_MAX_CHARS,
    Constant,
    cut_constants,
    is_question,
    is_write,
)
from corollary.serve import requests
from corollary.serve.answers import Answer, ServiceError
from corollary.serve.postgres import statements as st
from corollary.serve.postgres.catalog.questions import SessionValues, catalog_sql
from corollary.serve.postgres.copy_in import CopyReader
from corollary.serve.postgres.definitions import read_definition
from corollary.serve.postgres.messages import FieldDescription
from corollary.serve.postgres.notifications import Listener, check_notification, tell
from corollary.serve.postgres.parameters import ParameterValue
from corollary.serve.postgres.prepared import (
    OpenCursor,
    PreparedStatement,
    StatementResult,
    change_setting,
    check_target,
    counting_query,
    describe_table,
    example_value,
    prepare_statement,
    returned_fields,
    session_tag,
    show_settings,
    shown_columns,
    text_field,
    write_tag,
)
from corollary.serve.postgres.problems import PgError, not_supported, pg_error
from corollary.serve.postgres.relations import VisibleRelations
from corollary.serve.postgres.running_statement import RunningStatement
from corollary.serve.postgres.settings import VERSION_TEXT, SessionSettings
from corollary.serve.postgres.shared_state import SharedState
from corollary.serve.postgres.subscription import (
    FETCH_MAX_ROWS,
    Subscription,
    Subscriptions,
    added_columns,
    collect_changes,
)
from corollary.serve.postgres.temporary.statements import TemporaryStatements
from corollary.serve.postgres.transaction_block import BlockStatus, TransactionBlock
from corollary.serve.postgres.translation import (
    TranslatedStatement,
    shape_key,
    translated_shape,
    with_values,
)
from corollary.serve.postgres.wire_types import column_type
from corollary.serve.type_texts import parse_type

STATEMENTS_MAX = 1000
"""How many prepared statements a client may have."""
UNFIT = PreparedStatement(st.EmptyStatement())
"""Stands for statements whose constants are not parameters."""
PLAN_COLUMN = "QUERY PLAN"
READS_OWN = "C1379"
"""The code of writes that would have to see each other to be done together."""


@dataclass(slots=True)
class PgSession:
    """The state of one client, from its statements to requests of the service."""

    shared: SharedState
    who: Principal
    database: str
    process: int
    settings: SessionSettings
    block: TransactionBlock = field(default_factory=TransactionBlock)
    prepared: dict[str, PreparedStatement] = field(default_factory=dict)
    cursors: dict[str, OpenCursor] = field(default_factory=dict)
    streams: Subscriptions = field(default_factory=Subscriptions)
    listener: Listener = field(default_factory=Listener)
    notices: list[str] = field(default_factory=list)
    _last_commit: int | None = None
    running: RunningStatement = field(init=False)
    temporary: TemporaryStatements = field(init=False)

    def __post_init__(self) -> None:
        self.temporary = TemporaryStatements(self)
        self.running = RunningStatement(self.shared, self.who, self.settings)

    # --- preparing -----------------------------------------------------------------------------

    async def prepare(self, text: str, oids: Sequence[int]) -> PreparedStatement:
        """Read one statement.

        Args:
            text: the statement.
            oids: the types of its first parameters, 0 where the client does not say one.

        Raises:
            PgError: it cannot be read.
        """
        relations = await self.relations()
        key = text, tuple(oids)
        known = relations.recall(key)
        if isinstance(known, PreparedStatement):
            return known
        read = await self.running.compute(partial(st.read_statements, text), len(text))
        if len(read) > 1:
            raise PgError("42601", "Only one statement can be prepared at once.")
        prepared = await self.read(read[0] if read else st.EmptyStatement(), oids)
        if len(text) <= SHAPE_MAX_CHARS:
            relations.remember(key, prepared)
        return prepared

    async def prepare_shape(self, text: str) -> tuple[PreparedStatement, list[Constant]] | None:
        """Return a statement with its constants as parameters; None if it has to be read as it is.

        What a constant is compared with or written to says the type of the parameter: it has to be
        the constant's own.
        """
        if "$" in text or not (is_question(text) or is_write(text)):
            return None
        shape, constants = cut_constants(text, "$")
        relations = await self.relations()
        key = shape, tuple(map(type, constants))
        known = relations.recall(key)
        if known is None:
            try:
                known = await self.prepare(shape, ())
            except PgError as error:
                if error.is_transient:
                    raise
                known = UNFIT
            is_fit = (
                isinstance(known.statement, st.SelectStatement | st.WriteStatement)
                and not known.is_catalog
            )
            kinds = ["N" if isinstance(each, int) else "S" for each in constants]
            if not is_fit or [each.category for each in known.types] != kinds:
                known = UNFIT
            relations.remember(key, known)
        return None if known is UNFIT else (known, constants)

    async def _question(self, request: requests.Request, *, is_read: bool = False) -> Answer:
        """Return the answer to a request, which sees what waits to be committed."""
        asked = self.block.request(request) if self.block.pending else request
        return await self.running.ask(self.shared.service.call(self.who, asked), is_read=is_read)

    async def relations(self) -> VisibleRelations:
        """Return what statements may name, with what this client has made and nobody else sees."""
        if self.block.has_definitions:
            if self.block.relations is None:
                answer = await self._question(requests.RelationsRequest())
                self.block.relations = VisibleRelations.of_json(answer.json)
            found = self.block.relations
        else:
            known = self.shared.known_relations(self.who)
            if known is None:
                known = await self.running.ask(self.shared.relations(self.who))
            found = known
        return self.block.temporary.merged(found)

    async def read(self, statement: st.PgStatement, oids: Sequence[int] = ()) -> PreparedStatement:
        """Return a statement with its tree and the types of its parameters."""
        if not isinstance(statement, st.StatementWithTree):
            return PreparedStatement(statement)
        relations = await self.relations()
        return await self.running.compute(partial(prepare_statement, statement, oids, relations))

    async def describe(self, prepared: PreparedStatement) -> list[FieldDescription] | None:
        """Return the columns that a statement will have; None if it has no rows.

        Raises:
            PgError: it does not fit the program.
        """
        match prepared.statement:
            case st.ShowStatement(name):
                return [text_field(each) for each in shown_columns(name)]
            case st.ExplainStatement():
                return [text_field(PLAN_COLUMN)]
            case st.FetchStatement(name, _, False):
                return describe_table(self._cursor(name).table)
            case st.WriteStatement():
                return returned_fields(prepared.tree, await self.relations())
            case st.SelectStatement() | st.SubscribeStatement():
                pass
            case _:
                return None
        values = [example_value(each) for each in prepared.types]
        if prepared.is_catalog:
            return describe_table(await self._ask_catalog(prepared, values, is_empty=True))
        translated = await self.translate(prepared, values)
        if prepared.temporary:
            return describe_table(await self._answer(translated, prepared.temporary))
        request = requests.SqlShapeRequest(translated.sql, translated.parameters)
        answer = await self._question(request)
        found = []
        if isinstance(prepared.statement, st.SubscribeStatement):
            found = describe_table(added_columns(prepared.statement))
        for column in answer.json["columns"]:
            type_, modifier = column_type(parse_type(column["type"]))
            found.append(FieldDescription(column["name"], type_.oid, type_.size, modifier))
        return found

    # --- running -------------------------------------------------------------------------------

    async def run(
        self, prepared: PreparedStatement, values: Sequence[ParameterValue], *, commits: bool
    ) -> StatementResult:
        """Run a statement.

        Args:
            prepared: the statement.
            values: of its parameters.
            commits: outside of a transaction, whether a write is committed now; if not, it waits
                for what follows.

        Raises:
            PgError: it fails.
        """
        statement = prepared.statement
        if self.block.status is BlockStatus.FAILED and not isinstance(
            statement, st.TransactionStatement | st.EmptyStatement
        ):
            raise PgError(
                "25P02",
                "The transaction has failed; statements are ignored until its end.",
                "write `ROLLBACK`",
            )
        match statement:
            case st.SelectStatement():
                return StatementResult("SELECT", await self._select(prepared, values))
            case st.WriteStatement():
                return await self._write(prepared, values, commits=commits)
            case st.SubscribeStatement():
                stream = await self._subscribe(prepared, statement, values)
                return StatementResult("SUBSCRIBE", stream.empty, stream=stream)
            case st.CopyStatement(subscription=st.SubscribeStatement() as followed):
                stream = await self._subscribe(prepared, followed, values)
                return StatementResult("COPY", stream.empty, statement, stream=stream)
            case st.FetchStatement(name) if self._cursor(name).stream is not None:
                return await self._fetch_changes(statement)
            case st.CopyStatement():
                table = await self._select(prepared, values)
                return StatementResult("COPY", table, statement)
            case st.CopyFromStatement(form):
                return await self._begin_copy(form)
            case st.DeclareStatement():
                return await self._declare(prepared, statement, values)
            case st.ExplainStatement():
                return StatementResult("EXPLAIN", await self._explain(prepared, values))
            case st.DefinitionStatement(source):
                return StatementResult(await self._define(source))
            case st.NotifyStatement():
                return await self._notify(statement)
            case _:
                found = await self._run_plain(statement)
                await self.streams.keep({each.stream for each in self.cursors.values()})
                return found

    async def _run_plain(self, statement: st.PgStatement) -> StatementResult:
        """Run a statement that reads no relation."""
        match statement:
            case st.BeginStatement(modes):
                return self._begin(modes)
            case st.TransactionStatement("COMMIT"):
                return StatementResult(await self._commit_block())
            case st.TransactionStatement("ROLLBACK", None):
                self._end_block(is_committed=False)
                return StatementResult("ROLLBACK")
            case st.TransactionStatement(action, name):
                return StatementResult(self.block.savepoint(action, name or ""))
            case st.SetStatement():
                return change_setting(self.settings, statement)
            case st.ShowStatement(name):
                return StatementResult("SHOW", show_settings(self.settings, name))
            case st.FetchStatement():
                return self._cursor(statement.name).fetch(statement)
            case st.SessionStatement(action, name):
                return StatementResult(self._forget(action, name))
            case _:
                return StatementResult("")

    def _forget(self, action: str, name: str | None) -> str:
        """Forget cursors, prepared statements or settings; return the command tag."""
        if action == "CLOSE" and name is not None:
            self._cursor(name)
            del self.cursors[name]
        elif action == "DEALLOCATE" and name is not None:
            if self.prepared.pop(name, None) is None:
                raise PgError("26000", f"There is no prepared statement `{name}`.")
        elif action == "DISCARD" and name is None:
            if self.block.is_open:
                raise PgError("25001", "DISCARD ALL is not possible in a transaction.")
            self.prepared.clear()
            self.cursors.clear()
            self.block.temporary.tables.clear()
            self.settings.reset("all")
        elif action == "DISCARD" and (name or "").lower() in ("temp", "temporary"):
            self.block.temporary.tables.clear()
        elif action in ("CLOSE", "DEALLOCATE"):
            (self.cursors if action == "CLOSE" else self.prepared).clear()
        return session_tag(action, name)

    # --- reading -------------------------------------------------------------------------------

    async def _select(
        self, prepared: PreparedStatement, values: Sequence[ParameterValue]
    ) -> pa.Table:
        if prepared.is_catalog:
            return await self._ask_catalog(prepared, values)
        translated = await self.translate(prepared, values)
        return await self._answer(translated, prepared.temporary)

    async def _answer(
        self, translated: TranslatedStatement, temporary: frozenset[str] = frozenset()
    ) -> pa.Table:
        """Return the rows of a question, which sees at least what this client has written."""
        answer = await self.ask_question(translated, temporary)
        assert answer.table is not None
        return answer.table

    async def ask_question(
        self, translated: TranslatedStatement, temporary: frozenset[str]
    ) -> Answer:
        """Answer a question, with the temporary tables that it reads."""
        text, values = translated.sql, translated.parameters
        at, least = self.block.snapshot, self._last_commit
        request: requests.SqlRequest | requests.SqlGivenRequest
        if temporary:
            given = self.block.temporary.given(temporary)
            request = requests.SqlGivenRequest(text, given, values, at, min_commit=least)
        else:
            request = requests.SqlRequest(text, values, at, arrow=True, min_commit=least)
        answer = await self._question(request, is_read=True)
        if self.block.status is BlockStatus.OPEN and self.settings.has_snapshot:
            self.block.snapshot = answer.commit
        return answer

    async def _ask_catalog(
        self,
        prepared: PreparedStatement,
        values: Sequence[ParameterValue],
        *,
        is_empty: bool = False,
    ) -> pa.Table:
        assert prepared.tree is not None
        session = SessionValues(
            self.who.name,
            self.database,
            self.process,
            VERSION_TEXT,
            self.settings.get,
            (lambda _, value, __: value) if is_empty else self._set_config,
        )
        sql = await self.running.compute(partial(catalog_sql, prepared.tree, values, session))
        if is_empty:
            sql = f"SELECT * FROM ({sql}) AS asked LIMIT 0"  # noqa: S608 - a tree was written
        running = self.shared.run_catalog_query(self.who, self.database, sql)
        return await self.running.ask(running, is_read=True)

    async def _explain(
        self, prepared: PreparedStatement, values: Sequence[ParameterValue]
    ) -> pa.Table:
        """Return the lines of the plan of a question."""
        translated = await self.translate(prepared, values)
        request = requests.ExplainRequest(translated.sql, min_commit=self._last_commit)
        answer = await self._question(request, is_read=True)
        return pa.table({PLAN_COLUMN: answer.json["text"].rstrip("\n").split("\n")})

    def _set_config(self, name: str, value: str, is_local: bool) -> str:
        self.settings.set(name, value, is_local=is_local)
        return self.settings.get(name) or ""

    async def translate(
        self, prepared: PreparedStatement, values: Sequence[ParameterValue], prefix: str = "p"
    ) -> TranslatedStatement:
        """Return a statement in Corollary's SQL, with values for its parameters."""
        assert prepared.tree is not None
        key = shape_key(values, prefix)
        known = None if key is None else prepared.translations.get(key)
        if known is not None:
            return known.with_values(values)
        translated = await self.running.compute(partial(with_values, prepared.tree, values, prefix))
        shape = None if key is None else translated_shape(prepared.tree, translated, prefix)
        if shape is not None:
            prepared.translations[key] = shape
        return translated

    # --- writing -------------------------------------------------------------------------------

    async def _write(
        self, prepared: PreparedStatement, values: Sequence[ParameterValue], *, commits: bool
    ) -> StatementResult:
        tree = prepared.tree
        assert isinstance(tree, exp.Insert | exp.Delete | exp.Update)
        if self.block.temporary.named(tree.this) is not None:
            return await self.temporary.write(prepared, values)
        self._require(AccessRole.WRITE, "change data")
        if prepared.temporary:
            self.block.pending.append(await self.temporary.insert_from(prepared, values))
            if commits and not self.block.is_open:
                await self.commit_pending()
            return StatementResult(f"INSERT 0 {self.temporary.rows}")
        check_target(tree, await self.relations())
        translated = await self.translate(prepared, values, f"s{len(self.block.pending)}p")
        tag, answer = write_tag(tree), None
        is_first = not (self.block.pending and tree.args.get("returning"))
        if commits and is_first and not self.block.is_open:
            self.block.pending.append(translated)
            answer = await self.commit_pending()
        elif tree.args.get("returning") or tree.args.get("conflict"):
            write = requests.SqlChangesRequest((translated.sql,), translated.parameters)
            asked = self.shared.service.call(self.who, self.block.request(write))
            answer = await self.running.ask(asked, is_read=True)
            if answer.table is not None:
                digest = partial(digest_rows, answer.table)
                translated = replace(translated, returned=await self.running.compute(digest))
            self.block.pending.append(translated)
        else:
            rows = await self._count(prepared, values)
            self.block.pending.append(translated)
            return StatementResult(f"{tag} {rows}")
        assert answer is not None
        if answer.table is not None:
            return StatementResult(tag, answer.table)
        return StatementResult(f"{tag} {answer.json['rows'][-1]}")

    def _require(self, role: AccessRole, what: str) -> None:
        """Refuse a change to who may not make it, or in a transaction that only reads.

        Raises:
            PgError: it is not allowed.
        """
        if self.settings.is_read_only:
            raise PgError("25006", f"The transaction is READ ONLY, and cannot {what}.")
        if not self.who.role.includes(role):
            raise PgError(
                "42501",
                f"`{self.who.name}` has the role `{self.who.role}`, and cannot {what}.",
                f"use a token of the role `{role}`",
            )
        if self.settings.has_snapshot and self.block.is_open:
            raise not_supported(
                f"Only transactions with the isolation level READ COMMITTED can {what}.",
                "leave the isolation level out",
            )

    async def _define(self, source: st.StatementSource) -> str:
        """Make a definition, or keep it until the transaction ends; return the command tag."""
        tag = await self.temporary.define(source)
        if tag is not None:
            return tag
        self._require(AccessRole.ADMIN, "define anything")
        relations = await self.relations()
        definition = await self.running.compute(partial(read_definition, source, relations))
        if self.block.is_open and not definition.is_edit:
            raise not_supported(
                f"{definition.tag} is not possible in a transaction.",
                "write `COMMIT` before this statement",
            )
        text = ";\n".join(definition.statements)
        self.block.pending.append(TranslatedStatement(text, {}, is_definition=True))
        self.block.relations = None
        if self.block.is_open:
            await self.relations()  # tries it out, so that a wrong one is refused at once
        else:
            await self.commit_pending()
        return definition.tag

    async def _begin_copy(self, form: st.CopyStatement) -> StatementResult:
        """Return who takes the rows of COPY FROM."""
        assert isinstance(form.source, exp.Select)
        table, relations = form.source.find(exp.Table), await self.relations()
        assert table is not None
        own = self.block.temporary.named(table)
        if own is not None:
            return StatementResult("COPY", reader=CopyReader(own[1].relation, form))
        self._require(AccessRole.WRITE, "change data")
        check_target(exp.Insert(this=table.copy()), relations)
        return StatementResult("COPY", reader=CopyReader(relations[table.name], form))

    async def finish_copy(self, reader: CopyReader) -> StatementResult:
        """Write the rows that were copied: now, or with the transaction that is open.

        Raises:
            PgError: they cannot be written.
        """
        if self.temporary.copy(reader):
            return StatementResult(f"COPY {reader.rows}")
        self.block.pending.append(TranslatedStatement("", {}, copied=reader))
        if not self.block.is_open:
            await self.commit_pending()
        return StatementResult(f"COPY {reader.rows}")

    async def _count(self, prepared: PreparedStatement, values: Sequence[ParameterValue]) -> int:
        """Return how many rows a write finds, before it is committed."""
        tree = prepared.tree
        assert tree is not None
        if isinstance(tree, exp.Insert) and isinstance(tree.expression, exp.Values):
            return len(tree.expression.expressions)
        counted = await self.running.compute(partial(counting_query, tree))
        question = replace(prepared, tree=counted)
        table = await self._answer(await self.translate(question, values))
        return int(table.column(0)[0].as_py())

    async def commit_pending(self) -> Answer | None:
        """Commit the writes that wait; return what they have written, None if nothing waits.

        Raises:
            PgError: they cannot be committed; nothing was changed.
        """
        if not self.block.pending:
            return None
        alone, is_alone = self.block.request(), self.block.is_alone
        copied = [each.copied for each in self.block.pending if each.copied is not None]
        has_definitions = self.block.has_definitions
        self.block.pending.clear()
        shared = requests.SqlChangesRequest(alone.statements, alone.parameters)
        # A commit is not cancelled: nobody would know whether it was made.
        call = partial(self.shared.service.call, self.who)
        try:
            try:
                answer = await call(alone if is_alone else shared)
            except ServiceError as error:
                if not error.has_code(READS_OWN):
                    raise
                answer = await call(alone)
        except ServiceError as error:
            raise pg_error(error) from None
        finally:
            for each in copied:
                each.file.close()
        if has_definitions:
            self.block.relations = None
            self.shared.forget_relations()
            self._note_dropped(answer)
        self._last_commit = answer.commit
        return answer

    def _note_dropped(self, answer: Answer) -> None:
        """Note how many rows have gone with tables, unless the client wants no notices."""
        if self.settings.get("client_min_messages") in ("warning", "error"):
            return
        for name, rows in answer.json["dropped"].items():
            said = "row has" if rows == 1 else "rows have"
            self.notices.append(f"{rows:,} {said} gone with `{name}`; earlier commits keep them.")

    # --- transactions --------------------------------------------------------------------------

    def _begin(self, modes: str) -> StatementResult:
        if not self.block.is_open:
            self.settings.begin(modes)
            self.block.begin()
        return StatementResult("BEGIN" if modes.startswith("BEGIN") else "START TRANSACTION")

    async def _commit_block(self) -> str:
        if self.block.status is BlockStatus.FAILED:
            self._end_block(is_committed=False)
            return "ROLLBACK"
        try:
            await self.commit_pending()
        except PgError:
            self._end_block(is_committed=False)
            raise
        tell(self.block.notifications, self.shared.listeners, self.process)
        self._end_block(is_committed=True)
        return "COMMIT"

    def _end_block(self, *, is_committed: bool) -> None:
        self.settings.end(is_committed=is_committed)
        self.block.end(is_committed=is_committed)
        self.cursors = {name: each for name, each in self.cursors.items() if each.is_held}

    # --- notifications -------------------------------------------------------------------------

    async def _notify(self, statement: st.NotifyStatement) -> StatementResult:
        if statement.action == "LISTEN":
            self.shared.listeners.add(self.listener)
            await self.running.ask(self.listener.listen(self.shared.service, self.who, statement))
        elif statement.action == "UNLISTEN":
            await self.listener.unlisten(statement.channel)
        else:
            check_notification(statement)
            self.block.notifications.append(statement)
            if not self.block.is_open:
                tell(self.block.notifications, self.shared.listeners, self.process)
        return StatementResult(statement.action)

    async def close(self) -> None:
        """End what goes on for the client."""
        self.shared.listeners.discard(self.listener)
        await self.listener.unlisten()
        await self.streams.keep(())

    # --- cursors -------------------------------------------------------------------------------

    async def _declare(
        self,
        prepared: PreparedStatement,
        statement: st.DeclareStatement,
        values: Sequence[ParameterValue],
    ) -> StatementResult:
        if not statement.is_held and not self.block.is_open:
            raise PgError("25P01", "A cursor needs a transaction.", "write `BEGIN`, or `WITH HOLD`")
        if statement.name in self.cursors:
            raise PgError("42P03", f"There is a cursor `{statement.name}` already.")
        if statement.subscription is not None:
            stream = await self._subscribe(prepared, statement.subscription, values)
            cursor = OpenCursor(stream.empty, statement.is_held, stream=stream)
        else:
            cursor = OpenCursor(await self._select(prepared, values), statement.is_held)
        self.cursors[statement.name] = cursor
        return StatementResult("DECLARE CURSOR")

    def _cursor(self, name: str) -> OpenCursor:
        found = self.cursors.get(name)
        if found is None:
            raise PgError("34000", f"There is no cursor `{name}`.")
        return found

    # --- subscriptions -------------------------------------------------------------------------

    async def _subscribe(
        self,
        prepared: PreparedStatement,
        statement: st.SubscribeStatement,
        values: Sequence[ParameterValue],
    ) -> Subscription:
        if prepared.is_catalog or prepared.temporary:
            raise not_supported("Only queries of relations can be followed.")
        if self.block.pending:
            message = "SUBSCRIBE shows what is committed, and this transaction has written."
            raise PgError("25001", message, "write `COMMIT` before it")
        assert prepared.tree is not None
        query, relations = await self.translate(prepared, values), await self.relations()
        asker, followed = (self.shared.answers, self.who), (prepared.tree, values)
        stream = self.streams.begin(asker, statement, query, followed, relations=relations)
        try:
            await self.running.ask(stream.open(), is_read=True)
        except BaseException:
            await self.streams.end(stream)
            raise
        return stream

    async def next_changes(
        self, stream: Subscription, seconds: float | None = None
    ) -> pa.Table | None:
        """Return the next changes of a subscription; None if none come in time."""
        return await self.running.ask(stream.next(seconds), is_read=True, is_endless=True)

    async def _fetch_changes(self, statement: st.FetchStatement) -> StatementResult:
        """Return changes: those that wait, and those that come in time."""
        cursor = self._cursor(statement.name)
        assert cursor.stream is not None
        ask = partial(self.next_changes, cursor.stream)
        cursor.table = await collect_changes(cursor.rest, statement, ask)
        cursor.position = 0
        return cursor.fetch(statement, FETCH_MAX_ROWS)
