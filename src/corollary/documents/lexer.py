"""The tokens of queries on documents, and what to say about XPath that is none of them."""

import re
from dataclasses import dataclass

from corollary.documents.errors import QuerySyntaxError
from corollary.errors import Diagnostic
from corollary.source import SourceFile, Span

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<variable>\$[^\W\d][\w.\-]*)
    | (?P<attribute>@[^\W\d][\w.\-:]*)
    | (?P<quoted>"[^"]*"|'[^']*')
    | (?P<text>text\s*\(\s*\))
    | (?P<axis>[\w\-]+::)
    | (?P<call>(?!(?:and|or|where|return)\b)[^\W\d][\w.\-]*\s*\()
    | (?P<name>\w(?:[\w.\-]|:(?!:))*)
    | (?P<dots>\.\.)
    | (?P<below>\.?//)
    | (?P<sign>!=|<=|>=|[/\[\]()|=*,.<>+@!$-])
    | (?P<end>\Z)
    | (?P<other>.))""",
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS = frozenset({"and", "or", "where", "return"})
_HABITS = {
    "axis": (
        "The axis `{}` is not supported: patterns only go down, by `/` and `//`.",
        "turn the query around, with a predicate at the upper node: `a[b]`, not `b/parent::a`",
    ),
    "dots": (
        "`..` is not supported: patterns only go down, by `/` and `//`.",
        "begin at the upper node, and write what is below it as a predicate: `a[b][c]`",
    ),
    "call": (
        "The function `{}` is not supported in queries.",
        "a query says what has to be there; only `text()` may be called",
    ),
    "not": (
        "`not(…)` is not supported: a stream may still bring what is missing so far.",
        "ask for the value of the positive query: 0 means that it will never match",
    ),
    "position": (
        "Positions are not supported: the trees of a document have no order.",
        "tell nodes apart by what is in them: `item[id='7']`",
    ),
    "comparison": (
        "`{}` is not supported: labels are only compared with `=`.",
        "select by comparing the answers that the query returns",
    ),
    "arithmetic": ("`{}` is not supported: queries do not compute.", None),
    "@*": (
        "`@*` is not supported: attributes are asked for by name.",
        "write `@name`, or `*` for any child",
    ),
}


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its type, its text without decoration, where it stands."""

    type: str
    text: str
    span: Span


def tokens(source: SourceFile) -> list[Token]:
    """Return the tokens of a query; the last one is `end`.

    Raises:
        QuerySyntaxError: it holds something that no query has.
    """
    found: list[Token] = []
    place = 0
    while not found or found[-1].type != "end":
        match = _TOKEN.match(source.text, place)
        assert match is not None  # the last alternative takes anything
        kind = match.lastgroup or "end"
        start, end = match.span(kind)
        found.append(_token(kind, match.group(kind), span_of(source, start, end), found))
        place = match.end()
    return found


def span_of(source: SourceFile, start: int, end: int) -> Span:
    """Return a stretch of a query as a span."""
    line = source.text.count("\n", 0, start) + 1
    column = start - source.text.rfind("\n", 0, start)
    return Span(source, line, column, line, column + max(1, end - start))


def _token(kind: str, text: str, span: Span, before: list[Token]) -> Token:
    match kind:
        case "axis" | "dots":
            raise habit(kind, text, span)
        case "call":
            raise habit(_called(text), text.rstrip("( \t\n"), span)
        case "sign" if text in ("!=", "<", "<=", ">", ">=", "!"):
            raise habit("comparison", text, span)
        case "sign" if text in ("+", "-"):
            raise habit("arithmetic", text, span)
        case "sign" if text == "*" and before and before[-1].text == "@":
            raise habit("@*", text, before[-1].span.to(span))
        case "other":
            raise wrong(f"`{text}` does not belong into a query.", span)
        case "variable" | "attribute":
            return Token(kind, text[1:] if kind == "variable" else text, span)
        case "quoted":
            return Token(kind, text[1:-1], span)
        case "name" if text in _KEYWORDS:
            return Token(text, text, span)
        case "sign":
            return Token(text, text, span)
        case _:
            return Token(kind, text, span)


def _called(text: str) -> str:
    name = text.rstrip("( \t\n")
    if name == "not":
        return "not"
    return "position" if name in ("position", "last") else "call"


def habit(kind: str, text: str, span: Span) -> QuerySyntaxError:
    """Return the error of an XPath construct that patterns do not have."""
    message, note = _HABITS[kind]
    return QuerySyntaxError([Diagnostic("C1201", message.format(text), span, note)])


def wrong(
    message: str, span: Span | None, note: str | None = None, code: str = "C1200"
) -> QuerySyntaxError:
    """Return the error of a query at a place."""
    return QuerySyntaxError([Diagnostic(code, message, span, note)])
