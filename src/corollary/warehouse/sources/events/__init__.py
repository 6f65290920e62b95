"""Streams of change events: messages of Kafka, files that are added to, what clients push.

A *carrier* brings messages and says how far it was read; `decoding` makes events of them, and sets
aside those that are none; `EventSource` puts both together. What events do to a relation is
`corollary.database.intake.event_tables`.
"""
