drop table t

create view v as select 1
