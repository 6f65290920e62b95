"""Random programs, scenarios and documents."""
