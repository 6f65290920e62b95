"""Programs, clauses and terms as text: what is printed parses back to an equal program.

>>> total = logic.Functor("+", (logic.Variable("x"), logic.Constant(1)))
>>> print_term(logic.Functor("*", (total, logic.Variable("y"))))
'(x + 1) * y'
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import assert_never

from corollary.core import logic, syntax
from corollary.core.functors import conversions
from corollary.core.functors.holistic import HOLISTIC
from corollary.core.functors.lambdas import SIGN as LAMBDA_SIGN
from corollary.core.functors.lambdas import parameters_of
from corollary.core.program import (
    BranchDeclaration,
    Declaration,
    Directive,
    FunctionalDependency,
    FunctorDeclaration,
    Pragma,
    Program,
    Reaction,
    TypeDeclaration,
    TypeName,
)
from corollary.core.records.record_terms import BRANCH_OF, FIELD_OF, RECORD_OF
from corollary.core.records.record_text import print_record
from corollary.core.types import NIL, PLAIN_BRANCH, UNSIGNED, Kind, Type
from corollary.core.values import SCALARS, to_stored

_CONTROL = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\u0000"}
_STRING = str.maketrans({**_CONTROL, '"': '\\"'})
_QUOTED = str.maketrans({**_CONTROL, "`": "\\`"})
_PRIMARY = 100
_CASTS: dict[str, str] = {
    **{name: str(kind) for kind, name in conversions.SAME_BITS.items()},
    conversions.SINGLE_OF_BITS: str(Kind.FLOAT),
    conversions.BITS_OF_SINGLE: str(Kind.NUMBER),
}


def print_program(program: Program) -> str:
    """Return a program as text, one item a line, with a blank line between kinds of items."""
    sections: tuple[list[str], ...] = (
        [_pragma(pragma) for pragma in program.pragmas],
        [print_type(declaration) for declaration in program.types],
        [print_functor(declaration) for declaration in program.functors],
        [print_declaration(declaration) for declaration in program.declarations],
        [_dependency(dependency) for dependency in program.dependencies],
        [_directive(directive) for directive in program.directives],
        [_clause_with_plan(clause) for clause in program.clauses],
        [print_reaction(reaction) for reaction in program.reactions],
    )
    return "\n".join("".join(f"{line}\n" for line in lines) for lines in sections if lines)


# --- declarations and directives ------------------------------------------------------------------


def _pragma(pragma: Pragma) -> str:
    texts = (pragma.name, pragma.value) if pragma.value else (pragma.name,)
    return f".pragma {' '.join(map(print_string, texts))}"


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
    if declaration.is_bag:
        parts.append("bag")
    parts += declaration.hints
    if declaration.domains:
        domains = (", ".join(map(print_word, each)) for each in declaration.domains)
        listed = (f"({each})" if "," in each else each for each in domains)
        parts.append(f"choice-domain {', '.join(listed)}")
    return " ".join(parts)


def _type_name(name: TypeName) -> str:
    if name.members:
        inner = [(word, _type_name(each)) for word, each in name.members]
        named = ", ".join(f"{print_word(word)}: {each}" for word, each in inner)
        if name.name == Kind.MAP:
            named = " -> ".join(each for _, each in inner)
        shown = f"[{inner[0][1]}]" if name.name == Kind.ARRAY else f"{{{named}}}"
        return f"{shown}{'?' if name.nullable else ''}"
    digits = "" if name.digits is None else f"({name.digits[0]},{name.digits[1]})"
    return f"{print_relation(name.name)}{digits}{'?' if name.nullable else ''}"


def print_type(declaration: TypeDeclaration) -> str:
    """Return a declaration of a type as text."""
    if declaration.branches:
        branches = " | ".join(map(_branch, declaration.branches))
        return f".type {print_relation(declaration.name)} = {branches}"
    sign = "<:" if declaration.is_subtype else "="
    bases = " | ".join(_type_name(base) for base in declaration.bases)
    return f".type {print_relation(declaration.name)} {sign} {bases}"


def print_functor(declaration: FunctorDeclaration) -> str:
    """Return the declaration of a functor as text."""
    parameters = ", ".join(
        f"{print_word(each.name)}: {_type_name(each.type)}" if each.name else _type_name(each.type)
        for each in declaration.parameters
    )
    state = " stateful" if declaration.is_stateful else ""
    return f".functor {declaration.name}({parameters}): {_type_name(declaration.result)}{state}"


def _branch(branch: BranchDeclaration) -> str:
    fields = ", ".join(
        f"{print_word(each.name)}: {_type_name(each.type)}" for each in branch.fields
    )
    is_plain = branch.name == PLAIN_BRANCH
    return f"[{fields}]" if is_plain else f"{print_relation(branch.name)} {{{fields}}}"


def _dependency(dependency: FunctionalDependency) -> str:
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


# --- clauses --------------------------------------------------------------------------------------


def print_clause(clause: logic.Clause) -> str:
    """Return a rule or fact as text, with its full stop; a subsumption as it was written."""
    if clause.dominating is not None and clause.heads[0].relation != clause.dominating.relation:
        # Checks see it as a rule of dominated tuples, whose body begins with both atoms.
        head = replace(clause.heads[0], relation=clause.dominating.relation)
        clause = replace(clause, heads=(head,), body=clause.body[2:])
    heads = ", ".join(print_atom(head) for head in clause.heads)
    if clause.dominating is not None:
        heads = f"{heads} <= {print_atom(clause.dominating)}"
    neck = _neck(clause)
    if not clause.body:
        return f"{heads}."
    match clause.body:
        case (logic.Disjunction(alternatives=alternatives),):
            return f"{heads} {neck} {_alternatives(alternatives)}."
        case _:
            return f"{heads} {neck} {print_body(clause.body)}."


def _clause_with_plan(clause: logic.Clause) -> str:
    orders = (f"{version}:({', '.join(map(str, order))})" for version, order in clause.plan)
    plan = f"\n.plan {', '.join(orders)}" if clause.plan else ""
    return print_clause(clause) + plan


def _neck(clause: logic.Clause | logic.Rule) -> str:
    return ":=" if clause.is_null_safe else ":-"


def print_body(body: tuple[logic.BodyItem, ...]) -> str:
    """Return a conjunction as text."""
    return ", ".join(_body_item(item) for item in body)


def _alternatives(alternatives: tuple[tuple[logic.BodyItem, ...], ...]) -> str:
    return " ; ".join(print_body(alternative) for alternative in alternatives)


def _body_item(item: logic.BodyItem) -> str:
    match item:
        case logic.Atom():
            return print_atom(item)
        case logic.Negation(atom=atom):
            return f"!{print_atom(atom)}"
        case logic.Comparison(operator=operator, left=left, right=right):
            return print_comparison(operator, left, right)
        case logic.Truth(value=value):
            return "true" if value else "false"
        case logic.Disjunction(alternatives=alternatives):
            return f"({_alternatives(alternatives)})"
        case _:
            assert_never(item)


def print_comparison(operator: str, left: logic.Term, right: logic.Term) -> str:
    """Return a comparison as text, `match` and `contains` as calls."""
    if operator.removeprefix("!") in logic.TEXT_PREDICATES:
        return f"{operator}({print_term(left)}, {print_term(right)})"
    return f"{print_term(left)} {operator} {print_term(right)}"


def print_atom(atom: logic.Atom) -> str:
    """Return an atom as text."""
    state = "" if atom.state is None else f"@{atom.state}"
    arguments = ", ".join(print_term(argument) for argument in atom.arguments)
    return f"{atom.sign}{print_relation(atom.relation)}{state}({arguments})"


# --- terms ----------------------------------------------------------------------------------------


def print_term(term: logic.Term) -> str:
    """Return a term as text, with the fewest brackets that keep its meaning clear."""
    return logic.fold_term(term, _print)


def print_accumulator(accumulator: logic.Accumulator, column: Callable[[int], str]) -> str:
    """Return an accumulator as an aggregate is written, given the text of each column.

    >>> print_accumulator(logic.Accumulator("sum", 1), lambda at: f"x{at}")
    'sum x1'
    >>> print_accumulator(logic.Accumulator("mode", 1, weights=(2,), parameters=(False,)), str)
    'mode(1, 2, false)'
    """
    if accumulator.value is None:
        return accumulator.operator
    if not accumulator.is_holistic:
        return f"{accumulator.operator} {column(accumulator.value)}"
    values = (print_value(each, None) for each in accumulator.parameters)
    return f"{accumulator.operator}({', '.join((*map(column, accumulator.columns), *values))})"


def _print(term: logic.Term, inside: tuple[str, ...]) -> str:
    match term:
        case logic.Variable(name=name):
            return name if syntax.is_bare_name(name) else _backquoted(name)
        case logic.Wildcard():
            return "_"
        case logic.Constant(value=value, type=type_):
            return print_value(value, type_)
        case logic.AggregateTerm(operator=operator, target=target, body=body):
            goal = "" if target is None else f" {print_term(target)}"
            if operator in HOLISTIC:
                goal = f"({', '.join(map(print_term, logic.aggregated_terms(term)))})"
            inner = (
                _alternatives(body[0].alternatives)
                if len(body) == 1 and isinstance(body[0], logic.Disjunction)
                else print_body(body)
            )
            return f"{operator}{goal} : {{ {inner} }}"
        case logic.Functor(name=name, arguments=arguments):
            return _functor(name, arguments, inside)
        case _:
            assert_never(term)


def _functor(name: str, arguments: tuple[logic.Term, ...], texts: tuple[str, ...]) -> str:
    if name in (conversions.CHECKED_SUM, conversions.SINGLE):
        return texts[0]
    if name.startswith(LAMBDA_SIGN):
        names = [f"{LAMBDA_SIGN}{print_word(each)}" for each in parameters_of(name)]
        return " ".join(names) + "".join(f" -> {each}" for each in texts)
    if name == PLAIN_BRANCH:
        return f"[{', '.join(texts)}]"
    if name == NIL or (name.startswith("$") and not texts):
        return name
    if name in (RECORD_OF, FIELD_OF, BRANCH_OF):
        return _record_functor(name, arguments, texts)
    if name == conversions.CAST and isinstance(arguments[1], logic.Constant):
        return f"as({texts[0]}, {print_relation(str(arguments[1].value))})"
    if name in _CASTS:
        return f"as({texts[0]}, {_CASTS[name]})"
    if name in syntax.PREFIXES and len(arguments) == 1:
        sign = syntax.PREFIXES[name] + (" " if syntax.PREFIXES[name].isalpha() else "")
        # In front of a number the minus sign would become part of the number.
        is_number = name == "neg" and isinstance(arguments[0], logic.Constant)
        least = _PRIMARY + 1 if is_number else syntax.PREFIX_PRECEDENCE
        return f"{sign}{_enclosed(arguments[0], texts[0], least)}"
    if name in syntax.PRECEDENCE and len(arguments) == 2:
        precedence = syntax.PRECEDENCE[name]
        is_right = name in syntax.RIGHT_ASSOCIATIVE
        left = _enclosed(arguments[0], texts[0], precedence + is_right)
        right = _enclosed(arguments[1], texts[1], precedence + (not is_right))
        return f"{left} {name} {right}"
    return f"{name}({', '.join(texts)})"


def _record_functor(name: str, arguments: tuple[logic.Term, ...], texts: tuple[str, ...]) -> str:
    """Return what normal rules compute with records; a field is written as in `r.x`."""
    if name == BRANCH_OF:
        return f"branch({texts[0]})"
    branch = arguments[0 if name == RECORD_OF else 1]
    assert isinstance(branch, logic.Constant)
    if name == RECORD_OF:
        fields = ", ".join(texts[1:])
        return f"[{fields}]" if branch.value == PLAIN_BRANCH else f"${branch.value!s}({fields})"
    record, _, number = arguments
    assert isinstance(number, logic.Constant)
    assert isinstance(number.value, int)
    type_ = None if isinstance(record, logic.Wildcard) else record.type
    if type_ is None or type_.record is None:
        return f"{texts[0]}.{number.value}"
    return f"{texts[0]}.{type_.record.branches[str(branch.value)].fields[number.value]}"


def _enclosed(term: logic.Term, text: str, least: int) -> str:
    return text if _precedence(term) >= least else f"({text})"


def _precedence(term: logic.Term) -> int:
    match term:
        case logic.Functor(name=name, arguments=arguments) if (
            name in syntax.PRECEDENCE and len(arguments) == 2
        ):
            return syntax.PRECEDENCE[name]
        case logic.Functor(name=name) if name in syntax.PREFIXES:
            return syntax.PREFIX_PRECEDENCE
        case logic.Constant() if print_term(term).startswith("-"):
            return syntax.PREFIX_PRECEDENCE
        case _:
            return _PRIMARY


def print_value(value: logic.Value, type_: Type | None = None) -> str:
    """Return a value as a literal.

    >>> print_value(date(2026, 11, 15)), print_value("a"), print_value(None)
    ('d"2026-11-15"', '"a"', 'null')
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            if type_ is not None and type_.is_interval:
                return f"to_months({value})"
            is_unsigned = type_ is not None and type_.domain == UNSIGNED.domain
            return f"{value}{'u' if is_unsigned else ''}"
        case Decimal():
            return _fraction(str(value))
        case float():
            written = _fraction(repr(value))
            return f"to_float32({written})" if type_ is not None and type_.is_float32 else written
        case str():
            if type_ is not None and type_.record is not None:
                return print_record(value, type_.record, SCALARS, print_value)
            return print_string(value)
        case bytes():
            return f'from_hex("{value.hex().upper()}")'
        case datetime():
            if value.tzinfo is None:
                return f'to_local(t"{value.isoformat()}Z")'
            return f't"{value.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"'
        case date():
            return f'd"{value.isoformat()}"'
        case time():
            return f"time_from_micros({to_stored(value)})"
        case timedelta():
            return f"to_duration({value // timedelta(microseconds=1)})"
        case tuple() if type_ is not None and type_.is_struct:
            named = zip(type_.members, value, strict=True)
            parts = (f"{print_string(name)}, {print_value(x, each)}" for (name, each), x in named)
            return f"struct({', '.join(parts)})"
        case tuple() if type_ is not None and type_.is_map:
            columns = zip(*value, strict=True) if value else [(), ()]
            lists = (
                f"array({', '.join(print_value(each, kind) for each in column)})"
                for column, (_, kind) in zip(columns, type_.members, strict=True)
            )
            return f"map_from_arrays({', '.join(lists)})"
        case tuple():
            element = None if type_ is None else type_.element
            return f"array({', '.join(print_value(each, element) for each in value)})"
        case _:
            assert_never(value)


def _fraction(text: str) -> str:
    """Return digits as a literal with a point or an exponent; NaN and infinity have no literal."""
    if not text.lstrip("-")[:1].isdigit():
        return f"to_float({print_string(text.lower())})"
    text = text.lower().replace("e+", "e")
    return text if "." in text or "e" in text else f"{text}e0"


# --- names and strings ----------------------------------------------------------------------------


def print_relation(name: str) -> str:
    """Return a relation's name, in backquotes where it needs them."""
    return name if syntax.is_bare_relation(name) else _backquoted(name)


def print_word(name: str) -> str:
    """Return a column's or parameter's name, in backquotes where it needs them."""
    return name if syntax.is_bare_word(name) else _backquoted(name)


def _backquoted(name: str) -> str:
    return f"`{name.translate(_QUOTED)}`"


def print_string(text: str) -> str:
    """Return a string literal."""
    return f'"{text.translate(_STRING)}"'


# --- normal form ---------------------------------------------------------------------------------


def print_literal(literal: logic.Literal) -> str:
    """Return a literal of a normal rule as text.

    >>> print_literal(logic.Literal("p", (logic.Variable("x"), logic.Wildcard()), negated=True))
    '!p(x, _)'
    """
    state = "" if literal.state is None else f"@{literal.state}"
    slots = ", ".join(print_term(slot) for slot in literal.slots)
    negation = "!" if literal.negated else ""
    return f"{negation}{literal.sign}{print_relation(literal.relation)}{state}({slots})"


def print_condition(condition: logic.Condition) -> str:
    """Return a condition of a normal rule as text; `is` is `=` where no side may be null."""
    sides = (condition.left, condition.right)
    may_be_null = any(side.type is not None and side.type.nullable for side in sides)
    has_null = any(isinstance(side, logic.Constant) and side.value is None for side in sides)
    is_plain = condition.operator == "is" and not may_be_null and not has_null
    return print_comparison("=" if is_plain else condition.operator, *sides)


def print_rule(rule: logic.Rule) -> str:
    """Return a normal rule as text, with its full stop."""
    head = print_literal(rule.head)
    body = [print_literal(literal) for literal in rule.literals]
    body += [print_condition(condition) for condition in rule.conditions]
    return f"{head} {_neck(rule)} {', '.join(body)}." if body else f"{head}."
