"""Index files: relations and code domains as the local engine stores them, to be memory-mapped.

There is one file for the dictionary and one for each relation, with all its orders. Index files are
derived data: one that is missing, of another format or incompatible is rebuilt from values.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
import pyarrow as pa

from corollary.core.types import Domain, Kind
from corollary.data_class import dataclass
from corollary.engines.local.storage.arrangement import Layer, Order, merge_layers
from corollary.engines.local.storage.blocks import Blocks, build_file, file_identity, open_file
from corollary.engines.local.storage.code_range import CodeRange
from corollary.engines.local.storage.layout import Layout, layout_of
from corollary.engines.local.storage.runs import estimate_distinct_values
from corollary.engines.local.storage.stored_run import StoredOrder, StoredRun, store_order
from corollary.engines.local.storage.table import Table

DICTIONARY_FILE = "dictionary"

SavedDomain = tuple[Domain, Mapping[str, Any], list[Blocks]]
"""A code domain as a header and parts of a file."""

# --- the dictionary ------------------------------------------------------------------------------


def build_dictionary_file(saved: Iterable[SavedDomain]) -> bytes:
    """Return the file of all code domains."""
    domains, parts = [], []
    for (kind, scale), header, blocks in saved:
        domains.append([str(kind), scale, header, len(blocks)])
        parts += blocks
    return build_file(DICTIONARY_FILE, {"domains": domains}, parts)


@dataclass(frozen=True, slots=True)
class StoredDictionary:
    """The file of all code domains, opened."""

    identity: int
    domains: tuple[SavedDomain, ...]


def open_dictionary(buffer: pa.Buffer) -> StoredDictionary | None:
    """Open the file of all code domains; return None if it is of another format."""
    opened = open_file(DICTIONARY_FILE, buffer)
    if opened is None:
        return None
    header, parts = opened
    domains = []
    for kind, scale, each, count in header["domains"]:
        domains.append(((Kind(kind), scale), each, parts[:count]))
        parts = parts[count:]
    return StoredDictionary(file_identity(buffer), tuple(domains))


# --- relations -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """The OLD state of a relation, unaffected by later changes to it.

    Attributes:
        distinct_estimates: estimates of the distinct values of its columns, if known.
    """

    relation: str
    domains: tuple[Domain, ...]
    layout: Layout
    orders: Mapping[Order, list[Layer]]
    distinct_estimates: tuple[int, ...]

    @classmethod
    def of(cls, relation: str, table: Table) -> Self:
        """Return the current OLD state of a relation."""
        orders = table.old_layers()
        domains = tuple(type_.domain for type_ in table.types)
        return cls(relation, domains, table.layout, orders, table.distinct_estimates)

    def build_file(self, dictionary: int) -> bytes:
        """Return the file of the relation, which refers to the identity of its dictionary."""
        estimates = self.distinct_estimates
        orders: list[tuple[Order, int]] = []
        parts: list[Blocks] = []
        count = 0
        for order, layers in self.orders.items():
            layout = self.layout.permute(order)
            stored = _as_stored(layers)
            if stored is None:
                words = merge_layers(layers, layout)
                stored = store_order(words, layout)
                estimates = estimates if orders else estimate_distinct_values(words, layout)
            count = stored.count
            orders.append((order, stored.head_columns))
            parts += [Blocks.of([stored.fences.tobytes()]), stored.blocks]
        header = {
            "relation": self.relation,
            "dictionary": dictionary,
            "domains": self.domains,
            "columns": self.layout.columns,
            "count": count,
            "spread": estimates,
            "orders": orders,
        }
        return build_file(_name(self.relation), header, parts)


def _as_stored(layers: list[Layer]) -> StoredOrder | None:
    """Return the blocks that layers were read from, if they are unchanged."""
    if len(layers) == 1 and not layers[0].excluded and isinstance(layers[0].run, StoredRun):
        return layers[0].run.stored
    return None


def _name(relation: str) -> str:
    return f"index of {relation}"


@dataclass(frozen=True, slots=True)
class StoredTable:
    """The file of a relation, opened.

    Attributes:
        dictionary: the identity of the dictionary that its codes belong to.
    """

    relation: str
    dictionary: int
    domains: tuple[Domain, ...]
    layout: Layout
    distinct_estimates: tuple[int, ...]
    orders: Mapping[Order, StoredOrder]

    def is_compatible(self, table: Table) -> bool:
        """Return whether a table has the same code domains."""
        return self.domains == tuple(type_.domain for type_ in table.types)

    def restore(self, table: Table) -> None:
        """Replace the contents of a table by those of the file."""
        runs = {order: StoredRun(stored) for order, stored in self.orders.items()}
        table.restore(self.layout, runs, self.distinct_estimates)


def open_table(name: str, buffer: pa.Buffer) -> StoredTable | None:
    """Open the file of a relation; return None if it is of another format."""
    opened = open_file(name, buffer)
    if opened is None:
        return None
    header, parts = opened
    layout, count = (
        layout_of(tuple(CodeRange(*each) for each in header["columns"])),
        header["count"],
    )
    orders = {}
    for at, (listed, lead) in enumerate(header["orders"]):
        order = tuple(listed)
        permuted = layout.permute(order)
        fences = np.frombuffer(parts[2 * at].block(0), permuted.dtype).copy()
        orders[order] = StoredOrder(permuted, lead, count, fences, parts[2 * at + 1])
    return StoredTable(
        header["relation"],
        header["dictionary"],
        tuple((Kind(kind), scale) for kind, scale in header["domains"]),
        layout,
        tuple(header["spread"]),
        orders,
    )
