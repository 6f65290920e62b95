"""Runs the Python of a project without a server: plans are recorded, nothing is executed.

A session of Spark Connect without a channel takes the place of `spark`. What a plan is made of
remembers where the user's text made it, by the offsets of the call. What would ask a server is
answered from what is known here (settings, types in DDL), or fails at once, at the user's line.
"""

import os
import re
import sys
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, SimpleNamespace
from typing import Any, NoReturn

import pyspark
import pyspark.sql.connect.expressions as connect_expressions
import sqlglot
from pyspark.errors import PySparkException
from pyspark.sql.connect.plan import LogicalPlan
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import DataType, StructType, _parse_datatype_json_value
from sqlglot import exp

from corollary.errors import Diagnostic, InputError
from corollary.source import SourceFile, Span

DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.session.localRelationCacheThreshold": str(1 << 40),
    "spark.sql.session.localRelationSizeLimit": str(1 << 40),
    "spark.sql.session.localRelationChunkSizeRows": "10000",
    "spark.sql.session.localRelationChunkSizeBytes": str(1 << 24),
    "spark.sql.session.localRelationBatchOfChunksSizeBytes": str(1 << 30),
    "spark.sql.execution.pandas.convertToArrowArraySafely": "false",
    "spark.sql.execution.pandas.inferPandasDictAsMap": "false",
    "spark.sql.pyspark.inferNestedDictAsStruct.enabled": "false",
    "spark.sql.pyspark.legacy.inferArrayTypeFromFirstElement.enabled": "false",
    "spark.sql.pyspark.legacy.inferMapTypeFromFirstPair.enabled": "false",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.execution.pythonUDF.arrow.enabled": "false",
}
"""The settings that Spark's own client asks for, and those that say what queries mean."""

_ENVIRONMENT = {
    "SPARK_CONNECT_MODE_ENABLED": "1",
    "SPARK_REMOTE": "sc://recording",
    "SPARK_LOCAL_REMOTE": "1",
}
_ANALYSIS = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"
_FORBIDDEN = (
    f"The function of a dataset asks for columns or rows, which Spark refuses, too: {_ANALYSIS}.",
    "return a DataFrame that is only described, or do this outside of the function",
)


# --- places ------------------------------------------------------------------------------------


class Places:
    """Where the text of the file that runs makes relations and expressions.

    Attributes:
        file: the file that runs; None for one that has no text.
        relations: the offsets of the call that made a relation, by its plan id.
    """

    def __init__(self) -> None:
        self.file: SourceFile | None = None
        self.path = ""
        self.relations: dict[int, tuple[int, int]] = {}

    def enter(self, path: str, file: SourceFile) -> None:
        """Let a file be the one that runs."""
        self.path, self.file = path, file

    def frame(self) -> FrameType | None:
        """Return the innermost frame of the file that runs."""
        frame: FrameType | None = sys._getframe(2)  # noqa: SLF001
        while frame is not None and frame.f_code.co_filename != self.path:
            frame = frame.f_back
        return frame

    def offsets(self) -> tuple[int, int] | None:
        """Return where the call stands that goes on."""
        frame = self.frame()
        if frame is None or self.file is None:
            return None
        return offsets_in(frame.f_code, frame.f_lasti, self.file.text)

    def span(self) -> Span | None:
        """Return the span of the call that goes on."""
        found = self.offsets()
        return None if found is None or self.file is None else span_at(self.file, *found)

    def origin(self) -> SimpleNamespace:
        """Return the origin of an expression, as Spark Connect sends it."""
        found = self.offsets()
        site = None if found is None else f"{found[0]}:{found[1]}"
        return SimpleNamespace(fragment="" if site else None, call_site=site)

    def line_span(self, number: int | None) -> Span:
        """Return the span of a line."""
        assert self.file is not None
        text = self.file.line(number or 1)
        column = len(text) - len(text.lstrip()) + 1
        line = number or 1
        return Span(self.file, line, column, line, max(len(text), column) + 1)


def span_at(file: SourceFile, start: int, end: int) -> Span:
    """Return the span between two offsets; SQL's own function does that."""
    from corollary.frontends.sql.parse import span_between

    return span_between(file, start, end)


@lru_cache(maxsize=4096)
def offsets_in(code: CodeType, instruction: int, text: str) -> tuple[int, int] | None:
    """Return the offsets of the expression that an instruction belongs to; columns are bytes."""
    place = next(islice(code.co_positions(), instruction // 2, None), None)
    if place is None or None in place:
        return None
    line, end_line, column, end_column = place
    assert line is not None
    assert end_line is not None
    starts = _line_offsets(text)
    if end_line > len(starts):
        return None

    def offset(number: int, units: int | None) -> int:
        start = starts[number - 1]
        end = starts[number] if number < len(starts) else len(text)
        return start + len(text[start:end].encode()[:units].decode(errors="ignore"))

    return offset(line, column), offset(end_line, end_column)


@lru_cache(maxsize=64)
def _line_offsets(text: str) -> tuple[int, ...]:
    return (0, *(at + 1 for at, character in enumerate(text) if character == "\n"))


# --- the session -------------------------------------------------------------------------------


class OfflineClient:
    """What a session asks in place of a server.

    Attributes:
        is_in_query: whether the query function of a flow runs.
        describe: returns the columns of a relation, where Spark would tell them, too.
    """

    _user_id = None
    is_closed = False

    def __init__(self, settings: Mapping[str, str], places: Places) -> None:
        self._session_id = str(uuid.uuid4())
        self.settings = {**DEFAULTS, **settings}
        self.places = places
        self.is_in_query = False
        self.describe: Callable[[Any], StructType] | None = None
        self.thread_local = threading.local()

    def config(self, operation: Any) -> SimpleNamespace:
        """Answer what is asked about settings; those that a program sets are its own."""
        kind = operation.WhichOneof("op_type")
        pairs: list[tuple[str, str | None]] = []
        match kind:
            case "set":
                self.settings.update((each.key, each.value) for each in operation.set.pairs)
            case "unset":
                for key in operation.unset.keys:
                    self.settings.pop(key, None)
            case "get_with_default":
                pairs = [
                    (each.key, self.settings.get(each.key, each.value or None))
                    for each in operation.get_with_default.pairs
                ]
            case "get_all":
                pairs = list(self.settings.items())
            case "is_modifiable":
                pairs = [(key, "true") for key in operation.is_modifiable.keys]
            case _:
                asked = getattr(operation, kind).keys
                if kind == "get" and (missing := [k for k in asked if k not in self.settings]):
                    raise self.mistake(
                        f"The setting `{missing[0]}` is not known without a server.",
                        "set it in `configuration` of the specification, or give a default",
                    )
                pairs = [(key, self.settings.get(key)) for key in asked]
        return SimpleNamespace(pairs=pairs, warnings=[])

    def get_configs(self, *keys: str) -> tuple[str | None, ...]:
        """Return the values of settings."""
        return tuple(self.settings.get(key) for key in keys)

    def get_config_dict(self, *keys: str) -> dict[str, str | None]:
        """Return settings with their values."""
        return {key: self.settings.get(key) for key in keys}

    def _analyze(self, method: str, **given: Any) -> SimpleNamespace:
        if method == "ddl_parse":
            try:
                return SimpleNamespace(parsed=ddl_type(given["ddl_string"]))
            except (sqlglot.errors.SqlglotError, KeyError, ValueError) as problem:
                raise self.mistake(
                    f"The type `{given['ddl_string']}` cannot be read.",
                    f"write it as Spark does, such as `a INT, b STRING` ({type(problem).__name__})",
                ) from None
        raise self.refusal(method)

    def execute_command(
        self, command: Any, *_: Any, **__: Any
    ) -> tuple[None, dict[str, Any], None]:
        """Take what `spark.sql` asks; it stays a plan."""
        if command.WhichOneof("command_type") != "sql_command":
            raise self.refusal(command.WhichOneof("command_type") or "command")
        return None, {}, None

    def _set_relation_in_plan(self, plan: Any, relation: Any) -> None:
        plan.root.CopyFrom(relation)

    def schema(self, plan: Any) -> StructType:
        """Return columns, where they are known; Spark refuses that in functions of datasets."""
        if self.describe is None:
            raise self.refusal("schema")
        return self.describe(plan.root)

    def add_threadlocal_user_context_extension(self, _: Any) -> str:
        """Take what Spark's own loader adds for its server."""
        return ""

    def remove_user_context_extension(self, _: str) -> None:
        """Take it away."""

    def close(self) -> None:
        """Close nothing."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)

        def refused(*_: Any, **__: Any) -> NoReturn:
            raise self.refusal(name)

        return refused

    def refusal(self, name: str) -> InputError:
        """Return the error of something that a server would do."""
        if self.is_in_query:
            return self.mistake(*_FORBIDDEN)
        words = name.strip("_").replace("_", " ")
        return self.mistake(
            f"This asks Spark to do something while the project is loaded ({words}).",
            "leave out `collect()`, `count()`, `show()`, `write`, `df.schema` and their like: a "
            "project only says what its datasets are",
        )

    def mistake(self, message: str, note: str) -> InputError:
        """Return an error at the user's line."""
        return InputError.of("C1702", message, self.places.span(), note)


class RecordingSession(SparkSession):
    """A session that records plans, and has no server."""

    def __init__(self, client: OfflineClient) -> None:
        self._client = client  # type: ignore[assignment]
        self._session_id = client._session_id  # noqa: SLF001
        self.release_session_on_close = False

    @property
    def client(self) -> Any:
        """What it asks."""
        return self._client

    @property
    def is_stopped(self) -> bool:
        """Whether it has stopped, which it cannot."""
        return False

    def stop(self) -> None:
        """Stop nothing: a program may say this at its end."""


def ddl_type(text: str) -> DataType:
    """Return the type that DDL says: one type, or the columns of a table.

    >>> ddl_type("a INT, b ARRAY<STRING>").simpleString()
    'struct<a:int,b:array<string>>'
    """
    try:
        node = sqlglot.parse_one(text, into=exp.DataType, dialect="spark")
    except sqlglot.errors.ParseError:
        node = sqlglot.parse_one(f"STRUCT<{text}>", into=exp.DataType, dialect="spark")
    return _parse_datatype_json_value(_type_json(node))


_JSON_NAMES = {
    "TINYINT": "byte",
    "SMALLINT": "short",
    "INT": "integer",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "TEXT": "string",
    "BOOLEAN": "boolean",
    "BINARY": "binary",
    "DATE": "date",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
    "VARIANT": "variant",
    "TIME": "time(6)",
}


def _type_json(node: Any) -> Any:
    """Return a type as Spark's JSON of types has it."""
    if isinstance(node.this, exp.Interval):
        unit = node.this.args["unit"]
        ends = [unit.this, unit.expression] if isinstance(unit, exp.IntervalSpan) else [unit]
        return f"interval {' to '.join(each.name.lower() for each in ends)}"
    name, inside = node.this.name, node.expressions
    match name:
        case "ARRAY":
            return {"type": "array", "elementType": _type_json(inside[0]), "containsNull": True}
        case "MAP":
            key, value = map(_type_json, inside)
            return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
        case "STRUCT":
            fields = [
                {
                    "name": each.name,
                    "type": _type_json(each.args["kind"]),
                    "nullable": each.find(exp.NotNullColumnConstraint) is None,
                    "metadata": {},
                }
                for each in inside
            ]
            return {"type": "struct", "fields": fields}
        case "DECIMAL":
            digits = [int(each.name) for each in inside]
            precision, scale = [*digits, *(10, 0)[len(digits) :]]
            return f"decimal({precision},{scale})"
        case "VARCHAR" | "CHAR" if inside:
            return f"{name.lower()}({inside[0].name})"
    return _JSON_NAMES[name]


# --- what the user's text raises ---------------------------------------------------------------


_ELSEWHERE = {
    "view": "write `@dp.temporary_view`",
    "expect": "filter the rows, or check them by `CREATE ASSERTION` of the database",
    "apply_changes": "write `dp.create_auto_cdc_flow(…)`",
    "create_auto_cdc_from_snapshot_flow": "compare the snapshots in a materialized view",
    "read": "write `spark.read.table(…)`",
    "read_stream": "write `spark.readStream.table(…)`",
    "create_target_table": "write `dp.create_streaming_table(…)`",
}
"""What only Databricks has in its module of pipelines, and what to write."""


@contextmanager
def telling(places: Places) -> Iterator[None]:
    """Say of whatever the user's text raises where that is.

    Raises:
        InputError: it raises something.
    """
    file = places.file
    assert file is not None
    try:
        yield
    except InputError:
        raise
    except SyntaxError as problem:
        line, column = problem.lineno or 1, problem.offset or 1
        span = Span(file, line, column, line, column + 1)
        text = f"Python cannot read this: {problem.msg}."
        raise InputError.of("C1701", text, span, "correct the line") from None
    except Exception as problem:  # noqa: BLE001 (the user's own code)
        raise InputError([_failure(problem, _raised_at(places, problem))]) from None
    except SystemExit as problem:
        text = "The file ends the process while it is loaded."
        span = _raised_at(places, problem)
        raise InputError.of("C1701", text, span, "leave this out") from None


def _raised_at(places: Places, problem: BaseException) -> Span:
    """Return the span of the innermost call of the file in a traceback."""
    found: tuple[int, int] | None = None
    trace, line = problem.__traceback__, 1
    assert places.file is not None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == places.path:
            line = trace.tb_lineno
            found = offsets_in(trace.tb_frame.f_code, trace.tb_lasti, places.file.text)
        trace = trace.tb_next
    return places.line_span(line) if found is None else span_at(places.file, *found)


def _failure(problem: Exception, span: Span) -> Diagnostic:
    """Return what to say of an error that the user's text raised."""
    if isinstance(problem, PySparkException):
        note = f"this is Spark's own error {problem.getCondition()}"
        return Diagnostic("C1701", sentence_of(problem), span, note)
    missing = re.search(r"^module 'pyspark.pipelines' has no attribute '(\w+)'", str(problem))
    if isinstance(problem, AttributeError) and missing:
        if missing[1] == "create_auto_cdc_flow":
            text = f"PySpark {pyspark.__version__} has no `create_auto_cdc_flow`."
            note = "install PySpark 4.3, or write `CREATE FLOW … AS AUTO CDC INTO …` in a SQL file"
            return Diagnostic("C1703", text, span, note)
        word = "expect" if missing[1].startswith("expect") else missing[1]
        note = _ELSEWHERE.get(word, "see the documentation of `pyspark.pipelines`")
        text = f"Spark's pipelines have no `{missing[1]}`; it is of Databricks."
        return Diagnostic("C1703", text, span, note)
    if isinstance(problem, ModuleNotFoundError) and problem.name == "dlt":
        text = "Spark's pipelines are not called `dlt`; that is of Databricks."
        return Diagnostic("C1703", text, span, "write `from pyspark import pipelines as dp`")
    words = " ".join(f"{type(problem).__name__}: {problem}".split()).removesuffix(".")
    return Diagnostic("C1701", f"The file fails while it is loaded: {words}.", span, "correct it")


def sentence_of(problem: PySparkException) -> str:
    """Return Spark's words as a sentence."""
    words = " ".join((problem.getMessage() or str(problem)).split())
    return words if words.endswith(".") else f"{words}."


# --- running -----------------------------------------------------------------------------------


@contextmanager
def recording(session: RecordingSession, root: Path) -> Iterator[None]:
    """Let a session be the active one, of programs in a directory; all is put back afterwards."""
    places = session.client.places
    fresh = LogicalPlan._fresh_plan_id  # noqa: SLF001

    def fresh_plan_id() -> int:
        number = fresh()
        found = places.offsets()
        if found is not None:
            places.relations[number] = found
        return number

    with ExitStack() as stack:
        for key, value in _ENVIRONMENT.items():
            stack.enter_context(_replaced(os.environ, key, value))
        active = SparkSession._active_session  # noqa: SLF001
        stack.enter_context(_assigned(active, "session", session))
        stack.enter_context(_assigned(SparkSession, "_default_session", session))
        stack.enter_context(_assigned(LogicalPlan, "_fresh_plan_id", staticmethod(fresh_plan_id)))
        stack.enter_context(_assigned(connect_expressions, "current_origin", places.origin))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # of pyspark: what a server would take long for
        before, path = Path.cwd(), list(sys.path)
        os.chdir(root)
        try:
            yield
        finally:
            os.chdir(before)
            sys.path[:] = path


@contextmanager
def _assigned(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Give an attribute another value for a while; one that is not there is not made."""
    missing = object()
    before = vars(owner).get(name, missing)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


@contextmanager
def _replaced(mapping: Any, key: str, value: str) -> Iterator[None]:
    before = mapping.get(key)
    mapping[key] = value
    try:
        yield
    finally:
        if before is None:
            mapping.pop(key, None)
        else:
            mapping[key] = before
