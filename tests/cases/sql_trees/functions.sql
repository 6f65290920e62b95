select upper(s), lcase(s), length(s), substr(s, 2), substring(s from 2 for 3), trim(s), trim(leading from s), left(s, 2), replace(s, 'a'), instr(s, 'a'), position('a' in s), locate('a', s), lpad(s, 5), repeat(s, 2), space(3), split_part(s, ',', 1) from t

select concat(s, 'x'), s || 'a' || 'b', concat_ws('-', s, w), initcap(s), reverse(s), startswith(s, 'a'), contains(s, 'b'), s like 'a!%' escape '!', s ilike 'A%', s rlike '^a', regexp_replace(s, 'a', 'b'), regexp_extract(s, '(a)'), chr(65), ascii(s), translate(s, 'ab', 'xy') from t join u on t.k = u.c

select abs(a), sign(a), round(m), round(m, 1), round(m, -2), round(k, -1), round(f, 2), floor(f), ceil(m), floor(k), sqrt(k), power(k, 2), mod(k, 3), pmod(k, 3), k & 3, ~k, greatest(a, m, 1), least(f, k) from t

select coalesce(a, 0), nvl(s, 'x'), nvl2(a, 1, 2.5), nullif(a, 0), nullif(k, 1.5), if(b, 1, null), case a when 1 then 'x' when 2 then 'y' end, case when a > 1 then 1 else 2.5 end, isnull(a), isnotnull(a), decode(a, 1, 'x', null, 'n', 'z'), equal_null(a, 1), zeroifnull(a) from t

select year(d), extract(quarter from ts), dayofweek(d), weekday(d), dayofyear(d), weekofyear(d), hour(ts), extract(second from ts), date_part('month', d), date_add(d, 3), date_sub(d, k), datediff(d, ts), add_months(d, 1), last_day(d), trunc(d, 'MM'), date_trunc('week', ts), date_format(d, "dd.MM.yyyy 'at' HH%"), to_date(s), to_date(s, 'yyyy/MM/dd'), to_timestamp(s), make_date(2026, 1, k), current_date, current_date() from t

select d + interval 1 month, d - 3, interval '2' day + ts, d + interval 3 hours, ts - interval '1-2' year to month, ts + interval '1 02:03:04' day to second, d + interval 1 week 2 days, timestampadd(HOUR, 2, ts), dateadd(MONTH, k, d), timestampdiff(DAY, d, ts), datediff(HOUR, d, ts) from t

select try_cast(s as int), try_divide(k, a), try_add(k, 1), try_to_one from (select s, k, a, 1 as try_to_one from t) v

select cast(s as int), cast(k as int), cast(k as bigint), cast(m as decimal(5,1)), cast(k as decimal(22,2)), cast(f as decimal(10,2)), cast(s as date), cast(ts as date), cast(d as timestamp), cast(b as int), cast(k as string), cast(m as double), cast(s as boolean), cast(k as boolean), s::decimal(5,2), int(m), string(d), cast(ts as bigint), cast('2026-02-03' as date), cast('x' as date) from t

select a / 2, m * m, m / 3, m + 1, k % 2, k div 2, f * m, -k, m * 1.5, m % 2, m div 2, 1 / 3.0, m - f, n + 1 from t join big on true

select encode(s, 'UTF-8'), decode(encode(s, 'UTF-8'), 'UTF-8'), unhex(s), hex(X'617A'), base64(encode(s, 'UTF-8')), unbase64(base64(X'617A')), length(X'617'), concat(X'61', s), substring(X'617A', 2), left(X'617A', 1), bit_length(X'61'), cast(s as binary), cast(X'61' as string), s = X'61', binary(s), cast(s as timestamp_ntz), cast(ts as timestamp_ntz) + interval 1 day, cast(d as timestamp_ntz) = ts, timestamp_ntz '2026-01-31 08:00:00' from t

select :k + 1, :k = a from t where k = :k

select signum(f), ceiling(f), pow(f, k), div(k, 2), negative(m), try_subtract(k, 1), try_multiply(m, 2), try_mod(k, 2), ifnull(a, k), nullifzero(a), ucase(s), lower(s), len(s), char_length(s), character_length(s), substring(s, 1, 2), endswith(s, 'a'), like(s, 'a%'), regexp(s, 'a'), regexp_like(s, 'a'), btrim(s), ltrim(s), rtrim(s), right(s, 2), rpad(s, 5, 'x'), char(65), ilike(s, 'a') from t

select dayofmonth(d), minute(ts), second(d), date_diff(d, d), datepart('DOW', d), timestamp_seconds(k), curdate(), month(d), quarter(d), day(d), extract(dow_iso from d), extract(yearofweek from ts), to_timestamp(s, 'yyyy-MM-dd HH:mm:ss') from t

select boolean(k), tinyint(k), smallint(k), bigint(f), double(m), decimal(k), date(s), timestamp(d), try_cast(m as decimal(4, 1)), cast(null as int), cast(b as decimal(5, 2)), cast(b as double), cast(k as timestamp), cast(m as boolean), cast(f as string), cast(ts as string), cast(m as smallint), cast(5 as tinyint) from t

select k | 1, k ^ 2, d is null, b is true, b is not false, (b and a > 1) is unknown, null + 1, null = 1, null and b, s not like 'x', k not between 1 and 2, d = ts, k = f, m = k, k = 2.5, ts > date '2026-01-01' from t

select cast(m as decimal(38, 20)) * cast(m as decimal(38, 20)), cast(m as decimal(38, 20)) + cast(m as decimal(38, 0)), cast(m as decimal(38, 20)) / cast(m as decimal(38, 0)), coalesce(cast(m as decimal(38, 0)), cast(m as decimal(38, 10))) from t

select unix_date(d), date_from_unix_date(5), unix_seconds(ts), next_day(d, 'mo'), next_day(d, 'Sat'), next_day(d, 'SUNDAY'), dayname(d), monthname(ts) from t

select +k, + +m, +1, positive(f), -128Y, -9223372036854775808L, -1.5BD from t

select k from t where d > '2026-01-05' and ts <= ' 2026-1-5 8:00 ' and k in ('7', a) and f < '1e1' and m <> '1.5' and b = 'true' and d between '2026' and '2026-02'

select case when b then d else '2026-01-05' end, coalesce(a, '7'), nullif(d, '2026-01-05'), datediff('2026-01-05', d), k + '1', year('2026-01-05') from t

select date_format(d, "yyyy[-MM]'['dd']'"), to_date(s, 'yyyy[-MM[-dd]]'), to_timestamp(s, '[yyyy][-MM]') from t

select soundex(s), quote(s), mask(s), url_encode(s), url_decode(s), try_url_decode(s), find_in_set(s, 'a,b'), md5(s), sha(s), sha1(s), sha2(s, 256), crc32(s), hex(s), hex(k), base64(s), to_base32(s), luhn_check(s) from t

select levenshtein(s, 'abc'), levenshtein(s, 'abc', 2), substring_index(s, ',', 2), regexp_count(s, 'a'), regexp_instr(s, 'a'), regexp_substr(s, 'a'), format_number(k, 2), conv(s, 16, 10), elt(k, s, 'b'), overlay(s, 'x', 2), overlay(s placing 'x' from 2 for 1), overlay(X'6162' placing X'63' from 2), locate('a', s, 2), ltrim('x', s), octet_length(s), bit_length(s) from t

select collation(s), is_valid_utf8(s), validate_utf8(s), try_validate_utf8(s), make_valid_utf8(s), trim('x' from s), trim(leading 'x' from s), translate(s, 'ab', 'ba') from t

select bin(k), bit_count(k), bit_count(b), bit_get(k, 3), getbit(k, 3), factorial(k), width_bucket(f, 0, 10, 5), isnan(f), nanvl(f, 1), e(), pi(), rint(f), degrees(f), radians(f), bitmap_bit_position(k), bitmap_bucket_number(k) from t

select shiftleft(k, 3), shiftright(cast(k as int), 3), shiftrightunsigned(cast(k as int), 3), k << 1, k >> 1, bround(f, 1), bround(m, 1), ceil(m, 1), floor(m, 1), ceiling(f, 2) from t

select timestamp_millis(k), timestamp_micros(k), unix_micros(ts), unix_millis(ts), unix_timestamp(ts), to_unix_timestamp(s), from_unixtime(k), from_utc_timestamp(ts, 'Europe/Berlin'), to_utc_timestamp(ts, s), months_between(ts, d) from t

select make_timestamp(2026, 1, k, 3, 4, 5.5), make_timestamp_ltz(2026, 1, k, 3, 4, 5, 'Asia/Tokyo'), try_make_timestamp(2026, 1, k, 3, 4, 5), try_make_timestamp_ltz(2026, 1, k, 3, 4, 5), to_timestamp_ltz(s), try_to_date(s), try_to_timestamp(s, 'yyyy'), to_char(d, 'yyyy'), to_varchar(ts, 'HH') from t

select exp(f), expm1(f), ln(f), log(f), log(2, f), log2(f), log10(k), log1p(f), cbrt(f), hypot(f, 1), sinh(f), cosh(f), tanh(f), asinh(f), acosh(f), atanh(f), sin(f), cos(f), tan(f), cot(f), sec(f), csc(f), asin(f), acos(f), atan(f), atan2(f, 1), sqrt(m) from t

select ts - d, d - date '2026-01-01', interval 1 day + interval 2 hours, d + make_dt_interval(k, 1, 2, 3.5), ts - make_ym_interval(k), make_dt_interval(k) * 1.5, make_ym_interval(1, k) / 3, extract(MONTH FROM make_ym_interval(k)), cast(s as interval hour to minute), cast(interval '1 02:03:04' day to second as string), cast(make_dt_interval(k) as interval day), d + (d - date '2026-01-01') from t

select array(k, 2), array(k, 2)[0], size(array(s)), cardinality(array(s)), array_size(array(s)), array_distinct(array(k)), array_union(array(k), array(1)), array_intersect(array(k), array(1)), array_except(array(k), array(a)), array_remove(array(k), 1), array_compact(array(k)), array_sort(array(k)), sort_array(array(k)), sort_array(array(k), false), array_position(array(s), 'a'), array_join(array(s), ','), array_append(array(k), 1), array_prepend(array(k), null), array_insert(array(k), 1, 2), array_repeat(k, 2), slice(array(k), 1, 2), flatten(array(array(k))), array_contains(array(k), 1), arrays_overlap(array(k), array(1)), array_min(array(k)), array_max(array(k)), get(array(k), 0), element_at(array(k), 1), try_element_at(array(k), 1), concat(array(k), array(1)), reverse(array(k)), sequence(k, 3), split(s, ',') from t

select explode(array(k)), k from t

select to_binary(s), to_binary(s, 'utf-8'), try_to_binary(s, 'hex'), to_timestamp_ntz(s), to_timestamp_ntz(s, 'yyyy'), make_timestamp_ntz(2026, 1, k, 3, 4, 5.5), try_make_timestamp_ntz(2026, 1, k, 3, 4, 5), months_between(ts, d, false), position('a', s, 2), lpad(X'61', 2), reverse(X'6162') from t

select get_json_object(s, '$.a[0]'), json_array_length(s), json_object_keys(s) from t

select json_tuple(s, 'a', 'b') from t

select typeof(k), hash(k, s, null, d, m), xxhash64(f), hmac(s, X'61'), from_base32(s), bitmap_count(X'ff'), jaro_winkler_similarity(s, 'a'), regexp_extract_all(s, '(a)(b)', 2), mask(s), mask(s, 'Q', null), time_bucket(interval 15 minutes, ts), time_bucket(interval 2 months, ts), convert_timezone('Europe/Berlin', ts) from t

select parse_url(s, 'HOST'), try_parse_url(s, 'QUERY', 'a') from t

select to_number(s, '9'), try_to_number(s, 'S$0,999.99'), to_number(s, null), to_char(k, 'S9'), to_varchar(f, '9.9'), to_char(s, '9'), to_char(null, '9'), to_char(k, null), to_char(d, 'yyyy'), schema_of_json('[1]') from t

select transform(array(k), x -> x + k), transform(array(s), (x, i) -> concat(x, i)), filter(array(k), x -> x > 1), exists(array(k), x -> x > 1), forall(array(k), x -> x > 1), zip_with(array(k), array(s), (x, y) -> y), aggregate(array(k), 0L, (acc, x) -> acc + x, acc -> acc / 2), reduce(array(s), '', (acc, x) -> concat(acc, x)), array_sort(array(s), (x, y) -> length(x) - length(y)) from t

select to_time(s), to_time(s, 'HH:mm'), try_to_time(s), make_time(k, 5, m), time_diff('HOUR', '8:05', to_time(s)), time_trunc('MINUTE', to_time(s)), time_from_seconds(m), time_from_millis(k), time_from_micros(k), time_to_seconds(to_time(s)), time_to_millis(to_time(s)), time_to_micros(to_time(s)), hour(to_time(s)), second(time'08:05:07'), make_timestamp(d, to_time(s)), extract(second from to_time(s)), cast(f as float) + 1.5F from t

select to_json(array(k)), to_json(struct(k, s)) from t

select map(s, k), map_from_arrays(array(s), array(k)), map_from_entries(array((s, k))), map_concat(map(s, k), map('b', 1)), map_keys(map(s, k)), map_values(map(s, k)), map_entries(map(s, k)), map_contains_key(map(s, k), 'a'), str_to_map(s), map(s, k)['a'], map(s, k).a, size(map(s, k)) from t

select struct(k, s AS r).r, named_struct('a', k, 'b', s), (k, s), arrays_zip(array(k), array(s)), array(struct(k)).k, CAST(struct(k) AS STRUCT<a: STRING>) from t

select explode(map(s, k)), k from t

select from_json(s, 'a INT, `b c` ARRAY<STRING>').a, from_json(s, 'MAP<STRING, DECIMAL(5, 2)>', map('mode', 'FAILFAST')), to_json(struct(k), map('ignoreNullFields', 'false')), to_json(map(s, k)) from t

select map_filter(map(s, k), (x, y) -> y > 1), transform_keys(map(s, k), (x, y) -> y), transform_values(map(s, k), (x, y) -> x), map_zip_with(map(s, k), map('a', 1), (x, y, z) -> y + z) from t

select cast(array(k) as array<string>), try_cast(array(s) as array<int>), cast(transform(array(k), x -> x) as array<double>), transform(array(k), x -> NULL), hash(array(k), struct(s, k)) from t

select sequence(d, d, interval 1 month), sequence(ts, ts, interval 1 hour), sequence(d, d) from t

select format_string('%05d %s %.2f', k, s, f), printf('%x', k) from t
