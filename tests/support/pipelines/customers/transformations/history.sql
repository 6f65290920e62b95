CREATE STREAMING TABLE customer_history;

CREATE FLOW history AS AUTO CDC INTO customer_history
FROM STREAM(customer_changes)
KEYS (id)
APPLY AS DELETE WHEN operation = 'DELETE'
SEQUENCE BY version
COLUMNS * EXCEPT (operation, version)
STORED AS SCD TYPE 2
TRACK HISTORY ON (city);

CREATE MATERIALIZED VIEW customers_by_city AS
SELECT city, count(*) AS customers FROM customers GROUP BY city;

CREATE MATERIALIZED VIEW moves AS
SELECT id, count(*) - 1 AS moves FROM customer_history GROUP BY id HAVING count(*) > 1;
