"""The tape in SQLite."""
