with recursive r as (select x from r) select * from r

with recursive r as (select 1 as n union all select n + 1 from r union select 2) select * from r

with recursive r as (select 1 as n union select true from r) select * from r

with recursive r as (select 1 as n union select n + 0.5 from r) select * from r

with recursive r as (select 1 as n union select n + 1 from r order by n limit 3) select * from r

with recursive a as (select x from b), b as (select x from a) select * from a
