"""Macros of the preprocessor and their expansion, which leaves strings and quoted names alone."""

import re

from corollary.data_class import dataclass

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"?|`(?:[^`\\\n]|\\.)*`?|\w+|.', re.DOTALL)
_PASTE = re.compile(r"\s*##\s*")
_BODY = re.compile(
    r'("(?:[^"\\\n]|\\.)*"?|`(?:[^`\\\n]|\\.)*`?)|(\s*##\s*)|#\s*([A-Za-z_]\w*)|(\w+)|(.)',
    re.DOTALL,
)

EXPANSION_MAX_COST = 1_000_000
"""The maximum cost of one expansion: its characters, and a constant for every invocation."""
EXPANSION_MAX_DEPTH = 100
_INVOCATION_COST = 20


class MacroError(Exception):
    """An invocation that cannot be expanded."""


@dataclass(frozen=True, slots=True)
class Macro:
    """`#define NAME body` or, with parameters, `#define NAME(a, b) body`."""

    name: str
    parameters: tuple[str, ...] | None
    body: str


class Macros(dict[str, Macro]):
    """The defined macros; the cost of an expansion is bounded."""

    def __init__(self) -> None:
        super().__init__()
        self._work = 0
        self._depth = 0

    def expand(self, macro: Macro, arguments: tuple[str, ...]) -> str:
        """Return the expansion of a macro, with all macros in it expanded too.

        >>> macros = Macros()
        >>> macros["TWICE"] = Macro("TWICE", ("x",), "x + x")
        >>> macros.expand(macros["TWICE"], ("y * 2",))
        'y * 2 + y * 2'
        """
        self._work = self._depth = 0
        return self._invocation(macro, arguments, frozenset())

    def expand_text(self, text: str) -> str:
        """Return a text with all macros in it expanded."""
        self._work = self._depth = 0
        return self._rescan(text, frozenset())

    def _invocation(self, macro: Macro, arguments: tuple[str, ...], hidden: frozenset[str]) -> str:
        self._depth += 1
        if self._depth > EXPANSION_MAX_DEPTH:
            raise MacroError(f"The macro `{macro.name}` expands too deeply.")
        text = macro.body
        if macro.parameters is not None:
            text = self._substitute(macro, arguments, hidden)
        result = self._rescan(text, hidden | {macro.name})
        self._spend(macro, len(result))
        self._depth -= 1
        return result

    def _spend(self, macro: Macro, length: int) -> None:
        self._work += _INVOCATION_COST + length
        if self._work > EXPANSION_MAX_COST:
            raise MacroError(f"The macro `{macro.name}` expands to too much text.")

    def _rescan(self, text: str, hidden: frozenset[str]) -> str:
        parts: list[str] = []
        position = 0
        while found := _TOKEN.match(text, position):
            position = found.end()
            macro = self.get(found[0])
            if macro is None or macro.name in hidden:
                parts.append(found[0])
                continue
            arguments: tuple[str, ...] = ()
            if macro.parameters is not None:
                read = read_arguments(text, position)
                if read is None:
                    parts.append(found[0])
                    continue
                arguments, position = read
            parts.append(self._invocation(macro, arguments, hidden))
        return "".join(parts)

    def _substitute(self, macro: Macro, arguments: tuple[str, ...], hidden: frozenset[str]) -> str:
        parameters = macro.parameters or ()
        if not parameters and arguments == ("",):
            arguments = ()
        if len(arguments) != len(parameters):
            raise MacroError(
                f"The macro `{macro.name}` takes {len(parameters)} "
                f"argument{'' if len(parameters) == 1 else 's'}, {len(arguments)} given."
            )
        values = dict(zip(parameters, arguments, strict=True))
        parts: list[str] = []
        pastes = {edge for paste in _PASTE.finditer(macro.body) for edge in paste.span()}
        for found in _BODY.finditer(macro.body):
            quoted, paste, stringified, word, other = found.groups()
            if paste is not None:
                continue
            if stringified is not None and stringified in values:
                escaped = values[stringified].replace("\\", "\\\\").replace('"', '\\"')
                parts.append(f'"{escaped}"')
            elif word is not None and word in values:
                # As in cpp, an operand of `##` is not expanded before it is pasted.
                is_pasted = found.start() in pastes or found.end() in pastes
                value = values[word]
                parts.append(value if is_pasted else self._rescan(value, hidden))
            else:
                parts.append(quoted or word or other or found[0])
            self._spend(macro, len(parts[-1]))
        return "".join(parts)


def read_arguments(text: str, position: int) -> tuple[tuple[str, ...], int] | None:
    """Return the arguments of an invocation and the offset after it; None without a bracket.

    >>> read_arguments("F(a, g(b, c)) x", 1)
    (('a', 'g(b, c)'), 13)
    """
    while position < len(text) and text[position].isspace():
        position += 1
    if position >= len(text) or text[position] != "(":
        return None
    depth = 0
    arguments: list[str] = []
    start = position + 1
    while found := _TOKEN.match(text, position):
        position = found.end()
        match found[0]:
            case "(" | "[" | "{":
                depth += 1
            case ")" | "]" | "}":
                depth -= 1
            case "," if depth == 1:
                arguments.append(_flat(text[start : position - 1]))
                start = position
        if depth == 0:
            return (*arguments, _flat(text[start : position - 1])), position
    raise MacroError("The brackets of this macro's arguments are never closed.")


def _flat(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ").strip()
