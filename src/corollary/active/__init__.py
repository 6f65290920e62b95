"""Active rules: events, conditions, alerts, triggers and constraints over changes of relations."""
