"""Functions that statements define: a call stands for the body, with the arguments in it.

`CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1` makes `CAST(CAST(a AS INT) + 1 AS INT)` of
`f(a)`, before names are resolved.
"""

from collections.abc import Mapping
from functools import lru_cache, partial

from sqlglot import exp

from corollary.core.program import Program, sql_texts
from corollary.errors import InputError
from corollary.frontends.sql import parse
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.parser import parse_statements
from corollary.source import SourceFile

CALLS_MAX_DEPTH = 16
"""How many functions may call each other in a row."""


def functions_of(program: Program) -> dict[str, nodes.CreateFunction]:
    """Return the functions that a program keeps, by their names in small letters."""
    texts = (each for each in sql_texts(program).values() if "FUNCTION" in each[:60].upper())
    found = (function for text in texts for function in _read(text))
    return {each.name.text.lower(): each for each in found}


@lru_cache(maxsize=64)
def _read(text: str) -> tuple[nodes.CreateFunction, ...]:
    parsed = parse_statements(SourceFile.of_statement("function", text))
    return tuple(each for each in parsed if isinstance(each, nodes.CreateFunction))


def inline_functions(
    tree: exp.Expr, functions: Mapping[str, nodes.CreateFunction], file: SourceFile
) -> exp.Expr:
    """Return a tree in which bodies stand for calls.

    Raises:
        InputError: a call does not have the arguments of its function, or calls itself.
    """
    calls = _calls(tree, functions)
    for _ in range(CALLS_MAX_DEPTH):
        if not calls:
            return tree
        tree = parse.rewrite_tree(tree.copy(), partial(_inlined, functions=functions, file=file))
        calls = _calls(tree, functions)
    if not calls:
        return tree
    raise InputError.of(
        "C1306",
        f"`{calls[0].name}` calls itself, or is nested more than {CALLS_MAX_DEPTH} levels deep.",
        parse.span_of(calls[0], file),
        "write a recursion as a view",
    )


def _calls(tree: exp.Expr, functions: Mapping[str, nodes.CreateFunction]) -> list[exp.Anonymous]:
    return [each for each in tree.find_all(exp.Anonymous) if each.name.lower() in functions]


def _inlined(
    node: exp.Expr, functions: Mapping[str, nodes.CreateFunction], file: SourceFile
) -> exp.Expr:
    if not isinstance(node, exp.Anonymous) or node.name.lower() not in functions:
        return node
    function = functions[node.name.lower()]
    known = {each.name.text.lower(): each for each in function.parameters}
    plain = [each for each in node.expressions if not isinstance(each, exp.Kwarg)]
    given = dict(zip(known, plain, strict=False))
    named = [each for each in node.expressions if isinstance(each, exp.Kwarg)]
    names = [each.this.name.lower() for each in named]
    has_wrong = len(plain) > len(known) or len({*names}) < len(names)
    has_wrong = has_wrong or any(name not in known or name in given for name in names)
    given |= {name: each.expression for name, each in zip(names, named, strict=True)}
    for name, each in known.items():
        if name not in given and each.default is not None and each.default.value is not None:
            given[name] = parse.without_places(each.default.value)
    if has_wrong or given.keys() != known.keys():
        listed = ", ".join(f"{each.name.text} {each.type.written}" for each in known.values())
        raise InputError.of(
            "C1306",
            f"`{node.name}` does not take these arguments.",
            parse.span_of(node, file),
            f"it is `{function.name.text}({listed})`",
        )
    body = parse.without_places(function.body)
    values = {name: _cast(given[name].copy(), each.type.written) for name, each in known.items()}

    def replaced(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or part.name.lower() not in values:
            return part
        is_own = not part.table or part.table.lower() == function.name.text.lower()
        return values[part.name.lower()].copy() if is_own else part

    made = _cast(parse.rewrite_tree(body, replaced), function.returns.written)
    made.meta.update(node.meta)
    return made


def _cast(value: exp.Expr, written: str) -> exp.Expr:
    made = exp.Cast(this=value, to=_type(written))
    made.meta[parse.CAST] = True
    return made


def _type(written: str) -> exp.Expr:
    file = SourceFile("type", written)
    (tokens,) = parse.split_statements(file)
    return parse.without_places(parse.parse_type(tokens, file))


def check_function(function: nodes.CreateFunction) -> exp.Expr:
    """Return a question that has an error where the body of a function has one."""
    rows = [
        exp.alias_(exp.Cast(this=exp.Null(), to=_type(each.type.written)), each.name.text)
        for each in function.parameters
    ]
    cast = exp.Cast(this=function.body.copy(), to=_type(function.returns.written))
    tree = exp.select(exp.alias_(cast, "value"))
    if not rows:
        return tree
    return tree.from_(exp.select(*rows).subquery(function.name.text))
