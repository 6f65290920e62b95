"""A recorder that keeps the progress line true and counts on the side."""

from corollary.console import Console, SilentConsole
from corollary.core.plan import WORKING, Aggregate, Derive
from corollary.core.recorder import Tally


class Progress(Tally):
    """Shows the relation at work, the round and the tuples so far."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self._tuples = 0

    def step(self, step: Derive | Aggregate, size: int, led: int) -> None:
        """Count, and show the step."""
        super().step(step, size, led)
        self._tuples += size
        self._show()

    def round(self, count: int = 1) -> None:
        """Count, and show the round."""
        super().round(count)
        self._show()

    def _show(self) -> None:
        if isinstance(self._console, SilentConsole):
            return
        rounds = self.rounds[self.current]
        text = f", round {rounds}" if rounds else ""
        self._console.progress(
            f"{self.current.replace(WORKING, ' ').strip()}{text}: {self._tuples:,} tuples derived"
        )
