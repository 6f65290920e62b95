"""The LALR(1) parser of `grammar.lark`: lark makes its tables once, and they are run here.

| table | says |
|---|---|
| `states[s][symbol]` | the next state if it is not negative, otherwise `-1 - r`: reduce by rule r |
| `rules[r]` | origin, length, method of the builder, and which symbols are its children |

The tables are kept in a file, so that commands load no lark.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from corollary.frontends.datalog.clause_builder import ClauseBuilder
from corollary.frontends.datalog.declaration_builder import DeclarationBuilder
from corollary.frontends.datalog.lexer import Lexeme

STARTS = ("item", "goal")
END = "$END"

Children = tuple[tuple[int, bool], ...]


class UnexpectedLexemeError(Exception):
    """The grammar does not accept a lexeme, or the end of the text."""


class _Builder(DeclarationBuilder, ClauseBuilder):
    """Builds the nodes of all rules of the grammar."""


class Reduction(NamedTuple):
    """A rule of the grammar, and what makes its node.

    Attributes:
        build: makes a node of the children; None if they are those of the rule around it.
        may_be_child: whether a single child takes the place of the node.
    """

    origin: str
    length: int
    build: Callable[..., Any] | None
    children: Children
    may_be_child: bool

    def node(self, values: list[Any]) -> Any:
        """Return the node of what the symbols of the rule stand for."""
        kept: list[Any] = []
        for at, is_list in self.children:
            kept += values[at] if is_list else (values[at],)
        if self.may_be_child and len(kept) == 1:
            return kept[0]
        return kept if self.build is None else self.build(*kept)


class Tables(NamedTuple):
    """What a parser runs; start and end have a state for each rule that can be asked for."""

    states: list[dict[str, int]]
    rules: list[Reduction]
    start: dict[str, int]
    end: dict[str, int]


class Parser:
    """Parses one text, which it is fed lexeme by lexeme.

    Args:
        start: a rule of the grammar, `item` or `goal`.
    """

    def __init__(self, start: str) -> None:
        self._tables = _tables()
        self._end = self._tables.end[start]
        self._states = [self._tables.start[start]]
        self._values: list[Any] = []

    def feed(self, lexeme: Lexeme) -> None:
        """Take a lexeme.

        Raises:
            UnexpectedLexemeError: the grammar has another one here.
        """
        self._reduce(lexeme.type)
        self._states.append(self._tables.states[self._states[-1]][lexeme.type])
        self._values.append(lexeme)

    def finish(self) -> Any:
        """Return what the text says, after its last lexeme.

        Raises:
            UnexpectedLexemeError: it does not end here.
        """
        self._reduce(END)
        return self._values[-1]

    def _reduce(self, symbol: str) -> None:
        """Apply the rules that end before a symbol."""
        states, (table, rules, _, _) = self._states, self._tables
        while states[-1] != self._end or symbol != END:
            action = table[states[-1]].get(symbol)
            if action is None:
                raise UnexpectedLexemeError
            if action >= 0:
                return
            rule = rules[-1 - action]
            start = len(states) - rule.length
            node = rule.node(self._values[start - 1 :])
            del states[start:], self._values[start - 1 :]
            states.append(table[states[-1]][rule.origin])
            self._values.append(node)

    def accepts(self) -> set[str]:
        """Return the terminals that may come next."""
        named = self._tables.states[self._states[-1]]
        return {symbol for symbol in named if symbol.isupper() and self._accepts(symbol)}

    def _accepts(self, symbol: str) -> bool:
        states, (table, rules, _, _) = list(self._states), self._tables
        while states[-1] != self._end or symbol != END:
            action = table[states[-1]].get(symbol)
            if action is None or action >= 0:
                return action is not None
            rule = rules[-1 - action]
            del states[len(states) - rule.length :]
            states.append(table[states[-1]][rule.origin])
        return True


@lru_cache(maxsize=1)
def _tables() -> Tables:
    grammar = files("corollary.frontends.datalog").joinpath("grammar.lark").read_bytes()
    digest = blake2b(grammar, digest_size=16).hexdigest()
    file = _cache()
    found: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        found = json.loads(file.read_bytes())
    if found.get("grammar") != digest:
        found = {"grammar": digest, **_generate(grammar.decode())}
        with suppress(OSError, RuntimeError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            beside = file.with_suffix(f".{os.getpid()}")
            beside.write_text(json.dumps(found))
            beside.replace(file)
    builder = _Builder()
    rules = [
        Reduction(origin, length, name and getattr(builder, name), children, may_be_child)
        for origin, length, name, children, may_be_child in found["rules"]
    ]
    return Tables(found["states"], rules, found["start"], found["end"])


def _generate(grammar: str) -> dict[str, Any]:
    """Return the tables as JSON."""
    from lark import Lark, Token
    from lark.lexer import Lexer

    class NoLexer(Lexer):
        """Stands for the lexer, which is ours; lark keeps the terminals that it does not know."""

        def __init__(self, _: object) -> None:
            pass

        def lex(self, *_: object) -> Iterator[Token]:
            return iter(())

    made: Any = Lark(
        grammar, parser="lalr", lexer=NoLexer, start=list(STARTS), maybe_placeholders=False
    )
    table = made.parser.parser._parse_table  # noqa: SLF001 - as the standalone parsers of lark do
    numbers = {rule: number for number, rule in enumerate(made.rules)}
    states: list[dict[str, int]] = [{} for _ in table.states]
    for state, actions in table.states.items():
        for symbol, (action, target) in actions.items():
            states[state][symbol] = target if action.name == "Shift" else -1 - numbers[target]
    rules = []
    for rule in made.rules:
        children = [
            (at, not symbol.is_term and symbol.name.startswith("_"))
            for at, symbol in enumerate(rule.expansion)
            if not (symbol.is_term and symbol.filter_out)
        ]
        may_be_child = rule.options.expand1 and not rule.alias
        is_child = may_be_child and [is_list for _, is_list in children] == [False]
        is_list = rule.origin.name.startswith("_")
        name = None if is_child or is_list else rule.alias or rule.origin.name
        rules.append((rule.origin.name, len(rule.expansion), name, children, may_be_child))
    return {"states": states, "rules": rules, "start": table.start_states, "end": table.end_states}


def _cache() -> Path:
    """Return where the tables are kept, which are slow to make."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path("~/.cache").expanduser()) / "corollary" / "grammar.json"
