"""What long tests count; `conftest.py` adds it up over all processes and says it at the end."""

from collections import Counter

FIGURES: Counter[str] = Counter()
"""Of the test that runs."""

KILLED, WHOLE = "processes killed", "warehouses found whole"
