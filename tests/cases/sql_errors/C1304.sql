select a from t, u

select id from Mixed

select x from edge e1 join edge e2 on true

select v.x from (select x, y as X from edge) v

select t.k from t join u on true
  join u as u2 using (a)

select e.* from edge e, edge e

select edge.x from edge, edge

select k as x, a as x from t order by x
