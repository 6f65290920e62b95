select count(*), sum(m) x, avg(m), avg(k), min(s), max(b), count(a), count(k), count(1) from t

select a, count(*) c from t group by a having c > 1 order by c desc limit 3

select a + 1 as z, sum(k) from t group by z

select a + 1, sum(distinct k), count(distinct a, s) filter (where b) from t group by 1

select a, sum(k) as k from t group by a having k > 10

select a, k, grouping(a), grouping_id(a, k), count(*) from t group by rollup(a, k)

select a, coalesce(k, -1) from t group by cube(a, k)

select a, s, sum(m) from t group by grouping sets ((a, s), a, ())

select a, s from t group by a, s with rollup

select a, sum(m) from t group by all

select 1 from t having count(*) > 1

select bool_and(b), every(b), bool_or(b), some(b), any(b), count_if(a > 1) filter (where b) from t

select a, (select max(c) from u where u.a = t.a) from t group by a

select distinct a from t order by a desc nulls first

select a from t group by a order by sum(k), a + 1

select sum(a) + 1 as total, total * 2 from t

select count(distinct k), count(distinct k, b), count(k, a), count(k + 1), count(null), count(distinct 1) from t

select a, k + 1 from t group by (a, k), s
