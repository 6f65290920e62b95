"""Where base tuples are from: the program text, a file of a source, a write by hand; since when.

Tuples are looked for as sets, relation by relation: the engine says which parts hold them, files
and changes are read once for all of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from corollary.core import logic
from corollary.core.arrow import from_python, to_python
from corollary.core.program import Directive, Relation
from corollary.core.values import comparable_row
from corollary.data_class import dataclass
from corollary.database.program.parts import (
    MANUAL_PART,
    SOURCE_PREFIX,
    TEXT_PART,
    Row,
    find_asserted,
)
from corollary.database.state import DatabaseState
from corollary.provenance.nodes import CutReason, FactOrigin, ProofCut, ProofKind, ProofNode
from corollary.provenance.origins.additions import Additions
from corollary.provenance.origins.source_lines import Place, SourceFiles
from corollary.rewrite.clauses.expressions import fold_negative
from corollary.source import Span
from corollary.warehouse.formats.dialect import file_name_of
from corollary.warehouse.warehouse import Warehouse

SOURCE_PART = "source"
"""What the part of a source is called in answers."""


@dataclass
class OriginFinder:
    """Finds where base tuples are from.

    Attributes:
        state: in which they are.
        warehouse: that has their history; None if the database is in memory.
    """

    state: DatabaseState
    warehouse: Warehouse | None = None
    _additions: Additions | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.warehouse is not None:
            self._additions = Additions(self.warehouse, self.state.commits)

    def with_origins(
        self, nodes: Sequence[ProofNode]
    ) -> tuple[tuple[ProofNode, ...], tuple[ProofCut, ...]]:
        """Return nodes whose base tuples have their origins, and whether history was cut."""
        wanted: dict[str, dict[Row, None]] = {}
        for node in nodes:
            if node.kind is ProofKind.BASE and not node.sources:
                wanted.setdefault(node.relation, {})[node.row] = None
        found = {name: self.find(name, list(rows)) for name, rows in wanted.items()}
        made = tuple(
            replace(node, sources=found[node.relation].get(node.row, ()))
            if node.row in wanted.get(node.relation, {}) and node.kind is ProofKind.BASE
            else node
            for node in nodes
        )
        is_cut = self._additions is not None and self._additions.is_cut
        return made, (ProofCut(CutReason.HISTORY),) * is_cut

    def find(self, name: str, rows: Sequence[Row]) -> Mapping[Row, tuple[FactOrigin, ...]]:
        """Return who asserts tuples of a relation, each part in the order of the parts."""
        normal = self.state.loaded.normal
        counts = normal.bags.get(name, name)
        base = normal.bases.get(counts, counts)
        if base not in normal.relations:
            return {}
        found: dict[Row, list[FactOrigin]] = {}
        asserted = find_asserted(self.state.engine, normal, name, rows, self.state.limits)
        for part, held in asserted.items():
            commits = self._commits(base, part, normal.relations[base], held)
            places = self._places(name, part, held)
            for row in held:
                file, line = places.get(row, (None, None))
                origin = FactOrigin(_part_word(part), file, line, commits.get(row))
                found.setdefault(row, []).append(origin)
        return {row: tuple(each) for row, each in found.items()}

    def _commits(
        self, base: str, part: str, relation: Relation, rows: Sequence[Row]
    ) -> Mapping[Row, int | str]:
        return {} if self._additions is None else self._additions.find(base, part, relation, rows)

    # --- places --------------------------------------------------------------------------------

    def _places(self, name: str, part: str, rows: Sequence[Row]) -> Mapping[Row, Place]:
        if part == TEXT_PART:
            return self._places_in_text(name, rows)
        if part.startswith(SOURCE_PREFIX) and self.warehouse is not None:
            return self._places_in_files(name, part.removeprefix(SOURCE_PREFIX), rows)
        return {}

    def _places_in_text(self, name: str, rows: Sequence[Row]) -> Mapping[Row, Place]:
        """Return in which lines of the program facts are, each its first one."""
        wanted = {comparable_row(row): row for row in rows}
        facts = list(_facts(self.state.loaded.checked.program.clauses, name))
        relation = self.state.loaded.normal.relations[name]
        # As the engine has them: decimals with all their digits, integers as floats.
        values = to_python(from_python([row for row, _ in facts], relation))
        found: dict[Row, Place] = {}
        for row, (_, span) in zip(values, facts, strict=True):
            asked = wanted.pop(comparable_row(row), None)
            if asked is not None and span is not None:
                found[asked] = span.file.name, span.line
        return found

    def _places_in_files(self, name: str, source: str, rows: Sequence[Row]) -> Mapping[Row, Place]:
        """Return in which files of a source rows are, and in which lines."""
        assert self.warehouse is not None
        _, position = self.warehouse.catalog.source_positions().get(source, ("", {}))
        written = source.partition(" < ")[2]
        directive = self._directive(name, written)
        if directive is None or "files" not in position:
            return dict.fromkeys(rows, (written, None))
        relation = self.state.loaded.normal.relations[name]
        folders = [*self._folders(position.get("folder", ""))]
        files = SourceFiles(relation, directive, position, folders)
        folder = Path(position.get("folder", ""))
        found = {row: (str(folder / file), line) for row, (file, line) in files.find(rows).items()}
        return {**dict.fromkeys(rows, (written, None)), **found}

    def _directive(self, name: str, written: str) -> Directive | None:
        """Return the `.input` of a source."""
        for each in self.state.program.directives:
            if each.name == "input" and each.relation == name and file_name_of(each) == written:
                return each
        return None

    def _folders(self, folder: str) -> Iterator[Path]:
        """Yield where files of a source may be, if names are relative to a folder.

        The folder may be relative to where the command ran: here, or beside the warehouse. A file
        counts only if it is the one that was read, by its size, times and inode.
        """
        assert self.warehouse is not None
        root = self.warehouse.root
        yield Path(folder)
        if isinstance(root, Path):
            yield root.parent / folder


def _facts(clauses: Iterable[logic.Clause], name: str) -> Iterator[tuple[Row, Span | None]]:
    """Yield the facts of a relation in a program, with their places."""
    for clause in clauses:
        for head in clause.heads if not clause.body else ():
            terms = map(fold_negative, head.arguments)
            values = [each.value for each in terms if isinstance(each, logic.Constant)]
            if head.relation == name and len(values) == len(head.arguments):
                yield tuple(values), clause.span


def _part_word(part: str) -> str:
    return part if part in (TEXT_PART, MANUAL_PART) else SOURCE_PART
