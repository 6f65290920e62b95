"""Answers and errors as responses of HTTP."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from starlette.responses import Response, StreamingResponse

from corollary.serve.answers import JSON_TYPE, Answer, ServiceError, encode_json

if TYPE_CHECKING:
    import pyarrow as pa

ARROW_TYPE = "application/vnd.apache.arrow.stream"
PICTURE_TYPE = "image/svg+xml"
BATCH_ROWS = 1 << 16
COMMIT_HEADER = "Corollary-Commit"
TYPE_KEY = b"corollary:type"


def respond(answer: Answer) -> Response:
    """Return the response of an answer."""
    headers = {COMMIT_HEADER: str(answer.commit)}
    if answer.table is None:
        return Response(answer.body, media_type=answer.media_type, headers=headers)
    batches = arrow_stream(answer.table, answer.types)
    return StreamingResponse(batches, media_type=ARROW_TYPE, headers=headers)


def respond_with_error(error: ServiceError) -> Response:
    """Return the response of an error."""
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    match error.status:
        case 401:
            headers["WWW-Authenticate"] = "Bearer"
        case 408 | 413:  # the rest of the body is not read
            headers["Connection"] = "close"
        case _:
            pass
    return Response(encode_json(error.as_json()), error.status, headers, JSON_TYPE)


def json_response(document: Any, status: int = 200) -> Response:
    """Return a response of JSON."""
    return Response(encode_json(document), status, media_type=JSON_TYPE)


def arrow_stream(table: "pa.Table", types: tuple[str, ...]) -> Iterator[bytes]:
    """Yield an Arrow stream: the schema, batches of 64 K rows, the end mark.

    The fields of the schema have the types of columns as programs write them in their metadata.
    """
    import pyarrow as pa

    if types:
        named = zip(table.schema, types, strict=True)
        fields = [field.with_metadata({TYPE_KEY: text.encode()}) for field, text in named]
        table = table.cast(pa.schema(fields))
    sink = _Chunks()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=BATCH_ROWS):
            writer.write_batch(batch)
            yield sink.take()
    yield sink.take()


class _Chunks:
    """A file that what is written to it is taken from."""

    closed = False

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: Any) -> int:
        self._written += memoryview(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: nothing is called after it."""

    def take(self) -> bytes:
        """Return what was written since the last time."""
        taken, self._written = bytes(self._written), bytearray()
        return taken
