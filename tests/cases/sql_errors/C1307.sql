select a from t where s = 1

select a from t where d = s

select s + 1 from t

select a from t where a

select not k from t

select case when b then 1 else s end from t

select coalesce(s, 1) from t

select upper(k) from t

select sum(s) from t

select concat(s, 1) from t

select year(s) from t

select sqrt(s) from t

select a from t union select w from u

select k from t where k in (s, '2')

select k from t where k in (select w from u)

select f div 2 from t

select b + 1 from t

select a from t where s like 1

select if(a, 1, 2) from t

values (1), ('a')

select max(null) from t

select hour(k) from t

select k from t join u on t.s = u.c

select -s from t

select +d from t

select +date '2026-01-01'

select +b from t
