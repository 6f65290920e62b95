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

TIME_PATTERNS = {
    "yyyy": "%Y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
    "SSSSSS": "%f",
    "DDD": "%j",
    "MMM": "%b",
    "MMMM": "%B",
    "E": "%a",
    "EEE": "%a",
    "EEEE": "%A",
}
"""Spark's patterns of dates, and what they are in the rule language."""

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
