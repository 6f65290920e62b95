"""A warehouse as its catalog describes it: where it is, and which commits it has.

Nothing here reads a data file, so commands that need no more start without Arrow.
"""

from datetime import datetime
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl, quote, urlencode

from corollary.core.types import TIMESTAMP
from corollary.core.values import format_value, is_encodable, quote_text
from corollary.errors import WarehouseError, redact_password
from corollary.warehouse.catalog import catalog_rows
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.connections import POSTGRESQL_SCHEME
from corollary.warehouse.catalog.lazy_catalog import LazyCatalog
from corollary.warehouse.files.places import Place, has_files, is_object_url, place_of

CATALOG_FILE = "catalog.sqlite"
DATA_DIRECTORY = "data"
TABLES_DIRECTORY = "tables"
"""The directory of published tables."""

SCRATCH_DIRECTORY = "scratch"
"""The directory for files of engines that are open."""


class WarehouseCatalog:
    """The place of a warehouse, and its catalog.

    Attributes:
        root: the place of the data files.
        catalog: what they mean.
    """

    def __init__(self, root: Place, catalog: Catalog) -> None:
        self.root = root
        self.catalog = catalog

    @classmethod
    def open(cls, place: str | Path, *, create: bool = True, in_any_format: bool = False) -> Self:
        """Open a warehouse: a directory with its catalog, or a catalog that names its directory.

        Args:
            place: the directory, or `postgresql://user@host/name?data=PLACE`, with a directory or
                an object store, `s3://bucket/name`.
            create: whether to create it, with the first write, if there is none.
            in_any_format: whether to open one of another version, too, to upgrade it.

        Raises:
            WarehouseError: there is none, it cannot be read, or it has another format.
        """
        root, url = parse_location(str(place))
        catalog = Catalog(str(root / CATALOG_FILE) if url is None else url)

        def has_catalog() -> bool:
            return (url is not None or _has_catalog(root)) and catalog.exists()

        try:
            if has_catalog():
                if not in_any_format:
                    catalog.check_format()
                return cls(root, catalog)
            # The catalog is created before any data file, by another process perhaps just now.
            if _has_data(root) and not has_catalog():
                raise WarehouseError.lost_catalog(redact_password(catalog.location), root)
            if not create:
                raise _missing(root, catalog.location)
            return cls(root, LazyCatalog(root, catalog))
        except BaseException:
            catalog.close()
            raise

    def check_exists(self) -> None:
        """Refuse to read a warehouse to which nothing was written yet.

        Raises:
            WarehouseError: there is none.
        """
        if isinstance(self.catalog, LazyCatalog) and not self.catalog.is_created():
            raise _missing(self.root, self.catalog.location)

    def close(self) -> None:
        """Close the connections to the catalog."""
        self.catalog.close()

    def commit_at(self, number: int | None = None) -> catalog_rows.Commit | None:
        """Return a commit, or the last one.

        Raises:
            WarehouseError: it does not exist, or is no longer kept.
        """
        if number is None:
            return self.catalog.latest_commit()
        found = self.catalog.find_commit(number)
        oldest = int(self.catalog.meta("oldest"))
        if found is None or number < oldest:
            latest = self.catalog.latest_commit()
            kept = f"commits {max(1, oldest)} to {latest.number}" if latest else "no commit yet"
            what = "is no longer kept" if found or 0 < number < oldest else "does not exist"
            raise WarehouseError.of("C0936", f"Commit {number} {what}.", None, f"there are {kept}")
        return found

    def commit_before(self, end: datetime, asked: str) -> catalog_rows.Commit:
        """Return the last commit before a point in time, whose microseconds count.

        Raises:
            WarehouseError: there is none, or it is no longer kept; `asked` says what was asked for.
        """
        found = self.catalog.latest_commit_before(end.timestamp() - 0.5e-6)
        if found is None or found.number < int(self.catalog.meta("oldest")):
            first = self.commits()[-1:]
            since = (
                f"the first one is commit {first[0].number} of {_time(first[0])}" if first else ""
            )
            what = "is no longer kept" if found else "does not exist"
            raise WarehouseError.of(
                "C0936",
                f"A commit at or before {asked} {what}.",
                None,
                since or "there is no commit yet",
            )
        return found

    def commits(self, limit: int | None = None) -> list[catalog_rows.Commit]:
        """Return the commits that are kept, newest first."""
        return self.catalog.commits(int(self.catalog.meta("oldest")) - 1, limit)

    @property
    def catalog_bytes(self) -> int:
        """The size of the catalog's file, with its log; 0 for a database on a server."""
        if not self.catalog.is_file:
            return 0
        assert isinstance(self.root, Path), "a catalog in a file has its data beside it"
        files = (Path(f"{self.root / CATALOG_FILE}{end}") for end in ("", "-wal"))
        return sum(path.stat().st_size for path in files if path.exists())


def _time(commit: catalog_rows.Commit) -> str:
    return format_value(commit.time, TIMESTAMP)


def _missing(root: Place, location: str) -> WarehouseError:
    """Return the error of a place without a warehouse, with a name beside it that is near."""
    if not isinstance(root, Path) or "://" in location:
        return WarehouseError.missing(redact_password(location))
    from corollary.analysis.phrases import suggest_name

    beside = root.absolute().parent
    others = [each.parent.name for each in beside.glob(f"*/{CATALOG_FILE}")]
    return WarehouseError.missing(root, suggest_name(root.name, others))


def _has_catalog(root: Place) -> bool:
    try:
        (root / CATALOG_FILE).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise WarehouseError.cannot_read(root, error) from error
    return True


def _has_data(root: Place) -> bool:
    """Return whether there are files that only a catalog gives a meaning."""
    try:
        return has_files(root / DATA_DIRECTORY) or (
            isinstance(root, Path) and any(root.glob(f"{TABLES_DIRECTORY}/*/_delta_log/*"))
        )
    except OSError as error:
        raise WarehouseError.cannot_read(root, error) from error


def scratch_directory(root: Place) -> str:
    """Return where an engine may write files for as long as it is open: beside those that last.

    In a directory, a file gets a second name and is not copied when it becomes one that lasts.
    """
    return str(root.absolute() / SCRATCH_DIRECTORY)


def parse_location(place: str) -> tuple[Place, str | None]:
    """Return the place of a warehouse's files, and the URL of its catalog if it is not there.

    Raises:
        WarehouseError: the URL does not say where the files are, or the name is not UTF-8.
    """
    if not is_encodable(place):
        raise WarehouseError.of(
            "C0930",
            f"{quote_text(place)} cannot be a warehouse: its name is not UTF-8.",
            None,
            "rename the directory, or choose another one",
        )
    if "://" not in place:
        return Path(place), None
    if is_object_url(place):
        raise WarehouseError.of(
            "C0930",
            f"`{place_of(place)}` cannot hold the catalog of a warehouse, which has transactions.",
            None,
            f"keep it in PostgreSQL: `postgresql://user@host/name?data={place_of(place)}`",
        )
    url, _, query = place.partition("?")
    parameters = dict(parse_qsl(query))
    directory = parameters.pop("data", None)
    if directory is None or not url.startswith(("postgresql://", "postgresql+psycopg://")):
        raise WarehouseError.of(
            "C0930",
            "This is not the location of a warehouse.",
            None,
            "name a directory, or `postgresql://user@host/name?data=PLACE`",
        )
    rest = f"?{urlencode(parameters, quote_via=quote)}" if parameters else ""
    return place_of(directory), f"{POSTGRESQL_SCHEME}{url.partition('://')[2]}{rest}"
