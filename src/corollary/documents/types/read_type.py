"""The text of types: `order[number, item+, (paid | bill), note?, !carrier]`.

    type    := (trees rule* | rule+) constraint*      the first one is the type of whole trees
    rule    := NAME '=' trees                         trees := tree ('|' tree)*
    tree    := label ['[' [model] ']']  |  'text()'  |  'number()'  |  'literal()'  |  'ANY'
    label   := NAME  |  '@'NAME  |  "quoted"  |  '*'
    model   := item (',' item)*  |  item ('|' item)*
    item    := atom ['?' | '*' | '+']                 atom  := tree  |  '!'NAME  |  '(' model ')'
    constraint := 'key' path '(' path (',' path)* ')'  |  path 'in' path
    path    := NAME ('/' NAME)*  |  '.'

A name with a rule is that type; any other is a tree with this label and, without brackets, anything
below it. `a[]` is a leaf, `*` any label, `ANY` any tree. `!f` says that `f` may be called there; it
is no child. `constraints` says what constraints mean: only documents have them. `#` begins a
comment. A text that begins with `<!` is a DTD.
"""

import re
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path

from corollary.data_class import dataclass
from corollary.documents.errors import ActiveDocumentError
from corollary.documents.trees.forest import NodeKind
from corollary.documents.types.constraints import (
    DocumentConstraint,
    DocumentKey,
    LabelPath,
    ValueInclusion,
)
from corollary.documents.types.content_models import (
    ALTERNATIVES_MAX,
    ContentChoice,
    ContentLimitError,
    ContentModel,
    ContentSequence,
    Repetition,
    TypeReference,
    counts_of,
)
from corollary.documents.types.dtd import read_dtd
from corollary.documents.types.function_types import (
    ANY,
    ANYTHING,
    FunctionType,
    Grammar,
    Labels,
    Production,
)
from corollary.errors import InputError
from corollary.source import SourceFile, Span

_TOKEN = re.compile(
    r"""(?:\s|;|\#[^\n]*)*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"
        |(?P<kind>text|number|literal)\(\)
        |!(?P<call>[^\s\[\]()|,?*+!"=;\#]+)
        |(?P<name>[^\s\[\]()|,?*+!"=;\#]+)
        |(?P<sign>[\[\]()|,?*+=])|(?P<end>\Z)|(?P<other>.))""",
    re.VERBOSE | re.DOTALL,
)
KINDS = {"text": NodeKind.TEXT, "number": NodeKind.NUMBER, "literal": NodeKind.LITERAL}
START = "the type"
"""What the type of whole trees is called if it has no name."""


def read_type(source: str | Path, name: str = "type") -> Grammar:
    """Return the type that a text says, or a file; `shop.dtd#order` is the type of one element.

    Args:
        source: the text, or the path of a file.
        name: what messages call the text.

    Raises:
        ActiveDocumentError: it is malformed, or the file cannot be read.
    """
    text, element = str(source), None
    if isinstance(source, Path) or _is_path(text):
        path, _, fragment = text.partition("#")
        element, name = fragment or None, Path(path).name
        try:
            text = Path(path).read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            message = f"`{path}` cannot be read: {getattr(error, 'strerror', None) or error}."
            raise ActiveDocumentError.of("C1229", message) from None
    if text.lstrip().startswith("<"):
        return read_dtd(text, element, name)
    return _TypeReader(SourceFile(name, text)).read()


GivenType = FunctionType | Path | Iterable[str]
"""The type of a function: labels, a grammar, the text of one (a string), or the path of a file."""


def function_type(name: str, type_: GivenType) -> FunctionType:
    """Return the type of a function as it is given.

    Raises:
        ActiveDocumentError: it is malformed.
    """
    if isinstance(type_, FunctionType):
        return type_
    if isinstance(type_, str | Path):
        grammar = read_type(type_, f"type of {name}")
        if grammar.constraints:
            message = f"The type of `{name}` has the constraint `{grammar.constraints[0]}`."
            note = "constraints are for a whole document: write them into its type"
            raise ActiveDocumentError.of("C1247", message, None, note)
        return grammar
    return Labels(frozenset(type_))


def _is_path(text: str) -> bool:
    path = Path(text.partition("#")[0])
    return path.suffix.lower() in (".dtd", ".type") and "\n" not in text and "[" not in text


@dataclass(frozen=True, slots=True)
class _TypeToken:
    type: str
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class _WrittenTree:
    """A tree as it is written: a label or a kind, and what is below it, if that is said."""

    token: _TypeToken
    model: ContentModel | None = None
    calls: frozenset[str] = frozenset()


@dataclass(slots=True)
class _TypeReader:
    source: SourceFile
    _tokens: list[_TypeToken] = field(default_factory=list)
    _at: int = 0
    _rules: dict[str, tuple[Production, ...]] = field(default_factory=dict)
    _named: dict[str, list[_WrittenTree]] = field(default_factory=dict)
    _anonymous: dict[_WrittenTree, str] = field(default_factory=dict)

    def read(self) -> Grammar:
        """Return the grammar.

        Raises:
            ActiveDocumentError: the text is malformed.
        """
        self._split()
        heads = {
            token.text
            for token, after in zip(self._tokens, self._tokens[1:], strict=False)
            if token.type == "name" and after.text == "=" and after.type == "sign"
        }
        self._named = {name: [] for name in heads}
        start = START
        if self._is_head():
            start = self._token.text
        else:
            self._named[START] = []
            self._read_trees(START)
        seen: set[str] = set()
        while self._token.type != "end" and not self._is_constraint():
            head = self._token
            if not self._is_head():
                note = "separate trees by `|`; what stands together goes into brackets: `r[a, b]`"
                raise self._error(head, f"`{head.text}` is not expected here.", note)
            if head.text in seen or head.text == ANY:
                message = f"The type `{head.text}` is defined twice, or is the one of all trees."
                raise self._error(head, message, "leave one out, or give it another name")
            seen.add(head.text)
            self._at += 2
            self._read_trees(head.text)
        constraints: list[DocumentConstraint] = []
        while self._token.type != "end":
            constraints.append(self._read_constraint())
        names = {name: self._productions(name, {name}) for name in self._named}
        return Grammar(start, {**self._rules, **names}, tuple(constraints))

    # --- tokens ----------------------------------------------------------------------------------

    def _split(self) -> None:
        text, position = self.source.text, 0
        while True:
            found = _TOKEN.match(text, position)
            assert found is not None  # the last alternative takes anything
            kind = found.lastgroup or "other"
            written = found[kind]
            length = len(written) + {"quoted": 2, "kind": 2, "call": 1}.get(kind, 0)
            start, position = found.end() - length, found.end()
            line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
            span = Span(self.source, line, column, line, column + max(1, length))
            if kind == "quoted":
                written = re.sub(r"\\(.)", r"\1", written)
            self._tokens.append(_TypeToken(kind, written, span))
            if kind == "other":
                note = 'close quotes by `"`, and write `!f` for a function'
                raise self._error(self._tokens[-1], f"`{written}` is not expected here.", note)
            if kind == "end":
                return

    @property
    def _token(self) -> _TypeToken:
        return self._tokens[self._at]

    def _is_sign(self, sign: str) -> bool:
        return self._token.type == "sign" and self._token.text == sign

    def _is_head(self) -> bool:
        if self._token.type != "name":
            return False
        after = self._tokens[self._at + 1]
        return after.type == "sign" and after.text == "="

    def _take(self, sign: str) -> bool:
        if self._is_sign(sign):
            self._at += 1
            return True
        return False

    def _error(self, token: _TypeToken, message: str, note: str) -> InputError:
        return ActiveDocumentError.of("C1240", message, token.span, note)

    # --- the syntax ------------------------------------------------------------------------------

    def _read_trees(self, name: str) -> None:
        while True:
            self._named[name].append(self._read_tree())
            if not self._take("|"):
                return

    def _read_tree(self) -> _WrittenTree:
        token = self._token
        is_star = token.type == "sign" and token.text == "*"
        if token.type not in ("name", "quoted", "kind") and not is_star:
            shown = f"`{token.text}` stands" if token.type != "end" else "The text ends"
            note = (
                "write `a`, `a[b, c?]`, `text()` or `ANY`; sequences and choices go into brackets"
            )
            raise self._error(token, f"{shown} where a tree is expected.", note)
        self._at += 1
        if token.type == "kind" or not self._take("["):
            return _WrittenTree(token)
        calls: set[str] = set()
        model: ContentModel = ContentSequence()
        if not self._is_sign("]"):
            model = self._read_model(calls)
        self._close("]")
        return _WrittenTree(token, model, frozenset(calls))

    def _close(self, sign: str) -> None:
        if not self._take(sign):
            shown = f"`{self._token.text}` stands" if self._token.type != "end" else "The text ends"
            note = f"add `{sign}`, or `,` or `|` between children"
            raise self._error(self._token, f"{shown} where `{sign}` is expected.", note)

    def _read_model(self, calls: set[str]) -> ContentModel:
        parts = [self._read_item(calls)]
        sign = self._token.text if self._is_sign(",") or self._is_sign("|") else ""
        while sign and self._take(sign):
            parts.append(self._read_item(calls))
        if self._is_sign(",") or self._is_sign("|"):
            message = "A sequence and a choice stand side by side."
            raise self._error(self._token, message, "put one into parentheses: `a, (b | c)`")
        if len(parts) == 1:
            return parts[0]
        return ContentChoice(tuple(parts)) if sign == "|" else ContentSequence(tuple(parts))

    def _read_item(self, calls: set[str]) -> ContentModel:
        if self._token.type == "call":
            calls.add(self._token.text)
            self._at += 1
            found: ContentModel = ContentSequence()
        elif self._take("("):
            found = self._read_model(calls)
            self._close(")")
        else:
            found = self._reference(self._read_tree())
        for sign, is_required, is_single in (
            ("?", False, True),
            ("*", False, False),
            ("+", True, False),
        ):
            if self._take(sign):
                return Repetition(found, is_required, is_single)
        return found

    # --- constraints -----------------------------------------------------------------------------

    def _is_constraint(self) -> bool:
        token, *after = self._tokens[self._at : self._at + 2]
        if token.type != "name" or not after or after[0].type != "name":
            return False
        return token.text == "key" or after[0].text == "in"

    def _read_constraint(self) -> DocumentConstraint:
        token = self._token
        if not self._is_constraint():
            note = "write `key shop/order (number)`, or `shop/order/customer in shop/customer/id`"
            raise self._error(token, f"`{token.text}` is not expected here.", note)
        if token.text == "key" and self._tokens[self._at + 1].text != "in":
            self._at += 1
            nodes = self._read_path()
            if not self._take("("):
                note = "name what nodes do not have in common: `key shop/order (number)`"
                raise self._error(self._token, "The key does not say of what.", note)
            fields = [self._read_path(is_relative=True)]
            while self._take(","):
                fields.append(self._read_path(is_relative=True))
            self._close(")")
            return DocumentKey(nodes, tuple(fields))
        source = self._read_path()
        self._at += 1
        return ValueInclusion(source, self._read_path())

    def _read_path(self, *, is_relative: bool = False) -> LabelPath:
        token = self._token
        labels = tuple(token.text.split("/"))
        if is_relative and labels == (".",):
            labels = ()
        if token.type != "name" or not all(labels) or "." in labels:
            shown = f"`{token.text}` stands" if token.type != "end" else "The text ends"
            note = "write labels from the root down: `shop/order/number`"
            raise self._error(token, f"{shown} where a path is expected.", note)
        self._at += 1
        return labels

    # --- types -----------------------------------------------------------------------------------

    def _reference(self, tree: _WrittenTree) -> ContentModel:
        """Return what stands for a tree in a content model."""
        token = tree.token
        if token.type == "name" and tree.model is None and token.text in (*self._named, ANY):
            return TypeReference(token.text)
        key = _WrittenTree(
            _TypeToken(token.type, token.text, Span(self.source, 0, 0, 0, 0)),
            tree.model,
            tree.calls,
        )
        if key not in self._anonymous:
            name = label = token.text if token.type != "kind" else f"{token.text}()"
            at = 2
            while name in self._rules or name in self._named or name == ANY:
                name, at = f"{label} {at}", at + 1
            self._anonymous[key] = name
            self._rules[name] = self._of_tree(tree)
        return TypeReference(self._anonymous[key])

    def _productions(self, name: str, seen: set[str]) -> tuple[Production, ...]:
        """Return the productions of a type with a name: those of its trees, and of other types."""
        found: list[Production] = []
        for tree in self._named[name]:
            token = tree.token
            is_plain = token.type == "name" and tree.model is None
            if is_plain and token.text == ANY:
                found.append(ANYTHING)
            elif is_plain and token.text in self._named:
                if token.text in seen:
                    message = f"The type `{token.text}` is defined by itself."
                    raise self._error(token, message, "give it a label: `a[…]`")
                found += self._productions(token.text, {*seen, token.text})
            else:
                found += self._of_tree(tree)
        return tuple(dict.fromkeys(found))

    def _of_tree(self, tree: _WrittenTree) -> tuple[Production, ...]:
        token = tree.token
        if token.type == "kind":
            return (Production(None, kind=KINDS[token.text]),)
        labels = None if token.type == "sign" else frozenset({token.text})
        if tree.model is None:
            return (Production(labels, ANYTHING.children),)
        try:
            several = counts_of(tree.model)
        except ContentLimitError:
            message = f"The content of `{token.text}` has more than {ALTERNATIVES_MAX} choices."
            note = "let a choice be a type of its own, or allow any number: `(a | b)*`"
            raise self._error(token, message, note) from None
        return tuple(Production(labels, each.children, tree.calls, each.groups) for each in several)


def show_production(production: Production) -> str:
    """Return a production as text.

    >>> show_production(read_type("a[b, c?, (d, e)*]").productions(START)[0])
    'a[b, c?, (d, e)*]'
    """
    label = " | ".join(sorted(production.labels or ())) or "*"
    if production.kind is not None:
        return next(f"{name}()" for name, kind in KINDS.items() if kind is production.kind)
    signs = {(True, True): "", (False, True): "?", (False, False): "*", (True, False): "+"}
    parts = [
        f"{child.type}{signs[child.is_required, child.is_single]}" for child in production.children
    ]
    parts += [f"({', '.join(group)})*" for group in production.groups]
    parts += [f"!{name}" for name in sorted(production.calls)]
    return f"{label}[{', '.join(parts)}]"
