select a from

select (a from t

select a) from t

select 'abc from t

select a from t where and

select case when a then 1 from t

select a b c from t

selec a from t

select cast(a as) from t

select `a from t

select a from t limit

select a,, k from t

select a, from t

select coalesce(a,) from t

select a from t order by a asc desc

from t |> sample 10

select case when b then 1 when then 2 end from t

select a from t,

select /*+ " . u */ * from t
