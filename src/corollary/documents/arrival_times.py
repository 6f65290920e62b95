"""Times of arrival, as updates give them."""

from corollary.documents.errors import ActiveDocumentError
from corollary.documents.queries.comparisons import number_of
from corollary.documents.trees.document_tree import DocumentTree

Time = str | float
"""A number of seconds, or a time such as `2026-05-01T12:00`, in UTC unless it says otherwise."""


def read_time(at: Time, nodes: DocumentTree | None = None) -> float:
    """Return a time in seconds.

    Args:
        at: a number, or a time.
        nodes: a document in which it must not be earlier than it is.

    Raises:
        ActiveDocumentError: it is not a time, or it is too early.
    """
    clock = number_of(str(at))
    if clock is None:
        note = "write a number of seconds, or a time such as `2026-05-01T12:00`"
        raise ActiveDocumentError.of("C1258", f"`{at}` is not a time.", None, note)
    if nodes is not None and clock < nodes.clock:
        message = f"It is {nodes.time} already, but something is to arrive at {at}."
        note = "times of arrival do not go back: bring what came earlier first"
        raise ActiveDocumentError.of("C1258", message, None, note)
    return clock
