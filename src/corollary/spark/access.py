"""What the options of the data source say, and the catalog that they open."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial

from corollary.analysis.phrases import suggest_name
from corollary.core.program import Relation
from corollary.core.records.record_structs import FORMS, struct_type
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.database.access.principals import OWNER, AccessRole, Principal
from corollary.database.database import state_of
from corollary.database.engines import create_engine
from corollary.database.history import commit_number, read_point
from corollary.database.options import LOCAL, SEQUENTIAL, DatabaseOptions
from corollary.database.reading.read_access import ReadAccess
from corollary.database.reading.reader import Reader
from corollary.database.state import DatabaseState
from corollary.database.warehouse_store import WarehouseStore
from corollary.errors import AccessError, InputError
from corollary.serve.tokens import TokenStore
from corollary.warehouse.catalog.catalog_rows import Commit
from corollary.warehouse.warehouse import Warehouse

OPTIONS = (
    *("path", "relation", "query", "versionAsOf", "timestampAsOf", "reader", "token", "records"),
    *("readChangeFeed", "startingVersion", "endingVersion", "maxRowsPerTrigger"),
    *("op", "order", "checkpointLocation", "txnAppId", "txnVersion"),
)
"""The options by their names as they are documented; upper and lower case are the same."""
_NAMES = {name.lower(): name for name in OPTIONS}


@dataclass(frozen=True, slots=True)
class DataSourceOptions:
    """The options of a read or a write, checked; `given` has them by their documented names."""

    given: Mapping[str, str]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "DataSourceOptions":
        """Return options.

        Raises:
            InputError: `C1570`, one is unknown, or they contradict each other.
        """
        unknown = [name for name in options if name.lower() not in _NAMES]
        if unknown:
            near = suggest_name(unknown[0].lower(), _NAMES)
            cure = f"the options are {', '.join(f'`{name}`' for name in OPTIONS)}"
            if near is not None:
                cure = near.replace(word := near.split("`")[1], _NAMES[word])
            raise bad_option(f'`format("corollary")` has no option `{unknown[0]}`', cure)
        found = cls({_NAMES[name.lower()]: value for name, value in options.items()})
        found._check()
        return found

    def _check(self) -> None:
        if not self.get("path"):
            raise bad_option("No warehouse is named", 'name it: `.load("wh")` or `.save("wh")`')
        for one, two in (("relation", "query"), ("versionAsOf", "timestampAsOf")):
            if one in self.given and two in self.given:
                raise bad_option(f"Both `{one}` and `{two}` are given", "leave one of them out")
        if "relation" not in self.given and "query" not in self.given:
            raise bad_option(
                "Neither `relation` nor `query` is given",
                'name a relation: `.option("relation", "link")`',
            )
        if self.has_feed and "relation" not in self.given:
            raise bad_option("Changes are those of a `relation`, not of a `query`", "name one")
        if self.records not in FORMS:
            raise bad_option(f"`records` is `struct` or `text`, not `{self.records}`", "say one")

    def get(self, name: str) -> str | None:
        """Return the value of an option, if it is given."""
        return self.given.get(name)

    @property
    def path(self) -> str:
        """The warehouse."""
        return self.given["path"]

    @property
    def has_feed(self) -> bool:
        """Whether changes are read."""
        value = (self.get("readChangeFeed") or "false").lower()
        if value not in ("true", "false"):
            raise bad_option(f"`readChangeFeed` is `true` or `false`, not `{value}`", "say one")
        return value == "true"

    @property
    def records(self) -> str:
        """How records are read."""
        return self.get("records") or "struct"

    def at(self, number: int) -> "DataSourceOptions":
        """Return the options that read the same at a commit."""
        others = {name: each for name, each in self.given.items() if name != "timestampAsOf"}
        return DataSourceOptions({**others, "versionAsOf": str(number)})

    def number(self, name: str) -> int | None:
        """Return the number that an option has, if it is given."""
        text = (self.get(name) or "").strip()
        if name not in self.given or text.isdecimal():
            return int(text) if text else None
        raise bad_option(f"`{name}` is a number, not `{text}`", "write it in digits")


def bad_option(message: str, cure: str) -> InputError:
    """Return the error of an option."""
    return InputError.of("C1570", f"{message}.", None, cure)


@dataclass(frozen=True)
class OpenSource:
    """The catalog of a warehouse, and the commit that is read.

    Attributes:
        commit: None if nothing was committed yet.
        principal: who reads or writes.
        reader: whose grants count; None if everything may be seen.
    """

    options: DataSourceOptions
    warehouse: Warehouse
    commit: Commit | None
    principal: Principal
    reader: str | None

    @property
    def number(self) -> int:
        """The commit that is read, 0 if there is none."""
        return 0 if self.commit is None else self.commit.number

    @property
    def engine(self) -> DatabaseOptions:
        """The engine that reads what is in partitions from their files: workers have no session."""
        has_partitions = self.warehouse.has_partitions(self.number)
        return DatabaseOptions(SEQUENTIAL if has_partitions else LOCAL, log_queries=False)

    @cached_property
    def outline(self) -> ReadAccess:
        """The database without its tuples, as the reader sees it: what there is to read."""
        state, engine = DatabaseState(create_engine()), create_engine()
        store = WarehouseStore(self.warehouse)
        if self.commit is not None:
            loaded = store.program_at(self.commit)
            engine.declare(loaded.normal.relations)
            state.restore(engine, loaded, self.number, frozenset(), frozenset())
        return self._view(state, store)

    def contents(self) -> ReadAccess:
        """Return the database as the reader sees it; relations are read when they are used."""
        new_engine = partial(create_engine, self.engine)
        state, store = DatabaseState(new_engine()), WarehouseStore(self.warehouse, new_engine)
        store.restore_past(state, self.number)
        return self._view(state, store)

    def _view(self, state: DatabaseState, store: WarehouseStore) -> ReadAccess:
        state.is_pinned = True
        if self.reader is None:
            return ReadAccess(state, store)
        return Reader(state, store, self.reader, store.grants)

    def relation(self, name: str) -> Relation:
        """Return a relation that may be seen, its records as they are asked for.

        Raises:
            InputError: there is no such relation.
            AccessError: it was not granted.
        """
        return self.shape(self.outline.relation(name).shape)

    def shape(self, relation: Relation) -> Relation:
        """Return a relation whose types have records where Spark gets structs."""
        types = tuple(_record_or_text(each, self.options.records) for each in relation.types)
        return replace(relation, types=types)

    def key_of(self, relation: Relation) -> tuple[int, ...]:
        """Return the columns of a relation's key."""
        keys = {each.name: each.key for each in state_of(self.outline).program.declarations}
        return tuple(relation.columns.index(each) for each in keys.get(relation.name, ()))


def _record_or_text(type_: Type, form: str) -> Type:
    """Return a type without its records if they are read as texts: some have no structs."""
    if type_.record is None:
        return type_
    try:
        struct_type(type_.record)
    except InputError:
        return replace(type_, record=None)
    return type_ if form == "struct" else replace(type_, record=None)


@contextmanager
def open_source(options: DataSourceOptions) -> Iterator[OpenSource]:
    """Open the catalog of a warehouse, for as long as something is planned.

    Raises:
        WarehouseError: there is none, or no such commit.
        AccessError: the token is not valid, or is that of another reader.
    """
    warehouse = Warehouse.open(options.path, create=False)
    try:
        point: object = options.number("versionAsOf")
        if (time := options.get("timestampAsOf")) is not None:
            point = read_point(time)
            if isinstance(point, int):
                raise bad_option(f"`timestampAsOf` is a time, not `{time}`", "use `versionAsOf`")
        number = None if point is None else commit_number(warehouse, read_point(point))
        principal, reader = _reader_of(options, warehouse)
        yield OpenSource(options, warehouse, warehouse.commit_at(number), principal, reader)
    finally:
        warehouse.close()


def _reader_of(options: DataSourceOptions, warehouse: Warehouse) -> tuple[Principal, str | None]:
    """Return who asks, and whose grants count."""
    reader, secret = options.get("reader"), options.get("token")
    if secret is None:
        return (OWNER if reader is None else Principal(reader, AccessRole.READ)), reader
    found = TokenStore(warehouse.catalog).principal_of(secret)
    if found is None or (found.role is AccessRole.READ and reader not in (None, found.name)):
        raise AccessError.of(
            "C1622",
            "The token is not valid." if found is None else f"The token is not `{reader}`'s.",
            None,
            "make one with `corollary token add W NAME --role read`",
        )
    return found, found.name if found.role is AccessRole.READ else reader
