select a, k from t union select a from u

select (select a, c from u)

select a from t where a in (select a, c from u)

select a from t where (a, k) in (select a from u)

select * from (select a from t) v(x, y)

with v(x, y) as (select a from t) select * from v

values (1, 2), (3)

with recursive r as (select 1 as x union select x, x from r) select * from r

select a from t where a in ()

select k from t where s like all ()

select k from t where s not like any ()
