"""Components: `.init` puts the items of a component into the program, under names of their own.

    instance x = C<A>:   the items of C's bases, then those of C;
                         a relation, type or instance n that they declare becomes x.n,
                         a parameter of C what stands for it in A

A name that the instance does not declare is looked up where its component was written: in the
instance around it, and at last in the program. With `.override p`, the rules that bases have for
`p` are left out. What is made has the span of the component's text, and knows its `.init`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple

from corollary.analysis import traverse
from corollary.core import logic, program
from corollary.core.functors.conversions import CAST
from corollary.core.types import PLAIN_BRANCH
from corollary.data_class import dataclass
from corollary.errors import Diagnostic, InputError
from corollary.frontends.datalog.lexer import Lexeme
from corollary.frontends.datalog.parse_nodes import (
    ComponentDefinition,
    ComponentInstance,
    ComponentName,
    Item,
    Override,
)
from corollary.source import Span

INSTANCES_MAX_DEPTH = 50
"""How deeply instances may be nested, and components extend each other."""

OVERRIDABLE = "overridable"

_Used = tuple[object, ...]
"""A component, and what stands for its parameters."""


class _Argument(NamedTuple):
    """What stands for a parameter: the name of a type or component, and where it was written."""

    name: str
    scope: "_Scope"

    def component(self) -> "tuple[ComponentDefinition, _Arguments, _Scope] | None":
        """Return the component of this name."""
        return self.scope.component(self.name)


_Arguments = Mapping[str, _Argument]

ParseItems = Callable[[Sequence[Lexeme]], Sequence[Item]]
"""Returns the items of a text that was parsed before, without errors."""


def expand_components(items: Sequence[Item], parse_items: ParseItems) -> list[Item]:
    """Return the items of a program without components.

    Raises:
        InputError: with all errors in the use of components.
    """
    if not any(
        isinstance(item, ComponentDefinition | ComponentInstance | Override) for item in items
    ):
        return list(items)
    expansion = _Expansion(parse_items)
    scope = _Scope("", None)
    made = list(expansion.expand([_Layer(items, {})], scope, ()))
    if expansion.diagnostics:
        raise InputError(expansion.diagnostics)
    return made


@dataclass(slots=True)
class _Scope:
    """The names that a program or an instance declares.

    Attributes:
        prefix: comes before them.
        parent: where names are looked up that are not declared here.
        relations, types, branches, instances: those that are declared here.
        components: by name, with what stands for parameters where they are written.
    """

    prefix: str
    parent: "_Scope | None"
    relations: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    branches: set[str] = field(default_factory=set)
    instances: dict[str, Span] = field(default_factory=dict)
    components: dict[str, tuple[ComponentDefinition, _Arguments]] = field(default_factory=dict)

    def full(self, kind: str, name: str) -> str:
        """Return the full name of one of the `relations`, `types` or `branches`."""
        first = name.partition(".")[0]
        if name in getattr(self, kind) or (first != name and first in self.instances):
            return self.prefix + name
        return name if self.parent is None else self.parent.full(kind, name)

    def component(self, name: str) -> "tuple[ComponentDefinition, _Arguments, _Scope] | None":
        """Return a component, what stands for parameters around it, and where it is written."""
        found = self.components.get(name)
        if found is not None:
            return (*found, self)
        return None if self.parent is None else self.parent.component(name)

    def known_components(self) -> list[str]:
        """Return the names of the components that can be used here."""
        outer = [] if self.parent is None else self.parent.known_components()
        return sorted({*self.components, *outer})


@dataclass(frozen=True, slots=True)
class _Layer:
    """The items of a component in an instance.

    Attributes:
        arguments: what stands for the component's parameters, and for those around it.
    """

    items: Sequence[Item]
    arguments: _Arguments


@dataclass(slots=True)
class _Expansion:
    """The expansion of a program, with its errors."""

    parse_items: ParseItems
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def expand(
        self, layers: Sequence[_Layer], scope: _Scope, around: tuple[_Used, ...]
    ) -> Iterator[Item]:
        """Yield the items of an instance, or of the program.

        Args:
            layers: what they are.
            scope: the names that they declare.
            around: the components that instances around it are of.
        """
        for layer in layers:
            self._declare(layer, scope)
        for layer in layers:
            for item in layer.items:
                if isinstance(item, ComponentInstance):
                    yield from self._instantiate(item, layer, scope, around)
                elif isinstance(item, Override):
                    if scope.parent is None:
                        message = "`.override` is for components."
                        self._report("C0229", message, item.relation.span, "leave it out")
                elif isinstance(item, program.FunctorDeclaration) and scope.parent is not None:
                    message = f"The functor `{item.name}` is declared inside a component."
                    note = "move its `.functor` out of the component; its rules see it there"
                    self._report("C0258", message, item.span, note)
                elif not isinstance(item, ComponentDefinition):
                    yield _rename(item, layer, scope)

    def _declare(self, layer: _Layer, scope: _Scope) -> None:
        """Note the names that the items of an instance declare."""
        for item in layer.items:
            match item:
                case program.Declaration(name=name):
                    scope.relations.add(name)
                case program.TypeDeclaration(name=name, branches=branches):
                    scope.types.add(name)
                    scope.branches.update(each.name for each in branches)
                case ComponentInstance(name=instance):
                    if instance.name in scope.instances:
                        message = f"`{instance.name}` is initialised twice."
                        earlier = scope.instances[instance.name]
                        self._report("C0230", message, instance.span, "rename one", earlier)
                    scope.instances[instance.name] = instance.span
                case ComponentDefinition(head=head):
                    if head.name in scope.components and scope.parent is None:
                        message = f"The component `{head.name}` is defined twice."
                        earlier = scope.components[head.name][0].head.span
                        self._report("C0230", message, head.span, "rename one", earlier)
                    scope.components[head.name] = item, layer.arguments
                case _:
                    pass

    # --- instances -----------------------------------------------------------------------------

    def _instantiate(
        self, item: ComponentInstance, layer: _Layer, scope: _Scope, around: tuple[_Used, ...]
    ) -> Iterator[Item]:
        names = (item.component.name, *(each.name for each in item.component.arguments))
        component, *arguments = (_resolve(name, layer.arguments, scope) for name in names)
        used = (component.name, *((each.scope.prefix, each.name) for each in arguments))
        home = component.component()
        if used in around or len(around) >= INSTANCES_MAX_DEPTH:
            message = f"`{component.name}` is initialised inside of itself, without end."
            self._report("C0228", message, item.span, "leave it out")
            return
        layers = self._layers(item.component, layer.arguments, scope, item.span, ())
        if home is not None:
            inner = _Scope(f"{scope.prefix}{item.name.name}.", home[-1])
            yield from self.expand(layers, inner, (*around, used))

    def _layers(
        self,
        used: ComponentName,
        arguments: _Arguments,
        scope: _Scope,
        instance: Span,
        below: tuple[str, ...],
    ) -> list[_Layer]:
        """Return the layers of a component, those of its bases first."""
        name, _ = argument = _resolve(used.name, arguments, scope)
        found = argument.component()
        if found is None:
            known = scope.known_components()
            note = f"there are {', '.join(f'`{each}`' for each in known)}" if known else None
            self._report("C0226", f"There is no component `{name}`.", used.span, note)
            return []
        component, around, home = found
        if name in below:
            circle = " → ".join((*below[below.index(name) :], name))
            message = f"Components extend each other in a circle: {circle}."
            self._report("C0228", message, used.span, "leave out one of them")
            return []
        expected = component.head.arguments
        if len(expected) != len(used.arguments):
            message = (
                f"`{name}` has {len(expected)} parameters, and is used with {len(used.arguments)}."
            )
            wanted = ", ".join(each.name for each in expected)
            note = f"write one for each: `{name}<{wanted}>`" if expected else f"write `{name}`"
            self._report("C0227", message, used.span, note, component.head.span)
            return []
        values = (_resolve(each.name, arguments, scope) for each in used.arguments)
        names = (each.name for each in expected)
        bound = {**around, **dict(zip(names, values, strict=True))}
        bases = [
            layer
            for base in component.bases
            for layer in self._layers(base, bound, home, instance, (*below, name))
        ]
        lexemes = [
            replace(each, span=replace(each.span, instance=instance)) for each in component.body
        ]
        own = _Layer(self.parse_items(lexemes), bound)
        overridden = [each for each in own.items if isinstance(each, Override)]
        return [*self._override(bases, overridden, name), own]

    def _override(
        self, bases: list[_Layer], overridden: Sequence[Override], component: str
    ) -> list[_Layer]:
        """Return the layers of bases without the rules for relations that are overridden."""
        names = {each.relation.name for each in overridden}
        declared = {
            item.name: item
            for layer in bases
            for item in layer.items
            if isinstance(item, program.Declaration)
        }
        for relation in (each.relation for each in overridden):
            declaration = declared.get(relation.name)
            if declaration is None:
                message = f"No base of `{component}` declares `{relation.name}`."
                self._report("C0229", message, relation.span, "leave it out, or extend its base")
            elif OVERRIDABLE not in declaration.hints:
                message = f"`{relation.name}` cannot be overridden."
                note = f"write `{OVERRIDABLE}` after its declaration"
                self._report("C0229", message, relation.span, note, declaration.span)
        return [
            replace(layer, items=[item for item in layer.items if not _defines(item, names)])
            for layer in bases
        ]

    def _report(
        self,
        code: str,
        message: str,
        span: Span | None,
        note: str | None = None,
        related: Span | None = None,
    ) -> None:
        beside = () if related is None else ((related, "it is here"),)
        found = Diagnostic(code, message, span, note, beside)
        if found not in self.diagnostics:
            self.diagnostics.append(found)


def _resolve(name: str, arguments: _Arguments, scope: _Scope) -> _Argument:
    """Return what a name stands for, itself if it is not a parameter."""
    return arguments.get(name) or _Argument(name, scope)


def _defines(item: Item, names: set[str]) -> bool:
    """Whether an item is a rule or fact for one of some relations."""
    return isinstance(item, logic.Clause) and any(head.relation in names for head in item.heads)


# --- names ---------------------------------------------------------------------------------------


def _rename(item: Item, layer: _Layer, scope: _Scope) -> Item:
    """Return an item with full names."""
    if not scope.prefix and scope.parent is None:
        return item

    def atom(each: logic.Atom) -> logic.Atom:
        return replace(each, relation=scope.full("relations", each.relation))

    def branch(each: program.BranchDeclaration) -> program.BranchDeclaration:
        name = each.name if each.name == PLAIN_BRANCH else scope.prefix + each.name
        fields = tuple(replace(field, type=type_name(field.type)) for field in each.fields)
        return replace(each, name=name, fields=fields)

    def type_name(each: program.TypeName) -> program.TypeName:
        name, where = _resolve(each.name, layer.arguments, scope)
        return replace(each, name=where.full("types", name))

    def term(each: logic.Term) -> logic.Term:
        if isinstance(each, logic.Functor) and each.name.startswith("$"):
            return replace(each, name=f"${scope.full('branches', each.name[1:])}")
        if not isinstance(each, logic.Functor) or each.name != CAST:
            return each
        value, named = each.arguments
        assert isinstance(named, logic.Constant)
        name = type_name(program.TypeName(str(named.value))).name
        return replace(each, arguments=(value, replace(named, value=name)))

    match item:
        case logic.Clause():
            other = None if item.dominating is None else atom(item.dominating)
            return replace(traverse.map_clause(item, term, atom), dominating=other)
        case program.Declaration(columns=columns):
            typed = tuple(replace(each, type=type_name(each.type)) for each in columns)
            hints = tuple(each for each in item.hints if each != OVERRIDABLE)
            return replace(item, name=scope.prefix + item.name, columns=typed, hints=hints)
        case program.TypeDeclaration(bases=bases):
            return replace(
                item,
                name=scope.prefix + item.name,
                bases=tuple(map(type_name, bases)),
                branches=tuple(map(branch, item.branches)),
            )
        case program.FunctionalDependency() | program.Directive() | program.Reaction():
            return replace(item, relation=scope.full("relations", item.relation))
        case _:
            return item
