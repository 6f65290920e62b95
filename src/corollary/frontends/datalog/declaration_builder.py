"""Declarations and directives from the grammar's rules; the parser calls the methods."""
# ruff: noqa: D102 (each method is named after the rule of the grammar that it builds)

from dataclasses import replace

from corollary.core import program
from corollary.core.types import PLAIN_BRANCH
from corollary.errors import InputError
from corollary.frontends.datalog.lexer import Lexeme
from corollary.frontends.datalog.parse_nodes import (
    BracketedList,
    ChoiceDomains,
    ComponentDefinition,
    ComponentInstance,
    ComponentName,
    Item,
    Override,
    SpannedName,
    WrittenPlan,
    bracketed_list,
    span_between,
)


class DeclarationBuilder:
    """One method per rule of the grammar; items are tuples of nodes."""

    # --- declarations ---------------------------------------------------------------------------

    def declaration(
        self,
        start: Lexeme,
        names: tuple[SpannedName, ...],
        columns: BracketedList,
        qualifiers: tuple[Lexeme | BracketedList | ChoiceDomains, ...],
    ) -> tuple[Item, ...]:
        key: tuple[str, ...] = ()
        storage = ""
        hints: list[str] = []
        directives: list[str] = []
        domains: tuple[tuple[str, ...], ...] = ()
        end = columns.span
        for qualifier in qualifiers:
            end = qualifier.span
            if isinstance(qualifier, ChoiceDomains):
                domains = qualifier.domains
            elif isinstance(qualifier, BracketedList):
                if key:
                    raise InputError.of("C0101", "A relation has one `key` only.", end)
                key = tuple(str(word) for word in qualifier.items)
            elif qualifier.text in ("stored", "virtual"):
                if storage not in ("", qualifier.text):
                    message = "A relation is either `stored` or `virtual`."
                    raise InputError.of("C0101", message, end)
                storage = qualifier.text
            elif qualifier.text in ("input", "output", "printsize"):
                directives.append(qualifier.text)
            else:
                hints.append(qualifier.text)
        found: list[Item] = []
        for name in names:
            span = span_between(start.span if len(names) == 1 else name.span, end)
            found.append(
                program.Declaration(
                    name.name,
                    _columns(columns),
                    key,
                    storage,
                    tuple(hint for hint in hints if hint not in ("eqrel", "bag")),
                    "eqrel" in hints,
                    "bag" in hints,
                    span,
                    domains,
                )
            )
            found += [program.Directive(directive, name.name, (), span) for directive in directives]
        return tuple(found)

    def names(self, *names: SpannedName) -> tuple[SpannedName, ...]:
        return names

    def columns(self, *children: Lexeme | program.Column) -> BracketedList:
        return bracketed_list(children)

    def column(self, word: SpannedName, type_name: program.TypeName) -> program.Column:
        return program.Column(word.name, type_name, span_between(word.span, type_name.span))

    def qualifiers(
        self, *qualifiers: Lexeme | BracketedList | ChoiceDomains | None
    ) -> tuple[Lexeme | BracketedList | ChoiceDomains, ...]:
        return tuple(each for each in qualifiers if each is not None)

    def choice(
        self, start: Lexeme, _minus: Lexeme, _word: SpannedName, *domains: BracketedList
    ) -> ChoiceDomains:
        columns = tuple(tuple(str(word) for word in each.items) for each in domains)
        return ChoiceDomains(columns, span_between(start.span, domains[-1].span))

    def domain(self, word: SpannedName) -> BracketedList:
        return BracketedList((word.name,), word.span)

    def wide_domain(
        self, start: Lexeme, words: tuple[SpannedName, ...], end: Lexeme
    ) -> BracketedList:
        return BracketedList(tuple(word.name for word in words), span_between(start.span, end.span))

    def key(
        self, start: Lexeme, _: Lexeme, words: tuple[SpannedName, ...], end: Lexeme
    ) -> BracketedList:
        return self.wide_domain(start, words, end)

    words = names

    def plain_type(self, name: SpannedName) -> program.TypeName:
        return program.TypeName(name.name, span=name.span)

    def sized_type(self, name: SpannedName, _: Lexeme, *rest: Lexeme) -> program.TypeName:
        *digits, end = rest
        precision, scale = (*(_integer(digit) for digit in digits), 0)[:2]
        return program.TypeName(
            name.name, (precision, scale), span=span_between(name.span, end.span)
        )

    def array_type(self, start: Lexeme, element: program.TypeName, end: Lexeme) -> program.TypeName:
        span = span_between(start.span, end.span)
        return program.TypeName("array", span=span, members=(("element", _held(element)),))

    def struct_type(self, start: Lexeme, *rest: program.Column | Lexeme) -> program.TypeName:
        *columns, end = rest
        members = tuple(
            (each.name, _held(each.type)) for each in columns if isinstance(each, program.Column)
        )
        return program.TypeName("struct", span=span_between(start.span, end.span), members=members)

    def map_type(
        self, start: Lexeme, key: program.TypeName, value: program.TypeName, end: Lexeme
    ) -> program.TypeName:
        members = (("key", _held(key)), ("value", _held(value)))
        return program.TypeName("map", span=span_between(start.span, end.span), members=members)

    def type_name(self, base: program.TypeName) -> program.TypeName:
        return base

    def nullable(self, base: program.TypeName) -> program.TypeName:
        return replace(base, nullable=True)

    def old_type(self, start: Lexeme, name: SpannedName) -> tuple[Item, ...]:
        kind = "number" if start.text == ".number_type" else "symbol"
        span = span_between(start.span, name.span)
        return (
            program.TypeDeclaration(
                name.name, (program.TypeName(kind, span=name.span),), True, span
            ),
        )

    def subtype(self, start: Lexeme, name: SpannedName, base: program.TypeName) -> tuple[Item, ...]:
        return (
            program.TypeDeclaration(name.name, (base,), True, span_between(start.span, base.span)),
        )

    def union(
        self, start: Lexeme, name: SpannedName, _: Lexeme, *bases: program.TypeName
    ) -> tuple[Item, ...]:
        return (
            program.TypeDeclaration(
                name.name, bases, False, span_between(start.span, bases[-1].span)
            ),
        )

    def functor(
        self,
        start: Lexeme,
        name: SpannedName,
        parameters: BracketedList,
        result: program.TypeName,
        state: Lexeme | None = None,
    ) -> tuple[Item, ...]:
        end = result.span if state is None else state.span
        return (
            program.FunctorDeclaration(
                name.name,
                _columns(parameters),
                result,
                state is not None,
                span_between(start.span, end),
            ),
        )

    functor_parameters = fields = columns

    def unnamed_parameter(self, type_name: program.TypeName) -> program.Column:
        return program.Column("", type_name, type_name.span)

    def record_type(
        self, start: Lexeme, name: SpannedName, _: Lexeme, fields: BracketedList
    ) -> tuple[Item, ...]:
        record = program.BranchDeclaration(PLAIN_BRANCH, _columns(fields), fields.span)
        span = span_between(start.span, fields.span)
        return (program.TypeDeclaration(name.name, (), False, span, (record,)),)

    def algebraic_type(
        self, start: Lexeme, name: SpannedName, _: Lexeme, *branches: program.BranchDeclaration
    ) -> tuple[Item, ...]:
        span = span_between(start.span, branches[-1].span)
        return (program.TypeDeclaration(name.name, (), False, span, branches),)

    def branch(
        self, name: SpannedName, *children: Lexeme | program.Column
    ) -> program.BranchDeclaration:
        fields = bracketed_list(children)
        span = span_between(name.span, fields.span)
        return program.BranchDeclaration(name.name, _columns(fields), span)

    def dependency(
        self,
        start: Lexeme,
        name: SpannedName,
        _: Lexeme,
        determinants: tuple[SpannedName, ...],
        dependents: tuple[SpannedName, ...],
        end: Lexeme,
    ) -> tuple[Item, ...]:
        return (
            program.FunctionalDependency(
                name.name,
                tuple(word.name for word in determinants),
                tuple(word.name for word in dependents),
                span_between(start.span, end.span),
            ),
        )

    # --- directives -----------------------------------------------------------------------------

    def directive(
        self, start: Lexeme, names: tuple[SpannedName, ...], parameters: BracketedList | None = None
    ) -> tuple[Item, ...]:
        end = names[-1].span if parameters is None else parameters.span
        kind, pairs = start.text.removeprefix("."), _pairs(parameters)
        if kind == "output" and dict(pairs).get("IO") == "stdoutprintsize":
            kind, pairs = "printsize", ()
        return tuple(
            program.Directive(
                kind,
                name.name,
                pairs,
                span_between(start.span if len(names) == 1 else name.span, end),
            )
            for name in names
        )

    def parameters(self, *children: Lexeme | tuple[str, str]) -> BracketedList:
        return bracketed_list(children)

    def parameter(self, word: SpannedName, _: Lexeme, value: str) -> tuple[str, str]:
        return (word.name, value)

    def value(self, value: Lexeme | SpannedName) -> str:
        if isinstance(value, SpannedName):
            return value.name
        return str(value.value) if value.type == "STRING" else value.text

    def reaction(
        self,
        start: Lexeme,
        name: SpannedName,
        message: Lexeme,
        parameters: BracketedList | None = None,
    ) -> tuple[Item, ...]:
        span = span_between(start.span, message.span if parameters is None else parameters.span)
        kind, text = start.text.removeprefix("."), str(message.value)
        return (program.Reaction(kind, name.name, text, _pairs(parameters), span),)

    def plan(self, start: Lexeme, *orders: tuple[int, tuple[int, ...]]) -> tuple[Item, ...]:
        return (WrittenPlan(orders, start.span),)

    def plan_order(self, version: Lexeme, *rest: Lexeme) -> tuple[int, tuple[int, ...]]:
        return _integer(version), tuple(_integer(each) for each in rest if each.type == "INT")

    def pragma(self, start: Lexeme, *texts: Lexeme) -> tuple[Item, ...]:
        name, value = (*(str(text.value) for text in texts), "")[:2]
        return (program.Pragma(name, value, span_between(start.span, texts[-1].span)),)

    # --- components -----------------------------------------------------------------------------

    def component(
        self, _: Lexeme, head: ComponentName, *rest: ComponentName | Lexeme
    ) -> tuple[Item, ...]:
        return (
            ComponentDefinition(
                head, tuple(each for each in rest if isinstance(each, ComponentName))
            ),
        )

    def component_name(self, name: SpannedName, *rest: SpannedName | Lexeme) -> ComponentName:
        arguments = tuple(each for each in rest if isinstance(each, SpannedName))
        return ComponentName(name.name, arguments, span_between(name.span, (name, *rest)[-1].span))

    def instance(
        self, start: Lexeme, name: SpannedName, _: Lexeme, component: ComponentName
    ) -> tuple[Item, ...]:
        return (ComponentInstance(name, component, span_between(start.span, component.span)),)

    def override(self, _: Lexeme, names: tuple[SpannedName, ...]) -> tuple[Item, ...]:
        return tuple(map(Override, names))

    # --- names ----------------------------------------------------------------------------------

    def name(self, lexeme: Lexeme) -> SpannedName:
        return SpannedName(str(lexeme.value), lexeme.span)

    def word(self, lexeme: Lexeme) -> SpannedName:
        name = str(lexeme.value) if lexeme.type == "QUOTED" else lexeme.text
        return SpannedName(name, lexeme.span)


def _held(name: program.TypeName) -> program.TypeName:
    """Return the type of a member, which may be null in any case."""
    return replace(name, nullable=False)


def _columns(columns: BracketedList) -> tuple[program.Column, ...]:
    return tuple(column for column in columns.items if isinstance(column, program.Column))


def _pairs(parameters: BracketedList | None) -> tuple[tuple[str, str], ...]:
    items = () if parameters is None else parameters.items
    return tuple((pair[0], pair[1]) for pair in items if isinstance(pair, tuple))


def _integer(lexeme: Lexeme) -> int:
    assert isinstance(lexeme.value, int)
    return lexeme.value
