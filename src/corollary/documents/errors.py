"""What can go wrong with active documents, beside what can go wrong with any input."""

from corollary.errors import InputError


class ActiveDocumentError(InputError):
    """A document, or what is to be added to it, is not acceptable."""


class QuerySyntaxError(InputError):
    """A query is no tree pattern of the supported kind."""


class UnknownFunctionError(ActiveDocumentError):
    """Data or an end was sent for a function that the document does not have."""


class StreamClosedError(ActiveDocumentError):
    """Data came for a function that has ended."""
