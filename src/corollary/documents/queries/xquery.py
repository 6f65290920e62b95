"""A Boolean query as an XQuery that computes its three-valued truth over the XML of a document.

As the prototype of the paper did, without its errors: a call counts as 1/2 after `//`, too. The
values are min over branches and max over candidates; the query's external variable `$ended` holds
the names of functions that have ended. For a query node p the XQuery has two functions:

    local:node-p($n)    the value of p at a node: 0 if its test fails, else the least of branches
    local:branch-p($n)  the greatest value of p in range of a node; a call in range gives 1/2
"""

from typing import assert_never

from corollary.documents.queries.joins import build_shape
from corollary.documents.queries.parse import parse_query, several_documents, syntax_error
from corollary.documents.queries.pattern import Axis
from corollary.documents.queries.shape import Fork, Group, Node, parts_of
from corollary.documents.trees.forest import NodeKind

_PROLOGUE = """\
xquery version "3.1";
(: The value of {query} :)
declare namespace ad = "urn:active-document";
declare variable $ended as xs:string* external := ();

(: What stands directly below a node: an attribute has its value below it. :)
declare function local:children($n as item()) as item()* {{
  typeswitch ($n)
    case element() return ($n/@*, $n/(* except ad:call), $n/text()[normalize-space()])
    case attribute() return string($n)
    default return ()
}};
declare function local:descendants($n as item()) as item()* {{
  for $child in local:children($n) return ($child, local:descendants($child))
}};
declare function local:label($n as item()) as xs:string {{
  typeswitch ($n)
    case element() return local-name($n)
    case attribute() return concat("@", local-name($n))
    case text() return replace(string($n), "^\\s+|\\s+$", "")
    default return string($n)
}};
(: The calls of functions that have not ended. :)
declare function local:calls($n as item()) as xs:string* {{
  if ($n instance of element()) then (
    $n/processing-instruction(call)/normalize-space(.), $n/ad:call/string(@name)
  )[not(. = $ended)] else ()
}};
declare function local:half($calls as xs:string*) as xs:decimal {{
  if (exists($calls)) then 0.5 else 0
}};
"""
_KINDS = {
    NodeKind.TEXT: "($n instance of text() or $n instance of xs:string)",
    NodeKind.NUMBER: "false()",
    NodeKind.LITERAL: "false()",
}
"""How leaves are told apart; XML has neither numbers nor literals."""


def xquery_of(text: str) -> str:
    """Return a Boolean query as an XQuery; its context is the document.

    Raises:
        QuerySyntaxError: it is not a query, or has answers or joins.
    """
    query = parse_query(text)
    if query.is_joint:
        raise several_documents(query, "begin at the root of one document: `/r[a]`")
    shape = build_shape(query)
    is_joined = shape.has_times or any(node.carried for node in shape.nodes())
    if not shape.is_boolean or is_joined:
        note = "end it with `return ()`, and leave out joins"
        raise syntax_error(
            "Only a query without answers and joins has an XQuery.", None, note, "C1260"
        )
    written = text.replace("(:", "( :").replace(":)", ": )")
    parts = [_PROLOGUE.format(query=" ".join(written.split()))]
    roots = []
    for root in shape.roots:
        parts.append(_node(root.node))
        for part in parts_of(root.node.group):
            match part:
                case Node():
                    parts += [_node(part), _branch(part)]
                case Fork():
                    parts.append(_fork(part))
                case Group():
                    pass  # it stands within its fork
                case _:
                    assert_never(part)
        roots.append(f"local:node-{root.node.number}(/*)")
    return "".join(parts) + f"\nmax((0, {', '.join(roots)}))\n" if roots else "0\n"


def _function(name: str, body: str) -> str:
    return f"declare function local:{name}($n as item()) as xs:decimal {{\n  {body}\n}};\n"


def _node(node: Node) -> str:
    tests = [] if node.label is None else [f"local:label($n) = {_string(node.label)}"]
    tests += [] if node.kind is None else [_KINDS[node.kind]]
    least = _least(node.group)
    condition = " and ".join(tests)
    body = f"if ({condition}) then {least} else 0" if tests else least
    return _function(f"node-{node.number}", body)


def _least(group: Group) -> str:
    if not group.branches:
        return "1"
    called = (f"local:branch-{each.number}($n)" for each in group.branches)
    return f"min(({', '.join(called)}))"


def _branch(node: Node) -> str:
    is_deep = node.axis is Axis.DESCENDANT
    below = "local:descendants($n)" if is_deep else "local:children($n)"
    callers = "($n, local:descendants($n))" if is_deep else "$n"
    body = (
        f"max((local:half({callers} ! local:calls(.)),\n"
        f"       {below} ! local:node-{node.number}(.)))"
    )
    return _function(f"branch-{node.number}", body)


def _fork(fork: Fork) -> str:
    return _function(f"branch-{fork.number}", f"max(({', '.join(map(_least, fork.alternatives))}))")


def _string(label: str) -> str:
    return '"' + label.replace("&", "&amp;").replace('"', '""') + '"'
