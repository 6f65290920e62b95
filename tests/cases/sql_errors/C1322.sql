select count(*) from t group by cube(k, a, s, d, m, f, ts, b, k + 1, k + 2, k + 3, k + 4, k + 5)
