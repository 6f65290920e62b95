"""What stands behind `where`: joins, comparisons of numbers and times, labels that differ."""

from collections.abc import Collection, Iterable
from fractions import Fraction
from typing import Generic, Protocol, TypeVar

from corollary.data_class import dataclass
from corollary.documents.queries.comparisons import (
    MAX_COMPARED_CLASSES,
    MAX_UNEQUAL,
    NOW,
    Conditions,
    LabelDifference,
    NumberComparison,
    literal_number,
)
from corollary.errors import Diagnostic
from corollary.source import Span


class QueryToken(Protocol):
    """A token of a query: its terminal, its text without decoration, where it stands."""

    @property
    def type(self) -> str:
        """The name of the terminal."""

    @property
    def text(self) -> str:
        """The text."""

    @property
    def span(self) -> Span:
        """The place."""


Token = TypeVar("Token", bound=QueryToken)


@dataclass(frozen=True, slots=True)
class WrittenCondition(Generic[Token]):
    """`$d - $p > 3600`: two sums of operands with their signs, and how they are compared."""

    left: tuple[Token, ...]
    operator: Token
    right: tuple[Token, ...]

    @property
    def operands(self) -> tuple[Token, ...]:
        """The operands of both sides."""
        return (*self.left[::2], *self.right[::2])


def read_conditions(
    written: Iterable[WrittenCondition[Token]], arrivals: Collection[str] = ()
) -> tuple[tuple[tuple[str, str], ...], Conditions, list[Diagnostic]]:
    """Return the joins, the other conditions, and what is wrong about them.

    Args:
        written: what stands behind `where`.
        arrivals: the variables that are times at which nodes came: their values are compared.
    """
    joins: list[tuple[str, str]] = []
    numbers: list[NumberComparison] = []
    differences: list[LabelDifference] = []
    findings: list[Diagnostic] = []
    for each in written:
        types = [token.type for token in each.operands]
        left, right = each.left[0].text, each.right[0].text
        is_plain = len(each.left) == len(each.right) == 1 and "VARIABLE" in types
        is_plain = is_plain and left not in arrivals and right not in arrivals
        if is_plain and types == ["VARIABLE", "VARIABLE"] and each.operator.text == "=":
            joins.append((left, right))
        elif is_plain and "NAME" not in types and each.operator.text == "!=":
            if types[0] == "QUOTED":
                left, right = right, left
            differences.append(LabelDifference(left, right, is_label="QUOTED" in types))
        elif is_plain and "QUOTED" in types and each.operator.text == "=":
            note = "for a text, write `[b='v']` into the pattern"
            message = "`where` compares variables with each other, and with numbers."
            findings.append(Diagnostic("C1200", message, each.operator.span, note))
        else:
            numbers += _number_comparison(each, findings)
    conditions = Conditions(tuple(numbers), tuple(differences), tuple(sorted(arrivals)))
    is_large = len(conditions.classes) > MAX_COMPARED_CLASSES
    if is_large or sum(each.operator == "!=" for each in numbers) > MAX_UNEQUAL:
        message = f"More than {MAX_COMPARED_CLASSES} variables are compared"
        message += f", or more than {MAX_UNEQUAL} numbers by `!=`."
        findings.append(Diagnostic("C1206", message, None, "split the query"))
    return tuple(joins), conditions, findings


def _number_comparison(
    written: WrittenCondition[Token], findings: list[Diagnostic]
) -> list[NumberComparison]:
    terms: dict[str, Fraction] = {}
    constant = Fraction(0)
    for side, parts in ((1, written.left), (-1, written.right)):
        for at in range(0, len(parts), 2):
            token = parts[at]
            sign = -side if at and parts[at - 1].text == "-" else side
            if token.type == "VARIABLE":
                terms[token.text] = terms.get(token.text, Fraction(0)) + sign
                continue
            if token.type == "NAME" and token.text == "now":
                terms[NOW] = terms.get(NOW, Fraction(0)) + sign
                continue
            value = literal_number(token.text)
            if value is None:
                message = f"`{token.text}` is neither a number nor a time."
                note = (
                    "write `3600`, `1h`, `30min`, `90s`, `2d`, or a time such as '2026-05-01T12:00'"
                )
                findings.append(Diagnostic("C1213", message, token.span, note))
                return []
            constant += sign * Fraction(value)
    if not any(terms.values()):
        note = "compare at least one variable, and not with itself: `where $x > 3`"
        message = "The comparison is between numbers only."
        findings.append(Diagnostic("C1213", message, written.operator.span, note))
        return []
    return [NumberComparison.of(terms, constant, written.operator.text)]
