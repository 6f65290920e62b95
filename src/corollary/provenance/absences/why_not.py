"""Why a tuple does not hold: the nearest instances of its rules, and what fails in each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from corollary.core.logic import Condition, Constant, Literal, Rule, Value, Wildcard
from corollary.core.program import NormalProgram
from corollary.data_class import dataclass
from corollary.database.program.goals import read_goal
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.state import DatabaseState
from corollary.database.store import Store
from corollary.engines.budget import WorkUsed
from corollary.errors import InputError
from corollary.provenance.absences.insertions import find_changes
from corollary.provenance.absences.nearest import NearestInstances, NearInstance, nearest_instances
from corollary.provenance.absences.rule_parts import Part
from corollary.provenance.covered import cover_text, covering_row
from corollary.provenance.limits import DEFAULT_LIMITS, Allowance, ProofLimits
from corollary.provenance.nodes import (
    Attempt,
    FailingLiteral,
    ProofCut,
    ProofKind,
    ProofNode,
    ProofRule,
    Row,
    shift_node,
)
from corollary.provenance.proof import Absence, Proof
from corollary.provenance.query_state import QueryState, matching_rows, query_state
from corollary.provenance.rule_query import row_of, tuples_there
from corollary.provenance.trials import Trials
from corollary.provenance.why import prove
from corollary.provenance.wording import Wording, condition_text, partial_row, substitute

MISSING, BLOCKING, CONDITION = "missing", "blocking", "condition"
"""What a failing literal is: a tuple that is not there, one that is, a condition."""


def why_not(
    state: DatabaseState,
    store: Store,
    goal: str,
    *,
    insertions: int = 0,
    limits: ProofLimits = DEFAULT_LIMITS,
) -> Absence:
    """Return why a tuple does not hold.

    Args:
        state: of the database that is asked.
        store: of the database; nothing is recorded.
        goal: one atom with a value for each column, such as `link("a", "d")`.
        insertions: the maximum size of sets of base tuples that would make it true; 0 for none.
        limits: of the work.

    Raises:
        InputError: the goal does not fit the program, has variables, or holds.
    """
    with state.lock:
        relation, row = read_tuple(state.loaded, goal)
        asked, allowance = query_state(state), Allowance(limits)
        (is_there,) = tuples_there(asked, relation, [row])
        if is_there:
            raise InputError.of(
                "C1421",
                f"`{goal.strip()}` holds.",
                None,
                "ask why it does, with `corollary why` or `db.why(…)`",
            )
        found = absence(asked, relation, row, limits, goal)
        if not insertions or found.covered_by is not None:
            return found
        trials = Trials(state, store, allowance)
        changes = find_changes(asked, (relation, row), trials, allowance, insertions)
        return replace(
            found,
            insertions=changes.sets,
            cuts=(*found.cuts, *changes.cuts),
            work=allowance.used if found.work is None else found.work + allowance.used,
        )


def read_tuple(loaded: LoadedProgram, goal: str) -> tuple[str, Row]:
    """Return the relation and the tuple of a goal that has a value for each column.

    Raises:
        InputError: the goal does not fit the program, or has variables.
    """
    read = read_goal(loaded, goal)
    values = [slot.value for slot in read.literal.slots if isinstance(slot, Constant)]
    if not read.is_atom or len(values) < len(read.literal.slots):
        raise InputError.of(
            "C1420",
            f"`{goal.strip()}` is not one tuple.",
            None,
            'name one relation, with a value for each of its columns, as in `link("a", "d")`',
        )
    return read.literal.relation, tuple(values)


def absence(
    asked: QueryState, relation: str, row: Row, limits: ProofLimits = DEFAULT_LIMITS, goal: str = ""
) -> Absence:
    """Return why a tuple that is not there is not.

    Args:
        asked: the state in which it is asked.
        relation: its relation, in the normal program.
        row: the tuple.
        limits: of the work.
        goal: how the tuple reads in the answer.
    """
    text = goal or Wording(asked.written, asked.program).tuple_text(relation, row)
    covering = covering_row(asked, relation, row)
    if covering is not None:
        proof = prove(asked, relation, covering, limits)
        cover = cover_text(asked, relation, row, covering)
        shown = proof.nodes, proof.rules, proof.cuts, proof.work
        return Absence(text, asked.commit, (), None, *shown, covered_by=0, cover=cover)
    allowance = Allowance(limits)
    (found,), is_complete = attempts_at(asked, relation, [row], allowance)
    drawing = AbsenceDrawing(asked, limits, work=allowance.used)
    attempts = tuple(drawing.attempts(found))
    if not is_complete:
        drawing.cuts.append(ProofCut(allowance.reason))
    nodes, cuts = tuple(drawing.nodes), tuple(drawing.cuts)
    return Absence(text, asked.commit, attempts, None, nodes, drawing.rules, cuts, drawing.work)


def prove_with_attempts(
    asked: QueryState, relation: str, row: Row, limits: ProofLimits, goal: str = ""
) -> Proof:
    """Return the proof of a tuple, whose absent tuples have attempts."""
    return with_attempts(asked, prove(asked, relation, row, limits, goal), limits)


def whole_tuples(
    program: NormalProgram, nodes: Iterable[ProofNode], kinds: Sequence[ProofKind]
) -> dict[str, list[ProofNode]]:
    """Return the nodes of some kinds whose tuples can be asked for, by relation."""
    found: dict[str, list[ProofNode]] = {}
    for node in nodes:
        relation = program.relations.get(node.relation)
        is_whole = relation is not None and relation.types == node.types
        if node.kind in kinds and is_whole and None not in node.row:
            found.setdefault(node.relation, []).append(node)
    return found


def with_attempts(asked: QueryState, proof: Proof, limits: ProofLimits = DEFAULT_LIMITS) -> Proof:
    """Return a proof, and those of other answers, whose absent tuples have attempts, one level."""
    by_relation = whole_tuples(asked.program, proof.nodes, (ProofKind.ABSENT,))
    allowance = Allowance(limits)
    drawing = AbsenceDrawing(asked, limits, allowance.used, shows_proofs=False)
    found: dict[tuple[str, Row], tuple[Attempt, ...]] = {}
    cuts: list[ProofCut] = []
    for name, absent in by_relation.items():
        rows = list(dict.fromkeys(each.row for each in absent))
        nearest, is_complete = attempts_at(asked, name, rows, allowance)
        for row, each in zip(rows, nearest, strict=True):
            attempts = drawing.attempts(each)
            found[name, row] = tuple(map(_without_nodes, attempts))
        if not is_complete:
            cuts.append(ProofCut(allowance.reason))
            break
    nodes = tuple(
        replace(node, attempts=found.get((node.relation, node.row), ()))
        if node.kind is ProofKind.ABSENT
        else node
        for node in proof.nodes
    )
    return replace(
        proof,
        nodes=nodes,
        rules={**proof.rules, **drawing.rules},
        cuts=(*proof.cuts, *cuts),
        others=tuple(with_attempts(asked, each, limits) for each in proof.others),
        work=proof.work if not by_relation or proof.work is None else proof.work + allowance.used,
    )


def _without_nodes(attempt: Attempt) -> Attempt:
    failing = tuple(replace(each, node=None) for each in attempt.failing)
    return replace(attempt, failing=failing)


def attempts_at(
    asked: QueryState, relation: str, rows: Sequence[Row], allowance: Allowance
) -> tuple[list[list[NearestInstances]], bool]:
    """Return for each tuple the nearest instances of the user's rules, and whether that is all.

    The tuples of an equivalence are those of its seed, in both directions; rows of a bag are those
    whose copies are counted.
    """
    seed = _seed_of(asked, relation)
    if seed is None:
        rules = _rules_of_copies(asked.program, relation)
        found, is_complete = nearest_instances(asked, relation, rows, allowance, rules or None)
    else:
        both = [*rows, *((y, x) for x, y in rows)]
        either, is_complete = nearest_instances(asked, seed, both, allowance)
        found = [[*one, *either[len(rows) + at]] for at, one in enumerate(either[: len(rows)])]
    wording = Wording(asked.written, asked.program)
    shown = [
        _nearer_variants(
            each for each in nearest if wording.rule_number(each.rule.origin) is not None
        )
        for nearest in found
    ]
    return shown, is_complete


def _rules_of_copies(program: NormalProgram, relation: str) -> list[Rule]:
    """Return the rules that derive copies of the rows of a bag, with heads of its columns."""
    counts = program.bags.get(relation)
    aggregations = {each.relation: each for each in program.aggregations}
    found: list[Rule] = []
    for rule in program.rules:
        counted = [each for each in rule.literals if each.relation in aggregations]
        if rule.head.relation != counts or len(counted) != 1:
            continue
        aggregation, keys = aggregations[counted[0].relation], counted[0].slots
        row = rule.head.slots[:-1]
        if not all(slot in keys for slot in row):
            continue
        columns = [aggregation.groups[keys.index(slot)] for slot in row]
        found += [
            replace(each, head=Literal(relation, tuple(each.head.slots[at] for at in columns)))
            for each in program.rules
            if each.head.relation == aggregation.body
        ]
    return found


def _nearer_variants(found: Iterable[NearestInstances]) -> list[NearestInstances]:
    """Return the nearest ones of rules that rewriting made of one, as for groups with no tuples."""
    by_origin: dict[object, list[NearestInstances]] = {}
    for each in found:
        origin = each.rule.origin
        by_origin.setdefault((origin.text, origin.span, origin.alternative), []).append(each)
    shown = []
    for variants in by_origin.values():
        distance = min(each.distance for each in variants)
        shown += [each for each in variants if each.distance == distance]
    return shown


def _seed_of(asked: QueryState, relation: str) -> str | None:
    """Return the relation of which an equivalence is the closure."""
    for rule in asked.program.rules:
        if rule.head.relation == relation and "equivalences" in rule.origin.passes:
            for literal in rule.literals:
                if literal.relation != relation:
                    return literal.relation
    return None


@dataclass(slots=True)
class AbsenceDrawing:
    """Makes attempts and their nodes of nearest instances.

    Attributes:
        nodes: so far; blocking tuples come with their proofs.
        rules: those that attempts and nodes name.
        cuts: what was left out.
        work: that the attempts took, and so far their proofs.
    """

    asked: QueryState
    limits: ProofLimits
    work: WorkUsed
    shows_proofs: bool = True
    nodes: list[ProofNode] = field(default_factory=list)
    rules: dict[int, ProofRule] = field(default_factory=dict)
    cuts: list[ProofCut] = field(default_factory=list)
    _wording: Wording = field(init=False)
    _proved: dict[tuple[str, Row], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._wording = Wording(self.asked.written, self.asked.program)

    def attempts(self, found: Sequence[NearestInstances]) -> Iterator[Attempt]:
        """Yield the attempts of nearest instances."""
        for nearest in found:
            number = self._wording.rule_number(nearest.rule.origin)
            if number is None:
                continue
            self.rules[number] = self._wording.rule(number)
            for instance in nearest.shown:
                bindings = {
                    name: value for name, value in instance.bindings.items() if name[0] != "_"
                }
                yield Attempt(
                    number,
                    nearest.distance,
                    nearest.count,
                    bindings,
                    tuple(self._failing(nearest.rule, instance)),
                    nearest.beginning,
                )

    def _failing(self, rule: Rule, instance: NearInstance) -> Iterator[FailingLiteral]:
        parts: tuple[Part, ...] = (*rule.literals, *rule.conditions)
        values = {name: value for name, (value, _) in instance.bindings.items()}
        for at in instance.failing:
            part = parts[at]
            if isinstance(part, Condition):
                text = condition_text(part, values)
                yield FailingLiteral(text, CONDITION, self._add_note(ProofKind.COMPUTED, text))
            elif part.negated:
                text = self._negated_text(part, values)
                yield FailingLiteral(text, BLOCKING, self._blocking(part, values))
            elif part.relation in self._wording.aggregations:
                yield self._other_value(part, values)
            else:
                text = self._wording.literal_text(part, values)
                yield FailingLiteral(text, MISSING, self._missing(part, values, text))

    def _other_value(self, literal: Literal, values: Mapping[str, Value]) -> FailingLiteral:
        """Return the failure of an aggregate, which has another value (proved), or no group."""
        text = self._wording.aggregate_text(literal, values)
        aggregation = self._wording.aggregations[literal.relation]
        group = [substitute(literal.slots[at], values) for at in aggregation.keys]
        is_known = all(isinstance(each, Constant) for each in group)
        there = None
        if is_known and self.shows_proofs:
            others = (Wildcard() for _ in literal.slots[len(group) :])
            asked = Literal(literal.relation, (*group, *others))
            there = next(iter(matching_rows(self.asked, asked)), None)
        if there is not None:
            return FailingLiteral(text, CONDITION, self._proof_of(literal.relation, there))
        return FailingLiteral(text, CONDITION, self._add_note(ProofKind.COMPUTED, text))

    def _negated_text(self, literal: Literal, values: Mapping[str, Value]) -> str:
        projection = self._wording.projections.get(literal.relation)
        if projection is None or projection.relation not in self._wording.aggregations:
            return self._wording.literal_text(literal, values)
        keys = [substitute(slot, values) for slot in literal.slots]
        return f"no {self._wording.group_text(projection.relation, keys)}"

    def _missing(self, literal: Literal, values: Mapping[str, Value], text: str) -> int:
        row = partial_row(literal, values)
        return self._add(self._wording.node(ProofKind.ABSENT, literal.relation, row, text))

    def _add_note(self, kind: ProofKind, text: str) -> int:
        return self._add(ProofNode(0, kind, "", (), (), text=text))

    def _add(self, node: ProofNode) -> int:
        self.nodes.append(replace(node, id=len(self.nodes)))
        return len(self.nodes) - 1

    def _blocking(self, literal: Literal, values: Mapping[str, Value]) -> int | None:
        """Return the node of the tuple that blocks a negated literal, with its proof."""
        row = row_of(literal, values)
        if row is None or not self.shows_proofs:
            return None
        return self._proof_of(literal.relation, row)

    def _proof_of(self, relation: str, row: Row) -> int:
        key = relation, row
        if key not in self._proved:
            self._proved[key] = self._add_proof(relation, row)
        return self._proved[key]

    def _add_proof(self, relation: str, row: Row) -> int:
        proof = prove(self.asked, relation, row, self.limits)
        if proof.work is not None:
            self.work += proof.work
        first = len(self.nodes)
        self.nodes += [shift_node(node, first) for node in proof.nodes]
        self.rules |= proof.rules
        for cut in proof.cuts:
            at = None if cut.node is None else first + cut.node
            self.cuts.append(replace(cut, node=at))
        return first
