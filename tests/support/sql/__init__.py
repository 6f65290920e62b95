"""Expressions on SQL engines, compared with the local one."""
