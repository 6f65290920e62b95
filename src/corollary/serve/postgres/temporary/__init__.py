"""Temporary tables: rows that one session sees, and that come with its questions.

    SELECT … FROM sale JOIN t USING (id)  the question, and a file with the rows of t beside it
    INSERT, UPDATE, DELETE of t           a question for the rows that t has then

Nothing of them reaches the warehouse.
"""
