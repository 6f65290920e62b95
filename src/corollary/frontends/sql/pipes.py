"""Pipes: `FROM t |> WHERE c |> SELECT a` becomes `SELECT a FROM t WHERE c`, token by token.

| operator | the query around what was read before |
|---|---|
| `SELECT x`, `EXTEND x` | `SELECT x FROM (…)`, `SELECT *, x FROM (…)` |
| `SET a = x`, `DROP a` | `SELECT * REPLACE (x AS a) FROM (…)`, `SELECT * EXCEPT (a) FROM (…)` |
| `AGGREGATE f GROUP BY k` | `SELECT k, f FROM (…) GROUP BY k` |
| `WHERE`, `ORDER BY`, `LIMIT`, `OFFSET` | `SELECT * FROM (…) WHERE …` |
| `JOIN`, `PIVOT`, `UNPIVOT`, `UNION` … | as they stand after `FROM (…)`, or between queries |

A name of the source lasts until a SELECT or AGGREGATE. An order counts for a LIMIT that follows.
"""

from collections.abc import Callable, Sequence
from dataclasses import field

from sqlglot.tokenizer_core import Token, TokenType

from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.source import Span

_Tokens = list[Token]
_SETS = ("UNION", "EXCEPT", "INTERSECT", "MINUS")
_JOINS = ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "SEMI", "ANTI", "NATURAL")
_CLAUSES = ("SELECT", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "HAVING", "JOIN", ",")


def without_pipes(tokens: Sequence[Token], place: Callable[[Token], Span]) -> _Tokens:
    """Return the tokens of a query, or of a part of one, without pipes.

    Args:
        tokens: the tokens.
        place: returns that of a token.

    Raises:
        InputError: something else comes after a pipe.
    """
    parts: list[_Tokens] = [[]]
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.token_type is TokenType.PIPE_GT:
            parts.append([])
        elif token.token_type is TokenType.L_PAREN:
            end = _closing(tokens, at)
            parts[-1] += [
                token,
                *without_pipes(tokens[at + 1 : end], place),
                *tokens[end : end + 1],
            ]
            at = end
        else:
            parts[-1].append(token)
        at += 1
    if len(parts) == 1:
        return parts[0]
    if not all(parts):
        raise _unknown(place(tokens[0]))
    pipe = _Pipe.of(parts[0])
    for each in parts[1:]:
        pipe.apply(each, place(each[0]))
    return pipe.query()


def _closing(tokens: Sequence[Token], opening: int) -> int:
    depth = 0
    for at in range(opening, len(tokens)):
        kind = tokens[at].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if not depth:
            return at
    return len(tokens)


def _unknown(span: Span) -> InputError:
    note = "after `|>` come SELECT, EXTEND, SET, DROP, AS, WHERE, AGGREGATE, JOIN, ORDER BY, LIMIT"
    return InputError.of("C1300", "This pipe is not supported.", span, f"{note} and their like")


@dataclass(slots=True)
class _Pipe:
    """A query so far.

    Attributes:
        source: what is after its FROM.
        name: that of the source, if it has one.
        tests: the conditions of WHERE.
        order: that of ORDER BY.
        done: the whole query, if nothing has come since.
    """

    source: _Tokens
    name: _Tokens = field(default_factory=list)
    tests: list[_Tokens] = field(default_factory=list)
    order: _Tokens = field(default_factory=list)
    done: _Tokens = field(default_factory=list)

    @classmethod
    def of(cls, first: _Tokens) -> "_Pipe":
        """Return the pipe that begins with a query, or with FROM alone."""
        words = [each.text.upper() for each in first]
        if words[0] != "FROM" or any(each in _CLAUSES[:6] for each in words):
            return cls(_bracketed(first))
        is_one = not any(each in (*_CLAUSES, "(", "VIEW") for each in words)
        return cls(first[1:], first[-1:] if is_one else [])

    def apply(self, part: _Tokens, span: Span) -> None:
        """Read what comes after a pipe."""
        (head, *rest), word = part, part[0].text.upper()
        self.done = self.done if word == "AS" else []
        match word:
            case "SELECT":
                self._wrap(self._selected(rest), keeps_name=False)
            case "EXTEND":
                self._wrap(self._selected(_words(head, "*", ",") + rest))
            case "SET":
                for each in _listed(rest):  # each sees the ones before
                    replaced = _bracketed(_replacement(each, span))
                    self._wrap(self._selected(_words(head, "*", "REPLACE") + replaced))
            case "DROP":
                self._wrap(self._selected(_words(head, "*", "EXCEPT") + _bracketed(rest)))
            case "AGGREGATE":
                self._wrap(self._aggregated(head, rest), keeps_name=False)
            case "WHERE":
                self.tests.append(rest)
            case "ORDER BY":
                self.order = part
            case "LIMIT" | "OFFSET":
                self._wrap([*self._selected(_words(head, "*")), *part])
            case "AS":
                self.name = rest
                self._wrap(self.query())
            case "PIVOT" | "UNPIVOT" | "TABLESAMPLE":
                self._wrap(self._selected(_words(head, "*")), keeps_name=False)
                self.source, self.done = [*self.source, *part], []
            case _ if word in _JOINS:
                if self.tests or self.order:
                    self._wrap(self._selected(_words(head, "*")))
                self.source, self.name, self.done = [*self.source, *part], [], []
            case _ if word in _SETS:
                self._wrap([*_bracketed(self.query()), *part], keeps_name=False)
            case _:
                raise _unknown(span)

    def query(self) -> _Tokens:
        """Return the query."""
        return self.done or self._selected(_words(self.source[0], "*"))

    def _selected(self, items: _Tokens) -> _Tokens:
        place = items[0]
        found = [*_words(place, "SELECT"), *items, *_words(place, "FROM"), *self.source]
        for number, test in enumerate(self.tests):
            found += [*_words(place, "AND" if number else "WHERE"), *_bracketed(test)]
        return found + self.order

    def _aggregated(self, head: Token, rest: _Tokens) -> _Tokens:
        """Return the query of groups: their keys, then the aggregates."""
        self.order = []
        at = _find(rest, "GROUP BY")
        items, keys = rest[:at], _listed(rest[at + 1 :])
        shown = [token for key in keys for token in [*key, *_words(head, ",")]] + items
        found = self._selected(shown if items else shown[:-1])
        for number, key in enumerate(keys):
            found += _words(head, "," if number else "GROUP BY") + key[: _find(key, "AS")]
        return found

    def _wrap(self, query: _Tokens, *, keeps_name: bool = True) -> None:
        """Let a query be the source."""
        self.done, self.tests, self.order = query, [], []
        self.name = self.name if keeps_name else []
        self.source = [*_bracketed(query), *self.name]


_KINDS = {
    "*": TokenType.STAR,
    ",": TokenType.COMMA,
    "(": TokenType.L_PAREN,
    ")": TokenType.R_PAREN,
    "SELECT": TokenType.SELECT,
    "FROM": TokenType.FROM,
    "WHERE": TokenType.WHERE,
    "AND": TokenType.AND,
    "AS": TokenType.ALIAS,
    "GROUP BY": TokenType.GROUP_BY,
    "REPLACE": TokenType.REPLACE,
    "EXCEPT": TokenType.EXCEPT,
}


def _words(place: Token, *words: str) -> _Tokens:
    """Return words as tokens at the place of another one."""
    line = place.line, place.col, place.start, place.end
    return [Token(_KINDS[each], each, *line) for each in words]


def _bracketed(tokens: _Tokens) -> _Tokens:
    return [*_words(tokens[0], "("), *tokens, *_words(tokens[-1], ")")] if tokens else []


def _find(tokens: _Tokens, word: str) -> int:
    """Return where a word is, outside of brackets; the length if it is not there."""
    at = 0
    while at < len(tokens):
        if tokens[at].token_type is TokenType.L_PAREN:
            at = _closing(tokens, at)
        elif tokens[at].text.upper() == word and tokens[at].token_type is not TokenType.STRING:
            return at
        at += 1
    return len(tokens)


def _listed(tokens: _Tokens) -> list[_Tokens]:
    """Return the parts of a list with commas."""
    found: list[_Tokens] = []
    while tokens:
        at = _find(tokens, ",")
        found.append(tokens[:at])
        tokens = tokens[at + 1 :]
    return found


def _replacement(item: _Tokens, span: Span) -> _Tokens:
    """Return `x AS a` for `a = x`."""
    if len(item) < 3 or item[1].text != "=":
        raise _unknown(span)
    return [*item[2:], *_words(item[1], "AS"), item[0]]
