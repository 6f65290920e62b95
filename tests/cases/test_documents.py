"""The cases of active documents: `tests/cases/documents/*.json`, each file tells its format."""

import json
from typing import Any

import pytest

from corollary.documents.answers.unknown import Answer
from corollary.documents.document import ActiveDocument
from corollary.errors import InputError
from support.paths import CASES as FOLDERS

CASES = [
    pytest.param(case, id=case["id"])
    for path in sorted((FOLDERS / "documents").glob("*.json"))
    for case in json.loads(path.read_text("utf-8"))["cases"]
]


@pytest.mark.parametrize("case", CASES)
def test_case(case: dict[str, Any]) -> None:
    if case.get("error"):
        type_ = case.get("document_type")
        with pytest.raises(InputError):
            ActiveDocument.from_terms(case["doc"], document_type=type_).view(case["query"])
        return
    document = ActiveDocument.from_terms(
        case["doc"],
        once=case.get("nonstream", ()),
        types=case.get("types"),
        document_type=case.get("document_type"),
    )
    view = document.view(case["query"])
    document.apply(map(tuple, case.get("updates", ())), case.get("terminated", ()))
    found = {
        "value": view.value,
        "sure": shown(view.sure),
        "possible": shown(view.possible()),
        "minimal": shown(view.minimal),
        "useful": sorted(view.useful()),
        "exact": view.is_exact,
    }
    expected = case["expect"]
    for name in found.keys() & expected.keys():
        assert found[name] == _sorted(expected[name]), name
    assert set(found["useful"]) >= set(expected.get("useful_has", ()))
    assert not set(found["useful"]) & set(expected.get("useful_not", ()))


def shown(answers: frozenset[Answer]) -> list[list[str]]:
    return sorted([str(label) for label in each] for each in answers)


def _sorted(expected: Any) -> Any:
    return sorted(expected) if isinstance(expected, list) else expected
