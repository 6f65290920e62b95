"""Proofs in notebooks: the picture, and the steps as a tree that unfolds."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from corollary.provenance.forms.text import beside_of, label_of
from corollary.provenance.nodes import ProofNode, ProofRule

OPEN_LEVELS = 2
"""So many levels are unfolded at first."""


def proof_as_html(
    nodes: Sequence[ProofNode], rules: Mapping[int, ProofRule], picture: str, summary: str
) -> str:
    """Return the picture of a proof, and below it the tree.

    Args:
        nodes: of the proof.
        rules: by number.
        picture: as SVG.
        summary: a line below them.
    """
    tree = "".join(_tree(nodes, rules))
    return (
        f'<div class="corollary-proof" style="font-family: monospace">{picture}'
        f"{tree}<p>{escape(summary)}</p></div>"
    )


def _tree(nodes: Sequence[ProofNode], rules: Mapping[int, ProofRule]) -> Iterator[str]:
    """Yield the tree: what has something below it is a `<details>`, where it comes first."""
    shown: set[int] = set()
    work: list[tuple[int, int] | str] = [(0, 0)]
    while work:
        item = work.pop()
        if isinstance(item, str):
            yield item
            continue
        number, level = item
        node = nodes[number]
        children = (*node.premises, *node.notes)
        words = escape(label_of(node))
        beside = escape(beside_of(node, rules))
        line = f"{words} <small>{beside}</small>" if beside else words
        if not children or number in shown:
            again = " <small>(above)</small>" if children else ""
            yield f'<div style="margin-left: 1.5em">{line}{again}</div>'
            continue
        shown.add(number)
        is_open = ' open=""' if level < OPEN_LEVELS else ""
        yield f'<details style="margin-left: 1.5em"{is_open}><summary>{line}</summary>'
        work.append("</details>")
        work += [(child, level + 1) for child in reversed(children)]
