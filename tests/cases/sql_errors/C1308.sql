select cast(d as int) from t

select cast(a as date) from t

select cast(a as time(3)) from t

select cast(time'8:05' as timestamp)

select cast(a as array<int>) from t

select try_cast(map(s, k) as map<int, int>) from t

select from_json(s, 'a IN') from t

select from_json(s, 'INT') from t

select from_json(s, 'MAP<INT, INT>') from t

select from_json(s, 'a INT, _corrupt_record INT') from t

select cast(a as decimal(50, 2)) from t

select cast(a as decimal(5, 6)) from t

select cast(b as date) from t

select cast(a as interval) from t

select cast(interval 1 day as double)

select struct(a, k as A) from t

select cast(struct(a) as struct<x: int, y: int>) from t

select cast(struct(a) as struct<x: int not null>) from t

select to_json(k) from t
