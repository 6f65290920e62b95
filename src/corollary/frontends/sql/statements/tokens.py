"""Reads the tokens of statements that sqlglot does not parse, from left to right."""

from collections.abc import Sequence
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.frontends.sql.parse import span_between
from corollary.source import SourceFile, Span

_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})


@dataclass(frozen=True, slots=True)
class SqlName:
    """A name as it is spelled, and its place."""

    text: str
    span: Span


class TokenCursor:
    """Reads the tokens of one statement from left to right."""

    def __init__(self, tokens: Sequence[Token], file: SourceFile) -> None:
        self.tokens = tokens
        self.file = file
        self.position = 0

    # --- looking -------------------------------------------------------------------------------

    def has_ended(self) -> bool:
        """Whether no token is left."""
        return self.position >= len(self.tokens)

    def word(self, ahead: int = 0) -> str:
        """Return a token in capitals, if it is not a quoted name or a string; else ''."""
        at = self.position + ahead
        if at >= len(self.tokens):
            return ""
        token = self.tokens[at]
        is_quoted = token.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
        return "" if is_quoted else token.text.upper()

    def is_next(self, *words: str) -> bool:
        """Whether these words come next."""
        return self._count(words) > 0

    def _count(self, words: tuple[str, ...]) -> int:
        """Return how many tokens these words are, if they come next; else 0.

        A token may be several words: for the tokenizer, `PRIMARY KEY` is one.
        """
        left, ahead = list(words), 0
        while left:
            parts = self.word(ahead).split()
            if not parts or left[: len(parts)] != parts:
                return 0
            del left[: len(parts)]
            ahead += 1
        return ahead

    @property
    def span(self) -> Span:
        """The place of the next token, or of the end of the statement."""
        if not self.has_ended():
            return self.span_of(self.tokens[self.position])
        end = self.tokens[-1].end + 1 if self.tokens else 0
        return span_between(self.file, end, end)

    def span_of(self, token: Token) -> Span:
        """Return the place of a token."""
        return span_between(self.file, token.start, token.end + 1)

    def span_from(self, position: int) -> Span:
        """Return the place of the tokens from a position to the cursor."""
        last = max(position, self.position - 1)
        return span_between(self.file, self.tokens[position].start, self.tokens[last].end + 1)

    # --- reading -------------------------------------------------------------------------------

    def accept(self, *words: str) -> bool:
        """Pass over these words, if they come next."""
        count = self._count(words)
        self.position += count
        return count > 0

    def expect(self, *words: str) -> None:
        """Pass over these words.

        Raises:
            InputError: something else comes.
        """
        if not self.accept(*words):
            self.fail(f"`{' '.join(words)}`")

    def name(self, what: str) -> SqlName:
        """Return the name that comes next, of which `what` says what it names.

        Raises:
            InputError: something else comes.
        """
        if self.has_ended():
            self.fail(what)
        token = self.tokens[self.position]
        is_word = token.text.isidentifier() and token.token_type is not TokenType.STRING
        if token.token_type is not TokenType.IDENTIFIER and not is_word:
            self.fail(what)
        if token.token_type is TokenType.IDENTIFIER and not token.text:
            self.fail(what)
        self.position += 1
        return SqlName(token.text, self.span_of(token))

    def names(self, what: str) -> tuple[SqlName, ...]:
        """Return the names in brackets that come next."""
        self.expect("(")
        found = [self.name(what)]
        while self.accept(","):
            found.append(self.name(what))
        self.expect(")")
        return tuple(found)

    def string(self, what: str) -> str:
        """Return the string that comes next; strings beside each other are one.

        Raises:
            InputError: something else comes.
        """
        if not self.is_string():
            self.fail(f"{what}, in single quotes")
        found = ""
        end = -1
        while self.is_string():
            token = self.tokens[self.position]
            # `'it''s'` is one text with a quote; `'a' 'b'` are two that are joined.
            found += (self.file.text[end] if token.start == end + 1 else "") + token.text
            end = token.end
            self.position += 1
        return found

    def is_string(self) -> bool:
        """Whether a string comes next."""
        return not self.has_ended() and self.tokens[self.position].token_type is TokenType.STRING

    def bracketed(self) -> list[Token]:
        """Return the tokens between the bracket that comes next and the one that closes it."""
        start, first = self.span, self.position + 1
        self.expect("(")
        depth = 1
        while depth and not self.has_ended():
            kind = self.tokens[self.position].token_type
            depth += (kind in _OPENING) - (kind in _CLOSING)
            self.position += 1
        if depth:
            raise InputError.of("C1361", "This bracket is not closed.", start, "add `)`")
        return list(self.tokens[first : self.position - 1])

    def rest(self) -> list[Token]:
        """Return all tokens that are left."""
        found = list(self.tokens[self.position :])
        self.position = len(self.tokens)
        return found

    def finish(self) -> None:
        """Check that nothing is left.

        Raises:
            InputError: something is.
        """
        if not self.has_ended():
            self.fail("the end of the statement")

    def fail(self, expected: str) -> NoReturn:
        """Raise an error that says what is expected here, and what comes instead."""
        found = "the statement ends" if self.has_ended() else f"`{self._shown()}` comes"
        raise InputError.of(
            "C1361",
            f"Here {expected} is expected, but {found}.",
            self.span,
            "write it, or check the words before this place",
        )

    def _shown(self) -> str:
        span = self.span
        if span.line == span.end_line:
            return span.file.line(span.line)[span.column - 1 : span.end_column - 1]
        return self.tokens[self.position].text


def text_of(tokens: Sequence[Token], file: SourceFile) -> str:
    """Return the text of a statement as it was written, without the `;` after it."""
    return file.text[tokens[0].start : tokens[-1].end + 1] if tokens else ""
