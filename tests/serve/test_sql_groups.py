"""Writes in SQL that share commits: as if they had been made one after the other."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import corollary
from corollary.database.access.principals import AccessRole, Principal
from corollary.errors import CorollaryError
from corollary.serve.answers import Answer, ServiceError
from corollary.serve.processes.local_service import LocalService
from corollary.serve.requests import SqlChangesRequest, SqlRequest, SqlTransactionRequest
from corollary.serve.service import ServiceLimits
from support.selection import examples
from support.serve.services import ask_all, run_local

PROGRAM = """
CREATE TABLE account (id INT PRIMARY KEY, owner STRING, n BIGINT);
CREATE TABLE entry (id INT, n BIGINT);
CREATE MATERIALIZED VIEW total AS SELECT owner, sum(n) AS n FROM account GROUP BY owner;
CREATE ASSERTION no_debt CHECK (NOT EXISTS (SELECT 1 FROM account WHERE n < 0));
"""
WRITES = (
    "INSERT INTO account VALUES (:id, :owner, :n)",
    "INSERT INTO account (n, id) VALUES (:n, :id)",
    "INSERT INTO entry VALUES (:id, :n), (:n, :id)",
    "INSERT INTO entry VALUES (:id, 7)",
    "UPDATE account SET n = n + :n WHERE id = :id",
    "UPDATE account SET n = n - 2",
    "UPDATE entry SET n = n + 1 WHERE id > :n",
    "DELETE FROM account WHERE id = :id",
    "DELETE FROM entry WHERE n = :n",
    "INSERT INTO entry SELECT id, n FROM account WHERE n > :n",
    "INSERT INTO entry SELECT :id, n FROM total",
    "INSERT INTO account SELECT n + 100, :owner, id FROM entry WHERE id = :id",
    """MERGE INTO account USING (SELECT :id AS id, :n AS n) AS s ON account.id = s.id
       WHEN MATCHED AND s.n = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET n = s.n
       WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)""",
    "INSERT INTO total VALUES (:owner, :n)",
    "DELETE FROM",
)


def _make(place: Path) -> Path:
    with corollary.open(place, engine="local") as database:
        database.sql(PROGRAM)
    return place


def _request(chance: random.Random) -> SqlChangesRequest:
    values = {"id": chance.randrange(6), "owner": chance.choice("ab"), "n": chance.randrange(5)}
    return SqlChangesRequest((chance.choice(WRITES),), values)


def _rows(database: corollary.Database) -> list[list[tuple[object, ...]]]:
    names = "account", "entry", "total"
    return [sorted(database.sql(f"SELECT * FROM {each}").rows(), key=str) for each in names]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(examples(2, 25)))
def test_groups_do_what_the_writes_do_one_after_the_other(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    requests = [_request(chance) for _ in range(40)]
    expected: list[object] = []
    with corollary.open(_make(tmp_path / "one"), engine="local") as database:
        for each in requests:
            try:
                made = database.sql(each.statements[0], **each.parameters)
                expected.append(made.commit_number is None or made.commit_number > 0)
            except CorollaryError as error:
                expected.append(error.diagnostics[0].code)
        rows = _rows(database)
    place = _make(tmp_path / "group")
    commits = 0

    async def test(service: LocalService) -> None:
        nonlocal commits
        found = await ask_all(service, requests)
        for wanted, answer in zip(expected, found, strict=True):
            if isinstance(answer, Answer):
                assert wanted is True
                commits = max(commits, answer.commit)
            else:
                assert answer.diagnostics[0]["code"] == wanted

    run_local(place, test, ServiceLimits(requests_per_token=len(requests)))
    with corollary.open(place, engine="local") as database:
        assert _rows(database) == rows
    assert commits < len(requests)


def test_inserts_that_wait_share_a_commit(tmp_path: Path) -> None:
    insert = "INSERT INTO account VALUES (:id, 'a', :n)"
    bare = "INSERT INTO account VALUES (:id, :owner, :n)"

    async def test(service: LocalService) -> None:
        for first, text in ((0, insert), (10, bare), (20, bare)):
            requests = [
                SqlChangesRequest((text,), {"id": first + at, "owner": "b", "n": at})
                for at in range(8)
            ]
            found = await ask_all(service, requests)
            answers = [each.json for each in found if isinstance(each, Answer)]
            assert [each["rows"] for each in answers] == [[1]] * 8
            assert len({each["commit"] for each in answers}) == 1

    run_local(_make(tmp_path / "w"), test)


def test_a_write_that_reads_what_was_written_before_it_sees_that(tmp_path: Path) -> None:
    update = SqlChangesRequest(("UPDATE account SET n = n + 1",))

    async def test(service: LocalService) -> None:
        first = SqlChangesRequest(("INSERT INTO account VALUES (1, 'a', 0)",))
        found = await ask_all(service, [first, *[update] * 8])
        assert [each.json["rows"] for each in found if isinstance(each, Answer)] == [[1]] * 9

    place = _make(tmp_path / "w")
    run_local(place, test)
    with corollary.open(place, engine="local") as database:
        assert database.sql("SELECT n FROM account").rows() == [(8,)]


def test_a_transaction_of_its_own_defines_things_for_who_may(tmp_path: Path) -> None:
    define, insert = "CREATE TABLE n (k INT)", "INSERT INTO n VALUES (:k)"
    count = {"kind": "sql", "sql": "SELECT COUNT(*) AS c FROM n"}
    writer, admin = (Principal(str(role), role) for role in (AccessRole.WRITE, AccessRole.ADMIN))

    async def test(service: LocalService) -> None:
        made = SqlTransactionRequest((define, insert), {"k": 1})
        look = SqlTransactionRequest((define, insert), {"k": 1}, count)
        for request in (made, look, SqlTransactionRequest((define,))):
            with pytest.raises(ServiceError) as caught:
                await service.call(writer, request)
            assert caught.value.status == 403
        assert (await service.call(admin, look)).json["rows"] == [[1]]
        assert (await service.call(admin, made)).json["rows"] == [0, 1]
        again = SqlTransactionRequest((insert, "DELETE FROM n WHERE k = 1"), {"k": 2}, count)
        assert (await service.call(writer, again)).json["rows"] == [[1]]
        with pytest.raises(ServiceError, match="`drop` cannot be asked"):
            await service.call(writer, SqlTransactionRequest((insert,), {"k": 3}, {"kind": "drop"}))

    run_local(_make(tmp_path / "w"), test)


def test_updates_of_different_rows_share_a_commit(tmp_path: Path) -> None:
    update, text = "UPDATE account SET n = n + :n WHERE id = :id", "a"
    insert = "INSERT INTO account VALUES (:id, :owner, :n)"

    async def test(service: LocalService) -> None:
        for id_ in range(8):  # what follows is remembered by its shape
            await ask_all(service, [_row(insert, id_, text)])
            await ask_all(service, [_row(update, id_, text)])
        mixed = [_row(update, id_, text) for id_ in range(8)]
        mixed += [_row("DELETE FROM account WHERE id = :id", 99, text), _row(insert, 10, text)]
        assert len({each.commit for each in await _answers(service, mixed)}) == 2
        same = await _answers(service, [_row(update, 3, text)] * 4)
        assert len({each.commit for each in same}) == 4
        again = [_row(update, 10, text), _row(insert, 11, text), _row(update, 11, text)]
        assert len({each.commit for each in await _answers(service, again)}) == 2

    place = _make(tmp_path / "w")
    run_local(place, test)
    with corollary.open(place, engine="local") as database:
        found = dict(database.sql("SELECT id, n FROM account").rows())
    assert found == {**dict.fromkeys(range(8), 3), 3: 7, 10: 2, 11: 2}


def _row(statement: str, id_: int, owner: str) -> SqlChangesRequest:
    values = {"id": id_, "owner": owner, "n": 1}
    return SqlChangesRequest(
        (statement,), {name: each for name, each in values.items() if f":{name}" in statement}
    )


async def _answers(service: LocalService, requests: list[SqlChangesRequest]) -> list[Answer]:
    found = await ask_all(service, requests)
    return [each for each in found if isinstance(each, Answer)]


def test_a_write_that_reads_what_a_trigger_writes_sees_that(tmp_path: Path) -> None:
    place = tmp_path / "w"
    with corollary.open(place, engine="local") as database:
        database.sql("""
            CREATE TABLE item (id INT PRIMARY KEY);
            CREATE TABLE stock (id INT PRIMARY KEY, n INT);
            CREATE TRIGGER stocked AFTER INSERT ON item REFERENCING NEW TABLE added
              FOR EACH STATEMENT INSERT INTO stock SELECT id, 0 FROM added;
        """)
    requests = [SqlChangesRequest((f"INSERT INTO item VALUES ({at})",)) for at in range(2)]
    requests.append(SqlChangesRequest(("UPDATE stock SET n = n + 1",)))

    async def test(service: LocalService) -> None:
        found = await _answers(service, requests)
        assert [each.json["rows"] for each in found] == [[1], [1], [2]]

    run_local(place, test)
    with corollary.open(place, engine="local") as database:
        assert sorted(database.sql("SELECT * FROM stock").rows()) == [(0, 1), (1, 1)]


@pytest.mark.parametrize("statement", ["ALTER TABLE account ADD COLUMN c INT", "DROP TABLE entry"])
def test_definitions_are_refused(tmp_path: Path, statement: str) -> None:
    """Tables are those of the program: a definition changes nothing, and says where it belongs."""

    async def test(service: LocalService) -> None:
        requests = [SqlChangesRequest((statement,)), SqlRequest(statement)]
        write, question = await ask_all(service, requests)
        assert isinstance(write, ServiceError)
        assert isinstance(question, ServiceError)
        assert write.diagnostics[0]["code"] == question.diagnostics[0]["code"] == "C1378"
        assert "PUT /v1/program" in write.diagnostics[0]["note"]

    place = _make(tmp_path / "w")
    run_local(place, test)
    with corollary.open(place, engine="local") as database:
        assert database.sql("SELECT * FROM account").columns == ("id", "owner", "n")
