"""Records for the oracle: its own reader and writer of their texts, and patterns as equations.

A value is its text, `[1, [2, nil]]` or `$Node($Leaf(1), $Empty)`. The reader is a recursive descent
over the characters, guided by the types of the fields; it shares no code with the package.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

from oracles.parser import Agg, Atom, Cmp, Expr, Fn, Formula, Lit, Not, Var

Types = dict[str, dict[str, tuple[Any, ...]]]
"""Of each record type the branches, with the types of their fields."""


# ---------------------------------------------------------------------------------------- patterns


def is_record(node: Expr) -> bool:
    return isinstance(node, Fn) and (node.name in ("[]", "nil") or node.name.startswith("$"))


def has_wild(node: Expr) -> bool:
    if isinstance(node, Var):
        return node.is_wild
    return isinstance(node, Fn) and is_record(node) and any(map(has_wild, node.args))


def without_patterns(literal: Formula) -> Iterator[Any]:
    """A literal without records that ask for less than a whole value."""
    atom = literal.inner if isinstance(literal, Not) else None
    if isinstance(atom, Atom) and any(is_record(arg) and has_wild(arg) for arg in atom.args):
        yield Cmp("=", Agg("count", None, atom), Lit("int", 0))
        return
    if isinstance(literal, Cmp) and literal.op in ("=", "is"):
        yield from equations(literal)
        return
    yield literal


def equations(test: Cmp) -> Iterator[Cmp]:
    """An equation with a record: it may make the record, and each field of the other side."""
    left, right = test.left, test.right
    if is_record(left) and not is_record(right):
        left, right = right, left
    if not is_record(right):
        yield test
        return
    assert isinstance(right, Fn)
    if is_record(left):
        assert isinstance(left, Fn)
        if left.name != right.name or len(left.args) != len(right.args):
            yield Cmp("=", Lit("int", 0), Lit("int", 1))
            return
        for one, other in zip(left.args, right.args, strict=True):
            if not (isinstance(one, Var) and one.is_wild) and not (
                isinstance(other, Var) and other.is_wild
            ):
                yield from equations(Cmp("=", one, other))
        return
    if has_wild(right):
        yield Cmp("=", Fn("#branch", (left,)), Lit("symbol", right.name))
    else:
        yield Cmp("=", left, right)
    for at, arg in enumerate(right.args):
        if not (isinstance(arg, Var) and arg.is_wild):
            part = Fn("#field", (left, Lit("symbol", right.name), Lit("int", at)))
            yield from equations(Cmp("=", part, arg))


# ------------------------------------------------------------------------------------------- texts


def text_of(branch: str, values: tuple[Any, ...], types: tuple[Any, ...]) -> str:
    close = "]" if branch == "[]" else ")"
    parts = []
    for value, type_ in zip(values, types, strict=True):
        text = str(value).lower() if type_.name == "bool" else str(value)
        if type_.name == "symbol" and (
            "," in text or close in text or text[:1].isspace() or text.startswith('"')
        ):
            text = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        parts.append(text)
    inner = ", ".join(parts)
    if branch == "[]":
        return f"[{inner}]"
    return f"{branch}({inner})" if parts else branch


def parts_of(text: str, name: str, types: Types) -> tuple[str, tuple[Any, ...]]:
    """The branch of a value and its fields."""
    branch, values, _ = _read(text, 0, name, types)
    return branch, values


def read_text(text: str, name: str, types: Types) -> str:
    """A value as this module writes it."""
    branch, values, end = _read(text, 0, name, types)
    if text[end:].strip():
        raise ValueError(f"{text!r} is not a {name}")
    return branch if branch == "nil" else text_of(branch, values, types[name][branch])


def term_of(text: str, name: str, types: Types) -> str:
    """A value as it is written in a program, where symbols have quotes."""
    branch, values = parts_of(text, name, types)
    if branch == "nil":
        return branch
    parts = []
    for value, type_ in zip(values, types[name][branch], strict=True):
        match type_.name:
            case inner if inner in types:
                parts.append(term_of(value, inner, types))
            case "symbol":
                parts.append('"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"')
            case "date":
                parts.append(f'd"{value}"')
            case "bool":
                parts.append(str(value).lower())
            case _:
                parts.append(str(value))
    inner = ", ".join(parts)
    return f"[{inner}]" if branch == "[]" else f"{branch}({inner})"


def _read(text: str, at: int, name: str, types: Types) -> tuple[str, tuple[Any, ...], int]:
    at = _spaces(text, at)
    branches = types[name]
    if "[]" in branches and text.startswith("nil", at):
        return "nil", (), at + 3
    if text[at] == "[":
        branch, at = "[]", at + 1
    else:
        end = at
        while end < len(text) and text[end] not in "(,)] ":
            end += 1
        branch, at = text[at:end], end
        at = _spaces(text, at)
        if at < len(text) and text[at] == "(":
            at += 1
        elif not branches[branch]:
            return branch, (), end
    close = "]" if branch == "[]" else ")"
    values: list[Any] = []
    for type_ in branches[branch]:
        at = _spaces(text, at)
        if values:
            if text[at] != ",":
                raise ValueError(f"{text!r} is not a {name}")
            at = _spaces(text, at + 1)
        if type_.name in types:
            inner, parts, at = _read(text, at, type_.name, types)
            whole = inner if inner == "nil" else text_of(inner, parts, types[type_.name][inner])
            values.append(whole)
        else:
            value, at = _scalar(text, at, close, type_.name)
            values.append(value)
    at = _spaces(text, at)
    if text[at] != close:
        raise ValueError(f"{text!r} is not a {name}")
    return branch, tuple(values), at + 1


def _scalar(text: str, at: int, close: str, kind: str) -> tuple[Any, int]:
    if text[at] == '"':
        found, at = "", at + 1
        while text[at] != '"':
            at += text[at] == "\\"
            found, at = found + text[at], at + 1
        return found, at + 1
    end = at
    while text[end] not in ("," + close):
        end += 1
    word = text[at:end]
    if kind in ("number", "unsigned"):
        return int(word), end
    if kind == "float":
        return float(word), end
    if kind == "date":
        return date.fromisoformat(word), end
    return (word == "true" if kind == "bool" else word), end


def _spaces(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
