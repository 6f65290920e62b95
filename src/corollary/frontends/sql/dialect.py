"""Spark's dialect as sqlglot reads it, with two differences: places are kept, functions are names.

sqlglot rewrites many functions while it parses them (`date_sub` becomes an addition, `year(x)` gets
a conversion inside): here every call stays `Anonymous(name, arguments)`, except those with a syntax
of their own, such as `CAST(x AS t)`. Every node knows where its text begins and ends.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from corollary.core.engine import check_deadline
from corollary.frontends.sql.bounded_parser import BoundedParser

FIRST, LAST = "first", "last"
"""Where the text of a node begins and ends (exclusive): keys of its `meta`."""

_CALLS_WITH_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "SUBSTR", "TRIM")
_CALLS_WITHOUT_PARENTHESES = ("CASE", "IF")


class SqlSyntaxError(ParseError):
    """A text that cannot be parsed, with the place of the token where it was noticed."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end


class PositionParser(BoundedParser, SparkParser):
    """Spark's parser; see the module."""

    STRICT_CAST = True
    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: parse
        for name, parse in SparkParser.FUNCTION_PARSERS.items()
        if name in _CALLS_WITH_SYNTAX
    }
    UNARY_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        **SparkParser.UNARY_PARSERS,
        TokenType.PLUS: lambda self: self.parse_plus(),
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: parse
        for name, parse in SparkParser.NO_PAREN_FUNCTION_PARSERS.items()
        if name in _CALLS_WITHOUT_PARENTHESES
    }

    def parse_plus(self) -> Any:
        """Parse `+x`, which Spark calls `positive(x)`; a number with a plus is a number."""
        operand = self._parse_unary()
        if isinstance(operand, exp.Literal) and not operand.is_string:
            return operand
        return self.expression(exp.Anonymous(this="positive", expressions=[operand]))

    def raise_error(self, message: str, token: Token | None = None) -> None:
        """Raise the problem with the place of its token, or of the end of the text."""
        found = token or self._curr or None
        if found is None and self._tokens:
            end = self._tokens[-1].end + 1
            raise SqlSyntaxError(message, end, end)
        raise SqlSyntaxError(message, found.start if found else 0, found.end + 1 if found else 0)

    def _placed(self, parse: Callable[[], Any]) -> Any:
        """Parse something, and note where it begins and ends; what is inside was noted before."""
        check_deadline()
        begin = self._curr
        node = parse()
        if begin and isinstance(node, exp.Expr) and self._prev and FIRST not in node.meta:
            node.meta[FIRST] = begin.start
            node.meta[LAST] = self._prev.end + 1
        return node

    def _parse_unary(self) -> Any:
        return self._placed(super()._parse_unary)

    def _parse_primary(self) -> Any:
        return self._placed(self._parse_adjacent_strings)

    def _parse_paren(self) -> Any:
        return self._placed(super()._parse_paren)

    def _parse_function_call(self, *arguments: Any, **options: Any) -> Any:
        return self._placed(
            lambda: super(PositionParser, self)._parse_function_call(*arguments, **options)
        )

    def _parse_select(self, *arguments: Any, **options: Any) -> Any:
        return self._placed(
            lambda: super(PositionParser, self)._parse_select(*arguments, **options)
        )

    def _parse_table(self, *arguments: Any, **options: Any) -> Any:
        return self._placed(partial(super()._parse_table, *arguments, **options))

    def _parse_join(self, *arguments: Any, **options: Any) -> Any:
        return self._placed(partial(super()._parse_join, *arguments, **options))

    def _extended(self, this: exp.Expr | None, node: Any) -> Any:
        """Note that a node begins where its operand does, and ends here."""
        begin = None if this is None else offsets_of(this)
        if begin is not None and isinstance(node, exp.Expr) and node is not this and self._prev:
            node.meta[FIRST], node.meta[LAST] = begin[0], self._prev.end + 1
        return node

    def _parse_in(self, this: exp.Expr | None, *arguments: Any, **options: Any) -> Any:
        return self._extended(this, super()._parse_in(this, *arguments, **options))

    def _parse_is(self, this: exp.Expr | None) -> Any:
        return self._extended(this, super()._parse_is(this))

    def _parse_types(self, *arguments: Any, **options: Any) -> Any:
        return self._placed(partial(super()._parse_types, *arguments, **options))

    def _warn_unsupported(self) -> None:
        """Say nothing: who reads statements refuses a `Command` that it does not know."""

    def _parse_placeholder(self) -> Any:
        return self._placed(super()._parse_placeholder)

    def _parse_adjacent_strings(self) -> Any:
        """Parse a primary; `'it''s'` is one text with a quote, `'a' 'b'` are two in a row."""
        if not self._match(TokenType.STRING, advance=False):
            return super()._parse_primary()
        self._advance()
        text, begin = self._prev.text, self._prev
        while self._match(TokenType.STRING, advance=False):
            quote = self.sql[self._curr.start]
            is_doubled = (
                self._curr.start == self._prev.end + 1 and self.sql[self._prev.end] == quote
            )
            self._advance()
            text += (quote if is_doubled else "") + self._prev.text
        return self.expression(exp.Literal(this=text, is_string=True), begin)


def offsets_of(node: exp.Expr) -> tuple[int, int] | None:
    """Return where the text of a node begins and ends (exclusive), if that is known."""
    starts, ends = [], []
    pending = [node]
    while pending:  # a chain of thousands is nested as deeply
        part = pending.pop()
        meta = part.meta
        if FIRST in meta:
            starts.append(meta[FIRST])
            ends.append(meta[LAST])
            continue
        if isinstance(meta.get("start"), int):
            starts.append(meta["start"])
            ends.append(meta["end"] + 1)
        pending += part.iter_expressions()
    return (min(starts), max(ends)) if starts else None


class SparkWithPlaces(Spark):
    """The dialect whose parser is `PositionParser`."""

    Parser = PositionParser
