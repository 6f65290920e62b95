"""Cursors: where an answer of many rows has ended.

A cursor names a commit and a number of rows, so that the pages of one question show one state,
whatever is committed meanwhile. It holds no secret and grants nothing: every page is asked for
with the rights of who asks.
"""

import base64
import binascii
import hashlib
import json

from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.serve.requests import Request, request_as_json

VOLATILE_FIELDS = {"cursor", "limit", "min_commit", "arrow"}
"""The fields that may differ between the pages of one question."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The end of an answer.

    Attributes:
        commit: the commit that it shows.
        offset: how many rows were returned so far.
    """

    commit: int
    offset: int

    def encode(self, request: Request) -> str:
        """Return the cursor as a text, for this question only."""
        content = json.dumps([self.commit, self.offset, _digest(request)])
        return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def parse_cursor(text: str, request: Request) -> Cursor:
    """Return a cursor of a text.

    Raises:
        InputError: `C1603`, it is not one of this question.
    """
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        content = json.loads(base64.b64decode(padded, b"-_", validate=True))
    except (ValueError, binascii.Error):
        content = None
    match content:
        case [int() as commit, int() as offset, str() as digest] if (
            digest == _digest(request) and commit >= 0 and offset >= 0
        ):
            return Cursor(commit, offset)
    raise InputError.of(
        "C1603",
        "The cursor does not belong to this question.",
        None,
        "repeat the question as it was, with the `cursor` of its last answer, or without one",
    )


def _digest(request: Request) -> str:
    fields = request_as_json(request)
    kept = {name: value for name, value in fields.items() if name not in VOLATILE_FIELDS}
    content = json.dumps([type(request).__name__, kept], sort_keys=True, default=str)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]
