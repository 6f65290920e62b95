drop table t

select 1; select 2

-- nothing

create view v as select 1
