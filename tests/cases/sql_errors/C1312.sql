select a from t where sum(k) > 1

select sum(sum(k)) from t

select a from t join u on count(*) = 1

select sum(k) from t group by sum(k)

select sum(k) s2 from t group by s2

select grouping(a) from t group by a

select a from t where k = (select max(c) from u where sum(u.c) > 1)

values (sum(1))

select max(k) filter (where sum(k) > 1) from t
