"""Batches of requests in a reader."""

from collections.abc import Iterator, Sequence

from corollary.serve.answers import Answer, ServiceError
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.handlers.dispatch import handle
from corollary.serve.principals import Principal
from corollary.serve.requests import Request


def answer_batch(
    context: HandlerContext, requests: Sequence[tuple[int, Principal, Request]]
) -> Iterator[tuple[int, Answer | ServiceError]]:
    """Answer some requests; yield for each one its number and its answer."""
    for number, who, request in requests:
        try:
            yield number, handle(context, who, request)
        except ServiceError as error:
            yield number, error
