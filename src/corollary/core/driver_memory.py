"""The driver's budget of memory for tuples: what is beyond it is partitioned."""

import os

from corollary.errors import InputError

DRIVER_MEMORY_VARIABLE = "COROLLARY_DRIVER_MEMORY"
"""The environment variable that sets the budget where nothing else does."""

MACHINE_SHARE = 4
"""Without a setting, the budget is the memory of the machine divided by this."""

TUPLE_BYTES = 60
"""The bytes of a tuple in memory, at the peak."""

_UNITS = {unit: 1024**power for power, unit in enumerate("KMGT", 1)}


def parse_memory(text: str) -> int:
    """Return the number of bytes of a text such as 500M or 2G.

    >>> parse_memory("2G"), parse_memory("1.5k"), parse_memory("100")
    (2147483648, 1536, 100)

    Raises:
        InputError: `C1500`, it is no amount of memory.
    """
    number = text.strip().upper().removesuffix("B")
    factor = _UNITS.get(number[-1:], 1)
    try:
        count = float(number[:-1] if factor > 1 else number) * factor
    except ValueError:
        count = -1.0
    if not 0 <= count < float("inf"):
        message = f"`{text}` is not an amount of memory for the driver."
        raise InputError.of("C1500", message, None, "write bytes, or a number such as 500M or 2G")
    return int(count)


def driver_memory(amount: int | str | None = None) -> int:
    """Return the budget in bytes: what is given, what the environment says, or a quarter.

    Raises:
        InputError: `C1500`.
    """
    if isinstance(amount, int) and amount >= 0:
        return amount
    chosen = os.environ.get(DRIVER_MEMORY_VARIABLE) if amount is None else str(amount)
    if chosen:
        return parse_memory(chosen)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MACHINE_SHARE
