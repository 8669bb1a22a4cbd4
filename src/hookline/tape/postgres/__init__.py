"""The tape in PostgreSQL."""
