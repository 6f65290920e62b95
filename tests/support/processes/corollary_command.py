"""The command line, which never takes its work for long: on a busy machine, any may be.

`python -m support.processes.corollary_command ARGUMENTS` is `python -m corollary ARGUMENTS` without
the lines that tell the seconds of long work.
"""

from corollary import console
from corollary.cli import main

if __name__ == "__main__":
    console.LONG_SECONDS = console.LOG_SECONDS = float("inf")
    main(prog_name="corollary")
