"""Functors in Python that cases of the language apply; importing this module registers them."""

from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

import corollary


@corollary.functor
def triple(x: int) -> int:
    return 3 * x


@corollary.functor
def collatz(n: int) -> int:
    """The next number of a Collatz sequence."""
    return n // 2 if n % 2 == 0 else 3 * n + 1


@corollary.functor
def shout(text: str) -> str:
    return text.upper() + "!"


@corollary.functor
def vowels(text: str) -> int:
    return sum(letter in "aeiou" for letter in text)


@corollary.functor("root")
def integer_root(n: int) -> int:
    """The root of a square; other numbers have none."""
    found = round(n**0.5) if n >= 0 else -1
    if found * found != n:
        raise ValueError(f"{n} is not a square")
    return found


@corollary.functor
def first_word(text: str) -> str | None:
    words = text.split()
    return words[0] if words else None


@corollary.functor
def with_tax(net: Decimal) -> Decimal:
    return (net * Decimal("1.2")).quantize(Decimal("0.01"))


@corollary.functor
def next_day(day: date) -> date:
    return day + timedelta(days=1)


@corollary.functor
def answer() -> int:
    return 42


@corollary.functor
def same_length(one: str, other: str) -> bool:
    return len(one) == len(other)


@corollary.functor(vectorised=True)
def many_sum(x: pa.Array, y: pa.Array) -> pa.Array:
    return pc.add_checked(x, y)


@corollary.functor(vectorised=True)
def many_lower(text: pa.Array) -> pa.Array:
    return pc.utf8_lower(text)
