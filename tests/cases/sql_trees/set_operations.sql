select a from t union all select c from u

select a from t union select m from t

select a from t union select c from u intersect select 1 except all select 2

(select a from t order by k limit 2) union all (select c from u) order by a + 1

select null as n union all select 1

select d from t union select ts from t order by 1 limit 5 offset 2

select distinct a from t union all select f from t

select a from t minus select c from u

select a x from t union select c from u order by x desc
