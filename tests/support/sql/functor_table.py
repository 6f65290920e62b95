"""The table of functors that are handed over to SQL engines, as `docs/bulk.md` has it."""

from corollary.core.functors import CHECKED_SUM, FUNCTORS, PARTITION_OF
from corollary.core.plans import WORKING_SEPARATOR
from corollary.core.types import PRIMITIVES, Kind
from corollary.engines.sql.dialect import SqlDialect
from corollary.engines.sql.duckdb_dialect import DUCKDB
from corollary.engines.sql.spark_dialect import SPARK
from support.sql.expressions import REWRITTEN, REWRITTEN_FORMS, applicable

INTERNAL = (CHECKED_SUM, PARTITION_OF)

AGGREGATES = ("sum", "mean", "min", "max")


def functor_table() -> list[str]:
    """Return the lines of the table: each functor, predicate and aggregate in both dialects."""
    lines = ["| | DuckDB | Spark SQL |", "|---|---|---|"]
    for name, signature in FUNCTORS.items():
        if name not in (*INTERNAL, *REWRITTEN) and not name.startswith(WORKING_SEPARATOR):
            left = {kind for kind in signature.kinds(0) if (name, kind) not in REWRITTEN_FORMS}
            kinds = [kind for kind in PRIMITIVES if kind in left]
            cells = (_cell(name, kinds, each) for each in (DUCKDB, SPARK))
            lines.append(f"| `{name}` | {' | '.join(cells)} |")
    for name in ("match", "contains"):
        cells = ("yes" if name in each.predicates else "–" for each in (DUCKDB, SPARK))
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    lines.append("| aggregate `count` | yes | yes |")
    for name in AGGREGATES:
        kinds = [kind for kind in PRIMITIVES if name in ("min", "max") or kind in SUMMED]
        cells = (
            _kinds([kind for kind in kinds if (name, kind) in each.aggregates], kinds)
            for each in (DUCKDB, SPARK)
        )
        lines.append(f"| aggregate `{name}` | {' | '.join(cells)} |")
    return lines


SUMMED = (Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.DECIMAL)


def _cell(name: str, kinds: list[Kind], dialect: SqlDialect) -> str:
    here = applicable(dialect)
    return _kinds([kind for kind in kinds if (name, kind) in here], kinds)


def _kinds(found: list[Kind], kinds: list[Kind]) -> str:
    if not found:
        return "–"
    return "yes" if found == kinds else ", ".join(found)
