"""The tables and the picture of docs/architecture.md, made of the code that they are about."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import get_args

from corollary.analysis import check
from corollary.core import plans
from corollary.drawing.svg import document, element, escape_text, path
from corollary.rewrite import normalise
from support.paths import REPOSITORY

PACKAGE = REPOSITORY / "src" / "corollary"
ALGORITHMS = PACKAGE / "maintain" / "algorithms"
UNNAMED = ("__main__", "version")
"""Modules at the top that say nothing about how the package is built."""


# ------------------------------------------------------------------------------------------- tables


def packages_table() -> list[str]:
    """Return the packages, those below others after them, from the lowest layer up."""
    rows = []
    for layer in reversed(layers()):
        for name in layer:
            for file in files_of_package(name):
                folder = file.parent if file.name == "__init__.py" else file.with_suffix("")
                title = folder.relative_to(PACKAGE).as_posix()
                rows.append((f"`{title}`", summary(file)))
    return table(("package", "holds"), rows)


def steps_table() -> list[str]:
    """Return the steps of plans."""
    return table(("step", "does"), ((f"`{each.__name__}`", sentence(each)) for each in STEPS))


def checks_table() -> list[str]:
    """Return the passes that check a program, in their order."""
    return table(("pass", "checks"), map(described, (*check.PASSES, check.alerts)))


def passes_table() -> list[str]:
    """Return the passes that make the normal form, in their order."""
    return table(("pass", "does"), map(described, normalise.PASSES))


def algorithms_table() -> list[str]:
    """Return the algorithms of maintenance, with their papers."""
    files = [each for each in sorted(ALGORITHMS.glob("*.py")) if each.name != "__init__.py"]
    rows = ((f"`{each.stem}`", summary(each), literature(each) or "–") for each in files)
    return table(("algorithm", "does", "literature"), rows)


def literature_table() -> list[str]:
    """Return what else follows a paper."""
    files = [each for each in sorted(PACKAGE.rglob("*.py")) if each.parent != ALGORITHMS]
    titles = ((each.parent if each.name == "__init__.py" else each, each) for each in files)
    rows = (
        (f"`{title.relative_to(PACKAGE).with_suffix('').as_posix()}`", found)
        for title, file in titles
        if (found := literature(file))
    )
    return table(("where", "literature"), rows)


STEPS: tuple[type, ...] = get_args(plans.Step)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table."""
    lines = [f"| {' | '.join(each.replace('|', chr(92) + '|') for each in row)} |" for row in rows]
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]


# ------------------------------------------------------------------------------- what the code says


def layers() -> list[list[str]]:
    """Return the layers that import-linter keeps, the highest first."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (found,) = (each["layers"] for each in contracts if each["id"] == "layers")
    names = ([name.strip().strip("()") for name in layer.split("|")] for layer in found)
    layers = ([name for name in layer if name not in UNNAMED] for layer in names)
    return [layer for layer in layers if layer]


def files_of_package(name: str) -> Iterator[Path]:
    """Yield the file of a module at the top, or those of a package and the packages below it."""
    if (PACKAGE / f"{name}.py").exists():
        yield PACKAGE / f"{name}.py"
    else:
        yield from sorted(
            (PACKAGE / name).rglob("__init__.py"), key=lambda file: file.parent.as_posix()
        )


def paragraphs(file: Path) -> list[str]:
    """Return the paragraphs of a module's docstring, each on one line."""
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return [" ".join(each.split()) for each in text.split("\n\n")]


def summary(file: Path) -> str:
    """Return the first paragraph of a module's docstring."""
    return paragraphs(file)[0].removesuffix(".").removesuffix(":")


def literature(file: Path) -> str:
    """Return the papers that a module says it follows."""
    if not re.search("^(Reference|Literature): ", file.read_text("utf-8"), re.MULTILINE):
        return ""  # most modules: parsing all of them takes seconds
    for each in paragraphs(file):
        if each.startswith(("Reference: ", "Literature: ")):
            return each.partition(": ")[2].removesuffix(".").removesuffix(":")
    return ""


def sentence(of: type) -> str:
    """Return the first paragraph of a class's docstring."""
    return " ".join((of.__doc__ or "").split("\n\n")[0].split()).removesuffix(".")


def described(function: Callable[..., object]) -> tuple[str, str]:
    """Return a pass, and the first paragraph of its module."""
    file = sys.modules[function.__module__].__file__
    assert file is not None
    return f"`{function.__name__}`", summary(Path(file))


# ------------------------------------------------------------------------------------------ picture

STYLE = """
.band { fill: #eef3f8; stroke: #9fb3c8 } .box { fill: #ffffff; stroke: #52687e }
.data { fill: #fff7e0; stroke: #c9a227 } .disk { fill: #e7f5ea; stroke: #4f9d69 }
.line { fill: none; stroke: #33475b; stroke-width: 1.5; marker-end: url(#arrow) }
.name { font-weight: bold } .note { font-size: 11px; fill: #52687e }
.head { font-size: 15px; font-weight: bold } text { fill: #1b2b3a; text-anchor: middle }
text.left { text-anchor: start } text.right { text-anchor: end }
"""
ARROW = element(
    "marker",
    element("path", d="M0 0 L10 5 L0 10 z", fill="#33475b"),
    id="arrow",
    viewBox="0 0 10 10",
    refX=9,
    refY=5,
    markerWidth=7,
    markerHeight=7,
    orient="auto-start-reverse",
)
LEFT, WIDE, RIGHT = 20, 560, 640
"""Where the layers begin, how wide they are, and where the flow begins."""

FLOW: Mapping[str, tuple[str, int, int, str, str]] = {
    "datalog": ("data", 0, 50, "program (.dl)", ""),
    "sql": ("data", 190, 50, "SQL", "tables, views, queries"),
    "operations": ("data", 380, 50, "changes", "rows, files, sources, streams"),
    "program": ("data", 95, 136, "Program", "core/program"),
    "checked": ("data", 95, 222, "CheckedProgram", "with types"),
    "normal": ("data", 95, 308, "NormalProgram", "plain rules"),
    "net": ("data", 380, 222, "net change", "OLD and NEW of relations"),
    "plan": ("data", 190, 394, "Plan", "procedures of steps"),
    "text": ("data", 380, 394, "text, JSON", "of the plan"),
    "local": ("box", 60, 480, "engines/local", "sorted arrays, DuckDB"),
    "spark": ("box", 280, 480, "engines/spark", "partitions, Spark SQL"),
    "commit": ("box", 170, 566, "database/commit", "maintain, react, record"),
    "warehouse": ("disk", 0, 652, "warehouse", "catalog, data, index files"),
    "delta": ("disk", 190, 652, "Delta tables", "warehouse/publishing"),
    "alerts": ("disk", 380, 652, "alerts", "database/alerts"),
    "serve": ("box", 0, 738, "serve", "HTTP, PostgreSQL clients"),
    "provenance": ("box", 190, 738, "provenance", "why, why not, what if"),
    "web": ("box", 0, 824, "web", "the page"),
}
"""The boxes of the flow: class, place, name, note."""

WAYS = (
    ("datalog", "program", "frontends/datalog"),
    ("sql", "program", "frontends/sql"),
    ("program", "checked", "analysis"),
    ("checked", "normal", "rewrite, active"),
    ("operations", "net", "database/intake"),
    ("normal", "plan", "maintain"),
    ("net", "plan", ""),
    ("plan", "text", "explain"),
    ("plan", "local", ""),
    ("plan", "spark", "sqlgen"),
    ("local", "commit", ""),
    ("spark", "commit", ""),
    ("commit", "warehouse", "record"),
    ("commit", "delta", "publish"),
    ("commit", "alerts", "deliver"),
    ("warehouse", "serve", ""),
    ("warehouse", "provenance", ""),
    ("serve", "web", ""),
)
BOX_WIDTH, BOX_HEIGHT = 170, 46
LEGEND = "yellow: data · white: code · green: what outlives the process"


def architecture_picture() -> str:
    """Return the picture: the layers of packages, and the way from a program to the warehouse."""
    bands, bottom = _bands()
    head = element("defs", ARROW, element("style", STYLE))
    titles = [
        _text("Layers: each may import what is below it", LEFT, 30, "head left"),
        _text("From a program to the warehouse", RIGHT, 30, "head left"),
        _text(LEGEND, RIGHT, 895, "note left"),
    ]
    boxes = [_box(*each) for each in FLOW.values()]
    height = max(bottom, 905)
    return document(
        RIGHT + 380 + BOX_WIDTH + 20,
        height + 10,
        head,
        *titles,
        *bands,
        *(_way(*each) for each in WAYS),
        *boxes,
        title="The architecture of Corollary",
        font_family="Helvetica, Arial, sans-serif",
        font_size=13,
        role="img",
    )


def _bands() -> tuple[list[str], float]:
    """Return the layers, with their packages and what is below these, and where they end."""
    drawn, y = [], 46.0
    for layer in layers():
        width = (WIDE - 10 - 8 * len(layer)) / len(layer)
        notes = [_wrapped(below(name), int(width / 6)) for name in layer]
        height = 26 + 14 * max(map(len, notes))
        drawn.append(_rectangle("band", LEFT, y, WIDE, height + 14))
        for at, (name, lines) in enumerate(zip(layer, notes, strict=True)):
            x = LEFT + 9 + at * (width + 8)
            drawn.append(_rectangle("box", x, y + 7, width, height))
            drawn.append(_text(name, x + width / 2, y + 24, "name"))
            drawn.extend(
                _text(line, x + width / 2, y + 40 + 14 * number, "note")
                for number, line in enumerate(lines)
            )
        y += height + 22
    return drawn, y


def below(package: str) -> list[str]:
    """Return the packages in a package, by name; those deeper down are theirs."""
    folder = PACKAGE / package
    return sorted(each.parent.name for each in folder.glob("*/__init__.py"))


def _wrapped(names: Iterable[str], most: int) -> list[str]:
    """Return names in lines of about so many characters."""
    lines: list[str] = []
    for name in names:
        if lines and len(lines[-1]) + len(name) + 2 <= most:
            lines[-1] += f", {name}"
        else:
            lines.append(name)
    return lines


def _box(kind: str, x: float, y: float, name: str, note: str) -> str:
    x += RIGHT
    middle = x + BOX_WIDTH / 2
    parts = [
        _rectangle(kind, x, y, BOX_WIDTH, BOX_HEIGHT),
        _text(name, middle, y + (20 if note else 28), "name"),
    ]
    return "".join([*parts, _text(note, middle, y + 37, "note")] if note else parts)


def _way(start: str, end: str, label: str) -> str:
    """Return an arrow between two boxes, with who goes that way."""
    (_, x1, y1, *_), (_, x2, y2, *_) = FLOW[start], FLOW[end]
    if y1 == y2:
        x1, x2 = RIGHT + x1 + BOX_WIDTH, RIGHT + x2
        middle = (x1 + x2) / 2, y1 + BOX_HEIGHT / 2
        line = path((x1, middle[1]), ("L", (x2 - 2, middle[1])))
        return element("path", class_="line", d=line) + _text(label, middle[0], y1 - 4, "note")
    x1, x2 = RIGHT + x1 + BOX_WIDTH / 2, RIGHT + x2 + BOX_WIDTH / 2
    y1 += BOX_HEIGHT
    half = (y1 + y2) / 2
    line = path((x1, y1), ("C", (x1, half, x2, half, x2, y2 - 2)))
    # A label is on the outer side of the bend: where ways part, of the lower one.
    is_parting = sum(each == start for each, *_ in WAYS) > 1
    x, y = (x2, y2 - 12) if is_parting else (x1, (half if x1 == x2 else y1) + 14)
    is_left = x1 > x2 if is_parting else x1 < x2
    text = _text(label, x - 8 if is_left else x + 8, y, "note right" if is_left else "note left")
    return element("path", class_="line", d=line) + (text if label else "")


def _rectangle(kind: str, x: float, y: float, width: float, height: float) -> str:
    return element("rect", class_=kind, x=x, y=y, width=width, height=height, rx=4)


def _text(text: str, x: float, y: float, kind: str) -> str:
    return element("text", escape_text(text), class_=kind, x=x, y=y)
