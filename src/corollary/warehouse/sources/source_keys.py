"""Keys within one source: of several rows with the same key, the last one is taken or none.

With `.input p(order="column")` the row with the greatest value in that column is taken (null is
least, NaN greatest). Rows that are equal there too are a conflict, and all without such a column.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core import arrow
from corollary.core.arrow_buffers import bool_array, index_array
from corollary.core.program import Directive, Relation
from corollary.core.values import format_row
from corollary.data_class import dataclass
from corollary.errors import ConstraintError, Diagnostic
from corollary.warehouse.copies import distinct
from corollary.warehouse.row_words import is_among, repeated_words, row_words

_CONFLICTS_SHOWN_MAX = 20
_ROW = "row"


@dataclass(frozen=True, slots=True)
class SourceKey:
    """The key of a relation, and the column that orders rows with the same key."""

    columns: tuple[str, ...]
    order: str = ""


def resolve_keys(
    rows: pa.Table, key: SourceKey, relation: Relation, directive: Directive
) -> pa.Table:
    """Return the rows, each once, such that no two have the same key.

    Raises:
        ConstraintError: `C0954`, listing the rows that are in conflict.
    """
    positions = [relation.columns.index(name) for name in key.columns]
    words = row_words([rows.column(at) for at in positions], rows.num_rows)
    repeated = repeated_words(words)
    if not len(repeated):
        return rows
    is_repeated = is_among(words, repeated)
    several = distinct(arrow.expand_table(rows.filter(bool_array(is_repeated)), relation))
    if key.order:
        several = _last(several, positions, relation.columns.index(key.order))
    rest = [at for at in range(relation.arity) if at not in positions]
    ones, others = arrow.dependency_violations(several, positions, rest)
    if ones.num_rows:
        raise ConstraintError(_conflicts(ones, others, key, relation, directive))
    others = rows.filter(bool_array(~is_repeated))
    return pa.concat_tables([arrow.expand_table(others, relation), several])


def _last(rows: pa.Table, key: list[int], order: int) -> pa.Table:
    """Return for each key the row with the greatest value in a column; two if several have it."""
    # Sorted by that column first, so that the last row of a group has its greatest value.
    every = range(rows.num_columns)
    first = [order, *(at for at in every if at != order)]
    rows = arrow.sort_rows(rows.select(first)).select([first.index(at) for at in every])
    last = _groups(rows, key)[f"{_ROW}_max"]
    tied = _groups(rows, [*key, order])
    tied = tied.filter(pc.is_in(tied[f"{_ROW}_max"], last))
    ends = [*tied[f"{_ROW}_min"].chunks, *tied[f"{_ROW}_max"].chunks]
    return rows.take(pc.unique(pa.chunked_array(ends, pa.int64())))


def _groups(rows: pa.Table, positions: list[int]) -> pa.Table:
    """Return for each value of some columns the numbers of the first and the last row with it."""
    columns = [rows.column(at) for at in positions]
    numbers = index_array(np.arange(rows.num_rows))
    table = pa.table([*columns, numbers], [*map(str, range(len(columns))), _ROW])
    return arrow.group_rows(table, table.column_names[:-1], [(_ROW, "min"), (_ROW, "max")])


def _conflicts(
    ones: pa.Table, others: pa.Table, key: SourceKey, relation: Relation, directive: Directive
) -> list[Diagnostic]:
    """Return the findings about pairs of rows that have the same key."""
    cure = (
        "correct their values in the column that orders them"
        if key.order
        else f'keep one of them, or say which counts: `.input {relation.name}(order="…")`'
    )
    shown = (arrow.to_python(side.slice(0, _CONFLICTS_SHOWN_MAX)) for side in (ones, others))
    pairs = zip(*shown, strict=True)
    findings = [
        Diagnostic(
            "C0954",
            f"`{relation.name}` gets two rows with the same key ({', '.join(key.columns)}): "
            f"{' and '.join(sorted(format_row(row, relation.types) for row in pair))}.",
            directive.span,
            f"{cure}; nothing was changed",
        )
        for pair in pairs
    ]
    if ones.num_rows > _CONFLICTS_SHOWN_MAX:
        more = f"and {ones.num_rows - _CONFLICTS_SHOWN_MAX} more keys of `{relation.name}`"
        findings.append(Diagnostic("C0954", more, directive.span))
    return findings
