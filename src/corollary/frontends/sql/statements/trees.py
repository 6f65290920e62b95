"""Queries, conditions and types as trees of sqlglot, made of the tokens of a whole text.

So the places of their nodes are places in the text, not in the statement.
"""

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from corollary.errors import InputError
from corollary.frontends.sql.parse import parse_tokens, span_between
from corollary.source import SourceFile

NESTING_MAX_DEPTH = 100
"""How many brackets may be open at once, so that no later pass exhausts the stack."""


def parse_query(tokens: Sequence[Token], file: SourceFile) -> exp.Expr:
    """Return the tree of a query, or of an UPDATE.

    Raises:
        InputError: the tokens are not one.
    """
    return _parse(tokens, file, None, "a query")


def parse_condition(tokens: Sequence[Token], file: SourceFile) -> exp.Expr:
    """Return the tree of a condition.

    Raises:
        InputError: the tokens are not one.
    """
    return _parse(tokens, file, exp.Condition, "a condition")


def parse_type(tokens: Sequence[Token], file: SourceFile) -> exp.Expr:
    """Return the tree of a type.

    Raises:
        InputError: the tokens are not one.
    """
    return _parse(tokens, file, exp.DataType, "a type")


def _parse(
    tokens: Sequence[Token], file: SourceFile, into: type[exp.Expr] | None, what: str
) -> exp.Expr:
    _check_nesting(tokens, file)
    found = parse_tokens(tokens, file, into) if tokens else ()
    if len(found) == 1:
        return found[0]
    span = span_between(file, tokens[0].start, tokens[-1].end + 1) if tokens else None
    raise InputError.of(
        "C1361", f"Here {what} is expected.", span, "write it, or check the words before this place"
    )


def _check_nesting(tokens: Sequence[Token], file: SourceFile) -> None:
    depth = 0
    for token in tokens:
        depth += token.token_type is TokenType.L_PAREN
        depth -= token.token_type is TokenType.R_PAREN
        if depth > NESTING_MAX_DEPTH:
            raise InputError.of(
                "C1361",
                f"This is nested more than {NESTING_MAX_DEPTH} levels deep.",
                span_between(file, token.start, token.end + 1),
                "split it into several views",
            )
