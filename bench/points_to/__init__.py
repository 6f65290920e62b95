"""A points-to analysis with contexts, and a program for it to analyse."""
