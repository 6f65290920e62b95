import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Spark's session catalog, with tables in memory where AUTO CDC needs MERGE.
 *
 * Nothing in a release of Spark can merge rows. A table with the column that AUTO CDC adds to its
 * targets is kept here, in a list of rows on the driver; a MERGE replaces them all.
 */
public class MergeCatalog extends DelegatingCatalogExtension {
  private static final Map<String, Rows> TABLES = new ConcurrentHashMap<>();
  private static final String OF_AUTO_CDC = "__spark_autocdc_metadata";

  @Override
  public Table loadTable(Identifier name) throws NoSuchTableException {
    Rows found = TABLES.get(name.toString());
    return found == null ? super.loadTable(name) : found;
  }

  @Override
  public boolean tableExists(Identifier name) {
    return TABLES.containsKey(name.toString()) || super.tableExists(name);
  }

  @Override
  public Table createTable(
      Identifier name, Column[] columns, Transform[] parts, Map<String, String> properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    for (Column each : columns) {
      if (each.name().equals(OF_AUTO_CDC)) {
        Rows made = new Rows(name.toString(), columns, properties);
        TABLES.put(name.toString(), made);
        return made;
      }
    }
    return super.createTable(name, columns, parts, properties);
  }

  @Override
  public Table alterTable(Identifier name, TableChange... changes) throws NoSuchTableException {
    Rows found = TABLES.get(name.toString());
    return found == null ? super.alterTable(name, changes) : found;
  }

  @Override
  public boolean dropTable(Identifier name) {
    return TABLES.remove(name.toString()) != null || super.dropTable(name);
  }

  /** A table that is a list of rows. */
  static class Rows implements SupportsRead, SupportsWrite, SupportsRowLevelOperations {
    private final String name;
    private final Column[] columns;
    private final Map<String, String> properties;
    private volatile List<InternalRow> rows = List.of();

    Rows(String name, Column[] columns, Map<String, String> properties) {
      this.name = name;
      this.columns = columns;
      this.properties = properties;
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public Column[] columns() {
      return columns;
    }

    @Override
    public StructType schema() {
      return CatalogV2Util.v2ColumnsToStructType(columns);
    }

    @Override
    public Map<String, String> properties() {
      return properties;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      List<InternalRow> now = rows;
      StructType schema = schema();
      return () -> new LocalScan() {
        @Override
        public InternalRow[] rows() {
          return now.toArray(new InternalRow[0]);
        }

        @Override
        public StructType readSchema() {
          return schema;
        }
      };
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      return written(false);
    }

    @Override
    public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
      return () -> new RowLevelOperation() {
        @Override
        public Command command() {
          return info.command();
        }

        @Override
        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
          return Rows.this.newScanBuilder(options);
        }

        @Override
        public WriteBuilder newWriteBuilder(LogicalWriteInfo write) {
          return written(true);
        }
      };
    }

    private WriteBuilder written(boolean isReplaced) {
      return new WriteBuilder() {
        @Override
        public Write build() {
          return new Write() {
            @Override
            public BatchWrite toBatch() {
              return new Replacement(Rows.this, isReplaced);
            }
          };
        }
      };
    }
  }

  /** A write that replaces all rows of a table, or adds to them. */
  static class Replacement implements BatchWrite {
    private final Rows table;
    private final boolean isReplaced;

    Replacement(Rows table, boolean isReplaced) {
      this.table = table;
      this.isReplaced = isReplaced;
    }

    @Override
    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      return new Writers();
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
      List<InternalRow> all = new ArrayList<>(isReplaced ? List.of() : table.rows);
      for (WriterCommitMessage each : messages) {
        all.addAll(((Written) each).rows);
      }
      table.rows = all;
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {}
  }

  static class Writers implements DataWriterFactory {
    @Override
    public DataWriter<InternalRow> createWriter(int partition, long task) {
      return new Writer();
    }
  }

  static class Writer implements DataWriter<InternalRow> {
    private final ArrayList<InternalRow> rows = new ArrayList<>();

    @Override
    public void write(InternalRow row) {
      rows.add(row.copy());
    }

    @Override
    public WriterCommitMessage commit() {
      return new Written(rows);
    }

    @Override
    public void abort() {}

    @Override
    public void close() {}
  }

  static class Written implements WriterCommitMessage, Serializable {
    final ArrayList<InternalRow> rows;

    Written(ArrayList<InternalRow> rows) {
      this.rows = rows;
    }
  }
}
