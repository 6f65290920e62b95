"""EPF: propagate an update, filter its approximation at once, go on with the actual updates.

Reference: J. V. Harrison, S. W. Dietrich, "An efficient propagation/filtration algorithm for
incremental view maintenance" (1994), Figure 1:

    propagate_filter(p ← Q', U_type):
      1–4  additions: propagate in NEW, filter in OLD; removals: propagate in OLD, filter in NEW
      5    A     = π(query_appr(Q', U, Prop-State))          approximation
      6    A_red = A − ΔP                                     without updates found before
      7    D     = query_disq(p, A_red, Filter-State)         disqualified: provable in both states
      8    Uᵖ    = A_red − D                                  actual updates
      9–11 if Uᵖ ≠ ∅: ΔP = ΔP ∪ Uᵖ; select_propagation_rules(p, Uᵖ)

| symbol | name here |
|---|---|
| propagate_filter(p ← Q − q_i, type) | a procedure for each rule, position and type |
| U | its parameter, `p•rule.place•updates` |
| A, D, Uᵖ | its locals `…•approximation`, `…•disqualified`, `…•actual` |
| ΔP_add, ΔP_rem | `p•added`, `p•removed` |
| Θ_P, the extension tables | the calls and answers of `solve` |
| the part of A_red that no table answers | `…•filtered` |

The view need not be stored, so it may be virtual; a stored one is looked up in OLD. The tables of
calls and answers live as long as the transaction and are shared by propagation and filtration. A
tuple that a table already holds is disqualified without a proof (Proposition 2), one in ΔP is left
out (Proposition 1), so every potential update is filtered once (Proposition 3). Where no tuple has
two derivations, D is empty, and nothing is filtered. A negated q_i swaps the types.

Inside a stratum, a trace shows propagation depth first, as the paper's tables do. Otherwise it goes
in rounds: the updates that a round has found, by whatever rule, are propagated and filtered
together in the next one, and no invocation costs more than its tuples. Strata are in order.

Example: Figures 2 and 3 of the paper; edges a→b, a→c, b→d, c→d, d→e; edge(b,d) removed, tc
left-linear:

| rule | U | A | D | Uᵖ |
|---|---|---|---|---|
| 1 | edge bd | bd | | bd |
| 2 | tc bd | be | | be |
| 2 | edge bd | ad | ad | |
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from corollary.analysis.keys import has_single_derivations
from corollary.analysis.strata import Stratum
from corollary.core import plans
from corollary.core.logic import NO_RULE, Rule
from corollary.core.pipeline import Pipeline, Probe, Reference
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.maintain import delta
from corollary.maintain.draft import Draft
from corollary.maintain.sip import Goal
from corollary.maintain.solve import solve_procedures

CLEAR_TABLES = plans.working_relation("", "forget")
"""The procedure that empties all tables of calls and answers."""


def plan(
    stratum: Stratum, draft: Draft, *, has_memo: bool = True, is_minimised: bool = True
) -> list[plans.Step]:
    """Return the steps that maintain a stratum, stored or virtual.

    Args:
        stratum: what to maintain.
        draft: the plan under construction.
        has_memo: whether the answers of a query are kept for the next one.
        is_minimised: whether updates found before are left out of an approximation (line 6).
    """
    return _Propagation(stratum, draft, has_memo, is_minimised).process_updates()


@dataclass(slots=True)
class _Propagation:
    """The procedures `propagate_filter` of one stratum under construction."""

    stratum: Stratum
    draft: Draft
    has_memo: bool
    is_minimised: bool

    def process_updates(self) -> list[plans.Step]:
        """Return the steps that propagate every change below the stratum."""
        draft, members = self.draft, self.stratum.relations
        steps = self._depth_first() if draft.is_traced or not self.has_memo else self._in_rounds()
        for name in members:
            for sign in (State.ADDED, State.REMOVED):
                draft.working_relation(name, sign)
            if not draft.update.is_virtual(name):
                steps.append(plans.Remove(name, plans.working_relation(name, State.REMOVED)))
                steps.append(plans.Add(name, plans.working_relation(name, State.ADDED)))
        if not self.has_memo:
            draft.procedures[CLEAR_TABLES] = ()
        return steps

    # --- in rounds -----------------------------------------------------------------------------

    def _in_rounds(self) -> list[plans.Step]:
        """Return the steps that propagate in rounds, removals before additions."""
        draft, members = self.draft, self.stratum.relations
        kept, is_exact = delta.unchanged_rules(draft, members), self._is_exact
        steps: list[plans.Step] = []
        for sign in (State.REMOVED, State.ADDED):
            names = [name for name in members if sign in draft.update.signs_of(name)]
            body = partial(delta.propagation_body, sign=sign)
            needed = [rule for rule in kept if rule.head.relation in names]
            selections, bodies = delta.seed_bodies(draft, needed, members, sign)
            if not any(bodies[name] for name in names):
                continue
            local = {name: self._locals(plans.working_relation(name, sign), name) for name in names}
            steps += selections
            for name in names:
                steps += draft.derive(
                    local[name]["approximation"],
                    bodies[name],
                    role=plans.Role.APPROXIMATED,
                    about=name,
                )
            settle: list[plans.Step] = []
            further: list[plans.Step] = []
            for name in names:
                known = Reference(draft.working_relation(name, sign))
                if is_exact:
                    approximation = Reference(local[name]["approximation"])
                    role = plans.Role.ACTUAL
                    settle.append(draft.copy(known.relation, approximation, role=role, about=name))
                    continue
                settle += self._filter(local[name], name, known, sign)
                settle.append(plans.Extend(known.relation, local[name]["actual"]))
                further += draft.derive(
                    local[name]["approximation"],
                    [
                        body(rule, at, Goal(literal, Reference(local[literal.relation]["actual"])))
                        for rule in needed
                        if rule.head.relation == name
                        for at in delta.recursive_positions(rule, names)
                        for literal in (rule.literals[at],)
                    ],
                    role=plans.Role.APPROXIMATED,
                    about=name,
                )
            steps += settle
            if self.stratum.is_recursive:
                found = tuple(Reference(local[name]["actual"]) for name in names)
                steps.append(plans.Loop((*further, *settle), found))
        return steps

    def _locals(self, place: str, name: str) -> dict[str, str]:
        """Return the working relations of one propagation into a relation, by role."""
        roles = ("approximation", "filtered", "refiltered", "disqualified", "actual")
        local = {role: plans.working_relation(place, role) for role in roles}
        self.draft.types |= dict.fromkeys(local.values(), self.draft.types[name])
        return local

    def _filter(
        self, local: dict[str, str], name: str, known: Reference, sign: State
    ) -> list[plans.Step]:
        """Return the steps that find the actual updates of an approximation."""
        draft, approximation = self.draft, Reference(local["approximation"])
        filter_state = State.OLD if sign is State.ADDED else State.NEW
        filtering, proved = self._query_disq(local, name, filter_state, known, sign)
        disqualified = draft.intersect(
            local["disqualified"], approximation, proved, role=plans.Role.DISQUALIFIED, about=name
        )
        # What is proved only grows: where there is nothing, nothing was disqualified before.
        filtering.append(plans.When((proved,), (disqualified,)))
        actual = draft.copy(
            local["actual"],
            approximation,
            without=(Reference(local["disqualified"]), known),
            role=plans.Role.ACTUAL,
            about=name,
        )
        return [plans.When((approximation,), tuple(filtering)), actual]

    @property
    def _is_exact(self) -> bool:
        """Whether no approximation has a tuple that is provable in both states.

        Where no tuple has two derivations, the one with an update is in one state only.
        """
        stratum, redefined = self.stratum, self.draft.update.redefined
        if stratum.is_recursive or stratum.aggregations or stratum.has_choice:
            return False
        # Keys do not help: a head that drops a value may have another derivation in each state.
        is_single = len(stratum.rules) == 1 and has_single_derivations(stratum.rules[0])
        return is_single and redefined.isdisjoint(stratum.relations)

    # --- depth first ---------------------------------------------------------------------------

    def _depth_first(self) -> list[plans.Step]:
        """Return the steps that start the propagation of every change below the stratum."""
        draft, members = self.draft, self.stratum.relations
        kept = delta.unchanged_rules(draft, members)
        signs = {name: draft.update.signs_of(name) for name in members}
        for rule in kept:
            for position in delta.recursive_positions(rule, self.stratum.members):
                for sign in sorted(signs[rule.head.relation]):
                    self._procedure(rule, position, sign)
        steps: list[plans.Step] = []
        for sign in (State.REMOVED, State.ADDED):
            for changed in delta.changed_literals(draft, kept, self.stratum.members, sign):
                if sign in signs[changed.rule.head.relation]:
                    steps += self._start(changed)
            rules = draft.update.added_rules if sign is State.ADDED else draft.update.removed_rules
            for rule in rules:
                if rule.head.relation in self.stratum.members:
                    # Its whole body is the approximation.
                    steps.append(plans.Call(self._procedure(rule, None, sign)))
        return steps

    def _start(self, changed: delta.ChangedLiteral) -> list[plans.Step]:
        """Return the call for a change below, made if any tuple passes its selections."""
        selection, chosen = delta.apply_selections(self.draft, changed)
        procedure = self._procedure(chosen.rule, chosen.position, chosen.sign)
        updates = plans.working_relation(procedure, "given")
        self.draft.types[updates] = self.draft.types[changed.literal.relation]
        call = (self.draft.copy(updates, chosen.source), plans.Call(procedure, updates))
        return [*selection, plans.When((chosen.source,), call)]

    def _procedure(self, rule: Rule, position: int | None, sign: State) -> str:
        """Return the name of propagate_filter for a rule, a position and a type, made once."""
        draft, name = self.draft, rule.head.relation
        number = draft.update.numbers_in_relation[rule]
        at = "" if position is None else f".{position + 1}"
        procedure = (
            f"{name}{plans.WORKING_SEPARATOR}rule {number}{at}{plans.WORKING_SEPARATOR}{sign}"
        )
        if procedure in draft.procedures:
            return procedure
        draft.procedures[procedure] = ()  # taken, so that a recursive rule finds itself
        updates = plans.working_relation(procedure, "updates")
        lead = None
        if position is not None:
            literal = replace(rule.literals[position], negated=False)
            draft.types[updates] = draft.types[literal.relation]
            lead = Goal(literal, Reference(updates))
        else:
            draft.types[updates] = ()
        steps, local = self._propagate_filter(procedure, rule, position, lead, sign)
        draft.procedures[procedure] = tuple(steps)
        draft.locals[procedure] = (updates, *local)
        return procedure

    def _propagate_filter(
        self, procedure: str, rule: Rule, position: int | None, lead: Goal | None, sign: State
    ) -> tuple[list[plans.Step], list[str]]:
        draft, name = self.draft, rule.head.relation
        local = self._locals(procedure, name)
        approximation = Reference(local["approximation"])
        known = Reference(draft.working_relation(name, sign))
        steps = self._clear_tables()
        steps += draft.derive(
            approximation.relation,
            [delta.propagation_body(rule, position, lead, sign)],
            role=plans.Role.APPROXIMATED,
            about=name,
        )
        steps += self._filter(local, name, known, sign)
        if draft.is_traced:
            updates = () if lead is None else (lead.source,)
            steps.append(
                plans.RecordTrace(
                    rule.origin.text,
                    updates,
                    (approximation,),
                    (Reference(local["disqualified"]),),
                    (Reference(local["actual"]),),
                    name,
                    sign,
                    "" if position is None else rule.literals[position].relation,
                )
            )
        further = [
            plans.Extend(known.relation, local["actual"]),
            *self._select_propagation_rules(name, local["actual"], sign),
        ]
        steps.append(plans.When((Reference(local["actual"]),), tuple(further)))
        return steps, list(local.values())

    def _query_disq(
        self, local: dict[str, str], name: str, state: State, known: Reference, sign: State
    ) -> tuple[list[plans.Step], Reference]:
        """Return the steps that prove the approximation, and where the proved tuples are."""
        draft = self.draft
        approximation, filtered = Reference(local["approximation"]), local["filtered"]
        stored = Reference(name, state)
        if draft.tables.is_available(stored):
            left_out = (known, stored) if self.is_minimised else ()
            steps: list[plans.Step] = [
                draft.copy(
                    filtered, approximation, without=left_out, role=plans.Role.FILTERED, about=name
                )
            ]
            return [*steps, *self._note_filtered(local, name, sign)], stored
        node = draft.tables.adorn(name, range(len(draft.types[name])), state)
        answers = Reference(node.answers)
        memo: list[plans.Step] = []
        if self.has_memo:
            # Only the size of this result is recorded; the next step overwrites it.
            hits = draft.intersect(
                filtered, approximation, answers, role=plans.Role.MEMO_HITS, about=name
            )
            memo.append(plans.When((answers,), (hits,)))
        known_before = [known] if self.is_minimised else []
        known_before += [answers] if self.has_memo else []
        variables = draft.variables(filtered)
        arguments = tuple(variables[at] for at in node.bound)
        call = Pipeline((Probe(Reference(filtered), variables, ()),), arguments, NO_RULE)
        return [
            *memo,
            draft.copy(
                filtered, approximation, without=known_before, role=plans.Role.FILTERED, about=name
            ),
            *self._note_filtered(local, name, sign),
            *self._clear_tables(),
            *draft.tables.call(node, [call]),
        ], answers

    def _note_filtered(self, local: dict[str, str], name: str, sign: State) -> list[plans.Step]:
        """Return the steps that record which tuples were filtered before, and remember the rest.

        With a memo and minimised approximations there are none; a trace counts them all the same.
        """
        draft = self.draft
        if self.has_memo and self.is_minimised and not draft.is_traced:
            return []
        seen = draft.working_relation(name, f"seen_{sign}")
        again = local["refiltered"]
        return [
            draft.intersect(
                again,
                Reference(local["filtered"]),
                Reference(seen),
                role=plans.Role.REFILTERED,
                about=name,
            ),
            draft.copy(again, Reference(local["filtered"]), without=(Reference(seen),)),
            plans.Extend(seen, again),
        ]

    def _select_propagation_rules(
        self, name: str, actual: str, sign: State
    ) -> Iterator[plans.Step]:
        """Yield the calls that propagate actual updates inside the stratum."""
        draft, members = self.draft, self.stratum.relations
        for rule in delta.unchanged_rules(draft, members):
            if sign not in draft.update.signs_of(rule.head.relation):
                continue
            for position in delta.recursive_positions(rule, self.stratum.members):
                if rule.literals[position].relation == name:
                    yield plans.Call(self._procedure(rule, position, sign), actual)

    def _clear_tables(self) -> list[plans.Step]:
        """Return the step that empties all tables before a query, where there is no memo."""
        return [] if self.has_memo else [plans.Call(CLEAR_TABLES)]


def complete_clear_tables(draft: Draft) -> None:
    """Complete the procedure that empties the tables, once all tables are registered."""
    if CLEAR_TABLES in draft.procedures:
        solve_procedures(draft.tables)  # which registers the tables that calls need in turn
        draft.procedures[CLEAR_TABLES] = (plans.Clear(draft.tables.memo_relations()),)
