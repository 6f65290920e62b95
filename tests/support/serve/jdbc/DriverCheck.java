import java.math.BigDecimal;
import java.sql.*;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.util.Arrays;

/** Calls what tools call of a JDBC driver, and prints what comes; the arguments: URL, user, password. */
public class DriverCheck {
    static Connection connection;

    static void print(String name, ResultSet rows) throws SQLException {
        int columns = rows.getMetaData().getColumnCount();
        while (rows.next()) {
            StringBuilder line = new StringBuilder(name);
            for (int at = 1; at <= columns; at++) line.append("|").append(rows.getString(at));
            System.out.println(line);
        }
    }

    static void execute(String... texts) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (String text : texts) statement.execute(text);
        }
    }

    static void ask(String name, String text) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            print(name, statement.executeQuery(text));
        }
    }

    static void askMetadata() throws SQLException {
        DatabaseMetaData about = connection.getMetaData();
        String[] kinds = {"TABLE", "VIEW", "MATERIALIZED VIEW"};
        print("tables", about.getTables(null, "public", "%", kinds));
        print("columns", about.getColumns(null, "public", "orders", "%"));
        print("primary", about.getPrimaryKeys(null, "public", "orders"));
        print("imported", about.getImportedKeys(null, "public", "orders"));
        print("exported", about.getExportedKeys(null, "public", "customer"));
        print("cross", about.getCrossReference(null, "public", "customer", null, "public", "orders"));
        print("index", about.getIndexInfo(null, "public", "orders", false, true));
        print("schemas", about.getSchemas());
        print("catalogs", about.getCatalogs());
        print("types", about.getTypeInfo());
        print("functions", about.getFunctions(null, null, "%"));
        print("function columns", about.getFunctionColumns(null, null, "%", "%"));
        print("procedures", about.getProcedures(null, null, "%"));
        print("procedure columns", about.getProcedureColumns(null, null, "%", "%"));
        print("privileges", about.getTablePrivileges(null, "public", "orders"));
        print("column privileges", about.getColumnPrivileges(null, "public", "orders", "id"));
        print("row", about.getBestRowIdentifier(null, "public", "orders", 2, true));
        print("version", about.getVersionColumns(null, "public", "orders"));
        print("table types", about.getTableTypes());
        print("user types", about.getUDTs(null, null, "%", null));
        System.out.println("limits|" + about.getMaxTableNameLength() + about.getMaxColumnsInIndex());
    }

    static void write() throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO customer VALUES (?, ?, ?)")) {
            for (int id = 1; id <= 20; id++) {
                insert.setInt(1, id);
                insert.setString(2, "n" + id);
                insert.setDate(3, Date.valueOf("2001-02-03"));
                insert.addBatch();
            }
            System.out.println("batch|" + Arrays.stream(insert.executeBatch()).sum());
        }
        String text = "INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
        try (PreparedStatement insert = connection.prepareStatement(text)) {
            insert.setLong(1, 1);
            insert.setInt(2, 1);
            insert.setBigDecimal(3, new BigDecimal("12.50"));
            insert.setBoolean(4, true);
            insert.setDouble(5, 1.5);
            insert.setObject(6, OffsetDateTime.parse("2024-05-06T07:08:09+02:00"));
            insert.setBytes(7, new byte[] {0, 1, -1});
            insert.setTime(8, Time.valueOf("10:11:12"));
            System.out.println("typed|" + insert.executeUpdate());
            insert.setObject(1, 2L);
            int[] kinds = {Types.INTEGER, Types.NUMERIC, Types.BOOLEAN, Types.DOUBLE, Types.TIMESTAMP};
            for (int at = 0; at < kinds.length; at++) insert.setNull(at + 2, kinds[at]);
            insert.setNull(7, Types.BINARY);
            insert.setObject(8, LocalTime.of(1, 2, 3));
            System.out.println("nulls|" + insert.executeUpdate());
        }
        ask("orders", "SELECT * FROM orders ORDER BY id");
        text = "SELECT id FROM orders WHERE at > ? AND f > ? AND ok = ? AND t < ? AND b = ? AND id = ANY(?)";
        try (PreparedStatement select = connection.prepareStatement(text)) {
            select.setTimestamp(1, Timestamp.valueOf("2020-01-01 00:00:00"));
            select.setFloat(2, 1);
            select.setBoolean(3, true);
            select.setObject(4, LocalTime.NOON);
            select.setBytes(5, new byte[] {0, 1, -1});
            select.setArray(6, connection.createArrayOf("int8", new Long[] {1L, 2L}));
            for (int times = 0; times < 7; times++) select.executeQuery().close();
            print("found", select.executeQuery());
        }
        text = "INSERT INTO customer VALUES (?, ?, NULL)";
        try (PreparedStatement insert = connection.prepareStatement(text, new String[] {"id"})) {
            insert.setInt(1, 100);
            insert.setString(2, "x");
            insert.executeUpdate();
            print("keys", insert.getGeneratedKeys());
        }
        text += " ON CONFLICT (id) DO UPDATE SET name = excluded.name";
        try (PreparedStatement insert = connection.prepareStatement(text)) {
            for (int id = 100; id < 103; id++) {
                insert.setInt(1, id);
                insert.setString(2, "y");
                insert.addBatch();
            }
            System.out.println("upserted|" + Arrays.stream(insert.executeBatch()).sum());
        }
    }

    static void transact() throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(7);
            ResultSet rows = statement.executeQuery("SELECT id FROM customer ORDER BY id");
            int count = 0;
            while (rows.next()) count++;
            System.out.println("fetched|" + count);
        }
        execute("INSERT INTO customer VALUES (200, 'p', NULL)");
        Savepoint one = connection.setSavepoint("one");
        execute("INSERT INTO customer VALUES (201, 'q', NULL)");
        try {
            execute("INSERT INTO nowhere VALUES (1)");
        } catch (SQLException error) {
            System.out.println("state|" + error.getSQLState());
        }
        connection.rollback(one);
        ask("after savepoint", "SELECT count(*) FROM customer WHERE id >= 200");
        connection.rollback();
        ask("after rollback", "SELECT count(*) FROM customer WHERE id >= 200");
        connection.commit();
        connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        System.out.println("isolation|" + connection.getTransactionIsolation());
        ask("snapshot", "SELECT count(*) FROM orders");
        try {
            execute("DELETE FROM orders");
        } catch (SQLException error) {
            System.out.println("refused|" + error.getSQLState());
        }
        connection.rollback();
        connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        connection.setAutoCommit(true);
    }

    public static void main(String[] given) throws SQLException {
        connection = DriverManager.getConnection(given[0], given[1], given[2]);
        execute(
            "CREATE TABLE customer (id int PRIMARY KEY, name text NOT NULL, born date)",
            "CREATE TABLE orders (id bigint PRIMARY KEY, customer int REFERENCES customer(id),"
                + " amount numeric(10,2), ok boolean, f double precision, at timestamptz, b bytea, t time)",
            "CREATE MATERIALIZED VIEW totals AS"
                + " SELECT customer, sum(amount) AS total FROM orders GROUP BY customer",
            "CREATE VIEW big AS SELECT * FROM orders WHERE amount > 100");
        askMetadata();
        write();
        transact();
        execute("CREATE TEMP TABLE chosen (id int)", "INSERT INTO chosen VALUES (1), (2)");
        ask("temporary", "SELECT c.name FROM chosen JOIN customer c ON c.id = chosen.id ORDER BY 1");
        try (Statement statement = connection.createStatement()) {
            statement.execute("DROP TABLE orders CASCADE");
            System.out.println("warning|" + statement.getWarnings().getMessage());
        }
        execute("DROP TABLE customer");
        connection.close();
    }
}
