"""The requests that a server answers: one class each.

Fields are annotated with their description; the OpenAPI description of the server is made of them.
A request travels between processes as a JSON object of its fields.
"""

import re
import sys
from collections import abc
from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields
from datetime import date
from functools import cache
from types import UnionType
from typing import Annotated, Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

from corollary.analysis.phrases import suggest_name
from corollary.data_class import dataclass
from corollary.database.access.principals import AccessRole
from corollary.database.writing.day import read_day
from corollary.errors import InputError

JSON_MAX_ROWS = 10_000
"""The maximum number of rows in an answer of JSON; a cursor leads to the rest."""

Limit = Annotated[int | None, "The maximum number of rows; at most 10,000 in JSON."]
At = Annotated[
    int | str | None, "A commit, a date or a timestamp at which it is asked; now if not given."
]
Cursor = Annotated[str | None, "Where the last answer has ended, as it has said itself."]
AsArrow = Annotated[bool, "Whether rows come as an Arrow table, all of them, and not as JSON."]
Sort = Annotated[tuple[str, ...], "Columns to order by, such as `dst` or `n desc`."]
Parameters = Annotated[Mapping[str, Any], "The values of parameters, by name."]
MaxRows = Annotated[int, "The maximum number of rows of a relation in the answer."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What somebody asks of a server.

    Attributes:
        role: the least role that may ask it.
        is_write: whether only the process that commits can answer it.
    """

    role: ClassVar[AccessRole] = AccessRole.READ
    is_write: ClassVar[bool] = False

    min_commit: Annotated[
        int | None, "The commit that the answer must have seen, such as that of one's own change."
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRequest(Request):
    """What is not for readers, who see only what was granted to them."""

    role: ClassVar[AccessRole] = AccessRole.WRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest(OwnerRequest):
    """What the process that commits answers."""

    is_write: ClassVar[bool] = True


# --- questions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueryRequest(Request):
    """The answers to a goal: a column for each variable."""

    goal: Annotated[str, 'What the body of a rule could be, such as `link("a", y)`.']
    at: At = None
    limit: Limit = None
    cursor: Cursor = None
    order: Sort = ()
    arrow: AsArrow = False


@dataclass(frozen=True, slots=True)
class SqlRequest(Request):
    """The answer to a question in SQL: one SELECT, WITH or VALUES."""

    sql: Annotated[str, "The question; `:name` stands for a parameter."]
    parameters: Parameters = field(default_factory=dict)
    at: At = None
    limit: Limit = None
    cursor: Cursor = None
    arrow: AsArrow = False


@dataclass(frozen=True, slots=True)
class SqlShapeRequest(Request):
    """The columns that a question in SQL would have, and their types; it is not answered."""

    sql: Annotated[str, "The question; `:name` stands for a parameter."]
    parameters: Parameters = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SqlGivenRequest(Request):
    """The answer to a question in SQL about tables that come with it, too, as an Arrow table.

    It is of a process of the server: files are not read for anybody else.
    """

    sql: Annotated[str, "The question; `:name` stands for a parameter."]
    given: Annotated[
        Mapping[str, Any],
        "By table: its columns with their types, whether it is a bag, an Arrow file.",
    ]
    parameters: Parameters = field(default_factory=dict)
    at: At = None


@dataclass(frozen=True, slots=True)
class RelationsRequest(Request):
    """The relations: columns, kind, number of tuples, last change."""

    at: At = None


@dataclass(frozen=True, slots=True)
class RelationRowsRequest(Request):
    """The tuples of a relation."""

    relation: Annotated[str, "Its name."]
    at: At = None
    where: Annotated[
        tuple[str, ...],
        "Conditions: `column=value`, also with `!=`, `<`, `<=`, `>`, `>=`, and `~` for a text that "
        "is contained.",
    ] = ()
    sort: Sort = ()
    cursor: Cursor = None
    limit: Limit = None
    arrow: AsArrow = False


@dataclass(frozen=True, slots=True)
class DescribeRequest(Request):
    """One relation: its columns, its definition, what it is computed from, and what from it."""

    relation: Annotated[str, "Its name."]
    at: At = None


# --- changes ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ApplyRequest(WriteRequest):
    """A transaction: tuples to insert and delete, and rules to add and remove."""

    changes: Annotated[
        str,
        "JSON lines as `corollary apply --changes` reads them, such as "
        '`{"op": "insert", "relation": "edge", "row": ["a", "b"]}`.',
    ]
    dry_run: Annotated[bool, "Whether to report what would change, and change nothing."] = False
    alone: Annotated[bool, "Whether no other request may share the commit."] = False
    idempotency_key: Annotated[
        str | None,
        "A second request of the token with the same key does nothing, and gets the first answer; "
        "one with another change is refused.",
    ] = None
    today: Annotated[str | None, "The day that `today()` gives from now on."] = None
    max_rows: MaxRows = 1000

    @property
    def day(self) -> date | None:
        """The day that `today()` gives from now on.

        Raises:
            InputError: it is not a day.
        """
        return None if self.today is None else read_day(self.today)


@dataclass(frozen=True, slots=True)
class PushEventsRequest(WriteRequest):
    """Change events for a relation that takes them: `.input p(IO=push, …)`."""

    relation: Annotated[str, "The relation that they are about."]
    events: Annotated[str, "Lines of JSON, one event on each."]
    idempotency_key: Annotated[
        str | None,
        "A second request of the token with the same key does nothing, and gets the first answer; "
        "one with other events is refused.",
    ] = None
    max_rows: MaxRows = 1000


@dataclass(frozen=True, slots=True)
class SqlChangesRequest(WriteRequest):
    """A transaction of INSERT, DELETE and UPDATE statements; others may share its commit."""

    statements: Annotated[tuple[str, ...], "The statements; `:name` stands for a parameter."]
    parameters: Parameters = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SqlTransactionRequest(WriteRequest):
    """A transaction of its own, of writes and definitions in SQL; or what is found in it so far."""

    statements: Annotated[tuple[str, ...], "The statements; `:name` stands for a parameter."]
    parameters: Parameters = field(default_factory=dict)
    then: Annotated[
        Mapping[str, Any] | None,
        "A request that is answered in the state that the statements would leave, which is not "
        "kept: its fields, and its `kind`. Without one, the transaction is made.",
    ] = None
    returned: Annotated[
        Mapping[str, Any],
        "The digests of rows that statements have returned already, by their numbers from 0 on.",
    ] = field(default_factory=dict)
    copied: Annotated[
        Mapping[str, Any],
        "In place of statements: a relation, and an Arrow file with rows for it.",
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WhatIfRequest(WriteRequest):
    """What would follow if a base tuple were deleted, or, if it is not there, inserted."""

    fact: Annotated[str, 'A tuple of a base relation, such as `edge("a", "b")`.']
    max_rows: MaxRows = 1000


# --- history ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CommitsRequest(Request):
    """The commits that are kept, newest first."""

    limit: Annotated[int | None, "The maximum number of commits."] = None
    before: Annotated[int | None, "Only commits before this one."] = None


@dataclass(frozen=True, slots=True)
class CommitRequest(Request):
    """One commit: what it has changed; its plan and timings, if this server has made it."""

    number: Annotated[int, "Its number."]
    max_rows: MaxRows = 1000


@dataclass(frozen=True, slots=True)
class ChangesRequest(Request):
    """What commits have changed, row by row."""

    relation: Annotated[str | None, "The relation; all that may be seen if not given."] = None
    since: Annotated[int | None, "Only commits after this one."] = None
    upto: Annotated[int | None, "The last commit to include."] = None


@dataclass(frozen=True, slots=True)
class DifferenceRequest(Request):
    """What differs between two commits: the tuples that came, and those that went."""

    since: Annotated[int, "The earlier commit."]
    at: At = None
    relation: Annotated[str | None, "The relation; all that may be seen if not given."] = None
    limit: Annotated[int, "The maximum number of tuples of a relation and sign."] = 1000


@dataclass(frozen=True, slots=True)
class EventsRequest(Request):
    """Changes and alerts, as they are committed."""

    relations: Annotated[tuple[str, ...], "The relations whose changes to send."] = ()
    alerts: Annotated[bool, "Whether to send alerts."] = False
    since: Annotated[int | None, "The last commit that is known already; now if not given."] = None


# --- why ----------------------------------------------------------------------------------------

Fact = Annotated[str, 'A tuple, such as `link("a", "b")`.']
Form = Annotated[str, "How the answer is written: `json`, `text`, or `svg`, a picture."]
Depth = Annotated[int | None, "How many levels of a proof a text unfolds; all if not given."]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofRequest(Request):
    """What all questions about proofs have.

    What is left out because of a limit is said.
    """

    form: Form = "json"
    depth: Depth = None
    limit_nodes: Annotated[int | None, "The maximum number of nodes that are shown."] = None
    limit_expanded: Annotated[
        int | None, "The maximum number of tuples whose instances are looked for."
    ] = None
    limit_dry_runs: Annotated[int | None, "The maximum number of changes that are tried out."] = (
        None
    )


@dataclass(frozen=True, slots=True)
class WhyRequest(ProofRequest):
    """A proof of a tuple."""

    fact: Fact
    at: At = None


@dataclass(frozen=True, slots=True)
class WhyNotRequest(ProofRequest):
    """What a tuple lacks that does not hold."""

    fact: Fact
    at: At = None
    insertions: Annotated[
        int | None, "How many base tuples, at most, the sets have that would make it true."
    ] = None


@dataclass(frozen=True, slots=True)
class WhyAddedRequest(ProofRequest):
    """Which changes of a commit have added a tuple."""

    role: ClassVar[AccessRole] = AccessRole.WRITE

    fact: Fact
    commit: Annotated[int | None, "The commit; the last one that did if not given."] = None


@dataclass(frozen=True, slots=True)
class WhyRemovedRequest(ProofRequest):
    """Which changes of a commit have removed a tuple."""

    role: ClassVar[AccessRole] = AccessRole.WRITE

    fact: Fact
    commit: Annotated[int | None, "The commit; the last one that did if not given."] = None


# --- the program --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExplainRequest(OwnerRequest):
    """How a goal or a question in SQL is answered, or the whole program is evaluated."""

    question: Annotated[
        str | None, "A goal, or a question in SQL; the program in force if not given."
    ] = None


@dataclass(frozen=True, slots=True)
class CheckRequest(OwnerRequest):
    """Everything that is wrong or doubtful about a program; it is not put into force."""

    program: Annotated[str, "The text of the program."]


@dataclass(frozen=True, slots=True)
class ProgramRequest(OwnerRequest):
    """The program in force."""

    at: At = None


@dataclass(frozen=True, slots=True)
class PutProgramRequest(WriteRequest):
    """Puts another program into force; what differs is maintained, the data stays."""

    role: ClassVar[AccessRole] = AccessRole.ADMIN

    program: Annotated[str, "The text of the program."]
    dry_run: Annotated[bool, "Whether to report what would change, and change nothing."] = False
    max_rows: MaxRows = 1000


@dataclass(frozen=True, slots=True)
class GraphRequest(Request):
    """Which relation is computed from which: those that may be seen."""

    at: At = None
    form: Form = "json"


# --- the state of things ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StatusRequest(OwnerRequest):
    """What the warehouse holds."""


@dataclass(frozen=True, slots=True)
class AlertsRequest(Request):
    """The alerts of commits that are kept, newest first."""

    limit: Annotated[int, "The maximum number of alerts."] = 100


@dataclass(frozen=True, slots=True)
class QuarantineRequest(OwnerRequest):
    """The malformed records that were set aside."""

    limit: Limit = None
    cursor: Cursor = None
    at: At = None
    arrow: AsArrow = False


@dataclass(frozen=True, slots=True)
class AdviceRequest(OwnerRequest):
    """Which views are worth storing, by the queries that were asked, or by a log of SQL."""

    log: Annotated[
        str, "SELECT statements, each ended by a semicolon; the queries that were asked if empty."
    ] = ""
    budget_bytes: Annotated[
        int | None, "The maximum size of all views of a log together, in bytes."
    ] = None
    names: Annotated[tuple[str, ...], "The names of new views, in order."] = ()


@dataclass(frozen=True, slots=True)
class DocumentsRequest(OwnerRequest):
    """The documents that streams write into: their verdicts, and what they wait for."""

    at: At = None


# --- from JSON and to it ------------------------------------------------------------------------

AnyRequest = TypeVar("AnyRequest", bound=Request)


def request_kind(cls: type[Request]) -> str:
    """Return the name of a kind of requests.

    >>> request_kind(WhatIfRequest)
    'what-if'
    """
    return _kind_of(cls.__name__)


@cache
def _kind_of(name: str) -> str:
    words = re.findall(r"[A-Z][a-z]*", name.removesuffix("Request"))
    return "-".join(words).lower()


def request_kinds() -> dict[str, type[Request]]:
    """Return all classes of requests by their names."""
    found: dict[str, type[Request]] = {}
    waiting: list[type[Request]] = [Request]
    while waiting:
        for each in waiting.pop().__subclasses__():
            waiting.append(each)
            # A dataclass with slots is made twice, and the first one may still be there.
            if getattr(sys.modules[each.__module__], each.__name__) is each:
                found[request_kind(each)] = each
    for each in (OwnerRequest, WriteRequest, ProofRequest):
        found.pop(request_kind(each))
    return found


def request_as_json(request: Request) -> dict[str, Any]:
    """Return the fields of a request that are not at their defaults."""
    found: dict[str, Any] = {}
    for each in fields(request):
        value = getattr(request, each.name)
        if value != each.default:
            found[each.name] = list(value) if isinstance(value, tuple) else value
    return found


def parse_request(
    cls: type[AnyRequest], given: Mapping[str, Any], fixed: Mapping[str, Any] | None = None
) -> AnyRequest:
    """Return a request of a JSON object.

    >>> parse_request(QueryRequest, {"goal": "p(x)", "limit": 3}).limit
    3

    Args:
        cls: the kind of the request.
        given: the object.
        fixed: fields that are decided, and cannot be in it.

    Raises:
        InputError: `C1600`, a field is missing, unknown, or has another type.
    """
    known, hints = fields_of(cls)
    values: dict[str, Any] = {}
    if fixed:
        known = {name: each for name, each in known.items() if name not in fixed}
    for name, value in given.items():
        if name not in known:
            cure = suggest_name(name, known) or f"a `{request_kind(cls)}` has {', '.join(known)}"
            raise InputError.of("C1600", f"There is no field `{name}`.", None, cure)
        values[name] = _value(name, value, hints[name])
    for name, each in known.items():
        if is_needed(each) and name not in values:
            text = f"A `{request_kind(cls)}` needs the field `{name}`."
            raise InputError.of("C1600", text, None, f"give `{name}`, {_described(hints[name])}")
    return cls(**values, **(fixed or {}))


_FIELDS: dict[type, tuple[dict[str, "Field[Any]"], dict[str, Any]]] = {}


def fields_of(cls: type[Request]) -> tuple[dict[str, "Field[Any]"], dict[str, Any]]:
    """Return the fields of a class of requests, and their types."""
    if cls not in _FIELDS:
        _FIELDS[cls] = {each.name: each for each in fields(cls)}, get_type_hints(cls)
    return _FIELDS[cls]


def is_needed(each: "Field[Any]") -> bool:
    """Whether a field has to be given."""
    return each.default is MISSING and each.default_factory is MISSING


def _value(name: str, value: Any, type_: Any) -> Any:
    """Return the value of a field, of the type that it has."""
    for each in alternatives(type_):
        if each is type(None) and value is None:
            return None
        if each in (int, str, bool) and type(value) is each:
            return value
        origin = get_origin(each)
        is_list = origin is tuple and isinstance(value, list | tuple)
        if is_list and all(isinstance(item, str) for item in value):
            return tuple(value)
        if origin is abc.Mapping and isinstance(value, Mapping):
            return dict(value)
    text = f"The field `{name}` has to be {_described(type_)}."
    raise InputError.of("C1600", text, None, f"change the value of `{name}`")


def alternatives(type_: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the type itself."""
    return get_args(type_) if get_origin(type_) in (Union, UnionType) else (type_,)


def _described(type_: Any) -> str:
    names = {int: "a number", str: "a text", bool: "true or false", type(None): "null"}
    return " or ".join(
        names.get(each) or ("a list of texts" if get_origin(each) is tuple else "an object")
        for each in alternatives(type_)
    )
