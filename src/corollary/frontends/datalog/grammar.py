"""The parser that lark makes of `grammar.lark`; made once, shared by all threads."""

from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token, UnexpectedToken
from lark.lexer import Lexer

from corollary.frontends.datalog.build_clauses import ClauseBuilder
from corollary.frontends.datalog.build_declarations import DeclarationBuilder

__all__ = ["UnexpectedToken", "parser_for"]


def parser_for(start: str) -> Any:
    """Return an interactive parser for a rule of the grammar, `item` or `goal`.

    It is fed lexemes; lark types it in part only.
    """
    return _grammar().parse_interactive(start=start)


class _Builder(DeclarationBuilder, ClauseBuilder):
    """Builds all rules."""


class _NoLexer(Lexer):
    """Lark is fed lexeme by lexeme and never reads text itself."""

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
    )
