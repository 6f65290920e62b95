"""The text of a rule in parts: the head, the literals of the body, and what is between them."""

import re
from collections.abc import Iterator

NECK = re.compile(r"\s:[-=]")
OPENING, CLOSING = "([{", ")]}"


def arguments_of(text: str) -> list[str]:
    """Return a text split at its commas, but for those in brackets and strings.

    >>> arguments_of('"a, b", f(x, y), 3')
    ['"a, b"', 'f(x, y)', '3']
    """
    return [part.strip() for part, is_separator in _parts(text, ",") if not is_separator]


def body_of(rule: str) -> tuple[str, list[tuple[str, bool]]]:
    """Return the head of a rule with its neck, and the parts of the body.

    Each part is a literal, or, with False, what is between two of them. Parts put together are the
    text.

    >>> body_of("p(x) :- q(x), !r(x).")
    ('p(x) :- ', [('q(x)', True), (', ', False), ('!r(x)', True), ('.', False)])
    """
    neck = NECK.search(rule)
    if neck is None:
        return rule, []
    start, body = rule[: neck.end()], rule[neck.end() :]
    parts: list[tuple[str, bool]] = []
    for part, is_separator in _parts(body, ",;"):
        text = part.strip()
        before, after = part[: len(part) - len(part.lstrip())], part[len(part.rstrip()) :]
        if is_separator or not text:
            parts.append((part, False))
            continue
        stop = "." if text.endswith(".") else ""
        parts += [(before, False), (text.removesuffix("."), True), (stop + after, False)]
    joined: list[tuple[str, bool]] = []
    for text, is_literal in parts:
        if not is_literal and joined and not joined[-1][1]:
            joined[-1] = (joined[-1][0] + text, False)
        elif text:
            joined.append((text, is_literal))
    if joined and not joined[0][1]:
        return start + joined[0][0], joined[1:]
    return start, joined


def name_of(literal: str) -> str:
    """Return the relation of a literal; empty if it is a condition.

    >>> name_of("!q.r(x, 1)"), name_of("x < f(y)"), name_of("n = count : { q(x) }")
    ('q.r', '', '')
    """
    name, bracket, _ = literal.lstrip("!+- ").partition("(")
    name = name.strip().strip("`").partition("@")[0]
    is_name = bracket and all(each.isalnum() or each in "_.`?•" for each in name)
    return name if is_name and literal.rstrip().endswith(")") else ""


def _parts(text: str, separators: str) -> Iterator[tuple[str, bool]]:
    """Yield a text in parts at separators outside of brackets and strings, and the separators."""
    depth, start, quote = 0, 0, ""
    at = 0
    while at < len(text):
        character = text[at]
        if quote:
            if character == "\\":
                at += 1
            elif character == quote:
                quote = ""
        elif character in '"`':
            quote = character
        elif character in OPENING:
            depth += 1
        elif character in CLOSING:
            depth -= 1
        elif character in separators and depth == 0:
            yield text[start:at], False
            yield character, True
            start = at + 1
        at += 1
    yield text[start:], False
