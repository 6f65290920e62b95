"""`corollary test` on cases in YAML: what passes, what fails and how that is said."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from corollary.errors import InputError
from corollary.testing.case_files import read_cases
from corollary.testing.run_case import Outcome, run_case
from support.command_line import INPUT, OK, cli, of_json, put

NETWORK = """
.decl direct_link(src: symbol, dst: symbol)
.decl link(src: symbol, dst: symbol)
link(x, y) :- direct_link(x, y).
link(x, y) :- link(x, z), direct_link(z, y).
.decl detour(src: symbol, dst: symbol) virtual
detour(x, y) :- link(x, y), !direct_link(x, y).
lost(x, y) :- -link(x, y).
.alert lost "lost {x} -> {y}"
circle(x) :- +link(x, x).
.abort circle "a circle through {x}"
"""
SHOP = """
CREATE TABLE orders (id BIGINT, customer STRING, amount DECIMAL(10,2), PRIMARY KEY (id));
CREATE TABLE visits (customer STRING, day DATE);
CREATE VIEW big AS SELECT customer, amount FROM orders WHERE amount > 10;
CREATE MATERIALIZED VIEW spend AS SELECT customer, SUM(amount) AS total FROM big GROUP BY customer;
CREATE VIEW seen AS SELECT customer, day FROM visits;
"""


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put("network.dl", NETWORK)
    put("shop.sql", SHOP)


def outcomes(text: str, name: str = "network") -> list[Outcome]:
    return [run_case(each) for each in read_cases(put(f"{name}.test.yaml", text))]


def outcome(case: str, name: str = "network") -> Outcome:
    indented = case.strip().replace("\n", "\n    ")
    (found,) = outcomes(f"cases:\n  - name: it\n    {indented}\n", name)
    return found


def failures(
    case: str, name: str = "network"
) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    found = outcome(case, name)
    assert found.error is None, found.error
    return [(each.subject, each.missing, each.unexpected) for each in found.failures]


def error(text: str) -> tuple[str, str, int, int]:
    """Return code, note and position of the one finding about a file of cases."""
    put("network.test.yaml", text)
    (found,) = of_json(cli("test", "--format", "json"))["diagnostics"]
    return found["code"], found["note"], found["line"], found["column"]


# ----------------------------------------------------------------------------------- what is tested

LOST = """
given:
  direct_link: [[a, b], {dst: c, src: b}]
when:
  delete: {direct_link: [[b, c]]}
then:
  rows: {link: [[a, b]], detour: []}
  added: {link: []}
  removed: {link: [[b, c], [a, c]], detour: [[a, c]]}
  alerts: ["lost b -> c", "lost a -> c"]
"""


def test_rows_differences_and_alerts() -> None:
    assert failures(LOST) == []


def test_each_difference_is_said() -> None:
    assert failures(
        """
given: {direct_link: [[a, b], [b, c]]}
when: {delete: {direct_link: [[b, c]]}}
then:
  rows: {link: [[a, b], [b, z]], detour: [[a, b]]}
  added: {link: [[q, r]]}
  removed: {link: [[b, c]]}
  alerts: ["lost b -> c", "lost q -> r"]
"""
    ) == [
        ("rows of link", ('link("b", "z")',), ()),
        ("rows of detour", ('detour("a", "b")',), ()),
        ("rows added to link", ('link("q", "r")',), ()),
        ("rows removed from link", (), ('link("a", "c")',)),
        ("alerts", ("lost q -> r",), ("lost a -> c",)),
    ]


def test_alerts_by_event() -> None:
    case = (
        "given: {direct_link: [[a, b]]}\nwhen: {delete: {direct_link: [[a, b]]}}\nthen: {alerts: "
    )
    assert failures(case + "{lost: [[a, b]]}}") == []
    assert failures(case + "{lost: [[a, c]]}}") == [
        ("alerts of lost", ('lost("a", "c")',), ('lost("a", "b")',))
    ]


@pytest.mark.parametrize(
    "refused", ["circle", "C1051", "{code: C1051, constraint: circle, message: through a}"]
)
def test_a_refusal_leaves_all_as_it_was(refused: str) -> None:
    assert (
        failures(
            f"""
given: {{direct_link: [[a, b]]}}
when: {{insert: {{direct_link: [[b, a]]}}}}
then: {{refused: {refused}, rows: {{link: [[a, b]]}}, added: {{link: []}}}}
"""
        )
        == []
    )


@pytest.mark.parametrize(
    ("rows", "then", "reason"),
    [
        ("[[b, c]]", "{refused: circle}", "the step should be refused, and was not"),
        ("[[b, a]]", "{rows: {link: []}}", "the step was refused:"),
        ("[[b, a]]", "{refused: C0937}", "it was refused, but not with the code `C0937`:"),
        ("[[b, a]]", "{refused: circ}", "it was refused, but not with the constraint `circ`:"),
    ],
)
def test_other_ends_than_the_expected_one(rows: str, then: str, reason: str) -> None:
    found = outcome(
        f"given: {{direct_link: [[a, b]]}}\nwhen: {{insert: {{direct_link: {rows}}}}}\nthen: {then}"
    )
    (failure,) = found.failures
    assert failure.reason.splitlines()[0] == reason


def test_rules_change() -> None:
    assert (
        failures(
            """
given: {direct_link: [[a, b], [b, c]]}
when:
  - remove-rule: link(x, y) :- link(x, z), direct_link(z, y).
  - add-rule: link(y, x) :- direct_link(x, y), x != "a".
then:
  added: {link: [[c, b]]}
  removed: {link: [[a, c]]}
"""
        )
        == []
    )


def test_the_program_changes() -> None:
    put("short.dl", NETWORK.replace("link(x, y) :- link(x, z), direct_link(z, y).", ""))
    assert (
        failures(
            """
given: {direct_link: [[a, b], [b, c]]}
when: {program: short.dl}
then: {added: {link: []}, removed: {link: [[a, c]]}, rows: {link: [[a, b], [b, c]]}}
"""
        )
        == []
    )


def test_steps_follow_one_another() -> None:
    found = outcome(
        """
given: {direct_link: [[a, b]]}
steps:
  - then: {rows: {link: [[a, b]]}, added: {link: [[a, b]]}}
  - when: {insert: {direct_link: [[b, c]]}}
    then: {added: {link: [[b, c], [a, c]]}}
  - when: {delete: {direct_link: [[a, b]]}, insert: {direct_link: [[c, d]]}}
    then: {rows: {link: [[b, c], [c, d], [b, d]]}}
"""
    )
    assert found.is_passed, list(found.lines())


def test_a_proof_is_its_base_tuples() -> None:
    case = 'given: {direct_link: [[a, b], [b, c]]}\nthen: {proof: {\'link("a", "c")\': '
    right = """['direct_link("b", "c")', 'direct_link("a", "b")']}}"""
    assert failures(case + right) == []
    assert failures(case + """['direct_link("a", "c")', 'direct_link("b", "c")']}}""") == [
        ('proof of link("a", "c")', ('direct_link("a", "c")',), ('direct_link("a", "b")',))
    ]
    found = outcome('then: {proof: {\'link("a", "z")\': []}}')
    assert [each.reason for each in found.failures] == ["it does not hold"]


def test_a_proof_of_a_sum_has_its_rows() -> None:
    case = "given: {orders: [[1, ann, 20], [2, ann, 30], [3, bob, 99]]}\nthen: {proof: "
    rows = """['orders(1, "ann", 20.00)', 'orders(2, "ann", 30.00)']"""
    assert failures(f"""{case}{{'spend("ann", 50.00)': {rows}}}}}""", "shop") == []


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_a_new_view_gains_all_its_rows(kind: str) -> None:
    assert (
        failures(
            f"""
given: {{orders: [[1, ann, 20]]}}
steps:
  - when: {{sql: CREATE {kind} seen_ids AS SELECT id FROM orders}}
    then: {{added: {{seen_ids: [[1]]}}, removed: {{seen_ids: []}}}}
  - when: {{insert: {{orders: [[2, bob, 5]]}}}}
    then: {{added: {{seen_ids: [[2]]}}}}
  - when: {{sql: 'CREATE OR REPLACE {kind} seen_ids AS SELECT id, customer FROM orders'}}
    then: {{rows: {{seen_ids: [[1, ann], [2, bob]]}}}}
""",
            "shop",
        )
        == []
    )


def test_given_rows_of_a_view_stand_for_it() -> None:
    assert (
        failures(
            """
given: {link: [[a, b], [q, r]], direct_link: [[q, r]]}
when: {delete: {direct_link: [[q, r]]}}
then: {added: {detour: [[q, r]]}, rows: {detour: [[a, b], [q, r]]}}
"""
        )
        == []
    )
    assert (
        failures(
            "given: {big: [[ann, 1.5], [ann, 2]]}\nthen: {rows: {spend: [[ann, 3.5]]}}", "shop"
        )
        == []
    )


def test_sql_changes_and_columns_that_are_named() -> None:
    assert (
        failures(
            """
given:
  orders: [[1, ann, 20], [2, bob, 11], {id: 3, customer: bob, amount: 5.5}]
steps:
  - when: {sql: UPDATE orders SET amount = 30 WHERE id = 1}
    then:
      added: {spend: [{total: 30}]}
      removed: {spend: [{total: 20.00}]}
  - when: {upsert: {orders: [[2, null, 12.25]]}}
    then: {rows: {spend: [[ann, 30], [null, 12.25]], big: [{customer: ann}, {customer: ~}]}}
  - when: {sql: 'CREATE VIEW seldom AS SELECT customer FROM orders WHERE amount < 10'}
    then: {rows: {seldom: [[bob]]}}
""",
            "shop",
        )
        == []
    )


def test_several_statements_of_one_transaction() -> None:
    assert (
        failures(
            """
given: {orders: [[1, ann, 20]]}
when:
  sql: |
    BEGIN;
    DELETE FROM orders WHERE id = 1;
    INSERT INTO orders VALUES (2, 'ann', 30);
    COMMIT;
then: {added: {orders: [[2, ann, 30]]}, removed: {orders: [[1, ann, 20]], spend: [[ann, 20]]}}
""",
            "shop",
        )
        == []
    )


def test_a_bag_has_its_copies_and_texts_stay_texts() -> None:
    case = """
given: {visits: [[no, 2026-11-16], [no, 2026-11-16], ["null", null], {customer: 1.0}]}
then: {rows: {seen: """
    assert (
        failures(
            case + '[[no, 2026-11-16], [no, 2026-11-16], ["null", null], ["1.0", null]]}}', "shop"
        )
        == []
    )
    assert failures(case + '[[no, 2026-11-16], ["null", null], ["1.0", null]]}}', "shop") == [
        ("rows of seen", (), ('seen("no", d"2026-11-16")',))
    ]


VALUES = {
    "unsigned": "18446744073709551615",
    "float": "-0.5",
    "float32": "0.1",
    "decimal(12, 2)": "12.5",
    "bool": "true",
    "date": "2026-11-16",
    "timestamp": "2026-11-16T08:00:00Z",
    "timestamp_ntz": "2026-11-16 08:00:00",
    "time_of_day": "08:00:00",
    "binary": "00ff",
    "[number]": "[1, null, 3]",
    "[symbol]": "[no, 'b, c', 2026-11-16]",
    "{a: number, b: symbol}": "{a: 1, b: 'x'}",
    "{symbol -> decimal(5, 2)}": "{pen: 1.25, ink: 2}",
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_all_types(name: str) -> None:
    put("typed.dl", f".decl p(x: {name}?)\n.decl q(x: {name}?)\nq(x) :- p(x).\n")
    value = VALUES[name]
    case = f"given: {{p: [[{value}], [null]]}}\nthen: {{rows: {{q: [[{value}], [~]]}}, added: "
    assert failures(f"{case}{{q: [{{x: {value}}}, {{}}]}}}}", "typed") == []
    found = failures(f"{case}{{q: []}}}}", "typed")
    assert [(subject, missing, len(rows)) for subject, missing, rows in found] == [
        ("rows added to q", (), 2)
    ]


def test_records_are_texts() -> None:
    text = ".type Pair = [x: number, y: Pair]\n.decl p(x: Pair)\n.decl q(x: Pair)\nq(x) :- p(x).\n"
    put("pairs.dl", text)
    case = "given: {p: [['[1, [2, nil]]'], [nil]]}\nthen: {rows: {q: [['[1,[2,nil]]'], [nil]]}}"
    assert failures(case, "pairs") == []
    found = outcome("given: {p: [[[1, nil]]]}\nthen: {}", "pairs")
    assert "does not fit: a list" in str(found.error)


def test_the_day_is_set() -> None:
    put("due.dl", ".decl task(d: date)\n.decl due(d: date)\ndue(d) :- task(d), d <= today().\n")
    assert (
        failures(
            """
today: 2026-11-16
given: {task: [[2026-11-16], [2026-11-17]]}
steps:
  - then: {rows: {due: [[2026-11-16]]}}
  - when: {today: 2026-11-17}
    then: {added: {due: [[2026-11-17]]}}
""",
            "due",
        )
        == []
    )


# -------------------------------------------------------------------------------- the command line


def test_what_is_printed() -> None:
    put("network.test.yaml", f"cases:\n- name: right\n{LOST.replace(chr(10), chr(10) + '  ')}")
    found = cli("test")
    assert (found.exit_code, found.stdout) == (OK, "")
    assert found.stderr.startswith("1 passed in ")
    put(
        "sub/wrong.test.yml",
        "program: ../network.dl\ncases:\n- {name: w, then: {rows: {link: [[a, b]]}}}\n",
    )
    found = cli("test")
    assert found.exit_code == INPUT
    assert found.stdout.splitlines() == [
        "FAILED sub/wrong.test.yml:3 w", "  rows of link:", '    missing     link("a", "b")',
    ]  # fmt: skip
    assert found.stderr.startswith("1 passed, 1 failed in ")
    document = of_json(cli("test", "sub", "--format", "json"))
    assert document.pop("seconds") > 0 < document["cases"][0].pop("seconds")
    assert document == {
        "cases": [
            {
                "file": "sub/wrong.test.yml",
                "line": 3,
                "name": "w",
                "outcome": "failed",
                "failures": [
                    {
                        "subject": "rows of link",
                        "missing": ['link("a", "b")'],
                        "unexpected": [],
                        "reason": "",
                    }
                ],
                "diagnostics": [],
            }
        ],
        "passed": 0,
        "failed": 1,
        "errors": 0,
    }


def test_an_error_in_one_case_leaves_the_others() -> None:
    put(
        "network.test.yaml",
        "cases:\n- {name: a, given: {direct_lnk: []}, then: {}}\n- {name: b, then: {}}\n",
    )
    found = cli("test")
    assert found.exit_code == INPUT
    assert found.stdout == (
        "ERROR network.test.yaml:2 a\n"
        "error[C0916]: There is no relation `direct_lnk`.\n"
        "  --> network.test.yaml:2:21\n"
        " 2 | - {name: a, given: {direct_lnk: []}, then: {}}\n"
        "   |                     ^^^^^^^^^^\n"
        "  = did you mean `direct_link`?\n"
    )
    assert found.stderr.startswith("1 passed, 1 with an error in ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "cases: [",
            ("C1800", "correct this line; texts with `: `, `{` or `[` in them are in quotes", 1, 9),
        ),
        ("case: []", ("C1801", "did you mean `cases`?", 1, 1)),
        ("cases: {a: b}", ("C1801", "begin each item with `- `", 1, 8)),
        ("cases: [{name: a, than: {}}]", ("C1801", "did you mean `then`?", 1, 19)),
        ("cases: [{name: a}]", ("C1801", "add `then:`", 1, 9)),
        ("cases: [{name: a, name: b, then: {}}]", ("C1801", "merge both", 1, 19)),
        ("cases: [{name: a, then: {row: {}}}]", ("C1801", "did you mean `rows`?", 1, 26)),
        (
            "cases: [{name: a, when: {insrt: {}}, then: {}}]",
            ("C1801", "did you mean `insert`?", 1, 26),
        ),
        ("cases: [{name: a, steps: [], then: {}}]", ("C1801", "make a step of it", 1, 30)),
        (
            "cases: [{name: a, when: {sql: a, today: b}, then: {}}]",
            ("C1801", "write several `steps`, each with a `when` and a `then`", 1, 25),
        ),
    ],
)
def test_errors_in_a_file(text: str, expected: tuple[str, str, int, int]) -> None:
    assert error(text) == expected


@pytest.mark.parametrize(
    ("case", "code", "note", "column"),
    [
        ("given: {link: [[a]]}\nthen: {}", "C1802", "the columns are src, dst", 20),
        ("given: {link: [a]}\nthen: {}", "C1802", "the columns are src, dst", 20),
        ("given: {link: [{scr: a}]}\nthen: {}", "C1802", "the columns are src, dst", 21),
        (
            "given: {link: [[a, b], {src: a}]}\nthen: {}",
            "C1802",
            "write a value of the type `sym",
            28,
        ),
        ("given: {link: [[a, b], {scr: a}]}\nthen: {}", "C1802", "the columns are src, dst", 29),
        (
            "given: {link: [[a, null]]}\nthen: {}",
            "C1802",
            "write a value of the type `symbol`; a text `null` is in quotes",
            24,
        ),
        ("when: {insert: {link: [[a, b]]}}\nthen: {}", "C0915", None, 21),
        ("then: {rows: {lnik: []}}", "C0916", "did you mean `link`?", 19),
        (
            "when: {sql: SELECT 1}\nthen: {}",
            "C1801",
            "write INSERT, UPDATE, DELETE, CREATE or DROP",
            12,
        ),
    ],
)
def test_errors_in_a_case(case: str, code: str, note: str | None, column: int) -> None:
    found = outcome(case)
    assert isinstance(found.error, InputError)
    (finding,) = found.error.diagnostics
    assert (finding.code, finding.span and finding.span.column) == (code, column)
    assert note is None or (finding.note or "").startswith(note)


def test_files_that_are_not_there_or_no_cases() -> None:
    def code(*arguments: str) -> Any:
        return json.loads(cli("test", *arguments, "--format", "json").stdout)["diagnostics"][0][
            "code"
        ]

    assert code() == "C1804"
    assert code("network.dl") == "C1804"
    assert code("no.yaml") == "C0104"
    put(".hidden/other.test.yaml", "cases: [")
    assert code() == "C1804"
    put("other.test.yaml", "cases: [{name: a, then: {}}]")
    assert code() == "C1803"
    assert cli("test", "--program", "network.dl").exit_code == OK


def test_yaml_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    put("network.test.yaml", "cases: []")
    said = cli("test").stderr
    assert "error[C1805]: Cases in YAML need the package PyYAML." in said
    assert "  = pip install 'corollary[testing]'" in said


def test_an_error_in_a_program_is_said_once() -> None:
    put("bad.dl", ".decl p(x: nmber)\n")
    put("bad.test.yaml", "cases: [{name: a, then: {}}, {name: b, then: {}}]")
    put("worse.test.yaml", "program: bad.dl\ncases: [{name: a, then: {}}]")
    found = cli("test")
    assert found.exit_code == INPUT
    assert found.stderr.count("error[C0214]") == 1


# ----------------------------------------------------------------------------------------- coverage


def missed(cases: str, name: str) -> list[str]:
    put(f"{name}.test.yaml", f"cases:\n{cases}")
    found = of_json(cli("test", f"{name}.test.yaml", "--coverage", "--format", "json"))
    assert found["failed"] == found["errors"] == 0, found
    rules = found["coverage"]["rules"]
    assert found["coverage"]["total"] == len(rules)
    assert found["coverage"]["covered"] == sum(each["covered"] for each in rules)
    return [
        f"{each['line']}{'' if each['alternative'] is None else '.' + str(each['alternative'])}"
        for each in rules
        if not each["covered"]
    ]


def test_rules_that_derive_nothing() -> None:
    given = "- name: a\n  given: {direct_link: [[a, b]]}\n"
    assert missed(f"{given}  then: {{alerts: []}}\n", "network") == ["5", "7", "8", "10"]
    lost = (
        f"{given}  when: {{delete: {{direct_link: [[a, b]]}}}}\n  then: {{alerts: [lost a -> b]}}\n"
    )
    assert missed(lost, "network") == ["5", "7", "10"]
    circle = "- name: b\n  given: {direct_link: [[a, b]]}\n"
    circle += "  when: {insert: {direct_link: [[b, a]]}}\n  then: {refused: circle}\n"
    assert missed(lost + circle, "network") == ["5", "7"]


def test_alternatives_aggregates_and_triggers() -> None:
    put(
        "parts.dl",
        ".decl p(x: number, y: number?)\n.decl q(x: number)\n.decl log(x: number, n: number)\n"
        "q(x) :- p(x, _), (x > 3 ; x < 0).\n"
        ".decl n(x: number, n: number)\n"
        "n(x, n) :- q(x), n = count : { p(x, _) }, n > 1.\n"
        "+log(x, 1) :- +q(x).\n"
        "-log(x, 1) :- -q(x).\n",
    )
    case = "- name: a\n  given: {p: [[5, null]]}\n  then: {rows: {log: [[5, 1]]}}\n"
    assert missed(case, "parts") == ["4.2", "6", "8"]
    case += "- name: b\n  given: {p: [[-5, 1], [-5, 2]]}\n  then: {rows: {n: [[-5, 2]]}}\n"
    assert missed(case, "parts") == ["8"]


def test_alternatives_of_sql() -> None:
    put(
        "joined.sql",
        "CREATE TABLE a (x BIGINT, CONSTRAINT pos CHECK (x > 0));\n"
        "CREATE TABLE b (x BIGINT, z STRING);\n"
        "CREATE VIEW v AS SELECT a.x, b.z FROM a LEFT JOIN b ON a.x = b.x\n"
        "UNION ALL\n"
        "SELECT x, z FROM b WHERE x > 5;\n",
    )
    one = "- name: one\n  given: {a: [[1], [2]], b: [[2, t]]}\n"
    one += "  then: {rows: {v: [[1, null], [2, t]]}}\n"
    assert missed(one, "joined") == ["1", "5"]
    two = "- name: two\n  when: {insert: {a: [[-1]]}}\n  then: {refused: pos}\n"
    assert missed(one + two, "joined") == ["5"]
    three = "- name: three\n  given: {b: [[7, t]]}\n  then: {rows: {v: [[7, t]]}}\n"
    assert missed(three, "joined") == ["1", "3.1", "3.2"]


def test_rules_of_views_that_a_case_replaces_are_not_covered() -> None:
    case = "- name: a\n  given: {big: [[ann, 2]]}\n  then: {rows: {spend: [[ann, 2]]}}\n"
    assert missed(case, "shop") == ["4", "6"]
    case += "- name: b\n  given: {orders: [[1, ann, 20]], visits: [[ann, null]]}\n"
    assert missed(case + "  then: {rows: {big: [[ann, 20]]}}\n", "shop") == []


def test_coverage_is_printed() -> None:
    put("network.test.yaml", "cases: [{name: a, given: {direct_link: [[a, b]]}, then: {}}]")
    assert cli("test", "--coverage").stdout.splitlines() == [
        "1 of 5 rules and alternatives have derived something",
        "  never  network.dl:5 link(x, y) :- link(x, z), direct_link(z, y).",
        "  never  network.dl:7 detour(x, y) :- link(x, y), !direct_link(x, y).",
        "  never  network.dl:8 lost(x, y) :- -link(x, y).",
        "  never  network.dl:10 circle(x) :- +link(x, x).",
    ]
