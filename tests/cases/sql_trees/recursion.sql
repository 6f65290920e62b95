with recursive r(x, y) as (select x, y from edge union select r.x, e.y from r join edge e on r.y = e.x) select * from r

with recursive r as (select k, 0 as depth from t union all select t.k, r.depth + 1 from r join t on t.a = r.k) select * from r where depth < 3

with recursive r as (select x, y from edge union select p.x, q.y from r p join r q on p.y = q.x) select count(*) from r

with recursive even(n) as (select 0 union select n + 1 from odd where n < 9), odd(n) as (select n + 1 from even where n < 9) select * from even

with recursive pay(n, total) as (select k, m from t union all select n + 1, cast(total * 1.1 as decimal(38, 2)) from pay where n < 3) select * from pay

with recursive r(n, up) as (select k, k from t union all select n + 1, a from r join t on t.k = r.n), s as (select * from r where up > 1) select * from s

with recursive plain as (select a from u), r as (select a from plain union select a + 1 from r) select * from r, plain
