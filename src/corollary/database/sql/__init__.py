"""SQL on a database: questions, changes of data, changes of the program."""
