"""Random texts of JSON, some with faults, and paths into them."""

from __future__ import annotations

import random

NAMES = ("a", "b", "c", "a", "b", "", "é", "a b", "😀", "*")
STRINGS = ("a", "x y", "", "é😀", '"', "\\", "/", "\n", "it's", "\x01", "\u2028", "1", "null")
SCALARS = (
    *("2024-01-05", "2024-1-5T10:00:00.5Z", "2024-01-05 10:00", "7", "10:00:61", "8:05 PM", "NaN"),
    *("-INF", "1,5", "1e2", "YWI=", "YW I", "true", " 1", "2024-01-05 1:2:3+01:00", "1 02:03:04"),
)
"""Texts that some type can read."""

NUMBERS = (
    *("0", "1", "-1", "1.5", "1.50", "1e3", "-0", "-0.0", "1E-7", "12345678.5", "0.1", "1e400"),
    *("12345678901234567890", "-1e400", "1e22", "01", "1.", "+1", "NaN"),
)
STEPS = (
    *(*(".a", ".b", "[0]", "[1]", "[*]", "[*]") * 4, "[*][*]", "['a']", ".*", "['*']", ". a"),
    *(".a b", "[ 1]", "[01]", "..", ".é", ".😀", "[a]", '["a"]', "[-1]", " .a", " ['b']", " "),
)


def random_document(dice: random.Random) -> str:
    text = _blank(dice) + _value(dice, dice.randint(1, 4))
    if dice.random() < 0.05:
        return text + dice.choice([" x", "x", "]", ",", '"', "'", ' {"a":1}', "é", "~"])
    if dice.random() < 0.05:
        at = dice.randrange(len(text))
        return text[:at] + dice.choice(["", " ", ",", '"', "'", "}", "x", "\\"]) + text[at + 1 :]
    return text


def random_record(dice: random.Random) -> str:
    """Return an object whose fields have often a type of their own, or any document."""
    if dice.random() < 0.2:
        return random_document(dice)
    parts = []
    for _ in range(dice.randint(0, 5)):
        value = dice.choice((*NUMBERS[:15], "200", "3000000000", "true", "null", "NaN", "-INF"))
        if dice.random() < 0.5:
            value = _string(dice, dice.choice(SCALARS))
        if dice.random() < 0.3:
            value = dice.choice(('{"a":%s}', "[%s]", '[{"a":%s},{"b":2}]', '{"a":[%s]}')) % value
        parts.append(f"{_string(dice, dice.choice('abcdefg'))}:{value}")
    return f"{{{','.join(parts)}}}"


def random_path(dice: random.Random) -> str:
    return "$" + "".join(dice.choices(STEPS, k=dice.choice((0, 1, 1, 2, 2, 3, 4))))


def _blank(dice: random.Random) -> str:
    return dice.choice(("", "", "", " ", "\n\t"))


def _value(dice: random.Random, depth: int) -> str:
    form = dice.random() if depth else 0.0
    if form < 0.2:
        return dice.choice(NUMBERS[: None if dice.random() < 0.1 else 8])
    if form < 0.4:
        return _string(dice, dice.choice(STRINGS))
    if form < 0.45:
        return dice.choice(("true", "false", "null"))
    parts = [
        _blank(dice) + _value(dice, depth - 1) + _blank(dice) for _ in range(dice.randint(0, 4))
    ]
    if form < 0.75:
        return f"[{','.join(parts)}]"
    return f"{{{','.join(f'{_string(dice, dice.choice(NAMES))}:{each}' for each in parts)}}}"


def _string(dice: random.Random, text: str) -> str:
    quote, found = dice.choice('""\''), ""
    for sign in text:
        if sign in (quote, "\\"):
            found += f"\\{sign}"
        elif dice.random() < 0.1:
            units = sign.encode("utf-16-be").hex()
            found += "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
        else:
            found += sign
    return quote + found + ("\\ud83d" if dice.random() < 0.01 else "") + quote
