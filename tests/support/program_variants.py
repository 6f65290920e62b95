"""The same program in other words: variables renamed, literals and rules in another order."""

from __future__ import annotations

import random
import re

from oracles.parser import AGGREGATES, FUNCTORS, TOKEN

WORDS = {*AGGREGATES, *FUNCTORS, "true", "false", "null", "is"}
OPENING, CLOSING = "({", ")}"


def tokens(text: str) -> list[tuple[str, str]]:
    """Return the tokens of a text with their kinds, blanks included."""
    return [(found.lastgroup or "", found[0]) for found in TOKEN.finditer(text)]


def renamed(rule: str, prefix: str) -> str:
    """Return a rule whose variables have other names."""
    found = tokens(rule)
    written = []
    for at, (kind, text) in enumerate(found):
        rest = [each for each in found[at + 1 :] if each[0] != "skip"]
        is_called = bool(rest) and rest[0][1] == "("
        is_variable = kind == "name" and text not in WORDS and not is_called and text != "_"
        written.append(prefix + text if is_variable else text)
    return "".join(written)


def body_of(rule: str) -> tuple[str, str, list[str]]:
    """Return the head of a rule, its arrow, and the literals of its body."""
    head, arrow, body = re.split("(:[-=])", rule.rstrip("."), maxsplit=1)
    literals, depth = [""], 0
    for _, text in tokens(body):
        depth += (text in OPENING) - (text in CLOSING)
        if text == "," and not depth:
            literals.append("")
        else:
            literals[-1] += text
    return head, arrow, [literal.strip() for literal in literals]


def reordered(rule: str, generator: random.Random, *, repeats: bool = False) -> str:
    """Return a rule with its literals in another order, perhaps one of them twice."""
    if not re.search(":[-=]", rule):
        return rule
    head, arrow, literals = body_of(rule)
    if repeats:
        literals.append(generator.choice(literals))
    generator.shuffle(literals)
    return f"{head}{arrow} {', '.join(literals)}."


def rephrased(text: str, seed: int) -> str:
    """Return a program, a clause per line, in other words.

    A literal may stand twice, except where columns may be null: a variable in two places is not.
    """
    generator = random.Random(seed)
    lines = text.splitlines()
    declarations = [line for line in lines if line.startswith(".")]
    may_be_null = any("?" in line for line in declarations)
    rules = [line for line in lines if line and not line.startswith(".")]
    generator.shuffle(rules)
    return "\n".join(
        declarations
        + [
            renamed(
                reordered(rule, generator, repeats=number % 3 == 0 and not may_be_null),
                f"v{seed % 7}_",
            )
            for number, rule in enumerate(rules)
        ]
        + [""]
    )
