"""The conditions of `#if` and `#elif`: constant integer expressions, as in cpp.

`defined X` asks for a macro, all others are expanded, and a name that is left counts as 0.
"""

import operator
import re
from collections.abc import Callable

from corollary.data_class import dataclass
from corollary.frontends.datalog.macros import MacroError, Macros

_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*([A-Za-z_]\w*)\s*\)|([A-Za-z_]\w*))", re.ASCII)
_WORD = re.compile(r"\s*(\w+|\|\||&&|[=!<>]=|<<|>>|[-+*/%&|^~!<>?:()])\s*", re.ASCII)
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)[uUlL]{0,3}", re.ASCII)
_MAX_BITS = 63
_MAX_DEPTH = 100

_BINDING = {
    sign: level
    for level, signs in enumerate(
        ("||", "&&", "|", "^", "&", "== !=", "<= >= < >", "<< >>", "+ -", "* / %")
    )
    for sign in signs.split()
}
"""How tightly a binary operator binds."""


class ConditionError(Exception):
    """A condition that has no value."""


def condition_holds(text: str, macros: Macros) -> bool:
    """Return whether a condition holds.

    >>> condition_holds("defined(A) || 2 * 3 > 5", Macros())
    True
    """
    named = _DEFINED.sub(lambda found: str(int((found[1] or found[2]) in macros)), text)
    try:
        expanded = macros.expand_text(named)
    except MacroError as error:
        raise ConditionError(str(error)) from None
    parser = _ConditionParser(_words(expanded, text), text)
    value = parser.choice(is_needed=True)
    if parser.words:
        raise parser.error()
    return bool(value)


def _words(expanded: str, text: str) -> list[str]:
    """Return the words, the last one first."""
    words: list[str] = []
    position = 0
    expanded = expanded.strip()
    while position < len(expanded):
        found = _WORD.match(expanded, position)
        if found is None:
            raise _not_a_condition(text)
        words.append(found[1])
        position = found.end()
    return words[::-1]


def _not_a_condition(text: str) -> ConditionError:
    return ConditionError(f"`{text.strip()}` is no condition of whole numbers and macros.")


@dataclass(slots=True)
class _ConditionParser:
    """Computes while it reads; what is behind a decided `&&`, `||` or `?` is read only."""

    words: list[str]
    text: str
    depth: int = 0

    def error(self) -> ConditionError:
        return _not_a_condition(self.text)

    def choice(self, *, is_needed: bool) -> int:
        value = self.binary(0, is_needed=is_needed)
        if not self.take("?"):
            return value
        first = self.choice(is_needed=is_needed and bool(value))
        if not self.take(":"):
            raise self.error()
        second = self.choice(is_needed=is_needed and not value)
        return first if value else second

    def binary(self, level: int, *, is_needed: bool) -> int:
        value = self.unary(is_needed=is_needed)
        while self.words and _BINDING.get(self.words[-1], -1) >= level:
            sign = self.words.pop()
            is_open = not ((sign == "&&" and not value) or (sign == "||" and value))
            other = self.binary(_BINDING[sign] + 1, is_needed=is_needed and is_open)
            value = _bounded(_computed(sign, value, other)) if is_needed and is_open else value
            if sign in ("&&", "||"):
                value = int(bool(value))
        return value

    def unary(self, *, is_needed: bool) -> int:
        if not self.words:
            raise self.error()
        word = self.words.pop()
        if word in _UNARY or word == "(":
            self.depth += 1
            if self.depth > _MAX_DEPTH:
                raise ConditionError("The condition is nested too deeply.")
            if word == "(":
                value = self.choice(is_needed=is_needed)
                if not self.take(")"):
                    raise self.error()
            else:
                value = _bounded(_UNARY[word](self.unary(is_needed=is_needed)))
            self.depth -= 1
            return value
        if word[0].isdigit():
            return _number(word)
        if word[0].isalpha() or word[0] == "_":
            return 0
        raise self.error()

    def take(self, word: str) -> bool:
        """Return whether the next word is this one, and go behind it."""
        is_there = bool(self.words) and self.words[-1] == word
        if is_there:
            self.words.pop()
        return is_there


_UNARY: dict[str, Callable[[int], int]] = {
    "!": operator.not_,
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
}
_BINARY: dict[str, Callable[[int, int], int]] = {
    "||": lambda left, right: bool(left or right),
    "&&": lambda left, right: bool(left and right),
    "|": operator.or_,
    "^": operator.xor,
    "&": operator.and_,
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


def _computed(sign: str, left: int, right: int) -> int:
    if sign in ("/", "%"):
        if not right:
            raise ConditionError("The condition divides by zero.")
        # As in C, a quotient is cut towards zero.
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if sign == "/" else left - quotient * right
    if sign in ("<<", ">>") and not 0 <= right <= _MAX_BITS:
        raise ConditionError(f"The condition shifts by {right} bits.")
    return _BINARY[sign](left, right)


def _number(word: str) -> int:
    found = _NUMBER.fullmatch(word)
    if found is None:
        raise ConditionError(f"`{word}` is no whole number.")
    is_octal = found[1].startswith("0") and found[1].isdigit()
    try:
        return _bounded(int(found[1], 8 if is_octal else 0))
    except ValueError:
        raise ConditionError(f"`{word}` is no whole number.") from None


def _bounded(value: int) -> int:
    if not -(1 << _MAX_BITS) <= value < 1 << _MAX_BITS:
        raise ConditionError("A number in the condition has more than 64 bits.")
    return int(value)
