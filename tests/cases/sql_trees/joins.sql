select * from t left join u using (a)

select * from t full join u using (a)

select * from t right join u using (a)

select a, t.a, u.a from t right join u using (a)

select * from t right join u on t.k = u.c

select k from t left semi join u on t.a = u.a

select k from t left anti join u using (a)

select * from u natural join (select a, k from t) v

select * from edge e1, edge e2 join edge e3 on e1.y = e3.x cross join u

select w from t full join u using (a) left join edge on edge.x = u.w where a > 1

select e.x from (edge e join u on e.x = u.w) left join t on t.s = e.y
