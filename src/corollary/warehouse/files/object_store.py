"""Requests to object stores, through `obstore`: S3 and what speaks its language, GCS, Azure.

Credentials, region and endpoint come from the environment that the tools of each store use
(`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, …); they are never part of a name, and what a store
answers is reduced to a few words, so that no message can contain any of them.

A failed request becomes an `OSError`, as that of a file does. `obstore` repeats what it knows to be
safe (errors of the server, lost connections of reads); what else may be repeated is repeated here.
"""

import errno
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

from corollary.errors import WarehouseError

T = TypeVar("T")

SCHEMES = ("s3", "gs", "az", "abfs", "abfss")
"""The schemes of names of objects."""
REQUEST_TIMEOUT_SECONDS = 120.0
"""How long one request may take: 64 MB over 5 Mbit/s."""
CONNECT_TIMEOUT_SECONDS = 10.0
SERVER_RETRIES = 6
"""How often `obstore` repeats a request that the server has failed."""
BACKOFF_SECONDS = 0.1
RETRY_PAUSES_SECONDS = (0.1, 0.5, 2.0)
"""How long to wait before a request is repeated whose answer was lost, time after time."""

_STATUS = re.compile(r"status code: (\d{3}[A-Za-z ]*)")
_REASONS = (
    ("timed out", "the request timed out"),
    ("operation timed out", "the request timed out"),
    ("Connection refused", "the connection was refused"),
    ("dns error", "the name of the server is not known"),
    ("error sending request", "the connection was lost"),
    ("error decoding response body", "the connection was lost"),
)
"""What a store says, and the words for it."""
_CREDENTIALS = ("Missing", "credential", "169.254.169.254", "metadata.google")
"""What the library says when there are no credentials in the environment."""


@cache
def open_store(name: str) -> Any:
    """Return the store of a bucket, `s3://bucket`.

    Raises:
        WarehouseError: `C1550`, `obstore` is not installed.
    """
    try:
        from obstore.store import from_url
    except ImportError as error:
        raise WarehouseError.of(
            "C1550",
            f"`{name}` needs the package `obstore`, which is not installed.",
            None,
            "install `corollary[objects]`",
        ) from error
    with request_errors(name):
        return from_url(
            name,
            client_options={
                "timeout": timedelta(seconds=REQUEST_TIMEOUT_SECONDS),
                "connect_timeout": timedelta(seconds=CONNECT_TIMEOUT_SECONDS),
                # Options of the client hide what the environment says of it.
                "allow_http": os.environ.get("AWS_ALLOW_HTTP", "").lower() in {"1", "true"},
            },
            retry_config={
                "max_retries": SERVER_RETRIES,
                "retry_timeout": timedelta(seconds=2 * REQUEST_TIMEOUT_SECONDS),
                "backoff": {"init_backoff": timedelta(seconds=BACKOFF_SECONDS)},
            },
        )


@contextmanager
def request_errors(name: str) -> Iterator[None]:
    """Turn the errors of `obstore` into those of files, without what the store has answered."""
    from obstore import exceptions

    try:
        yield
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error):
            raise OSError(errno.ENXIO, "there is no such bucket", name) from None
        raise FileNotFoundError(errno.ENOENT, "there is no such object", name) from None
    except exceptions.AlreadyExistsError:
        raise FileExistsError(errno.EEXIST, "there is another object of this name", name) from None
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError):
        raise PermissionError(errno.EACCES, "access is denied", name) from None
    except (exceptions.BaseError, OSError, ValueError) as error:
        text = str(error)
        if "NoSuchBucket" in text:
            raise OSError(errno.ENXIO, "there is no such bucket", name) from None
        raise OSError(errno.EIO, _reason(text), name) from None


def _reason(text: str) -> str:
    """Return a few words about an error: nothing of what was sent, which a store may repeat."""
    if any(part in text for part in _CREDENTIALS):
        return "there are no credentials for it in the environment"
    status = _STATUS.search(text)
    if status is not None:
        return f"the store answers {status[1].strip()}"
    return next((words for part, words in _REASONS if part in text), "the request failed")


def repeat(request: Callable[[], T]) -> T:
    """Make a request that does no harm if it is made twice, and again if its answer was lost."""
    for pause in RETRY_PAUSES_SECONDS:
        try:
            return request()
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        time.sleep(pause)
    return request()
