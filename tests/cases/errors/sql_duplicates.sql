-- C1366: what happens to equal rows
CREATE TABLE t (a INT) TBLPROPERTIES ('duplicates' = 'twice');
