"""Commands without pandas, which only Spark needs.

Where pandas is installed, pyarrow imports it at its first scalar or array, to recognise the objects
of pandas that it may be given. That takes 0.4 s, and nobody gives it any here. pyarrow asks once,
and takes no for an answer; code that asks for pandas by name, as Spark does, gets it.
"""

import sys
from typing import Any


class _PandasRefusal:
    """Does not find pandas before Spark is there; all other packages are left to other finders.

    Not a `MetaPathFinder`: importing that takes longer than all that is done here.
    """

    def find_spec(self, fullname: str, *_: Any) -> None:
        if fullname == "pandas" and "pyspark" not in sys.modules:
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")


def refuse_pandas() -> None:
    """Let this process import pandas with Spark only."""
    sys.meta_path.insert(0, _PandasRefusal())
