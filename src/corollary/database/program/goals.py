"""Goals: what users ask of a database or a program, in the form that is answered."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING

from corollary.analysis.check import check
from corollary.analysis.phrases import suggest_name
from corollary.analysis.today import TODAY_RELATION, is_today, today_relation
from corollary.analysis.traverse import atom_uses, conjunctions
from corollary.core import logic
from corollary.core.engine import Engine, check_deadline
from corollary.core.program import Declaration, NormalProgram, Program, Relation
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.program.names import list_names
from corollary.database.program.question_bounds import check_size
from corollary.errors import InputError
from corollary.frontends.datalog.parser import parse_goal
from corollary.maintain.solve import GOAL_RELATION
from corollary.rewrite.normalise import lower_clauses
from corollary.rewrite.translation_unit import outer_variables, unused_name

if TYPE_CHECKING:
    import pyarrow as pa

SQL_START = re.compile(
    r"\s*(select|with|insert|update|delete|show|values)\s+[\w*\"'`]", re.IGNORECASE
)
_SQL_TABLE = re.compile(r"\b(?:from|into|update)\s+([A-Za-z_]\w*)", re.IGNORECASE)
GOALS_MAX = 256
"""The maximum number of goals that are known for one program."""
_DIRECTION = re.compile(r"\s+(asc|desc)\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ResolvedGoal:
    """A goal, ready to be answered.

    Attributes:
        literal: what is asked; a goal of several literals is the head of a rule of its own.
        program: the rules in force, and that rule.
        is_atom: whether the goal is one atom of a relation.
        rows: those of relations that are data of the goal, by name.
    """

    literal: logic.Literal
    program: NormalProgram
    is_atom: bool
    rows: Mapping[str, Sequence[tuple[logic.Value, ...]]] = field(default_factory=dict)

    @property
    def answers(self) -> Relation:
        """The relation of the answers: one column per variable, in order of appearance."""
        return answer_relation(self.literal)


def read_goal(loaded: LoadedProgram, text: str, *, has_events: bool = False) -> ResolvedGoal:
    """Return a goal such as `link("a", y), y != "b"`: any body that a rule could have.

    The goal is checked as the body of a rule of the program, once for each program; it may name
    event predicates if `has_events`, which have tuples only while a transaction runs.

    Raises:
        InputError: the goal does not fit the program.
    """
    known = loaded.goals.get((text, has_events))
    if known is None:
        known = _check_goal(loaded, text, has_events=has_events)
        if len(loaded.goals) >= GOALS_MAX:
            loaded.goals.clear()
        loaded.goals[text, has_events] = known
    assert isinstance(known, ResolvedGoal)
    return known


def _check_goal(loaded: LoadedProgram, text: str, *, has_events: bool) -> ResolvedGoal:
    body = _parse(text)
    program = loaded.program
    used = [each.atom for each in atom_uses(logic.Clause((), body))]
    for atom in used:
        if atom.state is not None or atom.sign:
            mark = f"@{atom.state}" if atom.state is not None else atom.sign
            raise InputError.of(
                "C0903",
                f"A goal asks for the present, so `{mark}` has no meaning in it.",
                atom.span,
                f"leave out `{mark}`",
            )
    named = {atom.relation for atom in used}
    head = unused_name("goal", {*named, *loaded.checked.signatures}, loaded.normal.relations)
    rule = Program(
        declarations=(Declaration(head, ()),),
        clauses=(logic.Clause((logic.Atom(head, ()),), body),),
    )
    if named <= {each.name for each in program.declarations}:
        # All that the goal has to fit is declared; the clauses are checked already.
        program = Program(
            program.types, program.declarations, pragmas=program.pragmas, functors=program.functors
        )
    checked = check(program + rule)
    for atom in used:
        signature = loaded.checked.signatures.get(atom.relation)
        if signature is not None and signature.is_event and not has_events:
            raise InputError.of(
                "C0902",
                f"`{atom.relation}` is an event predicate: it holds only while a transaction runs.",
                atom.span,
                "ask for a base or derived relation",
            )
    typed = checked.program.clauses[-1].body
    literal = _plain_literal(typed)
    if literal is not None:
        return ResolvedGoal(literal, loaded.normal, is_atom=True)
    return _as_rule(head, typed, loaded.normal)


@contextmanager
def given_rows(engine: Engine, goal: ResolvedGoal, *results: Relation) -> Iterator[None]:
    """Let an engine have the data of a goal, and relations for results, for a while."""
    relations = {name: goal.program.relations[name] for name in goal.rows}
    relations |= {each.name: each for each in results}
    engine.declare(relations)
    try:
        for name, rows in goal.rows.items():
            check_deadline()
            engine.insert(name, rows)
        yield
    finally:
        engine.drop(relations)


def answer_relation(goal: logic.Literal) -> Relation:
    """Return the relation of a goal's answers: one column per variable."""
    variables = {slot.name: slot.type for slot in goal.slots if isinstance(slot, logic.Variable)}
    types = tuple(type_ for type_ in variables.values() if type_ is not None)
    return Relation(GOAL_RELATION, tuple(variables), types, is_derived=True, is_declared=False)


def goal_relations(text: str) -> tuple[str, ...]:
    """Return the relations that a goal reads, negated and aggregated ones too.

    >>> goal_relations("p(x), !q(x), n = count : { r(x, _) }")
    ('p', 'q', 'r')
    """
    uses = atom_uses(logic.Clause((), _parse(text)))
    return tuple(dict.fromkeys(use.atom.relation for use in uses))


def _parse(text: str) -> tuple[logic.BodyItem, ...]:
    """Return the body of a goal; one that is written in SQL gets a hint."""
    check_size(text)
    if SQL_START.match(text) is None:
        return parse_goal(text)
    table = _SQL_TABLE.search(text)
    goal = f"{table[1]}(x, y)" if table else 'link("a", y)'
    raise InputError.of(
        "C0904",
        "A goal is written in Datalog, and this is SQL.",
        None,
        "ask it with `corollary sql`, or with `db.sql(…)`; or name the relation, with a variable "
        f"or a value for each of its columns, as in `{goal}`",
    )


def _plain_literal(body: Sequence[logic.BodyItem]) -> logic.Literal | None:
    """Return the literal of a goal that is one atom of variables, values and `_`."""
    if len(body) != 1 or not isinstance(body[0], logic.Atom):
        return None
    slots = tuple(each for each in body[0].arguments if isinstance(each, logic.Slot))
    is_plain = len(slots) == len(body[0].arguments)
    return logic.Literal(body[0].relation, slots) if is_plain else None


def _as_rule(head: str, body: tuple[logic.BodyItem, ...], normal: NormalProgram) -> ResolvedGoal:
    """Return the goal as the head of a rule, whose body is what was asked."""
    columns: dict[str, logic.Variable] = {}
    for variable in outer_variables(body):
        if is_today(variable):
            continue
        known = columns.setdefault(variable.name, variable)
        columns[variable.name] = replace(known, type=_with_nulls_of(known, variable), span=None)
    for alternative in conjunctions(body):
        bound = {variable.name for variable in outer_variables(alternative)}
        for variable in outer_variables(body):
            if variable.name not in bound and not is_today(variable):
                raise InputError.of(
                    "C0905",
                    f"The variable `{variable.name}` is not in every alternative of the goal.",
                    variable.span,
                    f"let each alternative have `{variable.name}`, or write `_` for it",
                )
    slots = tuple(columns.values())
    asked = Relation(head, tuple(columns), tuple(map(logic.type_of, slots)), is_derived=True)
    clause = logic.Clause((logic.Atom(head, slots),), body)
    relations = dict(normal.relations)
    if any(use.atom.relation == TODAY_RELATION for use in atom_uses(clause)):
        relations.setdefault(TODAY_RELATION, today_relation())
    lowered = lower_clauses([clause], {**relations, head: asked}, (), normal.arithmetic)
    made = {
        name: replace(relation, is_virtual=True, is_declared=False)
        for name, relation in lowered.relations.items()
        if name not in relations
    }
    extended = replace(
        normal,
        relations={**relations, **made},
        rules=(*normal.rules, *lowered.rules),
        aggregations=(*normal.aggregations, *lowered.aggregations),
    )
    return ResolvedGoal(logic.Literal(head, slots), extended, is_atom=False)


def _with_nulls_of(variable: logic.Variable, other: logic.Variable) -> Type:
    type_ = logic.type_of(variable)
    return type_.with_null(type_.nullable or logic.type_of(other).nullable)


# --- order and limit ---------------------------------------------------------------------------


def arrange(table: "pa.Table", order: Sequence[str] = (), limit: int | None = None) -> "pa.Table":
    """Return the answers in an order, and no more than a limit.

    Args:
        table: the answers.
        order: columns such as `y` or `n desc`, the first one counts most; where they are equal,
            and if none is given, rows are ordered by all columns.
        limit: how many rows to return at most; all if it is not given.

    Raises:
        InputError: there is no such column, or the limit is negative.
    """
    from corollary.core.arrow import sort_rows

    if limit is not None and limit < 0:
        raise InputError.of(
            "C0906", f"`{limit}` is not a number of answers.", None, "write 0 or more"
        )
    keys = [_sort_key(each, table.column_names) for each in order]
    ordered = sort_rows(table, keys)
    return ordered.slice(0, limit) if table.num_columns else ordered


def _sort_key(text: str, columns: Sequence[str]) -> tuple[int, bool]:
    """Return the number of a column to sort by, and whether it descends."""
    found = _DIRECTION.search(text)
    name = text.strip() if text.strip() in columns or not found else text[: found.start()].strip()
    if name not in columns:
        listed = f"the goal has {list_names(columns)}" if columns else "the goal has no variables"
        raise InputError.of(
            "C0906",
            f"The goal has no variable `{name}` to order by.",
            None,
            suggest_name(name, columns) or listed,
        )
    return columns.index(name), bool(found and found[1].lower() == "desc" and name != text.strip())
