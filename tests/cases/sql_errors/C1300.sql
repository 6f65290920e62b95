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
