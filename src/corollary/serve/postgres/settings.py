"""The settings of a session: what SET changes, SHOW shows, and clients are told of."""

from collections.abc import Mapping
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from corollary.serve.postgres.problems import PgError, not_supported

SERVER_VERSION = "15.0"
"""The version of PostgreSQL whose catalog is imitated."""
VERSION_TEXT = f"PostgreSQL {SERVER_VERSION} (Corollary)"

REPORTED_SETTINGS = {
    spelled.lower(): spelled
    for spelled in (
        *("server_version", "server_encoding", "client_encoding", "application_name"),
        *("default_transaction_read_only", "in_hot_standby", "is_superuser"),
        *("session_authorization", "DateStyle", "IntervalStyle", "TimeZone"),
        *("integer_datetimes", "standard_conforming_strings"),
    )
}
"""The settings that a client is told of when they change, as PostgreSQL spells them."""

DEFAULTS = {
    "server_version": SERVER_VERSION,
    "server_version_num": "150000",
    **dict.fromkeys(("server_encoding", "client_encoding"), "UTF8"),
    **dict.fromkeys(("application_name", "session_authorization", "default_tablespace"), ""),
    **dict.fromkeys(("default_transaction_isolation", "transaction_isolation"), "read committed"),
    **dict.fromkeys(("default_transaction_read_only", "transaction_read_only"), "off"),
    **dict.fromkeys(("default_transaction_deferrable", "transaction_deferrable"), "off"),
    **dict.fromkeys(("in_hot_standby", "is_superuser", "jit"), "off"),
    **dict.fromkeys(("integer_datetimes", "standard_conforming_strings"), "on"),
    **dict.fromkeys(("escape_string_warning", "row_security", "synchronous_commit"), "on"),
    **dict.fromkeys(("geqo", "check_function_bodies"), "on"),
    **dict.fromkeys(("statement_timeout", "lock_timeout"), "0"),
    "idle_in_transaction_session_timeout": "0",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "search_path": '"$user", public',
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "client_min_messages": "notice",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "work_mem": "4096",
    "default_table_access_method": "heap",
    "xmloption": "content",
    **{f"lc_{of}": "C" for of in ("collate", "ctype", "messages", "monetary", "numeric", "time")},
    "max_connections": "100",
    "role": "none",
    "password_encryption": "scram-sha-256",
    "cursor_tuple_fraction": "0.1",
}
_FIXED = frozenset(
    {
        *("server_version", "server_version_num", "server_encoding", "is_superuser"),
        *("in_hot_standby", "integer_datetimes", "max_identifier_length", "max_index_keys"),
        *("lc_collate", "lc_ctype", "max_connections"),
    }
)
_SWITCHES = frozenset({"transaction_read_only", "default_transaction_read_only"})
_ON = frozenset({"on", "true", "yes", "1"})
_UTF8_NAMES = frozenset({"utf8", "utf-8", "unicode", "auto", "sql_ascii"})


class SessionSettings:
    """The settings of one session.

    >>> settings = SessionSettings("alice")
    >>> settings.set("timezone", "Europe/Rome")
    >>> settings.get("timezone"), settings.get("no.such")
    ('Europe/Rome', None)
    """

    def __init__(self, user: str) -> None:
        self._initial = {**DEFAULTS, "session_authorization": user}
        self._values = dict(self._initial)
        self._before: dict[str, str] | None = None
        self._local: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        """Return the value of a setting; None if there is no such setting."""
        return self._values.get(name)

    def all(self) -> Mapping[str, str]:
        """Return all settings."""
        return self._values

    @property
    def zone(self) -> str:
        """The time zone that timestamps are shown in."""
        return self._values["timezone"]

    @property
    def is_read_only(self) -> bool:
        """Whether writes are refused."""
        return self._values["transaction_read_only"] == "on"

    @property
    def timeout_seconds(self) -> float | None:
        """How long a statement may take, if that is set."""
        milliseconds = _milliseconds(self._values["statement_timeout"])
        return milliseconds / 1000 if milliseconds else None

    def set(self, name: str, value: str, *, is_local: bool = False) -> None:
        """Change a setting; a local one is changed back at the end of the transaction.

        Raises:
            PgError: there is no such setting, or no such value.
        """
        if name in _FIXED:
            raise PgError("55P02", f"The setting `{name}` cannot be changed.")
        if name not in self._values and "." not in name:
            raise PgError("42704", f"There is no setting `{name}`.")
        checked = _checked(name, value)
        if is_local and self._before is not None:
            self._local.setdefault(name, self._values.get(name, ""))
        self._values[name] = checked
        if name == "default_transaction_read_only" and self._before is None:
            self._values["transaction_read_only"] = checked

    def set_initial(self, name: str, value: str) -> None:
        """Change a setting as the startup message says; what does not fit is passed over."""
        try:
            self.set(name.lower(), value)
        except PgError:
            return
        self._initial[name.lower()] = self._values[name.lower()]

    def reset(self, name: str) -> None:
        """Change a setting, or `all` of them, back to what it was at first.

        Raises:
            PgError: there is no such setting.
        """
        if name == "all":
            self._values = dict(self._initial)
        elif name in self._initial:
            self._values[name] = self._initial[name]
        elif name in self._values:
            del self._values[name]
        else:
            raise PgError("42704", f"There is no setting `{name}`.")

    def begin(self, modes: str) -> None:
        """Begin a transaction with some modes, such as `READ ONLY`."""
        self._before = dict(self._values)
        self._local = {}
        self.set_modes(modes)

    def set_modes(self, modes: str) -> None:
        """Change the modes of the transaction."""
        self._values |= _modes(modes)

    def set_default_modes(self, modes: str) -> None:
        """Change the modes of the transactions to come."""
        for name, value in _modes(modes).items():
            self._values[f"default_{name}"] = value
            if self._before is None:
                self._values[name] = value

    @property
    def has_snapshot(self) -> bool:
        """Whether all reads of the transaction see the same state."""
        return self._values["transaction_isolation"] in ("serializable", "repeatable read")

    def end(self, *, is_committed: bool) -> None:
        """End a transaction: settings go back to what they were, unless it was committed."""
        before, self._before = self._before, None
        if before is None:
            return
        if not is_committed:
            self._values = before
        else:
            self._values.update(self._local)
        for name in ("transaction_isolation", "transaction_read_only"):
            self._values[name] = self._values[f"default_{name}"]
        self._local = {}


def _modes(text: str) -> dict[str, str]:
    """Return the settings that the modes of a transaction are.

    >>> _modes("ISOLATION LEVEL REPEATABLE  READ, READ ONLY")
    {'transaction_isolation': 'repeatable read', 'transaction_read_only': 'on'}
    """
    spelled, found = " ".join(text.split()), {}
    for level in ("SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED", "READ UNCOMMITTED"):
        if level in spelled:
            found["transaction_isolation"] = level.lower()
    if "READ ONLY" in spelled or "READ WRITE" in spelled:
        found["transaction_read_only"] = "on" if "READ ONLY" in spelled else "off"
    return found


def _checked(name: str, value: str) -> str:
    """Return the value that a setting gets.

    Raises:
        PgError: it cannot have this one.
    """
    if name == "client_encoding":
        if value.lower() not in _UTF8_NAMES:
            raise not_supported("Texts are sent in UTF8 only.", "SET client_encoding = 'UTF8'")
        return "UTF8"
    if name == "timezone":
        return _zone(value)
    if name == "datestyle":
        if "iso" not in value.lower():
            raise not_supported("Dates are written in the style ISO only.")
        return "ISO, MDY"
    if name == "statement_timeout":
        _milliseconds(value)
    if name in _SWITCHES:
        return "on" if value.lower() in _ON else "off"
    return value


def _zone(value: str) -> str:
    """Return the name of a time zone.

    >>> _zone("gmt"), _zone("+2")
    ('UTC', '+02:00')
    """
    if value.lower() in ("utc", "gmt", "z", "etc/utc", "0"):
        return "UTC"
    try:
        hours = float(value)
    except ValueError:
        pass
    else:
        if not -16 < hours < 16:
            raise PgError("22023", f"There is no time zone `{value}`.")
        minutes = round(abs(hours) * 60)
        return f"{'-' if hours < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
    try:
        return ZoneInfo(value).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise PgError("22023", f"There is no time zone `{value}`.", "as in `Europe/Rome`") from None


_UNITS = {"us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def _milliseconds(text: str) -> float:
    """Return a time such as `500`, `3s` or `2min`.

    >>> _milliseconds("3s")
    3000.0
    """
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text.strip()[len(number) :].strip() or "ms"
    try:
        return float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        raise PgError("22023", f"`{text}` is not a time.", "as in `3s`") from None
