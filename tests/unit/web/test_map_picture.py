"""The map: every relation on its floor, no two boxes over each other, whatever they are called."""

from __future__ import annotations

import random
from xml.etree import ElementTree as ET

import pytest

from corollary.web.pictures.map import MapArc, MapNode, MapPicture

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '<script>alert("1")</script>'


def node(name: str, floor: int, **other: object) -> MapNode:
    """Return a relation on a floor."""
    values = {
        "component": hash(name),
        "kind": "derived, stored",
        "is_base": floor == 0,
        "is_stored": True,
        "is_recursive": False,
        "tuples": 8,
        "added": 0,
        "removed": 0,
        "url": f"/relations/{name}",
    }
    return MapNode(name=name, floor=floor, **{**values, **other})  # type: ignore[arg-type]


def drawn(nodes: list[MapNode], arcs: list[MapArc]) -> ET.Element:
    """Return the picture as a tree."""
    text = str(MapPicture(nodes, arcs).svg())
    assert "style=" not in text  # the page allows no inline style
    return ET.fromstring(text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def boxes(picture: ET.Element) -> dict[str, tuple[float, float, float, float]]:
    """Return where the boxes are: left, top, right, bottom."""
    found = {}
    for link in picture.iter(f"{SVG}a"):
        rect = next(each for each in link.iter(f"{SVG}rect") if each.get("class") == "box")
        x, y, width, height = (float(rect.get(each, "")) for each in ("x", "y", "width", "height"))
        found[link.get("data-relation", "")] = (x, y, x + width, y + height)
    return found


def test_base_relations_are_lowest() -> None:
    nodes = [node("base", 0), node("middle", 1), node("top", 2)]
    found = boxes(drawn(nodes, [MapArc("base", "middle", "positive")]))
    assert found["base"][1] > found["middle"][3]
    assert found["middle"][1] > found["top"][3]


@pytest.mark.parametrize("seed", range(8))
def test_boxes_do_not_overlap(seed: int) -> None:
    chance = random.Random(seed)
    floors = [chance.randint(0, 5) for _ in range(chance.randint(1, 60))]
    names = [f"r{number}" + "x" * chance.randint(0, 40) for number in range(len(floors))]
    components = [chance.randint(0, 20) * 10 + floor for floor in floors]
    nodes = [
        node(name, floor, component=component)
        for name, floor, component in zip(names, floors, components, strict=True)
    ]
    arcs = [
        MapArc(below.name, above.name, chance.choice(["positive", "negative", "aggregate"]))
        for below in nodes
        for above in nodes
        if below.floor < above.floor and chance.random() < 0.1
    ]
    picture = drawn(nodes, arcs)
    found = list(boxes(picture).values())
    assert len(found) == len(nodes)
    for number, one in enumerate(found):
        assert one[0] >= 0
        assert one[2] <= float(picture.get("width", "0"))
        for other in found[number + 1 :]:
            apart = (
                one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
            )
            assert apart, (one, other)
    paths = [
        each for each in picture.iter(f"{SVG}path") if (each.get("class") or "").startswith("arc")
    ]
    assert len(paths) == len(arcs)


def test_a_change_flows_along_arrows_between_relations_that_changed() -> None:
    nodes = [node("a", 0, added=1), node("b", 1, added=4, removed=1), node("c", 1)]
    arcs = [MapArc("a", "b", "positive"), MapArc("a", "c", "positive")]
    picture = drawn(nodes, arcs)
    flows = [each for each in picture.iter(f"{SVG}path") if each.get("class") == "flow"]
    assert [each.get("data-floor") for each in flows] == ["1"]
    badges = ["".join(each.itertext()) for each in picture.iter(f"{SVG}g")]
    assert badges == ["+1", "+4−1"]


def test_relations_of_one_recursion_have_a_frame() -> None:
    nodes = [node("even", 1, component=1), node("odd", 1, component=1), node("other", 1)]
    picture = drawn(nodes, [MapArc("even", "odd", "positive"), MapArc("odd", "even", "positive")])
    frames = [each for each in picture.iter(f"{SVG}rect") if each.get("class") == "together"]
    assert len(frames) == 1
    left = float(frames[0].get("x", ""))
    right = left + float(frames[0].get("width", ""))
    found = boxes(picture)
    assert left <= min(found["even"][0], found["odd"][0])
    assert right >= max(found["even"][2], found["odd"][2])
    assert not left < found["other"][0] < right


def test_names_are_escaped() -> None:
    text = str(
        MapPicture([node(HOSTILE, 0), node("b", 1)], [MapArc(HOSTILE, "b", "positive")]).svg()
    )
    assert "<script" not in text
    assert 'alert("' not in text


def test_an_empty_program_has_an_empty_map() -> None:
    assert boxes(drawn([], [])) == {}
