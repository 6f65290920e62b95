-- C1364: there is one schema
CREATE TABLE shop.t (a INT);
