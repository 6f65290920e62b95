"""The parser that lark generates from `grammar.lark`, once for all threads."""

import os
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from lark import Lark, Token, UnexpectedToken
from lark.lexer import Lexer

from corollary.frontends.datalog.clause_builder import ClauseBuilder
from corollary.frontends.datalog.declaration_builder import DeclarationBuilder

__all__ = ["UnexpectedToken", "parser_for"]


def parser_for(start: str) -> Any:
    """Return an interactive parser for a rule of the grammar, `item` or `goal`.

    The caller feeds it lexemes. Its type is `Any` because lark's own types are incomplete.
    """
    return _grammar().parse_interactive(start=start)


class _Builder(DeclarationBuilder, ClauseBuilder):
    """Builds the nodes of all rules of the grammar."""


class _NoLexer(Lexer):
    """Takes the place of lark's lexer, which is not used: the parser is fed lexeme by lexeme."""

    def __init__(self, _: object) -> None:
        pass

    def lex(self, *_: object) -> Iterator[Token]:
        return iter(())


@lru_cache(maxsize=1)
def _grammar() -> Lark:
    text = files("corollary.frontends.datalog").joinpath("grammar.lark").read_text("utf-8")
    return Lark(
        text,
        parser="lalr",
        lexer=_NoLexer,
        start=["item", "goal"],
        transformer=_Builder(),
        maybe_placeholders=False,
        cache=_cache(),
    )


def _cache() -> str | bool:
    """Return the cache file of the parser's tables, which are slow to generate; False for none.

    Lark writes it, and rewrites it when the grammar or its own version has changed.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "corollary"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Lark unpickles the file, so nobody else may own the directory.
        is_ours = os.access(home, os.W_OK) and home.stat().st_uid == os.getuid()
    except (OSError, RuntimeError):
        return False
    return str(home / "grammar") if is_ours else False
