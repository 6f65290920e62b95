-- The shop in DuckDB: the same files, keys and views, every view a table.
-- `read_csv` gets the types that the program declares, so that nothing is guessed. Keys are checked by
-- queries: PRIMARY KEY, which keeps an index of every key, takes almost twice the time for everything.

SET preserve_insertion_order = false;

CREATE TABLE customer (id BIGINT NOT NULL, name VARCHAR NOT NULL, country VARCHAR NOT NULL, since DATE NOT NULL, credit DECIMAL(12, 2));
CREATE TABLE supplier (id BIGINT NOT NULL, name VARCHAR NOT NULL, country VARCHAR NOT NULL);
CREATE TABLE product (id VARCHAR NOT NULL, name VARCHAR NOT NULL, category VARCHAR NOT NULL, supplier BIGINT, price DECIMAL(10, 2) NOT NULL, since DATE NOT NULL);
CREATE TABLE orders (id BIGINT NOT NULL, customer BIGINT NOT NULL, day DATE NOT NULL, shipped DATE, note VARCHAR);
CREATE TABLE item ("order" BIGINT NOT NULL, line BIGINT NOT NULL, product VARCHAR NOT NULL, quantity BIGINT NOT NULL, price DECIMAL(10, 2) NOT NULL, discount DECIMAL(4, 2));
CREATE TABLE returned ("order" BIGINT NOT NULL, line BIGINT NOT NULL, day DATE NOT NULL, reason VARCHAR);
CREATE TABLE part (whole VARCHAR NOT NULL, part VARCHAR NOT NULL, quantity BIGINT NOT NULL);

INSERT INTO customer FROM read_csv('customer.csv', header = true, auto_detect = false, delim = ',', quote = '"', escape = '"', columns = {id: 'BIGINT', name: 'VARCHAR', country: 'VARCHAR', since: 'DATE', credit: 'DECIMAL(12, 2)'});
INSERT INTO supplier FROM read_csv('supplier.csv', header = true, auto_detect = false, delim = ',', quote = '', columns = {id: 'BIGINT', name: 'VARCHAR', country: 'VARCHAR'});
INSERT INTO product FROM 'product.parquet';
INSERT INTO orders FROM read_csv('orders/*.csv', header = true, auto_detect = false, delim = ',', quote = '', columns = {id: 'BIGINT', customer: 'BIGINT', day: 'DATE', shipped: 'DATE', note: 'VARCHAR'});
INSERT INTO item FROM 'item/*.parquet';
INSERT INTO returned FROM read_csv('returned.csv', header = true, auto_detect = false, delim = ',', quote = '', columns = {"order": 'BIGINT', line: 'BIGINT', day: 'DATE', reason: 'VARCHAR'});
INSERT INTO part FROM read_csv('part.csv', header = true, auto_detect = false, delim = ',', quote = '', columns = {whole: 'VARCHAR', part: 'VARCHAR', quantity: 'BIGINT'});

SELECT error('two rows of customer have one key') FROM customer GROUP BY id HAVING count(*) > 1;
SELECT error('two rows of supplier have one key') FROM supplier GROUP BY id HAVING count(*) > 1;
SELECT error('two rows of product have one key') FROM product GROUP BY id HAVING count(*) > 1;
SELECT error('two rows of orders have one key') FROM orders GROUP BY id HAVING count(*) > 1;
SELECT error('two rows of item have one key') FROM item GROUP BY "order", line HAVING count(*) > 1;
SELECT error('two rows of returned have one key') FROM returned GROUP BY "order", line HAVING count(*) > 1;
SELECT error('two rows of part have one key') FROM part GROUP BY whole, part HAVING count(*) > 1;

CREATE TABLE customer_total AS
SELECT id, country, coalesce(orders, 0) AS orders, coalesce(total, 0)::DECIMAL(18, 2) AS total
FROM customer
LEFT JOIN (SELECT customer, count(*) AS orders FROM orders GROUP BY ALL) counted ON counted.customer = id
LEFT JOIN (
    SELECT customer, sum(quantity * price) AS total
    FROM orders JOIN item ON item."order" = orders.id GROUP BY ALL) spent ON spent.customer = id;

CREATE TABLE revenue AS
SELECT substr(day::VARCHAR, 1, 7) AS month, category, count(*) AS items, sum(quantity * item.price)::DECIMAL(18, 2) AS total
FROM orders JOIN item ON item."order" = orders.id JOIN product ON item.product = product.id GROUP BY ALL;

CREATE TABLE product_sales AS
SELECT product.id, sum(quantity)::BIGINT AS pieces, min(item.price) AS least, max(item.price) AS most,
    coalesce(sum((quantity * item.price * discount)::DECIMAL(18, 2)), 0)::DECIMAL(18, 2) AS given
FROM product JOIN item ON item.product = product.id GROUP BY ALL;

CREATE TABLE idle AS
SELECT id, name, since FROM customer
WHERE credit > 0 AND NOT EXISTS (FROM orders WHERE orders.customer = customer.id);

CREATE TABLE complaint AS
SELECT supplier.id AS supplier, supplier.name, count(*) AS items, max(returned.day) AS last
FROM returned JOIN item USING ("order", line)
JOIN product ON item.product = product.id JOIN supplier ON product.supplier = supplier.id GROUP BY ALL;

CREATE TABLE made_of AS
WITH RECURSIVE made_of(whole, path, part, quantity) AS (
    SELECT whole, whole || '/' || part, part, quantity FROM part
    UNION
    SELECT made_of.whole, path || '/' || part.part, part.part, made_of.quantity * part.quantity
    FROM made_of JOIN part ON part.whole = made_of.part)
FROM made_of;

CREATE TABLE needs AS
SELECT whole, part, sum(quantity)::BIGINT AS quantity FROM made_of GROUP BY ALL;

CHECKPOINT;
