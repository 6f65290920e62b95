"""Comments that accept a warning for good: `// corollary: allow C0706`, in SQL with `--`."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from corollary.errors import Diagnostic, Severity
from corollary.source import SourceFile, Span

_COMMENT = re.compile(
    r"""(?P<text>"(?:[^"\\\n]|\\.)*"?|`(?:[^`\\\n]|\\.)*`?)
      | (?P<line>(?://|--)[^\n]*)
      | (?P<block>/\*(?s:.*?)(?:\*/|\Z))""",
    re.VERBOSE,
)
_PRAGMA = re.compile(r"(?://|--)\s*corollary\s*:\s*(.*)", re.IGNORECASE)
_ALLOW = re.compile(r"allow\s+(C\d{4}(?:[\s,]+C\d{4})*)(?!\w)")
_CODE = re.compile(r"C\d{4}")


def without_allowed(
    findings: Iterable[Diagnostic], codes: frozenset[str] = frozenset()
) -> list[Diagnostic]:
    """Return the findings without the warnings that `codes` or a comment in the text accept."""
    return [each for each in findings if not _is_allowed(each, codes)]


def _is_allowed(finding: Diagnostic, codes: frozenset[str]) -> bool:
    if finding.severity is Severity.ERROR:
        return False
    if finding.code in codes:
        return True
    span = finding.span
    if span is None or "corollary" not in span.file.text.lower():
        return False
    lines = _allowed_lines(span.file).get(finding.code, frozenset())
    return not lines.isdisjoint((0, *range(span.line, span.end_line + 1)))


@lru_cache(maxsize=64)
def _allowed_lines(source: SourceFile) -> dict[str, frozenset[int]]:
    """Return for each code the lines on which it is accepted; 0 is the whole file."""
    allowed: dict[str, set[int]] = {}
    for start, end, text in _pragmas(source):
        found = _ALLOW.match(text)
        for code in _CODE.findall(found[1]) if found else ():
            allowed.setdefault(code, set()).add(_line_of(source, start, end))
    return {code: frozenset(lines) for code, lines in allowed.items()}


def _line_of(source: SourceFile, start: int, end: int) -> int:
    """Return the line that a comment is about: its own, the next one with text, or 0 for all."""
    if not _blank_comments(source.text[:start]).strip():
        return 0
    line = source.text.count("\n", 0, start) + source.first_line
    if source.text[source.text.rfind("\n", 0, start) + 1 : start].strip():
        return line
    rest = _blank_comments(source.text[end:])
    return line + rest[: len(rest) - len(rest.lstrip())].count("\n")


def _blank_comments(text: str) -> str:
    """Return the text with every comment as blanks and line breaks."""
    return _COMMENT.sub(
        lambda found: found[0] if found["text"] else re.sub(r"[^\n]", " ", found[0]), text
    )


def _pragmas(source: SourceFile) -> Iterator[tuple[int, int, str]]:
    """Yield the comments that begin with `corollary:`: start, end, and what follows."""
    for comment in _COMMENT.finditer(source.text):
        found = _PRAGMA.match(comment["line"] or "")
        if found is not None:
            yield comment.start(), comment.end(), found[1]


def unknown_pragmas(source: SourceFile) -> Iterator[Diagnostic]:
    """Yield a warning for each comment that begins with `corollary:` and is not understood."""
    if "corollary" not in source.text.lower():
        return
    for start, end, text in _pragmas(source):
        if _ALLOW.match(text) is None:
            line = source.text.count("\n", 0, start)
            column = start - (source.text.rfind("\n", 0, start) + 1)
            length = len(source.text[start:end].rstrip())
            first = line + source.first_line
            yield Diagnostic(
                "C0707",
                "This comment is meant for Corollary, but asks for nothing that it knows.",
                Span(source, first, column + 1, first, column + 1 + length),
                "write `// corollary: allow C0706`, with the codes of the warnings to accept",
                severity=Severity.WARNING,
            )
