"""Uploads in parts that a dead writer has left: S3 keeps their parts, and no listing shows them.

`obstore` has no request for them, so they are made here, signed as AWS demands it (Signature
Version 4). Other stores forget unfinished uploads by themselves, after a week.
"""

import hashlib
import hmac
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen
from xml.etree import ElementTree as ET

from corollary.data_class import dataclass
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.object_store import REQUEST_TIMEOUT_SECONDS

_ALGORITHM = "AWS4-HMAC-SHA256"
_NO_CONTENT = hashlib.sha256().hexdigest()


class UploadsUnknownError(Exception):
    """Why unfinished uploads cannot be found, in a few words."""


@dataclass(frozen=True, slots=True)
class _Upload:
    key: str
    id: str
    started: float


def abort_uploads(place: ObjectPath, before: float) -> int:
    """Abort the uploads below a place that were started before a time; return how many.

    Raises:
        UploadsUnknownError: they cannot be listed or aborted.
    """
    if not place.store.startswith("s3://"):
        return 0
    bucket = _Bucket(place.store.removeprefix("s3://"))
    old = [each for each in bucket.uploads(f"{place.key}/") if each.started < before]
    for each in old:
        bucket.request("DELETE", each.key, {"uploadId": each.id})
    return len(old)


class _Bucket:
    """A bucket of S3, with the credentials of the environment."""

    def __init__(self, name: str) -> None:
        env = os.environ.get
        self._name = name
        self._region = env("AWS_REGION") or env("AWS_DEFAULT_REGION") or "us-east-1"
        self._endpoint = (
            env("AWS_ENDPOINT_URL_S3")
            or env("AWS_ENDPOINT_URL")
            or env("AWS_ENDPOINT")
            or f"https://s3.{self._region}.amazonaws.com"
        ).rstrip("/")
        self._id, self._secret = env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY")
        self._token = env("AWS_SESSION_TOKEN")

    def uploads(self, prefix: str) -> Iterator[_Upload]:
        """Yield the unfinished uploads of objects whose names begin with a text."""
        parameters = {"uploads": "", "prefix": prefix}
        while True:
            listed = _parse(self.request("GET", "", parameters))
            for each in listed.iterfind("{*}Upload"):
                started = datetime.fromisoformat(_text(each, "Initiated"))
                yield _Upload(_text(each, "Key"), _text(each, "UploadId"), started.timestamp())
            if _text(listed, "IsTruncated") != "true":
                return
            parameters |= {
                "key-marker": _text(listed, "NextKeyMarker"),
                "upload-id-marker": _text(listed, "NextUploadIdMarker"),
            }

    def request(self, method: str, key: str, parameters: Mapping[str, str]) -> bytes:
        """Make a request about an object, or about the bucket; return the answer."""
        if not self._id or not self._secret:
            raise UploadsUnknownError("there is no AWS_ACCESS_KEY_ID in the environment")
        endpoint = urlsplit(self._endpoint)
        if endpoint.scheme not in {"http", "https"}:
            raise UploadsUnknownError("the endpoint is no URL")
        path = quote(f"{endpoint.path}/{self._name}" + (f"/{key}" if key else ""))
        query = "&".join(
            f"{quote(name, safe='')}={quote(value, safe='')}"
            for name, value in sorted(parameters.items())
        )
        headers = self._signed(method, endpoint.netloc, path, query)
        url = f"{endpoint.scheme}://{endpoint.netloc}{path}?{query}"
        # The scheme is that of the web, as was checked above.
        asked = Request(url, method=method, headers=headers)  # noqa: S310
        try:
            with urlopen(asked, timeout=REQUEST_TIMEOUT_SECONDS) as answer:  # noqa: S310
                return bytes(answer.read())
        except HTTPError as error:
            error.close()
            if method == "DELETE" and error.code == 404:  # it has come to an end meanwhile
                return b""
            raise UploadsUnknownError(f"the store answers {error.code}") from None
        except (URLError, OSError, HTTPException):
            raise UploadsUnknownError("the store cannot be reached") from None

    def _signed(self, method: str, host: str, path: str, query: str) -> dict[str, str]:
        """Return the headers of a request without content, with its signature."""
        now = datetime.now(UTC)
        time, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        headers = {"host": host, "x-amz-content-sha256": _NO_CONTENT, "x-amz-date": time}
        if self._token:
            headers["x-amz-security-token"] = self._token
        names = ";".join(sorted(headers))
        listed = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        request = f"{method}\n{path}\n{query}\n{listed}\n{names}\n{_NO_CONTENT}"
        scope = f"{day}/{self._region}/s3/aws4_request"
        digest = hashlib.sha256(request.encode()).hexdigest()
        key = f"AWS4{self._secret}".encode()
        for part in (*scope.split("/"), f"{_ALGORITHM}\n{time}\n{scope}\n{digest}"):
            key = hmac.digest(key, part.encode(), "sha256")
        headers["Authorization"] = (
            f"{_ALGORITHM} Credential={self._id}/{scope}, SignedHeaders={names}, "
            f"Signature={key.hex()}"
        )
        return headers


def _parse(answer: bytes) -> ET.Element:
    if b"<!DOCTYPE" in answer:
        raise UploadsUnknownError("the store answers with something else")
    try:
        return ET.fromstring(answer)  # noqa: S314 - without definitions there is nothing to expand
    except ET.ParseError:
        raise UploadsUnknownError("the store answers with something else") from None


def _text(element: ET.Element, name: str) -> str:
    return element.findtext(f"{{*}}{name}") or ""
