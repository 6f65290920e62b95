"""The layout of a program: its relations and their parts, as JSON in the catalog.

The normal form of a program does not follow from its text alone: which base relation has moved to a
base part, and which name a generated relation has, depends on the programs before it. So the
signatures of all relations are stored, and the definitions of generated ones.
"""

from collections.abc import Mapping
from typing import Any

from corollary.core.program import NormalProgram, Relation
from corollary.core.types import type_from_json
from corollary.rewrite.align import definition_digests


def layout_of(program: NormalProgram) -> dict[str, Any]:
    """Return the layout of a program as JSON values."""
    return {
        "relations": {
            name: {
                "columns": list(relation.columns),
                "types": [each.as_json for each in relation.types],
                "derived": relation.is_derived,
                "virtual": relation.is_virtual,
                "declared": relation.is_declared,
            }
            for name, relation in program.relations.items()
        },
        "bases": dict(program.bases),
        "bags": dict(program.bags),
        "parts": {name: dict(parts) for name, parts in program.parts.items()},
        "definitions": definition_digests(program),
    }


def program_of_layout(layout: Mapping[str, Any]) -> NormalProgram:
    """Return a program without rules that has the relations and base parts of a layout."""
    relations = {
        name: Relation(
            name,
            tuple(each["columns"]),
            tuple(map(type_from_json, each["types"])),
            is_derived=each["derived"],
            is_virtual=each["virtual"],
            is_declared=each["declared"],
        )
        for name, each in layout["relations"].items()
    }
    return NormalProgram(
        relations, (), (), {}, layout["bases"], layout["parts"], bags=layout.get("bags", {})
    )
