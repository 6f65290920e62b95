"""Programs as text: what is printed parses back to an equal program."""

from collections.abc import Iterator, Mapping

from corollary.core.clause_printer import (
    print_atom,
    print_clause,
    print_comparison,
    print_relation,
    print_string,
    print_term,
    print_value,
    print_word,
)
from corollary.core.program import (
    Declaration,
    Dependency,
    Directive,
    NormalProgram,
    Program,
    Reaction,
    Relation,
    TypeDeclaration,
    TypeName,
)
from corollary.core.rules import Aggregation, Condition, Literal, Rule
from corollary.core.terms import Slot, Variable, Wildcard

__all__ = [
    "print_aggregation",
    "print_atom",
    "print_clause",
    "print_condition",
    "print_declaration",
    "print_literal",
    "print_normal",
    "print_program",
    "print_rule",
    "print_term",
    "print_value",
]


def print_program(program: Program) -> str:
    """Return a program as text, one item a line, the kinds of items apart."""
    sections: tuple[list[str], ...] = (
        [_type_declaration(declaration) for declaration in program.types],
        [print_declaration(declaration) for declaration in program.declarations],
        [_dependency(dependency) for dependency in program.dependencies],
        [_directive(directive) for directive in program.directives],
        [print_clause(clause) for clause in program.clauses],
        [print_reaction(reaction) for reaction in program.reactions],
    )
    return "\n".join("".join(f"{line}\n" for line in lines) for lines in sections if lines)


# --- declarations and directives ------------------------------------------------------------------


def print_declaration(declaration: Declaration) -> str:
    """Return a declaration as text.

    >>> print_declaration(Declaration("p", (), storage="virtual"))
    '.decl p() virtual'
    """
    columns = ", ".join(
        f"{print_word(column.name)}: {_type_name(column.type)}" for column in declaration.columns
    )
    parts = [f".decl {print_relation(declaration.name)}({columns})"]
    if declaration.key:
        parts.append(f"key({', '.join(map(print_word, declaration.key))})")
    if declaration.storage:
        parts.append(declaration.storage)
    if declaration.is_equivalence:
        parts.append("eqrel")
    return " ".join((*parts, *declaration.hints))


def _type_name(name: TypeName) -> str:
    digits = "" if name.digits is None else f"({name.digits[0]},{name.digits[1]})"
    return f"{print_relation(name.name)}{digits}{'?' if name.nullable else ''}"


def _type_declaration(declaration: TypeDeclaration) -> str:
    sign = "<:" if declaration.is_subtype else "="
    bases = " | ".join(_type_name(base) for base in declaration.bases)
    return f".type {print_relation(declaration.name)} {sign} {bases}"


def _dependency(dependency: Dependency) -> str:
    left = ", ".join(map(print_word, dependency.determinants))
    right = ", ".join(map(print_word, dependency.dependents))
    return f".fd {print_relation(dependency.relation)}({left} -> {right})"


def _directive(directive: Directive) -> str:
    parameters = _parameters(directive.parameters)
    return f".{directive.name} {print_relation(directive.relation)}{parameters}"


def _parameters(parameters: tuple[tuple[str, str], ...]) -> str:
    pairs = (f"{print_word(name)}={_parameter(value)}" for name, value in parameters)
    return f"({', '.join(pairs)})" if parameters else ""


def _parameter(value: str) -> str:
    is_bare = value in ("true", "false") or (
        value.isascii() and value.isdigit() and len(value) < 19
    )
    return value if is_bare else print_string(value)


def print_reaction(reaction: Reaction) -> str:
    """Return an alert or a constraint as text."""
    text = f".{reaction.name} {print_relation(reaction.relation)} {print_string(reaction.message)}"
    parameters = _parameters(reaction.parameters)
    return f"{text} {parameters}" if parameters else text


# --- normal form ---------------------------------------------------------------------------------


def print_literal(literal: Literal) -> str:
    """Return a literal of a normal rule as text.

    >>> print_literal(Literal("p", (Variable("x"), Wildcard()), negated=True))
    '!p(x, _)'
    """
    state = "" if literal.state is None else f"@{literal.state}"
    slots = ", ".join(print_term(slot) for slot in literal.slots)
    negation = "!" if literal.negated else ""
    return f"{negation}{literal.sign}{print_relation(literal.relation)}{state}({slots})"


def print_condition(condition: Condition) -> str:
    """Return a condition of a normal rule as text; `is` differs from `=` for nulls only."""
    operator = "=" if condition.operator == "is" else condition.operator
    return print_comparison(operator, condition.left, condition.right)


def print_rule(rule: Rule) -> str:
    """Return a normal rule as text, with its full stop."""
    head = print_literal(rule.head)
    body = [print_literal(literal) for literal in rule.literals]
    body += [print_condition(condition) for condition in rule.conditions]
    return f"{head} :- {', '.join(body)}." if body else f"{head}."


def print_aggregation(aggregation: Aggregation, relations: Mapping[str, Relation]) -> str:
    """Return an aggregation as a rule.

    It reads `h.aggregate1(x, n) :- h.body1(x, _), n = count : { h.body1(x, y) }.`

    Args:
        aggregation: what to print.
        relations: the relations of its program, for the names of columns.
    """
    names = _distinct(relations[aggregation.relation].columns, set())
    *keys, result = (Variable(name) for name in names)
    body = relations[aggregation.body]
    inner: list[Slot] = [Variable(name) for name in _distinct(body.columns, set(names))]
    outer: list[Slot] = [Wildcard() for _ in inner]
    for key, group in zip(keys, aggregation.groups, strict=True):
        inner[group] = outer[group] = key
    target = "" if aggregation.value is None else f" {print_term(inner[aggregation.value])}"
    members = print_literal(Literal(body.name, tuple(inner)))
    head = print_literal(Literal(aggregation.relation, (*keys, result)))
    group_literal = print_literal(Literal(body.name, tuple(outer)))
    value = f"{print_term(result)} = {aggregation.operator}{target} : {{ {members} }}"
    return f"{head} :- {group_literal}, {value}."


def print_normal(program: NormalProgram) -> str:
    """Return a normal program as text: declarations, facts, rules."""
    sections = (
        [_declaration(relation) for relation in program.relations.values()],
        list(_facts(program)),
        [
            *(print_rule(rule) for rule in program.rules),
            *(
                print_aggregation(aggregation, program.relations)
                for aggregation in program.aggregations
            ),
        ],
    )
    return "\n".join("".join(f"{line}\n" for line in lines) for lines in sections if lines)


def _declaration(relation: Relation) -> str:
    columns = ", ".join(
        f"{print_word(name)}: {type_}"
        for name, type_ in zip(relation.columns, relation.types, strict=True)
    )
    virtual = " virtual" if relation.is_virtual else ""
    return f".decl {print_relation(relation.name)}({columns}){virtual}"


def _facts(program: NormalProgram) -> Iterator[str]:
    for name, rows in program.facts.items():
        types = program.relations[name].types
        for row in rows:
            values = (print_value(value, type_) for value, type_ in zip(row, types, strict=True))
            yield f"{print_relation(name)}({', '.join(values)})."


def _distinct(names: tuple[str, ...], taken: set[str]) -> list[str]:
    """Return the names, each with a number where it is taken already."""
    found: list[str] = []
    for name in names:
        fresh, number = name, 1
        while fresh in taken:
            number += 1
            fresh = f"{name}{number}"
        taken.add(fresh)
        found.append(fresh)
    return found
