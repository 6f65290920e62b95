"""The cases of active documents: `tests/cases/documents/*.json`, each file tells its format."""

import json
from typing import Any

import pytest

from corollary.documents.active_collection import ActiveCollection
from corollary.documents.answers.search_limits import SearchLimits
from corollary.documents.answers.unknown import Answer
from corollary.documents.document import ActiveDocument
from corollary.documents.view import View
from corollary.errors import InputError
from support.paths import CASES as FOLDERS

CASES = [
    pytest.param(case, id=case["id"])
    for path in sorted((FOLDERS / "documents").glob("*.json"))
    for case in json.loads(path.read_text("utf-8"))["cases"]
]


@pytest.mark.parametrize("case", CASES)
def test_case(case: dict[str, Any]) -> None:
    error = case.get("error")
    if error:
        with pytest.raises(InputError, match=error if isinstance(error, str) else None):
            opened(case).view(case["query"])
        return
    document = opened(case)
    view = document.view(case["query"])
    document.apply(map(tuple, case.get("updates", ())), case.get("terminated", ()))
    for step in case.get("steps", ()):
        make_step(document, step)
        compare(document, view, step.get("expect", {}))
    compare(document, view, case.get("expect", {}))


def opened(case: dict[str, Any]) -> ActiveDocument:
    options = {
        "once": case.get("nonstream", ()),
        "types": case.get("types"),
        "document_type": case.get("document_type"),
        "limits": SearchLimits(*case["limits"]) if "limits" in case else None,
    }
    if "documents" in case:
        return ActiveCollection(case["documents"], **options)
    if "json" in case:
        return ActiveDocument.from_json(case["json"], **options)
    if "xml" in case:
        return ActiveDocument.from_xml(case["xml"], **options)
    return ActiveDocument.from_terms(case["doc"], **options)


def make_step(document: ActiveDocument, step: dict[str, Any]) -> None:
    updates, retractions = [*step.get("add", {}).items()], [*step.get("retract", {}).items()]
    if "replace" in step:
        function, old, new = step["replace"]
        updates.append((function, new))
        retractions.append((function, old))
    arguments = (updates, step.get("end", ()), retractions, step.get("at"))
    if "error" in step:
        with pytest.raises(InputError, match=step["error"]):
            document.apply(*arguments)
    else:
        document.apply(*arguments)
    if step.get("gc"):
        document.gc()


def compare(document: ActiveDocument, view: View, expected: dict[str, Any]) -> None:
    found = {
        "value": lambda: view.value,
        "sure": lambda: shown(view.sure),
        "possible": lambda: shown(view.possible()),
        "minimal": lambda: shown(view.minimal),
        "useful": lambda: sorted(view.useful()),
        "exact": lambda: view.is_exact,
        "useful_exact": lambda: view.usefulness().is_exact,
        "terms": document.terms,
    }
    for name in found.keys() & expected.keys():
        assert found[name]() == _sorted(expected[name]), name
    useful = view.useful() if {"useful_has", "useful_not"} & expected.keys() else frozenset()
    assert useful >= {*expected.get("useful_has", ())}
    assert not useful & {*expected.get("useful_not", ())}


def shown(answers: frozenset[Answer]) -> list[list[str]]:
    return sorted([str(label) for label in each] for each in answers)


def _sorted(expected: Any) -> Any:
    return sorted(expected) if isinstance(expected, list) else expected
