-- Access rights: teams within teams, documents granted to them and denied to people.

-- all teams of everybody
CREATE VIEW teams_of AS WITH RECURSIVE r(who, team) AS (SELECT who, team FROM member UNION SELECT r.who, m.team FROM r JOIN member m ON m.who = r.team) SELECT who, team FROM r;

-- documents that somebody may read
CREATE VIEW readable AS WITH RECURSIVE r(who, team) AS (SELECT who, team FROM member UNION SELECT r.who, m.team FROM r JOIN member m ON m.who = r.team)
SELECT DISTINCT r.who, g.doc FROM r JOIN granted g ON g.team = r.team;

-- minus those that are denied
CREATE VIEW allowed AS WITH RECURSIVE r(who, team) AS (SELECT who, team FROM member UNION SELECT r.who, m.team FROM r JOIN member m ON m.who = r.team)
SELECT r.who, g.doc FROM r JOIN granted g ON g.team = r.team EXCEPT SELECT who, doc FROM denied;

-- denied to a team is denied to its members
CREATE VIEW allowed_deep AS WITH RECURSIVE r(who, team) AS (SELECT who, who FROM member UNION SELECT r.who, m.team FROM r JOIN member m ON m.who = r.team)
SELECT DISTINCT r.who, g.doc FROM r JOIN granted g ON g.team = r.team
WHERE NOT EXISTS (SELECT * FROM r s JOIN denied d ON d.who = s.team WHERE s.who = r.who AND d.doc = g.doc);

-- rights flow down the teams
CREATE VIEW inherited AS WITH RECURSIVE r(team, doc) AS (SELECT team, doc FROM granted UNION SELECT m.who, r.doc FROM r JOIN member m ON m.team = r.team) SELECT team AS who, doc FROM r;

-- how many may read it
CREATE VIEW readers AS WITH RECURSIVE r(team, doc) AS (SELECT team, doc FROM granted UNION SELECT m.who, r.doc FROM r JOIN member m ON m.team = r.team)
SELECT doc, COUNT(*) AS readers FROM r GROUP BY doc;

-- documents that nobody may read
CREATE VIEW unread AS WITH RECURSIVE r(team, doc) AS (SELECT team, doc FROM granted UNION SELECT m.who, r.doc FROM r JOIN member m ON m.team = r.team)
SELECT DISTINCT d.doc FROM denied d LEFT JOIN r ON r.doc = d.doc AND r.team = d.who WHERE r.doc IS NULL;
