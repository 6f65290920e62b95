"""Records: their texts, Python and JSON values, files, and what comes back after reopening."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.core.records.record_text import split_record
from corollary.core.records.record_values import record_from_python, record_to_python
from corollary.core.types import NUMBER, SYMBOL, Branch, Kind, RecordType, Type
from corollary.core.values import SCALARS, parse_value, value_from_json, value_to_json

LIST = RecordType("List", "list")
LIST_TYPE = Type(Kind.SYMBOL, record=LIST)
LIST.branches = {"[]": Branch("[]", ("head", "tail"), (NUMBER, LIST_TYPE))}
TREE = RecordType("Tree", "tree")
TREE_TYPE = Type(Kind.SYMBOL, record=TREE)
TREE.branches = {
    "Leaf": Branch("Leaf", ("name",), (SYMBOL,)),
    "Empty": Branch("Empty", (), ()),
    "Node": Branch("Node", ("left", "right"), (TREE_TYPE, TREE_TYPE)),
}


@pytest.mark.parametrize(
    ("written", "text", "type_"),
    [
        ("[1,[ 2 , nil]]", "[1, [2, nil]]", LIST_TYPE),
        ("$Node($Empty(), $Leaf(a b))", "$Node($Empty, $Leaf(a b))", TREE_TYPE),
        ('$Leaf("plain")', "$Leaf(plain)", TREE_TYPE),
        (r'$Leaf("f(x), \"y\" \\")', r'$Leaf("f(x), \"y\" \\")', TREE_TYPE),
        ("$Leaf([a])", "$Leaf([a])", TREE_TYPE),
    ],
)
def test_a_value_has_one_text(written: str, text: str, type_: Type) -> None:
    assert parse_value(written, type_) == text
    assert parse_value(text, type_) == text
    assert value_from_json(value_to_json(text, type_), type_) == text


@pytest.mark.parametrize(
    "text", ["", "[1]", "[1, 2]", "[x, nil]", "nil nil", "$Leaf(1)", "[1, nil", "[1, nil]]"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a value of `List`"):
        parse_value(text, LIST_TYPE)


def test_deep_records_need_no_stack() -> None:
    text, value = "nil", None
    for number in range(5000):
        text, value = f"[{number}, {text}]", (number, value)
    assert parse_value(text, LIST_TYPE) == text
    assert split_record(text, LIST, SCALARS).fields[0] == 4999
    assert record_from_python(value, LIST, SCALARS, lambda each, _: each) == text
    found: Any = record_to_python(text, LIST, SCALARS)
    assert (found[0], found[1][0]) == (4999, 4998)


def test_types_survive_the_way_to_a_task() -> None:
    copy = pickle.loads(pickle.dumps(TREE_TYPE))
    assert copy.record == TREE
    assert copy.record.branches["Node"].types[0].record == TREE


@dataclass
class Leaf:
    name: str


def test_python_values_of_several_forms() -> None:
    forms = [Leaf("a"), ("Leaf", "a"), ["$Leaf", "a"], {"Leaf": ["a"]}, "$Leaf(a)"]
    made = {record_from_python(each, TREE, SCALARS, lambda value, _: value) for each in forms}
    assert made == {"$Leaf(a)"}
    with pytest.raises(ValueError, match="is not a value of `Tree`"):
        record_from_python(("Leaf", "a", "b"), TREE, SCALARS, lambda value, _: value)


PROGRAM = """
.type Pair = [x: number, y: symbol]
.type T = A {p: Pair} | B {}
.decl p(a: Pair, t: T)
.input p(IO=file, filename="p.jsonl")
.decl x(n: number)
x(n) :- p([n, _], $A(_)).
"""
LINES = (
    '{"a": [1, "u"], "t": {"A": [[2, "v, w"]]}}\n'
    '{"a": {"x": 3, "y": "z"}, "t": {"B": []}}\n'
    '{"a": null, "t": "$A(nil)"}\n'
)


def test_records_last(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text(LINES)
    (tmp_path / "p.dl").write_text(PROGRAM)
    expected = {
        ((1, "u"), ("A", (2, "v, w"))),
        ((3, "z"), ("B",)),
        (None, ("A", None)),
    }
    with corollary.open(tmp_path / "wh", engine="local") as db:
        db.run(tmp_path / "p.dl", facts=tmp_path)
        assert set(db.relation("p").rows()) == expected
    with corollary.open(tmp_path / "wh", engine="local") as db:
        assert set(db.relation("p").rows()) == expected
        assert db.relation("x").rows() == [(1,)]
        (tmp_path / "p.jsonl").write_text(LINES.replace("[1,", "[7,"))
        db.run(tmp_path / "p.dl", facts=tmp_path)
        assert db.relation("x").rows() == [(7,)]
        assert "[7, " in str(db.why("x(7)"))
        assert db.sql("SELECT CAST(a AS VARCHAR) AS s FROM p WHERE t = t AND a <> a").rows() == []


def test_what_does_not_fit_is_refused() -> None:
    with corollary.open(None, engine="local") as db:
        db.load(text=PROGRAM.replace('.input p(IO=file, filename="p.jsonl")\n', ""))
        message = "Row 1 does not fit the column `a` of `p`"
        with pytest.raises(corollary.InputError, match=message), db.transaction() as tx:
            tx.insert("p", [((1, 2), ("B",))])
