"""Bounds on the text of a question, which hold before it is evaluated.

Reading a text takes time in proportion to its words, so their number is bounded; the seconds of a
question count from its first word on. Long lists and chains are read by loops; what is nested so
deeply that the stack of Python ends is refused.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from corollary.core.engine import Limits, within_seconds
from corollary.errors import InputError

QUESTION_MAX_WORDS = 400_000
"""The words and signs that a question may have; a text or a comment counts as one."""

_WORD = re.compile(
    r"""'[^'\\]*(?:\\(?:.|\Z)[^'\\]*)*(?:'|\Z) | "[^"\\]*(?:\\(?:.|\Z)[^"\\]*)*(?:"|\Z)
    | `[^`]*(?:`|\Z) | --[^\n]* | //[^\n]* | /\*(?:.*?\*/|.*) | [\w.]+ | \S""",
    re.VERBOSE | re.DOTALL,
)


def check_size(text: str) -> None:
    """Refuse a text that has too many words to be read as a question.

    Raises:
        InputError: `C0997`.
    """
    if len(text) <= QUESTION_MAX_WORDS:
        return
    words = _WORD.finditer(text)
    if any(number == QUESTION_MAX_WORDS for number, _ in enumerate(words)):
        raise InputError.of(
            "C0997",
            f"The text has more than {QUESTION_MAX_WORDS:,} words and signs, too many for one "
            "question.",
            None,
            "insert the values into a relation and join it, or ask in several parts",
        )


@contextmanager
def bounded_question(limits: Limits | None, *, is_sql: bool = True) -> Iterator[None]:
    """Let the seconds of a question count from here on, and refuse one that is too deep.

    Raises:
        InputError: `C1322` of SQL, `C0101` of a goal: it is nested too deeply.
        LimitError: the seconds are over.
    """
    with within_seconds(limits):
        try:
            yield
        except RecursionError:
            raise _too_deep(is_sql=is_sql) from None


def _too_deep(*, is_sql: bool) -> InputError:
    if is_sql:
        text = "The statement is nested too deeply."
        return InputError.of("C1322", text, None, "split it with common table expressions or views")
    return InputError.of(
        "C0101", "The goal is nested too deeply.", None, "split it into several rules"
    )
