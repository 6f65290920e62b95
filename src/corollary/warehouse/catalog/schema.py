"""The tables of the catalog.

| table | a row is |
|---|---|
| meta | a property of the warehouse: its format, its id, the oldest commit that is kept |
| programs | a program: its text, and the layout of its relations |
| commits | a commit: its parent, its program, valid payload and exact ranks, an idempotency key |
| changes | what a commit did to one relation, inline or in a file; or all it holds from then on |
| snapshots | one relation as it was at a commit, in a file |
| indexes | a file of the index that an engine made of a commit |
| sources | the position up to which a source has been read, and when |
| intents | a running transaction: the directory of its files, and its last heartbeat |
| published | the commit that a Delta table shows |
| outbox | an alert of a commit for one sink, whether it is delivered, and when it is due |
| grants | a relation or event predicate that a reader may see |

Their names begin with `corollary_`: a server's database may have other tables too.
"""

FORMAT = 6
"""The version of what this code writes: tables, files, and what is stored of a program."""

OLDEST_FORMAT = 5
"""The first format that can be upgraded."""

META_TABLE = "corollary_meta"

TABLES = {
    META_TABLE: """
        name VARCHAR(64) NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (name)""",
    "corollary_programs": """
        id INTEGER NOT NULL,
        text TEXT NOT NULL,
        places TEXT NOT NULL,
        checksum VARCHAR(64) NOT NULL,
        PRIMARY KEY (id)""",
    # The parent is unique: of two writers with the same one, the second fails here.
    "corollary_commits": """
        number INTEGER NOT NULL,
        parent INTEGER NOT NULL,
        created FLOAT NOT NULL,
        program INTEGER NOT NULL,
        idempotency VARCHAR(200),
        payload TEXT NOT NULL,
        stats TEXT NOT NULL,
        PRIMARY KEY (number),
        UNIQUE (parent),
        UNIQUE (idempotency),
        FOREIGN KEY (program) REFERENCES corollary_programs (id)""",
    # BYTEA is PostgreSQL's type for bytes; SQLite takes any name, and bytes as they are.
    "corollary_changes": """
        commit_number INTEGER NOT NULL,
        relation VARCHAR(400) NOT NULL,
        added BIGINT NOT NULL,
        removed BIGINT NOT NULL,
        is_full BOOLEAN NOT NULL,
        inline BYTEA,
        path VARCHAR(400),
        checksum VARCHAR(64) NOT NULL,
        PRIMARY KEY (commit_number, relation),
        FOREIGN KEY (commit_number) REFERENCES corollary_commits (number)""",
    "corollary_snapshots": """
        relation VARCHAR(400) NOT NULL,
        commit_number INTEGER NOT NULL,
        rows BIGINT NOT NULL,
        path VARCHAR(400) NOT NULL,
        checksum VARCHAR(64) NOT NULL,
        PRIMARY KEY (relation, commit_number)""",
    "corollary_indexes": """
        commit_number INTEGER NOT NULL,
        path VARCHAR(400) NOT NULL,
        checksum VARCHAR(64) NOT NULL,
        PRIMARY KEY (commit_number, path)""",
    "corollary_sources": """
        source VARCHAR(800) NOT NULL,
        relation VARCHAR(400) NOT NULL,
        position TEXT NOT NULL,
        commit_number INTEGER NOT NULL,
        read FLOAT NOT NULL,
        PRIMARY KEY (source)""",
    "corollary_intents": """
        id VARCHAR(64) NOT NULL,
        writer VARCHAR(200) NOT NULL,
        heartbeat FLOAT NOT NULL,
        PRIMARY KEY (id)""",
    "corollary_published": """
        relation VARCHAR(400) NOT NULL,
        commit_number INTEGER NOT NULL,
        version BIGINT NOT NULL,
        PRIMARY KEY (relation)""",
    "corollary_outbox": """
        id VARCHAR(64) NOT NULL,
        commit_number INTEGER NOT NULL,
        place_in_commit INTEGER NOT NULL,
        depth INTEGER NOT NULL,
        event TEXT NOT NULL,
        shape TEXT NOT NULL,
        row TEXT NOT NULL,
        message TEXT NOT NULL,
        sink VARCHAR(16) NOT NULL,
        place TEXT NOT NULL,
        attempts INTEGER NOT NULL,
        due FLOAT NOT NULL,
        claim VARCHAR(64),
        claimed FLOAT,
        delivered FLOAT,
        error TEXT,
        PRIMARY KEY (id),
        FOREIGN KEY (commit_number) REFERENCES corollary_commits (number)""",
    "corollary_grants": """
        reader VARCHAR(200) NOT NULL,
        relation VARCHAR(400) NOT NULL,
        PRIMARY KEY (reader, relation)""",
}
"""The columns of each table; a table comes after those that it references."""

_INDEXES = (
    "CREATE INDEX IF NOT EXISTS corollary_outbox_waiting ON corollary_outbox (delivered, due)",
    "CREATE INDEX IF NOT EXISTS corollary_outbox_commit ON corollary_outbox (commit_number)",
)

CREATE = (
    *(f"CREATE TABLE IF NOT EXISTS {table} ({columns})" for table, columns in TABLES.items()),
    *_INDEXES,
)
"""The statements that create what does not exist yet."""

DEFINITIONS = "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
"""The query for the tables of an SQLite file, and the statements that have made them."""


def defines(table: str, statement: str) -> bool:
    """Return whether a statement makes a table as it is here; blanks do not matter."""
    return statement.split() == f"CREATE TABLE {table} ({TABLES[table]})".split()
