select upper(s, s) from t

select round(f, k) from t

select date_trunc('fortnight', ts) from t

select extract(century from ts) from t

select to_date(s, 'dMyy') from t

select regexp_replace(s, s, 'x') from t

select sum(a, k) from t

select timestampdiff(DAYOFYEAR, d, ts) from t

select timestampadd(EON, 1, ts) from t

select row_number(a) over (order by k) from t

select int(a, k) from t

select coalesce() from t

select if(b, 1) from t

select next_day(d, 'someday') from t

select ntile(k) over (order by k) from t

select date_format(d, 'yyyy[-MM') from t

select date_format(d, 'yyyy]-MM') from t

select to_date(s, 'yyyy#MM') from t

select to_date(s, '[yyyy][-MM][-dd][ HH][:mm][ss]') from t

select json_tuple(s, s) from t

select regexp_extract(s, '(a)', 2) from t

select regexp_extract_all(s, 'a') from t

select s rlike '(' from t

select mask(s, 'XX') from t

select hmac(s, s, 'sha0') from t

select time_bucket(interval 0 days, ts) from t

select struct() from t

select named_struct('a') from t

select to_number(s, '9,') from t

select to_char(k, 'S9S') from t

select to_number(s, '999999999999999999999999999999999999999') from t

select schema_of_json(s) from t

select schema_of_json('{"a": 01}') from t

select schema_of_json('1e5', map('prefersDecimal', 'true')) from t

select schema_of_json('1', map('prefersDecimal', 'yes')) from t

select try_to_number(s, s) from t

select map(a) from t

select from_json(s, 'a INT', map('mode', 'DROPMALFORMED')) from t

select from_json(s, 'a INT', map('mode', s)) from t

select map_filter(map(s, k)) from t

select sequence(d, d, interval 12 hours) from t

select sequence(d, d, make_dt_interval(k)) from t

select to_timestamp_ntz(s, "yyyy-MM-dd'T'HH:mmXXX") from t
