select a from t where d = 1

select a from t where s

select s + s from t

select a from t where a

select not k from t

select case when b then 1 else d end from t

select a from t union select b from t

select k from t where k in (d, 2)

select k from t where k in (select d from t)

select f div 2 from t

select b + 1 from t

select if(a, 1, 2) from t

values (1), ('a')

select max(null) from t

select hour(k) from t

select k from t join u on t.d = u.c

select +d from t

select +date '2026-01-01'

select +b from t

select a from t where (a, k) = 1

select upper(struct(a)) from t

select map(s, 1) = map(s, 1) from t

select a from t order by map(s, a)

select max(map(s, a)) from t

select array_distinct(array(map(s, a))) from t

select map(map(s, a), 1) from t
