"""Unit tests of dbt: the example of its documentation, formats of rows, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from corollary.testing.case_files import read_cases
from corollary.testing.run_case import run_case
from support.command_line import INPUT, OK, cli, put

# The model of dbt's documentation on unit tests, with the functions of Spark's dialect.
MODELS = r"""
CREATE TABLE raw_customers (customer_id BIGINT, first_name STRING, last_name STRING, email STRING);
CREATE TABLE top_level_email_domains (tld STRING);
CREATE VIEW stg_customers AS
SELECT customer_id, concat(first_name, ' ', last_name) AS name, email,
       split_part(email, '@', -1) AS email_top_level_domain
FROM raw_customers;
CREATE MATERIALIZED VIEW dim_customers AS
SELECT c.customer_id, c.name, c.email,
       rlike(c.email, '^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\\.[A-Za-z]{2,}$')
       AND d.tld IS NOT NULL AS is_valid_email_address
FROM stg_customers c LEFT JOIN top_level_email_domains d ON c.email_top_level_domain = d.tld;
"""
EXAMPLE = """
version: 2
models:
  - name: dim_customers
unit_tests:
  - name: test_is_valid_email_address
    description: "Check my is_valid_email_address logic captures all known edge cases"
    model: dim_customers
    given:
      - input: ref('stg_customers')
        rows:
          - {email: cool@example.com,     email_top_level_domain: example.com}
          - {email: cool@unknown.com,     email_top_level_domain: unknown.com}
          - {email: badgmail.com,         email_top_level_domain: gmail.com}
          - {email: missingdot@gmailcom,  email_top_level_domain: gmail.com}
      - input: ref('top_level_email_domains')
        rows:
          - {tld: example.com}
          - {tld: gmail.com}
    expect:
      rows:
        - {email: cool@example.com,    is_valid_email_address: true}
        - {email: cool@unknown.com,    is_valid_email_address: false}
        - {email: badgmail.com,        is_valid_email_address: false}
        - {email: missingdot@gmailcom, is_valid_email_address: false}
"""
CSV = """
unit_tests:
  - name: csv
    model: stg_customers
    given:
      - input: source('shop', 'raw_customers')
        format: csv
        rows: |
          customer_id,first_name,last_name,email
          1,Ada,"Lovelace, Countess",ada@example.com
          2,Alan,,alan@example.com
    expect:
      format: csv
      fixture: expected
"""
SQL = """
unit_tests:
  - name: sql
    model: dim_customers
    given:
      - input: ref('shop', 'stg_customers')
        format: sql
        rows: |
          select 1 as customer_id, 'ada@example.com' as email,
                 'example.com' as email_top_level_domain
          union all select 2, null, null
      - input: ref("top_level_email_domains")
        rows: [{tld: example.com}]
    expect:
      format: sql
      rows: |
        select 1 as customer_id, true as is_valid_email_address
        union all
        select 2, false
"""


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put("shop.sql", MODELS)


def lines(text: str) -> list[str]:
    """Return what does not hold in a file with one unit test."""
    (case,) = read_cases(put("models/schema.yml", text), [Path("shop.sql")])
    return list(run_case(case).lines())


def test_the_example_of_the_documentation() -> None:
    assert lines(EXAMPLE) == []
    put("models/schema.yml", EXAMPLE)
    assert cli("test", "models/schema.yml", "--program", "shop.sql").exit_code == OK
    wrong = EXAMPLE.replace(
        "unknown.com,    is_valid_email_address: false", "unknown.com, is_valid_email_address: true"
    )
    assert lines(wrong) == [
        "  rows of dim_customers:",
        '    missing     dim_customers("cool@unknown.com", true)',
        '    unexpected  dim_customers("cool@unknown.com", false)',
    ]


def test_rows_as_csv_and_from_a_fixture() -> None:
    put("tests/fixtures/expected.csv", 'customer_id,name\n1,"Ada Lovelace, Countess"\n2,\n')
    assert lines(CSV) == []


def test_rows_as_questions() -> None:
    # The email of 2 is null: null AND false is false.
    assert lines(SQL) == []
    assert lines(SQL.replace("select 2, false", "select 3, false")) == [
        "  rows of dim_customers:",
        "    missing     dim_customers(3, false)",
        "    unexpected  dim_customers(2, false)",
    ]


@pytest.mark.parametrize(
    ("old", "new", "code", "note"),
    [
        ("ref('stg_customers')", "this", "C1801", "write `input: ref('orders')` or"),
        ("model: dim_customers\n    given", "given", "C1801", "add `model:`"),
        ("expect:", "expected:", "C1801", "did you mean `expect`?"),
        ("version: 2", "verison: 2", "C1801", "did you mean `version`?"),
        (
            "      rows:\n        - {email",
            "      format: json\n      rows:\n        - {email",
            "C1801",
            "it is dict, csv or sql",
        ),
        ("ref('stg_customers')", "ref('stg_customer')", "C0916", "did you mean `stg_customers`?"),
        ("{tld: gmail.com}", "{tdl: gmail.com}", "C1802", "the columns are tld"),
        ("    expect:", "    overrides: {}\n    expect:", "C1801", "the keys are `name`, "),
    ],
)
def test_what_is_wrong(old: str, new: str, code: str, note: str) -> None:
    assert old in EXAMPLE
    put("models/schema.yml", EXAMPLE.replace(old, new, 1))
    found = cli("test", "models/schema.yml", "--program", "shop.sql")
    said = found.stdout + found.stderr
    assert found.exit_code == INPUT
    assert f"[{code}]" in said
    assert f"  = {note}" in said


def test_a_fixture_that_is_not_there() -> None:
    put("models/schema.yml", CSV)
    found = cli("test", "models/schema.yml", "--program", "shop.sql")
    assert "There is no `tests/fixtures/expected.csv` here or above." in found.stderr
