"""What tests stand on: databases and sources under test, readers of cases, servers."""
