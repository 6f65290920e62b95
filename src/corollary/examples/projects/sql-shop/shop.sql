-- A shop: customers, orders, what they are worth, and who has to be asked to pay.
CREATE TABLE customer (id INT PRIMARY KEY, name STRING NOT NULL, city STRING NOT NULL)
  USING csv OPTIONS (path 'customer.csv', header 'true');

CREATE TABLE orders (
  id BIGINT PRIMARY KEY,
  customer INT NOT NULL REFERENCES customer,
  amount DECIMAL(10, 2) NOT NULL CHECK (amount > 0),
  paid BOOLEAN NOT NULL)
  USING csv OPTIONS (path 'orders.csv', header 'true');

-- Never stored: computed when it is asked for.
CREATE VIEW unpaid AS SELECT id, customer, amount FROM orders WHERE NOT paid;

-- Stored, kept true, and published as Delta tables.
CREATE MATERIALIZED VIEW revenue AS
  SELECT c.city, COUNT(*) AS orders, SUM(o.amount) AS total
  FROM orders o JOIN customer c ON o.customer = c.id
  WHERE o.paid
  GROUP BY c.city;

CREATE MATERIALIZED VIEW reminder AS
  SELECT c.name, SUM(u.amount) AS owed
  FROM unpaid u JOIN customer c ON u.customer = c.id
  GROUP BY c.name
  HAVING SUM(u.amount) >= 100;
