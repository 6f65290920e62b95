-- A pipeline: a folder of files that grows, cleaned rows, and tables for reports. Small data stays
-- in this process; large relations are partitioned and maintained in Spark's tasks.
CREATE TABLE event (
  id BIGINT PRIMARY KEY,
  device STRING NOT NULL,
  kind STRING NOT NULL,
  value DOUBLE,
  at TIMESTAMP NOT NULL)
  USING json OPTIONS (path 'events');

CREATE TABLE device (name STRING PRIMARY KEY, site STRING NOT NULL)
  USING csv OPTIONS (path 'device.csv', header 'true');

-- Silver: readings with a value, of known devices.
CREATE MATERIALIZED VIEW reading AS
  SELECT e.id, d.site, e.device, e.value, e.at
  FROM event e JOIN device d ON e.device = d.name
  WHERE e.kind = 'reading' AND e.value IS NOT NULL;

-- Gold: a row a site and day.
CREATE MATERIALIZED VIEW daily AS
  SELECT site, CAST(at AS DATE) AS day, COUNT(*) AS readings, MIN(value) AS least, MAX(value) AS most
  FROM reading
  GROUP BY site, CAST(at AS DATE);

-- What somebody has to look at: events of devices that are not known.
CREATE MATERIALIZED VIEW unknown_device AS
  SELECT device, COUNT(*) AS events
  FROM event
  WHERE device NOT IN (SELECT name FROM device)
  GROUP BY device;
