"""DTDs as types.

| DTD                                | type                                             |
|------------------------------------|--------------------------------------------------|
| `<!ELEMENT a (b, c?, (d | e)+)>`   | `a = a[b, c?, (d | e)+]`                         |
| `<!ELEMENT a EMPTY>`, `ANY`        | `a[]`, `a[ANY*]`                                 |
| `(#PCDATA)`, `(#PCDATA | b)*`      | `text()*`, `(text() | b)*`                       |
| `<!ATTLIST a k CDATA #REQUIRED>`   | a child `@k[text()]`; `?` unless it is required  |
| `<!ATTLIST a k (x | y) "x">`       | a child `@k["x" | "y"]?`                         |

Trees have no order, so a sequence says how many there are of each. The type of whole trees is that
of the elements that no other one contains; of the first one if there are none. Names lose their
prefixes, as in documents. External entities are refused: nothing is fetched.
"""

import re
from io import BytesIO
from typing import Any

from corollary.documents.errors import ActiveDocumentError
from corollary.documents.trees.forest import NodeKind
from corollary.documents.types.content_models import (
    ContentChoice,
    ContentLimitError,
    ContentModel,
    ContentSequence,
    Repetition,
    TypeReference,
    counts_of,
)
from corollary.documents.types.function_types import ANY, Grammar, Production
from corollary.errors import InputError

_EXTERNAL = re.compile(r"<!ENTITY\s+(?:%\s+)?\S+\s+(?:SYSTEM|PUBLIC)\b")
_OCCURRENCES = {"opt": (False, True), "mult": (False, False), "plus": (True, False)}
TEXT = "text()"
START = "the document"
"""The type of whole trees."""


def read_dtd(text: str, element: str | None = None, name: str = "DTD") -> Grammar:
    """Return the type of a DTD.

    Args:
        text: the DTD.
        element: the one that whole trees are of; those that no other contains if not given.
        name: what messages call the text.

    Raises:
        ActiveDocumentError: it is not a DTD, or refers to other files.
    """
    try:
        from lxml import etree
    except ImportError:
        raise InputError.of(
            "C1251", "A DTD needs the package lxml.", None, "pip install 'corollary[documents]'"
        ) from None
    if _EXTERNAL.search(text):
        message = f"`{name}` has an external entity, which is refused."
        raise ActiveDocumentError.of("C1241", message, None, "put the declarations into one file")
    try:
        dtd = etree.DTD(BytesIO(text.encode("utf-8")))
        declared = list(dtd.iterelements())
    except etree.DTDParseError as error:
        line = error.error_log[0] if len(error.error_log) else None
        position = "" if line is None else f", line {line.line}: {line.message.strip()}"
        note = "declare elements by `<!ELEMENT name (content)>`"
        raise ActiveDocumentError.of(
            "C1241", f"`{name}` is not a DTD{position}.", None, note
        ) from None
    rules: dict[str, tuple[Production, ...]] = {TEXT: (Production(None, kind=NodeKind.TEXT),)}
    contained: set[str] = set()
    for each in declared:
        model = _model_of(each, contained)
        model = ContentSequence((model, *_attributes(each, rules)))
        try:
            counts = counts_of(model)
        except ContentLimitError:
            message = f"The content of `{each.name}` in `{name}` has too many exclusive choices."
            note = "allow any number: `(a | b)*`"
            raise ActiveDocumentError.of("C1241", message, None, note) from None
        label = frozenset({_local(each.name)})
        rules[_local(each.name)] = tuple(
            Production(label, some.children, groups=some.groups) for some in counts
        )
    names = [_local(each.name) for each in declared]
    roots = [each for each in names if each not in contained] or names[:1]
    if element is not None or not names:
        if element not in names:
            known = ", ".join(f"`{each}`" for each in names) or "none"
            message = f"`{name}` declares no element{'' if element is None else f' `{element}`'}."
            raise ActiveDocumentError.of("C1241", message, None, f"it has {known}")
        roots = [str(element)]
    start = tuple(production for each in roots for production in rules[each])
    return Grammar(START, {**rules, START: start})


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _model_of(element: Any, contained: set[str]) -> ContentModel:
    if element.type == "any":
        return Repetition(TypeReference(ANY), is_required=False, is_single=False)
    if element.content is None:
        return ContentSequence()
    return _content(element.content, contained, _local(element.name))


def _content(content: Any, contained: set[str], above: str) -> ContentModel:
    """Return the model of a part of a DTD's content; note the elements that it contains."""
    found: ContentModel
    if content.type == "pcdata":
        return Repetition(TypeReference(TEXT), is_required=False, is_single=False)
    if content.type == "element":
        name = _local(content.name)
        if name != above:
            contained.add(name)
        found = TypeReference(name)
    else:
        parts = tuple(
            _content(each, contained, above)
            for each in (content.left, content.right)
            if each is not None
        )
        found = ContentSequence(parts) if content.type == "seq" else ContentChoice(parts)
    if content.occur in _OCCURRENCES:
        is_required, is_single = _OCCURRENCES[content.occur]
        return Repetition(found, is_required, is_single)
    return found


def _attributes(element: Any, rules: dict[str, tuple[Production, ...]]) -> list[ContentModel]:
    """Return the models of an element's attributes; their types become rules."""
    found: list[ContentModel] = []
    for each in element.iterattributes():
        label = f"@{_local(each.name)}"
        values = frozenset(each.values() or ())
        if each.default == "fixed":
            values = frozenset({each.default_value})
        value = TEXT
        if values:
            value = f"value of {element.name} {label}"
            rules[value] = (Production(values),)
        name = f"{element.name} {label}"
        (counts,) = counts_of(TypeReference(value))
        rules[name] = (Production(frozenset({label}), counts.children),)
        reference = TypeReference(name)
        is_required = each.default == "required"
        found.append(reference if is_required else Repetition(reference, False, True))
    return found
