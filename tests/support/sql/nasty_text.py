"""Texts that break careless code: quotes, comments, other alphabets, whole attacks."""

from __future__ import annotations

import random

SIGNS = tuple("'\"`\\;-/*#%_{}[]()<>:$@!?.,|&=~^+ \t\n\r\x01\x7f")
LETTERS = tuple("abzAZ019äßİıſ中😀\u0301\u200b\u202e\u00a0\ufeffø")
PIECES = (
    *("--", "/*", "*/", "''", "``", '""', "\\'", "\\\\", "\\u0041", "${x}", "{x}", "{0}", "%s"),
    *("; DROP TABLE x; --", "' OR '1'='1", "') UNION SELECT * FROM y --", "` AS y, `", "$$", ":k"),
    *("select", "FROM", "NULL", "null", "true", "1", "-0", "NaN", "2026-11-16", "rows", ".rows"),
    *("copies", "each", "keys", "v.rows", "a.b", "+v", "-v", "@old", "nil", "_", "__", "?"),
)


def nasty_texts(seed: int, count: int, *, is_name: bool = False) -> list[str]:
    """Return different texts; names are not empty, and differ in more than case."""
    generator = random.Random(f"texts {seed}")
    found: dict[str, str] = {}
    if not is_name:
        found[""] = ""
    for piece in PIECES:
        found.setdefault(_folded(piece) if is_name else piece, piece)
    while len(found) < count:
        pools = generator.choices((SIGNS, LETTERS, PIECES), (3, 4, 2), k=generator.randint(1, 6))
        text = "".join(generator.choice(pool) for pool in pools)
        found.setdefault(_folded(text) if is_name else text, text)
    chosen = list(found.values())[:count]
    generator.shuffle(chosen)
    return chosen


def _folded(text: str) -> str:
    """Return what two names must differ in, under any rule for case."""
    return text.casefold().upper().lower()


def literal(text: str) -> str:
    """Return a text as a literal of Spark's dialect."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def identifier(name: str) -> str:
    """Return a name between backquotes."""
    return "`" + name.replace("`", "``") + "`"
