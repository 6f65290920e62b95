"""What the options of the data source say, and the catalog that they open."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

from corollary.analysis.phrases import suggest_name
from corollary.core.program import NormalProgram, Relation
from corollary.core.records.record_structs import FORMS, struct_type
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.database.access.grants import require_grant, unknown_relation
from corollary.database.access.principals import OWNER, AccessRole, Principal
from corollary.database.database import Database
from corollary.database.engines import create_engine
from corollary.database.history import commit_number, read_point
from corollary.database.memory_store import MemoryStore
from corollary.database.opening import open_with
from corollary.database.options import LOCAL, SEQUENTIAL, DatabaseOptions
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.program.names import readable_relation
from corollary.database.reading.read_access import ReadAccess
from corollary.database.reading.reader import Reader
from corollary.database.state import DatabaseState
from corollary.database.warehouse_store import WarehouseStore
from corollary.errors import AccessError, InputError
from corollary.warehouse.catalog.catalog_rows import Commit
from corollary.warehouse.catalog.grants import StoredGrants
from corollary.warehouse.warehouse import Warehouse

OPTIONS = (
    *("path", "relation", "query", "versionAsOf", "timestampAsOf", "reader", "token", "records"),
    *("readChangeFeed", "startingVersion", "endingVersion", "maxRowsPerTrigger"),
    *("op", "order", "checkpointLocation", "txnAppId", "txnVersion"),
)
"""The options by their names as they are documented; upper and lower case are the same."""
_NAMES = {name.lower(): name for name in OPTIONS}
_KEPT = ("path", "relation", "reader", "token", "records")


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
        found.check()
        return found

    def check(self) -> None:
        """Check that the options go together."""
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
        kept = {name: self.given[name] for name in _KEPT if name in self.given}
        return DataSourceOptions({**kept, "versionAsOf": str(number)})

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

    @cached_property
    def loaded(self) -> LoadedProgram | None:
        """The program of the commit."""
        return (
            None if self.commit is None else WarehouseStore(self.warehouse).program_at(self.commit)
        )

    @property
    def normal(self) -> NormalProgram:
        """Its normal form."""
        return NormalProgram({}, (), (), {}) if self.loaded is None else self.loaded.normal

    @cached_property
    def granted(self) -> frozenset[str] | None:
        """What the reader may see; None for everything."""
        if self.reader is None:
            return None
        found = StoredGrants(self.warehouse.catalog).granted_to(self.reader)
        return found | {rows for bag, rows in self.normal.bags.items() if bag in found}

    def relation(self, name: str) -> Relation:
        """Return a relation that may be seen, its records as they are asked for.

        Raises:
            InputError: there is no such relation.
            AccessError: it was not granted.
        """
        if self.reader is not None and self.granted is not None:
            require_grant(self.reader, name, self.granted)
            if name not in self.normal.relations:
                raise unknown_relation(self.reader, name, self.granted)
        return self.shape(readable_relation(self.normal, name))

    def visible(self) -> list[str]:
        """Return the relations that may be seen, without those of the counts of bags."""
        counts = set(self.normal.bags.values())
        return [
            name
            for name, each in self.normal.relations.items()
            if each.is_declared and name not in counts
            if self.granted is None or name in self.granted
        ]

    def shape(self, relation: Relation) -> Relation:
        """Return a relation whose types have records where Spark gets structs."""
        types = tuple(_record_or_text(each, self.options.records) for each in relation.types)
        return replace(relation, types=types)

    def key_of(self, relation: str) -> tuple[int, ...]:
        """Return the columns of a relation's key."""
        declared = () if self.loaded is None else self.loaded.program.declarations
        columns = self.normal.relations[relation].columns
        keys = (each.key for each in declared if each.name == relation)
        return tuple(columns.index(column) for column in next(keys, ()))

    def without_data(self) -> ReadAccess:
        """Return the database without its tuples, to ask what a question would have for columns."""
        assert self.loaded is not None
        state, engine = DatabaseState(create_engine()), create_engine()
        engine.declare(self.normal.relations)
        state.restore(engine, self.loaded, self.number, frozenset(), frozenset())
        if self.reader is None:
            return ReadAccess(state)
        grants = StoredGrants(self.warehouse.catalog)
        return Reader(state, MemoryStore(), self.reader, grants)

    @contextmanager
    def database(self) -> Iterator[Database]:
        """Open the database.

        What is in partitions is read from their files: there is no session in Spark's workers.
        """
        engine = SEQUENTIAL if self.warehouse.has_partitions(self.number) else LOCAL
        options = DatabaseOptions(engine, log_queries=False)
        with open_with(self.options.path, options, create=False) as database:
            yield database

    @contextmanager
    def view(self) -> Iterator[ReadAccess]:
        """Open the database as the reader sees it, as of the commit that was asked for."""
        with self.database() as database:
            view = database if self.reader is None else database.reader(self.reader)
            is_past = {"versionAsOf", "timestampAsOf"} & self.options.given.keys()
            yield view.at(self.number) if is_past else view


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
    from corollary.serve.tokens import TokenStore

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
