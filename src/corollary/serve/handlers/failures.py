"""Errors of the package as answers of a server: which status of HTTP, and which text."""

import logging
import secrets

from corollary.database.commit import KEY_REUSED
from corollary.errors import (
    AccessError,
    ConflictError,
    ConstraintError,
    CorollaryError,
    InputError,
    LimitError,
    UnknownOutcomeError,
    WarehouseError,
)
from corollary.serve.answers import ServiceError

LOG = logging.getLogger("corollary.serve")
NO_SUCH_COMMIT = "C0936"


def service_error(error: BaseException, *, is_for_operator: bool = False) -> ServiceError:
    """Return the error of a server for one of the package.

    What nobody expects is logged with its trace, under a number that the answer has, too. So is
    what is wrong with the warehouse, for its files and their places concern the operator only.
    """
    if isinstance(error, ServiceError):
        return error
    if not isinstance(error, CorollaryError):
        number = secrets.token_hex(4)
        LOG.error("error %s", number, exc_info=error)
        text = f"The server has failed at this request (error {number})."
        return ServiceError.of(500, "C1602", text, "its log has the details, under this number")
    status = _status(error)
    exit_code = error.exit_code
    if isinstance(error, WarehouseError) and status >= 500 and not is_for_operator:
        return _hidden(error, status)
    if isinstance(error, InputError):
        found = ServiceError.with_findings(status, error.diagnostics, exit_code)
        found.message = str(error)
    else:
        found = ServiceError(status, str(error), (), exit_code)
        found.limit = error.limit if isinstance(error, LimitError) else None
    if isinstance(error, ConstraintError) and error.why:
        found.details = {"why": [each.as_json() for each in error.why]}  # type: ignore[attr-defined]
    return found


def _hidden(error: WarehouseError, status: int) -> ServiceError:
    """Return what those are told who have no business with the files of the warehouse."""
    number = secrets.token_hex(4)
    LOG.error("error %s: %s", number, error)
    text = f"The warehouse cannot be used for this request (error {number})."
    note = "the server's log has the details, under this number"
    if isinstance(error, UnknownOutcomeError):
        text = f"Whether this was committed is not known (error {number})."
        note = "the log of commits shows it; a request with an idempotency key can be repeated"
    return ServiceError.of(status, error.diagnostics[0].code, text, note)


def _status(error: CorollaryError) -> int:
    codes = {each.code for each in error.diagnostics} if isinstance(error, InputError) else set()
    match error:
        case AccessError():
            return 403
        case ConflictError():
            return 409
        case ConstraintError() | LimitError():
            return 422
        case UnknownOutcomeError():
            return 503
        case WarehouseError():
            return 404 if codes == {NO_SUCH_COMMIT} else 500
        case _:
            return 422 if codes == {KEY_REUSED} else 400
