"""The parts of the advisor's report: estimates, large programs, shared views."""
