"""Exports a whole warehouse as plain files, and makes a warehouse of such an export.

| file | holds |
|---|---|
| `manifest.json` | the version of this layout, the files, positions of sources, grants, keys |
| `program.dl` | the program, as text |
| `relations/*.parquet` | the tuples that one writer has given to one base relation |

Every version reads every layout up to its own, whatever the format of the warehouse is: this is the
way between versions that have no other. The tuples of a relation with copies (`bag`) have their
number in a last column. All that is derived is computed again. History, alerts that are not
delivered, the query log, and tokens (an export is to be shown) stay behind.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corollary.analysis.today import TODAY_RELATION
from corollary.console import Console
from corollary.core.arrow import nullary_table, schema_of, to_python
from corollary.core.engine import Limits
from corollary.core.printer import print_program
from corollary.core.program import NormalProgram, Program
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.database.access.principals import OWNER
from corollary.database.alterations import base_tuples
from corollary.database.commit import TransactionRequest
from corollary.database.database import Database, state_of, warehouse_of
from corollary.database.pending_commit import DeferredOperations
from corollary.database.program.loaded_program import load_program
from corollary.database.program.places import stored_program, with_sql_places
from corollary.database.reactions.reactions import ExistingViolations
from corollary.database.state import DatabaseState
from corollary.database.store import MemoryStore
from corollary.database.transaction import Transaction
from corollary.database.upkeep.backup import refuse_copy, require_empty
from corollary.database.writing.day import read_day
from corollary.database.writing.operations import Operation
from corollary.engines.local.engine import LocalEngine
from corollary.errors import InputError, redact_password
from corollary.frontends.datalog.parser import parse
from corollary.maintain.payload import payload_relations_of
from corollary.source import SourceFile
from corollary.version import __version__
from corollary.warehouse.catalog.catalog_rows import NewCommit
from corollary.warehouse.catalog.grants import StoredGrants
from corollary.warehouse.catalog.idempotency_keys import all_digests, all_keys
from corollary.warehouse.files import durable_files
from corollary.warehouse.files.places import Place, place_of, remove_tree
from corollary.warehouse.formats.file_extensions import output_of
from corollary.warehouse.warehouse import RelationDelta, Warehouse

if TYPE_CHECKING:
    import pyarrow as pa

LAYOUT = 1
"""The version of the layout; one that is read stays readable."""

AGAIN = "export the warehouse again"
MANIFEST, PROGRAM, RELATIONS = "manifest.json", "program.dl", "relations"


@dataclass(frozen=True, slots=True)
class TransferResult:
    """What was exported or imported.

    Attributes:
        commit: of which it is, or that has brought it.
        relations: how many base relations have tuples, those of the program text aside.
    """

    commit: int
    relations: int
    tuples: int
    grants: int
    keys: int

    def as_json(self) -> dict[str, Any]:
        """Return the result as `export --all` and `import` print it."""
        return asdict(self)


def export_all(database: Database, to: str) -> TransferResult:
    """Write a database into a directory that is empty or does not exist.

    Raises:
        WarehouseError: `C0960`, the directory is not empty; or a file cannot be written.
    """
    root, state, warehouse = place_of(to), state_of(database), warehouse_of(database)
    assert warehouse is not None, "only a durable database is exported"
    require_empty(root)
    try:
        with state.lock:
            return _export(database, warehouse, state, root)
    except BaseException:
        with suppress(OSError):
            remove_tree(root)
        raise


def _export(
    database: Database, warehouse: Warehouse, state: DatabaseState, root: Place
) -> TransferResult:
    database.refresh()
    catalog = warehouse.catalog
    with catalog.read_transaction() as connection:
        digests = all_digests(connection)
        keys = {key: digests.get(key) for key in all_keys(connection)}
    manifest = {
        "layout": LAYOUT,
        "corollary": __version__,
        "commit": database.commits,
        "exported": datetime.now(UTC).isoformat(timespec="seconds"),
        "relations": [
            _write_tuples(root, at, each, state.loaded.normal)
            for at, each in enumerate(base_tuples(state), 1)
        ],
        "sources": catalog.source_positions(),
        "grants": database.grants(),
        "keys": keys,
    }
    durable_files.write(root, PROGRAM, print_program(state.program).encode())
    text = json.dumps(manifest, ensure_ascii=False, indent=1)
    durable_files.write(root, MANIFEST, f"{text}\n".encode())  # the last: it is complete
    return _result(database.commits, manifest)


def _write_tuples(root: Place, at: int, given: Operation, normal: NormalProgram) -> dict[str, Any]:
    """Write the tuples of one writer into a file; return what the manifest says of it."""
    shape = normal.relations[given.relation]
    bags = {counts: bag for bag, counts in normal.bags.items()}
    name = bags.get(given.relation, given.relation)
    file = f"{RELATIONS}/{at}-{re.sub(r'[^A-Za-z0-9]+', '_', name)}.parquet"
    data = BytesIO()
    output_of(given.rows, shape, file).write(data)
    durable_files.write(root, file, data.getvalue())
    return {
        "relation": name,
        "copies": given.relation in bags,
        "part": given.part,
        "file": file,
        "tuples": given.rows.num_rows,
        "sha256": hashlib.sha256(data.getvalue()).hexdigest(),
    }


def import_all(
    source: str, to: str | Path, limits: Limits | None = None, console: Console | None = None
) -> TransferResult:
    """Make a warehouse of an export, in a place where there is none.

    Raises:
        InputError: `C0969`, it is not an export, or damaged, or of a later version.
        WarehouseError: `C0960`, there is a warehouse already; or a file cannot be written.
    """
    root = place_of(source)
    try:
        manifest = json.loads(_read(root, MANIFEST))
    except ValueError as error:
        raise _unreadable(f"`{root / MANIFEST}` is damaged: {error}.", AGAIN) from error
    if manifest.get("layout") not in range(1, LAYOUT + 1):
        raise _unreadable(
            f"`{root}` has layout {manifest.get('layout')}, and this version of corollary reads "
            f"up to {LAYOUT}.",
            "import it with the version that has exported it, or a later one",
        )
    text = _read(root, PROGRAM).decode()
    program = with_sql_places(parse(SourceFile(PROGRAM, text)))
    normal = load_program(program).normal
    tuples = [_read_tuples(root, each, normal) for each in manifest["relations"]]
    warehouse = Warehouse.open(to)
    try:
        catalog = warehouse.catalog
        if catalog.latest_commit() is not None:
            place = redact_password(str(to))
            raise refuse_copy(f"`{place}` holds a warehouse already.", "name another place")
        state = _rebuild(
            program, tuples, existing=ExistingViolations.ACCEPT, limits=limits, console=console
        )
        for reader, relations in manifest["grants"].items():
            StoredGrants(catalog).add(reader, relations)
        new = NewCommit(
            parent=0,
            payload=frozenset(),
            stats={},
            program=stored_program(program, state.loaded.normal),
            sources={name: (each[0], each[1]) for name, each in manifest["sources"].items()},
            keys=tuple(manifest["keys"]),
            digests={key: each for key, each in manifest["keys"].items() if each is not None},
        )
        changes = {
            name: RelationDelta(now := state.engine.read(name), now.slice(0, 0), is_full=True)
            for name, each in state.loaded.normal.relations.items()
            if each.is_stored
        }
        return _result(warehouse.commit(new, changes), manifest)
    finally:
        warehouse.close()


def _read_tuples(root: Place, each: Mapping[str, Any], normal: NormalProgram) -> Operation:
    """Read the tuples of one writer."""
    import pyarrow.parquet as pq

    file = f"{RELATIONS}/{each['file'].rpartition('/')[2]}"
    data = _read(root, file)
    if hashlib.sha256(data).hexdigest() != each["sha256"]:
        raise _unreadable(f"`{root / file}` is not the file that was exported.", AGAIN)
    name = normal.bags.get(each["relation"], "") if each["copies"] else each["relation"]
    shape = normal.relations.get(name)
    if shape is None:
        text = f"`{root / PROGRAM}` does not declare `{each['relation']}` as it was exported."
        raise _unreadable(text, AGAIN)
    table: pa.Table = pq.read_table(BytesIO(data))
    table = table.cast(schema_of(shape)) if shape.arity else nullary_table(each["tuples"])
    return Operation(State.ADDED, name, table, each["part"])


def _read(root: Place, name: str) -> bytes:
    try:
        return (root / name).read_bytes()
    except OSError as error:
        raise _unreadable(
            f"`{root}` is not a whole export: `{name}` cannot be read ({error.strerror or error}).",
            "name a directory that `corollary export --all` has written",
        ) from error


def _unreadable(text: str, cure: str) -> InputError:
    return InputError.of("C0969", text, None, f"{cure}; nothing was changed")


def _result(commit: int, manifest: Mapping[str, Any]) -> TransferResult:
    files = manifest["relations"]
    return TransferResult(
        commit,
        len({each["relation"] for each in files}),
        sum(each["tuples"] for each in files),
        sum(map(len, manifest["grants"].values())),
        len(manifest["keys"]),
    )


def _rebuild(
    program: Program,
    tuples: Iterable[Operation],
    *,
    existing: ExistingViolations,
    limits: Limits | None = None,
    console: Console | None = None,
) -> DatabaseState:
    """Return a state in memory with a program and base tuples, and all that is derived from them.

    The tuples were there before: they set off no trigger.

    Args:
        program: the program.
        tuples: of each part of each base relation, in its columns.
        existing: what is done if they violate constraints.
        limits: bounds on the work.
        console: where progress is shown.

    Raises:
        ConstraintError: a key is violated, or, if that is refused, a constraint.
    """
    operations = list(tuples)
    alone = load_program(program).normal
    written = {each.relation for each in operations}
    written |= {bag for bag, counts in alone.bags.items() if counts in written}
    empty = {
        name: alone.relations[name]
        if name in alone.bases
        else replace(alone.relations[name], is_derived=False)
        for name in sorted(written)
    }
    bags = {bag: counts for bag, counts in alone.bags.items() if bag in empty and counts in empty}
    bare = NormalProgram(empty, (), (), {}, bags=bags)
    engine = LocalEngine()
    engine.declare({**empty, **payload_relations_of(bare)})
    state = DatabaseState(engine, limits=limits, console=console)
    state.restore(engine, replace(state.loaded, normal=bare), 0, frozenset(), frozenset())
    days = [to_python(each.rows) for each in operations if each.relation == TODAY_RELATION]
    state.day = read_day(days[0][0][0]) if days else None
    request = TransactionRequest(OWNER, existing=existing, is_restored=True)
    transaction = Transaction(state, MemoryStore(), request)
    transaction.set_program(program)
    transaction.read(lambda: DeferredOperations(operations, {}))
    transaction.commit()
    return state
