"""Programs in normal form as text: declarations, facts, rules, orders and aggregations."""

from collections.abc import Iterator, Mapping

from corollary.core import logic, printer
from corollary.core.program import NormalProgram, Relation, SubsumptionOrder
from corollary.core.windows import WINDOW, WindowExpression, print_window


def print_aggregation(aggregation: logic.AnyAggregation, relations: Mapping[str, Relation]) -> str:
    """Return an aggregation as a rule.

    It reads `h.aggregate1(x, n) :- h.body1(x, _), n = count : { h.body1(x, y) }.`, with `:=` where
    a key may be null: nulls are a group.
    """
    if isinstance(aggregation, logic.Windowing):
        return _print_windowing(aggregation, relations)
    names = _distinct(relations[aggregation.relation].columns, set())
    variables = [logic.Variable(name) for name in names]
    keys, results = variables[: len(aggregation.groups)], variables[len(aggregation.groups) :]
    body = relations[aggregation.body]
    inner: list[logic.Slot] = [logic.Variable(name) for name in _distinct(body.columns, set(names))]
    outer: list[logic.Slot] = [logic.Wildcard() for _ in inner]
    for key, group in zip(keys, aggregation.groups, strict=True):
        inner[group] = outer[group] = key
    members = printer.print_literal(logic.Literal(body.name, tuple(inner)))
    head = printer.print_literal(logic.Literal(aggregation.relation, tuple(variables)))
    group_literal = printer.print_literal(logic.Literal(body.name, tuple(outer)))
    values = [
        f"{printer.print_term(result)} {'is' if each.is_nullable else '='} "
        f"{printer.print_accumulator(each, lambda at: printer.print_term(inner[at]))} "
        f": {{ {members} }}"
        for each, result in zip(aggregation.accumulators, results, strict=True)
    ]
    has_null = any(body.types[group].nullable for group in aggregation.groups)
    return f"{head} {':=' if has_null else ':-'} {', '.join((group_literal, *values))}."


def _print_windowing(windowing: logic.Windowing, relations: Mapping[str, Relation]) -> str:
    """Return a relation of window functions as a rule."""
    names = _distinct(relations[windowing.relation].columns, set())
    variables = tuple(logic.Variable(name) for name in names)
    row = variables[: relations[windowing.body].arity]
    equations = [
        f"{printer.print_term(value)} is {printer.print_term(logic.Functor(WINDOW, (text, *row)))}"
        for value, function in zip(variables[len(row) :], windowing.functions, strict=True)
        for text in [
            logic.Constant(
                print_window(WindowExpression(function, windowing.partition, windowing.order))
            )
        ]
    ]
    if windowing.top is not None:
        at, most = windowing.top
        equations.append(f"{printer.print_term(variables[len(row) + at])} <= {most}")
    head = printer.print_literal(logic.Literal(windowing.relation, variables))
    body = printer.print_literal(logic.Literal(windowing.body, row))
    return f"{head} := {', '.join((body, *equations))}."


def print_normal(program: NormalProgram) -> str:
    """Return a normal program as text: declarations, facts, rules."""
    sections = (
        [_declaration(relation) for relation in program.relations.values()],
        list(_facts(program)),
        [
            *(printer.print_rule(rule) for rule in program.rules),
            *(
                line
                for name, order in program.subsumption.items()
                for line in print_order(program.relations[name], order)
            ),
            *(
                print_aggregation(aggregation, program.relations)
                for aggregation in program.aggregations
            ),
        ],
    )
    return "\n".join("".join(f"{line}\n" for line in lines) for lines in sections if lines)


def print_order(relation: Relation, order: SubsumptionOrder) -> Iterator[str]:
    """Yield the clauses of the order of a relation's tuples."""
    compared = order.values
    steps = [(at, compared[at : at + 1]) for at in range(len(compared))]
    for equal, better in steps if order.is_lexicographic else [(0, compared)]:
        first = {value.position: "1" for value in compared[equal:]}
        atoms = []
        for number in "12":
            taken = set(relation.columns)
            names = [
                _distinct((f"{column}{number}",), taken)[0] if at in first else column
                for at, column in enumerate(relation.columns)
            ]
            atoms.append([logic.Variable(name) for name in names])
        tests = []
        for value in better:
            sign = ">" if value.is_greater_better else "<"
            one, other = (printer.print_term(atom[value.position]) for atom in reversed(atoms))
            tests.append(f"{one} {sign}{'' if order.is_lexicographic else '='} {other}")
        heads = (printer.print_literal(logic.Literal(relation.name, tuple(atom))) for atom in atoms)
        yield f"{' <= '.join(heads)} :- {', '.join(tests)}."


def _declaration(relation: Relation) -> str:
    columns = ", ".join(
        f"{printer.print_word(name)}: {type_}"
        for name, type_ in zip(relation.columns, relation.types, strict=True)
    )
    virtual = " virtual" if relation.is_virtual else ""
    return f".decl {printer.print_relation(relation.name)}({columns}){virtual}"


def _facts(program: NormalProgram) -> Iterator[str]:
    for name, rows in program.facts.items():
        types = program.relations[name].types
        for row in rows:
            values = (
                printer.print_value(value, type_) for value, type_ in zip(row, types, strict=True)
            )
            yield f"{printer.print_relation(name)}({', '.join(values)})."


def _distinct(names: tuple[str, ...], taken: set[str]) -> list[str]:
    """Return the names, with a number appended to those that are taken."""
    found: list[str] = []
    for name in names:
        fresh, number = name, 1
        while fresh in taken:
            number += 1
            fresh = f"{name}{number}"
        taken.add(fresh)
        found.append(fresh)
    return found
