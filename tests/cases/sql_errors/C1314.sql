select a from t group by 2

select a from t order by 0

select distinct a from t order by k

select a from t limit -1

select a from t limit k

select a from t limit 1.5

select a from t order by 1 limit 2 offset 'x'

select a from t union select c from u order by 3

select *, 1 from t group by 2

select a from t order by -1

select a from t group by -1

select distinct on (a) a from t

select distinct on (a, k) a from t order by a, b, k
