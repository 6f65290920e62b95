select a from t where exists (select 1 from u where u.a = t.a)

select a from t where a in (select c from u) and a not in (1, 2)

select a from t where (a, s) in (select c, w from u)

select a from t where m > all (select c from u) or a = any (select c from u) or k <> some (select a from u)

select (select max(c) from u where u.a = t.a) from t

select q.z from (select a as z from u) as q

select q.v from (select a, w from u) q(z, v) where exists (select 1 from (select x from edge where x = q.v) e where e.x = q.v)

select * from (values (1, 'a'), (2.5, null)) v(n, s)

values (1), (2)

with v as (select a from u), w as (select a + 1 as b from v) select * from v join w on v.a = w.b

with t as (select w from u) select w from t

select k in (select a from u) from t

select a from t where m in (select distinct c from u where u.a = t.k and exists (select 1 from edge where x = t.s and y = u.w))

select (select c from u where u.a = t.a union select t.k order by 1 limit 1) from t

select k from t where s like any ('a%', 'b') and s not like all ('x', '_y')
