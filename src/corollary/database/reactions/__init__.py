"""What a change sets off: keys, constraints, alerts, and rounds of triggers."""
