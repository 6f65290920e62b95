"""Large sources, read in tasks by file and by block: the process of the database sees no row.

`text_ranges` says where the records of a large text begin, `portion_reader` is what a task does,
`staged_rows` what becomes of its rows; `task_reading` runs the jobs and puts together what they
report.
"""
