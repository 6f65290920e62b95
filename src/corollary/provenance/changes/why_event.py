"""Why an event has happened, or a constraint is violated: proofs in a transaction that is open.

An event is derived from changes (`+p`, `-p`), from relations in both states, and from other events.
A change is a node with the proof of its tuple below: in NEW of what was added, in OLD of what was
removed; one that a trigger made has the trigger's rule, and what set it off below. What needs OLD
is proved when the transaction has been rolled back, or is asked of the state before it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import field, replace

from corollary.analysis.relevance import BOTH_SIGNS
from corollary.core.arrow import to_python
from corollary.core.logic import Constant, Literal, Value, Variable
from corollary.core.plans import WORKING_SEPARATOR
from corollary.core.program import MarkedRelation
from corollary.core.states import CHANGES, State
from corollary.data_class import dataclass
from corollary.database.commit import OpenTransaction
from corollary.database.program.goals import read_goal
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.state import DatabaseState
from corollary.database.store import MemoryStore
from corollary.database.warehouse_store import WarehouseStore
from corollary.errors import InputError
from corollary.provenance.absences.why_not import prove_with_attempts
from corollary.provenance.changes.event_instances import EventInstance, EventInstances, EventTuple
from corollary.provenance.changes.recorded_commit import recorded_commit
from corollary.provenance.limits import DEFAULT_LIMITS, Allowance, ProofLimits
from corollary.provenance.nodes import ProofKind, ProofNode, ProofRule, Row
from corollary.provenance.proof import Proof
from corollary.provenance.proof_nodes import NodeKey, NodeSketch, number_nodes
from corollary.provenance.query_state import QueryState
from corollary.provenance.rule_query import row_of
from corollary.provenance.trials import Trials, user_names
from corollary.provenance.why import MAX_ANSWERS
from corollary.provenance.wording import Wording, condition_node

MARKED_MAX_CHANGES = 10_000
"""If a transaction changes more base tuples, those of proofs in OLD are not marked."""

SIGNS = {State.ADDED: "+", State.REMOVED: "-"}


@dataclass(slots=True)
class EventProofs:
    """What was found while a transaction was open; `proofs` makes proofs of it later.

    Attributes:
        asked: the NEW state, for its program; it is not read any more.
        goals: the event tuples.
        chosen: an instance of a rule for each event tuple.
        new: the proofs of tuples in NEW.
        changed: the signs of changed base tuples, by relation and tuple.
    """

    asked: QueryState
    goals: Sequence[EventTuple]
    chosen: Mapping[EventTuple, EventInstance]
    new: Mapping[EventTuple, Proof]
    changed: Mapping[EventTuple, str]
    marked: Mapping[str, MarkedRelation] = field(default_factory=dict)

    def proofs(self, old: QueryState, limits: ProofLimits, commit: int) -> list[Proof]:
        """Return the proof of each event tuple.

        Args:
            old: the state before the transaction.
            limits: of the work.
            commit: the number of the commit, or of the one before it if it was refused.
        """
        return [_EventDrawing(self, old, limits, commit).draw(goal) for goal in self.goals]


def is_event(loaded: LoadedProgram, goal: str) -> bool:
    """Whether a goal is one atom of an event predicate."""
    found = read_goal(loaded, goal, has_events=True)
    return found.is_atom and found.literal.relation in loaded.normal.active.relations


def why_event(
    store: WarehouseStore,
    now: DatabaseState,
    goal: str,
    *,
    commit: int | None = None,
    limits: ProofLimits = DEFAULT_LIMITS,
) -> Proof:
    """Return why an event has happened in a commit; of a goal with variables, the first events.

    Args:
        store: of the warehouse.
        now: the present state.
        goal: an atom of an event predicate, such as `lost("a", x)`.
        commit: the number of the commit; the last one if it is not given.
        limits: of the work.

    Raises:
        InputError: the goal does not fit the program, or no such event happened in the commit.
        WarehouseError: the commit, or the one before, is not kept.
    """
    number = now.commits if commit is None else commit
    recorded = recorded_commit(store, number, now)
    before, allowance = recorded.before, Allowance(limits)
    with closing(before):
        literal = read_goal(recorded.after, goal, has_events=True).literal
        for relation, _ in recorded.after.normal.active.marked.values():
            known = before.loaded.normal.relations.get(relation)
            if known is not None and known.is_virtual:
                before.watch(relation, BOTH_SIGNS)

        def look(asked: QueryState, transaction: OpenTransaction) -> tuple[EventProofs, int]:
            after = recorded.asked_after(asked)
            instances = EventInstances(
                before, after, transaction.update, recorded.triggers, allowance
            )
            with instances.evaluate_events((literal.relation,)):
                rows = [row for row in instances.tuples(literal.relation) if _fits(literal, row)]
                goals = [(literal.relation, row) for row in rows[:MAX_ANSWERS]]
                found = find_event_proofs(instances, goals, after, transaction, limits)
                return found, len(rows)

        trials = Trials(before, MemoryStore(), allowance)
        edit = recorded.edit(recorded.clauses)
        found, count = trials.run_tables(recorded.operations(), look, edit)
        proofs = found.proofs(recorded.asked_before(), limits, number)
    if not proofs:
        raise InputError.of(
            "C1423",
            f"`{goal.strip()}` has not happened in commit {number}.",
            None,
            "`corollary log` lists commits; name another one with `--at`",
        )
    is_open = any(not isinstance(slot, Constant) for slot in literal.slots)
    first, *others = proofs
    return replace(first, others=tuple(others), answers=count) if is_open else first


def _fits(literal: Literal, row: Row) -> bool:
    """Whether a tuple matches a literal."""
    values: dict[str, Value] = {}
    for slot, value in zip(literal.slots, row, strict=True):
        if isinstance(slot, Constant) and slot.value != value:
            return False
        if isinstance(slot, Variable) and values.setdefault(slot.name, value) != value:
            return False
    return True


def find_event_proofs(
    instances: EventInstances,
    goals: Sequence[EventTuple],
    asked: QueryState,
    transaction: OpenTransaction,
    limits: ProofLimits,
) -> EventProofs:
    """Return what proofs of event tuples need, while a transaction is open."""
    chosen = instances.chosen(goals)
    active = transaction.update.new.active
    new: dict[EventTuple, Proof] = {}
    for instance in chosen.values():
        for literal in instance.rule.literals:
            relation, state = active.marked.get(literal.relation, (literal.relation, State.NEW))
            row = row_of(literal, instance.values)
            is_read = relation in asked.program.relations and state in (State.NEW, State.ADDED)
            if row is None or literal.negated or not is_read or (relation, row) in new:
                continue
            proof = prove_with_attempts(asked, relation, row, limits)
            if proof.holds:
                new[relation, row] = proof
    return EventProofs(asked, goals, chosen, new, dict(changed_tuples(asked)), active.marked)


def changed_tuples(asked: QueryState) -> Iterator[tuple[EventTuple, str]]:
    """Yield the base tuples that a transaction changes, with their signs, unless they are many."""
    users = user_names(asked.program)
    engine = asked.engine
    bases = [
        name
        for name, each in asked.program.relations.items()
        if not each.is_derived and WORKING_SEPARATOR not in name
    ]
    if sum(engine.size(name, sign) for name in bases for sign in CHANGES) > MARKED_MAX_CHANGES:
        return
    for name in bases:
        for sign in CHANGES:
            if engine.size(name, sign):
                for row in to_python(engine.read(name, sign)):
                    yield (users.get(name, name), row), SIGNS[sign]


def mark_of(node: ProofNode, changed: Mapping[EventTuple, str], *, is_new: bool) -> str:
    """Return the sign of a tuple of a proof, in NEW or in OLD, that a transaction changes."""
    sign = changed.get((node.relation, node.row), "")
    if node.kind is ProofKind.ABSENT:
        return sign if sign == ("-" if is_new else "+") else ""
    return sign if sign == ("+" if is_new else "-") else ""


class _EventDrawing:
    """Makes one proof of what was found: event nodes, changes, and proofs of tuples below."""

    def __init__(
        self, found: EventProofs, old: QueryState, limits: ProofLimits, commit: int
    ) -> None:
        self._found = found
        self._old = old
        self._limits = limits
        self._commit = commit
        self._wording = Wording(found.asked.written, found.asked.program)
        self._nodes: dict[NodeKey, ProofNode] = {}
        self._edges: dict[NodeKey, tuple[list[NodeKey], list[NodeKey]]] = {}
        self._rules: dict[int, ProofRule] = {}

    def draw(self, goal: EventTuple) -> Proof:
        """Return the proof of an event tuple."""
        root = self._event(goal)
        nodes = self._number_nodes(root)
        height = nodes[0].height
        return Proof(
            self._text(*goal),
            self._commit,
            holds=True,
            height=height,
            height_at_least=min(1, height),
            minimal=height <= 1,
            nodes=nodes,
            rules=self._rules,
        )

    def _text(self, name: str, row: Row) -> str:
        relation, _ = self._found.marked.get(name, (name, State.NEW))
        return self._wording.tuple_text(relation, row)

    # --- events and changes --------------------------------------------------------------------

    def _event(self, goal: EventTuple) -> NodeKey:
        """Add the node of an event tuple, or of a change that a trigger made."""
        key: NodeKey = ("event", *goal)
        if key in self._nodes:
            return key
        name, row = goal
        instance = self._found.chosen[goal]
        number = self._wording.rule_number(instance.rule.origin)
        if number is not None:
            self._rules[number] = self._wording.rule(number)
        relation, state = self._found.marked.get(name, (name, State.NEW))
        self._nodes[key] = ProofNode(
            0,
            ProofKind.DERIVED if state is State.NEW else ProofKind.CHANGE,
            relation,
            row,
            self._wording.types(relation),
            rule=number,
            text=self._text(name, row),
            alternative=instance.rule.origin.alternative,
            sign=SIGNS.get(state, ""),
        )
        premises, notes = self._edges.setdefault(key, ([], []))
        for literal in instance.rule.literals:
            below = self._premise(literal, instance)
            if below is not None:
                premises.append(below)
            else:
                notes.append(self._note(literal, instance.values))
        for condition in instance.rule.conditions:
            node = condition_node(condition, instance.values)
            if node is not None:
                self._nodes["computed", node.text] = node
                notes.append(("computed", node.text))
        return key

    def _premise(self, literal: Literal, instance: EventInstance) -> NodeKey | None:
        """Add what a positive literal reads; None if it is shown as a note."""
        row = row_of(literal, instance.values)
        if literal.negated or row is None:
            return None
        name = literal.relation
        if (name, row) in self._found.chosen:
            return self._event((name, row))
        relation, state = self._found.marked.get(name, (name, State.NEW))
        if relation not in self._found.asked.program.relations:
            return None  # the value of an aggregate over events
        if state in CHANGES:
            return self._change(relation, row, state)
        return self._proof(relation, row, state)

    def _change(self, relation: str, row: Row, state: State) -> NodeKey:
        """Add the node of a change, with the proof of its tuple below; a base tuple is its own."""
        key: NodeKey = ("change", relation, row, state)
        if key in self._nodes:
            return key
        below = self._proof(relation, row, state)
        if below is not None and self._nodes[below].kind is ProofKind.BASE:
            self._nodes[below] = replace(self._nodes[below], sign=SIGNS[state])
            return below
        node = self._wording.node(ProofKind.CHANGE, relation, row)
        self._nodes[key] = replace(node, sign=SIGNS[state])
        self._edges[key] = ([] if below is None else [below], [])
        return key

    def _note(self, literal: Literal, values: Mapping[str, Value]) -> NodeKey:
        """Add a negated literal, or one that is not proved further, as a note."""
        relation, state = self._found.marked.get(literal.relation, (literal.relation, State.NEW))
        suffix = "@old" if state is State.OLD else ""
        text = self._wording.literal_text(
            replace(literal, relation=relation, negated=False), values
        )
        name, _, rest = text.partition("(")
        text = f"{'!' * literal.negated}{SIGNS.get(state, '')}{name}{suffix}({rest}"
        key: NodeKey = ("note", text)
        kind = ProofKind.ABSENT if literal.negated else ProofKind.COMPUTED
        self._nodes[key] = ProofNode(0, kind, "", (), (), text=text)
        return key

    # --- proofs below --------------------------------------------------------------------------

    def _proof(self, relation: str, row: Row, state: State) -> NodeKey | None:
        """Add the proof of a tuple in OLD or in NEW; return its root, None if it is not proved."""
        is_new = state in (State.NEW, State.ADDED)
        if is_new:
            proof = self._found.new.get((relation, row))
        elif relation in self._old.program.relations:
            proof = prove_with_attempts(self._old, relation, row, self._limits)
        else:
            proof = None
        if proof is None or not proof.holds:
            return None
        keys: list[NodeKey] = [
            (is_new, node.kind, node.relation, node.row, node.text) for node in proof.nodes
        ]
        for key, node in zip(keys, proof.nodes, strict=True):
            if key not in self._nodes:
                mark = mark_of(node, self._found.changed, is_new=is_new)
                self._nodes[key] = replace(node, sign=mark)
                premises = [keys[at] for at in node.premises]
                self._edges[key] = premises, [keys[at] for at in node.notes]
        self._rules |= proof.rules
        return keys[0]

    # --- numbers -------------------------------------------------------------------------------

    def _number_nodes(self, root: NodeKey) -> tuple[ProofNode, ...]:
        """Return the nodes breadth-first, with their ids and heights."""
        heights: dict[NodeKey, int] = {}
        for key in self._bottom_up(root):
            node = self._nodes[key]
            lower = [heights.get(each, 0) for each in self._edges.get(key, ([], []))[0]]
            height = max(lower, default=0) + (node.kind is ProofKind.DERIVED)
            heights[key] = height if key[0] in ("event", "change") else node.height

        def sketch_of(key: NodeKey) -> NodeSketch:
            node = replace(self._nodes[key], height=heights.get(key, 0))
            premises, notes = (dict.fromkeys(each) for each in self._edges.get(key, ([], [])))
            return NodeSketch(node, tuple(premises), tuple(notes))

        return number_nodes(root, sketch_of)[0]

    def _bottom_up(self, root: NodeKey) -> list[NodeKey]:
        """Return the nodes, premises before what is derived from them."""
        order: dict[NodeKey, None] = {}
        stack: list[tuple[NodeKey, bool]] = [(root, False)]
        while stack:
            key, is_entered = stack.pop()
            if is_entered:
                order[key] = None
            elif key not in order:
                stack.append((key, True))
                stack += [(each, False) for each in self._edges.get(key, ([], []))[0]]
        return list(order)
