-- What deploy/server.compose.yaml begins with: write your tables and views here.
CREATE TABLE member (who STRING, team STRING, PRIMARY KEY (who, team));
CREATE TABLE inside (team STRING, part_of STRING, PRIMARY KEY (team, part_of));
CREATE MATERIALIZED VIEW belongs AS
  WITH RECURSIVE every(who, team) AS (
    SELECT who, team FROM member
    UNION
    SELECT every.who, inside.part_of FROM every JOIN inside ON every.team = inside.team
  )
  SELECT who, team FROM every;
