select rank() over (partition by a order by k desc) from t

select row_number() over w, dense_rank() over (w), sum(m) over w from t window w as (partition by a order by k)

select sum(k) over (), count(*) over (order by k rows between 2 preceding and current row) from t

select lag(a) over (order by k), lead(k, 2, 0) over (order by k) from t

select percent_rank() over (order by a), cume_dist() over (order by a) from t

select a, sum(sum(k)) over (order by a) from t group by a

select max(k) filter (where b) over (partition by a) from t

select min(k) over (order by k rows between 3 preceding and 1 preceding), avg(a) over (order by k range between unbounded preceding and unbounded following) from t

select a, rank() over (order by count(*) desc) r from t group by a order by r

select ntile(3) over (partition by a order by k) from t
