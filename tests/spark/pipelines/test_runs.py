"""Example projects, by our runner and by Spark's own in a fresh catalog: the same tables."""

import pytest

import corollary
from corollary.errors import InputError
from support.command_line import OK, cli, of_json
from support.pipelines.projects import copy_project, rows_of, run_spark, write_round

HOUSE = "storage/corollary"
ROUNDS = 6


def run(*arguments):
    result = cli("pipelines", "run", "--format", "json", *arguments)
    assert result.exit_code == OK, result.output
    return {each["dataset"]: each for each in of_json(result)["datasets"]}


def our_tables(names):
    with corollary.open(HOUSE, engine="local") as database:
        return {name: rows_of(database.relation(name).arrow()) for name in names}


@pytest.mark.slow
@pytest.mark.matrix(4)
@pytest.mark.parametrize("rounds", range(1, ROUNDS + 1))
@pytest.mark.parametrize("name", ["orders", "sensors"])
def test_tables_are_those_of_sparks_own_runner(name, rounds, tmp_path, monkeypatch):
    root = copy_project(name, tmp_path)
    monkeypatch.chdir(root)
    for number in range(rounds):
        write_round(root, number)
        run()
    expected = run_spark(root, tmp_path / "spark")
    assert our_tables(expected) == expected


def test_what_is_left_to_spark_is_computed_when_it_has_to_be(tmp_path, monkeypatch):
    root = copy_project("sensors", tmp_path)
    monkeypatch.chdir(root)
    write_round(root, 0)
    first = run()
    assert first["labels"]["refreshed"] == "Spark"
    found = our_tables(["labels", "labelled", "daily"])
    sensors = {row[-1] for row in found["daily"]}
    assert found["labels"] == sorted((f"<{each}>", each) for each in sensors)
    assert len(found["labelled"]) == len(sensors)
    assert run()["labels"]["refreshed"] == "unchanged"
    write_round(root, 1)
    second = run()
    assert (second["labels"]["refreshed"], second["labelled"]["refreshed"]) == (
        "Spark",
        "incremental",
    )
    code = root / "transformations/readings.py"
    code.write_text(code.read_text().replace('f"<{', 'f"[{'))
    assert run()["labels"]["refreshed"] == "Spark"
    assert our_tables(["labels"])["labels"][0][0].startswith("[")
    code.write_text(code.read_text().replace("name[::-1]", "name[7]"))
    result = cli("pipelines", "run")
    assert "C1728" in result.output
    assert our_tables(["labels"])["labels"][0][0].startswith("[")


def test_a_strict_dataset_is_not_left_to_spark(tmp_path, monkeypatch):
    root = copy_project("sensors", tmp_path)
    monkeypatch.chdir(root)
    write_round(root, 0)
    code = root / "transformations/readings.py"
    policy = (
        '@dp.materialized_view(table_properties={"corollary.refresh_policy": "INCREMENTAL STRICT"})'
    )
    code.write_text(
        code.read_text().replace("@dp.materialized_view\ndef labels", f"{policy}\ndef labels")
    )
    assert cli("pipelines", "run").exit_code == InputError.exit_code
