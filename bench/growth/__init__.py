"""How a warehouse on Spark grows: sizes of data against memory, jobs, bytes and time."""
