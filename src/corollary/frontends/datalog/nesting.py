"""How deeply a program may be nested, so that no later pass runs out of stack."""

from collections.abc import Iterable

from corollary.core.rules import Atom, Clause, Comparison, Disjunction, Negation
from corollary.core.terms import Aggregate, Functor
from corollary.errors import InputError
from corollary.frontends.datalog.lexer import Lexeme
from corollary.source import Span

MAXIMAL_DEPTH = 100

_OPENING = frozenset({"LPAR", "LBRACE"})
_CLOSING = frozenset({"RPAR", "RBRACE"})
_PREFIXES = frozenset({"NOT", "MINUS", "PREFIX", "AGGREGATE", "EXTREME"})


def check_nesting(lexemes: Iterable[Lexeme]) -> None:
    """Raise an error where too many brackets are open or too many prefixes stand in a row."""
    depth = 0
    row = 0
    for lexeme in lexemes:
        if lexeme.type in _OPENING:
            depth += 1
        elif lexeme.type in _CLOSING:
            depth = max(0, depth - 1)
        elif lexeme.type == "DOT":
            depth = 0
        row = row + 1 if lexeme.type in _PREFIXES else 0
        if depth > MAXIMAL_DEPTH or row > MAXIMAL_DEPTH:
            raise _too_deep(lexeme.span)


def check_depth(items: Iterable[object]) -> None:
    """Raise an error where terms or bodies are nested too deeply, as long sums are."""
    stack = [(item, 0) for item in items]
    while stack:
        node, depth = stack.pop()
        if depth > MAXIMAL_DEPTH:
            raise _too_deep(getattr(node, "span", None))
        below: tuple[object, ...] = ()
        match node:
            case Clause(heads=heads, body=body):
                below = (*heads, *body)
            case Atom(arguments=arguments) | Functor(arguments=arguments):
                below = arguments
            case Negation(atom=atom):
                below = (atom,)
            case Comparison(left=left, right=right):
                below = (left, right)
            case Disjunction(alternatives=alternatives):
                below = tuple(item for alternative in alternatives for item in alternative)
            case Aggregate(target=target, body=body):
                below = body if target is None else (target, *body)
            case _:
                pass  # a leaf
        stack += [(child, depth + 1) for child in below]


def _too_deep(span: Span | None) -> InputError:
    return InputError.of(
        "C0101",
        f"This is nested more than {MAXIMAL_DEPTH} levels deep.",
        span,
        "split it into several rules",
    )
