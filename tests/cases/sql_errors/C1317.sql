with v as (select 1), V as (select 2) select * from v

select 1 from t window w as (order by a), w as (order by k)
