"""The cases of the advisor: Prolog-style text as programs, and what is expected of the advice.

`tests/cases/advisor/cases.json` says in its `format` how to read a case. Here every case becomes a
program of ours: capitalised arguments stay variables, others become strings; relations that have
rules are virtual, so that nothing but what the advisor stores is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from corollary.advisor.advice import Advice
from corollary.advisor.advise import advise
from corollary.advisor.apply import reformulate
from corollary.advisor.model.scheme import Options, Scheme, WorkloadQuery
from corollary.advisor.model.scheme_reader import read_scheme
from corollary.analysis.check import CheckedProgram, check
from corollary.core.printer import print_program
from corollary.core.program import Program
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from support.paths import CASES

FILE = CASES / "advisor" / "cases.json"
CASES: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))["cases"]

_CONSTANT = re.compile(r"(?<=[(,])\s*('?)([a-z][A-Za-z0-9_]*)\1\s*(?=[,)])")
_COUNT = re.compile(r"count\((\w+)\)")


def program_of(case: dict[str, Any], rules: Iterable[str] | None = None) -> str:
    """The program of a case, or the same relations with other rules."""
    chosen = list(case["rules"] if rules is None else rules)
    heads = {rule.partition("(")[0].strip() for rule in chosen}
    shapes = {name: each["arity"] for name, each in case["relations"].items()}
    for rule in chosen:
        name, _, rest = rule.partition(":-")[0].partition("(")
        inside = rest.rpartition(")")[0].strip()
        shapes.setdefault(name.strip(), len(inside.split(",")) if inside else 0)
    lines = []
    for name, arity in shapes.items():
        counted = any(_COUNT.search(rule) for rule in chosen if rule.startswith(f"{name}("))
        types = ["symbol"] * (arity - 1) + ["number" if counted else "symbol"] if arity else []
        columns = ", ".join(f"c{at}: {type_}" for at, type_ in enumerate(types, 1))
        lines.append(f".decl {name}({columns}){' virtual' if name in heads else ''}")
        for left, right in case["relations"].get(name, {}).get("fds", ()):
            sides = (", ".join(f"c{at}" for at in side) for side in (left, right))
            lines.append(f".fd {name}({' -> '.join(sides)})")
    return "\n".join([*lines, *map(clause_of, chosen), ""])


def clause_of(rule: str) -> str:
    """A rule of ours."""
    head, _, body = rule.rstrip(". ").partition(":-")
    counted = _COUNT.search(head)
    if counted:
        head, body = _COUNT.sub("N", head), f"{body}, N = count : {{ {body} }}"
    text = _CONSTANT.sub(r'"\2"', f"{head} :- {body}." if body else f"{head}.")
    return text.replace("not ", "!")


def checked_of(text: str) -> CheckedProgram:
    """A program, checked."""
    return check(parsed(text))


def parsed(text: str) -> Program:
    """A program as written."""
    return parse(SourceFile("program", text))


def changed_program(text: str, advice: Advice) -> str:
    """The program that follows advice."""
    return print_program(reformulate(checked_of(text), parsed(text), advice))


def scheme_of(
    text: str, queries: Iterable[str | WorkloadQuery], options: Options | None = None
) -> Scheme:
    """The scheme of a program."""
    asked = [each if isinstance(each, WorkloadQuery) else WorkloadQuery(each) for each in queries]
    return read_scheme(parsed(text), checked_of(text), asked, (options or Options()).opaque)


def advice_for(text: str, queries: Iterable[str], options: Options | None = None) -> Advice:
    """The advice for a program."""
    return advise(scheme_of(text, queries, options), options)


def degrees(advice: Advice) -> list[int]:
    """The degrees of all views that are to be stored."""
    return sorted(each.degree for each in advice.views.values())


def arities(advice: Advice) -> list[int]:
    """The numbers of their columns."""
    return sorted(len(each.variables) for each in advice.views.values())
