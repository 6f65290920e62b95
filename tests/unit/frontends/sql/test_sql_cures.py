"""The cures of refusals work: what a note says is done, and the query is bound."""

import re

import pytest

from corollary.errors import InputError
from support.query_text import bind_text

WORD = re.compile("[A-Za-z_]{2,}")
CURES = [
    ("select * from edges", "select * from edge"),
    ("select a from t, u", "select t.a from t, u"),
    ("select kk from t", "select k from t"),
    ("select e.x from edge e, edge e", "select e.x from edge e, edge f"),
    ("select uper(s) from t", "select upper(s) from t"),
    ("select k from t where d > 'monday'", "select k from t where d > DATE '2026-01-01'"),
    ("select k from t where ts > 'noon'", "select k from t where ts > TIMESTAMP '2026-01-01'"),
    ("select a from t where a", "select a from t where a <> 0"),
    ("select cast(d as int) from t", "select datediff(d, DATE '1970-01-01') from t"),
    ("select cast(k as date) from t", "select cast(cast(k as STRING) as date) from t"),
    ("select date '2026-02-30'", "select DATE '2026-11-16'"),
    ("select now()", "select current_date"),
    ("select count(distinct a) ignore nulls from t", "select count(distinct a) from t"),
    ("select approx_count_distinct(a) from t", "select count(DISTINCT a) from t"),
    ("select a from t where sum(k) > 1", "select a from t group by a HAVING sum(k) > 1"),
    ("select a, k from t group by a", "select a, min(k) from t group by a"),
    ("select rank() from t", "select rank() OVER (PARTITION BY a ORDER BY k) from t"),
    ("select ts + 1 from t", "select ts + INTERVAL 1 DAY from t"),
    ("select f div 2 from t", "select f / 2 from t"),
    ("select ? + 1", "select :name + 1"),
    ("select if(b, 1) from t", "select if(b, 1, NULL) from t"),
    ("select max(null) from t", "select max(CAST(NULL AS INT)) from t"),
    ("select count(t.*) from t", "select count(*) from t"),
    (
        "select timestampdiff(DAYOFYEAR, d, ts) from t",
        "select timestampdiff(DAY, d, ts) from t",
    ),
    (
        "with recursive r as (select 1 as n union select n + 0.5 from r) select 1",
        "with recursive r as (select CAST(1 as decimal(3,1)) n union select n+0.5 from r) select 1",
    ),
    ("select a from t qualify k = 1", "select a from t where k = 1"),
    (
        "select * from t full join lateral (select t.k) v",
        "select * from t left join lateral (select t.k) v",
    ),
    ("select s + s from t", "select CAST(s AS BIGINT) + s from t"),
]


@pytest.mark.parametrize(("refused", "cured"), CURES, ids=[refused for refused, _ in CURES])
def test_cure(refused: str, cured: str) -> None:
    with pytest.raises(InputError) as raised:
        bind_text(refused)
    note = raised.value.diagnostics[0].note or ""
    bind_text(cured, {"name": 5})
    said = {word.lower() for part in re.findall("`([^`]*)`", note) for word in WORD.findall(part)}
    # What the note writes is in the cure, be it only in part: it may have examples of other cases.
    assert not said or said & {word.lower() for word in WORD.findall(cured)}, note
