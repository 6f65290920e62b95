"""From SQL text to sqlglot's syntax trees, and from their nodes to places in the text."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import NoReturn

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from corollary.core.engine import check_deadline
from corollary.core.values import is_encodable
from corollary.errors import InputError
from corollary.frontends.sql.dialect import FIRST, LAST, SparkWithPlaces, SqlSyntaxError, offsets_of
from corollary.source import SourceFile, Span

_PAIRS = {TokenType.R_PAREN: TokenType.L_PAREN, TokenType.R_BRACKET: TokenType.L_BRACKET}


_PARSER_ERRORS = (
    *(ParseError, TokenError),  # a hint is made of tokens by the parser
    *(ValueError, TypeError, AttributeError, IndexError, KeyError),
)
"""What sqlglot's parser raises; it was not written for texts that are not SQL at all."""


def parse_statements(file: SourceFile) -> tuple[exp.Expr, ...]:
    """Return the statements of a text, which semicolons separate.

    Raises:
        InputError: the text is not SQL; with the place where this was noticed.
    """
    return parse_tokens(tokenise(file), file)


def tokenise(file: SourceFile) -> list[Token]:
    """Return the tokens of a text; comments are none.

    Raises:
        InputError: a string or a comment has no end, or the text has what is no character.

    >>> [token.text for token in tokenise(SourceFile("q", "SELECT a -- all"))]
    ['SELECT', 'a']
    """
    if not is_encodable(file.text):
        at = next(i for i, character in enumerate(file.text) if not is_encodable(character))
        _refuse(file, at, at + 1, "The text has a NUL or half a surrogate pair in it.")
    try:
        tokens = list(SparkWithPlaces().tokenize(file.text))
    except TokenError as problem:
        _refuse(file, *_place_of(problem, file.text), _token_sentence(problem))
    check_deadline()
    return tokens


def parse_tokens(
    tokens: Sequence[Token], file: SourceFile, into: type[exp.Expr] | None = None
) -> tuple[exp.Expr, ...]:
    """Return the trees of some tokens of a text: statements, or what `into` says.

    Raises:
        InputError: they are not SQL; with the place where this was noticed.
    """
    given = _with_names(tokens)
    parser = SparkWithPlaces().parser()
    start, end = (given[0].start, given[-1].end + 1) if given else (0, 0)
    _check_pairs(given, file)
    _check_neighbours(given, file)
    try:
        found = (
            parser.parse(given, file.text)
            if into is None
            else parser.parse_into(into, given, file.text)
        )
        return tuple(tree for tree in found if isinstance(tree, exp.Expr))
    except RecursionError:
        raise InputError.of(
            "C1322",
            "The statement is nested too deeply.",
            span_between(file, start, min(end, start + 1)),
            "split it with common table expressions or views",
        ) from None
    except _PARSER_ERRORS as problem:
        inner = next((each for each in _causes(problem) if isinstance(each, SqlSyntaxError)), None)
        if inner is not None:
            _refuse(file, inner.start, inner.end, _sentence(inner.message, file, inner))
        text = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        _refuse(file, start, min(end, start + 1), f"The text cannot be read as SQL: {text}.")


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _refuse(file: SourceFile, start: int, end: int, message: str) -> NoReturn:
    note = "statements are written in Spark's dialect, and separated by `;`"
    raise InputError.of("C1300", message, span_between(file, start, end), note) from None


def _sentence(message: str, file: SourceFile, problem: SqlSyntaxError) -> str:
    found = file.text[problem.start : problem.end]
    if not found:
        return "The statement ends too early."
    if message == "Invalid expression / Unexpected token":
        return f"`{found[:40]}` is not expected here."
    if message.startswith("Required keyword"):
        return f"Something is missing before `{found[:40]}`."
    expected = message.strip().partition(" but got ")[0].rstrip(".")
    return f"`{found[:40]}` is not expected here: {expected}."


def _token_sentence(problem: TokenError) -> str:
    found = re.search(r"Missing (\S+) from", f"{problem} {problem.__cause__}")
    if found:
        return f"The closing `{found.group(1)}` is missing."
    return "This is not a token of SQL."


def _place_of(problem: TokenError, text: str) -> tuple[int, int]:
    """Return where a token was not closed; sqlglot says the line and the offset."""
    messages = [str(problem), str(problem.__cause__)]
    found = next((m for t in messages if (m := re.search(r"from \d+:(\d+)", t))), None)
    if found is None:
        return 0, min(1, len(text))
    start = min(int(found.group(1)), max(len(text) - 1, 0))
    return start, start + 1


def _check_pairs(tokens: Sequence[Token], file: SourceFile) -> None:
    """Refuse parentheses without a partner, some of which the parser would pass over."""
    opened: list[Token] = []
    for token in tokens:
        if token.token_type in _PAIRS.values():
            opened.append(token)
        elif token.token_type in _PAIRS and (
            not opened or opened.pop().token_type != _PAIRS[token.token_type]
        ):
            message = f"`{token.text}` closes nothing that was opened."
            _refuse(file, token.start, token.end + 1, message)
    if opened:
        start, text = opened[-1].start, opened[-1].text
        _refuse(file, start, start + 1, f"`{text}` is not closed.")


_ENDS = frozenset(
    {
        *(TokenType.COMMA, TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.SEMICOLON),
        *(TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING),
        *(TokenType.ORDER_BY, TokenType.LIMIT, TokenType.UNION),
    }
)
"""Nothing of this can follow a comma."""

_QUANTIFIERS = frozenset({TokenType.ALL, TokenType.DISTINCT})


def _with_names(tokens: Sequence[Token]) -> list[Token]:
    """Return tokens in which `all` of `SELECT all, 2` is a name: no value comes after it."""
    found = list(tokens)
    for at in range(1, len(found)):
        after = found[at + 1].token_type if at + 1 < len(found) else TokenType.SEMICOLON
        before = [each.token_type for each in found[max(0, at - 2) : at]]
        is_first = before[-1] is TokenType.SELECT or (
            before[0] is TokenType.SELECT and before[-1] in _QUANTIFIERS
        )
        if is_first and found[at].token_type in _QUANTIFIERS and after in (*_ENDS, TokenType.ALIAS):
            word = found[at]
            found[at] = Token(
                TokenType.VAR, word.text, word.line, word.col, word.start, word.end, word.comments
            )
    return found


_DIRECTIONS = frozenset({TokenType.ASC, TokenType.DESC})


def _check_neighbours(tokens: list[Token], file: SourceFile) -> None:
    """Refuse what the parser would pass over: empty places in lists, a second direction."""
    for token, following in zip_longest(tokens, tokens[1:]):
        kind = token.token_type
        if kind is TokenType.PIPE_GT:
            _refuse(file, token.start, token.end + 1, "The pipe syntax is not supported.")
        if following is None:
            is_wrong = kind is TokenType.COMMA
        elif kind is TokenType.COMMA:
            is_wrong = following.token_type in _ENDS
        elif kind is TokenType.L_PAREN:
            is_wrong = following.token_type is TokenType.COMMA
        else:
            is_wrong = kind in _DIRECTIONS and following.token_type in _DIRECTIONS
        if is_wrong:
            place = token if kind is TokenType.COMMA or following is None else following
            message = f"`{place.text}` is not expected here."
            _refuse(file, place.start, place.end + 1, message)


# --- places ------------------------------------------------------------------------------------


def span_of(node: exp.Expr, file: SourceFile) -> Span:
    """Return the place of a node: its own, or that of its parts, or of what it is a part of."""
    around: exp.Expr | None = node
    while around is not None:
        found = offsets_of(around)
        if found is not None:
            around.meta[FIRST], around.meta[LAST] = found  # for what is around it
            return span_between(file, *found)
        around = around.parent
    return span_between(file, 0, len(file.text))


def text_of(node: exp.Expr, file: SourceFile) -> str:
    """Return the text of a node as the user wrote it; empty if its place is not known."""
    found = offsets_of(node)
    return file.text[found[0] : found[1]] if found else ""


def span_between(file: SourceFile, start: int, end: int) -> Span:
    """Return the span between two offsets in a file."""
    line, column = _position(file, start)
    end_line, end_column = _position(file, max(start, end))
    return Span(file, line, column, end_line, end_column)


def _position(file: SourceFile, offset: int) -> tuple[int, int]:
    starts = _line_starts(file.text)
    index = bisect_right(starts, offset) - 1
    return file.first_line + index, offset - starts[index] + 1


@lru_cache(maxsize=8)
def _line_starts(text: str) -> tuple[int, ...]:
    return (0, *(found.end() for found in re.finditer("\n", text)))
