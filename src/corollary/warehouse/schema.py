"""The tables of the catalog.

| table | a row is |
|---|---|
| meta | a fact about the warehouse: its format, its id, the oldest commit that is kept |
| programs | a program: its text, and where its relations have their place |
| commits | a commit: who it follows, the program in force, marks of payload, an idempotency key |
| changes | what a commit did to one relation, inline or in a file; or all it holds from then on |
| snapshots | one relation as it was at a commit, in a file |
| indexes | the sorted arrays of a commit as an engine keeps them |
| sources | how far a source has been read, and when |
| intents | a transaction under way: the prefix of its files, and a sign of life |
| published | the commit that a Delta table shows |
| outbox | an alert of a commit for one sink, whether it is delivered, and when it is due |
| grants | a relation or event predicate that a reader may see |
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

FORMAT = 3
"""The version of the format that this code writes."""

metadata = MetaData()

meta = Table(
    "corollary_meta",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

programs = Table(
    "corollary_programs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),
    Column("places", Text, nullable=False),
    Column("checksum", String(64), nullable=False),
)

commits = Table(
    "corollary_commits",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("parent", Integer, nullable=False, unique=True),
    Column("created", Float, nullable=False),
    Column("program", Integer, ForeignKey(programs.c.id), nullable=False),
    Column("idempotency", String(200), nullable=True, unique=True),
    Column("payload", Text, nullable=False),
    Column("stats", Text, nullable=False),
)

changes = Table(
    "corollary_changes",
    metadata,
    Column("commit_number", Integer, ForeignKey(commits.c.number), primary_key=True),
    Column("relation", String(400), primary_key=True),
    Column("added", BigInteger, nullable=False),
    Column("removed", BigInteger, nullable=False),
    Column("is_full", Boolean, nullable=False),
    Column("inline", LargeBinary, nullable=True),
    Column("path", String(400), nullable=True),
    Column("checksum", String(64), nullable=False),
)

snapshots = Table(
    "corollary_snapshots",
    metadata,
    Column("relation", String(400), primary_key=True),
    Column("commit_number", Integer, primary_key=True),
    Column("rows", BigInteger, nullable=False),
    Column("path", String(400), nullable=False),
    Column("checksum", String(64), nullable=False),
)

indexes = Table(
    "corollary_indexes",
    metadata,
    Column("commit_number", Integer, primary_key=True),
    Column("path", String(400), primary_key=True),
    Column("checksum", String(64), nullable=False),
)

sources = Table(
    "corollary_sources",
    metadata,
    Column("source", String(800), primary_key=True),
    Column("relation", String(400), nullable=False),
    Column("position", Text, nullable=False),
    Column("commit_number", Integer, nullable=False),
    Column("read", Float, nullable=False),
)

intents = Table(
    "corollary_intents",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("writer", String(200), nullable=False),
    Column("heartbeat", Float, nullable=False),
)

published = Table(
    "corollary_published",
    metadata,
    Column("relation", String(400), primary_key=True),
    Column("commit_number", Integer, nullable=False),
    Column("version", BigInteger, nullable=False),
)

outbox = Table(
    "corollary_outbox",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("commit_number", Integer, ForeignKey(commits.c.number), nullable=False),
    Column("place_in_commit", Integer, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("event", Text, nullable=False),
    Column("shape", Text, nullable=False),
    Column("row", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("sink", String(16), nullable=False),
    Column("place", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due", Float, nullable=False),
    Column("claim", String(64), nullable=True),
    Column("claimed", Float, nullable=True),
    Column("delivered", Float, nullable=True),
    Column("error", Text, nullable=True),
    Index("corollary_outbox_waiting", "delivered", "due"),
    Index("corollary_outbox_commit", "commit_number"),
)

grants = Table(
    "corollary_grants",
    metadata,
    Column("reader", String(200), primary_key=True),
    Column("relation", String(400), primary_key=True),
)
