"""Cases of active rules: `tests/cases/active/<name>`, read as those of `support.cases.changes` are.

`expected.txt` says of each transaction what it changes in derived relations, what triggers change
in base relations after its own operations, and besides:

| line | means |
|---|---|
| `alert lost("a", "b") lost a -> b` | this alert is sent: what it watches, tuple, message |
| `abort overdrawn(1) account 1 …` | this constraint is violated, and nothing is changed |
| `limit a … b` | a limit is hit, with a message that has a and b in it; nothing is changed |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from oracles.active_rules import Alert, active_rules
from oracles.evaluation import Type
from support.cases.changes import TUPLE, ChangeCase, Data
from support.paths import CASES

ROOT = CASES / "active"


@dataclass(frozen=True, slots=True)
class Reaction:
    """What is expected of a transaction.

    Attributes:
        changes: of derived relations, and those that triggers made.
        violations: with one of them nothing changes.
        limit: words of the message when a limit is hit.
    """

    changes: tuple[Data, ...] = ()
    alerts: tuple[Alert, ...] = ()
    violations: tuple[Alert, ...] = ()
    limit: tuple[str, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Whether the transaction leaves everything as it was."""
        return bool(self.violations or self.limit)


@dataclass(frozen=True)
class ActiveCase(ChangeCase):
    """A folder of `tests/cases/active`."""

    @cached_property
    def types(self) -> Mapping[str, tuple[Type, ...]]:
        """The types of the columns of every relation and event predicate."""
        return active_rules(self.text).columns

    @cached_property
    def derived(self) -> list[str]:
        """The relations that plain rules define."""
        heads = dict.fromkeys(re.findall(r"(?m)^(\w+)\(.*:-", self.text))
        return [name for name in heads if name not in active_rules(self.text).events]

    @cached_property
    def virtual(self) -> list[str]:
        """The relations that are virtual as the text has it."""
        return re.findall(r"(?m)^\.decl (\w+)\(.*\) virtual$", self.text)

    @cached_property
    def reactions(self) -> list[Reaction]:
        """What is expected of each transaction."""
        return [self._reaction(block) for block in self._blocks("expected.txt")]

    def _reaction(self, block: list[str]) -> Reaction:
        changes: list[Data] = []
        told: dict[str, list[Alert]] = {"alert": [], "abort": []}
        limit: tuple[str, ...] = ()
        for line in block:
            word, _, rest = line.partition(" ")
            if word in told:
                told[word].append(self._alert(rest))
            elif word == "limit":
                limit = tuple(rest.split(" … "))
            else:
                changes += self._data(line)
        return Reaction(tuple(changes), tuple(told["alert"]), tuple(told["abort"]), limit)

    def _alert(self, text: str) -> Alert:
        found = TUPLE.match(f"+{text}")
        assert found, f"{self.folder.name}: {text!r} is no alert"
        (data,) = self._data(found.group())
        return Alert(data.relation, data.row, text[found.end() - 1 :].strip())
