"""The map of relations: floors, arrows, and what the commit that is shown has changed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from starlette.responses import Response

from corollary.data_class import dataclass
from corollary.serve import requests
from corollary.web.pictures.map import MapArc, MapNode, MapPicture, arcs_of, floor_name
from corollary.web.visit import Page, Visit


@dataclass(frozen=True, slots=True)
class ListedNode:
    """A relation in the list that says what the map shows."""

    node: MapNode
    reads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Floor:
    """A floor of the list: its name and relations."""

    name: str
    nodes: tuple[ListedNode, ...]

    @property
    def size(self) -> int:
        """How many relations it has."""
        return len(self.nodes)


async def show_map(visit: Visit) -> Response:
    """Show the map, and the last commits beside it."""
    graph, relations, changes = await _asked(visit)
    nodes = _nodes(visit, graph, relations, changes)
    arcs = arcs_of(graph)
    as_list = visit.parameters.get("view") == "list"
    return await visit.render(
        "map.html",
        floors=_floors(nodes, arcs),
        as_list=as_list,
        picture="" if as_list else MapPicture(nodes, arcs).svg(),
        commits=await recent_commits(visit),
    )


async def _asked(
    visit: Visit,
) -> tuple[dict[str, Any], list[dict[str, Any]], Mapping[str, tuple[int, int]]]:
    """Return the graph, the relations, and how many tuples of each came and went."""
    changes: Mapping[str, tuple[int, int]]
    timeline = await visit.timeline()
    graph, relations = await visit.ask_all(
        requests.GraphRequest(at=visit.at), requests.RelationsRequest(at=visit.at)
    )
    if visit.since is not None:
        asked = requests.DifferenceRequest(since=visit.since, at=visit.at, limit=0)
        found = (await visit.ask(asked))["changes"]
        changes = {name: (each["counts"][0], each["counts"][1]) for name, each in found.items()}
    else:
        changes = timeline.changes
    return graph, relations["relations"], changes


def _nodes(
    visit: Visit,
    graph: Mapping[str, Any],
    relations: Iterable[Mapping[str, Any]],
    changes: Mapping[str, tuple[int, int]],
) -> list[MapNode]:
    known = {each["name"]: each for each in relations}
    found = []
    for each in graph["nodes"]:
        name = each["name"]
        if name not in known:
            continue
        relation = known[name]
        added, removed = changes.get(name, (0, 0))
        is_base = relation["kind"] == "base"
        found.append(
            MapNode(
                name=name,
                floor=each["floor"],
                component=each["group"],
                kind=describe_kind(relation, is_recursive=each["recursive"]),
                is_base=is_base,
                is_stored=relation["kind"] != "virtual",
                is_recursive=each["recursive"],
                tuples=relation["tuples"],
                added=added,
                removed=removed,
                url=visit.relation_url(name),
            )
        )
    return found


def describe_kind(relation: Mapping[str, Any], *, is_recursive: bool) -> str:
    """Return what a relation is, in words.

    >>> describe_kind({"kind": "derived", "copies": True}, is_recursive=False)
    'derived, stored, with copies'
    >>> describe_kind({"kind": "virtual", "copies": False}, is_recursive=True)
    'recursive, virtual'
    """
    word = {"base": "base", "derived": "stored", "virtual": "virtual"}[relation["kind"]]
    if relation["kind"] != "base":
        word = f"{'recursive' if is_recursive else 'derived'}, {word}"
    return f"{word}, with copies" if relation["copies"] else word


def _floors(nodes: Sequence[MapNode], arcs: Iterable[MapArc]) -> list[Floor]:
    """Return the floors of the list, the highest first."""
    reads: dict[str, list[str]] = {}
    signs = {"positive": "", "negative": "!", "aggregate": ""}
    for arc in arcs:
        if arc.below != arc.above:
            reads.setdefault(arc.above, []).append(f"{signs[arc.polarity]}{arc.below}")
    found: dict[int, list[ListedNode]] = {}
    for each in nodes:
        read = tuple(dict.fromkeys(reads.get(each.name, ())))
        found.setdefault(each.floor, []).append(ListedNode(each, read))
    return [Floor(floor_name(floor), tuple(found[floor])) for floor in sorted(found, reverse=True)]


COMMITS_SHOWN, RELATIONS_SHOWN, ALERTS_SHOWN = 12, 5, 3


async def recent_commits(visit: Visit) -> list[dict[str, Any]]:
    """Return the commits up to the one that is shown, newest first, ready for `feed.html`."""
    before = None if visit.at is None else visit.at + 1
    found, raised = await visit.ask_all(
        requests.CommitsRequest(limit=COMMITS_SHOWN, before=before), requests.AlertsRequest()
    )
    alerts: dict[int, list[dict[str, Any]]] = {}
    for each in raised["alerts"]:
        why = visit.url(tuple=each["goal"], ask=None, commit=each["commit"])
        alerts.setdefault(each["commit"], []).append({"message": each["message"], "why": why})
    commits: list[dict[str, Any]] = found["commits"]
    for each in commits:
        changes = sorted(each["changes"].items(), key=lambda change: -sum(change[1].values()))
        own = alerts.get(each["commit"], [])
        is_short = len(changes) <= RELATIONS_SHOWN + 1
        each["shown"] = changes if is_short else changes[:RELATIONS_SHOWN]
        each["more"] = len(changes) - len(each["shown"])
        each["raised"] = own[:ALERTS_SHOWN]
        each["more_alerts"] = each["alerts"] - len(each["raised"])
    return commits


PAGES = (Page("/", show_map, "Map", "g m"),)
