"""The fields of a request, from the path, the query, the headers and the body."""

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, get_origin

from starlette.requests import Request as HttpRequest

from corollary.errors import InputError
from corollary.serve import requests
from corollary.serve.answers import ServiceError
from corollary.serve.http.endpoints import AnswerType, BodyForm, Endpoint
from corollary.serve.http.responses import ARROW_TYPE, PICTURE_TYPE

IDEMPOTENCY_HEADER = "idempotency-key"
LAST_EVENT_HEADER = "last-event-id"
TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
JSON_TYPES = ("application/json", "text/json")
JSON_MAX_VALUES = 2_000_000
"""The commas and opening brackets of JSON that is decoded here."""
LARGE_BODY_BYTES = 1 << 16
OBJECT_OF_CHANGES = re.compile(r'\s*\{\s*"(changes|dry_run|alone)"\s*:')


async def read_request(endpoint: Endpoint, http: HttpRequest) -> requests.Request:
    """Return what a client asks.

    Raises:
        ServiceError: the body cannot be read.
        InputError: a field is missing, unknown, or has another type.
    """
    found = _parameters(endpoint, http)
    match endpoint.body:
        case BodyForm.NONE:
            pass
        case BodyForm.OBJECT:
            found |= await _parse(parse_object, await http.body())
        case BodyForm.CHANGES:
            found |= await _parse(_changes, await http.body())
        case BodyForm.EVENTS:
            found |= await _parse(_events, await http.body())
        case BodyForm.PROGRAM:
            content_type = http.headers.get("content-type", "")
            found |= await _parse(_program, await http.body(), content_type)
    accepted = http.headers.get("accept", "")
    if endpoint.answer is AnswerType.ROWS and ARROW_TYPE in accepted:
        found["arrow"] = True
    if endpoint.answer is AnswerType.PROOF and PICTURE_TYPE in accepted.split(","):
        found["form"] = "svg"
    found |= endpoint.fixed
    has_key = endpoint.body in (BodyForm.CHANGES, BodyForm.EVENTS)
    if has_key and IDEMPOTENCY_HEADER in http.headers:
        found["idempotency_key"] = http.headers[IDEMPOTENCY_HEADER]
    last = http.headers.get(LAST_EVENT_HEADER, "")
    if endpoint.request is requests.EventsRequest and last.isascii() and last.isdigit():
        found["since"] = int(last)  # a browser that comes back knows more than its address does
    return requests.parse_request(endpoint.request, found)


def _parameters(endpoint: Endpoint, http: HttpRequest) -> dict[str, Any]:
    """Return the fields of the path and of the query; an empty parameter counts as none."""
    _, types = requests.fields_of(endpoint.request)
    names = {endpoint.aliases.get(name, name): name for name in types}
    found: dict[str, Any] = {}
    for parameter in dict.fromkeys(http.query_params.keys()):
        texts = [each for each in http.query_params.getlist(parameter) if each]
        name = names.get(parameter, parameter)
        if texts and name in endpoint.path_fields:
            raise InputError.of(
                "C1631", f"`{name}` is part of the path.", None, "leave out the parameter"
            )
        if texts:
            found[name] = _value(parameter, texts, types.get(name, str))
    for name in endpoint.path_fields:
        found[name] = _value(name, [http.path_params[name]], types[name])
    return found


def _value(parameter: str, texts: list[str], kind: Any) -> Any:
    """Return the value of a parameter, of the type that its field has."""
    if get_origin(kind) is tuple:
        return texts
    if len(texts) > 1:
        _refuse(parameter, "given once")
    (text,) = texts
    kinds = requests.alternatives(kind)
    if bool in kinds:
        if text.lower() not in (*TRUE, *FALSE):
            _refuse(parameter, "true or false")
        return text.lower() in TRUE
    if int in kinds:
        digits = text.removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) <= 18:
            return int(text)
        if str not in kinds:
            _refuse(parameter, "a whole number")
    return text


def _refuse(parameter: str, expected: str) -> NoReturn:
    raise InputError.of(
        "C1631",
        f"The parameter `{parameter}` has to be {expected}.",
        None,
        f"change the value of `{parameter}`, or leave it out",
    )


# --- bodies -----------------------------------------------------------------------------------


async def _parse(parse: Callable[..., dict[str, Any]], body: bytes, *more: str) -> dict[str, Any]:
    """Return what a body says; others are answered while a large one is read."""
    if len(body) < LARGE_BODY_BYTES:
        return parse(body, *more)
    return await asyncio.to_thread(parse, body, *more)


def _has_many_values(body: bytes) -> bool:
    """Whether JSON has more values than are decoded without a pause for other requests."""
    return sum(body.count(sign) for sign in (b",", b"[", b"{")) > JSON_MAX_VALUES


def parse_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body.

    Raises:
        ServiceError: it is not one.
    """
    if _has_many_values(body):
        raise _many_values()
    try:
        found = json.loads(decode_text(body), parse_constant=_refuse_constant)
    except ValueError as error:
        raise _not_json(str(error)) from None
    except RecursionError:
        raise _not_json("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise _not_json("it is something else")
    return found


def decode_text(body: bytes) -> str:
    """Return the text of a body.

    Raises:
        ServiceError: it is not UTF-8.
    """
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise _not_json("it is not UTF-8") from None


def _many_values() -> ServiceError:
    return ServiceError.of(
        413,
        "C1626",
        f"The JSON of the request has more than {JSON_MAX_VALUES:,} values.",
        "send less at once; changes may be lines of JSON, one for each",
    )


def _not_json(problem: str) -> ServiceError:
    return ServiceError.of(
        400,
        "C1628",
        f"The body of the request is not a JSON object: {problem}.",
        '`/openapi.json` describes it; such as `{"goal": "link(x, y)"}`',
    )


def _refuse_constant(name: str) -> NoReturn:
    text = f"JSON has no {name}"
    raise ValueError(text)


def _changes(body: bytes) -> dict[str, Any]:
    """Return the fields of a body of changes: an object with `changes`, or lines of them."""
    text = decode_text(body)
    found: Any = None
    if not _has_many_values(body):
        with suppress(ValueError, RecursionError):
            found = json.loads(text, parse_constant=_refuse_constant)
    elif OBJECT_OF_CHANGES.match(text):
        raise _many_values()
    if not isinstance(found, dict) or "changes" not in found:
        return {"changes": text}
    return join_changes(found)


def join_changes(found: dict[str, Any]) -> dict[str, Any]:
    """Return fields whose changes, if they are a list, are lines."""
    if not isinstance(found.get("changes"), list):
        return found
    lines = (json.dumps(each, ensure_ascii=False) for each in found["changes"])
    return {**found, "changes": "\n".join(lines)}


def _events(body: bytes) -> dict[str, Any]:
    """Return lines of events, which may come as a JSON array; what each of them is, a source says.

    Raises:
        ServiceError: it is not UTF-8, or an array that is none.
    """
    text = decode_text(body)
    if not text.lstrip().startswith("["):
        return {"events": text}
    if _has_many_values(body):
        raise _many_values()
    try:
        found = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise _not_json(str(error)) from None
    return {"events": "\n".join(json.dumps(each, ensure_ascii=False) for each in found)}


def _program(body: bytes, content_type: str) -> dict[str, Any]:
    if content_type.partition(";")[0].strip().lower() in JSON_TYPES:
        return parse_object(body)
    return {"program": decode_text(body)}
