select a, k from t group by a

select a, count(*) from t

select * from t group by k

select k + 1 from t group by a

select a from t group by a having k > 1

select a from t group by a order by k

select count(*) from t where b group by a having exists (select 1 from u where u.c = t.k)

select grouping(s) from t group by rollup(a)

select sum(k) over (partition by s) from t group by a
