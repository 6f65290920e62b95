"""Amounts on the command line: bytes such as 2GB, rates such as services=1000/h."""

from collections.abc import Iterable

import click

BYTES = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
HOURS = {"s": 1 / 3600, "min": 1 / 60, "h": 1.0, "d": 24.0}


def as_bytes(text: str | None, option: str) -> float | None:
    """Return a number of bytes.

    >>> as_bytes("2GB", "--budget"), as_bytes("500k", "--budget")
    (2000000000.0, 500000.0)
    """
    if text is None:
        return None
    number = text.strip().upper().removesuffix("B")
    factor = BYTES.get(number[-1:], 1)
    try:
        found = float(number[:-1] if factor > 1 else number) * factor
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise click.BadParameter(
            f"'{text}' is not a number of bytes; write 500MB or 2GB", param_hint=f"'{option}'"
        )
    return found


def as_rates(texts: Iterable[str], option: str) -> dict[str, float]:
    """Return rates in an hour by name.

    >>> as_rates(["services=1000/h", "base=24/d"], "--updates")
    {'services': 1000.0, 'base': 1.0}
    """
    found = {}
    for text in texts:
        name, _, rate = text.partition("=")
        number, _, unit = rate.partition("/")
        try:
            value = float(number) / HOURS[unit or "h"]
        except (KeyError, ValueError):
            value = -1.0
        if not name or not 0 <= value < float("inf"):
            raise click.BadParameter(
                f"'{text}' is not a name and a rate; write services=1000/h, with /s, /min, /h or "
                "/d",
                param_hint=f"'{option}'",
            )
        found[name] = value
    return found
