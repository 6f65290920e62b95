"""SQL for people: rules and aggregations as queries, with values of the usual types.

A literal is a table in `FROM`, a negated one `NOT EXISTS`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import assert_never

from sqlglot import exp

from corollary.analysis.keys import has_single_derivations
from corollary.core import logic
from corollary.core.functors.catalog import FUNCTORS, read_time_format
from corollary.core.functors.lambdas import is_lambda, is_parameter, parameters_of
from corollary.core.functors.spec import find_template
from corollary.core.logic import (
    Accumulator,
    Aggregation,
    Condition,
    Constant,
    Expression,
    Functor,
    Literal,
    Rule,
    Term,
    Variable,
    Wildcard,
    Windowing,
    fold_term,
    head_arguments,
    range_of,
    variables_of,
)
from corollary.core.program import Relation
from corollary.core.types import (
    DATE,
    DURATION,
    FLOAT,
    TIME_OF_DAY,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Kind,
    Type,
)
from corollary.core.values import format_value
from corollary.data_class import dataclass
from corollary.sqlgen.dialect import DialectName, NotExactError
from corollary.sqlgen.templates import COMPARISONS, TIME_PATTERNS, fill_template
from corollary.sqlgen.windows import window_call

Node = exp.Expr


# --- types and values ----------------------------------------------------------------------------


def sql_type(type_: Type, dialect: DialectName) -> exp.DataType:
    """Return the type of a column."""
    spec = type_.spec
    text = spec.duckdb if dialect is DialectName.DUCKDB else spec.spark
    return exp.DataType.build(text.format(type_), dialect=str(dialect))


def cast(node: Node, type_: Type, dialect: DialectName) -> Node:
    """Return a value converted to a type."""
    return exp.Cast(this=node, to=sql_type(type_, dialect))


def sql_constant(value: logic.Value, type_: Type | None, dialect: DialectName) -> Node:
    """Return a value as a literal of its type."""
    match value:
        case None:
            return exp.null() if type_ is None else cast(exp.null(), type_, dialect)
        case bool():
            return exp.true() if value else exp.false()
        case str():
            return exp.Literal.string(value)
        case tuple() if type_ is not None and type_.is_struct:
            named = [
                exp.PropertyEQ(
                    this=exp.to_identifier(name), expression=sql_constant(each, inner, dialect)
                )
                for (name, inner), each in zip(type_.members, value, strict=True)
            ]
            return exp.Struct(expressions=named)
        case tuple():
            element = None if type_ is None else type_.element
            parts = [sql_constant(each, element, dialect) for each in value]
            return exp.Array(expressions=parts)
        case bytes():
            return exp.Unhex(this=exp.Literal.string(value.hex().upper()))
        case int():
            number = exp.Literal.number(value)
            return number if type_ is None or type_.is_number else cast(number, type_, dialect)
        case time():
            text, kind = value.isoformat(), TIME_OF_DAY
        case timedelta():
            return sql_constant(format_value(value, type_ or DURATION), type_, dialect)
        case datetime():
            text = value.isoformat(sep=" ").removesuffix("+00:00")
            kind = TIMESTAMP if value.tzinfo is not None else TIMESTAMP_NTZ
        case date():
            text, kind = value.isoformat(), DATE
        case Decimal():
            text, kind = str(value), type_ or Type(Kind.DECIMAL)
        case float():
            text, kind = _NOT_FINITE.get(repr(value), repr(value)), type_ or FLOAT
        case _:
            assert_never(value)
    return cast(exp.Literal.string(text), kind, dialect)


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


# --- functors ------------------------------------------------------------------------------------


def operand(node: Node) -> Node:
    """Return an operand, in parentheses if it has an operator."""
    is_open = isinstance(node, exp.Binary | exp.Unary | exp.Connector) and not isinstance(
        node, exp.Paren
    )
    return exp.paren(node) if is_open else node


def _enclose(parent: Node, child: Node) -> Node:
    """Return an operand of an operator as it needs it: `a AND b = c`, `a || b || c`."""
    if isinstance(parent, exp.Connector):
        is_open = isinstance(child, exp.Connector) and type(child) is not type(parent)
        return exp.paren(child) if is_open else child
    is_chain = isinstance(parent, exp.DPipe) and isinstance(child, exp.DPipe)
    is_operator = isinstance(parent, exp.Binary | exp.Unary) and not isinstance(parent, exp.Paren)
    return operand(child) if is_operator and not is_chain else child


def _choice(arguments: Sequence[Node]) -> Node:
    case = exp.Case()
    for condition, chosen in zip(arguments[:-1:2], arguments[1::2], strict=True):
        case = case.when(condition, chosen)
    return case.else_(arguments[-1])


def sql_functor(
    name: str,
    arguments: Sequence[Node],
    types: Sequence[Type],
    type_: Type,
    dialect: DialectName,
) -> Node:
    """Return a functor applied to arguments.

    Raises:
        NotExactError: the dialect has nothing that means the same.
    """
    spec = FUNCTORS.get(name)
    kind = (types[0] if types else DATE).kind
    if name == "format_time" and isinstance(arguments[1], exp.Literal):
        return _formatted(arguments[0], arguments[1].this, dialect)
    if spec is not None and spec.is_choice and type_.is_decimal:
        # SQL takes the digits of one arm for all.
        arguments = [
            cast(each, type_, dialect) if of.is_decimal else each
            for each, of in zip(arguments, types, strict=True)
        ]
    if name == "if":
        return _of_type(_choice(arguments), types, type_, dialect)
    template = None if spec is None else find_template(spec.readable, dialect, kind)
    if spec is None or template is None:
        raise NotExactError(f"`{name}` of {kind} has no counterpart in {dialect_title(dialect)}")
    made = fill_template(template, spec, arguments, sql_type(type_, dialect), _enclose)
    is_typed = made is arguments[0] or isinstance(made, exp.Cast)
    return made if is_typed else _of_type(made, types, type_, dialect)


def _of_type(node: Node, types: Sequence[Type], type_: Type, dialect: DialectName) -> Node:
    """Return a result of decimals, or of dates and times, with the type that it has in rules."""
    if type_.is_decimal or (type_.is_time and types):
        return cast(node, type_, dialect)
    return node


def dialect_title(dialect: DialectName) -> str:
    """Return how messages call a dialect."""
    return {"spark": "Spark SQL", "duckdb": "DuckDB"}[dialect]


_JAVA_LETTERS = {
    **{directive: java for java, directive in reversed(TIME_PATTERNS.items())},
    "%%": "%",
}


def _formatted(moment: Node, text: str, dialect: DialectName) -> Node:
    written = read_time_format("format_time", text)
    if dialect is DialectName.DUCKDB:
        for part in written:
            if part.startswith("%") and (len(part) > 2 or part[-1] in "kKq"):
                raise NotExactError(f"`{part}` of a format has no counterpart in DuckDB")
        pattern = exp.Literal.string("".join(written))
        return exp.Anonymous(this="strftime", expressions=[moment, pattern])
    parts = []
    for part in written:
        if part.startswith("%"):
            if part not in _JAVA_LETTERS:
                raise NotExactError(f"`{part}` of a format has no counterpart in Spark SQL")
            parts.append(_JAVA_LETTERS[part])
        else:
            quoted = part.replace("'", "''")
            parts.append(f"'{quoted}'" if any(map(str.isalpha, part)) else quoted)
    return exp.Anonymous(
        this="date_format", expressions=[moment, exp.Literal.string("".join(parts))]
    )


@dataclass(frozen=True)
class QueryWriter:
    """Writes the queries of relations.

    Attributes:
        relations: of the program, by name.
        table: gives the table or common table expression that has the tuples of a relation.
    """

    relations: Mapping[str, Relation]
    dialect: DialectName
    table: Callable[[str], str]

    # --- rules ---------------------------------------------------------------------------------

    def of_rules(self, rules: Sequence[Rule], steps: Sequence[Rule] = ()) -> exp.Query:
        """Return the query of a relation, a set.

        Args:
            rules: those that do not read the relation; one at least, unless there are steps.
            steps: those that do.
        """
        is_alone = len(rules) == 1 and not steps
        query = _union([self.of_rule(rule, is_alone=is_alone) for rule in rules])
        if not steps:
            return query or exp.Select()
        # SQL wants all that does not recur on the left, and all that does on the right.
        step = _union([self.of_rule(rule, is_alone=False) for rule in steps])
        right = step.subquery(copy=False) if isinstance(step, exp.Union) else step
        return exp.union(query or self._nothing(steps[0]), right or exp.Select(), copy=False)

    def _nothing(self, rule: Rule) -> exp.Query:
        types = self.relations[rule.head.relation].types
        nulls = [cast(exp.null(), each, self.dialect) for each in types] or [exp.true()]
        return exp.Select().select(*nulls, copy=False).where(exp.false())

    def of_rule(self, rule: Rule, *, is_alone: bool = True) -> exp.Select:
        """Return the query of a rule.

        Args:
            rule: a rule of a normal program.
            is_alone: whether its result must be a set by itself.
        """
        block = _Block(self, rule)
        relation = self.relations[rule.head.relation]
        columns = [
            _named(block.output(argument, type_), name)
            for argument, name, type_ in zip(
                head_arguments(rule), relation.columns, relation.types, strict=True
            )
        ] or [_named(exp.true(), NO_COLUMNS)]
        query = exp.Select().select(*columns, copy=False)
        for at, (source, tests) in enumerate(block.sources):
            if at:
                query = query.join(source, on=tests, join_type="" if tests else "cross", copy=False)
            else:
                query = query.from_(source).where(*tests, copy=False)
        query = query.where(*block.tests) if block.tests else query
        return query.distinct() if is_alone and not has_single_derivations(rule) else query

    # --- aggregations --------------------------------------------------------------------------

    def of_aggregation(self, aggregation: Aggregation) -> exp.Select:
        """Return the query of an aggregation: its groups and their values."""
        body = self.relations[aggregation.body]
        relation = self.relations[aggregation.relation]
        keys = [_column(None, body.columns[at]) for at in aggregation.groups]
        items = [_named(key, name) for key, name in zip(keys, relation.columns, strict=False)]
        count = len(keys)
        values = [
            self._aggregate(each, body, type_)
            for each, type_ in zip(aggregation.accumulators, relation.types[count:], strict=True)
        ]
        items += map(_named, values, relation.columns[count:])
        query = exp.Select().select(*items, copy=False).from_(self.source(aggregation.body, None))
        query = query.group_by(*(key.copy() for key in keys)) if keys else query
        if not aggregation.has_every_group:  # a group of nulls has no value
            return query.having(_is_not_null(values[0].copy()))
        return query if keys else query.having(_at_least_one_row())

    def _aggregate(self, accumulator: Accumulator, body: Relation, type_: Type) -> Node:
        if accumulator.value is None:
            return exp.Count(this=exp.Star())
        at = accumulator.value
        column = _column(None, body.columns[at])
        match accumulator.operator:
            case "sum":
                total = exp.Coalesce(
                    this=exp.Sum(this=column), expressions=[sql_constant(0, None, self.dialect)]
                )
                return cast(total, type_, self.dialect)
            case "mean" if not body.types[at].is_float:
                mean: Node = exp.Avg(this=column)
                return cast(mean, type_, self.dialect)
            case "mean":
                return exp.Avg(this=column)
            case "min":
                return exp.Min(this=column)
            case "max":
                return exp.Max(this=column)
            case other:
                raise NotExactError(f"the aggregate `{other}` has no counterpart")

    # --- windows -------------------------------------------------------------------------------

    def of_windowing(self, windowing: Windowing) -> exp.Select:
        """Return the query of window functions: the rows of the body, each with its values."""
        body, relation = self.relations[windowing.body], self.relations[windowing.relation]
        columns = [_column(None, name) for name in body.columns]
        items = [_named(each, name) for each, name in zip(columns, relation.columns, strict=False)]
        for at, function in enumerate(windowing.functions, len(columns)):
            value: Node = window_call(function, windowing, columns)
            if function.name == "sum":
                zero = sql_constant(0, None, self.dialect)
                total = exp.Coalesce(this=value, expressions=[zero])
                value = cast(total, relation.types[at], self.dialect)
            items.append(_named(value, relation.columns[at]))
        return exp.Select().select(*items, copy=False).from_(self.source(windowing.body, None))

    # --- tables --------------------------------------------------------------------------------

    def source(self, relation: str, alias: str | None) -> exp.Table:
        """Return the table of a relation, under another name if one is given."""
        name = self.table(relation)
        table = exp.Table(this=identifier(name))
        if alias is not None:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
        return table


NO_COLUMNS = "holds"
"""The column of a relation that has none."""


@dataclass
class _Block:
    """The parts of one rule's query: tables, tests, and what variables stand for."""

    writer: QueryWriter
    rule: Rule
    sources: list[tuple[exp.Table, list[str | int | Node]]] = field(default_factory=list)
    tests: list[Node] = field(default_factory=list)
    values: dict[str, tuple[Node, Type]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        positive = [each for each in self.rule.literals if not each.negated]
        for literal in positive:
            self._join(literal)
        self._add_conditions()
        for literal in self.rule.literals:
            if literal.negated:
                self.tests.append(exp.not_(exp.Exists(this=self._matches(literal))))

    def output(self, argument: Variable | Constant, type_: Type) -> Node:
        """Return an argument of the head, with the type of its column."""
        found = self.value(argument)
        is_computed = not isinstance(found, exp.Column)
        if isinstance(found, exp.Cast) and found.to == sql_type(type_, self.writer.dialect):
            return found
        if is_computed and (type_.is_decimal or type_.is_integral):
            return cast(found, type_, self.writer.dialect)
        return found

    # --- positive literals ---------------------------------------------------------------------

    def _join(self, literal: Literal) -> None:
        relation = self.writer.relations[literal.relation]
        alias = f"t{len(self.sources) + 1}"
        tests: list[str | int | Node] = []
        self.sources.append((self.writer.source(literal.relation, alias), tests))
        for slot, name, type_ in zip(literal.slots, relation.columns, relation.types, strict=True):
            column = _column(alias, name)
            match slot:
                case Wildcard():
                    pass
                case Variable(name=variable) if variable not in self.values:
                    self.values[variable] = (column, type_)
                case _:
                    tests.append(self._equal(slot, column, type_))

    def _equal(self, slot: Variable | Constant, column: Node, type_: Type) -> Node:
        """Return the test that a column has the value of a slot, where null is null."""
        if isinstance(slot, Constant):
            if slot.value is None:
                return exp.Is(this=column, expression=exp.null())
            return exp.EQ(this=column, expression=self.value(slot))
        value, other = self.values[slot.name]
        has_null = type_.nullable and other.nullable
        node = exp.NullSafeEQ if has_null else exp.EQ
        return node(this=column, expression=value.copy())

    # --- negated literals ----------------------------------------------------------------------

    def _matches(self, literal: Literal) -> exp.Select:
        relation = self.writer.relations[literal.relation]
        alias = "n"
        tests = [
            self._equal(slot, _column(alias, name), type_)
            for slot, name, type_ in zip(
                literal.slots, relation.columns, relation.types, strict=True
            )
            if not isinstance(slot, Wildcard)
        ]
        query = exp.Select().select(exp.Literal.number(1), copy=False)
        query = query.from_(self.writer.source(literal.relation, alias))
        return query.where(*tests) if tests else query

    # --- conditions ----------------------------------------------------------------------------

    def _add_conditions(self) -> None:
        """Give variables their values, each after those that it is computed from, and add tests."""
        waiting = list(self.rule.conditions)
        while waiting:
            later = [each for each in waiting if not self._add(each)]
            if len(later) == len(waiting):
                raise NotExactError("a value is computed in a way that has no counterpart")
            waiting = later

    def _add(self, condition: Condition) -> bool:
        if range_of(condition):
            raise NotExactError("`range` makes several values of one row")
        for one, other in (
            (condition.left, condition.right),
            (condition.right, condition.left),
        ):
            is_new = isinstance(one, Variable) and one.name not in self.values
            if is_new and condition.operator in ("=", "is") and self._is_known(other):
                assert isinstance(one, Variable)
                self._bind(one, other, condition.operator)
                return True
        if not (self._is_known(condition.left) and self._is_known(condition.right)):
            return False
        self.tests.append(self._test(condition))
        return True

    def _bind(self, variable: Variable, term: Expression, operator: str) -> None:
        value, type_ = self.value(term), _type_of(term)
        reads_null = any(self.values[each.name][1].nullable for each in variables_of(term))
        has_null = type_.nullable or reads_null
        self.values[variable.name] = (value, type_.with_null(has_null and operator == "is"))
        if operator == "=" and has_null:
            self.tests.append(_is_not_null(value.copy()))

    def _test(self, condition: Condition) -> Node:
        left, right = self.value(condition.left), self.value(condition.right)
        name = condition.operator
        if name == "=" and left == right:
            return _is_not_null(left)
        if name == "is" and isinstance(right, exp.Null):
            return exp.Is(this=left, expression=exp.null())
        if name in COMPARISONS:
            return COMPARISONS[name](this=operand(left), expression=operand(right))
        negated = name.startswith("!")
        text = self._text_test(name.removeprefix("!"), left, right)
        return exp.not_(text) if negated else text

    def _text_test(self, name: str, left: Node, right: Node) -> Node:
        if name == "contains":
            return exp.Anonymous(this="contains", expressions=[right, left])
        if self.writer.dialect is DialectName.DUCKDB:
            return exp.Anonymous(this="regexp_full_match", expressions=[right, left])
        if not isinstance(left, exp.Literal):
            raise NotExactError("`match` with a computed pattern has no counterpart in Spark SQL")
        return exp.RegexpLike(this=right, expression=exp.Literal.string(f"^(?:{left.this})$"))

    # --- values --------------------------------------------------------------------------------

    def _is_known(self, term: Expression) -> bool:
        return all(each.name in self.values for each in variables_of(term))

    def value(self, term: Expression) -> Node:
        """Return what computes a term."""
        return fold_term(term, self._combine)

    def _combine(self, term: Term, inside: tuple[Node, ...]) -> Node:
        match term:
            case Variable(name=name):
                return self.values[name][0].copy()
            case Constant(value=value, type=type_):
                return sql_constant(value, type_, self.writer.dialect)
            case Functor(name=name) if is_parameter(term):
                return identifier(parameters_of(name)[0])
            case Functor(name=name) if is_lambda(term):
                names = list(map(identifier, parameters_of(name)))
                return exp.Lambda(this=inside[0], expressions=names)
            case Functor(name=name, arguments=arguments):
                types = [_type_of(each) for each in arguments]
                return sql_functor(name, inside, types, _type_of(term), self.writer.dialect)
            case _:
                raise NotExactError("a term has no counterpart")


def _type_of(term: Term) -> Type:
    found = None if isinstance(term, Wildcard) else term.type
    if found is None:
        raise NotExactError("the type of a term is not known")
    return found


def _column(table: str | None, name: str) -> exp.Column:
    return exp.column(identifier(name), exp.to_identifier(table) if table else None)


def _union(queries: Sequence[exp.Query]) -> exp.Query | None:
    found: exp.Query | None = None
    for query in queries:
        found = query if found is None else exp.union(found, query, copy=False)
    return found


def _named(node: Node, name: str) -> Node:
    """Return a column of a result under a name, which it may have already."""
    if isinstance(node, exp.Column) and node.name == name:
        return node
    return exp.alias_(node, identifier(name))


def _is_not_null(node: Node) -> Node:
    return exp.not_(exp.Is(this=node, expression=exp.null()))


def _at_least_one_row() -> Node:
    return exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))


def identifier(name: str) -> exp.Identifier:
    """Return a name, in quotes unless it is a plain word in small letters."""
    is_plain = name.isascii() and name.islower() and name.isidentifier() and name not in _WORDS
    return exp.to_identifier(name, quoted=not is_plain)


_WORDS = frozenset(
    """
    all and any as asc between both by case cast check column constraint create cross current_date
    date day default desc distinct else end except exists false fetch filter for foreign from full
    grant group having hour in inner intersect interval into is join key lateral left like limit
    minute month natural not null offset on only or order outer over primary references right row
    rows second select semi some table then timestamp to true union unique update user using values
    view when where window with year
    """.split()  # noqa: SIM905
)
"""Words that are quoted as names, since one of the engines takes them for something else."""
