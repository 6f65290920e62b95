"""Sizes of views from a sample: their rows for some values of one column.

A column of the view is chosen, and a share p of its values, by their hash. The view is computed
exactly for these values; its number of rows is scaled by the number of values. A sample of the
tuples of each relation is not enough: a join of two samples has p² of the rows, and how many of
them a projection merges is not known.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from zlib import crc32

from corollary.advisor.advice import Advice, NewView
from corollary.advisor.check.scratch_database import full_goal, open_scratch_database
from corollary.core.logic import Atom, Clause, Value, Variable
from corollary.core.program import Declaration, Program
from corollary.data_class import dataclass
from corollary.database.options import LOCAL

if TYPE_CHECKING:
    import pyarrow as pa

VALUES_SUFFIX, ROWS_SUFFIX = "sample_of_values", "sample_of_rows"
"""Added to the name of a view: the relations of the sampled values, and of the rows for them."""


@dataclass(frozen=True, slots=True)
class SampledSize:
    """The size of a view, by a sample.

    Attributes:
        variable: of the column whose values were sampled.
        sampled_values: the number of sampled values.
        all_values: the number of all values.
        sampled_rows: the rows of the view for the sampled values.
    """

    view: str
    variable: str
    sampled_values: int
    all_values: int
    sampled_rows: int

    @property
    def rows(self) -> float:
        """The estimated number of rows of the view."""
        return self.sampled_rows * self.all_values / max(1, self.sampled_values)


def sample_sizes(
    advice: Advice,
    before: Program,
    after: Program,
    tables: "Mapping[str, pa.Table]",
    share: float,
    *,
    engine: str = LOCAL,
) -> list[SampledSize]:
    """Return the sizes of the views to store that have a column bound by base relations.

    Args:
        advice: with the views.
        before: the program as it is.
        after: the program with the views.
        tables: the tuples of base relations.
        share: of the values to sample, more than 0 and at most 1.
        engine: `local` or `spark`.
    """
    declared = {each.name: each for each in after.declarations}
    derived = {head.relation for clause in before.clauses if clause.body for head in clause.heads}
    base = {name: table for name, table in tables.items() if name not in derived}
    program, data, chosen = before, dict(tables), list[tuple[str, str, int, int]]()
    for name, view in advice.views.items():
        variable = None if view.is_virtual else _column(view, base)
        if variable is None:
            continue
        total = _values(view, variable, base)
        values = sorted((each for each in total if _is_sampled(each, share)), key=repr)
        program += _sample_rules(view, variable, declared[name])
        data[f"{name}_{VALUES_SUFFIX}"] = _table(values, view, variable, base)
        chosen.append((name, variable, len(values), len(total)))
    if not chosen:
        return []
    with open_scratch_database(program, data, engine=engine) as database:
        found = [
            database.query(full_goal(database, f"{name}_{ROWS_SUFFIX}")).num_rows
            for name, *_ in chosen
        ]
    return [SampledSize(*each, rows) for each, rows in zip(chosen, found, strict=True)]


def _column(view: NewView, tables: "Mapping[str, pa.Table]") -> str | None:
    """Return a variable of a view that a base relation binds in each of its rules."""
    for variable in view.variables:
        if all(next(_occurrences(each, variable, tables), None) for each in view.clauses):
            return variable
    return None


def _occurrences(
    clause: Clause, variable: str, tables: "Mapping[str, pa.Table]"
) -> Iterator[tuple[str, int]]:
    """Yield the columns of base relations that bind a variable, small relations first."""
    atoms = [each for each in clause.body if isinstance(each, Atom) and each.relation in tables]
    for atom in sorted(atoms, key=lambda each: tables[each.relation].num_rows):
        for at, argument in enumerate(atom.arguments):
            if isinstance(argument, Variable) and argument.name == variable:
                yield atom.relation, at


def _values(view: NewView, variable: str, tables: "Mapping[str, pa.Table]") -> set[Value]:
    """Return a superset of the values of a column of a view."""
    found: set[Value] = set()
    for clause in view.clauses:
        relation, at = next(_occurrences(clause, variable, tables))
        values = tables[relation].column(at).unique().to_pylist()
        found |= {each for each in values if each is not None}
    return found


def _is_sampled(value: Value, share: float) -> bool:
    # By hash and not at random: the sample is the same in every run.
    return crc32(repr(value).encode()) < share * 2**32


def _table(
    values: list[Value], view: NewView, variable: str, tables: "Mapping[str, pa.Table]"
) -> "pa.Table":
    import pyarrow as pa

    relation, at = next(_occurrences(view.clauses[0], variable, tables))
    return pa.table({"value": pa.array(values, tables[relation].schema.field(at).type)})


def _sample_rules(view: NewView, variable: str, declaration: Declaration) -> Program:
    """Return the declarations and rules that compute a view for the values of a sample."""
    at = view.variables.index(variable)
    column = declaration.columns[at]
    column = replace(column, name="value", type=replace(column.type, nullable=False))
    values = Declaration(f"{view.name}_{VALUES_SUFFIX}", (column,))
    rows = replace(declaration, name=f"{view.name}_{ROWS_SUFFIX}", storage="virtual")
    filter_ = Atom(values.name, (Variable(variable),))
    clauses = tuple(
        replace(
            clause,
            heads=(replace(clause.heads[0], relation=rows.name),),
            body=(filter_, *clause.body),
        )
        for clause in view.clauses
    )
    return Program(declarations=(values, rows), clauses=clauses)
