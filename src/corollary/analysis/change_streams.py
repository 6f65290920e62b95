"""Streams of change events as sources: the parameters of `.input p(IO=kafka | events | push, …)`.

| parameter | meaning | default |
|---|---|---|
| `format` | `json`: a row; `debezium`: an envelope with `op`, `before`, `after` | `json` |
| `keys` | the columns that tell rows apart | the key of the relation |
| `sequence_by` | the fields that order the events of a key, such as `source.lsn` | their arrival |
| `sequence_type` | the type of a field that is no column | `number` |
| `apply_as_deletes` | the condition of events that delete, such as `op = 'gone'` | none |
| `stored_as_scd_type` | 1: the rows of now; 2: their history | 1 |
| `columns`, `except_columns` | what events fill; fields without a column | all |
| `track_history_columns` | those whose change begins another row of the history | all |
| `timestamp_unit` | what numbers in columns of times are: `ms`, `us`, `ns` | none is accepted |
| `max_events` | how many events a commit takes at most | 1,000,000 |
| `new_columns`, `max_bad` | as for files | |

The words are those of AUTO CDC in Spark's declarative pipelines. Without a key, and without a
condition of deletes, events only add rows.
"""

from collections.abc import Iterator, Sequence

from corollary.core.program import Directive, Relation, RowBound
from corollary.core.types import BOOL, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, Type
from corollary.data_class import dataclass

SEQUENCE, DELETED = "__sequence", "__deleted"
"""The columns of an event beside those of the table."""
START_AT, END_AT = "__START_AT", "__END_AT"
"""The columns of a table of type 2: from which sequence on, and up to which, a row was true."""
BOUNDS = (START_AT, END_AT)

KAFKA, EVENTS, PUSH = "kafka", "events", "push"
CHANNELS = (KAFKA, EVENTS, PUSH)
JSON_ROWS, DEBEZIUM = "json", "debezium"
EVENTS_MAX = 1_000_000
"""How many events a commit takes where nothing is said."""

_WORDS = (
    *("IO", "format", "keys", "sequence_by", "sequence_type", "apply_as_deletes"),
    *("stored_as_scd_type", "columns", "except_columns", "track_history_columns"),
    *("timestamp_unit", "new_columns", "max_bad"),
)
PARAMETERS = {
    KAFKA: (
        *(
            *_WORDS,
            "max_events",
            "connection",
            "servers",
            "topic",
            "properties",
            "starting_offsets",
        ),
        "fail_on_data_loss",
    ),
    EVENTS: (*_WORDS, "max_events", "filename"),
    PUSH: _WORDS,
}
"""The parameters of each channel."""
_SEQUENCE_TYPES = {
    "number": NUMBER,
    "float": FLOAT,
    "symbol": SYMBOL,
    "date": DATE,
    "timestamp": TIMESTAMP,
}
_CHOICES = {
    "format": (JSON_ROWS, DEBEZIUM),
    "sequence_type": tuple(_SEQUENCE_TYPES),
    "stored_as_scd_type": ("1", "2"),
    "timestamp_unit": ("ms", "us", "ns"),
    "new_columns": ("ignore", "refuse"),
    "fail_on_data_loss": ("true", "false"),
}


def is_change_stream(directive: Directive) -> bool:
    """Return whether an `.input` reads change events."""
    return directive.name == "input" and directive.parameter("IO") in CHANNELS


def list_names(text: str) -> tuple[str, ...]:
    """Return the names in a list.

    >>> list_names("source.file, source.pos")
    ('source.file', 'source.pos')
    """
    return tuple(part.strip() for part in text.split(",") if part.strip())


@dataclass(frozen=True, slots=True)
class ChangeStream:
    """How the events of an `.input` change its relation.

    Attributes:
        relation: the one that they change.
        directive: the `.input`.
        keys: the columns that tell its rows apart; none if events only add rows.
        sequence: the fields that order events; none for the order in which they come.
        sequence_type: the type of what orders them.
    """

    relation: Relation
    directive: Directive
    keys: tuple[str, ...]
    sequence: tuple[str, ...]
    sequence_type: Type

    @property
    def has_history(self) -> bool:
        """Whether the relation is of type 2."""
        return self.directive.parameter("stored_as_scd_type") == "2"

    @property
    def is_debezium(self) -> bool:
        """Whether events are envelopes."""
        return self.directive.parameter("format") == DEBEZIUM

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the relation that a row of it has of an event."""
        rest = BOUNDS if self.has_history else ()
        return tuple(each for each in self.relation.columns if each not in rest)

    @property
    def filled(self) -> tuple[str, ...]:
        """The columns that events fill; the others stay null."""
        taken = list_names(self.directive.parameter("columns")) or self.columns
        left = list_names(self.directive.parameter("except_columns"))
        return tuple(each for each in self.columns if each in taken and each not in left)

    @property
    def silent_fields(self) -> frozenset[str]:
        """The fields of events that are no columns, and known to be none."""
        paths = (*self.sequence, *list_names(self.directive.parameter("except_columns")))
        return frozenset(path.partition(".")[0] for path in paths)

    @property
    def tracked(self) -> tuple[str, ...]:
        """The columns whose change begins another row of the history."""
        given = list_names(self.directive.parameter("track_history_columns"))
        return given or tuple(each for each in self.columns if each not in self.keys)

    @property
    def most(self) -> int:
        """How many events a commit takes."""
        return int(self.directive.parameter("max_events") or EVENTS_MAX)

    def type_of(self, column: str) -> Type:
        """Return the type of a column."""
        return self.relation.types[self.relation.columns.index(column)]

    def shape(self, columns: Sequence[str]) -> Relation:
        """Return the relation with some of its columns only."""
        types = tuple(map(self.type_of, columns))
        return Relation(self.relation.name, tuple(columns), types, is_derived=False)

    @property
    def events(self) -> Relation | None:
        """The base relation of the events that may still count; None if they only add rows.

        Of type 1, the relation itself has their values.
        """
        if not self.keys:
            return None
        kept = self.columns if self.has_history else self.keys
        types = {name: self.type_of(name).with_null(name not in self.keys) for name in kept}
        types |= {SEQUENCE: self.sequence_type, DELETED: BOOL}
        name = f"{self.relation.name}.events"
        return Relation(name, tuple(types), tuple(types.values()), is_derived=False)


def change_stream(relation: Relation, directive: Directive, key: Sequence[str]) -> ChangeStream:
    """Return how the events of an `.input` change its relation, which has a key or none."""
    given = dict(directive.parameters)
    sequence = list_names(given.get("sequence_by", ""))
    own_key = tuple(each for each in key if each != START_AT)
    keys = list_names(given.get("keys", "")) or own_key
    stream = ChangeStream(relation, directive, keys, sequence, NUMBER)
    if not keys and (given.get("apply_as_deletes") or stream.is_debezium):
        keys = stream.columns  # the whole row tells rows apart
    type_ = _SEQUENCE_TYPES[given.get("sequence_type", "number")]
    if len(sequence) > 1:
        type_ = SYMBOL
    elif sequence and sequence[0] in stream.columns:
        type_ = stream.type_of(sequence[0]).with_null(False)
    return ChangeStream(relation, directive, keys, sequence, type_)


def parameter_faults(
    directive: Directive, columns: Sequence[str], key: Sequence[str], *, is_bag: bool
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the parameters of a stream, each with what to write instead.

    Args:
        directive: the `.input`.
        columns: those of its relation.
        key: those of its key.
        is_bag: whether equal rows of it are copies.
    """
    given = dict(directive.parameters)
    for name, value in given.items():
        if name in _CHOICES and value not in _CHOICES[name]:
            choices = " or ".join(f"`{each}`" for each in _CHOICES[name])
            yield f"`{name}={value}` is not a value for `{name}`", choices
        elif name == "max_events" and not (value.isdecimal() and int(value)):
            yield f"`max_events={value}` is not a number of events", "a number greater than 0"
        elif name == "max_bad" and RowBound.parse(value) is None:
            yield f"`max_bad={value}` is not a bound", "a share, a number of rows, or `off`"
        elif not value.strip():
            yield f"`{name}` is empty", "at least one character"
    for name in ("keys", "columns", "track_history_columns"):
        for each in list_names(given.get(name, "")):
            if each not in columns:
                yield f"`{name}` names `{each}`, which is no column", f"some of {_listed(columns)}"
    if given.get("IO") == KAFKA and "topic" not in given:
        yield "A topic is missing", '`topic="…"`'
    if given.get("IO") == KAFKA and not {"connection", "servers", "properties"} & given.keys():
        yield (
            "It is not said where the brokers are",
            '`connection=events`, `servers="host:9092"`, or `properties="…"`',
        )
    has_history = given.get("stored_as_scd_type") == "2"
    keys = list_names(given.get("keys", "")) or tuple(each for each in key if each != START_AT)
    if has_history and not keys:
        yield "A history needs a key", '`keys="…"`, or a `key` of the relation'
    if has_history and set(BOUNDS) - set(columns):
        yield (
            "The relation has no place for when its rows were true",
            f"the columns `{START_AT}` and `{END_AT}?`, of the type of the sequence",
        )
    if is_bag and (keys or "apply_as_deletes" in given or given.get("format") == DEBEZIUM):
        yield "Events by key do not go into a relation with copies", "it without `bag`"


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(f"`{each}`" for each in columns)
