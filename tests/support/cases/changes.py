"""Cases of changes: `tests/cases/changes/<name>`, read without the package, run in several forms.

| file           | holds                                                                       |
|----------------|-----------------------------------------------------------------------------|
| `program.dl`   | the program, a rule per line; its first line names the line of the checklist |
| `changes.txt`  | transactions, a blank line between them                                     |
| `expected.txt` | for each transaction what it changes in derived relations, worked out by hand |

A transaction is made of `+edge(1, 2)` and `-edge(1, 2)` (several may stand on a line) and of lines
`+rule p(x) :- q(x).` and `-rule p(x) :- q(x).`; `nothing` stands for an empty one, `# …` is a
comment. One that begins with `together` makes sense only as a whole. What is expected is written
alike; `error a … b` says that the transaction fails with a message that has a and b in it, and
changes nothing.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from corollary.core.values import decimal_value, unscaled_integer
from corollary.database.database import Database
from corollary.database.transaction import Transaction
from oracles.evaluation import Oracle, Type, canonical
from oracles.parser import parse, read_date, read_timestamp
from support.maintained_database import Algorithm
from support.paths import CASES

Row: TypeAlias = tuple[Any, ...]
State: TypeAlias = dict[str, set[Row]]

ROOT = CASES / "changes"
NOTHING = "nothing"
TOGETHER = "together"
VALUE = r'"(?:[^"\\]|\\.)*"|[^\s,()"]+'
TUPLE = re.compile(rf"([+-])(\w+)\(((?:\s*(?:[dt]?(?:{VALUE}))\s*,?)*)\)")


@dataclass(frozen=True, slots=True)
class Data:
    """A tuple that comes or goes."""

    sign: str
    relation: str
    row: Row


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule that comes or goes."""

    sign: str
    text: str


Operation: TypeAlias = Data | RuleText


@dataclass(frozen=True, slots=True)
class Expected:
    """What a transaction changes, or the words of the error."""

    changes: tuple[Data, ...]
    error: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangeCase:
    """A folder of `tests/cases/changes`."""

    folder: Path

    @cached_property
    def text(self) -> str:
        """The program."""
        return (self.folder / "program.dl").read_text("utf-8")

    @cached_property
    def types(self) -> Mapping[str, tuple[Type, ...]]:
        """The types of the columns of every relation."""
        return Oracle(parse(self.text), 1, 1).columns

    @cached_property
    def transactions(self) -> list[tuple[Operation, ...]]:
        """What each transaction does."""
        return [
            tuple(each for line in block for each in self._operations(line))
            for block in self._blocks("changes.txt")
        ]

    @cached_property
    def expected(self) -> list[Expected]:
        """What each transaction changes."""
        found = []
        for block in self._blocks("expected.txt"):
            if block[0].startswith("error "):
                found.append(Expected((), tuple(block[0].removeprefix("error ").split(" … "))))
            else:
                found.append(Expected(tuple(each for line in block for each in self._data(line))))
        return found

    @cached_property
    def whole(self) -> set[int]:
        """The places of the transactions that are not taken apart: they fail, or say so."""
        said = {at for at, block in enumerate(self._blocks("changes.txt")) if TOGETHER in block}
        return said | {at for at, each in enumerate(self.expected) if each.error}

    def _blocks(self, file: str) -> list[list[str]]:
        blocks: list[list[str]] = [[]]
        for line in (self.folder / file).read_text("utf-8").split("\n"):
            if not line:
                blocks.append([])
            elif not line.startswith("#"):
                blocks[-1].append(line)
        return [block for block in blocks if block]

    def _operations(self, line: str) -> Iterator[Operation]:
        for sign in "+-":
            if line.startswith(f"{sign}rule "):
                yield RuleText(sign, line.removeprefix(f"{sign}rule "))
                return
        yield from self._data(line)

    def _data(self, line: str) -> Iterator[Data]:
        if line in (NOTHING, TOGETHER):
            return
        rest = TUPLE.sub("", line).strip()
        assert not rest, f"{self.folder.name}: {rest!r} is no change"
        for sign, relation, arguments in TUPLE.findall(line):
            texts = re.findall(rf"[dt]?(?:{VALUE})", arguments)
            pairs = zip(texts, self.types[relation], strict=True)
            yield Data(sign, relation, tuple(value_of(text, type_) for text, type_ in pairs))

    @property
    def has_rules(self) -> bool:
        """Whether rules come or go."""
        return any(isinstance(each, RuleText) for block in self.transactions for each in block)


def value_of(text: str, type_: Type) -> Any:
    """Return the value that a text stands for in a column of a type."""
    if text == "null":
        return None
    match type_.name:
        case "symbol":
            return json.loads(text)
        case "number" | "unsigned":
            return int(text)
        case "float":
            return float(text)
        case "decimal":
            return decimal_value(unscaled_integer(Decimal(text), type_.scale), type_.scale)
        case "bool":
            return {"true": True, "false": False}[text]
        case "date":
            return read_date(text[2:-1])
        case "timestamp":
            return read_timestamp(text[2:-1])
        case _:  # a record, as text
            return json.loads(text)


# -------------------------------------------------------------------------------------------- forms


@dataclass(frozen=True, slots=True)
class Part:
    """Operations that are committed together.

    Attributes:
        number: the place of the transaction that they are from.
        is_end: whether that transaction is complete then.
    """

    operations: tuple[Operation, ...]
    number: int
    is_end: bool = True


def as_written(case: ChangeCase) -> Iterator[Part]:
    """Yield the transactions."""
    for number, operations in enumerate(case.transactions):
        yield Part(operations, number)


def permuted(case: ChangeCase) -> Iterator[Part]:
    """Yield the transactions, their operations in another order where no two are on one tuple."""
    for part in as_written(case):
        yield Part(shuffled(part.operations, part.number), part.number)


def split(case: ChangeCase) -> Iterator[Part]:
    """Yield every operation by itself."""
    return _one_by_one(case, as_written(case))


def split_permuted(case: ChangeCase) -> Iterator[Part]:
    """Yield every operation by itself, in another order."""
    return _one_by_one(case, permuted(case))


def merged(case: ChangeCase) -> Iterator[Part]:
    """Yield one transaction with all operations but those of transactions that fail."""
    working = [part for part in as_written(case) if not case.expected[part.number].error]
    everything = tuple(each for part in working for each in part.operations)
    yield Part(everything, len(case.transactions) - 1)


def _one_by_one(case: ChangeCase, parts: Iterable[Part]) -> Iterator[Part]:
    """Yield the operations of parts by themselves, but for those of a whole."""
    for part in parts:
        if part.number in case.whole or not part.operations:
            yield part
            continue
        for place, each in enumerate(part.operations, 1):
            yield Part((each,), part.number, place == len(part.operations))


def shuffled(operations: tuple[Operation, ...], seed: int) -> tuple[Operation, ...]:
    """Return operations in another order; as they are, if a rule or a tuple occurs twice."""
    touched = [
        (each.relation, repr(each.row)) if isinstance(each, Data) else "rules"
        for each in operations
    ]
    if len(set(touched)) < len(touched):
        return operations
    order = list(operations)
    random.Random(seed).shuffle(order)
    return tuple(order)


FORMS: dict[str, Callable[[ChangeCase], Iterator[Part]]] = {
    "as written": as_written,
    "permuted": permuted,
    "split": split,
    "split and permuted": split_permuted,
    "merged": merged,
}


# ------------------------------------------------------------------------------------------ running


def commit(
    db: Database, operations: Iterable[Operation], algorithm: Algorithm | None = None
) -> Transaction:
    """Commit operations as one transaction, in their order."""
    with db.transaction(algorithm=algorithm) as tx:
        for each in operations:
            match each:
                case Data("+", relation, row):
                    tx.insert(relation, [row])
                case Data(_, relation, row):
                    tx.delete(relation, [row])
                case RuleText("+", text):
                    tx.add_rule(text)
                case RuleText(_, text):
                    tx.remove_rule(text)
    return tx


def asserted(state: State, operations: Iterable[Operation]) -> State:
    """Return what is in base relations after operations, the last one on a tuple winning."""
    found = {name: set(rows) for name, rows in state.items()}
    for each in operations:
        if isinstance(each, Data):
            row = tuple(map(canonical, each.row))
            if each.sign == "+":
                found.setdefault(each.relation, set()).add(row)
            else:
                found.setdefault(each.relation, set()).discard(row)
    return found


def edited(text: str, operations: Iterable[Operation]) -> str:
    """Return a program after rules have come and gone, for the oracle."""
    lines = text.splitlines()
    for each in operations:
        if isinstance(each, RuleText) and each.sign == "+":
            lines.append(each.text)
        elif isinstance(each, RuleText):
            lines.remove(each.text)
    return "\n".join(lines) + "\n"


def changed(state: State, changes: Iterable[Data]) -> State:
    """Return derived relations after the changes that are expected of them."""
    found = {name: set(rows) for name, rows in state.items()}
    for each in changes:
        row = tuple(map(canonical, each.row))
        assert (row in found[each.relation]) == (each.sign == "-"), each
        found[each.relation] ^= {row}
    return found
