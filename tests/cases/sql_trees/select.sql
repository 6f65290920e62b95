select k, a + 1, t.S from t where a > 3 and s = 'x'

select * from t join u on t.a = u.a

select u.*, T.K as text from t, u where t.k = u.c or not b

select `a` AS `x y` from u where w <=> 'é' and a is not null and (a between 1 and 3 or a in (5, 6.5))

select k k2, k2 + 1 k3 from t

select 1, 'it''s', null, true, date '2026-1-5', timestamp '2026-01-05 08:00:00+02:00', 1.50, .05, 1e3, 10L, 2D, 1.5BD, -9223372036854775808, 9223372036854775808

select x.* except (y) from edge x
