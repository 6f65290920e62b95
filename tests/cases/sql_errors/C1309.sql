select date '2026-02-30'

select timestamp 'noon'

select 123456789012345678901234567890123456789

select 1e999

select 0.0000000000000000000000000000000000000001

select 128Y

select -129Y

select -(32768S)

select k from t where d > 'monday'

select k from t where k > '0.5'

select case when b then 1 else 'x' end from t

select year('monday')

select s like 'a\\bc' from t
