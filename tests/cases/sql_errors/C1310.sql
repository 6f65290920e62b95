select * from t tablesample (10 percent)

select explode(array(k)), explode(array(a)) from t

select * from t pivot (sum(m) for a in (k))

select * from t version as of 3

select * from t for update

select * from t full join lateral (select t.a) v on true

select * from ranges(10)

select * from t cross join unnest(s)

select array(1, 2)[0, 1]

select a from t union all by name select a from u

select s collate utf8_lcase from t

select ts at time zone 'Europe/Berlin' from t

select * from t asof join u on t.a = u.a

select a from t where any(select 1) = a

select a from t where (a, k) > all (select a, c from u)

select a from t where s like any ('a', 'b') escape '!'

select a from t where s like s escape '!'

select sum(*) from t

select count(t.*) from t

select sum(a) filter (where b) , upper(s) filter (where b) from t

select sum(m order by k) from t

select @variable

select s['x'] from t

select * rename (a as x) from t

select upper(x -> x) from t

select transform(array(k), x -> x in (select a from u)) from t

select a from t fetch first 3 rows only

select * from t where a is json

select max(a) ignore nulls from t

select k from t where b = k < a

select k from t where b = s like 'x'

select k from t where b <> k between 1 and 2

select a from t where (a, b) = all (select a, b from u)

select r.id from t, lateral range(t.k) r
