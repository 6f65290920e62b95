select kk from t

select t.z from t

select v.a from t

select z.* from t

select a from t join u using (z)

select 1 from (select a from t) v where v.k = 1

select *

select a from u where exists (select 1 from (select u2.a from t) v)

select * except (zz) from u

select k from t order by zzz

select k2 + 1, k as k2 from t

with v as (select t.a) select * from t, v

select struct(a as x).y from t

select array(a).x from t
