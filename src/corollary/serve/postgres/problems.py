"""Errors as PostgreSQL's clients know them: a SQLSTATE, a sentence, a hint."""

import re
from collections.abc import Mapping
from typing import Any

from corollary.data_class import dataclass
from corollary.serve.answers import ServiceError


@dataclass(eq=False)
class PgError(Exception):
    """A statement or a connection that fails.

    Attributes:
        sqlstate: the code of the error, as PostgreSQL lists them.
        message: one sentence.
        hint: how to fix it.
        is_fatal: whether the connection ends.
    """

    sqlstate: str
    message: str
    hint: str | None = None
    is_fatal: bool = False

    @property
    def is_transient(self) -> bool:
        """Whether it says nothing about the statement: a conflict, a limit, the end of a server."""
        return self.is_fatal or self.sqlstate[:2] in ("40", "53", "57")

    def __post_init__(self) -> None:
        super().__init__(self.message)


def not_supported(message: str, hint: str | None = None) -> PgError:
    """Return the error of what PostgreSQL could do and this server cannot."""
    return PgError("0A000", message, hint)


# --- from errors of the service -----------------------------------------------------------------

_CODES = {
    "08007": "C0938",
    "0A000": "C1310 C1311 C1363 C1379",
    "22000": "C0810 C1042",  # C0810: an expression without a value
    "22023": "C0936",
    "22P02": "C1309",
    "23505": "C0937",
    "23514": "C1051 C1052",
    "40001": "C1385",
    "42501": "C1040 C1041 C1601",
    "42601": "C1300 C1301 C1315 C1361",
    "42702": "C1304",
    "42703": "C1303 C1367",
    "42803": "C1312 C1313",
    "42804": "C0910 C1307 C1374",
    "42809": "C0915",
    "42846": "C1308",
    "42883": "C1305 C1306",
    "42P01": "C0916 C1302 C1368",
    "42P02": "C1321",
    "42P10": "C1384",
    "42P20": "C1316",
    "54001": "C0997 C1322",
    "55000": "C0928",
    "57P01": "C1605",
}
"""The codes of diagnostics, by SQLSTATE."""
_STATES = {code: state for state, codes in _CODES.items() for code in codes.split()}
_BY_STATUS = {403: "42501", 404: "42P01", 409: "40001", 429: "53300", 503: "57P03", 504: "57014"}
_BY_EXIT_CODE = {3: "23514", 4: "40001", 5: "53400"}
_NULLS = re.compile(r"NOT NULL|has null in the column")


def pg_error(error: ServiceError) -> PgError:
    """Return the error of a service as a client of PostgreSQL gets it."""
    found: Mapping[str, Any] = error.diagnostics[0] if error.diagnostics else {}
    code = str(found.get("code", ""))
    state = (
        _STATES.get(code)
        or _BY_EXIT_CODE.get(error.exit_code)
        or _BY_STATUS.get(error.status)
        or ("XX000" if error.status >= 500 else "42000")
    )
    message, _, rest = error.message.partition("\n")
    note = found.get("note")
    if found:
        message = f"{found['message']} [{code}]"
    else:
        note = rest.strip().removeprefix("= ") or None
    if code in ("C0910", "C1374") and _NULLS.search(message):
        state = "23502"
    if code == "C1374" and message.startswith("Several rows"):
        state = "21000"
    return PgError(state, message, note, is_fatal=state == "57P01")
