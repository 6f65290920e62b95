"""When the tables of `.output` relations are brought forward."""

import time
from enum import StrEnum

from corollary.database.arguments import chosen

PUBLISH_SECONDS = 1.0
"""What lies between two publications of a database that publishes at most once a second."""


class PublishTime(StrEnum):
    """When tables are published: with every commit, at most once a second, or when asked to."""

    COMMIT = "commit"
    SECOND = "1s"
    MANUAL = "manual"

    @classmethod
    def of(cls, choice: str) -> "PublishTime":
        """Return the choice of that name; if there is none, it is an error."""
        return chosen(cls, choice, "C0927", "a time at which tables are published")


class PublishSchedule:
    """Knows whether tables are behind, and when they are published next.

    Attributes:
        when: tables are published.
        is_behind: whether there was a commit after the last publication.
    """

    def __init__(self, when: PublishTime) -> None:
        self.when = when
        self.is_behind = False
        self._published = -PUBLISH_SECONDS
        self._retry: float | None = None

    @property
    def wait(self) -> float | None:
        """The seconds until tables are published; None if there is nothing to publish."""
        if self.when is PublishTime.MANUAL:
            return None
        if not self.is_behind:
            return None if self._retry is None else max(0.0, self._retry - time.monotonic())
        if self.when is PublishTime.COMMIT:
            return 0.0
        return max(0.0, self._published + PUBLISH_SECONDS - time.monotonic())

    def note_begun(self) -> None:
        """Note that a transaction publishes, if it is committed."""
        self._published = time.monotonic()

    def note_published(self, retry_seconds: float | None = None) -> None:
        """Note that all tables show the last commit, or are to be tried again after a while."""
        self.is_behind = False
        self._published = time.monotonic()
        self._retry = None if retry_seconds is None else self._published + retry_seconds
