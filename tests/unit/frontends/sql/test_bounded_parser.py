"""The parser gives up on texts that would take it minutes, however short they are."""

import pytest

from corollary.errors import InputError
from corollary.frontends.sql.statements.parser import parse_statements
from corollary.source import SourceFile


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT {'DATE(' * 30}1{')' * 30}",
        f"SELECT {'ARRAY[' * 30}1{']' * 30}",
        f"SELECT {'DECIMAL(' * 30}1{')' * 30}",
        f"SELECT a{'[1]' * 1000}",
    ],
)
def test_work_that_doubles_with_each_level_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="C1322"):
        parse_statements(SourceFile("q", text))


def test_many_statements_are_not_much_work_for_one() -> None:
    text = "SELECT 1, 2, 3, 4, 5;" * 1_100
    assert len(parse_statements(SourceFile("q", text))) == 1_100
    assert len(parse_statements(SourceFile("q", f"SELECT {'a[1][2], ' * 100} 1"))) == 1
