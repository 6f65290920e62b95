CREATE MATERIALIZED VIEW revenue_by_city AS
SELECT coalesce(c.city, 'UNKNOWN') AS city, count(*) AS orders, sum(o.quantity) AS items,
       round(sum(o.amount), 2) AS revenue
FROM orders_silver o LEFT JOIN customers c ON o.customer = c.customer
GROUP BY coalesce(c.city, 'UNKNOWN');

CREATE MATERIALIZED VIEW best_items AS
SELECT item, sum(quantity) AS quantity, count(DISTINCT customer) AS customers
FROM orders_silver GROUP BY item HAVING sum(quantity) >= 3;

CREATE MATERIALIZED VIEW latest_orders AS
SELECT customer, order_id, item FROM (
  SELECT customer, order_id, item,
         row_number() OVER (PARTITION BY customer ORDER BY order_id DESC) AS place
  FROM orders_silver) WHERE place = 1;
