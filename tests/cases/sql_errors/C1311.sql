select rand() from t

select now()

select current_timestamp

select first(a) from t

select collect_list(a) from t

select any_value(a) from t

select uuid()

select stddev(f) from t

select approx_count_distinct(a) from t

select percentile(a, 0.5) from t

select bround(f) from t

select trim('x' from s) from t

select translate(s, 'ab', 'ba') from t

select current_user

select current_user()
