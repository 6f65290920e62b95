"""Random programs with databases and updates, as hypothesis strategies.

Every program is valid by construction: a relation reads only base relations, relations made before
it, and (positively) itself, so it is stratified; variables are typed when an atom binds them, and
literals are added only over bound variables, so every rule is safe. Domains are small, so that
joins hit; values made by arithmetic are bounded, so that recursion ends.

    Case.text      declarations and rules (facts of base relations are not in the text)
    Case.facts     tuples of the base relations
    Case.features  which of `FEATURES` the program uses
    Case.base      column types of the base relations
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, TypeAlias, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = dict[str, set[Row]]

VALUES: dict[str, tuple[Any, ...]] = {
    "number": (0, 1, 2, 3, 4, 5),
    "symbol": ("a", "b", "c", "d", "e"),
    "unsigned": (0, 1, 2, 3, 4, 5),
    "float": (0.0, 0.5, 1.0, 2.5, -1.5, math.inf, math.nan),
    "decimal": tuple(map(Decimal, ("0.00", "0.50", "1.25", "2.00", "-1.10"))),
    "bool": (False, True),
    "date": (date(2026, 11, 15), date(2026, 11, 16), date(2027, 1, 1)),
}
RARE = ("float", "decimal", "unsigned", "bool", "date")
NUMERIC = ("number", "unsigned", "float", "decimal")
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")

FEATURES = (
    "aggregate", "aggregate_count", "aggregate_max", "aggregate_mean", "aggregate_min",
    "aggregate_nested", "aggregate_of_aggregate", "aggregate_sum", "arithmetic", "choice",
    "comparison", "constant", "disjunction", "eqrel", "group_key", "head_constant",
    "head_expression",
    "multi_head", "negation", "nullable", "nullary", "range", "rare_type", "recursion",
    "recursion_arithmetic", "recursion_linear", "recursion_mutual", "recursion_nonlinear",
    "is", "null_safe", "repeated_variable", "string", "wildcard", "window",
)  # fmt: skip

# Kinds of arithmetic whose results stay small however often they are applied one after another.
EXPRESSIONS = {
    "number": (
        "({x} + {y}) % 7", "{x} * {y} % 11", "max({x}, {y})", "min({x}, 3)", "{x} band 3",
        "({x} - {y}) / 2", "-{x}", "{x} % 5 + 1", "({x} % 4) ^ 2", "({x} bshl 1) % 16",
        "({x} bxor {y}) % 8", "{x} lor {y}", "lnot({x})", "to_number(to_string({x}))", "bnot {x}",
    ),
    "unsigned": ("({x} + {y}) % 7", "max({x}, 2)", "{x} bor 1", "{x} / 2", "{x} bshr 1"),
    "float": ("max({x}, {y})", "{x} * 0.5", "min({x}, 1.0)", "{x} / 4.0", "-{x}"),
    "decimal": ("min({x}, {y})", "{x} * 0.5", "{x} / 3", "-{x}", "{x} * 0.25 + 1.10"),
    "symbol": ('cat(substr({x}, 0, 2), {y})', "substr({x}, 1, 2)", "max({x}, {y})"),
}  # fmt: skip
# Conditions and values that decide about null themselves; {c} compares, {z} is a literal.
CHOSEN_CONDITIONS = (
    "or(is_null({x}), {c}({x}, {z})) = true", "and(same({x}, {y}), not({c}({x}, {z}))) = false",
    "if({c}({x}, {z}), is_null({y}), true) = true", "is_null({x}) = {c}({y}, {z})",
    "not(or({c}({x}, {y}), {c}({y}, {z}))) != true",
)  # fmt: skip
CHOSEN_VALUES = (
    "coalesce({x}, {z})", "if({c}({x}, {z}), {z}, {x})", "greatest({x}, {y}, {z})",
    "coalesce(null_if({x}, {y}), {z})", "if(is_null({x}), {y}, {c}({x}, {z}), null, {x})",
)  # fmt: skip
CHOSEN_NUMBERS = (
    "if(eq({y}, 0), 0, {x} / {y})", "coalesce(try({x} / {y}), -1)", "round_to({x}, -1) % 50",
    "if(and(ne({y}, 0), gt({x} / {y}, 1)), 1, 0)", "coalesce(try(to_integer({x} * 90, 8)), 0) % 9",
)  # fmt: skip
# What is left in simple programs: the fragment that other solvers share.
SIMPLE = (
    "add_comparison", "add_negation", "add_disjunction", "make_linear", "make_nonlinear",
    "make_mutual", "make_counter", "make_nullary", "make_multi_head",
)  # fmt: skip
FRAMED = ("count", "sum", "min", "max", "first_value", "last_value", "nth_value")
# From one type to another: (source, result, text).
CONVERSIONS = (
    ("symbol", "number", "strlen({x})"),
    ("symbol", "number", "ord({x}) % 5"),
    ("number", "symbol", "to_string({x} % 3)"),
    ("number", "float", "to_float({x})"),
    ("number", "unsigned", "to_unsigned({x} * {x} % 9)"),
    ("unsigned", "number", "to_number({x})"),
    ("decimal", "number", "to_number({x}) % 5"),
    ("date", "symbol", "to_string({x})"),
    ("bool", "number", "to_number({x})"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A program, its database, and what it exercises."""

    text: str
    facts: Rows
    features: frozenset[str]
    base: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation with its column types; `?` at the end of a type means nullable."""

    name: str
    types: tuple[str, ...]
    has_aggregate: bool = False


def primitive(type_: str) -> str:
    return type_.rstrip("?")


def spelled(type_: str, precision: int = 38) -> str:
    """The type as a declaration writes it."""
    return type_.replace("decimal", f"decimal({precision},2)")


def render(value: Any) -> str:
    """A value as a literal."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date):
        return f'd"{value.isoformat()}"'
    return f'"{value}"' if isinstance(value, str) else str(value)


def literals(type_: str) -> tuple[Any, ...]:
    """The values of a type that can be written."""
    return tuple(v for v in VALUES[primitive(type_)] if v == v and v != math.inf)  # noqa: PLR0124


def values(type_: str) -> st.SearchStrategy[Any]:
    known = st.sampled_from(VALUES[primitive(type_)])
    return st.one_of(known, known, st.none()) if type_.endswith("?") else known


def rows(types: tuple[str, ...]) -> st.SearchStrategy[Row]:
    return st.tuples(*(values(type_) for type_ in types))


class Body:
    """A rule body that grows literal by literal, with the types of the variables bound so far."""

    def __init__(self, maker: Maker) -> None:
        self.maker = maker
        self.literals: list[str] = []
        self.types: dict[str, str] = {}
        self.made = 0
        self.has_aggregate = False

    def text(self) -> str:
        return ", ".join(self.maker.shuffled(self.literals))

    def fresh(self, type_: str) -> str:
        name = f"v{self.made}"
        self.made += 1
        self.types[name] = type_
        return name

    def bound(self, type_: str) -> list[str]:
        """Variables that may stand where a value of this type is asked for."""
        return [v for v, t in self.types.items() if primitive(t) == primitive(type_)]

    def atom(self, relation: Relation, binds: bool = True, local: str = "") -> str:
        """An atom over bound variables, constants, `_`, and (if it may bind) new variables."""
        maker, seen = self.maker, set(self.types)
        args: list[str] = []
        for type_ in relation.types:
            bound = self.bound(type_)
            joins = bool(bound) and maker.chance(60 if seen & set(args) == set() else 35)
            if joins:
                choice = maker.pick(bound)
                if choice in args:
                    maker.features.add("repeated_variable")
            elif maker.chance(25):
                choice = self.constant(type_)
            elif not binds or maker.chance(15):
                choice = "_"
                maker.features.add("wildcard")
            else:
                choice = self.fresh(type_) if not local else f"{local}{len(args)}"
            args.append(choice)
        return f"{relation.name}({', '.join(args)})"

    def constant(self, type_: str) -> str:
        self.maker.features.add("constant")
        nulls = (None,) if type_.endswith("?") else ()
        return render(self.maker.pick((*literals(type_), *nulls)))

    def add_atoms(self, relations: Sequence[Relation], count: int) -> None:
        """The first atom binds at least one variable, if any relation has columns."""
        first = self.maker.pick([r for r in relations if r.types])
        args = [self.fresh(t) for t in first.types]
        if len(args) > 1 and self.maker.chance(20):
            args[-1] = "_"
            self.types.popitem()
            self.maker.features.add("wildcard")
        elif len(args) > 1 and self.maker.chance(40) and first.types[0] == first.types[1]:
            del self.types[args[1]]
            args[1] = args[0]
            self.maker.features.add("repeated_variable")
        self.literals.append(f"{first.name}({', '.join(args)})")
        for _ in range(count - 1):
            self.literals.append(self.atom(self.maker.pick(relations)))

    def decorate(self, relations: Sequence[Relation]) -> None:
        """Perhaps one literal of each kind."""
        maker = self.maker
        for odds, add in (
            (35, self.add_arithmetic),
            (45, self.add_string),
            (35, self.add_comparison),
            (25, self.add_is),
            (60, self.add_choice),
            (35, self.add_negation),
            (40, self.add_disjunction),
            (50, self.add_range),
            (65, self.add_aggregate),
            (50, self.add_aggregate),
        ):
            if maker.chance(odds) and (add.__name__ in SIMPLE or not maker.simple):
                add(relations)

    def assign(self, type_: str, expression: str) -> None:
        name = self.fresh(type_)
        self.literals.append(f"{name} = {expression}")

    def add_arithmetic(self, _: Sequence[Relation]) -> None:
        choices = [t for t in NUMERIC if self.bound(t)]
        if choices:
            type_ = self.maker.pick(choices)
            template = self.maker.pick(EXPRESSIONS[type_])
            bound = self.bound(type_)
            x, y = self.maker.pick(bound), self.maker.pick(bound)
            self.maker.features.add("arithmetic")
            self.assign(type_, template.format(x=x, y=y))

    def add_string(self, _: Sequence[Relation]) -> None:
        maker, symbols = self.maker, self.bound("symbol")
        conversions = [c for c in CONVERSIONS if self.bound(c[0])]
        if symbols and maker.chance(35):
            test = maker.pick(
                ('match("[a-c].*", {x})', 'contains("a", {x})', '!contains("b", {x})')
            )
            self.literals.append(test.format(x=maker.pick(symbols)))
        elif symbols and maker.chance(50):
            template = maker.pick(EXPRESSIONS["symbol"])
            self.assign("symbol", template.format(x=maker.pick(symbols), y=maker.pick(symbols)))
        elif conversions:
            source, result, template = maker.pick(conversions)
            self.assign(result, template.format(x=maker.pick(self.bound(source))))
            if "symbol" not in (source, result):
                return
        else:
            return
        maker.features.add("string")

    def comparison(self) -> str:
        name = self.maker.pick(list(self.types))
        type_ = self.types[name]
        others = [v for v in self.bound(type_) if v != name]
        if others and self.maker.chance(50):
            other = self.maker.pick(others)
        else:
            other = render(self.maker.pick(literals(type_)))
        return f"{name} {self.maker.pick(COMPARISONS)} {other}"

    def add_comparison(self, _: Sequence[Relation]) -> None:
        self.maker.features.add("comparison")
        negated = self.maker.chance(15)
        self.literals.append(f"!({self.comparison()})" if negated else self.comparison())

    def add_is(self, _: Sequence[Relation]) -> None:
        """A test that accepts null, or a new variable that may be null."""
        maker = self.maker
        maker.features.add("is")
        name = maker.pick(list(self.types))
        type_ = self.types[name]
        choices = [*self.bound(type_), self.constant(type_), "null"]
        if maker.chance(40):
            self.literals.append(f"{self.fresh(type_)} is {name}")
        elif maker.chance(30):
            self.literals.append(f"({name} is {maker.pick(choices)} ; {name} = {name})")
        else:
            sign = "!" if maker.chance(50) else ""
            self.literals.append(f"{sign}({name} is {maker.pick(choices)})")

    def add_choice(self, _: Sequence[Relation]) -> None:
        """A condition that is a value, or a new variable that is chosen."""
        maker = self.maker
        maker.features.add("choice")
        x = maker.pick(list(self.types))
        type_ = self.types[x]
        if primitive(type_) == "number" and maker.chance(35):
            y = maker.pick(self.bound(type_))
            self.assign("number", maker.pick(CHOSEN_NUMBERS).format(x=x, y=y))
            return
        is_value = maker.chance(50)
        made = maker.pick(CHOSEN_VALUES if is_value else CHOSEN_CONDITIONS).format(
            x=x,
            y=maker.pick(self.bound(type_)),
            z=render(maker.pick(literals(type_))),
            c=maker.pick(("eq", "ne", "lt", "le", "gt", "ge")),
        )
        if is_value:
            self.assign(primitive(type_), made)
        else:
            self.literals.append(made)

    def add_negation(self, relations: Sequence[Relation]) -> None:
        self.maker.features.add("negation")
        self.literals.append("!" + self.atom(self.maker.pick(relations), binds=False))

    def add_disjunction(self, relations: Sequence[Relation]) -> None:
        """Branches over bound variables; or both bind the same new variable."""
        maker = self.maker
        maker.features.add("disjunction")
        atom = self.atom(maker.pick(relations), binds=False)
        if maker.chance(40):
            x = maker.pick(list(self.types))
            new = self.fresh(self.types[x])
            low = render(maker.pick(literals(self.types[x])))
            self.literals.append(f"({new} = {x} ; {new} = {low}, {atom})")
        else:
            other = self.comparison()
            self.literals.append(f"({other} ; {'!' if maker.chance(20) else ''}{atom})")

    def add_range(self, _: Sequence[Relation]) -> None:
        self.maker.features.add("range")
        bound = self.bound("number")
        stop = f"{self.maker.pick(bound)} % 4" if bound and self.maker.chance(60) else "3"
        self.assign("number", f"range({self.maker.pick(('0', '1', '5'))}, {stop})")

    def add_aggregate(self, relations: Sequence[Relation]) -> None:
        """`c = op target : { atom, ... }` with outer variables as keys and locals `w0`, `w1`."""
        maker = self.maker
        op = maker.pick(("sum", "mean", "min", "max", "count"))
        numeric = op in ("sum", "mean")
        columns = [
            (relation, i)
            for relation in relations
            for i, type_ in enumerate(relation.types)
            if not numeric or primitive(type_) in NUMERIC
        ]
        if not columns:
            op, columns = "count", [(r, 0) for r in relations if r.types]
        relation, i = maker.pick(columns)
        target, types = f"w{i}", {f"w{i}": primitive(relation.types[i])}
        args = self.aggregate_arguments(relation, i, types)
        body = [f"{relation.name}({', '.join(args)})"]
        if maker.chance(25) and literals(types[target]):
            low = render(maker.pick(literals(types[target])))
            body.append(f"{target} {maker.pick(COMPARISONS[1:])} {low}")
        if maker.chance(45):
            target = self.nested_aggregate(relations, types, body, target)
        result = {"count": "number", "mean": "float"}.get(op, types[target])
        maker.features |= {"aggregate", f"aggregate_{op}"}
        if relation.has_aggregate:
            maker.features.add("aggregate_of_aggregate")
        self.has_aggregate = True
        head = "count" if op == "count" else f"{op} {target}"
        self.assign(result, f"{head} : {{ {', '.join(body)} }}")

    def aggregate_arguments(self, relation: Relation, i: int, types: dict[str, str]) -> list[str]:
        args = []
        for j, type_ in enumerate(relation.types):
            keys = self.bound(type_)
            if j == i:
                args.append(f"w{j}")
            elif keys and self.maker.chance(60):
                args.append(self.maker.pick(keys))
                self.maker.features.add("group_key")
            elif self.maker.chance(35):
                args.append("_")
                self.maker.features.add("wildcard")
            else:
                args.append(f"w{j}")
                types[f"w{j}"] = primitive(type_)
        return args

    def nested_aggregate(
        self, relations: Sequence[Relation], types: dict[str, str], body: list[str], target: str
    ) -> str:
        """Add `n = count : { r(..., w, ...) }` inside; the outer target becomes n."""
        fitting = [
            (r, i)
            for r in relations
            for i, t in enumerate(r.types)
            if primitive(t) == types[target]
        ]
        relation, i = self.maker.pick(fitting)
        args = ["_"] * len(relation.types)
        args[i] = target
        body.append(f"n = count : {{ {relation.name}({', '.join(args)}) }}")
        types["n"] = "number"
        self.maker.features |= {"aggregate_nested", "aggregate_count"}
        return "n"


class Maker:
    """Draws one program; `relations` grows from the base relations upwards."""

    def __init__(self, draw: st.DrawFn, simple: bool, windowed: int | None = 0) -> None:
        self.draw = draw
        self.simple, self.windowed = simple, windowed or 0
        self.has_windows = windowed is not None
        self.has_first = self.has_windows and self.chance(50)
        self.features: set[str] = set()
        self.relations: list[Relation] = []
        self.derived = 0
        self.lines: list[str] = []

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def pick(self, choices: Sequence[T]) -> T:
        return self.draw(st.sampled_from(choices))

    def shuffled(self, items: list[T]) -> list[T]:
        return self.draw(st.permutations(items)) if len(items) > 1 else items

    def declare(self, types: tuple[str, ...], word: str = "", aggregate: bool = False) -> Relation:
        relation = Relation(f"d{self.derived}", types, aggregate)
        self.derived += 1
        columns = ", ".join(f"c{i}: {spelled(t)}" for i, t in enumerate(types))
        self.lines.append(f".decl {relation.name}({columns}) {word}".rstrip())
        return relation

    def base_type(self) -> str:
        common = "number" if self.chance(55) else "symbol"
        if self.simple:
            return common
        type_ = self.pick(RARE) if self.chance(20) else common
        nullable = self.chance(20)
        if type_ in RARE:
            self.features.add("rare_type")
        if nullable:
            self.features.add("nullable")
        return type_ + "?" * nullable

    def make_base(self) -> Rows:
        """Two to four base relations; the first can always be a graph."""
        facts: Rows = {}
        node = self.pick(("number", "symbol"))
        arities = [self.pick((1, 2, 2, 3)) for _ in range(self.pick((1, 2, 3)))]
        schemas = [(node, node), *(tuple(self.base_type() for _ in range(a)) for a in arities)]
        for i, types in enumerate(schemas):
            relation = Relation(f"b{i}", types)
            columns = ", ".join(f"c{j}: {spelled(t, 6)}" for j, t in enumerate(types))
            self.lines.append(f".decl {relation.name}({columns})")
            self.relations.append(relation)
            facts[relation.name] = self.draw(
                st.sets(rows(types), min_size=2 if i < 2 else 0, max_size=7)
            )
        return facts

    def neck(self) -> str:
        """`:-`, or `:=` where null joins null."""
        if self.simple or not self.chance(25):
            return ":-"
        self.features.add("null_safe")
        return ":="

    def edges(self, nullable: bool = True) -> tuple[str, str]:
        """An atom template with `{x}` and `{y}` at two columns of one type, and that type."""
        choices = [
            (relation, i, j)
            for relation in self.relations
            for i, left in enumerate(relation.types)
            for j, right in enumerate(relation.types)
            if i != j and primitive(left) == primitive(right)
            and (nullable or not (left + right).count("?"))
        ]  # fmt: skip
        relation, i, j = self.pick(choices)
        args = ["_"] * len(relation.types)
        args[i], args[j] = "{x}", "{y}"
        type_ = primitive(relation.types[i])
        if "?" in relation.types[i] + relation.types[j]:
            type_ += "?"
        return f"{relation.name}({', '.join(args)})", type_

    def fitting_edges(self, type_: str) -> str:
        """An edge template of a given type; the one that is sure to exist is the caller's own."""
        for _ in range(3):
            template, found = self.edges()
            if found == type_:
                return template
        return ""

    # kinds of derived relations; each returns what later ones may read

    def make_linear(self) -> Iterator[Relation]:
        self.features |= {"recursion", "recursion_linear"}
        edge, type_ = self.edges()
        step = self.fitting_edges(type_) or edge
        made = self.declare((type_, type_))
        name = made.name
        self.lines.append(f"{name}(x, y) {self.neck()} {edge.format(x='x', y='y')}.")
        extra = self.pick(("", ", x != z", self.filter_on(type_, "z"), self.filter_on(type_, "y")))
        if self.chance(50):
            self.lines.append(
                f"{name}(x, z) {self.neck()} {name}(x, y), {step.format(x='y', y='z')}{extra}."
            )
        else:
            self.lines.append(
                f"{name}(x, z) {self.neck()} {step.format(x='x', y='y')}, {name}(y, z){extra}."
            )
        yield made

    def filter_on(self, type_: str, name: str) -> str:
        """A negated atom on one variable, if some relation has a column for it."""
        choices = [
            (r, i) for r in self.relations for i, t in enumerate(r.types) if t == type_
        ]  # fmt: skip
        if not choices:
            return ""
        relation, i = self.pick(choices)
        args = ["_"] * len(relation.types)
        args[i] = name
        if len(args) > 1:
            args[i - 1] = render(self.pick(literals(relation.types[i - 1])))
            self.features.add("constant")
        self.features.add("negation")
        return f", !{relation.name}({', '.join(args)})"

    def make_nonlinear(self) -> Iterator[Relation]:
        self.features |= {"recursion", "recursion_nonlinear"}
        edge, type_ = self.edges()
        made = self.declare((type_, type_))
        name = made.name
        self.lines.append(f"{name}(x, y) {self.neck()} {edge.format(x='x', y='y')}.")
        if self.chance(30):
            self.features.add("disjunction")
            self.lines.append(
                f"{name}(x, z) {self.neck()} {name}(x, y), ({name}(y, z) ; {name}(z, y))."
            )
        else:
            self.lines.append(f"{name}(x, z) {self.neck()} {name}(x, y), {name}(y, z).")
        yield made

    def make_mutual(self) -> Iterator[Relation]:
        self.features |= {"recursion", "recursion_mutual"}
        edge, type_ = self.edges()
        step = self.fitting_edges(type_) or edge
        odd, even = self.declare((type_, type_)), self.declare((type_, type_))
        self.lines += [
            f"{odd.name}(x, y) :- {edge.format(x='x', y='y')}.",
            f"{even.name}(x, z) :- {odd.name}(x, y), {step.format(x='y', y='z')}.",
            f"{odd.name}(x, z) :- {even.name}(x, y), {edge.format(x='y', y='z')}.",
        ]
        if self.chance(30):
            self.lines.append(
                f"{even.name}(x, y) {self.neck()} {even.name}(y, x), {odd.name}(x, y)."
            )
        yield odd
        yield even

    def make_counter(self) -> Iterator[Relation]:
        """Recursion that makes new values, guarded so that it ends."""
        self.features |= {"recursion", "recursion_arithmetic", "arithmetic", "comparison"}
        edge, type_ = self.edges()
        if self.chance(50):
            made = self.declare((type_, "number"))
            name = made.name
            self.lines.append(f"{name}(x, 0) {self.neck()} {edge.format(x='x', y='_')}.")
            step = f"{name}(x, n), {edge.format(x='x', y='y')}, n < {self.pick((2, 3, 4))}"
            self.lines.append(f"{name}(y, n + 1) {self.neck()} {step}.")
            self.features |= {"head_constant", "head_expression"}
        elif self.simple or self.chance(60):
            made = self.declare(("number",))
            self.lines.append(f"{made.name}({self.pick((0, 1, 3))}).")
            self.lines.append(
                f"{made.name}(x + {self.pick((1, 2, 3))}) {self.neck()} {made.name}(x), x < 20."
            )
            self.features |= {"head_constant", "head_expression"}
        else:
            self.features.add("string")
            made = self.declare(("symbol",))
            self.lines.append(f'{made.name}("a").')
            self.lines.append(f'{made.name}(cat(x, "b")) :- {made.name}(x), strlen(x) < 4.')
            self.features |= {"head_constant", "head_expression"}
        yield made

    def make_eqrel(self) -> Iterator[Relation]:
        self.features.add("eqrel")
        edge, type_ = self.edges(nullable=False)
        made = self.declare((type_, type_), "eqrel")
        guard = ", x <= y" if self.chance(40) else ""
        self.lines.append(f"{made.name}(x, y) {self.neck()} {edge.format(x='x', y='y')}{guard}.")
        yield made

    def make_nullary(self) -> Iterator[Relation]:
        self.features.add("nullary")
        made = self.declare(())
        body = Body(self)
        body.add_atoms(self.relations, 1)
        body.add_comparison(self.relations)
        self.lines.append(f"{made.name}() {self.neck()} {body.text()}.")
        yield made

    def make_multi_head(self) -> Iterator[Relation]:
        self.features.add("multi_head")
        body = Body(self)
        body.add_atoms(self.relations, self.pick((1, 2)))
        body.decorate(self.relations)
        heads, made = [], []
        for _ in range(2):
            args, types = self.head(body)
            made.append(self.declare(types, aggregate=body.has_aggregate))
            heads.append(f"{made[-1].name}({', '.join(args)})")
        self.lines.append(f"{', '.join(heads)} {self.neck()} {body.text()}.")
        yield from made

    def make_totals(self) -> Iterator[Relation]:
        """An aggregate per key, and an aggregate over these."""
        self.features |= {"aggregate", "aggregate_of_aggregate", "group_key"}
        edge, type_ = self.edges(nullable=False)
        op = self.pick(("count", "max", *(["sum"] if type_ in NUMERIC else [])))
        target = "count" if op == "count" else f"{op} y"
        first = self.declare((type_, "number" if op == "count" else type_), aggregate=True)
        inner = f"c = {target} : {{ {edge.format(x='x', y='y')} }}"
        self.lines.append(f"{first.name}(x, c) {self.neck()} {edge.format(x='x', y='_')}, {inner}.")
        over = self.pick(("min", "max", *(["sum", "mean"] if first.types[1] in NUMERIC else [])))
        self.features |= {f"aggregate_{op}", f"aggregate_{over}"}
        second = self.declare(("float" if over == "mean" else first.types[1],), aggregate=True)
        self.lines.append(
            f"{second.name}(c) {self.neck()} c = {over} n : {{ {first.name}(x, n) }}."
        )
        yield first
        yield second

    def make_window(self) -> Iterator[Relation]:
        """Window functions of each tuple, and the first tuples by one of them."""
        self.features.add("window")
        source = self.pick([each for each in self.relations if each.types])
        row = [f"x{at}" for at in range(len(source.types))]
        over = self.over(len(row))
        types, items, values = list(source.types), [], []
        for number in range(self.pick((1, 1, 2))):
            if self.chance(20):
                over = self.over(len(row))
            text, type_ = self.window_function(source)
            frame = self.frame() if "order by" in over and text.startswith(FRAMED) else ""
            equal = "is" if type_.endswith("?") else "="
            terms = ", ".join(row)
            items.append(f'v{number} {equal} window("{text} over ({over}{frame})", {terms})')
            values.append(f"v{number}")
            types.append(type_)
        made = self.declare(tuple(types), aggregate=source.has_aggregate)
        body = ", ".join((f"{source.name}({', '.join(row)})", *items))
        self.lines.append(f"{made.name}({', '.join((*row, *values))}) :- {body}.")
        yield made
        if self.has_first and types[-1] == "number":
            self.features.add("comparison")
            first = self.declare(source.types, aggregate=source.has_aggregate)
            known = ", ".join((*row, *("_" for _ in values[1:]), "v"))
            bound = self.pick(("v <= 2", "v < 4", "v = 1"))
            self.lines.append(
                f"{first.name}({', '.join(row)}) {self.neck()} {made.name}({known}), {bound}."
            )
            yield first

    def over(self, width: int) -> str:
        """The partition and the order of windows."""
        terms = self.shuffled([f"${at + 1}" for at in range(width)])
        cut = self.pick((0, 0, 1))
        parts = [f"partition by {', '.join(terms[:cut])}"] if cut and terms[:cut] else []
        how = ("", " desc", " desc nulls first", " nulls last")
        ordered = [f"{each}{self.pick(how)}" for each in terms[cut : cut + self.pick((1, 2))]]
        if ordered and self.chance(85):
            parts.append(f"order by {', '.join(ordered)}")
        return " ".join(parts)

    def frame(self) -> str:
        return self.pick(
            ("", " rows between unbounded preceding and current row",
             " rows between 1 preceding and 1 following",
             " rows between 3 preceding and 2 preceding",
             " rows between 1 following and unbounded following",
             " range between current row and unbounded following",
             " range between unbounded preceding and unbounded following")
        )  # fmt: skip

    def window_function(self, source: Relation) -> tuple[str, str]:
        """A window function over a relation, and the type of its values."""
        at = self.pick(range(len(source.types)))
        type_ = source.types[at]
        nullable = f"{primitive(type_)}?"
        choices = [
            ("row_number()", "number"), ("rank()", "number"), ("dense_rank()", "number"),
            (f"lag(${at + 1})", nullable), (f"lead(${at + 1}, 2)", nullable),
            (f"lag(${at + 1}, 1, ${at + 1})", type_),
            ("count()", "number"), (f"count(${at + 1})", "number"),
            (f"min(${at + 1})", nullable), (f"max(${at + 1})", nullable),
            (f"first_value(${at + 1})", nullable), (f"last_value(${at + 1})", nullable),
            (f"nth_value(${at + 1}, 2)", nullable), (f"lag(${at + 1}) ignore nulls", nullable),
            (f"last_value(${at + 1}) ignore nulls", nullable),
        ]  # fmt: skip
        if primitive(type_) == "number":
            choices.append((f"bit_xor(${at + 1})", nullable))
        if primitive(type_) in NUMERIC:
            choices += [(f"sum(${at + 1})", primitive(type_))] * 2
        return self.pick(choices)

    def make_rules(self) -> Iterator[Relation]:
        """One or two rules with everything; the second fits the columns of the first."""
        body = Body(self)
        body.add_atoms(self.relations, self.pick((1, 2, 2, 3)))
        body.decorate(self.relations)
        args, types = self.head(body)
        made = self.declare(types, aggregate=body.has_aggregate)
        self.lines.append(f"{made.name}({', '.join(args)}) {self.neck()} {body.text()}.")
        if self.chance(35):
            second = Body(self)
            second.add_atoms(self.relations, self.pick((1, 2)))
            second.decorate(self.relations)
            args = []
            for type_ in types:
                fitting = [v for v in second.bound(type_) if second.types[v] in (type_, type_[:-1])]
                if type_.endswith("?") and not fitting:
                    fitting = second.bound(type_)
                args.append(self.pick(fitting) if fitting else self.head_constant(type_))
            self.lines.append(f"{made.name}({', '.join(args)}) {self.neck()} {second.text()}.")
        if self.chance(15):
            args = [self.head_constant(type_) for type_ in types]
            self.lines.append(f"{made.name}({', '.join(args)}).")
        yield made

    def head_constant(self, type_: str) -> str:
        self.features.add("head_constant")
        nulls = (None,) if type_.endswith("?") else ()
        return render(self.pick((*literals(type_), *nulls)))

    def head(self, body: Body) -> tuple[list[str], tuple[str, ...]]:
        """One to three arguments over the variables of a body, the newest among them."""
        args, types = [], []
        names = list(body.types)
        for position in range(self.pick((1, 2, 2, 3))):
            name = names[-1] if position == 0 else self.pick(names)
            type_ = body.types[name]
            if position and self.chance(12):
                name = self.head_constant(type_)
            elif primitive(type_) == "number" and self.chance(15):
                self.features |= {"head_expression", "arithmetic"}
                name = f"{name} + 1"
            args.append(name)
            types.append(type_)
        return args, tuple(types)

    def make(self) -> Case:
        facts = self.make_base()
        base = {relation.name: relation.types for relation in self.relations}
        kinds = [
            (1, self.make_nullary), (2, self.make_mutual), (2, self.make_multi_head),
            (1, self.make_nonlinear), (1, self.make_linear), (1, self.make_counter),
            (1, self.make_eqrel), (2, self.make_totals),
        ]  # fmt: skip
        kinds += [(1 + self.has_first, self.make_window)] * self.has_windows
        room, chosen = self.pick((5, 5, 5, 5, 5, 4, 3, 2)), [self.make_rules]
        ranks = [self.draw(st.integers(0, 999)) for _ in kinds]  # permutations() favours no change
        for _, (size, make) in sorted(zip(ranks, kinds, strict=True), key=lambda pair: pair[0]):
            if size <= room - self.windowed and (make.__name__ in SIMPLE or not self.simple):
                room -= size
                chosen.append(make)
        chosen += [self.make_window if self.windowed else self.make_rules] * room
        for make in self.shuffled(chosen):
            self.relations += make()
        return Case("\n".join(self.lines) + "\n", facts, frozenset(self.features), base)


@st.composite
def programs(draw: st.DrawFn, simple: bool = False, windowed: int | None = 0) -> Case:
    """A valid program over two to four base relations, with a small database.

    Args:
        draw: Given by hypothesis.
        simple: Only recursion, negation, disjunction and comparisons over numbers and symbols.
        windowed: At least so many rules have window functions, if the program has room; None: none.
    """
    return Maker(draw, simple, windowed).make()


@st.composite
def updates(draw: st.DrawFn, case: Case, max_size: int = 4) -> list[tuple[Rows, Rows]]:
    """A sequence of (inserts, deletes) on base relations; in one step they are disjoint.

    Deletes mostly name tuples that exist at that time; some inserts are there already.
    """
    state = {name: set(rows_) for name, rows_ in case.facts.items()}
    steps = []
    for _ in range(draw(st.integers(1, max_size))):
        inserts: Rows = {}
        deletes: Rows = {}
        others = draw(st.sets(st.sampled_from(sorted(case.base)), min_size=1))
        touched = others | ({"b0"} if draw(st.integers(0, 3)) else set())  # most rules read b0
        for name in sorted(touched):
            anything = rows(case.base[name])
            present = sorted(state[name], key=repr)
            here = st.sampled_from(present) if present else anything
            deleted = draw(st.sets(st.one_of(here, here, here, anything), max_size=3))
            inserted = draw(st.sets(anything, min_size=1, max_size=3)) - deleted
            inserts[name], deletes[name] = inserted, deleted
            state[name] = state[name] - deleted | inserted
        steps.append((inserts, deletes))
    return steps
