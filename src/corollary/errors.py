"""Everything that can go wrong, as data: diagnostics with a code, a sentence, a span and a cure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from corollary.source import Span

WIDEST_LINE = 160
LEFT_OF_CARET = 60
"""Of a line longer than the widest, so many characters before the caret are shown."""


class Severity(StrEnum):
    """How much a diagnostic matters."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about the user's input.

    Attributes:
        code: stable identifier such as ``C0201``; the catalogue is `docs/diagnostics.md`.
        message: one sentence, with `names` in backquotes.
        span: where it stands, if it stands anywhere.
        note: how to mend it.
        related: further places, each with a remark (the links of a cycle, an earlier declaration).
    """

    code: str
    message: str
    span: Span | None = None
    note: str | None = None
    related: tuple[tuple[Span, str], ...] = ()
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        return render(self)


def render(diagnostic: Diagnostic) -> str:
    """Return the diagnostic as text: the sentence, the line with a caret, the note."""
    lines = [f"{diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"]
    if diagnostic.span is not None:
        lines += _excerpt(diagnostic.span, "")
    for span, remark in diagnostic.related:
        lines += _excerpt(span, remark)
    if diagnostic.note:
        lines.append(f"  = {diagnostic.note}")
    return "\n".join(lines)


def _excerpt(span: Span, remark: str) -> list[str]:
    line = span.file.line(span.line)
    first = max(0, span.column - 1 - LEFT_OF_CARET) if len(line) > WIDEST_LINE else 0
    text = "".join(map(_printable, line[first : first + WIDEST_LINE]))
    number = str(span.line)
    margin = " " * len(number)
    visible = text.expandtabs(4)
    start = len(text[: span.column - 1 - first].expandtabs(4))
    last = span.end_column - 1 - first if span.end_line == span.line else len(text)
    width = max(1, len(text[:last].expandtabs(4)) - start)
    carets = f" {margin} | {' ' * start}{'^' * width} {remark}".rstrip()
    return [f" {margin}--> {span}", f" {number} | {visible}", carets]


def _printable(character: str) -> str:
    is_shown = character.isprintable() or character == "\t"
    return character if is_shown else "\N{REPLACEMENT CHARACTER}"


class CorollaryError(Exception):
    """The base of every error that Corollary raises on purpose."""

    exit_code = 1


class InputError(CorollaryError):
    """The input (a program, facts, an option) is not acceptable; carries all findings at once."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(render(found) for found in self.diagnostics))

    @classmethod
    def of(
        cls, code: str, message: str, span: Span | None = None, note: str | None = None
    ) -> "InputError":
        """Return an error with a single finding."""
        return cls([Diagnostic(code, message, span, note)])


class LimitError(CorollaryError):
    """A limit on rounds, tuples, seconds or memory was hit; nothing was changed."""

    exit_code = 5


class EvaluationError(InputError):
    """A rule instance that holds has an expression without a value (overflow, division by zero)."""
