"""A bound on the work of sqlglot's parser, which tries some constructs in several ways.

Where a type may stand (`DATE(…`, `ARRAY[…`), the parser reads what follows as a type, and then
again as an expression: each level of nesting doubles the work, so that 100 characters can take
minutes. Ordinary statements take one to four steps for each token. For each index of `a[1][2]…` it
copies all that is before it.
"""

from typing import TYPE_CHECKING, Any

from sqlglot import exp

if TYPE_CHECKING:
    from sqlglot.parser import Parser
else:
    Parser = object

STEPS_PER_TOKEN = 20
STEPS_MIN = 10_000
INDICES_MAX = 32


class BoundedParser(Parser):
    """A mixin for parsers of sqlglot: one that takes too many steps fails like a deep one."""

    _steps = 0

    def _advance_chunk(self) -> None:
        self._steps = 0
        super()._advance_chunk()

    def _advance(self, times: int = 1) -> None:
        self._steps += 1
        if self._steps > STEPS_MIN + STEPS_PER_TOKEN * self._tokens_size:
            raise RecursionError("the statement is nested too deeply")
        super()._advance(times)

    def _parse_bracket(self, this: exp.Expr | None = None) -> Any:
        found, indices = this, 0
        while isinstance(found, exp.Bracket):
            found, indices = found.this, indices + 1
        if indices > INDICES_MAX:
            raise RecursionError("an element of an element of an element …")
        return super()._parse_bracket(this)
