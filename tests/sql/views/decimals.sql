-- Decimals: Spark's precision and scale, rounding half up, sums and means.
-- not sqlite: it has no decimals

-- sums of decimals and integers
CREATE VIEW plus AS SELECT id, price + 1 AS x, price - 0.5 AS y, -price AS z FROM item;

-- products have the scales of both
CREATE VIEW times AS SELECT id, price * qty AS x, price * 1.19 AS y, price * price AS z FROM item;


-- a quotient that ends
-- duckdb: SELECT id, CAST(CAST(price AS DOUBLE) / 8 AS DECIMAL(20, 5)) AS x FROM item
CREATE VIEW eighths AS SELECT id, price / 8 AS x FROM item;

-- decimals and doubles are doubles
CREATE VIEW with_double AS SELECT id, price * rate AS x, price + rate AS y FROM item;

-- comparisons of different scales
CREATE VIEW compared AS SELECT id FROM item WHERE price > 1.255 OR price = 1;

-- comparison with integers
CREATE VIEW compared_int AS SELECT id FROM item WHERE price >= qty;

-- sums keep the scale
CREATE VIEW sums AS SELECT item, SUM(amount) AS s, COUNT(amount) AS c FROM sale GROUP BY item;

-- means have four digits more
-- duckdb: SELECT item, CAST(round(avg(amount), 6) AS DECIMAL(12, 6)) AS m FROM sale GROUP BY item
CREATE VIEW means AS SELECT item, AVG(amount) AS m FROM sale GROUP BY item;

-- the mean of everything
-- duckdb: SELECT CAST(round(avg(amount), 6) AS DECIMAL(12, 6)) AS m, MIN(amount) AS lo, MAX(amount) AS hi FROM sale
CREATE VIEW mean AS SELECT AVG(amount) AS m, MIN(amount) AS lo, MAX(amount) AS hi FROM sale;

-- sums of products
CREATE VIEW revenue AS SELECT sale.item, SUM(sale.amount * (1 - item.price)) AS r FROM sale JOIN item ON sale.item = item.id GROUP BY sale.item;

-- distinct decimals
CREATE VIEW distinct_sums AS SELECT item, SUM(DISTINCT amount) AS s, COUNT(DISTINCT amount) AS c FROM sale GROUP BY item;

-- rounding
CREATE VIEW rounded AS SELECT id, ROUND(price, 1) AS x, ROUND(price) AS y FROM item;

-- floor, ceiling, absolute value
CREATE VIEW floors AS SELECT id, FLOOR(price) AS x, CEIL(price) AS y, ABS(price) AS z FROM item;

-- decimals as keys, in CASE, in coalesce
CREATE VIEW chosen AS SELECT id, CASE WHEN qty > 1 THEN price ELSE 0 END AS x, COALESCE(price, 0.5) AS y FROM item;

-- joined on decimals
CREATE VIEW joined AS SELECT item.id, sale.item FROM item JOIN sale ON item.price = sale.amount;

-- a share of the total
-- duckdb: SELECT item, CAST(SUM(amount) AS DOUBLE) / (SELECT SUM(qty) FROM sale WHERE qty > 0) AS share FROM sale GROUP BY item
CREATE VIEW share AS SELECT item, CAST(SUM(amount) AS DOUBLE) / (SELECT SUM(qty) FROM sale WHERE qty > 0) AS share FROM sale GROUP BY item;

-- UNION of scales
CREATE VIEW union_scales AS SELECT price FROM item UNION ALL SELECT CAST(amount AS DECIMAL(10, 3)) FROM sale;
