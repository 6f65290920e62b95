select rand() from t

select now()

select current_timestamp

select histogram_numeric(a, 2) from t

select uuid()

select approx_count_distinct(a) from t

select unix_timestamp()

select current_user

select current_user()

select xpath_string(s, 'a') from t

select printf('%tY', ts) from t

select hash(map(k, s)) from t

select time_bucket(interval 1 month, ts, ts) from t

select assert_true(k > 0) from t

select to_json(array(make_dt_interval(k))) from t

select from_json(s, 'a INT', map('allowComments', 'true')) from t

select schema_of_json('1', map('inferTimestamp', 'true')) from t

select to_json(map(k, s)) from t
