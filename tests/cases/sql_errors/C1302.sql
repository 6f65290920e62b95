select * from edges

select * from nowhere

with v as (select * from w), w as (select 1) select * from v

select 1 from t where exists (select 1
  from missing.table_name)
