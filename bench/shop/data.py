"""The files of a shop, and what one more day changes in them; the same seed gives the same bytes.

| relation | rows at scale 1 | files |
|---|---|---|
| `customer` | 50,000 | CSV with quotes; credit may be null |
| `supplier` | 200 | CSV |
| `product` | 5,000 | Parquet; keys are texts, the supplier may be null |
| `orders` | 290,000 | CSV, a file a month; the day of shipping and a note may be null |
| `item` | 971,000 | Parquet, a file a month; the discount may be null |
| `returned` | 29,000 | CSV; the reason may be null |
| `part` | 4,800 | CSV: a bill of materials, five levels deep |

One more day brings lines at the end of the last file of orders, one more file of items, returned
items, other credit for some customers, and new customers. Some orders of the month before are
deleted with their items: the files that held them are written anew.
"""

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

Numbers = npt.NDArray[np.int64]
Tables = Mapping[str, pa.Table]

SEED = 17
FIRST_DAY = dt.date(2026, 1, 1)
DAYS = 319
"""Until 15 November; one more is the 16th."""
CUSTOMERS, SUPPLIERS, PRODUCTS, ORDERS = 50_000, 200, 5_000, 290_000
IDLE_SHARE = 0.08
"""The share of the customers who never order."""
RETURNED_SHARE = 0.03
LEVELS = 5
LEVEL_SHARE = 0.08
"""The share of the products on each level above the lowest."""
PARTS = (2, 5)
"""A product that is made of others has at least so many parts, and fewer than so many."""

COUNTRIES = ("AT", "BE", "CH", "CZ", "DE", "DK", "ES", "FR", "IT", "NL", "PL", "SE")
CATEGORIES = tuple(f"category {number:02}" for number in range(24))
FIRST_NAMES = (
    "Ada",
    "Bo",
    "Chloë",
    "Dan",
    "Eve",
    "Finn",
    "Gül",
    "Hal",
    "Ida",
    "Jan",
    "Kim",
    "Łucja",
)
NOTES = ("gift", "leave at the door", "call before delivery", "fragile", "second attempt")
REASONS = ("broken", "too late", "wrong size", "not as described")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many rows there are before the next day."""

    customers: int
    suppliers: int
    products: int
    orders: int

    @classmethod
    def at(cls, scale: float) -> "Sizes":
        """Return the sizes at a scale."""
        sizes = (max(20, round(full * scale)) for full in (CUSTOMERS, SUPPLIERS, PRODUCTS, ORDERS))
        return cls(*sizes)


def first_tables(scale: float = 1.0, seed: int = SEED) -> Tables:
    """Return all relations as they are at first."""
    sizes = Sizes.at(scale)
    random = np.random.default_rng(seed)
    product = _products(sizes, random)
    orders = _orders(np.arange(1, sizes.orders + 1), _days(sizes, random), sizes, random)
    item = _items(orders, product, random)
    return {
        "customer": _customers(np.arange(1, sizes.customers + 1), random),
        "supplier": _suppliers(sizes, random),
        "product": product,
        "orders": orders,
        "item": item,
        "returned": _returned(item, orders, random),
        "part": _parts(sizes, random),
    }


def next_tables(first: Tables, seed: int = SEED + 1) -> Tables:
    """Return all relations a day later."""
    random = np.random.default_rng(seed)
    customer, orders, item = first["customer"], first["orders"], first["item"]
    count = len(customer)
    sizes = Sizes(count, len(first["supplier"]), len(first["product"]), len(orders))
    changed = random.choice(count, max(1, count // 1_000), replace=False)
    credit = np.array(_scaled(customer["credit"]))
    credit[changed] = random.integers(1, 900_000, len(changed))
    known = np.array(customer["credit"].is_valid())
    known[changed] = True
    customer = customer.set_column(4, "credit", _decimals(credit, 12, known))
    fresh = _customers(np.arange(count + 1, count + 1 + max(1, count // 2_500)), random)

    day = np.full(max(1, len(orders) // DAYS), _ordinal(FIRST_DAY) + DAYS)
    new_orders = _orders(np.arange(len(orders) + 1, len(orders) + 1 + len(day)), day, sizes, random)
    new_items = _items(new_orders, first["product"], random)
    new_returned = _returned(new_items, new_orders, random)

    months = _months(orders["day"])
    earlier = np.flatnonzero(months == months[months < months.max()].max())
    deleted = random.choice(earlier, max(1, len(day) // 30), replace=False) + 1
    return {
        **first,
        "customer": pa.concat_tables([customer, fresh]),
        "orders": pa.concat_tables([_without(orders, "id", deleted), new_orders]),
        "item": pa.concat_tables([_without(item, "order", deleted), new_items]),
        "returned": pa.concat_tables([_without(first["returned"], "order", deleted), new_returned]),
    }


def write(directory: Path, tables: Tables) -> None:
    """Write the files of all relations; those that would not change are left alone."""
    for name, content in _files(tables):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        buffer = pa.BufferOutputStream()
        if path.suffix == ".parquet":
            pq.write_table(content, buffer)
        else:
            style = "needed" if name == "customer.csv" else "none"
            options = pyarrow.csv.WriteOptions(
                quoting_style=style, quoting_header="none", batch_size=65_536
            )
            pyarrow.csv.write_csv(content, buffer, options)
        written = buffer.getvalue().to_pybytes()
        if not path.exists() or path.read_bytes() != written:
            path.write_bytes(written)


def _files(tables: Tables) -> Iterator[tuple[str, pa.Table]]:
    """Yield the name and the rows of every file."""
    for name in ("customer", "supplier", "returned", "part"):
        yield f"{name}.csv", tables[name]
    yield "product.parquet", tables["product"]
    orders, item = tables["orders"], tables["item"]
    ids, months = np.asarray(orders["id"]), _months(orders["day"])
    is_late = np.asarray(orders["day"].cast(pa.int32())) == _ordinal(FIRST_DAY) + DAYS
    last_day = (FIRST_DAY + dt.timedelta(days=DAYS)).isoformat()
    for month in np.unique(months):
        chosen = months == month
        yield f"orders/{_month(int(month))}.csv", orders.filter(pa.array(chosen))
        yield f"item/{_month(int(month))}.parquet", _between(item, ids[chosen & ~is_late])
    if is_late.any():
        yield f"item/{last_day}.parquet", _between(item, ids[is_late])


def _between(item: pa.Table, ids: Numbers) -> pa.Table:
    """Return the items of neighbouring orders: both are in the order of the orders' ids."""
    order = np.asarray(item["order"])
    first, last = np.searchsorted(order, (ids[0], ids[-1] + 1))
    return item.slice(first, last - first)


def _customers(ids: Numbers, random: np.random.Generator) -> pa.Table:
    count = len(ids)
    first = _pick(FIRST_NAMES, random.integers(0, len(FIRST_NAMES), count))
    family = pc.binary_join_element_wise("Family ", _texts(random.integers(0, 20_000, count)), "")
    return pa.table(
        {
            "id": ids,
            "name": pc.binary_join_element_wise(family, first, ", "),
            "country": _pick(COUNTRIES, (len(COUNTRIES) * random.random(count) ** 1.5).astype(int)),
            "since": _dates(_ordinal(FIRST_DAY) - random.integers(0, 3_650, count)),
            "credit": _decimals(
                random.integers(-20_000, 900_000, count), 12, random.random(count) < 0.8
            ),
        }
    )


def _suppliers(sizes: Sizes, random: np.random.Generator) -> pa.Table:
    ids = np.arange(1, sizes.suppliers + 1)
    countries = _pick(COUNTRIES, random.integers(0, len(COUNTRIES), len(ids)))
    return pa.table({"id": ids, "name": _named("supplier ", ids), "country": countries})


def _products(sizes: Sizes, random: np.random.Generator) -> pa.Table:
    ids = np.arange(1, sizes.products + 1)
    supplier = random.integers(1, sizes.suppliers + 1, len(ids))
    return pa.table(
        {
            "id": _named("P-", ids + 100_000),
            "name": _named("product ", ids),
            "category": _pick(CATEGORIES, random.integers(0, len(CATEGORIES), len(ids))),
            "supplier": pa.array(supplier, mask=random.random(len(ids)) < 0.05),
            "price": _decimals(random.integers(99, 100_000, len(ids)), 10),
            "since": _dates(_ordinal(FIRST_DAY) - random.integers(0, 3_650, len(ids))),
        }
    )


def _days(sizes: Sizes, random: np.random.Generator) -> Numbers:
    days = np.sort(random.integers(0, DAYS, sizes.orders))
    return _ordinal(FIRST_DAY) + days


def _orders(ids: Numbers, days: Numbers, sizes: Sizes, random: np.random.Generator) -> pa.Table:
    """Return orders; few customers make many of them."""
    count = len(ids)
    active = int((1 - IDLE_SHARE) * sizes.customers)
    customer = 1 + (active * random.random(count) ** 1.5).astype(np.int64)
    # Customers are spread by a multiplication, so that ids say nothing about who orders much.
    spread = _coprime(sizes.customers)
    return pa.table(
        {
            "id": ids,
            "customer": 1 + customer * spread % sizes.customers,
            "day": _dates(days),
            "shipped": _dates(days + random.integers(1, 8, count), random.random(count) < 0.95),
            "note": _pick(NOTES, random.integers(0, len(NOTES), count), random.random(count) < 0.1),
        }
    )


def _items(orders: pa.Table, product: pa.Table, random: np.random.Generator) -> pa.Table:
    """Return the items of orders: on average 3 1/3 each."""
    lines = random.choice(np.arange(1, 10), len(orders), p=LINES)
    count = int(lines.sum())
    order = np.repeat(np.asarray(orders["id"]), lines)
    line = np.arange(count) - np.repeat(np.cumsum(lines) - lines, lines) + 1
    chosen = (len(product) * random.random(count) ** 1.3).astype(np.int64)
    price = _scaled(product["price"])[chosen]
    discount = random.integers(1, 31, count)
    return pa.table(
        {
            "order": order,
            "line": line,
            "product": product["id"].combine_chunks().take(pa.array(chosen)),
            "quantity": random.integers(1, 11, count),
            "price": _decimals(price * random.integers(90, 111, count) // 100, 10),
            "discount": _decimals(discount, 4, random.random(count) < 0.3),
        }
    )


LINES = tuple(weight / 60 for weight in (13, 13, 10, 8, 6, 4, 3, 2, 1))


def _returned(item: pa.Table, orders: pa.Table, random: np.random.Generator) -> pa.Table:
    chosen = np.flatnonzero(random.random(len(item)) < RETURNED_SHARE)
    order = np.asarray(item["order"])[chosen]
    ids, days = np.asarray(orders["id"]), np.asarray(orders["day"].cast(pa.int32()))
    bought = days[np.searchsorted(ids, order)]
    count = len(chosen)
    return pa.table(
        {
            "order": order,
            "line": np.asarray(item["line"])[chosen],
            "day": _dates(bought + random.integers(5, 30, count)),
            "reason": _pick(REASONS, random.integers(0, 4, count), random.random(count) < 0.7),
        }
    )


def _parts(sizes: Sizes, random: np.random.Generator) -> pa.Table:
    """Return a bill of materials: products of a level are made of products of the next one."""
    width = max(2, int(LEVEL_SHARE * sizes.products))
    wholes, parts = [], []
    for level in range(LEVELS - 1):
        ids = np.arange(level * width, (level + 1) * width)
        number = random.integers(*PARTS, len(ids))
        wholes.append(np.repeat(ids, number))
        below = (level + 1) * width, (level + 2) * width
        parts.append(random.integers(*below, int(number.sum())))
    pairs = np.unique(np.stack((np.concatenate(wholes), np.concatenate(parts)), axis=1), axis=0)
    names = (_named("P-", column + 100_001) for column in pairs.T)
    quantity = random.integers(1, 9, len(pairs))
    return pa.table(dict(zip(("whole", "part", "quantity"), (*names, quantity), strict=True)))


def _without(table: pa.Table, column: str, ids: Numbers) -> pa.Table:
    return table.filter(pc.invert(pc.is_in(table[column], pa.array(ids))))


def _pick(
    words: tuple[str, ...],
    chosen: npt.NDArray[np.int64],
    known: npt.NDArray[np.bool_] | None = None,
) -> pa.Array:
    positions = pa.array(chosen, mask=None if known is None else ~known)
    return pa.array(words).take(positions)


def _texts(numbers: Numbers) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _named(prefix: str, numbers: Numbers) -> pa.Array:
    return pc.binary_join_element_wise(prefix, _texts(numbers), "")


def _decimals(
    scaled: Numbers, precision: int, known: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """Return decimals with two digits after the point, by their words."""
    words = np.stack((scaled.astype(np.int64), scaled.astype(np.int64) >> 63), axis=1)
    kind = pa.decimal128(precision, 2)
    validity = None if known is None else pa.array(known).buffers()[1]
    return pa.Array.from_buffers(kind, len(scaled), [validity, pa.py_buffer(words.tobytes())])


def _scaled(column: pa.ChunkedArray) -> Numbers:
    """Return decimals as integers; what is null is any number."""
    array = column.combine_chunks()
    words = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)
    return np.asarray(words[array.offset : array.offset + len(array), 0])


def _dates(ordinals: Numbers, known: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    mask = None if known is None else ~known
    return pa.array(ordinals.astype(np.int32), pa.int32(), mask=mask).cast(pa.date32())


def _ordinal(day: dt.date) -> int:
    """Return the days since 1970."""
    return (day - dt.date(1970, 1, 1)).days


def _months(days: pa.ChunkedArray) -> Numbers:
    """Return the months since 1970."""
    dates = np.asarray(days.cast(pa.int32())).astype("datetime64[D]")
    return dates.astype("datetime64[M]").astype(np.int64)


def _month(number: int) -> str:
    return str(np.datetime64(number, "M"))


def _coprime(size: int) -> int:
    """Return a factor that maps the numbers below a size to themselves, in another order."""
    return next(each for each in range(7_919, 7_919 + size) if np.gcd(each, size) == 1)
