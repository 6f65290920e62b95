"""The program in force: read, checked, edited; its relations, and the parts of base relations."""
