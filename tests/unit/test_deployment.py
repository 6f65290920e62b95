"""What is in `deploy/` and docs/operations.md, as far as it can be checked without Docker."""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from corollary.cli.main import group
from support.command_line import OK, cli
from support.paths import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
OPERATIONS = (REPOSITORY / "docs/operations.md").read_text("utf-8")


def understand(arguments: list[str]) -> None:
    """Let the command line parse the arguments of a command, which is not run."""
    command = group.get_command(click.Context(group), arguments[0])
    assert command is not None, arguments
    command.make_context(arguments[0], list(arguments[1:]))


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "server.compose.yaml").read_text("utf-8"))
    return found


def test_services_refer_to_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    services = compose()["services"]
    assert {"catalog", "store", "broker", "program", "server"} <= services.keys()
    volumes = compose()["volumes"]
    for name, service in services.items():
        for other, condition in service.get("depends_on", {}).items():
            is_healthy = condition["condition"] == "service_healthy"
            assert ("healthcheck" in services[other]) or not is_healthy, (name, other)
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert (DEPLOY / source).is_dir() if source.startswith(".") else source in volumes
        assert all(each.startswith("127.0.0.1:") for each in service.get("ports", ()))
    Path("main.sql").write_bytes((DEPLOY / "program/main.sql").read_bytes())
    for name in ("program", "server"):
        command = [each.replace("/program/", "") for each in services[name]["command"]]
        understand(command)


def test_the_program_of_the_compose_file_is_right() -> None:
    result = cli("check", str(DEPLOY / "program/main.sql"), "--strict")
    assert result.exit_code == OK, result.output


def test_the_image_installs_what_there_is(tmp_path: Path) -> None:
    text = (DEPLOY / "server.Dockerfile").read_text("utf-8")
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    (extras,) = re.findall(r'"\.\[(.+)\]"', text)
    assert set(extras.split(",")) <= project["optional-dependencies"].keys()
    (pin,) = re.findall(r"RUN (grep .+) > constraints.txt", text)
    pinned = subprocess.run(pin, shell=True, cwd=REPOSITORY, capture_output=True, check=True)
    names = {line.partition("==")[0] for line in pinned.stdout.decode().splitlines()}
    needed = {re.split(r"[<>=~]", each)[0] for each in project["dependencies"]}
    assert needed <= names
    for source in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE):
        assert all((REPOSITORY / each).exists() for each in source.split())
    (command,) = re.findall(r"^CMD (.+)$", text, re.MULTILINE)
    understand(json.loads(command))


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", OPERATIONS, re.MULTILINE | re.DOTALL)


def test_code_for_schedulers_compiles_and_its_commands_are_understood() -> None:
    airflow, dagster = blocks("python")
    for name, text in (("airflow", airflow), ("dagster", dagster)):
        compile(text, name, "exec")
    commands = re.findall(r'bash_command="corollary ([^"]+)"', airflow)
    (listed,) = re.findall(r"command = (\[.+\])", dagster)
    commands += [" ".join(json.loads(listed)[1:])]
    cron, *units = blocks("text")
    for line in cron.splitlines():
        schedule, _, command = line.partition("cd ")
        assert re.fullmatch(r"[*/\d]+( [*/\d]+){4}\s+", schedule)
        commands.append(command.rpartition("corollary ")[2])
    service, timer = (configparser.ConfigParser(interpolation=None) for _ in range(2))
    for parser, text in zip((service, timer), units, strict=True):
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        parser.read_string(text)
    assert timer["Timer"]["OnCalendar"]
    commands.append(service["Service"]["ExecStart"].partition("corollary ")[2])
    assert len(commands) == 6
    for command in commands:
        words = command.replace("'", "").replace("{{ run_id }}", "key").split()
        if words[0] == "run":  # the program is that of a project
            words = ["run", str(DEPLOY / "program/main.sql"), "--warehouse", "w", *words[1:]]
        understand(words)
