"""Spark for tests: a cluster on this machine that loses executors, tasks in this process."""
