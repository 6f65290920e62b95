"""The SQL templates of functors as sqlglot trees: parsed once, filled with trees of arguments."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from typing import Any, ClassVar

from sqlglot import exp, tokenize
from sqlglot.dialects.spark import Spark
from sqlglot.parser import Parser

from corollary.core.functors.spec import FunctorSpec

Node = exp.Expr

# sqlglot writes TIME as TIMESTAMP, which Spark had in place of it before 4.1.
Spark.Generator.TYPE_MAPPING[exp.DataType.Type.TIME] = "TIME"

COMPARISONS: Mapping[str, type[exp.Binary]] = {
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
    "is": exp.NullSafeEQ,
}
"""The comparisons of rules."""

_ZONES = {
    **dict.fromkeys(("VV", "z", "zz", "zzz"), "UTC"),
    "zzzz": "Coordinated Universal Time",
    **dict.fromkeys(("X", "XX", "XXX", "XXXX", "XXXXX", "ZZZZZ"), "Z"),
    "x": "+00",
    **dict.fromkeys(("xx", "xxxx", "Z", "ZZ", "ZZZ"), "+0000"),
    **dict.fromkeys(("xxx", "xxxxx"), "+00:00"),
    **dict.fromkeys(("O", "OOOO", "ZZZZ"), "GMT"),
}
_CLOCK = {"H": "H", "h": "I", "k": "k", "K": "K", "m": "M", "s": "S"}
TIME_PATTERNS = {
    "yyyy": "%Y",
    "MM": "%m",
    "dd": "%d",
    "DDD": "%j",
    **{letter * 2: f"%{directive}" for letter, directive in _CLOCK.items()},
    "SSSSSS": "%f",
    "MMM": "%b",
    "MMMM": "%B",
    **dict.fromkeys(("E", "EE", "EEE"), "%a"),
    "EEEE": "%A",
    "a": "%p",
    "yy": "%y",
    **{"y" * digits: f"%{digits}Y" for digits in (1, 3, 5, 6)},
    **{"S" * digits: f"%{digits}f" for digits in (1, 2, 3, 4, 5, 7, 8, 9)},
    **{letter: f"%1{directive}" for letter, directive in _CLOCK.items()},
    "M": "%1m",
    "L": "%1m",
    "LL": "%m",
    "LLL": "%b",
    "LLLL": "%B",
    "d": "%1d",
    "D": "%1j",
    "DD": "%2j",
    **dict.fromkeys("qQ", "%1q"),
    **{letter * 2: "%2q" for letter in "qQ"},
    **{letter * 3: "Q%1q" for letter in "qQ"},
    **dict.fromkeys(("G", "GG", "GGG"), "AD"),
    "GGGG": "Anno Domini",
    **_ZONES,
}
"""Spark's patterns of dates, and what they are in the rule language; times are in UTC."""

READ_PATTERNS = {
    "yyyy": "%Y",
    "yyy": "%3Y",
    "yy": "%y",
    "y": "%1Y",
    "MMMM": "%B",
    "MMM": "%b",
    "MM": "%2m",
    "M": "%1m",
    "dd": "%2d",
    "d": "%1d",
    "LLLL": "%B",
    "LLL": "%b",
    "LL": "%2m",
    "L": "%1m",
    "DDD": "%3j",
    "DD": "%2j",
    "D": "%1j",
    "a": "%p",
    **{
        letter * digits: f"%{digits}{directive}"
        for letter, directive in _CLOCK.items()
        for digits in (1, 2)
    },
    **{"S" * digits: f"%{digits}f" for digits in range(1, 10)},
    "X": "%1z",
    "XX": "%2z",
    "XXX": "%3z",
    **dict.fromkeys(("Z", "ZZ", "ZZZ"), "%4z"),
}
"""The same where times are read: numbers have exactly as many digits, but for a single letter."""

ALL_ARGUMENTS = "arguments"
RESULT = "RESULT"


class _TemplateParser(Parser):
    """A parser that leaves every function what it is written as."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: Parser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST")
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "CASE": Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]
    }


@cache
def parse_template(text: str) -> Node:
    """Return the tree of a template; functions are what they are written as."""
    (tree,) = _TemplateParser().parse(tokenize(text), text)
    assert tree is not None, text
    return tree


def fill_template(
    text: str,
    spec: FunctorSpec,
    arguments: Sequence[Node],
    result: exp.DataType | None = None,
    enclose: Callable[[Node, Node], Node] | None = None,
) -> Node:
    """Return what a functor is in SQL for some arguments, whose trees become parts of it.

    A template of two arguments of a functor that takes more is applied to them one after the other.

    Args:
        text: the template.
        spec: the functor.
        arguments: as trees.
        result: the type of the result.
        enclose: puts an argument in parentheses where the node that it becomes an operand of
            needs them.
    """
    tree = parse_template(text)

    def fill(values: Sequence[Node]) -> Any:
        named = dict(zip(spec.arguments, values, strict=False))

        def copy(part: Any, parent: Node | None = None) -> Any:
            match part:
                case exp.Column() if parent is not None and enclose is not None:
                    return enclose(parent, named[part.name])
                case exp.Column():
                    return named[part.name]
                case exp.DataType() if part.args.get("kind") == RESULT:
                    return result
                case exp.DataType() | exp.Literal() | exp.Null() | exp.Boolean():
                    return part  # nothing to fill in: it may be shared
                case exp.Expr():
                    return type(part)(**{key: copy(each, part) for key, each in part.args.items()})
                case [exp.Column() as only] if only.name == ALL_ARGUMENTS:
                    return list(values)
                case list():
                    return [copy(each) for each in part]
                case _:
                    return part

        return copy(tree)

    if spec.is_variadic and ALL_ARGUMENTS not in text:
        return reduce(lambda one, other: fill([one, other]), arguments)
    made: Node = fill(arguments)
    return made
