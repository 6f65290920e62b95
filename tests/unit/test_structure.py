"""What a newcomer may rely on: small folders and modules, no circles, one name for one thing."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.paths import REPOSITORY, TESTS

SOURCE = REPOSITORY / "src"
PACKAGE = SOURCE / "corollary"
MODULES_MAX = 25
LINES_MAX = 700
AT_MOST = {
    "modules": 991,
    "lines": 205_100,
    "lines of imports per 1,000": 70,
    "modules that name kinds of types": 45,
    "modules above 500 lines": 48,
}
"""What the package has today. A number goes down with what it counts, and up for a reason."""
IMPORT = re.compile(r"^ *(?:import|from [\w.]+ import) (?:\([^)]*\)|[^\n]*)", re.MULTILINE)
KIND = re.compile(r"\bKind\.")
"""Where a kind of types is named: others ask a type what it is."""
ENGINES = ("corollary.engines.local.", "corollary.engines.spark.")
"""Two engines may have a class of one name each: they are siblings."""

SHORT_LINES = 80
REASONS = {
    "analysis.checks": "a pass",
    "rewrite": "a pass",
    "maintain.algorithms": "an algorithm",
    "cli.commands": "a command",
    "database.alerts": "a sink",
    "engines.local.evaluation.choices": "a step of plans, loaded when it first runs",
    "serve.handlers": "an endpoint",
    "web.pages": "a page",
}
"""Why a short module with a single user is one: by its name, or by a package above."""

CALLED_BY_LIBRARIES = {
    "_parse_pivot_aggregation",
    "build_middleware_stack",
    "capture_signals",
    "format_commands",
    "_warn_unsupported",
    "raise_error",
    "readinto",
    "analyze",
    "reportLatestOffset",
    *("_analyze", "_set_relation_in_plan", "execute_command", "get_configs", "get_config_dict"),
    *("add_threadlocal_user_context_extension", "remove_user_context_extension"),
    *("pytest_collect_file", "runtest", "reportinfo"),
    *("register_output", "register_flow", "register_auto_cdc_flow", "register_sql"),
}
"""Methods that override those of starlette, uvicorn, click, sqlglot, `io`, pytest and PySpark."""

COLLECTING = {"collect", "toArrow", "toPandas", "toLocalIterator"}
MAY_COLLECT = {
    "corollary.engines.spark.frames": "says why each is small",
}
"""The modules that bring rows of Spark to the driver."""
_COLLECTED = re.compile(rf"[.\"'](?:{'|'.join(COLLECTING)})\b")
"""An attribute, or a text, of such a name."""

FILES = sorted(PACKAGE.rglob("*.py"))
ARCHITECTURE = REPOSITORY / "docs" / "architecture.md"


def module_of(path: Path) -> str:
    """Return the dotted name of a file; a package is named without its `__init__`."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def statements_of(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements in a node, at any depth; in expressions there are none."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for each in getattr(node, field, ()) if not isinstance(node, ast.Lambda) else ():
            if isinstance(each, ast.stmt):
                yield each
            yield from statements_of(each)


MODULES = {module_of(path): path for path in FILES}


# ------------------------------------------------------------------------------ folders and modules


@pytest.mark.parametrize("root", [PACKAGE, TESTS], ids=["src", "tests"])
def test_no_folder_has_more_than_25_modules(root: Path) -> None:
    counts = {
        str(folder.relative_to(REPOSITORY)): len(
            [each for each in folder.glob("*.py") if each.name != "__init__.py"]
        )
        for folder in [root, *(each for each in root.rglob("*") if each.is_dir())]
    }
    assert {name: count for name, count in counts.items() if count > MODULES_MAX} == {}


def test_no_module_has_more_than_700_lines() -> None:
    lengths = {module_of(path): len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert {name: length for name, length in lengths.items() if length > LINES_MAX} == {}


@pytest.fixture(scope="module")
def sizes() -> dict[str, float]:
    texts = [each.read_text("utf-8") for each in FILES]
    lines = [each.count("\n") for each in texts]
    imports = sum(found.count("\n") + 1 for each in texts for found in IMPORT.findall(each))
    return {
        "modules": len(FILES),
        "lines": sum(lines),
        "lines of imports per 1,000": 1_000 * imports / sum(lines),
        "modules that name kinds of types": len([1 for each in texts if KIND.search(each)]),
        "modules above 500 lines": sum(each > 500 for each in lines),
    }


@pytest.mark.parametrize("what", AT_MOST)
def test_the_package_does_not_grow(what: str, sizes: dict[str, float]) -> None:
    assert sizes[what] <= AT_MOST[what]


def test_every_package_is_named_in_the_architecture() -> None:
    text = ARCHITECTURE.read_text("utf-8")
    packages = [
        name for name, path in MODULES.items() if path.name == "__init__.py" and "." in name
    ]
    short = {name: name.removeprefix("corollary.").replace(".", "/") for name in packages}
    missing = [
        name
        for name, path in short.items()
        if not any(form in text for form in (f"`{path}/", f"`{path}`", f"{path}/", f"`{name}`"))
    ]
    assert missing == []


def test_the_architecture_names_what_there_is() -> None:
    """Files and packages by their paths, classes, and functions of two words or more."""
    text = ARCHITECTURE.read_text("utf-8")
    below = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*")]
    paths = {
        "/".join(path.parts[at:])
        for each in below
        for path in (each, each.with_suffix(""))
        for at in range(len(path.parts))
    }
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)+(?:\.py)?)`", text)) - paths
    assert {each for each in named if not (REPOSITORY / each).exists()} == set()
    words = {word for path in FILES for word in re.findall(r"\w+", path.read_text("utf-8"))}
    words |= {path.stem for path in FILES}
    names = re.findall(r"`(?:[A-Z]\w*\.)?([A-Z]\w+|[a-z]+_\w+)`", text)
    assert {each for each in names if each not in words} == set()


@pytest.mark.smoke
def test_every_function_and_class_is_used() -> None:
    """By the package, or by users, whose way to it docs/ and tests show."""
    own = [*FILES, *PACKAGE.rglob("*.html"), *PACKAGE.rglob("*.lark")]
    words = Counter(word for path in own for word in re.findall(r"\w+", path.read_text("utf-8")))
    defined = re.compile(r"^ *(?:async )?(?:def|class) (?!_visit_|__)(\w+)", re.MULTILINE)
    found = {name for path in FILES for name in defined.findall(path.read_text("utf-8"))}
    others = [*(REPOSITORY / "docs").glob("*.md"), *TESTS.rglob("*.py")]
    shown = "\n".join(path.read_text("utf-8") for path in others)
    unused = {name for name in found if words[name] == 1} - CALLED_BY_LIBRARIES
    assert [name for name in sorted(unused) if not re.search(rf"\b{name}\b", shown)] == []


# ----------------------------------------------------------------------------- who imports whom


def imported_by(name: str) -> set[str]:
    """Return the modules of the package that a module imports, inside functions and for types too.

    `from package import name` stands for the module of that name if there is one, or else for the
    package.
    """
    found: set[str] = set()
    for node in statements_of(ast.parse(MODULES[name].read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                found.add(below if below in MODULES else node.module)
    return {each for each in found if each in MODULES and each != name}


def components(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components with more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def test_circles_are_found() -> None:
    assert components({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}) == [["a", "b", "c"]]


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    return {name: imported_by(name) for name in MODULES}


@pytest.mark.smoke
def test_no_import_circle(imports: dict[str, set[str]]) -> None:
    assert components(imports) == []


def test_no_arrow_in_the_database_runs_back_up(imports: dict[str, set[str]]) -> None:
    """Its folders, and the modules beside them, are layers: no circle, whoever imports."""

    def layer(name: str) -> str:
        return ".".join(name.split(".")[:3])

    layers: dict[str, set[str]] = {layer(name): set() for name in imports if below(name)}
    for name in filter(below, imports):
        layers[layer(name)] |= {layer(each) for each in imports[name] if below(each)}
    assert components({name: found - {name} for name, found in layers.items()}) == []


def below(name: str) -> bool:
    """Whether a module is in the folder of the database."""
    return name.startswith("corollary.database.")


def test_a_short_module_with_a_single_user_has_a_reason(imports: dict[str, set[str]]) -> None:
    """A helper is in the module that uses it, unless its user is in a layer above."""
    users: dict[str, list[str]] = defaultdict(list)
    for user, found in imports.items():
        for name in found:
            users[name].append(user)
    short = [
        name
        for name, path in MODULES.items()
        if path.name != "__init__.py"
        and len(path.read_text("utf-8").splitlines()) < SHORT_LINES
        and len(users[name]) == 1
        and users[name][0].split(".")[1:2] == name.split(".")[1:2]
        and not any(f"{name}.".startswith(f"corollary.{each}.") for each in REASONS)
    ]
    assert short == []


# ------------------------------------------------------------------------------------------ classes


def is_sibling(modules: list[str]) -> bool:
    """Return whether modules are one of each engine."""
    return sorted(each for each in ENGINES for name in modules if name.startswith(each)) == sorted(
        ENGINES
    ) and len(modules) == len(ENGINES)


def test_a_public_class_name_has_one_meaning() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for module, path in MODULES.items():
        for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text("utf-8"), re.MULTILINE):
            places[name].append(module)
    several = {name: found for name, found in places.items() if len(found) > 1}
    assert {name: found for name, found in several.items() if not is_sibling(found)} == {}


def test_rows_of_frames_come_to_the_driver_in_one_module() -> None:
    """Nor does `getattr` find such a method by its name."""
    found = {
        f"{module_of(path)}: {word}"
        for path in FILES
        if module_of(path) not in MAY_COLLECT
        if _COLLECTED.search(path.read_text())  # few are worth parsing
        for node in ast.walk(ast.parse(path.read_text()))
        for word in [getattr(node, "attr", None) or getattr(node, "value", None)]
        if isinstance(node, ast.Attribute | ast.Constant) and word in COLLECTING
    }
    assert not found
