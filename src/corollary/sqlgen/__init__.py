"""From functors to SQL: what the compilers for people and for engines share."""
