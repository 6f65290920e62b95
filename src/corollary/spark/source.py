"""`format("corollary")`: a data source of Spark, written in Python.

Spark makes an object of it for every read and write, in processes of its own, and pickles it.
"""

from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from corollary.spark.access import DataSourceOptions, open_source
from corollary.spark.parts import spark_schema
from corollary.spark.reading import SourceBatchReader, SourceStreamReader, source_shape
from corollary.spark.writing import SourceBatchWriter, SourceStreamWriter


class CorollarySource(DataSource):
    """Reads and writes the relations of a warehouse."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "corollary"

    @property
    def _options(self) -> DataSourceOptions:
        return DataSourceOptions.of(self.options)

    def schema(self) -> StructType:
        """Return the columns of what is read."""
        with open_source(self._options) as source:
            return from_arrow_schema(spark_schema(source_shape(source)))

    def reader(self, schema: StructType) -> SourceBatchReader:
        """Return the reader of a batch."""
        return SourceBatchReader(self._options, schema)

    def streamReader(self, schema: StructType) -> SourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream."""
        return SourceStreamReader(self._options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> SourceBatchWriter:
        """Return the writer of a frame."""
        return SourceBatchWriter(self._options, schema, is_overwritten=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> SourceStreamWriter:  # noqa: N802 - Spark's name
        """Return the writer of a stream."""
        return SourceStreamWriter(self._options, schema, is_overwritten=overwrite)
