"""The errors of active documents."""

from corollary.errors import InputError


class ActiveDocumentError(InputError):
    """A document, or what is to be added to it, is not acceptable."""


class QuerySyntaxError(InputError):
    """A query is not a tree pattern of the supported kind."""


class UnknownFunctionError(ActiveDocumentError):
    """Data or an end was sent for a function that the document does not have."""


class StreamClosedError(ActiveDocumentError):
    """Data came for a function that has ended."""


class SearchLimitError(Exception):
    """An exact test takes more steps than its limit; whoever asks falls back to a bound."""
