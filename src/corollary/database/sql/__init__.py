"""Statements of SQL: changes of data and of the program, and questions between them."""
