-- The tables of the recursive views. Those of emp, bom, road and link have no cycles, edges and members may.
CREATE TABLE emp (id INT PRIMARY KEY, boss INT, name STRING, pay INT);
CREATE TABLE bom (part INT, sub INT, qty INT NOT NULL, PRIMARY KEY (part, sub));
CREATE TABLE price (part INT PRIMARY KEY, cents INT NOT NULL);
CREATE TABLE edge (x INT, y INT, PRIMARY KEY (x, y));
CREATE TABLE road (x INT, y INT, cost INT NOT NULL, PRIMARY KEY (x, y));
CREATE TABLE link (x INT, y INT);
CREATE TABLE closed (x INT PRIMARY KEY);
CREATE TABLE member (who INT, team INT, PRIMARY KEY (who, team));
CREATE TABLE granted (team INT, doc INT, PRIMARY KEY (team, doc));
CREATE TABLE denied (who INT, doc INT);
