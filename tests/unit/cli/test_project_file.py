"""`corollary.toml`: what it says, and what is wrong with it, each with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from corollary.cli.project.project_file import ProjectSettings, read_project
from corollary.errors import InputError
from support.command_line import put

GOOD = """
program = ["shop.sql", "more*.dl"]
facts = "data"
warehouse = "wh"
functors = "own.py"

[options]
engine = "local"
max-bad = 7
strict = true

[limits]
seconds = 2.5

[environments.dev]
warehouse = "dev"

[environments.dev.options]
engine = "spark"
"""


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("shop.sql", "more2.dl", "more1.dl", "data/orders.csv"):
        put(name, "")


def project(text: str, environment: str | None = None) -> ProjectSettings:
    put("corollary.toml", text)
    found = read_project(environment)
    assert found is not None
    return found


def findings(text: str, environment: str | None = None) -> list[tuple[str, int, str]]:
    """Return code, line and note of what is wrong with a file."""
    with pytest.raises(InputError) as raised:
        project(text, environment)
    return [
        (each.code, each.span.line if each.span else 0, each.note or "")
        for each in raised.value.diagnostics
    ]


def test_a_directory_without_the_file_is_no_project() -> None:
    assert read_project() is None


def test_settings_are_defaults_of_parameters() -> None:
    assert project(GOOD) == ProjectSettings(
        ("shop.sql", "more1.dl", "more2.dl"),
        "wh",
        {
            "facts": "data",
            "functors": ["own.py"],
            "engine": "local",
            "max_bad": "7",
            "strict": True,
            "limit_seconds": 2.5,
        },
        None,
        {"dev": "dev"},
    )


def test_an_environment_has_its_own_settings_and_those_of_all() -> None:
    found = project(GOOD, "dev")
    assert (found.warehouse, found.environment) == ("dev", "dev")
    assert found.defaults["engine"] == "spark"
    assert found.defaults["strict"] is True


def test_an_environment_can_be_the_default() -> None:
    assert project('environment = "dev"\n' + GOOD).warehouse == "dev"


def test_all_that_is_wrong_is_said_with_its_line() -> None:
    text = """fact = "data"
warehouse = 3
strict = true
[options]
engine = "duck"
max-rows = "many"
[limits]
second = 4
[environments]
dev = "x"
[environments.prod]
facts = ["a"]
[environments.prod.limits]
rounds = 1.5
"""
    assert findings(text) == [
        ("C1901", 1, "did you mean `facts`?"),
        ("C1902", 2, 'write `warehouse = "one"`'),
        ("C1901", 3, "write it below `[options]`"),
        ("C1902", 5, "write one of `spark`, `local`"),
        ("C1902", 6, "write `max-rows = 1000`"),
        ("C1901", 8, "did you mean `seconds`?"),
        ("C1902", 10, "write `[environments.dev]`, and its settings below"),
        ("C1902", 12, 'write `facts = "one"`'),
        ("C1902", 14, "write `rounds = 1000`"),
    ]


@pytest.mark.parametrize("text", ["options = 3", "limits = []", "environments = 1", "program = 1"])
def test_wrong_types_at_the_top(text: str) -> None:
    ((code, line, _),) = findings(text)
    assert (code, line) == ("C1902", 1)


@pytest.mark.parametrize(
    "text",
    ['program = "shop.dl"', 'program = "*.txt"', 'facts = "dat"'],
    ids=["file", "pattern", "facts"],
)
def test_what_is_named_has_to_be_there(text: str) -> None:
    ((code, line, note),) = findings(text)
    assert (code, line) == ("C1903", 1)
    assert "relative to the directory of the project" in note


def test_facts_may_be_in_an_object_store() -> None:
    assert project('facts = "s3://bucket/data"').defaults == {"facts": "s3://bucket/data"}


def test_an_environment_has_to_be_there() -> None:
    assert findings(GOOD, "dve") == [("C1904", 0, "did you mean `dev`?")]
    assert findings("", "dev")[0][2].startswith("write `[environments.dev]`")
    assert findings('environment = "x"\n[environments.dev]\n') == [("C1904", 1, "there is `dev`")]
    Path("corollary.toml").unlink()
    with pytest.raises(InputError, match="C1904"):
        read_project("dev")


def test_what_is_not_toml_has_its_position() -> None:
    assert findings("facts = data") == [
        ("C1900", 1, 'correct the line: texts are in quotes, as in `facts = "data"`')
    ]


def test_a_file_that_is_no_text() -> None:
    put("corollary.toml", b"\xff\xfe")
    with pytest.raises(InputError, match="C1900"):
        read_project()
