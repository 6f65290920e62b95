"""Reads queries on documents.

    query := path ('|' path)* ['where' $v '=' $w ('and' …)*] ['return' ($v (',' $w)* | '()')]
             ['key' $v (',' $w)*]
    path  := ('/' | '//') step (('/' | '//') step)*     step := test ['$'name] ('[' or ']')*
    test  := NAME | '*' | '@'NAME | "label" | 'text()'
    or    := and (('or' | '|') and)*                    and  := prim ('and' prim)*
    prim  := '(' or ')' | ['.//' | '//'] step (('/' | '//') step)* ['=' "label"]

A leading `//a` stands for `/a | /*//a`: the root itself is found, too, as in XPath. `key` is a word
of the language only behind a path or a list: elsewhere it is a label like any other.
"""

from dataclasses import dataclass, field, replace

from corollary.documents.errors import QuerySyntaxError
from corollary.documents.lexer import Token, tokens, wrong
from corollary.documents.pattern import (
    Axis,
    Branch,
    Choice,
    Edge,
    PatternNode,
    Query,
    bound_in,
    nodes_of,
)
from corollary.errors import Diagnostic
from corollary.source import SourceFile, Span

DEEPEST = 100
"""Patterns may not be nested deeper, so that no later pass runs out of stack."""
LARGEST = 500
"""Nodes that a query may have."""


def parse_query(text: str, name: str = "query") -> Query:
    """Return the query that a text says.

    >>> parse_query("/r[b or c]/a$x").outputs
    ('x',)

    Raises:
        QuerySyntaxError: it is none, or one that is not supported.
    """
    return _Parser(SourceFile(name, text)).query()


@dataclass(slots=True)
class _Parser:
    source: SourceFile
    tokens: list[Token] = field(init=False)
    place: int = 0
    depth: int = 0

    def __post_init__(self) -> None:
        self.tokens = tokens(self.source)

    @property
    def next(self) -> Token:
        return self.tokens[self.place]

    def take(self, *types: str) -> Token | None:
        """Return the next token and go on behind it, if it is of one of these types."""
        token = self.next
        if token.type not in types:
            return None
        self.place += 1
        return token

    def demand(self, type_: str, message: str, note: str | None = None) -> Token:
        found = self.take(type_)
        if found is None:
            raise wrong(message, self.next.span, note)
        return found

    # --- the grammar ---------------------------------------------------------------------------

    def query(self) -> Query:
        roots = self.path()
        while self.take("|"):
            roots += self.path()
        equalities: list[tuple[Token, Token]] = []
        if self.take("where"):
            equalities.append(self.equality())
            while self.take("and", ","):
                equalities.append(self.equality())
        outputs = self.outputs() if self.take("return") else None
        key = self.key()
        if self.next.type != "end":
            raise self.unexpected()
        if sum(1 for root in roots for _ in nodes_of(root)) > LARGEST:
            raise wrong(f"The query has more than {LARGEST} nodes.", None, code="C1206")
        return self.judged(roots, equalities, outputs, key)

    def unexpected(self) -> QuerySyntaxError:
        token = self.next
        if token.type == "variable":
            return wrong(
                "A variable stands here without a node.",
                token.span,
                "write it behind its test: `a$x`",
            )
        expected = "`/`, `//`, `[`, `|`, `where`, `return`, `key` or the end"
        return wrong(f"`{token.text}` is not expected here.", token.span, f"expected {expected}")

    def path(self) -> list[PatternNode]:
        """Return the patterns of an absolute path: two if it begins with `//`."""
        start = self.take("/", "below")
        if start is None or start.text == ".//":
            raise wrong(
                "A query begins at the root of the document.",
                self.next.span if start is None else start.span,
                "begin with `/` and the label of the root, or with `//`",
                "C1202",
            )
        if start.text == "/" and self.next.type == "end":
            raise wrong("`/` alone selects no node.", start.span, "name the root: `/r`, or `/*`")
        node = self.steps()
        if start.text == "/":
            return [node]
        return [node, PatternNode(None, None, (Edge(Axis.DESCENDANT, node),), span=start.span)]

    def steps(self) -> PatternNode:
        """Return the first step of a path, the others below it."""
        nodes = [self.step()]
        axes: list[Axis] = []
        while (token := self.take("/", "below")) is not None:
            if token.text == ".//":
                raise wrong(
                    "`.//` begins a predicate; within a path write `//`.",
                    token.span,
                    "drop the dot",
                )
            axes.append(Axis.CHILD if token.text == "/" else Axis.DESCENDANT)
            nodes.append(self.step())
        if len(nodes) > DEEPEST:
            raise self.too_deep(nodes[-1].span)
        if (token := self.take("=")) is not None:
            nodes.append(self.compared(token))
            axes.append(Axis.CHILD)
            if nodes[-2].is_text:  # `text()='v'` is the text itself
                nodes[-2:], axes[-1:] = [replace(nodes[-1], variable=nodes[-2].variable)], []
        found = nodes.pop()
        while nodes:
            above = nodes.pop()
            found = replace(above, branches=(*above.branches, Edge(axes.pop(), found)))
        return found

    def compared(self, equals: Token) -> PatternNode:
        if (value := self.take("quoted")) is not None:
            return PatternNode(value.text, span=value.span)
        note = "quote it: `[b='v']`"
        if self.next.type == "variable":
            note = "equalities of variables stand at the end: `where $x = $y`"
        raise wrong("Only a quoted label can stand behind `=`.", equals.span, note)

    def step(self) -> PatternNode:
        token = self.next
        if (found := self.take("name", "attribute", "quoted")) is not None:
            node = PatternNode(found.text, span=found.span)
        elif (found := self.take("*")) is not None:
            node = PatternNode(None, span=found.span)
        elif (found := self.take("text")) is not None:
            node = PatternNode(None, span=found.span, is_text=True)
        else:
            raise self.no_test(token)
        if (variable := self.take("variable")) is not None:
            node = replace(node, variable=variable.text, span=token.span.to(variable.span))
        branches: list[Branch] = []
        while (bracket := self.take("[")) is not None:
            if self.next.type == "]":
                raise wrong(
                    "The predicate is empty.",
                    bracket.span.to(self.next.span),
                    "say what has to stand below: `[b]`",
                    "C1203",
                )
            self.depth += 1
            if self.depth > DEEPEST:
                raise self.too_deep(bracket.span)
            branches += self.alternatives()
            self.depth -= 1
            self.demand("]", "The predicate does not end.", "close it with `]`")
        if node.is_text and (branches or self.next.type in ("/", "below")):
            raise wrong("Text has nothing below it.", node.span, "ask for `text()` last")
        return replace(node, branches=tuple(branches))

    def no_test(self, token: Token) -> QuerySyntaxError:
        if token.type == ".":
            note = "write `[.//b]` for a descendant, `[b='v']` or `[text()='v']` for a value"
            return wrong("`.` is not supported by itself.", token.span, note, "C1201")
        if token.type == "@":
            return wrong("An attribute has no name.", token.span, "write `@name`")
        shown = "the query ends" if token.type == "end" else f"there is `{token.text}`"
        note = 'write a label, `*`, `@name`, `text()` or a "quoted label"'
        return wrong(f"A step is expected here, but {shown}.", token.span, note)

    def too_deep(self, span: Span | None) -> QuerySyntaxError:
        return wrong(f"The query is nested more than {DEEPEST} levels deep.", span, code="C1206")

    def alternatives(self) -> tuple[Branch, ...]:
        """Return the branches that `… or …` says: a choice, unless there is only one."""
        began = self.next.span
        found = [self.conjunction()]
        while self.take("or", "|"):
            found.append(self.conjunction())
        return found[0] if len(found) == 1 else (Choice(tuple(found), began),)

    def conjunction(self) -> tuple[Branch, ...]:
        found = self.primary()
        while self.take("and"):
            found += self.primary()
        return found

    def primary(self) -> tuple[Branch, ...]:
        if (bracket := self.take("(")) is not None:
            self.depth += 1
            if self.depth > DEEPEST:
                raise self.too_deep(bracket.span)
            found = self.alternatives()
            self.depth -= 1
            self.demand(")", "The bracket does not end.", "close it with `)`")
            return found
        if (slash := self.take("/")) is not None:
            note = "leave out the `/` for a child, or write `.//` for a descendant"
            raise wrong("A predicate does not begin at the root.", slash.span, note)
        axis = Axis.DESCENDANT if self.take("below") else Axis.CHILD
        return (Edge(axis, self.steps()),)

    def equality(self) -> tuple[Token, Token]:
        note = "write `where $x = $y`; for a value, write `[b='v']` into the pattern"
        left = self.demand("variable", "`where` compares variables.", note)
        self.demand("=", "`where` compares by `=`.", note)
        return left, self.demand("variable", "`where` compares variables.", note)

    def outputs(self) -> list[Token]:
        if self.take("("):
            self.demand(")", "`return ()` has nothing in its brackets.", "list variables without")
            return []
        return self.variables("return", "write `return $x, $y`, or `return ()` for yes or no")

    def key(self) -> list[Token]:
        if (self.next.type, self.next.text) != ("name", "key"):
            return []
        self.place += 1
        return self.variables("key", "write `key $x`, or `key $x, $y`")

    def variables(self, word: str, note: str) -> list[Token]:
        found = [self.demand("variable", f"`{word}` lists variables.", note)]
        while self.take(","):
            found.append(self.demand("variable", f"`{word}` lists variables.", note))
        return found

    # --- what a query has to be besides --------------------------------------------------------

    def judged(
        self,
        roots: list[PatternNode],
        equalities: list[tuple[Token, Token]],
        outputs: list[Token] | None,
        key: list[Token],
    ) -> Query:
        """Return the query, if its variables are in order."""
        places = {
            node.variable: node.span for root in roots for node in nodes_of(root) if node.variable
        }
        named = [*(each for pair in equalities for each in pair), *(outputs or ()), *key]
        findings = [
            Diagnostic(
                "C1204",
                f"There is no variable `${token.text}` in the pattern.",
                token.span,
                "write it behind the test whose label it stands for: `*$x`",
            )
            for token in named
            if token.text not in places
        ]
        asked = list(places) if outputs is None else [token.text for token in outputs]
        spans = {token.text: token.span for token in outputs or ()}
        findings += [
            Diagnostic(
                "C1205",
                f"`${name}` is not bound in every alternative, but it is returned.",
                spans.get(name, places[name]),
                "bind it in each, or list what to return: `return …`, `return ()` for yes or no",
            )
            for name in dict.fromkeys(asked)
            if name in places and not all(name in bound_in(root) for root in roots)
        ]
        findings += _wrong_keys([each for each in key if each.text in places], asked)
        if findings:
            raise QuerySyntaxError(findings)
        pairs = tuple((left.text, right.text) for left, right in equalities)
        promised = tuple(token.text for token in key)
        return Query(tuple(roots), pairs, tuple(asked), promised, self.source)


def _wrong_keys(key: list[Token], outputs: list[str]) -> list[Diagnostic]:
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
