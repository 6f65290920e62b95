select rank() from t

select a from t where rank() over (order by k) = 1

select rank() over (partition by a) from t

select sum(a) over nowhere from t

select sum(distinct a) over (partition by k) from t

select upper(s) over (order by k) from t

select sum(a) over (order by k, a range between 2 preceding and current row) from t

select sum(a) over (order by k rows between current row and 2 preceding) from t

select sum(rank() over (order by k)) over () from t

select sum(a) over (w order by k) from t window w as (order by a)

select lag(a, k) over (order by k) from t

select rank() over (order by k rows between 1 preceding and current row) from t

select sum(a) over (order by k groups between 1 preceding and current row) from t

select a from t group by rank() over (order by k)

select distinct on (a) a, rank() over (order by k) as r from t order by a, r
