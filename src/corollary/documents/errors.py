"""The errors of active documents."""

from collections.abc import Iterable

from corollary.errors import Diagnostic, InputError


class ActiveDocumentError(InputError):
    """A document, or what is to be added to it, is not acceptable."""


class QuerySyntaxError(InputError):
    """A query is not a tree pattern of the supported kind."""


class UnknownFunctionError(ActiveDocumentError):
    """Data or an end was sent for a function that the document does not have."""

    @classmethod
    def of_function(cls, name: str, known: Iterable[str]) -> "UnknownFunctionError":
        """Return the error for a name, given those of functions that there are."""
        listed = ", ".join(f"`{each}`" for each in sorted(known)) or "none"
        message = f"The document has no function `{name}`."
        return cls([Diagnostic("C1230", message, None, f"it has {listed}")])


class StreamClosedError(ActiveDocumentError):
    """Data came for a function that has ended."""

    @classmethod
    def of_function(cls, name: str) -> "StreamClosedError":
        """Return the error for a function."""
        message = f"Data came for the function `{name}`, which has ended."
        note = "send nothing after the end, or open the document with `late='ignore'`"
        return cls([Diagnostic("C1231", message, None, note)])
