"""The tables of the catalog.

| table | a row is |
|---|---|
| meta | a property of the warehouse: its format, its id, the oldest commit that is kept |
| programs | a program: its text, and the layout of its relations |
| commits | a commit: its parent, the program in force, valid payload, an idempotency key |
| changes | what a commit did to one relation, inline or in a file; or all it holds from then on |
| snapshots | one relation as it was at a commit, in a file |
| indexes | a file of the index that an engine made of a commit |
| sources | the position up to which a source has been read, and when |
| intents | a running transaction: the directory of its files, and its last heartbeat |
| published | the commit that a Delta table shows |
| outbox | an alert of a commit for one sink, whether it is delivered, and when it is due |
| grants | a relation or event predicate that a reader may see |
"""

import sqlalchemy as sa

FORMAT = 3
"""The version of the format that this code writes."""

metadata = sa.MetaData()

meta = sa.Table(
    "corollary_meta",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

programs = sa.Table(
    "corollary_programs",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("places", sa.Text, nullable=False),
    sa.Column("checksum", sa.String(64), nullable=False),
)

commits = sa.Table(
    "corollary_commits",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    # Unique: of two writers with the same parent, the second one fails here.
    sa.Column("parent", sa.Integer, nullable=False, unique=True),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("program", sa.Integer, sa.ForeignKey(programs.c.id), nullable=False),
    sa.Column("idempotency", sa.String(200), nullable=True, unique=True),
    sa.Column("payload", sa.Text, nullable=False),
    sa.Column("stats", sa.Text, nullable=False),
)

changes = sa.Table(
    "corollary_changes",
    metadata,
    sa.Column("commit_number", sa.Integer, sa.ForeignKey(commits.c.number), primary_key=True),
    sa.Column("relation", sa.String(400), primary_key=True),
    sa.Column("added", sa.BigInteger, nullable=False),
    sa.Column("removed", sa.BigInteger, nullable=False),
    sa.Column("is_full", sa.Boolean, nullable=False),
    sa.Column("inline", sa.LargeBinary, nullable=True),
    sa.Column("path", sa.String(400), nullable=True),
    sa.Column("checksum", sa.String(64), nullable=False),
)

snapshots = sa.Table(
    "corollary_snapshots",
    metadata,
    sa.Column("relation", sa.String(400), primary_key=True),
    sa.Column("commit_number", sa.Integer, primary_key=True),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("path", sa.String(400), nullable=False),
    sa.Column("checksum", sa.String(64), nullable=False),
)

indexes = sa.Table(
    "corollary_indexes",
    metadata,
    sa.Column("commit_number", sa.Integer, primary_key=True),
    sa.Column("path", sa.String(400), primary_key=True),
    sa.Column("checksum", sa.String(64), nullable=False),
)

sources = sa.Table(
    "corollary_sources",
    metadata,
    sa.Column("source", sa.String(800), primary_key=True),
    sa.Column("relation", sa.String(400), nullable=False),
    sa.Column("position", sa.Text, nullable=False),
    sa.Column("commit_number", sa.Integer, nullable=False),
    sa.Column("read", sa.Float, nullable=False),
)

intents = sa.Table(
    "corollary_intents",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("writer", sa.String(200), nullable=False),
    sa.Column("heartbeat", sa.Float, nullable=False),
)

published = sa.Table(
    "corollary_published",
    metadata,
    sa.Column("relation", sa.String(400), primary_key=True),
    sa.Column("commit_number", sa.Integer, nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
)

outbox = sa.Table(
    "corollary_outbox",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("commit_number", sa.Integer, sa.ForeignKey(commits.c.number), nullable=False),
    sa.Column("place_in_commit", sa.Integer, nullable=False),
    sa.Column("depth", sa.Integer, nullable=False),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("shape", sa.Text, nullable=False),
    sa.Column("row", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("sink", sa.String(16), nullable=False),
    sa.Column("place", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("due", sa.Float, nullable=False),
    sa.Column("claim", sa.String(64), nullable=True),
    sa.Column("claimed", sa.Float, nullable=True),
    sa.Column("delivered", sa.Float, nullable=True),
    sa.Column("error", sa.Text, nullable=True),
    sa.Index("corollary_outbox_waiting", "delivered", "due"),
    sa.Index("corollary_outbox_commit", "commit_number"),
)

grants = sa.Table(
    "corollary_grants",
    metadata,
    sa.Column("reader", sa.String(200), primary_key=True),
    sa.Column("relation", sa.String(400), primary_key=True),
)
