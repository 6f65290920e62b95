"""Tables in the manner of TPC-H, in memory; the same seed gives the same rows.

| relation | rows at scale 1 |
|---|---|
| `lineitem` | 1,000,000, on average four to an order |
| `orders` | 250,000 |
| `customer` | 25,000 |
| `supplier` | 1,700 |
| `part` | 33,000 |
| `nation` | 25, of 5 regions |

With `is_text` all keys but those of nations are texts, such as `O#000000017`.
"""

import datetime as dt

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bench.data import SEED, Relations

Numbers = npt.NDArray[np.int64]

FIRST_DAY = (dt.date(1992, 1, 1) - dt.date(1970, 1, 1)).days
DAYS = 2_400
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = 25
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
LINES_MAX = 7


def tables(lines: int, *, is_text: bool = False, seed: int = SEED) -> Relations:
    """Return all tables, with about so many line items."""
    random = np.random.default_rng(seed)
    orders, customers = max(10, lines // 4), max(10, lines // 40)
    suppliers, parts = max(10, lines // 600), max(10, lines // 30)

    def key(letter: str, numbers: Numbers) -> pa.Array:
        if not is_text:
            return pa.array(numbers)
        digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 9, "0")
        return pc.binary_join_element_wise(f"{letter}#", digits, "")

    number_of_lines = random.integers(1, LINES_MAX + 1, orders)
    order = np.repeat(np.arange(orders), number_of_lines)
    count = len(order)
    line = np.arange(count) - np.repeat(
        np.cumsum(number_of_lines) - number_of_lines, number_of_lines
    )
    ordered = FIRST_DAY + random.integers(0, DAYS, orders)
    shipped = ordered[order] + random.integers(1, 122, count)
    part = random.integers(0, parts, count)
    quantity = random.integers(1, 51, count)
    is_shipped = shipped <= FIRST_DAY + DAYS - 500
    return {
        "lineitem": pa.table(
            {
                "order": key("O", order),
                "line": line + 1,
                "part": key("P", part),
                "supplier": key("S", random.integers(0, suppliers, count)),
                "quantity": quantity,
                "price": _decimals(quantity * (90_000 + part % 20_000)),
                "discount": _decimals(random.integers(0, 11, count)),
                "tax": _decimals(random.integers(0, 9, count)),
                "flag": _pick(
                    ("A", "N", "R"), np.where(is_shipped, 2 * random.integers(0, 2, count), 1)
                ),
                "status": _pick(("F", "O"), np.where(is_shipped, 0, 1)),
                "shipped": _dates(shipped),
            }
        ),
        "orders": pa.table(
            {
                "id": key("O", np.arange(orders)),
                "customer": key("C", random.integers(0, customers, orders)),
                "day": _dates(ordered),
                "priority": random.integers(1, 6, orders),
            }
        ),
        "customer": pa.table(
            {
                "id": key("C", np.arange(customers)),
                "name": pc.binary_join_element_wise(
                    "Customer ", pa.array(np.arange(customers)).cast(pa.string()), ""
                ),
                "nation": random.integers(0, NATIONS, customers),
                "segment": _pick(SEGMENTS, random.integers(0, len(SEGMENTS), customers)),
                "balance": _decimals(random.integers(-99_999, 999_999, customers)),
            }
        ),
        "supplier": pa.table(
            {"id": key("S", np.arange(suppliers)), "nation": random.integers(0, NATIONS, suppliers)}
        ),
        "part": pa.table(
            {
                "id": key("P", np.arange(parts)),
                "brand": _pick(
                    tuple(f"Brand {each}" for each in range(25)), random.integers(0, 25, parts)
                ),
            }
        ),
        "nation": pa.table(
            {
                "id": np.arange(NATIONS),
                "name": [f"NATION {each:02}" for each in range(NATIONS)],
                "region": _pick(REGIONS, np.arange(NATIONS) % len(REGIONS)),
            }
        ),
    }


def _pick(words: tuple[str, ...], chosen: Numbers) -> pa.Array:
    return pa.array(words).take(pa.array(chosen))


def _decimals(scaled: Numbers) -> pa.Array:
    """Return decimals with two digits after the point, by their words."""
    words = np.stack((scaled, scaled >> 63), axis=1).astype(np.int64)
    return pa.Array.from_buffers(
        pa.decimal128(12, 2), len(scaled), [None, pa.py_buffer(words.tobytes())]
    )


def _dates(ordinals: Numbers) -> pa.Array:
    return pa.array(ordinals.astype(np.int32), pa.int32()).cast(pa.date32())
