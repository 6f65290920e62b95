r"""Functions whose result is a truth: comparisons, negation, patterns of text.

In a pattern of `like`, `%` stands for any text, `_` for one character, and a character after `\`
for itself.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow.compute as pc
import re2

from corollary.core.arrow_buffers import bool_values
from corollary.core.functors.catalog import COMPARISON_OPERATORS
from corollary.core.types import Type
from corollary.engines.local.evaluation.arithmetic import compare_values
from corollary.engines.local.evaluation.kernels import Kernel, Operand, Result, on_values
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.values.texts import Texts

Match = Callable[[Any, str], Any]
"""Returns which texts of an Arrow array match a pattern, as an Arrow array."""


def _compare(operator: str) -> Kernel:
    def apply(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001
        (one, one_type), (two, two_type) = operands
        true = compare_values(operator, one, one_type, two, two_type)
        return true.astype(np.int64), []

    return apply


def _rows_by_pattern(patterns: Texts) -> Iterator[tuple[str, Any]]:
    """Yield each distinct pattern with its rows; None for all of them."""
    texts, numbers = patterns.distinct()
    if not len(texts):
        return
    if len(texts) == 1:
        yield texts[0], None
        return
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=len(texts)))
    for text, start, end in zip(texts.tolist(), [0, *ends[:-1]], ends, strict=True):
        yield text, order[start:end]


def _matched(match: Match) -> Kernel:
    """Return a function that matches each text with the pattern of its row."""

    def apply(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001
        (texts, _), (patterns, _) = operands
        true: Mask = np.zeros(len(texts), np.bool_)
        for pattern, rows in _rows_by_pattern(patterns):
            if rows is None:
                true = bool_values(match(texts.array, pattern))
            else:
                true[rows] = bool_values(match(texts.take(rows).array, pattern))
        return true.astype(np.int64), []

    return apply


_LIKE_PART = re.compile(r"\\.|.|\\", re.DOTALL)


@lru_cache(maxsize=1024)
def _like_pattern(pattern: str) -> tuple[str, str]:
    r"""Return how a pattern of `like` is looked for, and the text or regular expression.

    >>> _like_pattern("ab%"), _like_pattern("%a\\%"), _like_pattern("a_c")
    (('start', 'ab'), ('end', 'a%'), ('regex', '(?s)\\Aa.c\\z'))
    """
    parts = [part if len(part) == 1 else part[1:] for part in _LIKE_PART.findall(pattern)]
    signs = [part if part in ("%", "_") else "" for part in _LIKE_PART.findall(pattern)]
    inside = signs[1:-1]
    if not any(signs):
        return "whole", "".join(parts)
    if not any(inside) and "_" not in signs:
        is_open = signs[0] == "%", signs[-1] == "%"
        text = "".join(part for part, sign in zip(parts, signs, strict=True) if not sign)
        return {(True, True): "part", (True, False): "end", (False, True): "start"}[is_open], text
    forms = {"%": ".*", "_": "."}
    written = (
        forms[sign] if sign else re2.escape(part) for part, sign in zip(parts, signs, strict=True)
    )
    return "regex", rf"(?s)\A{''.join(written)}\z"


def _like(texts: Any, pattern: str) -> Any:
    way, text = _like_pattern(pattern)
    match way:
        case "whole":
            return pc.equal(texts, text)
        case "start":
            return pc.starts_with(texts, text)
        case "end":
            return pc.ends_with(texts, text)
        case "part":
            return pc.match_substring(texts, text)
        case _:
            return pc.match_substring_regex(texts, text)


LOGIC_FUNCTIONS: dict[str, Kernel] = {
    "not": on_values(lambda values: 1 - values),
    **{name: _compare(operator) for name, operator in COMPARISON_OPERATORS.items()},
    "like": _matched(_like),
    "rlike": _matched(pc.match_substring_regex),
    "starts_with": _matched(pc.starts_with),
    "ends_with": _matched(pc.ends_with),
    "has_text": _matched(pc.match_substring),
}
