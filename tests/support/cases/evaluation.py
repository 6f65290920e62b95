"""Cases of evaluation, read without the package: a program, its facts, and what must come out."""

from __future__ import annotations

import io
import json
import re
import sys
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from corollary.core.engine import Limits
from corollary.core.values import decimal_value, unscaled_integer
from oracles.evaluation import Oracle, Type
from oracles.parser import parse as parse_for_oracle
from oracles.parser import read_date, read_timestamp
from support.paths import CASES

Row = tuple[Any, ...]
FOLDERS = sorted(
    file.parent
    for file in CASES.glob("*/*/program.dl")
    if not {"changes", "active"}.intersection(file.parts)
)
FAILING = [folder for folder in FOLDERS if (folder / "expected" / "error.txt").exists()]
WORKING = [folder for folder in FOLDERS if folder not in FAILING]
AMPLE = Limits(rounds=10_000, tuples=1_000_000, seconds=1200)
DIRECTIVE = re.compile(
    r"(?<!\S)\.(input|output|printsize)\s+([\w.]+(?:\s*,\s*[\w.]+)*)\s*(?:\(([^)]*)\))?"
)
QUALIFIED = re.compile(r"\.decl\s+(\w+)\s*\([^)]*\)\s*(input|output)\b")
PARAMETER = re.compile(r'(\w+)\s*=\s*(?:"([^"]*)"|(\w+))')


def name_of(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


@dataclass
class Channel:
    """A directive of a case, as the oracle's side sees it."""

    kind: str
    relation: str
    options: dict[str, str] = field(default_factory=dict)

    @property
    def is_file(self) -> bool:
        return self.options.get("IO", "file") in ("file", "jsonfile")

    @property
    def file(self) -> str:
        suffix = ".facts" if self.kind == "input" else ".csv"
        suffix = ".json" if self.options.get("IO") == "jsonfile" else suffix
        return self.options.get("filename", self.relation + suffix)

    def rows(self, text: str, types: tuple[Type, ...]) -> list[Row]:
        """The tuples in the text of a facts file."""
        if self.options.get("IO") == "jsonfile":
            rows = json.loads(text)
            names = next((list(row) for row in rows if isinstance(row, dict)), [])
            listed = [[row[n] for n in names] if isinstance(row, dict) else row for row in rows]
            return [
                tuple(value_of(record_text(v), True, t) for v, t in zip(row, types, strict=True))
                for row in listed
            ]
        if not types:
            return [() for _ in text.splitlines()]
        records = list(self.records(text))
        if self.options.get("headers") == "true":
            del records[0]
        places = [int(place) for place in self.options.get("columns", "").split(":") if place]
        order = places or range(len(types))
        return [
            tuple(
                value_of(*record[place], type_) for place, type_ in zip(order, types, strict=True)
            )
            for record in records
        ]

    def records(self, text: str) -> list[list[tuple[str, bool]]]:
        """The fields of each record, each with whether it was quoted."""
        is_named = "delimiter" not in self.options and "filename" in self.options
        by_ending = "true" if is_named and self.file.endswith(".csv") else "false"
        is_quoted = self.options.get("rfc4180", by_ending) == "true"
        delimiter = self.options.get("delimiter", "," if is_quoted else "\t")
        if not is_quoted:
            lines = text.split("\n")[:-1]
            return [[(part, False) for part in line.split(delimiter)] for line in lines]
        records: list[list[tuple[str, bool]]] = [[]]
        pattern = re.compile(rf'(?:"((?:[^"]|"")*)"|([^"\n]*?))({re.escape(delimiter)}|\n)')
        for found in pattern.finditer(text):
            quoted = found[1] is not None
            records[-1].append((found[1].replace('""', '"') if quoted else found[2], quoted))
            if found[3] == "\n":
                records.append([])
        return records[:-1]


def record_text(value: Any) -> str:
    """A JSON value as it stands in a facts file; fields of objects are in the order of the type."""
    match value:
        case None:
            return "nil"
        case dict():
            return record_text([*value.values()])
        case list():
            return f"[{', '.join(map(record_text, value))}]"
        case _:
            return str(value)


def value_of(text: str, is_quoted: bool, type_: Type) -> Any:
    if not text and type_.nullable and not is_quoted:
        return None
    match type_.name:
        case "symbol":
            return text
        case "number" | "unsigned":
            return int(text, 0) if text[:2] in ("0x", "0b") else int(text)
        case "float":
            return float(text)
        case "decimal":
            return decimal_value(unscaled_integer(Decimal(text), type_.scale), type_.scale)
        case "bool":
            return {"true": True, "false": False}[text]
        case "date":
            return read_date(text)
        case "timestamp":
            return read_timestamp(text)
        case _:  # a record
            return text


class Case:
    """A folder, and what the oracle's parser says about its program."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        own = folder / "oracle.dl"
        self.text = (own if own.exists() else folder / "program.dl").read_text("utf-8")
        oracle = Oracle(parse_for_oracle(self.text), 1, 1)
        self.types, self.records = oracle.columns, oracle.records
        lines = [line for line in self.text.split("\n") if not line.startswith("//")]
        self.channels = [
            Channel(kind, name.strip(), {key: a or b for key, a, b in PARAMETER.findall(options)})
            for kind, names, options in DIRECTIVE.findall("\n".join(lines))
            for name in names.split(",")
        ]
        self.channels += [Channel(kind, name) for name, kind in QUALIFIED.findall(self.text)]

    def facts(self) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for each in self.channels:
            if each.kind == "input":
                file = self.folder / "facts" / each.file if each.is_file else self.stdin
                rows = each.rows(file.read_bytes().decode(), self.types[each.relation])
                found.setdefault(each.relation, []).extend(rows)
        return found

    def expected(self) -> dict[str, list[Row]]:
        """The tuples of each relation that is written to a file."""
        return {
            each.relation: each.rows(
                (self.folder / "expected" / each.file).read_bytes().decode(),
                self.types[each.relation],
            )
            for each in self.channels
            if each.kind == "output" and each.is_file
        }

    def sizes(self) -> list[str]:
        return [each.relation for each in self.channels if each.kind == "printsize"]

    @property
    def stdin(self) -> Path:
        return self.folder / "stdin.txt"

    @property
    def is_cut_short(self) -> bool:
        return ".limitsize" in self.text


def feed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "stdin.txt"
    data = file.read_bytes() if file.exists() else b""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
