-- C1372: nothing of that name
DROP VIEW t;
