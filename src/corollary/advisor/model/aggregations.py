"""Clauses that aggregate: an outer conjunction, and a block for each aggregate.

    q(x, t) :- customer(_, x), t = sum a : { sales(_, c, a), customer(c, x) }.

    outer   q(x, t) :- customer(_, x), t = …              its literals are those of any other clause
    block   (x) :- sales(_, c, a), customer(c, x).        measure: sum of a

A block has a head of its own: the *keys*, which are bound outside. Virtual relations with one plain
rule are replaced by their bodies, so that blocks of different queries have literals in common. An
aggregate ranges over the distinct assignments of its variables: inside a block a relation is
replaced only if its columns determine all variables of its rule, by dependencies of base relations,
which every commit enforces.

A block can be computed from a *summary*, a view with sums, counts, minima or maxima in groups
(`search.shared_views`), only if that gives the same value, which rules out sums of floats (they are
rounded once), minima of nullable terms (a group may have none), and targets that may fail for rows
that the query leaves out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from corollary.advisor.model import candidates, scheme
from corollary.advisor.model.clause_reader import Types, has_null_join, read_conjunction
from corollary.analysis.traverse import aggregates_of, conjunctions
from corollary.core import logic
from corollary.data_class import dataclass
from corollary.rewrite.translation_unit import outer_variables, unused_name

SUMMABLE_OPERATORS = frozenset({"sum", "count", "min", "max"})
TOTAL_FUNCTORS = frozenset({"+", "-", "*", "neg", "multiply", "to_decimal", "if", "is_null"})
"""Functors that have a value for all arguments, unless it does not fit its type."""


@dataclass(frozen=True, slots=True)
class AggregationReader:
    """Reads the clauses of relations that aggregate.

    Attributes:
        written: the clauses of each relation, and the same with types.
        clauses: what the advisor has read of them.
        component: the numbers of strongly connected components of relations.
    """

    written: Mapping[str, Sequence[tuple[logic.Clause, logic.Clause]]]
    clauses: Mapping[str, tuple[candidates.SchemeClause, ...]]
    relations: Mapping[str, scheme.SchemeRelation]
    component: Mapping[str, int]
    types: Types

    def read(self) -> Iterator[tuple[str, tuple[scheme.AggregatingClause, ...]]]:
        """Yield the relations with an aggregate that can be computed from summaries."""
        for name, pairs in self.written.items():
            plain = self.clauses.get(name, ())
            is_single = all(len(each.heads) == 1 for each, _ in pairs)
            if not is_single or len(plain) != len(pairs):
                continue
            found = tuple(
                self._read_clause(pair, clause) if clause.has_aggregate else _plain(clause)
                for pair, clause in zip(pairs, plain, strict=True)
            )
            if any(each.blocks for each in found):
                yield name, found

    def _read_clause(
        self, pair: tuple[logic.Clause, logic.Clause], written: candidates.SchemeClause
    ) -> scheme.AggregatingClause:
        clause, typed = pair
        untouched = scheme.AggregatingClause(written, replace(written, literals=(), pinned=()))
        is_recursive = any(each.reason == candidates.PinReason.RECURSIVE for each in written.pinned)
        (items,) = conjunctions(clause.body)
        written_names = {each.name for each in candidates.term_variables((clause.heads, items))}
        outer_names = frozenset(_outside(clause, items))
        blocks, keys, taken = list[scheme.AggregateBlock](), set[str](), set(written_names)
        terms = [aggregates_of((*each.heads, *each.body)) for each in (clause, typed)]
        for term, typed_term in zip(*terms, strict=True):
            names = {
                each.name for each in candidates.term_variables((term.body, term.target or ()))
            }
            keys |= names & outer_names
            inner_names = set(written_names)
            block = self._block(term, typed_term, clause, outer_names, inner_names)
            taken |= inner_names
            blocks += [] if block is None else [block]
        # What is new in a block is not a key: the conjunction outside gets other names.
        expanded, _ = self._expand(items, outer_names, taken, is_set=True)
        outer = self._conjunction(written.head, expanded, clause)
        if is_recursive or outer is None:
            return untouched
        if not keys <= candidates.output_variables(outer.literals):
            return untouched  # the witness of a minimum, or a variable that an equation binds
        return scheme.AggregatingClause(written, outer, tuple(blocks))

    def _block(
        self,
        term: logic.AggregateTerm,
        typed: logic.AggregateTerm,
        clause: logic.Clause,
        outer: frozenset[str],
        taken: set[str],
    ) -> scheme.AggregateBlock | None:
        """Return the block of an aggregate; None if it has to be computed as it is."""
        if term.operator not in SUMMABLE_OPERATORS or not _is_exact(typed):
            return None
        found = list(conjunctions(term.body))
        if len(found) != 1 or any(True for _ in aggregates_of(found[0])):
            return None
        fixed = outer | _repeated_variables(found[0])
        items, values = self._expand(found[0], fixed, taken, is_set=False)
        computed = None if term.target is None else candidates.substitute(term.target, values)
        names = frozenset(each.name for each in candidates.term_variables(items)) & outer
        keys = [name for name in sorted(names) if name not in _head_names(clause)]
        arguments = [
            each if isinstance(each, logic.Variable) and each.name in names else logic.Wildcard()
            for each in clause.heads[0].arguments
        ]
        head = logic.Atom(clause.heads[0].relation, (*arguments, *map(logic.Variable, keys)))
        inner = self._conjunction(head, items, clause)
        if inner is None or not inner.literals or not _is_total(computed):
            return None
        if any(each.literal is not None for each in inner.pinned):
            return None
        if not frozenset(
            each.name for each in candidates.term_variables(computed)
        ) <= candidates.output_variables(inner.literals):
            return None
        assert typed.type is not None
        measure = candidates.Measure(term.operator, computed, typed.type)
        return scheme.AggregateBlock(term, replace(inner, measure=measure))

    def _conjunction(
        self, head: logic.Atom, items: tuple[logic.BodyItem, ...], clause: logic.Clause
    ) -> candidates.SchemeClause | None:
        """Return a conjunction as the advisor reads it; None if nulls may meet in it."""
        (conjunction,) = conjunctions(items)
        found = read_conjunction(head, conjunction, self.component, self.types)
        found = replace(found, is_null_safe=clause.is_null_safe)
        return None if has_null_join(found, self.types) else found

    # --- relations as their bodies -------------------------------------------------------------

    def _expand(
        self,
        items: Iterable[logic.BodyItem],
        fixed: frozenset[str],
        taken: set[str],
        *,
        is_set: bool,
    ) -> tuple[tuple[logic.BodyItem, ...], dict[str, logic.Term]]:
        """Return items with bodies in place of virtual relations, and what variables stand for.

        Args:
            items: a conjunction.
            fixed: variables that may not stand for an expression.
            taken: the names of the clause, to which new ones are added.
            is_set: whether duplicates do not matter.
        """
        values: dict[str, logic.Term] = {}
        done: list[logic.BodyItem] = []
        stack = list(items)[::-1]
        while stack:
            item = stack.pop()
            rule = self._rule_of(item, is_set=is_set)
            if rule is None or not isinstance(item, logic.Atom):
                done.append(item)
                continue
            body = _body_for(rule, item, fixed, taken, values)
            if body is None:
                done.append(item)
            else:
                stack += body[::-1]
        return tuple(done), values

    def _rule_of(self, item: logic.BodyItem, *, is_set: bool) -> logic.Clause | None:
        """Return the one rule of a virtual relation that may take its place."""
        if not isinstance(item, logic.Atom) or item.sign:
            return None
        relation = self.relations.get(item.relation)
        rules, read = self.written.get(item.relation, ()), self.clauses.get(item.relation, ())
        if relation is None or relation.is_materialised or len(rules) != 1 or len(read) != 1:
            return None
        clause = read[0]
        if clause.has_aggregate or any(each.literal is not None for each in clause.pinned):
            return None
        if any(not isinstance(each.item, logic.Comparison) for each in clause.pinned):
            return None
        if has_null_join(clause, self.types):
            return None
        bound = candidates.output_variables(clause.literals)
        if not clause.significant <= bound or len(rules[0][0].heads) > 1:
            return None
        if is_set:
            return rules[0][0]
        names = [each.name for each in clause.head.arguments if isinstance(each, logic.Variable)]
        is_lossless = bound <= scheme.determined_variables(names, clause.literals, self.relations)
        return rules[0][0] if is_lossless else None


def _plain(clause: candidates.SchemeClause) -> scheme.AggregatingClause:
    return scheme.AggregatingClause(clause, clause)


def _body_for(
    rule: logic.Clause,
    atom: logic.Atom,
    fixed: frozenset[str],
    taken: set[str],
    values: dict[str, logic.Term],
) -> list[logic.BodyItem] | None:
    """Return the body of a rule for an atom; None if an argument does not allow it."""
    by: dict[str, logic.Term] = {}
    expressions: dict[str, logic.Term] = {}
    for formal, actual in zip(rule.heads[0].arguments, atom.arguments, strict=True):
        if isinstance(formal, logic.Variable):
            if formal.name in by or not isinstance(
                actual, logic.Variable | logic.Wildcard | logic.Constant
            ):
                return None
            if not isinstance(actual, logic.Wildcard):
                by[formal.name] = actual
        elif isinstance(actual, logic.Variable) and actual.name not in fixed:
            expressions[actual.name] = formal
        elif not isinstance(actual, logic.Wildcard):
            return None
    for variable in candidates.term_variables((rule.heads, rule.body)):
        if variable.name not in by:
            name = unused_name(variable.name, taken)
            taken.add(name)
            by[variable.name] = logic.Variable(name)
    values.update((name, candidates.substitute(term, by)) for name, term in expressions.items())
    (items,) = conjunctions(rule.body)
    return list(candidates.substitute(items, by))


def _outside(clause: logic.Clause, items: Iterable[logic.BodyItem]) -> Iterator[str]:
    """Yield the variables outside of aggregates."""
    for head in clause.heads:
        for term in head.arguments:
            yield from (each.name for each in logic.variables_of(term))
    yield from (each.name for each in outer_variables(items))


def _head_names(clause: logic.Clause) -> frozenset[str]:
    arguments = clause.heads[0].arguments
    return frozenset(each.name for each in arguments if isinstance(each, logic.Variable))


def _repeated_variables(items: tuple[logic.BodyItem, ...]) -> frozenset[str]:
    """Return the variables of a body that occur twice in it: they may not be an expression."""
    names = [each.name for each in candidates.term_variables(items)]
    return frozenset(name for name in names if names.count(name) > 1)


def _is_exact(typed: logic.AggregateTerm) -> bool:
    """Whether an aggregate of aggregates of groups is that of all of them."""
    if typed.type is None:
        return False
    if typed.operator == "sum":
        return typed.type.is_integral or typed.type.is_decimal
    if typed.operator == "count" or typed.target is None:
        return True
    kind = None if isinstance(typed.target, logic.Wildcard) else typed.target.type
    return kind is not None and not kind.nullable and kind.record is None


def _is_total(target: logic.Term | None) -> bool:
    """Whether a target has a value for every row."""
    return target is None or all(
        not isinstance(part, logic.AggregateTerm)
        and (not isinstance(part, logic.Functor) or part.name in TOTAL_FUNCTORS)
        for part in logic.subterms(target)
    )
