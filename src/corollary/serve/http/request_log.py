"""The log of a server: a JSON object on each line. It has no tokens, no queries and no values."""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

REQUESTS = logging.getLogger("corollary.serve.requests")
"""One line for each request."""


class JsonLines(logging.Formatter):
    """Formats what is logged as a JSON object; `fields` of a record are its keys."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        found: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            found["trace"] = "".join(traceback.format_exception(record.exc_info[1]))
        return json.dumps(found, ensure_ascii=False, default=str)


def start_log(*, has_requests: bool, stream: TextIO | None = None) -> None:
    """Write the log to standard error.

    Args:
        has_requests: whether each request has a line; errors always have one.
        stream: where else to write it.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("corollary.serve", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.WARNING if name == "uvicorn.error" else logging.INFO)
    REQUESTS.setLevel(logging.INFO if has_requests else logging.ERROR)


def log_request(fields: dict[str, Any], status: int) -> None:
    """Log that a request was answered."""
    level = logging.ERROR if status >= 500 and status != 503 else logging.INFO
    if REQUESTS.isEnabledFor(level):
        REQUESTS.log(level, "request", extra={"fields": fields})
