"""Reads queries on documents: `grammar.lark` is their grammar.

A leading `//a` stands for `/a | /*//a`: the root itself is found, too, as in XPath. `key` is a word
of the language only after a path or a list, `arrived` only before a variable: elsewhere they are
labels like any other.

Queries over several documents are patterns on one tree, with the documents below their names:

    doc("a")/r[b$x] and collection()$d//c$x      /*["a"/r[b$x]][*$d//c$x]
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from lark import Lark, Transformer, UnexpectedToken, v_args

from corollary.data_class import dataclass
from corollary.documents.errors import QuerySyntaxError
from corollary.documents.queries.comparisons import (
    MAX_COMPARED_CLASSES,
    MAX_UNEQUAL,
    NOW,
    Conditions,
    LabelDifference,
    NumberComparison,
    literal_number,
)
from corollary.documents.queries.pattern import (
    Axis,
    Branch,
    DocumentQuery,
    Edge,
    OrBranch,
    PatternNode,
    bound_in,
    nodes_of,
)
from corollary.documents.trees.forest import NodeKind
from corollary.errors import Diagnostic
from corollary.source import SourceFile, Span

MAX_LEVELS = 100
"""The maximum nesting of a pattern, so that no later pass runs out of stack."""
MAX_NODES = 500
"""The maximum number of nodes in a query."""
_UNSUPPORTED = {
    "AXIS": (
        "The axis `{}` is not supported: patterns only go down, by `/` and `//`.",
        "turn the query around, with a predicate at the upper node: `a[b]`, not `b/parent::a`",
    ),
    "PARENT": (
        "`..` is not supported: patterns only go down, by `/` and `//`.",
        "begin at the upper node, and write what is below it as a predicate: `a[b][c]`",
    ),
    "CALL": (
        "The function `{}` is not supported in queries.",
        "a query says what has to be there; tests are `text()`, `number()`, `literal()`",
    ),
    "NOT": (
        "`not(…)` is not supported: a stream may still bring what is missing so far.",
        "ask for the value of the positive query: 0 means that it will never match",
    ),
    "POSITION": (
        "Positions are not supported: the trees of a document have no order.",
        "tell nodes apart by what is in them: `item[id='7']`",
    ),
    "COMPARISON": ("`{}` is not supported: a query says what is there.", "write `$x != $y`"),
    "ANY_ATTRIBUTE": (
        "`@*` is not supported: attributes are asked for by name.",
        "write `@name`, or `*` for any child",
    ),
}
"""Terminals for what XPath has and patterns do not: the error and its note."""
_BEGINNINGS = {"SLASH", "BELOW", "DOC", "COLLECTION", "VARIABLE"}
"""What the grammar accepts where a path has to begin."""
_KINDS = {"text": NodeKind.TEXT, "number": NodeKind.NUMBER, "literal": NodeKind.LITERAL}
"""The tests of leaves."""


def syntax_error(
    message: str, span: Span | None, note: str | None = None, code: str = "C1200"
) -> QuerySyntaxError:
    """Return the error of a query at a span."""
    return QuerySyntaxError([Diagnostic(code, message, span, note)])


def several_documents(query: DocumentQuery, note: str) -> QuerySyntaxError:
    """Return the error of a query over several documents where there is one."""
    span = next((root.span for root in query.roots if root.kind is NodeKind.COLLECTION), None)
    message = "The query is over several documents, but it is asked of one."
    return syntax_error(message, span, note, "C1256")


def parse_query(text: str, name: str = "query") -> DocumentQuery:
    """Return the query that a text says.

    >>> parse_query("/r[b or c]/a$x").outputs
    ('x',)

    Raises:
        QuerySyntaxError: it is not a query, or one that is not supported.
    """
    source = SourceFile(name, text)
    tokens = _tokens(source)
    parser: Any = _grammar().parse_interactive()  # lark types it in part only
    depth, found = 0, None
    for at, token in enumerate(tokens):
        try:
            found = parser.feed_token(token)
        except UnexpectedToken:
            raise _unexpected_token(tokens[:at], token, parser.accepts()) from None
        depth += (token.type in ("LSQB", "LPAR")) - (token.type in ("_RSQB", "_RPAR"))
        if depth > MAX_LEVELS:
            raise _too_deep(token.span)
    assert found is not None  # the end was accepted
    roots, conditions, outputs, key = found
    if sum(1 for root in roots for _ in nodes_of(root)) > MAX_NODES:
        raise syntax_error(f"The query has more than {MAX_NODES} nodes.", None, code="C1206")
    return _check_query(source, roots, conditions or (), outputs, key or ())


# --- tokens --------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Token:
    """A token: its terminal, its text without decoration, where it stands, and what follows."""

    type: str
    text: str
    span: Span
    next: "_Token | None" = None


@dataclass(frozen=True, slots=True)
class _WrittenCondition:
    """`$d - $p > 3600`: two sums of operands with their signs, and how they are compared."""

    left: tuple[_Token, ...]
    operator: _Token
    right: tuple[_Token, ...]

    @property
    def operands(self) -> tuple[_Token, ...]:
        """The operands of both sides."""
        return (*self.left[::2], *self.right[::2])


class _AllTerminals:
    """Has lark keep the terminals that no rule uses."""

    always_accept = (*_UNSUPPORTED, "DOT", "AT", "DOLLAR", "OTHER")

    def process(self, stream: Iterator[Any]) -> Iterator[Any]:
        return stream


@lru_cache(maxsize=1)
def _grammar() -> Lark:
    text = files("corollary.documents.queries").joinpath("grammar.lark").read_text("utf-8")
    return Lark(
        text,
        parser="lalr",
        lexer="basic",
        start="query",
        transformer=_Builder(),
        postlex=_AllTerminals(),
    )


def _tokens(source: SourceFile) -> list[_Token]:
    """Return the tokens of a query; the last one is the end.

    Raises:
        QuerySyntaxError: one of them belongs to no query, wherever it stands.
    """
    found: list[_Token] = []
    for each in _grammar().lex(source.text):
        line, column = each.line or 1, each.column or 1
        span = Span(source, line, column, line, column + len(each))
        if each.type in _UNSUPPORTED:
            message, note = _UNSUPPORTED[each.type]
            raise syntax_error(message.format(each.rstrip("( \t\n")), span, note, "C1201")
        if each.type == "OTHER":
            raise syntax_error(f"`{each}` does not belong in a query.", span)
        text = {"VARIABLE": each[1:], "QUOTED": each[1:-1]}.get(each.type, str(each))
        text = text[text.index("(") + 1 : -1].strip(" \t\n\"'") if each.type == "DOC" else text
        found.append(_Token(each.type, text, span))
    line, column = source.text.count("\n") + 1, len(source.text) - source.text.rfind("\n")
    found.append(_Token("$END", "", Span(source, line, column, line, column + 1)))
    for token, following in pairwise(found):
        token.next = following
    return found


# --- what the grammar does not accept ------------------------------------------------------------


def _unexpected_token(before: list[_Token], token: _Token, accepted: set[str]) -> QuerySyntaxError:
    """Return the error of a token that the grammar does not accept where it stands."""
    last, types = before[-1] if before else token, [each.type for each in before[-2:]]
    if accepted & {"SIGN", "COMPARE"} or last.type in ("SIGN", "COMPARE", "_WHERE"):
        note = (
            "write `where $x = $y`, or `where $d - $p > 3600`; for a text, `[b='v']` in the pattern"
        )
        return syntax_error("`where` compares variables.", token.span, note)
    match token.type:
        case "COMPARE" | "SIGN":
            message = f"`{token.text}` stands only after `where`."
            note = "give what is compared a variable, and end with `where $x - $y > 3600`"
            return syntax_error(message, token.span, note, "C1201")
        case _ if {"SLASH", "BELOW"} <= accepted <= _BEGINNINGS:
            message = "A query begins at the root of the document."
            note = "begin with `/` and the label of the root, or with `//`"
            return syntax_error(message, token.span, note, "C1202")
        case "$END" if types in (["SLASH"], ["_PIPE", "SLASH"]):
            note = "name the root: `/r`, or `/*`"
            return syntax_error("`/` alone selects no node.", last.span, note)
        case "DOT_BELOW" if last.type == "TEXT":
            return _below_text(last.span)
        case "DOT_BELOW" if types == ["TEXT", "VARIABLE"]:
            return _below_text(before[-2].span.to(last.span))
        case "DOT_BELOW" if "BELOW" in accepted:
            message = "`.//` begins a predicate; within a path write `//`."
            return syntax_error(message, token.span, "drop the dot")
        case "_RSQB" if last.type == "LSQB":
            note = "say what has to stand below: `[b]`"
            span = last.span.to(token.span)
            return syntax_error("The predicate is empty.", span, note, "C1203")
        case "SLASH" if "DOT_BELOW" in accepted:
            note = "leave out the `/` for a child, or write `.//` for a descendant"
            return syntax_error("A predicate does not begin at the root.", token.span, note)
    if "STAR" in accepted:
        return _no_step(token)
    if accepted <= {"VARIABLE", "LPAR", "EQUAL", "QUOTED", "NAME"} or last.type == "LPAR":
        return _no_operand(before, token, accepted)
    for closing, what, sign in (("_RSQB", "predicate", "]"), ("_RPAR", "bracket", ")")):
        if closing in accepted:
            message = f"The {what} does not end."
            return syntax_error(message, token.span, f"close it with `{sign}`")
    if token.type == "VARIABLE":
        note = "write it after its test: `a$x`"
        return syntax_error("A variable stands here without a node.", token.span, note)
    note = "expected `/`, `//`, `[`, `|`, `where`, `return`, `key` or the end"
    return syntax_error(f"`{token.text}` is not expected here.", token.span, note)


def _no_step(token: _Token) -> QuerySyntaxError:
    """Return the error of a token where a step is expected."""
    if token.type == "DOT":
        note = "write `[.//b]` for a descendant, `[b='v']` or `[text()='v']` for a value"
        return syntax_error("`.` is not supported by itself.", token.span, note, "C1201")
    if token.type in ("DOC", "COLLECTION"):
        note = "write `doc(…)/r[a] and doc(…)/s[b]`: each path begins at its document"
        return syntax_error("Documents are named where a path begins.", token.span, note)
    if token.type == "AT":
        return syntax_error("An attribute has no name.", token.span, "write `@name`")
    shown = "the query ends" if token.type == "$END" else f"there is `{token.text}`"
    note = 'write a label, `*`, `@name`, `text()` or a "quoted label"'
    return syntax_error(f"A step is expected here, but {shown}.", token.span, note)


def _no_operand(before: list[_Token], token: _Token, accepted: set[str]) -> QuerySyntaxError:
    """Return the error of a token in a comparison or in a list of variables."""
    if "QUOTED" in accepted:
        note = "quote it: `[b='v']`"
        if token.type == "VARIABLE":
            note = "equalities of variables stand at the end: `where $x = $y`"
        message = "Only a quoted label can stand after `=`."
        return syntax_error(message, before[-1].span, note)
    if "_RPAR" in accepted:
        message = "`return ()` has nothing in its brackets."
        return syntax_error(message, token.span, "list variables without")
    in_list = ("VARIABLE", "EQUAL", "_AND", "_COMMA", "NAME", "QUOTED")
    word = next(each.text for each in reversed(before) if each.type not in in_list)
    if word == "where":
        note = "write `where $x = $y`, or `where $d - $p > 3600`"
        return syntax_error("`where` compares variables.", token.span, note)
    note = "write `return $x, $y`, or `return ()` for yes or no"
    note = "write `key $x`, or `key $x, $y`" if word == "key" else note
    return syntax_error(f"`{word}` lists variables.", token.span, note)


def _below_text(span: Span | None) -> QuerySyntaxError:
    return syntax_error("A leaf has nothing below it.", span, "ask for `text()` last")


def _too_deep(span: Span | None) -> QuerySyntaxError:
    message = f"The query is nested more than {MAX_LEVELS} levels deep."
    return syntax_error(message, span, code="C1206")


# --- patterns ------------------------------------------------------------------------------------


@v_args(inline=True)
class _Builder(Transformer[_Token, object]):
    """Builds patterns as lark parses, so that nothing recurses."""

    def query(self, *parts: Any) -> tuple[Any, ...]:
        return parts

    def roots(self, *roots: list[PatternNode]) -> list[PatternNode]:
        return [node for each in roots for node in each]

    def root(self, axis: _Token, node: PatternNode) -> list[PatternNode]:
        if axis.type == "SLASH":
            return [node]
        below = (Edge(Axis.DESCENDANT, node),)
        return [node, PatternNode(None, None, below, span=axis.span)]

    def source(self, *parts: Any) -> tuple[_Token, Edge]:
        word, *variable, axis, node = parts
        name = next((each.text for each in variable if each is not None), None)
        label = word.text if word.type == "DOC" else None
        below = (Edge(Axis(axis.text), node),)
        return word, Edge(Axis.CHILD, PatternNode(label, name, below, span=word.span))

    def joint(self, *sources: tuple[_Token, Edge]) -> list[PatternNode]:
        edges = tuple(edge for _, edge in sources)
        return [PatternNode(None, None, edges, NodeKind.COLLECTION, sources[0][0].span)]

    def path(self, steps: tuple[Any, ...], _: _Token | None, value: _Token | None) -> PatternNode:
        nodes, axes = [*steps[::2]], [Axis(each.text) for each in steps[1::2]]
        if len(nodes) > MAX_LEVELS:
            raise _too_deep(nodes[-1].span)
        found: PatternNode = nodes.pop()
        if value is not None:
            text = PatternNode(value.text, span=value.span)
            if found.kind is not None:  # `text()='v'` is the text itself
                kind = None if found.kind is NodeKind.TEXT else found.kind
                found = replace(text, variable=found.variable, kind=kind)
            else:
                found = replace(found, branches=(*found.branches, Edge(Axis.CHILD, text)))
        while nodes:
            above = nodes.pop()
            found = replace(above, branches=(*above.branches, Edge(axes.pop(), found)))
        return found

    def steps(self, *steps: PatternNode | _Token) -> tuple[PatternNode | _Token, ...]:
        return steps

    def step(
        self,
        test: _Token,
        variable: _Token | None,
        word: _Token | None,
        arrival: _Token | None,
        *predicates: tuple[Branch, ...],
    ) -> PatternNode:
        name, span, last = None, test.span, test
        if variable is not None:
            name, span, last = variable.text, test.span.to(variable.span), variable
        last = last if arrival is None else arrival
        kind = _KINDS.get(test.text.partition("(")[0].rstrip()) if test.type == "TEXT" else None
        if kind is not None and (
            predicates or (last.next and last.next.type in ("SLASH", "BELOW"))
        ):
            raise _below_text(span)
        label = None if test.type in ("STAR", "TEXT") else test.text
        branches = tuple(branch for each in predicates for branch in each)
        time = None if arrival is None or word is None else arrival.text
        return PatternNode(label, name, branches, kind, span, time)

    def predicate(self, opening: _Token, *several: tuple[Branch, ...]) -> tuple[Branch, ...]:
        if len(several) == 1:
            return several[0]
        return (OrBranch(several, opening.next.span if opening.next else None),)

    def conjunction(self, *primaries: tuple[Branch, ...]) -> tuple[Branch, ...]:
        return tuple(branch for each in primaries for branch in each)

    def edge(self, below: _Token | None, node: PatternNode) -> tuple[Branch, ...]:
        return (Edge(Axis.DESCENDANT if below else Axis.CHILD, node),)

    def operand(self, token: _Token) -> _Token:
        return token

    def sum(self, *parts: _Token) -> tuple[_Token, ...]:
        return parts

    def condition(
        self, left: tuple[_Token, ...], operator: _Token, right: tuple[_Token, ...]
    ) -> _WrittenCondition:
        return _WrittenCondition(left, operator, right)

    def where(self, *conditions: _WrittenCondition) -> tuple[Any, ...]:
        return conditions

    def outputs(self, *listed: _Token) -> tuple[_Token, ...]:
        return tuple(each for each in listed if each.type == "VARIABLE")

    def key(self, _: _Token, *listed: _Token) -> tuple[_Token, ...]:
        return listed


# --- what stands after `where` -------------------------------------------------------------------


def _read_conditions(
    written: Iterable[_WrittenCondition], arrivals: Collection[str] = ()
) -> tuple[tuple[tuple[str, str], ...], Conditions, list[Diagnostic]]:
    """Return the joins, the other conditions, and what is wrong about them.

    Args:
        written: what stands after `where`.
        arrivals: the variables that are times at which nodes came: their values are compared.
    """
    joins: list[tuple[str, str]] = []
    numbers: list[NumberComparison] = []
    differences: list[LabelDifference] = []
    findings: list[Diagnostic] = []
    for each in written:
        types = [token.type for token in each.operands]
        left, right = each.left[0].text, each.right[0].text
        is_plain = len(each.left) == len(each.right) == 1 and "VARIABLE" in types
        is_plain = is_plain and left not in arrivals and right not in arrivals
        if is_plain and types == ["VARIABLE", "VARIABLE"] and each.operator.text == "=":
            joins.append((left, right))
        elif is_plain and "NAME" not in types and each.operator.text == "!=":
            if types[0] == "QUOTED":
                left, right = right, left
            differences.append(LabelDifference(left, right, is_label="QUOTED" in types))
        elif is_plain and "QUOTED" in types and each.operator.text == "=":
            note = "for a text, write `[b='v']` into the pattern"
            message = "`where` compares variables with each other, and with numbers."
            findings.append(Diagnostic("C1200", message, each.operator.span, note))
        else:
            numbers += _number_comparison(each, findings)
    conditions = Conditions(tuple(numbers), tuple(differences), tuple(sorted(arrivals)))
    is_large = len(conditions.classes) > MAX_COMPARED_CLASSES
    if is_large or sum(each.operator == "!=" for each in numbers) > MAX_UNEQUAL:
        message = f"More than {MAX_COMPARED_CLASSES} variables are compared"
        message += f", or more than {MAX_UNEQUAL} numbers by `!=`."
        findings.append(Diagnostic("C1206", message, None, "split the query"))
    return tuple(joins), conditions, findings


def _number_comparison(
    written: _WrittenCondition, findings: list[Diagnostic]
) -> list[NumberComparison]:
    terms: dict[str, Fraction] = {}
    constant = Fraction(0)
    for side, parts in ((1, written.left), (-1, written.right)):
        for at in range(0, len(parts), 2):
            token = parts[at]
            sign = -side if at and parts[at - 1].text == "-" else side
            if token.type == "VARIABLE":
                terms[token.text] = terms.get(token.text, Fraction(0)) + sign
                continue
            if token.type == "NAME" and token.text == "now":
                terms[NOW] = terms.get(NOW, Fraction(0)) + sign
                continue
            value = literal_number(token.text)
            if value is None:
                message = f"`{token.text}` is neither a number nor a time."
                note = (
                    "write `3600`, `1h`, `30min`, `90s`, `2d`, or a time such as '2026-05-01T12:00'"
                )
                findings.append(Diagnostic("C1213", message, token.span, note))
                return []
            constant += sign * Fraction(value)
    if not any(terms.values()):
        note = "compare at least one variable, and not with itself: `where $x > 3`"
        message = "The comparison is between numbers only."
        findings.append(Diagnostic("C1213", message, written.operator.span, note))
        return []
    return [NumberComparison.of(terms, constant, written.operator.text)]


# --- what a query has to be besides --------------------------------------------------------------


def _check_query(
    source: SourceFile,
    roots: list[PatternNode],
    written: tuple[_WrittenCondition, ...],
    outputs: tuple[_Token, ...] | None,
    key: tuple[_Token, ...],
) -> DocumentQuery:
    """Return the query, if its variables are in order."""
    nodes = [node for root in roots for node in nodes_of(root)]
    bound = {name: node.span for node in nodes for name in (node.variable, node.arrival) if name}
    arrivals = [node.arrival for node in nodes if node.arrival]
    compared = [token for each in written for token in each.operands if token.type == "VARIABLE"]
    named = [*compared, *(outputs or ()), *key]
    findings = [
        Diagnostic(
            "C1204",
            f"There is no variable `${token.text}` in the pattern.",
            token.span,
            "write it after the test whose label it stands for: `*$x`",
        )
        for token in named
        if token.text not in bound
    ]
    returned = list(bound) if outputs is None else [token.text for token in outputs]
    spans = {token.text: token.span for token in outputs or ()}
    findings += [
        Diagnostic(
            "C1205",
            f"`${name}` is not bound in every alternative, but it is returned.",
            spans.get(name, bound[name]),
            "bind it in each, or list what to return: `return …`, `return ()` for yes or no",
        )
        for name in dict.fromkeys(returned)
        if name in bound and not all(name in bound_in(root) for root in roots)
    ]
    equalities, conditions, wrong = _read_conditions(written, arrivals)
    findings += [
        Diagnostic(
            "C1257",
            f"`${name}` is a time of arrival, and stands elsewhere, too.",
            bound[name],
            "give it a variable of its own, and compare: `where $t - $u <= 1h`",
        )
        for name in dict.fromkeys(arrivals)
        if arrivals.count(name) > 1 or any(node.variable == name for node in nodes)
    ]
    findings += wrong
    findings += [
        Diagnostic(
            "C1212",
            f"`${name}` is compared, but it is not bound in every alternative.",
            next(token.span for token in compared if token.text == name),
            "bind it in each, or ask two queries",
        )
        for name in conditions.classes
        if name in bound and not all(name in bound_in(root) for root in roots)
    ]
    joint = [root.kind is NodeKind.COLLECTION for root in roots]
    if any(joint) and not all(joint):
        message = "A path begins at no document, but another one of the query does."
        note = 'begin each with `doc("name")` or `collection()`'
        findings.append(Diagnostic("C1256", message, roots[joint.index(False)].span, note))
    findings += _wrong_keys([each for each in key if each.text in bound], returned)
    if findings:
        raise QuerySyntaxError(findings)
    promised = tuple(token.text for token in key)
    return DocumentQuery(tuple(roots), equalities, conditions, tuple(returned), promised, source)


def _wrong_keys(key: list[_Token], outputs: list[str]) -> list[Diagnostic]:
    """Return what is wrong about the variables of a key."""
    if key and not outputs:
        message = "A query for yes or no has no key: it has no answers that differ."
        return [Diagnostic("C1209", message, key[0].span, "return variables, or leave out the key")]
    findings = []
    for at, token in enumerate(key):
        if token.text not in outputs:
            message = f"`${token.text}` is in the key, but it is not returned."
            note = "return it, too, or leave it out of the key"
            findings.append(Diagnostic("C1207", message, token.span, note))
        elif token.text in (each.text for each in key[:at]):
            message = f"`${token.text}` is in the key twice."
            findings.append(Diagnostic("C1208", message, token.span, "leave one out"))
    return findings
