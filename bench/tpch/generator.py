"""The eight tables of TPC-H at any scale, and what its refresh functions insert and delete.

Made after the specification (section 4.2): sizes, keys, ranges, the rules between columns and the
words; comments are sentences from a pool, and the random numbers are NumPy's. The same seed gives
the same rows.

| table | rows at scale 1 |
|---|---|
| `lineitem` | about 6,000,000, one to seven to an order |
| `orders` | 1,500,000; of 32 keys 8 are used, 8 are left for new orders |
| `partsupp` | 800,000, four suppliers to a part |
| `part`, `customer`, `supplier` | 200,000, 150,000, 10,000 |
| `nation`, `region` | 25, 5 |
"""

import datetime as dt
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bench.data import SEED
from bench.tpch import words

Numbers = npt.NDArray[np.int64]

EPOCH = dt.date(1970, 1, 1)
FIRST_DAY = (dt.date(1992, 1, 1) - EPOCH).days
LAST_DAY = (dt.date(1998, 12, 31) - EPOCH).days - 151
TODAY = (dt.date(1995, 6, 17) - EPOCH).days
SENTENCES = 2_000
"""Comments to choose from."""
COMPLAINTS = 5
"""Suppliers at scale 1,000 of which customers complain, and as many that they recommend."""
LINES_MAX = 7
REFRESHED = 1_500
"""Orders at scale 1 that a refresh inserts, and another deletes."""


@dataclass
class TpchTables:
    """The tables at a scale.

    Attributes:
        tables: by name.
    """

    scale: float
    seed: int = SEED
    tables: dict[str, pa.Table] = field(init=False)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._sentences = pa.array(_sentences(self._random))
        self._customers = max(15, round(150_000 * self.scale))
        self._parts = max(20, round(200_000 * self.scale))
        self._suppliers = max(4, round(10_000 * self.scale))
        self._new = self._gone = 0
        count = 10 * self._customers
        orders, lineitem = self._orders(_spread(np.arange(count), 0))
        self.tables = {
            "region": pa.table(
                {"r_regionkey": np.arange(5), "r_name": words.REGIONS}
            ).append_column("r_comment", self._comments(5)),
            "nation": self._nation(),
            "supplier": self._supplier(),
            "part": self._part(),
            "partsupp": self._partsupp(),
            "customer": self._customer(),
            "orders": orders,
            "lineitem": lineitem,
        }

    @property
    def refreshed(self) -> int:
        """How many orders a refresh inserts or deletes."""
        return max(2, round(REFRESHED * self.scale))

    def new_orders(self) -> dict[str, pa.Table]:
        """Return what the next RF1 inserts: orders and their lines; they are noted as present."""
        keys = _spread(np.arange(self._new, self._new + self.refreshed), 8)
        self._new += self.refreshed
        orders, lineitem = self._orders(keys)
        for name, rows in (("orders", orders), ("lineitem", lineitem)):
            self.tables[name] = pa.concat_tables([self.tables[name], rows])
        return {"orders": orders, "lineitem": lineitem}

    def old_orders(self) -> dict[str, pa.Table]:
        """Return what the next RF2 deletes: orders and their lines; they are no longer present."""
        keys = pa.array(_spread(np.arange(self._gone, self._gone + self.refreshed), 0))
        self._gone += self.refreshed
        found = {}
        for name, column in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
            table = self.tables[name]
            is_old = pc.is_in(table[column], keys)
            found[name] = table.filter(is_old)
            self.tables[name] = table.filter(pc.invert(is_old))
        return found

    # ------------------------------------------------------------------------------------- tables

    def _nation(self) -> pa.Table:
        names, regions = zip(*words.NATIONS, strict=True)
        count = len(names)
        return pa.table(
            {
                "n_nationkey": np.arange(count),
                "n_name": list(names),
                "n_regionkey": list(regions),
                "n_comment": self._comments(count),
            }
        )

    def _supplier(self) -> pa.Table:
        count = self._suppliers
        nation = self._random.integers(0, len(words.NATIONS), count)
        comments = self._comments(count).to_numpy(zero_copy_only=False).astype(object)
        marked = min(count // 2, max(1, round(COMPLAINTS * self.scale)))
        chosen = self._random.permutation(count)[: 2 * marked]
        comments[chosen[:marked]] = "final Customer ideas Complaints sleep"
        comments[chosen[marked:]] = "even Customer deposits Recommends nag"
        return pa.table(
            {
                "s_suppkey": np.arange(1, count + 1),
                "s_name": _numbered("Supplier#", np.arange(1, count + 1)),
                "s_address": self._addresses(count),
                "s_nationkey": nation,
                "s_phone": self._phones(nation),
                "s_acctbal": _cents(self._random.integers(-99_999, 1_000_000, count)),
                "s_comment": pa.array(comments, pa.string()),
            }
        )

    def _part(self) -> pa.Table:
        count = self._parts
        key = np.arange(1, count + 1)
        maker = self._random.integers(1, 6, count)
        colours = [self._pick(words.COLOURS, count) for _ in range(5)]
        return pa.table(
            {
                "p_partkey": key,
                "p_name": pc.binary_join_element_wise(*colours, " "),
                "p_mfgr": _joined("Manufacturer#", maker),
                "p_brand": _joined("Brand#", 10 * maker + self._random.integers(1, 6, count)),
                "p_type": pc.binary_join_element_wise(
                    *(self._pick(each, count) for each in words.TYPES), " "
                ),
                "p_size": self._random.integers(1, 51, count),
                "p_container": pc.binary_join_element_wise(
                    *(self._pick(each, count) for each in words.CONTAINERS), " "
                ),
                "p_retailprice": _cents(_retail(key)),
                "p_comment": self._comments(count),
            }
        )

    def _partsupp(self) -> pa.Table:
        part = np.repeat(np.arange(1, self._parts + 1), 4)
        place = np.tile(np.arange(4), self._parts)
        count = len(part)
        return pa.table(
            {
                "ps_partkey": part,
                "ps_suppkey": self._supplier_of(part, place),
                "ps_availqty": self._random.integers(1, 10_000, count),
                "ps_supplycost": _cents(self._random.integers(100, 100_001, count)),
                "ps_comment": self._comments(count),
            }
        )

    def _customer(self) -> pa.Table:
        count = self._customers
        key = np.arange(1, count + 1)
        nation = self._random.integers(0, len(words.NATIONS), count)
        return pa.table(
            {
                "c_custkey": key,
                "c_name": _numbered("Customer#", key),
                "c_address": self._addresses(count),
                "c_nationkey": nation,
                "c_phone": self._phones(nation),
                "c_acctbal": _cents(self._random.integers(-99_999, 1_000_000, count)),
                "c_mktsegment": self._pick(words.SEGMENTS, count),
                "c_comment": self._comments(count),
            }
        )

    def _orders(self, keys: Numbers) -> tuple[pa.Table, pa.Table]:
        """Return orders of these keys, and their lines."""
        random, count = self._random, len(keys)
        # Customers whose number is divisible by three have no orders.
        buyers = self._customers - self._customers // 3
        chosen = random.integers(0, buyers, count)
        customer = chosen + chosen // 2 + 1
        day = random.integers(FIRST_DAY, LAST_DAY + 1, count)
        lines = random.integers(1, LINES_MAX + 1, count)
        order = np.repeat(np.arange(count), lines)
        total = len(order)
        part = random.integers(1, self._parts + 1, total)
        quantity = random.integers(1, 51, total)
        price = quantity * _retail(part)
        discount, tax = random.integers(0, 11, total), random.integers(0, 9, total)
        shipped = day[order] + random.integers(1, 122, total)
        received = shipped + random.integers(1, 31, total)
        is_open = shipped > TODAY
        returned = np.where(received <= TODAY, 2 * random.integers(0, 2, total), 1)
        lineitem = pa.table(
            {
                "l_orderkey": keys[order],
                "l_partkey": part,
                "l_suppkey": self._supplier_of(part, random.integers(0, 4, total)),
                "l_linenumber": np.arange(total) - np.repeat(np.cumsum(lines) - lines, lines) + 1,
                "l_quantity": _cents(100 * quantity),
                "l_extendedprice": _cents(price),
                "l_discount": _cents(discount),
                "l_tax": _cents(tax),
                "l_returnflag": pa.array(("A", "N", "R")).take(pa.array(returned)),
                "l_linestatus": pa.array(("F", "O")).take(pa.array(is_open.astype(np.int64))),
                "l_shipdate": _dates(shipped),
                "l_commitdate": _dates(day[order] + random.integers(30, 91, total)),
                "l_receiptdate": _dates(received),
                "l_shipinstruct": self._pick(words.INSTRUCTIONS, total),
                "l_shipmode": self._pick(words.MODES, total),
                "l_comment": self._comments(total),
            }
        )
        charged = np.bincount(order, price * (100 - discount) / 100 * (100 + tax) / 100, count)
        still_open = np.bincount(order, is_open, count).astype(np.int64)
        status = np.where(still_open == 0, 0, np.where(still_open == lines, 1, 2))
        clerk = random.integers(1, max(2, round(1_000 * self.scale)) + 1, count)
        orders = pa.table(
            {
                "o_orderkey": keys,
                "o_custkey": customer,
                "o_orderstatus": pa.array(("F", "O", "P")).take(pa.array(status)),
                "o_totalprice": _cents(np.rint(charged).astype(np.int64)),
                "o_orderdate": _dates(day),
                "o_orderpriority": self._pick(words.PRIORITIES, count),
                "o_clerk": _numbered("Clerk#", clerk),
                "o_shippriority": np.zeros(count, np.int64),
                "o_comment": self._comments(count),
            }
        )
        return orders, lineitem

    # ------------------------------------------------------------------------------------ columns

    def _supplier_of(self, part: Numbers, place: Numbers) -> Numbers:
        """Return the supplier at a place, 0 to 3, of a part."""
        count = self._suppliers
        # At small scales the specification's step would give a part one supplier twice.
        step = count // 4 + (part - 1) // count % max(1, count // 12)
        return (part + place * step) % count + 1

    def _pick(self, choices: tuple[str, ...], count: int) -> pa.Array:
        return pa.array(choices).take(pa.array(self._random.integers(0, len(choices), count)))

    def _comments(self, count: int) -> pa.Array:
        return self._sentences.take(pa.array(self._random.integers(0, SENTENCES, count)))

    def _addresses(self, count: int) -> pa.Array:
        numbers = pa.array(self._random.integers(0, 10_000, count)).cast(pa.string())
        return pc.binary_join_element_wise(numbers, self._pick(words.COLOURS, count), "street", " ")

    def _phones(self, nation: Numbers) -> pa.Array:
        pieces = [10 + nation, *(self._random.integers(100, 1_000, len(nation)) for _ in "12")]
        pieces.append(self._random.integers(1_000, 10_000, len(nation)))
        return pc.binary_join_element_wise(
            *(pa.array(each).cast(pa.string()) for each in pieces), "-"
        )


def _sentences(random: np.random.Generator) -> list[str]:
    """Return comments of four to eight words, some of them about special requests."""
    lengths = random.integers(4, 9, SENTENCES)
    return [" ".join(random.choice(words.COMMENT_WORDS, length)) for length in lengths]


def _spread(numbers: Numbers, offset: int) -> Numbers:
    """Return keys of orders: eight of each 32."""
    return numbers // 8 * 32 + numbers % 8 + offset + 1


def _retail(part: Numbers) -> Numbers:
    """Return the price of parts in cents."""
    return 90_000 + part // 10 % 20_001 + 100 * (part % 1_000)


def _joined(prefix: str, numbers: Numbers) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")


def _numbered(prefix: str, numbers: Numbers) -> pa.Array:
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 9, "0")
    return pc.binary_join_element_wise(prefix, digits, "")


def _cents(scaled: Numbers) -> pa.Array:
    """Return decimals with two digits after the point, by their words."""
    pairs = np.stack((scaled, scaled >> 63), axis=1).astype(np.int64)
    return pa.Array.from_buffers(
        pa.decimal128(12, 2), len(scaled), [None, pa.py_buffer(pairs.tobytes())]
    )


def _dates(ordinals: Numbers) -> pa.Array:
    return pa.array(ordinals.astype(np.int32), pa.int32()).cast(pa.date32())
