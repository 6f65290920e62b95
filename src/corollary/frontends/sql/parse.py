"""From SQL text to sqlglot's syntax trees, and from their nodes to positions in the text.

The dialect is Spark's as sqlglot reads it, with two differences. Every node knows where its text
begins and ends. Functions are names: sqlglot rewrites many of them while it parses (`date_sub`
becomes an addition, `year(x)` gets a conversion inside); here every call stays `Anonymous(name,
arguments)`, except those with a syntax of their own, such as `CAST(x AS t)`.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from corollary.core.engine import check_deadline
from corollary.core.values import is_encodable
from corollary.errors import InputError
from corollary.frontends.sql.pipes import without_pipes
from corollary.source import SourceFile, Span

if TYPE_CHECKING:
    from sqlglot.parser import Parser
else:
    Parser = object

STEPS_PER_TOKEN = 20
STEPS_MIN = 10_000
INDICES_MAX = 32
NESTING_MAX_DEPTH = 100
"""How many brackets may be open at once, so that no later pass exhausts the stack."""

FIRST, LAST = "first", "last"
"""Where the text of a node begins and ends (exclusive): keys of its `meta`."""

CAST = "cast"
"""A key of the `meta` of a cast that has no text of its own: it is none of `DATE '…'`."""

_CALLS_WITH_SYNTAX = frozenset(
    ("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "SUBSTR", "TRIM")
)
_CALLS_WITHOUT_PARENTHESES = ("CASE", "IF")


class SqlSyntaxError(ParseError):
    """A text that cannot be parsed, with the place of the token where it was noticed."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end


class BoundedParser(Parser):
    """A mixin that bounds the work of a parser: too many steps fail like too deep a text.

    Where a type may stand (`DATE(…`, `ARRAY[…`), sqlglot reads what follows as a type, and then
    again as an expression: each level of nesting doubles the work, so that 100 characters can take
    minutes. Ordinary statements take one to four steps for each token. For each index of
    `a[1][2]…` it copies all that is before it.
    """

    _steps = 0

    def _advance_chunk(self) -> None:
        self._steps = 0
        super()._advance_chunk()

    def _advance(self, times: int = 1) -> None:
        self._steps += 1
        if self._steps > STEPS_MIN + STEPS_PER_TOKEN * self._tokens_size:
            raise RecursionError("the statement is nested too deeply")
        super()._advance(times)

    def _parse_bracket(self, this: exp.Expr | None = None) -> Any:
        found, indices = this, 0
        while isinstance(found, exp.Bracket):
            found, indices = found.this, indices + 1
        if indices > INDICES_MAX:
            raise RecursionError("an element of an element of an element …")
        return super()._parse_bracket(this)


class PositionParser(BoundedParser, SparkParser):
    """Spark's parser, with positions and without rewriting of functions."""

    STRICT_CAST = True
    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}  # `array(x)[0]` is an element
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: parse
        for name, parse in SparkParser.FUNCTION_PARSERS.items()
        if name in _CALLS_WITH_SYNTAX
    }
    TERM: ClassVar[dict[TokenType, type[exp.Binary]]] = {
        **SparkParser.TERM,
        TokenType.DPIPE: exp.DPipe,  # as strong as `+` in Spark
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

    def _parse_bitwise(self, weakest: int = 0) -> Any:
        """Parse operators on bits that bind as strongly as one at least, the weakest first."""
        this = self._parse_term()
        while (found := self._bit_operator()) and found[0] >= weakest:
            strength, width, kind = found
            self._advance(width)
            other = self._parse_bitwise(strength + 1)
            node: exp.Expr = self.expression(kind(this=this, expression=other))
            if width == 3:
                node = exp.Anonymous(this="shiftrightunsigned", expressions=[this, other])
            this = self._extended(this, node)
        return this

    def _bit_operator(self) -> tuple[int, int, type[exp.Expr]] | None:
        """Return the strength of the operator here, its number of tokens and its node."""
        signs = [each.token_type for each in self._tokens[self._index : self._index + 3]]
        for known, strength, kind in _BIT_OPERATORS:
            if tuple(signs[: len(known)]) == known:
                return strength, len(known), kind
        return None

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

    def _parse_pivot_aggregation(self) -> Any:
        return self._parse_alias(self._parse_bitwise())  # an expression of aggregates

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
    """The dialect whose parser is `PositionParser`; no statement is a text after its first word."""

    Parser = PositionParser

    class Tokenizer(Spark.Tokenizer):
        """Spark's tokens."""

        COMMANDS: ClassVar[set[TokenType]] = set()


_BIT_OPERATORS: tuple[tuple[tuple[TokenType, ...], int, type[exp.Expr]], ...] = (
    ((TokenType.PIPE,), 0, exp.BitwiseOr),
    ((TokenType.CARET,), 1, exp.BitwiseXor),
    ((TokenType.AMP,), 2, exp.BitwiseAnd),
    ((TokenType.GT,) * 3, 3, exp.BitwiseRightShift),
    ((TokenType.GT,) * 2, 3, exp.BitwiseRightShift),
    ((TokenType.LT,) * 2, 3, exp.BitwiseLeftShift),
)
"""Tokens of operators on bits, their strength, and their node; `>>>` becomes a function."""

_PAIRS = {TokenType.R_PAREN: TokenType.L_PAREN, TokenType.R_BRACKET: TokenType.L_BRACKET}


_PARSER_ERRORS = (
    *(ParseError, TokenError),  # a hint is made of tokens by the parser
    *(ValueError, TypeError, AttributeError, IndexError, KeyError),
)
"""What sqlglot's parser raises; it was not written for texts that are not SQL at all."""


def split_statements(
    file: SourceFile, dialect: type[Dialect] = SparkWithPlaces
) -> list[list[Token]]:
    """Return the tokens of each statement of a text; `;` ends a statement, and empty ones go.

    Raises:
        InputError: a string or a comment has no end, or the text has what is no character.

    >>> [[token.text for token in each] for each in split_statements(SourceFile("q", "a; ;b -- c"))]
    [['a'], ['b']]
    """
    found: list[list[Token]] = [[]]
    for token in _with_names_and_bytes(_tokenise(file, dialect)):
        if token.token_type is TokenType.SEMICOLON:
            found.append([])
        else:
            found[-1].append(token)
    return [tokens for tokens in found if tokens]


def _with_names_and_bytes(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield tokens with the names that `IDENTIFIER('a.b')` says, and bytes in place of `X '61'`."""
    at = 0
    while at < len(tokens):
        part = tokens[at : at + 4]
        kinds = tuple(each.token_type for each in part[1:])
        is_word = part[0].token_type is TokenType.VAR
        if is_word and part[0].text in {"X", "x"} and kinds[:1] == (TokenType.STRING,):
            yield _replaced(part[0], TokenType.HEX_STRING, part[1].text, part[1].end)
            at += 2
            continue
        if part[0].text.upper() != "IDENTIFIER" or kinds != _IN_BRACKETS:
            yield part[0]
            at += 1
            continue
        for number, name in enumerate(part[2].text.split(".")):
            if number:
                yield _replaced(part[2], TokenType.DOT, ".")
            yield _replaced(part[2], TokenType.IDENTIFIER, name.strip("`"))
        at += 4


_IN_BRACKETS = (TokenType.L_PAREN, TokenType.STRING, TokenType.R_PAREN)


def _tokenise(file: SourceFile, dialect: type[Dialect]) -> list[Token]:
    if not is_encodable(file.text):
        at = next(i for i, character in enumerate(file.text) if not is_encodable(character))
        _refuse(file, at, at + 1, "The text has a NUL or half a surrogate pair in it.")
    try:
        tokens = list(dialect().tokenize(file.text))
    except TokenError as problem:
        _refuse(file, *_place_of(problem, file.text), _token_sentence(problem))
    check_deadline()
    return tokens


def parse_query(tokens: Sequence[Token], file: SourceFile) -> exp.Expr:
    """Return the tree of a query, or of a write.

    It is made of tokens of a whole text, so the positions of its nodes are positions in that.

    Raises:
        InputError: the tokens are not one.
    """
    return _parse_one(tokens, file, None, "a query")


def parse_condition(tokens: Sequence[Token], file: SourceFile) -> exp.Expr:
    """Return the tree of a condition.

    Raises:
        InputError: the tokens are not one.
    """
    return _parse_one(tokens, file, exp.Condition, "a condition")


def parse_type(tokens: Sequence[Token], file: SourceFile) -> exp.Expr:
    """Return the tree of a type.

    Raises:
        InputError: the tokens are not one.
    """
    return _parse_one(tokens, file, exp.DataType, "a type")


def _parse_one(
    tokens: Sequence[Token], file: SourceFile, into: type[exp.Expr] | None, what: str
) -> exp.Expr:
    _check_nesting(tokens, file)
    found = _parse(tokens, file, into) if tokens else ()
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


def _parse(
    tokens: Sequence[Token], file: SourceFile, into: type[exp.Expr] | None
) -> tuple[exp.Expr, ...]:
    given = _with_names(
        without_pipes(_selected(tokens), lambda each: span_between(file, each.start, each.end + 1))
    )
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
        trees = (tree for tree in found if isinstance(tree, exp.Expr))
        if any(each.token_type is TokenType.FARROW for each in given):
            trees = (rewrite_tree(tree, partial(_placed, file=file)) for tree in trees)
        return tuple(trees)
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


_OUTER = ("", "_outer")
_NAMED_ARGUMENTS: Mapping[str, Mapping[str, str | None]] = {
    "mask": {"str": None, "upperchar": "X", "lowerchar": "x", "digitchar": "n", "otherchar": ""},
    **{f"explode{outer}": {"collection": None} for outer in _OUTER},
    **{f"posexplode{outer}": {"collection": None} for outer in _OUTER},
    **{f"inline{outer}": {"input": None} for outer in _OUTER},
}
"""The functions whose arguments have names in Spark, with their defaults; an empty one is null."""


def _placed(node: exp.Expr, file: SourceFile) -> exp.Expr:
    """Return a call with its named arguments in their places.

    Raises:
        InputError: it has no such argument, or has it twice, or lacks one.
    """
    arguments = [node.this, *node.expressions] if isinstance(node, exp.Explode) else []
    arguments = node.expressions if isinstance(node, exp.Anonymous) else arguments
    named = [each for each in arguments if isinstance(each, exp.Kwarg)]
    if not named:
        return node
    key = node.key.replace("outer", "_outer")
    function = node.name.lower() if isinstance(node, exp.Anonymous) else key
    known = _NAMED_ARGUMENTS.get(function)
    if known is None:  # it may be one that a statement has made
        return node
    given = dict(zip(known, arguments[: len(arguments) - len(named)], strict=False))
    for each in named:
        name = each.this.name.lower()
        if name not in known or name in given:
            problem = "gets twice" if name in given else "does not have"
            raise InputError.of(
                "C1310",
                f"`{function}` {problem} an argument `{each.this.name}`.",
                span_of(each.expression, file),
                f"its arguments are {', '.join(f'`{name}`' for name in known)}, each once",
            )
        given[name] = each.expression
    names = list(known)
    last = max(map(names.index, given))
    for name in names[: last + 1]:
        default = known[name]
        if name not in given and default is None:
            message = f"`{function}` needs an argument `{name}`."
            raise InputError.of("C1310", message, span_of(node, file), "give it one")
        if name not in given:
            given[name] = exp.Literal.string(default) if default else exp.Null()
    placed = [given[name] for name in names[: last + 1]]
    if isinstance(node, exp.Explode):
        node.set("this", placed[0])
    else:
        node.set("expressions", placed)
    return node


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


_LEVELS = ("MAX", "RECURSION", "LEVEL")


_SET_OPERATORS = frozenset({TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT})
_TABLE_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER})


def _selected(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens of a query in which `TABLE t` is `SELECT * FROM t`."""
    found: list[Token] = []
    for token, following in zip_longest(tokens, tokens[1:]):
        before = [each.token_type for each in found[-2:]] or [TokenType.L_PAREN]
        begins = before[-1] is TokenType.L_PAREN or before[-1] in _SET_OPERATORS
        begins |= before[0] in _SET_OPERATORS and before[-1] in _QUANTIFIERS
        is_name = following is not None and following.token_type in _TABLE_NAMES
        if token.token_type is TokenType.TABLE and begins and is_name:
            found.append(_replaced(token, TokenType.SELECT, "SELECT"))
            found.append(_replaced(token, TokenType.STAR, "*"))
            found.append(_replaced(token, TokenType.FROM, "FROM"))
        else:
            found.append(token)
    return found


def _with_names(tokens: Sequence[Token]) -> list[Token]:
    """Return tokens in which `all` of `SELECT all, 2` and `window` of `window(t)` are names.

    `MAX RECURSION LEVEL n` is left out, which only says when Spark gives a recursion up.
    """
    found = list(tokens)
    for at in reversed(range(len(found) - 4)):
        words = tuple(each.text.upper() for each in found[at : at + 3])
        is_number = found[at + 3].token_type is TokenType.NUMBER
        if words == _LEVELS and is_number and found[at + 4].token_type is TokenType.ALIAS:
            del found[at : at + 4]
    for at in range(1, len(found)):
        after = found[at + 1].token_type if at + 1 < len(found) else TokenType.SEMICOLON
        if found[at].token_type is TokenType.WINDOW and after is TokenType.L_PAREN:
            found[at] = _as_name(found[at])
        before = [each.token_type for each in found[max(0, at - 2) : at]]
        is_first = before[-1] is TokenType.SELECT or (
            before[0] is TokenType.SELECT and before[-1] in _QUANTIFIERS
        )
        if is_first and found[at].token_type in _QUANTIFIERS and after in (*_ENDS, TokenType.ALIAS):
            found[at] = _as_name(found[at])
    return found


def _as_name(word: Token) -> Token:
    return _replaced(word, TokenType.VAR, word.text)


def _replaced(word: Token, kind: TokenType, text: str, end: int | None = None) -> Token:
    end = word.end if end is None else end
    return Token(kind, text, word.line, word.col, word.start, end, word.comments)


_DIRECTIONS = frozenset({TokenType.ASC, TokenType.DESC})


def _check_neighbours(tokens: list[Token], file: SourceFile) -> None:
    """Refuse what the parser would pass over: empty places in lists, a second direction."""
    for token, following in zip_longest(tokens, tokens[1:]):
        kind = token.token_type
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


def rewrite_tree(tree: exp.Expr, replaced: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return a tree in which a function has replaced every node, inner ones first."""
    for node in reversed(list(tree.walk())):
        parent, key, index = node.parent, node.arg_key, node.index
        found = replaced(node)
        if found is node:
            continue
        if parent is None or key is None or node is tree:
            tree = found
        elif index is None:
            parent.set(key, found)
        else:
            # Not by `set`, which visits all elements of a list to replace one of them.
            parent.args[key][index] = found
            found.parent, found.arg_key, found.index = parent, key, index
    return tree


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


def without_places(tree: exp.Expr) -> exp.Expr:
    """Return a copy of a tree that is no part of its text any more."""
    tree = tree.copy()
    for node in tree.walk():
        for key in (FIRST, LAST, "start", "end", "line", "col"):
            node.meta.pop(key, None)
    return tree


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
