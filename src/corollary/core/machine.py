"""The machine that a process runs on: how much memory there is, and how much a process has."""

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

STATM_BYTES = 100
CONTROLLERS = {"": ("", "memory.max"), "memory": ("memory", "memory.limit_in_bytes")}
"""By the controllers in a line of `/proc/self/cgroup`: where groups are, and their file."""


_granted: int | None = None


def grant_memory(most: int | None) -> None:
    """State how many bytes this process may take; None if nothing is known of that."""
    global _granted  # noqa: PLW0603 - it is about the process
    _granted = most


def machine_memory(root: Path = Path("/")) -> int:
    """Return the bytes of memory that this process may take.

    They are those of the machine, of the container (its control groups), or those that it was
    granted, whichever is least.

    Args:
        root: where the files of the system are.
    """
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    granted = [] if _granted is None else [_granted]
    return min([physical, *_group_limits(root), *granted])


def _group_limits(root: Path) -> Iterator[int]:
    """Yield the limits of the groups of this process, and of those that they are in."""
    try:
        lines = (root / "proc/self/cgroup").read_text("utf-8").splitlines()
    except (OSError, UnicodeError):  # the system has no groups
        return
    for line in lines:
        _, names, path = line.split(":", 2)
        for name in {"", "memory"} & set(names.split(",")):
            folder, file = CONTROLLERS[name]
            # A container may see its own group at the top, whatever it is called outside.
            for group in (Path(path.lstrip("/")), *Path(path.lstrip("/")).parents):
                try:
                    text = (root / "sys/fs/cgroup" / folder / group / file).read_text("ascii")
                except OSError:
                    continue
                if text.strip().isdigit():  # else it is `max`
                    yield int(text)


@lru_cache(maxsize=1)
def _statm(_: int) -> int:
    """Return the file of this process's memory, which is asked for very often."""
    return os.open("/proc/self/statm", os.O_RDONLY)


def own_memory(process: int | None = None) -> int:
    """Return the resident bytes that are a process's own, not those of files that it has mapped.

    Where that cannot be found out, it is 0.

    Args:
        process: its id; this process if it is not given.
    """
    try:
        if process is None:
            numbers = os.pread(_statm(os.getpid()), STATM_BYTES, 0)
        else:
            numbers = Path(f"/proc/{process}/statm").read_bytes()
    except OSError:  # it has ended, or the system has no such files
        return 0
    resident, shared = map(int, numbers.split()[1:3])
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


def reserved_memory() -> int:
    """Return the bytes of data that this process has reserved, used or not: `RLIMIT_DATA`'s.

    Where that cannot be found out, it is 0.
    """
    try:
        numbers = os.pread(_statm(os.getpid()), STATM_BYTES, 0)
    except OSError:  # the system has no such files
        return 0
    return int(numbers.split()[5]) * os.sysconf("SC_PAGE_SIZE")
