"""The SQL templates of functors as sqlglot trees: parsed once, filled with trees of arguments."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from typing import Any, ClassVar

from sqlglot import exp, tokenize
from sqlglot.parser import Parser

from corollary.core.functors.spec import FunctorSpec

Node = exp.Expr

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
def _parse(text: str) -> Node:
    (tree,) = _TemplateParser().parse(tokenize(text), text)
    assert tree is not None, text
    return tree


def _leave(parent: Node, child: Node) -> Node:  # noqa: ARG001 - the shape of `enclose`
    return child


def fill_template(
    text: str,
    spec: FunctorSpec,
    arguments: Sequence[Node],
    result: exp.DataType | None = None,
    enclose: Callable[[Node, Node], Node] = _leave,
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
    tree = _parse(text)

    def fill(values: Sequence[Node]) -> Node:
        filling = _Filling(dict(zip(spec.arguments, values, strict=False)), values, result, enclose)
        return filling.of(tree)

    if spec.is_variadic and ALL_ARGUMENTS not in text:
        return reduce(lambda one, other: fill([one, other]), arguments)
    return fill(arguments)


class _Filling:
    """Copies a template; what has nothing to fill in may be shared."""

    def __init__(
        self,
        named: Mapping[str, Node],
        arguments: Sequence[Node],
        result: exp.DataType | None,
        enclose: Callable[[Node, Node], Node],
    ) -> None:
        self._named = named
        self._arguments = arguments
        self._result = result
        self._enclose = enclose

    def of(self, node: Node) -> Node:
        """Return a filled copy of a node of the template."""
        match node:
            case exp.Column():
                return self._named[node.name]
            case exp.DataType():
                is_result = self._result is not None and node.args.get("kind") == RESULT
                return self._result if is_result and self._result is not None else node
            case exp.Literal() | exp.Null() | exp.Boolean():
                return node
            case _:
                parts = {key: self._part(node, value) for key, value in node.args.items()}
                return type(node)(**parts)

    def _part(self, parent: Node, value: Any) -> Any:
        if isinstance(value, list):
            is_all = len(value) == 1 and value[0].name == ALL_ARGUMENTS
            return list(self._arguments) if is_all else [self.of(each) for each in value]
        if isinstance(value, exp.Column):
            return self._enclose(parent, self.of(value))
        return self.of(value) if isinstance(value, exp.Expr) else value
