-- What each state has sold, day by day.
CREATE MATERIALIZED VIEW daily_sales_by_state
COMMENT 'in pieces'
AS SELECT state, day, sum(quantity) AS quantity, count(*) AS sales
FROM shop_sales GROUP BY state, day;

CREATE MATERIALIZED VIEW running_sales AS
SELECT state, day, sum(quantity) OVER (PARTITION BY state ORDER BY day) AS quantity
FROM daily_sales_by_state;

CREATE MATERIALIZED VIEW best_days AS
SELECT state, day, quantity FROM (
  SELECT *, rank() OVER (PARTITION BY state ORDER BY quantity DESC) AS place
  FROM daily_sales_by_state) WHERE place = 1;

CREATE STREAMING TABLE returns;

CREATE FLOW returned AS INSERT INTO returns BY NAME
SELECT -quantity AS pieces, item, shop FROM STREAM(sales) WHERE quantity < 0;

CREATE MATERIALIZED VIEW both_regions AS
SELECT 'north' AS region, item, sum(quantity) AS quantity FROM north_sales GROUP BY item
UNION ALL
SELECT 'south', item, sum(quantity) FROM south_sales GROUP BY item;
