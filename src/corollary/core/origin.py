"""Where a derived rule comes from, so that messages speak of the user's text."""

from dataclasses import dataclass, field

from corollary.source import Span


@dataclass(frozen=True, slots=True)
class Origin:
    """The source clause (as text and span) and the passes that made a rule of it."""

    text: str
    span: Span | None = field(default=None, compare=False, repr=False)
    passes: tuple[str, ...] = ()

    def by(self, name: str) -> "Origin":
        """Return the origin with one more pass noted."""
        return Origin(self.text, self.span, (*self.passes, name))


NO_RULE = Origin("")
"""The origin of steps that only move tuples about; messages do not speak of them."""
