"""The fibre network of the example, and what happens in it."""

from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path

REGIONS, TOWNS, STREETS, HOMES, RING = 20, 50, 10, 24, 10
"""Every region has an exchange that feeds rings of towns; towns feed streets, streets homes."""

Cable = tuple[str, str]

CUT: tuple[Cable, ...] = (
    ("r3", "r3.t10"),
    ("r7.t2", "r7.t2.s4"),
    ("r11.t40.s9", "r11.t40.s9.h0"),
)
LAID: tuple[Cable, ...] = (("r7.t3", "r7.t2.s4"), ("r4", "r3.t18"))
"""Cables that a digger cuts, and others that are laid."""

CUT_AGAIN: tuple[Cable, ...] = (("r5", "r5.t20"),)
"""What the digger cuts when it comes back."""


def network(regions: int = REGIONS) -> list[Cable]:
    """Return the cables of the example.

    >>> len(network())
    251100
    """
    return [cable for number in range(regions) for cable in _region(f"r{number}")]


def _region(exchange: str) -> Iterator[Cable]:
    for number in range(TOWNS):
        town, last = f"{exchange}.t{number}", number - number % RING
        if number == last:
            yield exchange, town
        yield town, f"{exchange}.t{last + (number + 1) % RING}"
        for street in (f"{town}.s{each}" for each in range(STREETS)):
            yield town, street
            yield from ((street, f"{street}.h{home}") for home in range(HOMES))


def homes_of(cables: Iterable[Cable]) -> list[tuple[str, str]]:
    """Return every home with the exchange of its region.

    >>> homes_of([("r1.t2.s3", "r1.t2.s3.h4"), ("r1", "r1.t2")])
    [('r1.t2.s3.h4', 'r1')]
    """
    return [(down, down.partition(".")[0]) for _, down in cables if ".h" in down]


def program_text() -> str:
    """Return the program."""
    return files("corollary").joinpath("examples/network.dl").read_text(encoding="utf-8")


def write_example(directory: Path, cables: list[Cable]) -> int:
    """Write the program and its facts into a directory; return the number of homes."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "network.dl").write_text(program_text(), encoding="utf-8")
    homes = homes_of(cables)
    write_cables(directory, cables)
    _write(directory / "region.facts", homes)
    return len(homes)


def write_cables(directory: Path, cables: Iterable[Cable]) -> None:
    """Write the cables that there are now."""
    _write(directory / "cable.facts", cables)


def _write(path: Path, rows: Iterable[tuple[str, str]]) -> None:
    path.write_text("".join(f"{one}\t{two}\n" for one, two in rows), encoding="utf-8")
