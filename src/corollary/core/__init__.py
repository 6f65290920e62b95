"""The words everything else is said in: programs, pipelines, plans, changes. Data only."""
