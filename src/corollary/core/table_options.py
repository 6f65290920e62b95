"""The options of a published table: parameters of `.output`, properties of a view in SQL.

| parameter | property | meaning |
|---|---|---|
| `change_data_feed` | `delta.enableChangeDataFeed` | whether versions say what they changed |
| `log_retention` | `delta.logRetentionDuration` | how long entries of the log are kept |
| `file_retention` | `delta.deletedFileRetentionDuration` | how long versions can be read |
| `refresh` | `corollary.refresh_policy` | how the view follows changes; see `RefreshPolicy` |
| `target_lag` | `corollary.targetLag` | how old what the table shows may be; see `watch` |
"""

import hashlib
import re
from collections.abc import Iterable, Mapping

from corollary.core.program import REFRESH_PARAMETER, Directive, Program, RefreshPolicy
from corollary.data_class import dataclass

FLAGS = ("change_data_feed",)
DURATIONS = ("log_retention", "file_retention", "target_lag")
FEED_PROPERTY = "delta.enableChangeDataFeed"
TARGET_LAG_PROPERTY = "corollary.targetLag"
POLICY_PROPERTY = "corollary.refresh_policy"
PROPERTIES = {
    POLICY_PROPERTY: REFRESH_PARAMETER,
    FEED_PROPERTY.lower(): "change_data_feed",
    "delta.logretentionduration": "log_retention",
    "delta.deletedfileretentionduration": "file_retention",
    TARGET_LAG_PROPERTY.lower(): "target_lag",
}
"""The parameters by the properties of Delta, in small letters."""
DURATION_FORMS = "a duration such as `5 minutes`, `12 hours` or `30 days`"
KEEP_SECONDS = 3600
"""How long versions and their entries stay by default."""
_UNITS = {"week": 604_800, "day": 86_400, "hour": 3600, "minute": 60, "second": 1}
_DURATION = re.compile(r"(?:interval\s+)?([0-9]{1,9})\s*(week|day|hour|minute|second)s?")


def parse_duration(text: str) -> int | None:
    """Return the seconds of a duration, 1 or more; None if it is none.

    >>> parse_duration("5 minutes"), parse_duration("interval 1 day"), parse_duration("soon")
    (300, 86400, None)
    """
    found = _DURATION.fullmatch(text.strip().strip("'").lower())
    return None if found is None else int(found[1]) * _UNITS[found[2]] or None


def format_duration(seconds: int) -> str:
    """Return a duration in the largest unit of which it is a multiple.

    >>> format_duration(300), format_duration(86400), format_duration(90)
    ('5 minutes', '1 day', '90 seconds')
    """
    unit, size = next(each for each in _UNITS.items() if not seconds % each[1])
    return f"{seconds // size} {unit}{'s' if seconds != size else ''}"


def expected_value(name: str, value: str) -> str | None:
    """Return what the value of a parameter should be; None if it is right."""
    if name == REFRESH_PARAMETER and value.lower() not in tuple(RefreshPolicy):
        return "`auto`, `incremental`, `incremental strict` or `full`"
    if name in FLAGS and value not in ("true", "false"):
        return "`true` or `false`"
    return DURATION_FORMS if name in DURATIONS and parse_duration(value) is None else None


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of a published table.

    Attributes:
        log_retention: in seconds, as the others.
        target_lag: None if there is no target.
        key: the columns of the relation's key, by which changes are updates.
    """

    change_data_feed: bool = False
    log_retention: int = KEEP_SECONDS
    file_retention: int = KEEP_SECONDS
    target_lag: int | None = None
    key: tuple[int, ...] = ()

    @property
    def configuration(self) -> dict[str, str]:
        """The properties of the table; a version that can be read keeps its entries."""
        log = max(self.log_retention, self.file_retention)
        return {
            "delta.logRetentionDuration": _interval(log),
            "delta.deletedFileRetentionDuration": _interval(self.file_retention),
            **({FEED_PROPERTY: "true"} if self.change_data_feed else {}),
        }

    @property
    def digest(self) -> str:
        """A digest of the properties; empty for the default ones."""
        given = self.configuration
        if given == TableOptions().configuration:
            return ""
        return hashlib.blake2b(repr(sorted(given.items())).encode(), digest_size=8).hexdigest()


def _interval(seconds: int) -> str:
    number, unit = format_duration(seconds).split(" ")
    return f"interval {number} {unit.removesuffix('s')}s"


def table_options(program: Program) -> dict[str, TableOptions]:
    """Return the options of the tables of all outputs; of two directives the later one counts."""
    keys = {
        each.name: tuple([column.name for column in each.columns].index(name) for name in each.key)
        for each in program.declarations
    }
    given = given_options(program.directives)
    return {
        name: TableOptions(
            parameters.get("change_data_feed") == "true",
            parse_duration(parameters.get("log_retention", "")) or KEEP_SECONDS,
            parse_duration(parameters.get("file_retention", "")) or KEEP_SECONDS,
            parse_duration(parameters.get("target_lag", "")),
            keys.get(name, ()),
        )
        for name, parameters in given.items()
    }


def describe_options(parameters: Mapping[str, str]) -> str:
    """Return options in words.

    >>> describe_options({"target_lag": "5 minutes", "change_data_feed": "true"})
    'target lag 5 minutes, change data feed true'
    """
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in parameters.items())


def given_options(directives: Iterable[Directive]) -> dict[str, dict[str, str]]:
    """Return the parameters of all outputs that are options of their tables."""
    found: dict[str, dict[str, str]] = {}
    for each in directives:
        if each.name == "output":
            kept = {k: v for k, v in each.parameters if k in (*FLAGS, *DURATIONS)}
            found.setdefault(each.relation, {}).update(kept)
    return found
