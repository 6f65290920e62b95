-- C1363: a view that is not stored
CREATE VIEW v TARGET LAG '1 minute' AS SELECT 1 AS x;

-- C1366: not a duration
CREATE MATERIALIZED VIEW v TARGET LAG 'soon' AS SELECT 1 AS x;

-- C1366: not a flag
CREATE MATERIALIZED VIEW v TBLPROPERTIES ('delta.enableChangeDataFeed' = 'yes') AS SELECT 1 AS x;
