"""A program as a script: `CREATE TABLE` for base relations, `CREATE VIEW` for derived ones."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from sqlglot import exp

from corollary.analysis.strata import Stratum, strata
from corollary.core.graph import reachable
from corollary.core.logic import Rule, Value, Windowing
from corollary.core.program import NormalProgram, Relation, relations_read
from corollary.data_class import dataclass
from corollary.sqlgen.dialect import DialectName, NotExactError
from corollary.sqlgen.readable import (
    NO_COLUMNS,
    Node,
    QueryWriter,
    dialect_title,
    identifier,
    sql_constant,
    sql_type,
)


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """What a relation is in SQL.

    Attributes:
        text: the statements, without the last semicolon; empty if there are none.
        reason: why it cannot be said in the dialect; empty if it can.
        note: what a reader should know about it.
    """

    relation: str
    text: str
    reason: str = ""
    note: str = ""


def print_sql(
    program: NormalProgram,
    dialect: DialectName,
    keys: Mapping[str, Collection[str]],
    names: Collection[str] = (),
    *,
    materialises_tables: bool = False,
) -> list[SqlStatement]:
    """Return the statements that define relations, each after those it reads.

    Args:
        program: in normal form; active rules have no SQL.
        dialect: the engine that is to read them.
        keys: the columns of the keys that are enforced, by relation.
        names: the relations that are asked for, with all that they read; all if empty.
        materialises_tables: whether a stored view is a table of its rows, where the dialect has no
            materialised views.
    """
    script = _Script(program, dialect, keys, materialises_tables)
    wanted = script.needed_by(names or program.relations)
    return [each for each in script.statements() if each.relation in wanted]


def script_of(statements: Iterable[SqlStatement]) -> str:
    """Return statements as one text; a comment stands for what cannot be said."""
    parts = []
    for each in statements:
        if each.reason:
            parts.append(f"-- {each.relation} is left out: {each.reason}\n")
        else:
            note = f"-- {each.note}\n" if each.note else ""
            parts.append(f"{note}{each.text};\n")
    return "\n".join(parts)


class _Script:
    def __init__(
        self,
        program: NormalProgram,
        dialect: DialectName,
        keys: Mapping[str, Collection[str]],
        materialises_tables: bool,
    ) -> None:
        self._materialises_tables = materialises_tables
        self._program = program
        self._dialect = dialect
        self._keys = keys
        self._reads = relations_read(program.rules, program.aggregations)
        self._strata = strata(program)
        self._stratum = {name: each for each in self._strata for name in each.relations}
        self._writer = QueryWriter(program.relations, dialect, self._table)

    def statements(self) -> Iterator[SqlStatement]:
        """Yield tables first, then views, each after those it reads."""
        relations = self._program.relations
        for relation in relations.values():
            if not relation.is_derived:
                yield SqlStatement(relation.name, self._create_table(relation))
        for stratum in self._strata:
            for name in stratum.relations:
                if relations[name].is_declared:
                    yield self._create_view(relations[name])

    def needed_by(self, names: Collection[str]) -> set[str]:
        """Return relations and all that they read."""
        return {*reachable(names, lambda name: self._reads.get(name, ()))}

    def _table(self, relation: str) -> str:
        """Return the name of a relation; those that were made on the way have no dots."""
        found = self._program.relations[relation]
        if found.is_declared or not found.is_derived:
            return relation
        name = relation.replace(".", "_")
        while name in self._program.relations:
            name += "_"
        return name

    # --- tables --------------------------------------------------------------------------------

    def _create_table(self, relation: Relation) -> str:
        columns: list[Node] = [
            exp.ColumnDef(
                this=identifier(name),
                kind=sql_type(type_, self._dialect),
                constraints=[]
                if type_.nullable
                else [exp.ColumnConstraint(kind=exp.NotNullColumnConstraint())],
            )
            for name, type_ in zip(relation.columns, relation.types, strict=True)
        ] or [exp.ColumnDef(this=identifier(NO_COLUMNS), kind=exp.DataType.build("boolean"))]
        key = self._keys.get(relation.name, ())
        if key:
            columns.append(exp.PrimaryKey(expressions=[identifier(each) for each in key]))
        properties = None
        if not key and self._dialect is DialectName.SPARK:
            a_set = exp.Property(this="duplicates", value=exp.Literal.string("drop"))
            properties = exp.Properties(expressions=[a_set])
        table = exp.Create(
            kind="TABLE",
            this=exp.Schema(this=self._name(relation.name), expressions=columns),
            properties=properties,
        )
        texts = [self._text(table)]
        rows = self._program.facts.get(relation.name, ())
        if rows:
            texts.append(self._insert(relation, rows))
        return ";\n\n".join(texts)

    def _insert(self, relation: Relation, rows: Collection[tuple[Value, ...]]) -> str:
        values = [
            exp.Tuple(
                expressions=[
                    sql_constant(value, type_, self._dialect)
                    for value, type_ in zip(row, relation.types, strict=True)
                ]
                or [exp.true()]
            )
            for row in rows
        ]
        return self._text(
            exp.Insert(this=self._name(relation.name), expression=exp.Values(expressions=values))
        )

    # --- views ---------------------------------------------------------------------------------

    def _create_view(self, relation: Relation) -> SqlStatement:
        rows = self._program.bags.get(relation.name)
        if rows is not None:
            return SqlStatement(relation.name, "", f"it has copies, which are counted in {rows}")
        try:
            query = self._definition(relation.name)
        except NotExactError as error:
            return SqlStatement(relation.name, "", f"{error}")
        note = ""
        if self._stratum[relation.name].is_recursive and self._dialect is DialectName.SPARK:
            note = "Spark by itself has no recursion with UNION; Corollary maintains it."
        view = exp.Create(kind="VIEW", this=self._name(relation.name), expression=query)
        if relation.is_stored and self._dialect is DialectName.SPARK:
            view.set("properties", exp.Properties(expressions=[exp.MaterializedProperty()]))
        elif relation.is_stored and self._materialises_tables:
            view.set("kind", "TABLE")
            note = "DuckDB has no materialised views: make this table again when data change."
        return SqlStatement(relation.name, self._text(view), note=note)

    def _definition(self, name: str) -> exp.Query:
        """Return the query of a relation, with what was made on the way to it before it."""
        stratum = self._stratum[name]
        if stratum.is_grouped:
            raise NotExactError("it has a count or sum through recursion")
        if stratum.has_choice:
            raise NotExactError("it has a choice domain")
        if stratum.subsumption or stratum.dominated:
            raise NotExactError("only its best tuples count while the recursion goes on")
        hidden = self._hidden_below(stratum)
        if not stratum.is_recursive:
            query = self._query(stratum, name)
        else:
            query = exp.Select().select(exp.Star(), copy=False)
            query = query.from_(exp.Table(this=identifier(self._table(name))))
        for below in hidden:
            for each in below.relations:
                query = self._with(query, each, self._query(below, each), below.is_recursive)
        if stratum.is_recursive:
            self._check_recursion(stratum)
            for each in stratum.relations:
                query = self._with(query, each, self._query(stratum, each), True)
        return query

    def _with(
        self, query: exp.Query, name: str, definition: exp.Query, is_recursive: bool
    ) -> exp.Query:
        columns = self._program.relations[name].columns or (NO_COLUMNS,)
        alias = exp.TableAlias(
            this=identifier(self._table(name)), columns=[identifier(each) for each in columns]
        )
        query = query.with_(alias, definition, copy=False)
        if is_recursive:
            query.args["with_"].set("recursive", True)
        return query

    def _query(self, stratum: Stratum, name: str) -> exp.Query:
        for each in stratum.aggregations:
            if each.relation == name:
                if isinstance(each, Windowing):
                    return self._writer.of_windowing(each)
                return self._writer.of_aggregation(each)
        rules = stratum.rules_by_head.get(name, ())
        if not rules:
            raise NotExactError("it has no rules")
        steps = [rule for rule in rules if _reads_of(rule, stratum)]
        return self._writer.of_rules([rule for rule in rules if rule not in steps], steps)

    def _hidden_below(self, stratum: Stratum) -> list[Stratum]:
        """Return the strata that were made on the way to one, in order."""

        def hidden(name: str) -> Iterator[str]:
            for each in self._reads.get(name, ()):
                is_hidden = each in self._stratum and not self._program.relations[each].is_declared
                if is_hidden and each not in stratum.members:
                    yield each

        found = reachable(stratum.relations, hidden).keys() - stratum.members
        return [each for each in self._strata if not found.isdisjoint(each.relations)]

    def _check_recursion(self, stratum: Stratum) -> None:
        if self._dialect is DialectName.SPARK:
            return
        title = dialect_title(self._dialect)
        if len(stratum.relations) > 1:
            others = ", ".join(f"`{name}`" for name in stratum.relations)
            raise NotExactError(f"{title} has no mutual recursion: {others}")
        if any(_reads_of(rule, stratum) > 1 for rule in stratum.rules):
            raise NotExactError(f"in {title} a recursive query may read itself once only")

    # --- text ----------------------------------------------------------------------------------

    def _name(self, relation: str) -> exp.Table:
        return exp.Table(this=identifier(self._table(relation)))

    def _text(self, node: Node) -> str:
        return node.sql(dialect=str(self._dialect), pretty=True)


def _reads_of(rule: Rule, stratum: Stratum) -> int:
    """Return how often a rule reads its own stratum."""
    return sum(literal.relation in stratum.members for literal in rule.literals)
