"""Objects of an object store under names like those of files, with the methods of `pathlib.Path`.

An object is immutable here: it is put in one request, whole or not at all, under a name that nobody
has used before. There are no directories, no renaming and no links; what is a directory elsewhere
is the beginning of a name. What this class has, code that works on `Path` may use; the rest of
`Path` it may not.
"""

import io
import posixpath
from collections.abc import Iterator, Sequence
from fnmatch import translate
from re import compile as compile_pattern
from typing import Any, BinaryIO, NamedTuple

from corollary.data_class import dataclass
from corollary.warehouse.files.object_store import open_store, repeat, request_errors

ONE_REQUEST_MAX_BYTES = 64 * 2**20
"""Objects up to this size are put in one request; larger ones in parts."""
PART_BYTES = 16 * 2**20
READ_AHEAD_BYTES = 4 * 2**20
_DELETE_MAX_OBJECTS = 1000


class ObjectStatus(NamedTuple):
    """What a store says of an object, under the names that `os.stat_result` has.

    Attributes:
        st_mtime: when it was put, in seconds.
        e_tag: differs for another content.
    """

    st_size: int
    st_mtime: float
    e_tag: str

    @property
    def st_mtime_ns(self) -> int:
        """When it was put, in nanoseconds."""
        return round(self.st_mtime * 1_000_000) * 1_000


@dataclass(frozen=True, slots=True, order=True)
class ObjectPath:
    """The name of an object, or the beginning of such names.

    Attributes:
        store: scheme and bucket, `s3://bucket`.
        key: the name in the bucket, without a slash at either end.
    """

    store: str
    key: str = ""

    # --- names ---------------------------------------------------------------------------------

    def __truediv__(self, name: object) -> "ObjectPath":
        text = str(name)
        key = text if text.startswith("/") else f"{self.key}/{text}"
        key = posixpath.normpath(f"/{key}").strip("/")
        return ObjectPath(self.store, key)

    def __str__(self) -> str:
        return f"{self.store}/{self.key}" if self.key else self.store

    @property
    def name(self) -> str:
        """The last part of the name."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> "ObjectPath":
        """The name without its last part."""
        return ObjectPath(self.store, self.key.rpartition("/")[0])

    def with_name(self, name: str) -> "ObjectPath":
        """Return the name with another last part."""
        return self.parent / name

    def absolute(self) -> "ObjectPath":
        """Return the name itself: there is no current directory."""
        return self

    def resolve(self) -> "ObjectPath":
        """Return the name itself: there are no links."""
        return self

    def as_uri(self) -> str:
        """Return the name as a URL."""
        return str(self)

    def is_relative_to(self, other: object) -> bool:
        """Return whether the name begins with all parts of another."""
        return isinstance(other, ObjectPath) and (
            self == other or (self.store == other.store and self._has_prefix(other.key))
        )

    def _has_prefix(self, key: str) -> bool:
        return not key or self.key.startswith(f"{key}/")

    def relative_to(self, other: "ObjectPath") -> str:
        """Return the parts of the name behind those of another."""
        if not self.is_relative_to(other):
            raise ValueError(f"{self} is not below {other}")
        return self.key[len(other.key) :].lstrip("/")

    # --- reading -------------------------------------------------------------------------------

    def read_bytes(self) -> bytes:
        """Return the content."""
        return bytes(self.read_buffer())

    def read_text(self) -> str:
        """Return the content as text."""
        return self.read_bytes().decode()

    def read_buffer(self) -> memoryview:
        """Return the content without copying it."""
        import obstore

        def get() -> memoryview:
            with request_errors(str(self)):
                return memoryview(obstore.get(self._store, self.key).bytes())

        return repeat(get)

    def read_ranges(self, starts: Sequence[int], ends: Sequence[int]) -> list[memoryview]:
        """Return ranges of the content; those that are near are fetched together."""
        import obstore

        def get() -> list[memoryview]:
            with request_errors(str(self)):
                found = obstore.get_ranges(
                    self._store, self.key, starts=list(starts), ends=list(ends)
                )
                return [memoryview(each) for each in found]

        return repeat(get) if starts else []

    def open(self, mode: str = "rb") -> BinaryIO:
        """Open the object to read it from any place."""
        assert mode == "rb", "objects are put as a whole"
        return io.BufferedReader(ObjectReader(self, self.stat()), READ_AHEAD_BYTES)

    def stat(self) -> ObjectStatus:
        """Return size and time.

        Raises:
            FileNotFoundError: there is no object of this name.
        """
        import obstore

        def head() -> ObjectStatus:
            with request_errors(str(self)):
                return _status(obstore.head(self._store, self.key))

        return repeat(head)

    def exists(self) -> bool:
        """Return whether there is an object of this name, or one below it."""
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        """Return whether there is an object of this name."""
        if not self.key:
            return False
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self) -> bool:
        """Return whether there are objects below this name."""
        return next(self.entries(1), None) is not None

    def entries(self, limit: int | None = None) -> Iterator[tuple["ObjectPath", ObjectStatus]]:
        """Yield all objects below this name, with size and time.

        Args:
            limit: how many are needed at least, if not all.
        """
        import obstore

        with request_errors(str(self)):
            chunks = obstore.list(self._store, prefix=self.key or None, chunk_size=limit or 1000)
            for chunk in chunks:
                for each in chunk:
                    found = ObjectPath(self.store, str(each["path"]))
                    if found._has_prefix(self.key):
                        yield found, _status(each)

    def iterdir(self) -> Iterator["ObjectPath"]:
        """Yield what is directly below this name: objects, and beginnings of names."""
        import obstore

        with request_errors(str(self)):
            found = obstore.list_with_delimiter(self._store, prefix=self.key or None)
        for each in found["objects"]:
            yield ObjectPath(self.store, str(each["path"]))
        for prefix in found["common_prefixes"]:
            yield ObjectPath(self.store, str(prefix).strip("/"))

    def glob(self, pattern: str) -> Iterator["ObjectPath"]:
        """Yield the objects below this name whose parts match those of a pattern."""
        parts = [compile_pattern(translate(part)).fullmatch for part in pattern.split("/")]
        for path, _ in self.entries():
            names = path.relative_to(self).split("/")
            if len(names) == len(parts) and all(
                matches(name) for matches, name in zip(parts, names, strict=True)
            ):
                yield path

    # --- writing -------------------------------------------------------------------------------

    def create(self, data: Any) -> None:
        """Put a new object.

        A request whose answer was lost may have succeeded: so an object of this name that has the
        same content counts as ours.

        Raises:
            FileExistsError: there is an object of this name with other content.
        """
        import obstore

        view = memoryview(data).cast("B")

        def put() -> None:
            with request_errors(str(self)):
                if view.nbytes > ONE_REQUEST_MAX_BYTES:  # names are unique, so there is none yet
                    obstore.put(
                        self._store, self.key, view, use_multipart=True, chunk_size=PART_BYTES
                    )
                else:
                    obstore.put(self._store, self.key, view, mode="create", use_multipart=False)

        try:
            repeat(put)
        except FileExistsError:
            if self.read_buffer() != view:
                raise

    def write_bytes(self, data: Any) -> None:
        """Put an object, in place of one of the same name."""
        import obstore

        view = memoryview(data).cast("B")
        is_large = view.nbytes > ONE_REQUEST_MAX_BYTES

        def put() -> None:
            with request_errors(str(self)):
                obstore.put(
                    self._store, self.key, view, use_multipart=is_large, chunk_size=PART_BYTES
                )

        repeat(put)

    def copy_from(self, source: "ObjectPath") -> None:
        """Copy an object of the same bucket to this name, in the store."""
        import obstore

        def copy() -> None:
            with request_errors(str(source)):
                obstore.copy(self._store, source.key, self.key)

        repeat(copy)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Delete the object."""
        if not missing_ok:
            self.stat()
        delete_objects([self])

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Do nothing: there are no directories."""

    def rmdir(self) -> None:
        """Do nothing: there are no directories."""

    @property
    def _store(self) -> Any:
        return open_store(self.store)


class ObjectReader(io.RawIOBase):
    """Reads an object piece by piece; as `Path.open` does, it sees the content of one moment.

    Attributes:
        status: of the object when it was opened.
    """

    def __init__(self, path: ObjectPath, status: ObjectStatus) -> None:
        super().__init__()
        self._path = path
        self.status = status
        self._size = status.st_size
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a position, and return it."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        """Read the next bytes into a buffer; return how many."""
        view = memoryview(buffer).cast("B")
        end = min(self._position + view.nbytes, self._size)
        if end <= self._position:
            return 0
        data = self._path.read_ranges([self._position], [end])[0]
        view[: data.nbytes] = data
        self._position += data.nbytes
        return data.nbytes


def delete_objects(paths: Sequence[ObjectPath]) -> None:
    """Delete objects of one bucket; those that do not exist are no error."""
    import obstore

    for start in range(0, len(paths), _DELETE_MAX_OBJECTS):
        some = paths[start : start + _DELETE_MAX_OBJECTS]

        def delete(some: Sequence[ObjectPath] = some) -> None:
            with request_errors(str(some[0])):
                obstore.delete(open_store(some[0].store), [each.key for each in some])

        repeat(delete)


def _status(meta: Any) -> ObjectStatus:
    return ObjectStatus(
        int(meta["size"]), meta["last_modified"].timestamp(), str(meta.get("e_tag") or "")
    )
