"""Found by Spark, which looks for modules named `pyspark_*`: nothing has to be registered."""

from corollary.spark.source import CorollarySource as DefaultSource

__all__ = ["DefaultSource"]
