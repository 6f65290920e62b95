"""All nodes of a query tree."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from corollary.core.types import Type
from corollary.source import Span


def nodes_of(node: Any) -> Iterator[Any]:
    """Yields the dataclasses in a tree, itself first; types and places are left out."""
    if isinstance(node, tuple | list):
        for each in node:
            yield from nodes_of(each)
    elif is_dataclass(node) and not isinstance(node, Type | Span):
        yield node
        for field in fields(node):
            yield from nodes_of(getattr(node, field.name))
